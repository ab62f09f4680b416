"""Costs made comparable between groups: divided by their means, or less their optima."""

from __future__ import annotations

import numpy as np

from frot._base.errors import InputError, warn_caller
from frot._base.stopping import DeadlineError
from frot.costs import Costs
from frot.costs.build import mean_scales
from frot.problem.bounds import c_transforms
from frot.solvers.oracles import NetworkSimplex


def normalise_costs(costs: Costs, a: np.ndarray, b: np.ndarray, how: str) -> Costs:
    r"""Rescale or shift every group's cost.

    Parameters
    ----------
    costs : Costs
    a, b : arrays of shape (n,) and (m,)
    how : {"none", "mean", "regret"}
        "mean" divides by the mean cost :math:`a^\top C_l b`, so that no group wins by its units;
        "regret" subtracts the group's own optimal transport cost, so that the adversary weighs
        what a plan loses in each group against the best plan for it. Regret solves L transport
        problems first.

    Examples
    --------
    >>> from frot.costs import Stack
    >>> half = np.array([0.5, 0.5])
    >>> costs = Stack(np.array([[[1.0, 3.0], [3.0, 1.0]]]))
    >>> normalise_costs(costs, half, half, "mean").mix(np.ones(1))
    array([[0.5, 1.5],
           [1.5, 0.5]])
    >>> normalise_costs(costs, half, half, "regret").mix(np.ones(1))
    array([[0., 2.],
           [2., 0.]])
    """
    count = costs.shape[0]
    if how == "none":
        return costs
    if how == "mean":
        return costs.rescaled(mean_scales(costs, a, b))
    rows, cols = np.flatnonzero(a), np.flatnonzero(b)
    part = costs.take(rows, cols)
    oracle = NetworkSimplex()
    optimum = np.empty(count)
    for group in range(count):
        cost = part.mix(np.eye(1, count, group)[0])
        try:
            transport = oracle(cost, a[rows], b[cols])
            i, j, mass = transport.plan.arcs()
            optimum[group] = mass @ cost[i, j]
            f, g = c_transforms(cost, transport.g)
            proven = float(a[rows] @ f + b[cols] @ g)
        except DeadlineError:
            raise InputError(
                "time_limit: was up before the optimum of every group was known, which "
                "normalise='regret' subtracts; allow more time, or use normalise='mean'"
            ) from None
        if optimum[group] - proven > 1e-6 * float(np.abs(cost).mean()):
            warn_caller(
                f"normalise: the optimum of group {group} is only known to lie in [{proven:.6g}, "
                f"{optimum[group]:.6g}], whose upper end is subtracted."
            )
    return costs.rescaled(np.ones(count), optimum)
