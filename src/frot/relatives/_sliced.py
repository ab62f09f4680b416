"""Sliced transport: the average over random lines, along each of which it is sorting."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from frot._base.spelling import second_names
from frot._base.validate import check_count, check_seed
from frot.costs import FactoredCosts
from frot.costs.protocol import UNIT, blocks
from frot.groups.groups import Groups
from frot.plans.line import line_arcs, line_cost
from frot.plans.plan import Plan
from frot.problem.bounds import cost_doubt, refuse_contradiction, relative_gap
from frot.problem.result import Chosen, Progress, Result
from frot.problem.status import Status
from frot.relatives.pair import check_pair, transport_at

__all__ = ["costs_along", "sliced"]

# Up to this many pairs of points the upper bound is an exact transport's.
EXACT_UP_TO = 1_000_000


@second_names
def sliced(
    X: Any,
    Y: Any,
    *,
    a: Any = None,
    b: Any = None,
    normalise_weights: bool = False,
    projections: int = 200,
    random_state: int = 0,
) -> Result:
    r"""Sliced transport: the mean over directions of the transport along them.

    .. math::
        \mathrm{SW}_2^2 = \mathbb E_{w} \; \min_{\Pi \in U(a, b)}
        \sum_{ij} \pi_{ij} (w^\top x_i - w^\top y_j)^2,
        \qquad \tfrac1d \| \bar x - \bar y \|^2 \le \mathrm{SW}_2^2 \le \tfrac1d W_2^2

    There is no adversary: all directions count the same. `value` is an average over random ones, an
    estimate, and `status` says so; the interval holds the truth for the reasons on the right.

    Parameters
    ----------
    X, Y, a, b, normalise_weights :
        As in `solve`.
    projections : int
        Random directions.
    random_state : int

    Returns
    -------
    Result
        ``plan`` is a plan that proves `upper`, ``phi`` its cost in each feature, ``alpha`` uniform.

    Examples
    --------
    >>> import frot
    >>> res = frot.sliced([[0.0, 0.0]], [[3.0, 4.0]], projections=2000)
    >>> round(res.lower, 6), round(res.upper, 6), 11.5 < res.value < 13.5
    (12.5, 12.5, True)
    """
    pair = check_pair(X, Y, a, b, normalise_weights)
    count = check_count(projections, "projections")
    seed = check_seed(random_state, "random_state")
    begin = time.perf_counter()
    costs = pair.costs
    n, m, d = len(costs.X), len(costs.Y), costs.X.shape[1]
    rng = np.random.default_rng(seed)
    value = 0.0
    # As many directions at a time as a block of projections holds.
    for part in blocks(count, 8 * (n + m + d)):
        directions = rng.normal(size=(part.stop - part.start, d))
        value += float(costs_along(costs.X, costs.Y, pair.a, pair.b, directions).sum()) / count
    difference = pair.a @ costs.X - pair.b @ costs.Y
    potentials = (np.zeros(n), np.zeros(m))
    if n * m <= EXACT_UP_TO:
        found = transport_at(pair.problem)
        plan, potentials = found.plan, (found.lower.f, found.lower.g)
    else:
        axis = difference if difference.any() else np.ones(d)
        plan = Plan.from_arcs(*line_arcs(costs.X @ axis, costs.Y @ axis, pair.a, pair.b), (n, m))
    each = FactoredCosts.of(pair.X, pair.Y, Groups.each(d))
    phi = each.inner(plan)
    total = pair.problem.costs.inner(plan)
    upper = float(total[0] + cost_doubt(pair.problem, plan, total)[0]) / d
    reach = float(np.abs(costs.X).max() + np.abs(costs.Y).max())
    error = (n + m) * UNIT * reach * float(np.abs(difference).sum() + (n + m) * UNIT * reach)
    lower = max(float(difference @ difference) / d - error, 0.0)
    refuse_contradiction(lower, upper, "sliced")
    seconds = time.perf_counter() - begin
    return Result(
        value=value,
        lower=lower,
        upper=upper,
        status=Status.ESTIMATE,
        alpha=np.full(d, 1.0 / d),
        phi=phi,
        plan=plan,
        potentials=potentials,
        mean_cost=pair.problem.mean_cost,
        names=pair.names,
        solver=f"sliced(projections={count})",
        iterations=count,
        time=seconds,
        history=(Progress(count, seconds, lower, upper, relative_gap(lower, upper)),),
        points=(pair.X, pair.Y),
        chosen=Chosen("weights", np.full(d, 1.0 / d), pair.names),
    ).at(pair.home)


def costs_along(
    X: np.ndarray, Y: np.ndarray, a: np.ndarray, b: np.ndarray, directions: np.ndarray
) -> np.ndarray:
    r"""Return the squared cost of transport along each direction, by sorting.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d)
    a, b : arrays of shape (n,) and (m,)
    directions : array of shape (k, d)
        Of any length but zero.

    Returns
    -------
    array of shape (k,)
        :math:`\min_\Pi \sum_{ij} \pi_{ij} (w^\top x_i - w^\top y_j)^2` with w of length one.

    Examples
    --------
    >>> one = np.ones(1)
    >>> costs_along(np.zeros((1, 2)), np.array([[3.0, 4.0]]), one, one, np.array([[2.0, 0.0]]))
    array([9.])
    """
    unit = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    sides = zip(unit @ X.T, unit @ Y.T, strict=True)
    return np.array([line_cost(x, y, line_arcs(x, y, a, b)) for x, y in sides])
