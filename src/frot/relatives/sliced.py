"""Sliced transport: the mean over random directions, along each of which transport is sorting."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from frot._base.arrays import UNIT
from frot._base.validate import check_count, check_seed, second_names
from frot.costs import Points
from frot.groups.groups import Groups
from frot.plans.line import line_arcs, line_cost, line_potentials
from frot.plans.plan import Plan
from frot.problem.bounds import upper_bound
from frot.problem.result import Chosen, Progress, Result, Status
from frot.relatives.pair import check_pair


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
        \sum_{ij} \pi_{ij} (w^\top x_i - w^\top y_j)^2 \;\le\; \tfrac1d W_2^2

    There is no adversary: all directions count the same. `value` is the mean over random ones, as
    POT's ``sliced_wasserstein_distance`` squared: an estimate, as `status` says, whose standard
    error `solver` states. The interval is proven, and wide: with :math:`\Delta` the difference of
    the means,

    .. math::
        \tfrac1d |\Delta|^2 \le \mathrm{SW}_2^2 \le
        \tfrac1d \sum_{ij} \pi_{ij} |x_i - y_j|^2

    for any plan; the mean is taken to the nearer end where it falls outside.

    Parameters
    ----------
    X, Y, a, b, normalise_weights :
        As in `solve`.
    projections : int
        Random directions, at least 2.
    random_state : int

    Returns
    -------
    Result
        ``plan`` is the plan that proves `upper`: of the direction, of those drawn, along which
        transport costs most. ``phi`` is its cost in each feature; ``alpha`` is uniform.

    Examples
    --------
    >>> import frot
    >>> res = frot.sliced([[0.0, 0.0], [3.0, 3.0]], [[1.0, 2.0], [4.0, 6.0]])
    >>> res.lower <= res.value <= res.upper, res.status
    (True, Status.ESTIMATE)
    """
    pair = check_pair(X, Y, a, b, normalise_weights)
    count = check_count(projections, "projections", least=2)
    rng = np.random.default_rng(check_seed(random_state, "random_state"))
    begin = time.perf_counter()
    features = pair.X.shape[1]
    costs = np.empty(count)
    dearest = np.zeros(features)
    for index in range(count):
        direction = rng.normal(size=features)
        direction /= np.linalg.norm(direction)
        x, y = pair.X @ direction, pair.Y @ direction
        costs[index] = line_cost(x, y, line_arcs(x, y, pair.a, pair.b))
        if index == 0 or costs[index] > costs[:index].max():
            dearest = direction
    x, y = pair.X @ dearest, pair.Y @ dearest
    arcs = line_arcs(x, y, pair.a, pair.b)
    plan = Plan.from_arcs(*arcs, (len(x), len(y)))
    lower = _between_means(pair.X, pair.Y, pair.a, pair.b) / features
    upper = upper_bound(pair.problem, plan).bound / features
    value = float(np.clip(costs.mean(), lower, upper))
    error = float(costs.std(ddof=1) / np.sqrt(count))
    each = Points.of(pair.X, pair.Y, Groups.each(features))
    seconds = time.perf_counter() - begin
    alpha = np.full(features, 1.0 / features)
    return Result(
        value=value,
        lower=lower,
        upper=upper,
        status=Status.ESTIMATE,
        alpha=alpha,
        phi=each.inner(plan),
        plan=plan,
        potentials=line_potentials(x, y, arcs),
        mean_cost=pair.problem.mean_cost,
        names=pair.names,
        solver=f"sliced(projections={count}), standard error {error:.1e}",
        iterations=count,
        time=seconds,
        history=(Progress(count, seconds, lower, upper, pair.problem.gap(lower, upper)),),
        points=(pair.X, pair.Y),
        metric="sqeuclidean",
        adversary="none, the mean over directions",
        chosen=Chosen("weights", alpha, pair.names),
    ).at(pair.home)


def _between_means(X: np.ndarray, Y: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    r"""Bound the squared distance of the two means from below.

    A direction's transport costs the square of what the means are apart in it at least (Jensen),
    which is :math:`|\bar x - \bar y|^2 / d` on average over directions.
    """
    sizes = a @ np.abs(X) + b @ np.abs(Y)
    gaps = np.abs(a @ X - b @ Y) - (len(a) + len(b) + 8.0) * UNIT * sizes
    return float((np.maximum(gaps, 0.0) ** 2).sum() * (1.0 - (len(gaps) + 8.0) * UNIT))
