"""Max-min feature-robust transport: the group whose own transport costs most."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from frot._base.spelling import second_names
from frot._base.validate import check_metric, check_number
from frot.api.run import make_problem, on_support
from frot.costs import MEMORY_BUDGET, METRICS, build_costs
from frot.costs.metrics import factored_metric
from frot.costs.protocol import UNIT
from frot.groups.groups import Groups
from frot.plans.feasible import round_plan
from frot.plans.line import line_arcs, line_cost, line_potential, line_potentials
from frot.plans.plan import Arcs, Plan
from frot.problem.bounds import (
    UNDERFLOW,
    cost_doubt,
    lower_bound,
    refuse_contradiction,
    with_underflow,
)
from frot.problem.problem import Problem
from frot.problem.result import Chosen, Progress, Result, Status
from frot.problem.terms import check_terms
from frot.relatives.pair import ProvenPlan, check_pair, transport_at
from frot.solvers.drive import warn_unfinished

# Relative width of the interval above which a result is not called exact.
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
    Groups are tried by the cost of a plan that is good for the best one so far, which is an upper
    bound: those that cannot win are not solved. Groups of one feature under squared distances are
    transported by sorting.

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
    shape = (len(parsed), len(pair.X), len(pair.Y))
    terms = check_terms(shape, pair.a, pair.b)
    begin = time.perf_counter()
    problem = make_problem(
        lambda: build_costs(pair.X, pair.Y, parsed, metric, p, MEMORY_BUDGET), terms, parsed.names
    ).having(points=(pair.X, pair.Y), groups=parsed)
    squared = factored_metric(metric, p) is METRICS["sqeuclidean"]
    # The groups of one feature, and that feature.
    lines = {at: flat for at, (_, flat) in enumerate(parsed) if squared and len(flat) == 1}
    found = on_support(problem, lambda small, *_: _search(small, lines, begin, seconds))
    return found.at(pair.home)


def _line_plan(problem: Problem, feature: np.ndarray) -> tuple[Plan, float]:
    """Return the best plan in one feature, and what its cost does not exceed."""
    assert problem.points is not None
    x, y = (points[:, feature[0]] for points in problem.points)
    arcs = line_arcs(x, y, problem.a, problem.b)
    plan = round_plan(Plan.from_arcs(*arcs, (len(x), len(y))), problem.a, problem.b)
    # All terms are positive, and each is right to some units in its last place.
    cost = line_cost(x, y, plan.arcs()) * (1.0 + (plan.count + 8.0) * UNIT)
    return plan, cost + _line_underflow(x, y, plan.arcs())


def _line_underflow(x: np.ndarray, y: np.ndarray, arcs: Arcs) -> float:
    """Return what squares and products below the smallest normal number may be off by in all."""
    rows, cols, mass = arcs
    return (2.0 * len(mass) + 8.0) * UNDERFLOW if (x[rows] != y[cols]).any() else 0.0


def _transport(problem: Problem, alpha: np.ndarray, feature: np.ndarray | None) -> ProvenPlan:
    """Transport exactly in one group: by sorting where that is one feature."""
    if feature is None:
        return transport_at(problem, alpha)
    assert problem.points is not None
    x, y = (points[:, feature[0]] for points in problem.points)
    plan, _ = _line_plan(problem, feature)
    # Ties and points without mass: sorting again gives the arcs in the order of the line.
    arcs = line_arcs(x, y, problem.a, problem.b)
    proven = lower_bound(problem, alpha, line_potential(x, y, arcs), problem.costs.mix(alpha))
    # That sorting is best needs no potentials, whose sums cancel where points nearly agree.
    cost = line_cost(x, y, arcs) * (1.0 - (0.5 * len(arcs[0]) + 24.0) * UNIT)
    cost = max(cost - _line_underflow(x, y, arcs), 0.0)
    if cost > proven.bound:
        f, g = line_potentials(x, y, arcs)
        proven = replace(proven, bound=cost, f=f, g=g)
    return ProvenPlan(plan, proven)


def _search(
    problem: Problem, lines: dict[int, np.ndarray], begin: float, time_limit: float | None
) -> Result:
    """Solve group by group, the most promising first, until no other can win."""
    count = problem.shape[0]
    # Any plan's cost in a group bounds that group's own transport from above.
    product = Plan(np.outer(problem.a, problem.b), copy=False)
    means = problem.independent
    above = means + with_underflow(problem, product, means, problem.costs.doubt(means, product))
    lowers, uppers = np.full(count, -np.inf), above.copy()
    for group, feature in lines.items():
        uppers[group] = min(uppers[group], _line_plan(problem, feature)[1])
    best: Any = None
    history: list[Progress] = []
    status = Status.CONVERGED
    open_groups = set(range(count))
    while open_groups:
        group = max(open_groups, key=lambda index: uppers[index])
        if best is not None and uppers[group] <= lowers.max():
            break
        elapsed = time.perf_counter() - begin
        if best is not None and time_limit is not None and elapsed >= time_limit:
            status = Status.TIME_LIMIT
            break
        open_groups.discard(group)
        alpha = np.zeros(count)
        alpha[group] = 1.0
        found = _transport(problem, alpha, lines.get(group))
        phi = problem.costs.inner(found.plan)
        np.minimum(uppers, phi + cost_doubt(problem, found.plan, phi), out=uppers)
        lowers[group] = found.lower.bound
        if best is None or phi[group] > best[0]:
            best = (float(phi[group]), alpha, phi, found)
        lower, upper = float(lowers.max()), float(uppers.max())
        gap = problem.gap(lower, upper)
        history.append(Progress(len(history) + 1, time.perf_counter() - begin, lower, upper, gap))
    value, alpha, phi, found = best
    lower, upper = float(lowers.max()), float(uppers.max())
    refuse_contradiction(lower, upper, "max_min")
    if problem.gap(lower, upper) <= TOL:
        # A time limit may leave copies of a group that nothing more is to be known of.
        status = Status.CONVERGED
    elif status is Status.CONVERGED:
        status = Status.STALLED
    result = Result(
        value=value,
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
