"""Transport between the cells of two images, by the library's own solvers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from frot._arrays import Home
from frot._errors import ConvergenceWarning
from frot._oracles import Sinkhorn
from frot._result import Result
from frot._solve import solve_costs
from frot._solvers import Entropic, FrankWolfe

__all__ = ["Transporting"]

# Mass in wrong columns that the paper's steps are allowed.
STEP_TOL = 1e-3


@dataclass(frozen=True)
class Transporting:
    r"""Solve for the plan between cells.

    .. math::
        \min_{\Pi \in U(a, b)} \max_{\alpha \in \Sigma^L} \sum_l \alpha_l \langle \Pi, C_l \rangle
        - \eta\, \mathrm{KL}(\alpha | q) + \varepsilon\, \mathrm{KL}(\Pi | a b^\top)

    Parameters
    ----------
    eta, eps : float
        In units of cost, which goes from 0 to 4.
    tol : float
        Relative gap to solve to.
    steps : int, optional
        Steps of the paper's Frank-Wolfe instead (its T), from the product plan with
        :math:`\gamma = 2 / (2 + t)`; the gap is then what it is.
    normalise : {"none", "mean", "regret"}
        As in `frot.solve`.
    """

    eta: float = 0.3
    eps: float = 0.1
    tol: float = 1e-3
    steps: int | None = None
    normalise: str = "none"

    def __call__(
        self,
        stack: Any,
        names: Sequence[str],
        a: np.ndarray,
        b: np.ndarray,
        prior: np.ndarray | None = None,
    ) -> Result:
        """Solve for a stack of costs, (L, n, m)."""
        bring = Home.of(stack).bring
        a, b, prior = bring(a), bring(b), None if prior is None else bring(prior)
        with warnings.catch_warnings():
            if self.steps is None:
                solver = Entropic(tol=self.tol)
            else:
                # So few steps are never meant to converge; the interval says how far they are.
                warnings.simplefilter("ignore", ConvergenceWarning)
                oracle = Sinkhorn(tol=STEP_TOL)
                solver = FrankWolfe(oracle, step="paper", tol=1e-12, max_iter=self.steps)
            return solve_costs(
                stack, a, b, eta=self.eta, eps=self.eps, prior=prior, names=names,
                normalise_weights=True,
                normalise=self.normalise, solver=solver,
            )  # fmt: skip

    def alone(self, cost: Any, name: str, a: np.ndarray, b: np.ndarray) -> Result:
        """Solve for one cost, (n, m): ordinary transport."""
        one = Transporting(0.0, self.eps, self.tol)
        return one(cost[None, ...], (name,), a, b)
