"""Costs made comparable between groups: divided by their means, or less their optima."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from frot._base.errors import InputError, warn_caller
from frot._base.stopping import DeadlineError
from frot._base.validate import check_choice
from frot.costs import Costs
from frot.costs.protocol import UNIT
from frot.problem.bounds import c_transforms
from frot.problem.terms import NORMALISATIONS
from frot.solvers.exact.column_generation import CUTS, clipped_potentials
from frot.solvers.oracles import NetworkSimplex

# Entries of costs of both signs whose mean is taken exactly, at most.
CANCEL_UP_TO = 10_000
# Relative gap from which on a group's optimum is not known.
KNOWN = 1e-6


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
    >>> from frot.costs import StackedCosts
    >>> half = np.array([0.5, 0.5])
    >>> costs = StackedCosts(np.array([[[1.0, 3.0], [3.0, 1.0]]]))
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
        means = _means(costs, a, b)
        # A group without any cost has nothing to scale.
        scale = np.divide(1.0, means, out=np.ones(count), where=means > 0.0)
        return costs.rescaled(scale)
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
            proven = _proven(cost, a[rows], b[cols], transport.g, optimum[group])
        except DeadlineError:
            raise InputError(
                "time_limit: was up before the optimum of every group was known, which "
                "normalise='regret' subtracts; allow more time, or use normalise='mean'"
            ) from None
        if not _is_known(proven, optimum[group]):
            warn_caller(
                f"normalise: the optimum of group {group} is only known to lie in [{proven:.6g}, "
                f"{optimum[group]:.6g}], whose upper end is subtracted."
            )
    return costs.rescaled(np.ones(count), optimum)


def _means(costs: Costs, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the mean costs; those of costs that cancel, in rational numbers.

    To divide by what rounding left of a mean of zero would make noise of a group.
    """
    means = costs.independent(a, b)
    if costs.nonnegative or len(a) * len(b) > CANCEL_UP_TO:
        return means
    doubt = 4.0 * (len(a) + len(b)) * UNIT * costs.magnitudes(a, b)
    unsure = np.flatnonzero(np.abs(means) <= doubt)
    if not len(unsure):
        return means
    rows, cols = np.divmod(np.arange(len(a) * len(b)), len(b))
    mass = [Fraction(x) * Fraction(y) for x, y in zip(a[rows], b[cols], strict=True)]
    for group in unsure:
        entries = costs.at(rows, cols, np.array([group]))[0].tolist()
        means[group] = float(sum(Fraction(c) * w for c, w in zip(entries, mass, strict=True)))
    return means


def _is_known(lower: float, upper: float) -> bool:
    """Whether the two are the same, to what a warning is worth."""
    return upper - lower <= KNOWN * max(abs(lower), abs(upper))


def _proven(
    cost: np.ndarray, a: np.ndarray, b: np.ndarray, first: np.ndarray, optimum: float
) -> float:
    """What potentials prove of an optimum: the given ones, or those of costs that are cut.

    Between points that only dear arcs connect, potentials are rounded to more than the optimum is.
    """
    found = _dual_value(cost, a, b, first)
    for cut in CUTS:
        if _is_known(found, optimum):
            break
        for g in clipped_potentials(cost, a, b, cut * abs(optimum)):
            found = max(found, _dual_value(cost, a, b, g))
    return found


def _dual_value(cost: np.ndarray, a: np.ndarray, b: np.ndarray, g: np.ndarray) -> float:
    f, g = c_transforms(cost, g)
    return float(a @ f + b @ g)


def refuse_normalised_distance(how: Any) -> None:
    """Refuse to make groups comparable within each pair where distances are asked for.

    Both ways depend on the two clouds, so that distances to others are in other units.
    """
    why = {
        "mean": "divides by costs of the pair itself, so that the triangle inequality fails",
        "regret": "subtracts what the pair costs at least, so that different clouds are at 0",
    }
    how = check_choice(how, "normalise", NORMALISATIONS)
    if how != "none":
        raise InputError(
            f"normalise: {how!r} {why[how]}; leave it out for a distance (scale the features of "
            "all clouds alike instead), or use frot.solve for such a value"
        )
