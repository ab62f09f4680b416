"""Max-min feature-robust transport: the group whose own transport costs most."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from frot._bounds import relative_gap
from frot._chosen import Chosen
from frot._costs import MEMORY_BUDGET, build_costs
from frot._groups import Groups
from frot._plan import Plan
from frot._prepare import check_terms, make_problem
from frot._problem import Problem
from frot._relatives._pair import check_pair, transport_at
from frot._result import Progress, Result
from frot._solvers._drive import NOTHING
from frot._status import Status
from frot._validate import check_metric, check_number

__all__ = ["max_min"]


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
    bound: those that cannot win are not solved.

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
    metric, p = check_metric(metric), check_number(p, "p", strict=True)
    seconds = None if time_limit is None else check_number(time_limit, "time_limit", strict=True)
    shape = (len(parsed), len(pair.X), len(pair.Y))
    terms = check_terms(shape, pair.a, pair.b, 0.0, 0.0, None, "none", False)
    begin = time.perf_counter()
    problem = make_problem(
        lambda: build_costs(pair.X, pair.Y, parsed, metric, p, MEMORY_BUDGET), terms, parsed.names
    ).having(points=(pair.X, pair.Y), groups=parsed)
    return _search(problem, begin, seconds).at(pair.home)


def _search(problem: Problem, begin: float, time_limit: float | None) -> Result:
    """Solve group by group, the most promising first, until no other can win."""
    count = problem.shape[0]
    # Any plan's cost in a group bounds that group's own transport from above.
    above = problem.independent + problem.costs.doubt(problem.independent, _product(problem))
    lowers, uppers = np.full(count, -np.inf), above.copy()
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
        found = transport_at(problem, alpha)
        phi = problem.costs.inner(found.plan)
        np.minimum(uppers, phi + problem.costs.doubt(phi, found.plan), out=uppers)
        lowers[group] = min(found.lower.bound, uppers[group])
        if best is None or phi[group] > best[0]:
            best = (float(phi[group]), alpha, phi, found)
        lower, upper = float(lowers.max()), float(uppers.max())
        gap = relative_gap(lower, upper)
        history.append(Progress(len(history) + 1, time.perf_counter() - begin, lower, upper, gap))
    value, alpha, phi, found = best
    lower, upper = float(lowers.max()), float(uppers.max())
    if status is Status.CONVERGED and relative_gap(lower, upper) > 1e-9:
        zero = upper - lower <= NOTHING * problem.typical_cost
        status = Status.CONVERGED if zero else Status.PRECISION
    return Result(
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


def _product(problem: Problem) -> Plan:
    return Plan(np.outer(problem.a, problem.b))
