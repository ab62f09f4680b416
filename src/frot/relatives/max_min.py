"""Max-min feature-robust transport: the group whose own transport costs most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from frot._base.arrays import UNIT
from frot._base.validate import check_metric, check_number, metric_name, second_names
from frot.api.solve import make_problem
from frot.costs import MEMORY_BUDGET, METRICS, build_costs
from frot.costs.build import factored_metric
from frot.groups.groups import Groups
from frot.plans.feasible import round_plan
from frot.plans.line import line_arcs, line_cost, line_potentials
from frot.plans.plan import Arcs, Plan
from frot.problem.bounds import Lower, Upper, cost_doubt
from frot.problem.options import check_problem
from frot.problem.problem import Problem
from frot.problem.result import Chosen, Result, handed_out
from frot.relatives.pair import ProvenPlan, check_pair, transport_at
from frot.solvers.drive import Offer, drive
from frot.solvers.weightless import on_support


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
    count = len(parsed)
    checked = check_problem((count, len(pair.X), len(pair.Y)), pair.a, pair.b)
    problem = make_problem(
        lambda: build_costs(pair.X, pair.Y, parsed, metric, p, MEMORY_BUDGET), checked, parsed.names
    ).having(points=(pair.X, pair.Y), groups=parsed)
    squared = factored_metric(metric, p) is METRICS["sqeuclidean"]

    def search(small: Problem, rows: np.ndarray, cols: np.ndarray) -> Result:
        return drive(
            _offers(small, squared),
            small,
            solver=f"max_min({count} groups)",
            # Exact but for rounding.
            tol=1e-9,
            max_iter=count,
            time_limit=seconds,
        )

    result = on_support(problem, search)
    chosen = Chosen("weights", result.alpha, result.names)
    said = {"metric": metric_name(metric), "p": p, "adversary": "one group, before the plan"}
    return handed_out(replace(result, chosen=chosen, **said).at(pair.home))


def _offers(problem: Problem, squared: bool) -> Iterator[Offer]:
    """Transport in one group after the other, the one with the largest upper bound first.

    Any plan's cost in a group bounds that group's own transport from above.
    """
    product, means = Plan(np.outer(problem.a, problem.b), copy=False), problem.independent
    uppers = means + cost_doubt(problem, product, means)
    single = _single(problem, squared)
    for group, feature in single.items():
        uppers[group] = min(uppers[group], _sort(problem, feature).upper)
    unsolved, value = np.ones(problem.shape[0], dtype=bool), -np.inf
    best, best_phi = product, means
    while unsolved.any():
        group = int(np.where(unsolved, uppers, -np.inf).argmax())
        unsolved[group] = False
        plan, lower = _transport(problem, group, single)
        phi = problem.costs.inner(plan)
        uppers = np.minimum(uppers, phi + cost_doubt(problem, plan, phi))
        if phi[group] > value:
            value, best, best_phi = float(phi[group]), plan, phi
        yield Offer(Upper(float(uppers.max()), value, best, best_phi), lower)


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
