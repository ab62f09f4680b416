"""Max-min feature-robust transport: the group whose own transport costs most."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from frot._base.spelling import second_names
from frot._base.validate import check_metric, check_number
from frot.api.run import make_problem, on_support
from frot.costs import MEMORY_BUDGET, METRICS, build_costs
from frot.costs.metrics import factored_metric
from frot.costs.protocol import UNIT
from frot.groups.groups import Groups
from frot.plans.feasible import round_plan
from frot.plans.line import line_arcs, line_cost, line_potentials
from frot.plans.plan import Arcs, Plan
from frot.problem.bounds import Lower, cost_doubt, refuse_contradiction
from frot.problem.problem import Problem
from frot.problem.result import Chosen, Progress, Result, Status
from frot.problem.terms import check_terms
from frot.relatives.pair import ProvenPlan, check_pair, transport_at
from frot.solvers.drive import warn_unfinished

# Relative width of the interval up to which a result is exact but for rounding.
TOL = 1e-9


@second_names
def max_min(
    X: Any,
    Y: Any,
    groups: Any = None,
    *,
    a: Any = None,
    b: Any = None,
    normalise_weights: bool = False,
    metric: Any = "sqeuclidean",
    p: float = 1.0,
    time_limit: float | None = None,
) -> Result:
    r"""Max-min transport (the paper's appendix): one group is chosen, then mass is moved.

    .. math::
        \max_{l} \; \min_{\Pi \in U(a, b)} \langle \Pi, C_l \rangle
        \;\le\; \min_{\Pi \in U(a, b)} \max_{l} \; \langle \Pi, C_l \rangle

    The adversary has to pick a single group, before it sees the plan, so this never exceeds
    `solve`; over all *mixed* costs the two are equal, since the problem is then convex-concave.
    Every plan that was found is an upper bound for every group, and groups that cannot win by
    theirs are not solved. Groups of one feature under squared distances are transported by sorting.

    Parameters
    ----------
    X, Y, groups, a, b, normalise_weights, metric, p :
        As in `solve`.
    time_limit : float, optional
        Seconds; groups not reached by then widen the interval.

    Returns
    -------
    Result
        ``alpha`` is one-hot, ``plan`` the chosen group's, ``phi`` its cost in each group.

    Examples
    --------
    >>> import frot
    >>> res = frot.max_min([[0.0, 0.0]], [[1.0, 2.0]], groups="each")
    >>> res.value, res.alpha
    (4.0, array([0., 1.]))
    """
    pair = check_pair(X, Y, a, b, normalise_weights)
    parsed = Groups.parse(groups, pair.X.shape[1], pair.columns)
    metric, p = check_metric(metric, METRICS), check_number(p, "p", strict=True)
    seconds = None if time_limit is None else check_number(time_limit, "time_limit", strict=True)
    terms = check_terms((len(parsed), len(pair.X), len(pair.Y)), pair.a, pair.b)
    begin = time.perf_counter()
    problem = make_problem(
        lambda: build_costs(pair.X, pair.Y, parsed, metric, p, MEMORY_BUDGET), terms, parsed.names
    ).having(points=(pair.X, pair.Y), groups=parsed)
    squared = factored_metric(metric, p) is METRICS["sqeuclidean"]
    found = on_support(problem, lambda small, *_: _search(small, squared, begin, seconds))
    return found.at(pair.home)


def _single(problem: Problem, squared: bool) -> dict[int, int]:
    """Return the groups of one feature under squared distances, and that feature."""
    assert problem.groups is not None
    parts = enumerate(problem.groups.indices)
    return {group: int(part[0]) for group, part in parts if squared and len(part) == 1}


class Sorted(NamedTuple):
    """The optimal plan in one feature, and bounds of its cost from below and above."""

    x: np.ndarray
    y: np.ndarray
    arcs: Arcs
    lower: float
    upper: float


def _sort(problem: Problem, feature: int) -> Sorted:
    assert problem.points is not None
    x, y = (points[:, feature] for points in problem.points)
    arcs = line_arcs(x, y, problem.a, problem.b)
    # A sum of positive terms, each right to some units in its last place.
    cost, error = line_cost(x, y, arcs), (len(arcs[0]) + 24.0) * UNIT
    return Sorted(x, y, arcs, cost * (1.0 - error), cost * (1.0 + error))


def _transport(problem: Problem, group: int, single: dict[int, int]) -> ProvenPlan:
    """Transport exactly in one group: by sorting where that is one feature."""
    alpha = np.zeros(problem.shape[0])
    alpha[group] = 1.0
    if group not in single:
        return transport_at(problem, alpha)
    line = _sort(problem, single[group])
    plan = round_plan(Plan.from_arcs(*line.arcs, problem.shape[1:]), problem.a, problem.b)
    potentials = line_potentials(line.x, line.y, line.arcs)
    return ProvenPlan(plan, Lower(line.lower, alpha, *potentials))


def _search(problem: Problem, squared: bool, begin: float, time_limit: float | None) -> Result:
    """Solve group by group, the one with the largest upper bound first, until no other can win."""
    count = problem.shape[0]
    product = Plan(np.outer(problem.a, problem.b), copy=False)
    means = problem.independent
    uppers = means + cost_doubt(problem, product, means)
    single = _single(problem, squared)
    for group, feature in single.items():
        uppers[group] = min(uppers[group], _sort(problem, feature).upper)
    best: tuple[int, ProvenPlan, np.ndarray] | None = None
    lower, history, status = -np.inf, [], Status.CONVERGED
    unsolved = np.ones(count, dtype=bool)
    while best is None or uppers[unsolved].max(initial=-np.inf) > lower:
        elapsed = time.perf_counter() - begin
        if best is not None and time_limit is not None and elapsed >= time_limit:
            status = Status.TIME_LIMIT
            break
        group = int(np.where(unsolved, uppers, -np.inf).argmax())
        unsolved[group] = False
        found = _transport(problem, group, single)
        phi = problem.costs.inner(found.plan)
        # Any plan's cost in a group bounds that group's own transport from above.
        uppers = np.minimum(uppers, phi + cost_doubt(problem, found.plan, phi))
        lower = max(lower, found.lower.bound)
        if best is None or phi[group] > best[2][best[0]]:
            best = (group, found, phi)
        upper = float(uppers.max())
        gap = problem.gap(lower, upper)
        history.append(Progress(len(history) + 1, time.perf_counter() - begin, lower, upper, gap))
    group, found, phi = best
    upper = float(uppers.max())
    refuse_contradiction(lower, upper, "max_min")
    if problem.gap(lower, upper) <= TOL:
        status = Status.CONVERGED
    elif status is Status.CONVERGED:
        # All groups were solved: what is left is rounding.
        status = Status.STALLED
    alpha = np.zeros(count)
    alpha[group] = 1.0
    result = Result(
        value=float(phi[group]),
        lower=lower,
        upper=upper,
        status=status,
        alpha=alpha,
        phi=phi,
        plan=found.plan,
        potentials=(found.lower.f, found.lower.g),
        mean_cost=problem.mean_cost,
        names=problem.names,
        solver=f"max_min({count} groups)",
        iterations=len(history),
        time=time.perf_counter() - begin,
        history=tuple(history),
        points=problem.points,
        groups=problem.groups,
        chosen=Chosen("weights", alpha, problem.names),
    )
    if not status.ok:
        warn_unfinished(result, TOL)
    return result
