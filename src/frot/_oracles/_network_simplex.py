"""Exact transport by POT's network simplex."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from frot._errors import SolverError
from frot._oracles._protocol import Transport
from frot._plan import Plan
from frot._validate import check_count

__all__ = ["NetworkSimplex"]


@dataclass(frozen=True)
class NetworkSimplex:
    r"""Solve :math:`\min_{\Pi \in U(a, b)} \langle \Pi, M \rangle` exactly.

    POT stops after 100,000 pivots with no more than a warning, which n = 2000 needs already;
    here the limit grows with the problem and a failure is an error.

    Parameters
    ----------
    max_iter : int, optional
        Pivots at most; the default is 500 (n + m) and never less than a million.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> NetworkSimplex()(np.array([[1.0, 0.0], [0.0, 1.0]]), half, half).plan.argmax()
    array([1, 0])
    """

    max_iter: int | None = None

    def __post_init__(self) -> None:
        if self.max_iter is not None:
            object.__setattr__(self, "max_iter", check_count(self.max_iter, "max_iter"))

    @property
    def entropic(self) -> bool:
        """Takes no eps."""
        return False

    def __call__(
        self,
        M: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        eps: float = 0.0,
        start: np.ndarray | None = None,
    ) -> Transport:
        """Return a vertex plan (at most n + m - 1 arcs) and optimal potentials."""
        import ot

        limit = self.max_iter or max(1_000_000, 500 * (len(a) + len(b)))
        # POT's tolerances are absolute, and negative costs confuse it: give it costs in [0, 1].
        least = float(M.min())
        unit = float(M.max()) - least
        if not unit > 0.0:
            unit = 1.0
        scaled = (M - least) / unit
        with warnings.catch_warnings():
            # Every failure POT warns of is also in its result code, which is read below.
            warnings.simplefilter("ignore")
            plan, log = ot.emd(a, b, scaled, numItermax=limit, log=True, check_marginals=False)
        if log["result_code"] != 1:
            raise SolverError(
                f"POT's network simplex failed (code {log['result_code']}: {log['warning']}); "
                f"the limit was {limit} pivots, see NetworkSimplex(max_iter=...)"
            )
        f, g = log["u"] * unit + least, log["v"] * unit
        return Transport(Plan.from_arcs(*Plan(plan, copy=False).arcs(), plan.shape), f, g)
