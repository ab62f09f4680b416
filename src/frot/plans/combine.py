"""Plans made of others: weighted sums, and a plan among more points than it has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from frot.plans.lazy import LazyPlan, combine_lazy
from frot.plans.plan import Plan, is_sparse


def combine_plans(plans: Sequence[Plan], weights: Sequence[float] | np.ndarray) -> Plan:
    """Return the weighted sum of plans: lazy or sparse if all are, dense otherwise.

    Examples
    --------
    >>> plans = [Plan.from_arcs([0], [col], [1.0], (1, 2)) for col in (0, 1)]
    >>> combine_plans(plans, [0.25, 0.75]).arcs()[2]
    array([0.25, 0.75])
    """
    used = [(plan, float(w)) for plan, w in zip(plans, weights, strict=True) if w != 0.0]
    if not used:
        raise ValueError("combine_plans needs at least one plan of non-zero weight")
    shape = used[0][0].shape
    lazy = [(plan, w) for plan, w in used if isinstance(plan, LazyPlan)]
    if len(lazy) == len(used):
        return combine_lazy(lazy)
    if all(is_sparse(plan) for plan, _ in used):
        parts = [(*plan._host_arcs(), w) for plan, w in used]
        rows, cols = (np.concatenate([part[end] for part in parts]) for end in (0, 1))
        mass = np.concatenate([w * mass for _, _, mass, w in parts])
        return Plan.from_arcs(rows, cols, mass, shape)
    total = np.zeros(shape)
    for plan, w in used:
        total += w * np.asarray(plan)
    return Plan(total, copy=False)


def expand_plan(plan: Plan, rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int]) -> Plan:
    """Place a plan's rows and columns at the given indices of a larger plan of zeros.

    Examples
    --------
    >>> np.asarray(expand_plan(Plan([[1.0]]), np.array([1]), np.array([0]), (2, 2)))
    array([[0., 0.],
           [1., 0.]])
    """
    if is_sparse(plan):
        i, j, mass = plan._host_arcs()
        return Plan.from_arcs(rows[i], cols[j], mass, shape)
    full = np.zeros(shape)
    full[np.ix_(rows, cols)] = np.asarray(plan)
    return Plan(full, copy=False)
