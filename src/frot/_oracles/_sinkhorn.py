"""Entropic transport by Sinkhorn's algorithm in scalings that are absorbed into potentials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frot._errors import InputError
from frot._oracles._protocol import Transport
from frot._oracles._sweeps import sweep_to
from frot._plan import Plan

__all__ = ["Sinkhorn"]

# Smaller eps are reached from larger ones by this factor, each solved no better than roughly.
EPS_FACTOR = 4.0
ROUGH = 1e-2


@dataclass(frozen=True)
class Sinkhorn:
    r"""Solve :math:`\min_\Pi \langle \Pi, M \rangle + \varepsilon\,\mathrm{KL}(\Pi | a b^\top)`.

    The paper's algorithm 1 on the kernel :math:`e^{(f \oplus g - M)/\varepsilon}`, whose
    potentials take over whatever the scalings cannot hold, so that small eps neither underflow
    nor lose mass. The test is on the marginals themselves, :math:`\|\Pi^\top 1 - b\|_1 \le tol`
    with the rows exact.

    Parameters
    ----------
    tol : float
        Mass that may be in the wrong column.
    max_iter : int
        Sweeps at most, over all eps on the way.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> plan = Sinkhorn()(np.array([[0.0, 1.0], [1.0, 0.0]]), half, half, eps=1e-3).plan
    >>> np.asarray(plan).round(6)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    tol: float = 1e-6
    max_iter: int = 10_000

    def __post_init__(self) -> None:
        if not self.tol > 0.0:
            raise InputError(f"tol: must be > 0, got {self.tol!r}")
        if self.max_iter < 1:
            raise InputError(f"max_iter: must be >= 1, got {self.max_iter!r}")

    @property
    def entropic(self) -> bool:
        """Needs eps > 0."""
        return True

    def __call__(
        self,
        M: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        eps: float = 0.0,
        start: np.ndarray | None = None,
    ) -> Transport:
        """Return the entropic plan and its potentials."""
        if not eps > 0.0:
            raise InputError("eps: Sinkhorn needs eps > 0; pass eps=... or use NetworkSimplex()")
        g = np.zeros(len(b)) if start is None else start
        # A warm start is worth more than coming down from a large eps.
        spread = float(M.max() - M.min())
        level = eps if start is not None else max(eps, spread / EPS_FACTOR)
        left = self.max_iter
        while level > eps and left > 0:
            found = sweep_to(M, a, b, level, g, max(self.tol, ROUGH), left)
            g, left = found.g, left - found.sweeps
            level = max(eps, level / EPS_FACTOR)
        found = sweep_to(M, a, b, eps, g, self.tol, max(left, 1))
        return Transport(Plan(found.plan), found.f, found.g, bool(found.error <= self.tol))
