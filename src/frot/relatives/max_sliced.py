"""Max-sliced transport (Deshpande et al. 2019): the worst direction, found by local ascent."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from frot._base.arrays import UNIT
from frot._base.stopping import StoppingLimits, check_limits
from frot._base.validate import check_count, check_seed, second_names
from frot.costs import Points
from frot.groups.groups import Groups
from frot.plans.feasible import round_plan
from frot.plans.line import line_arcs, line_cost, line_potentials
from frot.plans.plan import Arcs, Plan
from frot.problem.bounds import refuse_contradiction
from frot.problem.result import Chosen, Progress, Result, Status
from frot.relatives.displacement import Displacements
from frot.relatives.pair import PointPair, check_pair, transport_at

# The relaxed maximum and the value agree to this share: the search has found the truth.
AGREE = 1e-9


@second_names
def max_sliced(
    X: Any,
    Y: Any,
    *,
    a: Any = None,
    b: Any = None,
    normalise_weights: bool = False,
    restarts: int = 10,
    random_state: int = 0,
    tol: float = 1e-9,
    max_iter: int = 200,
    time_limit: float | None = None,
) -> Result:
    r"""Max-sliced transport (Deshpande et al. 2019): project on the worst direction, then move.

    .. math::
        \max_{\|w\|_2 = 1} \; \min_{\Pi \in U(a, b)}
        \sum_{ij} \pi_{ij} \big( w^\top x_i - w^\top y_j \big)^2
        \;\le\; \mathrm{SRW}_1^2 \;\le\; W_2^2

    Kolouri et al. 2019 project on curves. The problem is not convex. Each search goes uphill by
    sorting along w and taking a step of the power method with the plan's second moments
    :math:`V_\Pi`, from the directions of plain transport, of the difference of means and from
    random ones; every value found is a lower bound of the maximum, and `status` says so. The upper
    bound is the largest eigenvalue of :math:`V_\Pi` at the best plan known, which bounds even
    :math:`\mathrm{SRW}_1^2`.

    Parameters
    ----------
    X, Y, a, b, normalise_weights :
        As in `solve`.
    restarts : int
        Random directions to begin from, besides the two that are not random.
    random_state : int
        Seed of the random directions.
    tol : float
        Relative improvement at which a search ends.
    max_iter : int
        Steps of each search at most.
    time_limit : float, optional
        Seconds, for all searches together.

    Returns
    -------
    Result
        ``chosen.array`` is the direction w, ``plan`` the one it sorts into, ``value`` the squared
        cost on the line; ``alpha`` are the squares of w, and ``phi`` the cost of the plan in each
        feature.

    Examples
    --------
    >>> import frot
    >>> res = frot.max_sliced([[0.0, 0.0]], [[3.0, 4.0]])
    >>> round(res.value, 9), abs(res.chosen.array).round(3), res.status
    (25.0, array([0.6, 0.8]), Status.CONVERGED)
    """
    pair = check_pair(X, Y, a, b, normalise_weights)
    count, seed = check_count(restarts, "restarts"), check_seed(random_state, "random_state")
    limits = check_limits(tol, max_iter, time_limit)
    begin = time.perf_counter()
    moments = Displacements.of(pair)
    plain = transport_at(pair.problem).plan
    leading = moments.leading(plain, 1)
    upper = leading.bound
    means = pair.a @ moments.X - pair.b @ moments.Y
    rng = np.random.default_rng(seed)
    starts = [leading.vectors[:, 0], means, *rng.normal(size=(count, moments.features))]
    best: Slice | None = None
    history: list[Progress] = []
    for start in starts:
        if not np.linalg.norm(start) > 0.0:
            continue
        climbed = _climb(moments, start, limits, begin)
        best = climbed if best is None or climbed.cost > best.cost else best
        elapsed = time.perf_counter() - begin
        gap = pair.problem.gap(best.cost, max(upper, best.cost))
        history.append(Progress(len(history) + 1, elapsed, best.cost, upper, gap))
        if limits.time_limit is not None and elapsed >= limits.time_limit:
            break
    assert best is not None
    plan = round_plan(Plan.from_arcs(*best.arcs, (len(pair.a), len(pair.b))), pair.a, pair.b)
    upper = min(upper, moments.leading(plan, 1).bound)
    return _finish(pair, moments.back(best.direction), upper, count, history, begin)


class Slice(NamedTuple):
    """A direction, the projections on it, the plan that sorts them and its cost."""

    direction: np.ndarray
    x: np.ndarray
    y: np.ndarray
    arcs: Arcs
    cost: float


def _slice(moments: Displacements, direction: np.ndarray) -> Slice:
    direction = direction / np.linalg.norm(direction)
    x, y = moments.X @ direction, moments.Y @ direction
    arcs = line_arcs(x, y, moments.a, moments.b)
    return Slice(direction, x, y, arcs, line_cost(x, y, arcs))


def _climb(
    moments: Displacements, start: np.ndarray, limits: StoppingLimits, begin: float
) -> Slice:
    """Go uphill from a direction w, by steps towards V w / |V w| as far as they help.

    For a fixed plan the cost is w^T V w, and the true cost is the least over plans: V w is a
    direction of ascent of the second, and the step is halved until it does ascend.
    """
    now = _slice(moments, start)
    longest = 4.0
    for _ in range(limits.max_iter):
        if limits.time_limit is not None and time.perf_counter() - begin >= limits.time_limit:
            return now
        rows, cols, mass = now.arcs
        pull = mass * (now.x[rows] - now.y[cols])
        image = np.bincount(rows, pull, len(now.x)) @ moments.X
        image -= np.bincount(cols, pull, len(now.y)) @ moments.Y
        norm = float(np.linalg.norm(image))
        if norm == 0.0:
            return now
        step = image / norm - now.direction
        for length in longest * 0.5 ** np.arange(14):
            new = _slice(moments, now.direction + length * step)
            if new.cost > now.cost:
                # Steps are seldom much longer than the last one was.
                longest = min(2.0 * length, 4.0)
                break
        else:
            return now
        gained, now = new.cost - now.cost, new
        if gained <= limits.tol * now.cost:
            return now
    return now


def _finish(
    pair: PointPair,
    direction: np.ndarray,
    upper: float,
    restarts: int,
    history: list[Progress],
    begin: float,
) -> Result:
    """Prove the value of the best direction, in the features that came in."""
    direction = direction / np.linalg.norm(direction)
    # A direction and its negative are the same; show the one whose largest entry is positive.
    if direction[np.abs(direction).argmax()] < 0.0:
        direction = -direction
    X, Y = pair.costs.X, pair.costs.Y
    x, y = X @ direction, Y @ direction
    arcs = line_arcs(x, y, pair.a, pair.b)
    value = line_cost(x, y, arcs)
    # The sorted plan is optimal, so that its cost is the bound but for rounding: of the sum, and of
    # the projections, which moves either side by no more than this (the triangle inequality).
    moved = (len(direction) + 8.0) * UNIT * float(max(np.abs(X).max(), np.abs(Y).max()))
    moved *= 2.0 * float(np.abs(direction).sum())
    root = np.sqrt(value * (1.0 - (len(arcs[0]) + 24.0) * UNIT))
    lower = max(float(root) - moved, 0.0) ** 2
    plan = round_plan(Plan.from_arcs(*arcs, (len(x), len(y))), pair.a, pair.b)
    solver = f"max_sliced(restarts={restarts})"
    refuse_contradiction(lower, upper, solver)
    each = Points.of(pair.X, pair.Y, Groups.each(len(direction)))
    closed = upper - lower <= AGREE * upper
    return Result(
        value=value,
        lower=lower,
        upper=upper,
        status=Status.CONVERGED if closed else Status.LOWER_BOUND,
        alpha=direction**2 / (direction @ direction),
        phi=each.inner(plan),
        plan=plan,
        potentials=line_potentials(x, y, arcs),
        mean_cost=pair.problem.mean_cost,
        names=pair.names,
        solver=solver,
        iterations=len(history),
        time=time.perf_counter() - begin,
        history=tuple(history),
        points=(pair.X, pair.Y),
        metric="sqeuclidean",
        adversary="one direction",
        tol=AGREE,
        chosen=Chosen("direction", direction, pair.names),
    ).at(pair.home)
