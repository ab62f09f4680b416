"""The `Oracle` protocol: what a solver may ask of an ordinary transport solver."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from frot.plans.plan import Plan


class Transport(NamedTuple):
    """A plan, the potentials that go with it, and whether the oracle reached its tolerance.

    Examples
    --------
    >>> import frot
    >>> one = np.ones(1)
    >>> frot.Transport(frot.Plan([[1.0]]), f=one, g=0.0 * one).converged
    True
    """

    plan: Plan
    f: np.ndarray
    g: np.ndarray
    converged: bool = True


class Oracle(Protocol):
    """min over plans of <plan, M>, exactly or nearly.

    Any function of this kind works; it is called with the mixed cost as a matrix. Its plan is made
    feasible, and its g proves a lower bound, however far it is from the optimum. One whose call
    does what sweeps on the potentials alone do may declare ``keeps_potentials = True``, with `eps`,
    `tol` and `max_iter`: it is then run on the costs as they are, and its plans are never formed.

    Examples
    --------
    >>> import frot
    >>> class Counting:
    ...     calls = 0
    ...     def __call__(self, M, a, b, start=None):
    ...         self.calls += 1
    ...         return frot.NetworkSimplex()(M, a, b)
    >>> oracle = Counting()
    >>> found = frot.solve_costs(np.eye(3)[None], solver=frot.FrankWolfe(oracle=oracle))
    >>> found.value, oracle.calls
    (0.0, 1)
    """

    def __call__(
        self,
        M: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        start: np.ndarray | None = None,
    ) -> Transport:
        """Transport a to b at cost M; `start` is a potential g to begin from."""
        ...


def keeps_potentials(oracle: object) -> bool:
    """Whether an oracle declares that potentials are all there is to its plans.

    Examples
    --------
    >>> import frot
    >>> keeps_potentials(frot.Sinkhorn(eps=0.1)), keeps_potentials(frot.NetworkSimplex())
    (True, False)
    """
    return getattr(oracle, "keeps_potentials", False) is True
