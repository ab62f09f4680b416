"""Sliced transport: along lines it is sorting; the mean over random ones, or the worst of all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from frot._base.errors import InputError, brief
from frot._base.spelling import second_names
from frot._base.stopping import StoppingLimits, check_limits
from frot._base.validate import check_count, check_seed
from frot.costs import FactoredCosts
from frot.costs.protocol import UNIT, blocks, summation
from frot.groups.groups import Groups
from frot.plans.feasible import round_plan
from frot.plans.line import line_arcs, line_cost, line_potential
from frot.plans.plan import Plan
from frot.problem.bounds import (
    cost_doubt,
    lower_bound,
    refuse_contradiction,
)
from frot.problem.problem import Problem
from frot.problem.result import Chosen, Progress, Result, Status
from frot.relatives._displacement import Displacements, reduce_points
from frot.relatives.pair import PointPair, check_pair, displacement_doubt, transport_at

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
        history=(Progress(count, seconds, lower, upper, pair.problem.gap(lower, upper)),),
        points=(pair.X, pair.Y),
        chosen=Chosen("weights", np.full(d, 1.0 / d), pair.names),
    ).at(pair.home)


def costs_along(
    X: np.ndarray, Y: np.ndarray, a: np.ndarray, b: np.ndarray, directions: np.ndarray
) -> np.ndarray:
    r"""Return the squared cost of transport along each direction, by sorting.

    :math:`\min_\Pi \sum_{ij} \pi_{ij} (w^\top x_i - w^\top y_j)^2` with w of length one; the
    `directions`, (k, d), may be of any length but zero.

    Examples
    --------
    >>> one = np.ones(1)
    >>> costs_along(np.zeros((1, 2)), np.array([[3.0, 4.0]]), one, one, np.array([[2.0, 0.0]]))
    array([9.])
    """
    unit = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    sides = zip(unit @ X.T, unit @ Y.T, strict=True)
    return np.array([line_cost(x, y, line_arcs(x, y, a, b)) for x, y in sides])


class Slice(NamedTuple):
    """Where the search stands: the parameters, the two projections, the plan and its cost."""

    at: np.ndarray
    x: np.ndarray
    y: np.ndarray
    arcs: tuple[np.ndarray, np.ndarray, np.ndarray]
    cost: float


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

    The problem is not convex. Each search goes uphill by sorting along w and taking the leading
    eigenvector of the plan's displacements, as long as that improves, from the directions of
    plain transport, of the difference of means and from random ones; every value found is a lower
    bound of the maximum, and `status` says so. The upper bound is the largest eigenvalue of
    :math:`V_\Pi` at the best plan known, which bounds even :math:`\mathrm{SRW}_1^2`.

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
    tries, seed = check_count(restarts, "restarts"), check_seed(random_state, "random_state")
    limits = check_limits(tol, max_iter, time_limit)
    begin = time.perf_counter()
    x, y, turned = reduce_points(pair.costs.X, pair.costs.Y)
    at = Displacements(x, y, pair.a, pair.b)
    plain = transport_at(pair.problem)
    upper, leading = _highest(pair, at, plain.plan)
    rng = np.random.default_rng(seed)
    means = pair.a @ x - pair.b @ y
    starts = [leading, means, *rng.normal(size=(tries, x.shape[1]))]
    climbs = (_climb(at, start, limits) for start in starts if np.linalg.norm(start) > 0.0)
    best, history = _best_of(climbs, limits, begin, upper)
    plan = Plan.from_arcs(*best.arcs, (len(x), len(y)))
    upper = min(upper, _highest(pair, at, plan)[0])
    direction = best.at if turned is None else turned @ best.at
    direction = direction / np.linalg.norm(direction)
    # A direction and its negative are the same; show the one whose largest entry is positive.
    direction = direction * (1.0 if direction[np.abs(direction).argmax()] >= 0.0 else -1.0)
    sides = pair.X @ direction, pair.Y @ direction
    chosen = Chosen("direction", direction, pair.names)
    name = f"max_sliced(restarts={tries})"
    return _finish(pair, sides, chosen, direction**2, upper, name, history, begin)


@second_names
def generalised_max_sliced(
    X: Any,
    Y: Any,
    defining_function: str | Callable[[np.ndarray, np.ndarray], np.ndarray] = "cubic",
    *,
    parameters: int | None = None,
    a: Any = None,
    b: Any = None,
    normalise_weights: bool = False,
    restarts: int = 5,
    random_state: int = 0,
    tol: float = 1e-6,
    max_iter: int = 100,
    time_limit: float | None = None,
) -> Result:
    r"""Generalised max-sliced transport (Kolouri et al. 2019): along the worst curve.

    .. math::
        \max_{\|\theta\|_2 = 1} \; \min_{\Pi \in U(a, b)}
        \sum_{ij} \pi_{ij} \big( g(x_i, \theta) - g(y_j, \theta) \big)^2

    Not convex: a lower bound with restarts, and `status` says so. With "linear" it is
    `max_sliced`. A function of the user's is maximised by finite differences, so it need not have a
    derivative; no upper bound is known, and ``upper`` is infinite.

    Parameters
    ----------
    X, Y, a, b, normalise_weights :
        As in `solve`.
    defining_function : {"linear", "circular", "cubic"} or callable
        g: :math:`\theta^\top x`; :math:`\|x - \theta\|_2`; :math:`\sum_k \theta_k x_k^3`; or
        ``g(points, theta)`` that returns one number per point.
    parameters : int, optional
        Length of theta; the number of features if left out.
    restarts, random_state, tol, max_iter, time_limit :
        As in `max_sliced`.

    Returns
    -------
    Result
        ``chosen.array`` is theta; ``alpha`` are its squares.

    Examples
    --------
    >>> import frot
    >>> res = frot.generalised_max_sliced([[0.0, 0.0]], [[1.0, 2.0]], "cubic")
    >>> round(res.value, 4), res.status
    (65.0, Status.LOWER_BOUND)
    """
    pair = check_pair(X, Y, a, b, normalise_weights)
    project = _defining(defining_function)
    size = pair.X.shape[1] if parameters is None else check_count(parameters, "parameters")
    tries, seed = check_count(restarts, "restarts"), check_seed(random_state, "random_state")
    limits = check_limits(tol, max_iter, time_limit)
    rng = np.random.default_rng(seed)
    begin = time.perf_counter()
    starts = [np.ones(size), *rng.normal(size=(tries, size))]
    climbs = (_ascend(pair, project, start, limits) for start in starts)
    best, history = _best_of(climbs, limits, begin, np.inf)
    names = pair.names if size == len(pair.names) else ()
    chosen = Chosen("direction", best.at, names)
    label = getattr(defining_function, "__name__", defining_function)
    name = f"generalised_max_sliced({label}, restarts={tries})"
    return _finish(pair, (best.x, best.y), chosen, best.at**2, np.inf, name, history, begin)


def _highest(pair: PointPair, at: Displacements, plan: Plan) -> tuple[float, np.ndarray]:
    """Return a bound on the largest eigenvalue of a plan's displacements, and its vector."""
    plan = round_plan(plan, pair.a, pair.b)
    values, vectors, doubt = at.top(plan, 1)
    bound = float(values[-1]) + doubt
    if not np.isfinite(bound):
        bound = at.proven(plan, values, vectors, 1, 1e-3 * float(values[-1]))
    return bound + displacement_doubt(pair.problem, plan, at.features), vectors[:, -1]


def _slice(at: np.ndarray, x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> Slice:
    arcs = line_arcs(x, y, a, b)
    return Slice(at, x, y, arcs, line_cost(x, y, arcs))


def _best_of(
    climbs: Iterable[Iterator[Slice]], limits: StoppingLimits, begin: float, upper: float
) -> tuple[Slice, list[Progress]]:
    """Climb from every start until the time is up; return where it was highest, and the way."""
    best: Slice | None = None
    history: list[Progress] = []
    for found in chain.from_iterable(climbs):
        best = found if best is None or found.cost > best.cost else best
        elapsed = time.perf_counter() - begin
        gap = 0.0 if upper <= best.cost else 1.0 - best.cost / upper
        history.append(Progress(len(history) + 1, elapsed, best.cost, upper, gap))
        if limits.time_limit is not None and elapsed >= limits.time_limit:
            break
    assert best is not None
    return best, history


def _climb(at: Displacements, start: np.ndarray, limits: StoppingLimits) -> Iterator[Slice]:
    """Sort along w, move w towards the displacements' leading eigenvector, as far as it helps.

    For a fixed plan the cost is w^T V w, and the true cost is the least over plans: V w is a
    direction of ascent of the second, and the step is halved until it does ascend.
    """
    start = start / np.linalg.norm(start)
    now = _slice(start, at.X @ start, at.Y @ start, at.a, at.b)
    yield now
    longest = 4.0
    for _ in range(limits.max_iter):
        rows, cols, mass = now.arcs
        pull = np.bincount(rows, mass * (now.x[rows] - now.y[cols]), len(at.X)) @ at.X
        pull -= np.bincount(cols, mass * (now.x[rows] - now.y[cols]), len(at.Y)) @ at.Y
        norm = float(np.linalg.norm(pull))
        if norm == 0.0:
            return
        # The power method's step first; shorter ones where the plan changes on the way.
        step = pull / norm - now.at
        for length in longest * 0.5 ** np.arange(14):
            w = now.at + length * step
            w = w / np.linalg.norm(w)
            new = _slice(w, at.X @ w, at.Y @ w, at.a, at.b)
            if new.cost > now.cost:
                # Steps are seldom much longer than the last one was.
                longest = min(2.0 * length, 4.0)
                break
        else:
            return
        gained = new.cost - now.cost
        now = new
        yield now
        if gained <= limits.tol * now.cost:
            return


def _ascend(
    pair: PointPair, project: Callable[..., np.ndarray], theta: np.ndarray, limits: StoppingLimits
) -> Iterator[Slice]:
    """Gradient ascent on the sphere by central differences, the plan held fixed within a step."""

    def look(at: np.ndarray) -> Slice:
        return _slice(at, project(pair.X, at), project(pair.Y, at), pair.a, pair.b)

    now = look(theta / np.linalg.norm(theta))
    yield now
    length = 1.0
    for _ in range(limits.max_iter):
        gradient = np.empty(len(theta))
        for index in range(len(theta)):
            probe = np.zeros(len(theta))
            probe[index] = 1e-6
            sides = (
                line_cost(project(pair.X, at), project(pair.Y, at), now.arcs)
                for at in (now.at + probe, now.at - probe)
            )
            gradient[index] = next(sides) - next(sides)
        gradient -= (gradient @ now.at) * now.at
        norm = float(np.linalg.norm(gradient))
        if not norm > 0.0:
            return
        new = now
        for _ in range(30):
            at = now.at + length * gradient / norm
            new = look(at / np.linalg.norm(at))
            if new.cost > now.cost:
                break
            length *= 0.5
        if not new.cost > now.cost:
            return
        gained, now, length = new.cost - now.cost, new, min(2.0 * length, 1.0)
        yield now
        if gained <= limits.tol * now.cost:
            return


def _defining(function: Any) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return g with its output checked; a name stands for one of Kolouri's."""
    known: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
        "linear": lambda points, theta: points @ theta,
        "circular": lambda points, theta: np.linalg.norm(points - theta, axis=1),
        "cubic": lambda points, theta: points**3 @ theta,
    }
    if isinstance(function, str) and function in known:
        return known[function]
    if not callable(function):
        raise InputError(
            f"defining_function: {brief(function)} is neither a callable g(points, theta) nor one "
            f"of {', '.join(map(repr, known))}"
        )

    def checked(points: np.ndarray, theta: np.ndarray) -> np.ndarray:
        try:
            values = np.asarray(function(points, theta), dtype=float)
        except Exception as error:
            raise InputError(f"defining_function: could not be computed ({error!r})") from error
        if values.shape != (len(points),) or not np.isfinite(values).all():
            raise InputError(
                f"defining_function: must return one finite number per point ({len(points)},), got "
                f"shape {values.shape}"
            )
        return values

    return checked


def _finish(
    pair: PointPair,
    sides: tuple[np.ndarray, np.ndarray],
    chosen: Chosen,
    shares: np.ndarray,
    upper: float,
    solver: str,
    history: list[Progress],
    begin: float,
) -> Result:
    """Certify the best slice as a lower bound: its plan, and the potentials that prove it."""
    x, y = sides
    line = FactoredCosts.of(x[:, None], y[:, None], Groups.parse("all", 1, None))
    problem = Problem(line, pair.a, pair.b)
    arcs = line_arcs(x, y, pair.a, pair.b)
    plan = round_plan(Plan.from_arcs(*arcs, (len(x), len(y))), pair.a, pair.b)
    value = float(line.inner(plan)[0])
    found = lower_bound(problem, np.ones(1), line_potential(x, y, arcs))
    # A direction is of length one up to rounding.
    lower = found.bound - (len(shares) + 8.0) * UNIT * abs(found.bound)
    refuse_contradiction(lower, upper, solver)
    each = FactoredCosts.of(pair.X, pair.Y, Groups.each(pair.X.shape[1]))
    phi = each.inner(plan) if len(shares) == pair.X.shape[1] else np.full(len(shares), value)
    # Where even the relaxed maximum is no more than this, the search has found the truth.
    closed = np.isfinite(upper) and upper - lower <= max(
        1e-9 * upper, 4.0 * summation(plan) * upper
    )
    return Result(
        value=value,
        lower=lower,
        upper=upper,
        status=Status.CONVERGED if closed else Status.LOWER_BOUND,
        alpha=shares / shares.sum(),
        phi=phi,
        plan=plan,
        potentials=(found.f, found.g),
        mean_cost=pair.problem.mean_cost,
        names=chosen.names or tuple(f"parameter {index}" for index in range(len(shares))),
        solver=solver,
        iterations=len(history),
        time=time.perf_counter() - begin,
        history=tuple(history),
        points=(pair.X, pair.Y),
        chosen=chosen,
    ).at(pair.home)
