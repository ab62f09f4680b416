"""Transport between the cells of two images, by the library's own solvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frot._base.arrays import Home
from frot.api.solve import solve_costs
from frot.correspondence._layer_solve import paper_solver, solve_layers
from frot.correspondence._layers import LayerPair
from frot.problem.result import Result
from frot.solvers import Entropic

__all__ = ["Transporting"]


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
        self, layers: LayerPair, a: np.ndarray, b: np.ndarray, prior: np.ndarray | None = None
    ) -> Result:
        """Solve for all layers."""
        solver = Entropic(tol=self.tol) if self.steps is None else paper_solver(self.steps)
        return solve_layers(
            layers.costs, a, b, names=layers.names, eta=self.eta, eps=self.eps, prior=prior,
            normalise=self.normalise, solver=solver,
        )  # fmt: skip

    def alone(self, cost: Any, name: str, a: np.ndarray, b: np.ndarray) -> Result:
        """Solve for one cost, (n, m): ordinary transport."""
        bring = Home.of(cost).bring
        return solve_costs(
            cost[None, ...], bring(a), bring(b), eps=self.eps, names=(name,),
            normalise_weights=True, solver=Entropic(tol=self.tol),
        )  # fmt: skip
