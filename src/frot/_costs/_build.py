"""The right kind of costs for points, groups and a metric, chosen by flops and bytes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from frot._costs._factored import FactoredCosts
from frot._costs._metric import MetricCosts
from frot._costs._protocol import Costs
from frot._costs._separable import SeparableCosts
from frot._costs._stacked import StackedCosts
from frot._groups import Groups

__all__ = ["MEMORY_BUDGET", "build_costs", "is_squared"]

# A stack may take this much; beyond it costs are recomputed.
MEMORY_BUDGET = 2_000_000_000

# A stack reads 8 bytes per group and entry, a factored mix does 2 d_l flops: they tie where
# memory bandwidth and BLAS tie, at about this many features per group.
STACK_PAYS_FROM = 13

# On one feature all of these are |x - y|.
ONE_FEATURE_ABSOLUTE = frozenset({"cityblock", "euclidean", "chebyshev", "minkowski"})


def is_squared(metric: object, p: float) -> bool:
    """Whether d(x, y)^p is the squared Euclidean distance, under either name.

    Examples
    --------
    >>> is_squared("euclidean", 2.0), is_squared("euclidean", 1.0)
    (True, False)
    """
    return (metric == "sqeuclidean" and p == 1.0) or (metric == "euclidean" and p == 2.0)


def build_costs(
    X: np.ndarray,
    Y: np.ndarray,
    groups: Groups,
    metric: str | Callable[[np.ndarray, np.ndarray], float] = "sqeuclidean",
    p: float = 1.0,
    memory_budget: float = MEMORY_BUDGET,
) -> Costs:
    """Choose and build the costs d(x, y)^p of every group.

    Squared Euclidean and cosine are factored, unless groups are so wide that a stack is cheaper
    and fits `memory_budget` bytes. |x - y|^p with one feature a group is one Minkowski distance.
    Everything else is a stack where it fits, and recomputed in chunks where it does not.

    Examples
    --------
    >>> X, Y = np.zeros((2, 3)), np.ones((4, 3))
    >>> type(build_costs(X, Y, Groups.each(3))).__name__
    'FactoredCosts'
    >>> type(build_costs(X, Y, Groups.each(3), metric="cityblock")).__name__
    'SeparableCosts'
    >>> type(build_costs(X, Y, Groups.all(3), metric="cityblock")).__name__
    'StackedCosts'
    """
    count, n, m = len(groups), len(X), len(Y)
    fits = 8 * count * n * m <= memory_budget
    squared = is_squared(metric, p)
    if squared or (metric == "cosine" and p == 1.0):
        make = FactoredCosts.squared_euclidean if squared else FactoredCosts.cosine
        wide = len(groups.flat) > STACK_PAYS_FROM * count
        # A handful of mixes never repays building a stack of a single group.
        if wide and fits and count > 1:
            return _stack_of(make(X, Y, groups))
        return make(X, Y, groups)
    one_each = len(groups.flat) == count
    if one_each and isinstance(metric, str) and metric in ONE_FEATURE_ABSOLUTE:
        return SeparableCosts(X[:, groups.flat], Y[:, groups.flat], p)
    chunked = MetricCosts(X, Y, groups, metric, p)
    if fits:
        return StackedCosts(np.stack([chunked.block(group) for group in range(count)]))
    return chunked


def _stack_of(costs: Costs) -> StackedCosts:
    """Form the stack, one group's matrix at a time."""
    stack, error = np.empty(costs.shape), np.empty(costs.shape[0])
    for group in range(len(stack)):
        alone = np.eye(1, len(stack), group)[0]
        stack[group] = costs.mix(alone)
        off = costs.rounding(alone).absolute
        # Entries that rounding alone could have made are zero: points there are the same.
        stack[group][stack[group] <= off] = 0.0
        error[group] = 2.0 * off
    return StackedCosts(stack, error)
