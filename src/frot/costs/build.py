"""The right kind of costs for points, groups and a metric, chosen by flops and bytes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from frot._base.stopping import seconds_left
from frot.costs._factored import FactoredCosts
from frot.costs._forbidden import ForbiddenCosts
from frot.costs._metric import MetricCosts
from frot.costs._separable import SeparableCosts
from frot.costs._stacked import StackedCosts
from frot.costs.protocol import UNIT, Costs
from frot.groups.groups import Groups

__all__ = ["MEMORY_BUDGET", "build_costs", "given_costs", "is_squared"]

# A stack may take this much; beyond it costs are recomputed.
MEMORY_BUDGET = 2_000_000_000

# A stack reads 8 bytes per group and entry, a factored mix does 2 d_l flops: they tie where
# memory bandwidth and BLAS tie, at about this many features per group.
STACK_PAYS_FROM = 13

# Up to so many differences of features costs are summed from them, which loses no digit of a small
# one, and stacked: a few hundred microseconds.
DIFFERENCES_UP_TO = 300_000

# Seconds an entry of a stack takes, roughly: whoever has no time for it gets along without.
STACK_SECONDS = 2e-8

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
    weights: tuple[np.ndarray, np.ndarray] | None = None,
) -> Costs:
    """Choose and build the costs d(x, y)^p of every group.

    Squared Euclidean costs of few points are stacked, from differences. Of more points they and
    cosine costs are factored, unless groups are so wide that a stack is cheaper and fits
    `memory_budget` bytes. |x - y|^p with one feature a group is one Minkowski distance. Everything
    else is a stack where it fits, and recomputed in chunks where it does not. `weights` a and b say
    where the points' centre is.

    Examples
    --------
    >>> X, Y = np.zeros((2, 3)), np.ones((4, 3))
    >>> type(build_costs(X, Y, Groups.each(3))).__name__
    'StackedCosts'
    >>> type(build_costs(X, Y, Groups.each(3), metric="cityblock")).__name__
    'SeparableCosts'
    >>> type(build_costs(X, Y, Groups.all(3), metric="cityblock")).__name__
    'StackedCosts'
    """
    count, n, m = len(groups), len(X), len(Y)
    fits = 8 * count * n * m <= memory_budget
    in_time = STACK_SECONDS * count * n * m <= 0.2 * seconds_left()
    squared = is_squared(metric, p)
    if squared and len(groups.flat) == 1:
        return SeparableCosts(X[:, groups.flat], Y[:, groups.flat], 2.0)
    if squared and n * m * max(len(groups.flat), count) <= DIFFERENCES_UP_TO and fits:
        return _from_differences(X, Y, groups)
    if squared or (metric == "cosine" and p == 1.0):
        factored = (
            FactoredCosts.squared_euclidean(X, Y, groups, weights)
            if squared
            else FactoredCosts.cosine(X, Y, groups)
        )
        wide = len(groups.flat) > STACK_PAYS_FROM * count
        # A handful of mixes never repays building a stack of a single group.
        return _stack_of(factored) if wide and fits and in_time and count > 1 else factored
    one_each = len(groups.flat) == count
    if one_each and isinstance(metric, str) and metric in ONE_FEATURE_ABSOLUTE:
        return SeparableCosts(X[:, groups.flat], Y[:, groups.flat], p)
    chunked = MetricCosts(X, Y, groups, metric, p)
    if fits and in_time:
        return given_costs(np.stack([chunked.block(group) for group in range(count)]))
    return chunked


def given_costs(stack: np.ndarray) -> Costs:
    """Costs given as a stack of shape (L, n, m); arcs that are infinite somewhere are forbidden.

    Examples
    --------
    >>> given_costs(np.array([[[0.0, np.inf]]])).forbidden
    array([[False,  True]])
    """
    finite = np.isfinite(stack).all() or np.isnan(stack).any()
    return StackedCosts(stack) if finite else ForbiddenCosts.of_stack(stack)


def _from_differences(X: np.ndarray, Y: np.ndarray, groups: Groups) -> StackedCosts:
    """Stack squared distances summed from differences: right to a few units of themselves."""
    gaps = X.T[groups.flat, :, None] - Y.T[groups.flat, None, :]
    gaps *= gaps
    edges = groups.offsets.tolist()
    # A difference errs by half a unit, its square by one and a half, the sum by one a feature.
    relative = 0.5 * (max(end - start for start, end in pairwise(edges)) + 4.0) * UNIT
    if len(gaps) == len(groups):
        return StackedCosts(gaps, relative=relative)
    stack = np.empty((len(groups), len(X), len(Y)))
    for group, (start, end) in enumerate(pairwise(edges)):
        np.add.reduce(gaps[start:end], axis=0, out=stack[group])
    return StackedCosts(stack, relative=relative)


def _stack_of(costs: Costs) -> StackedCosts:
    """Form the stack, one group's matrix at a time."""
    count, n, m = costs.shape
    stack, rows, cols = np.empty(costs.shape), np.empty((count, n)), np.empty((count, m))
    for group in range(count):
        alone = np.eye(1, count, group)[0]
        stack[group] = costs.mix(alone)
        off = costs.rounding(alone)
        # Entries that rounding alone could have made are zero: points there are the same.
        stack[group][stack[group] <= np.add.outer(off.rows, off.cols)] = 0.0
        rows[group], cols[group] = 2.0 * off.rows, 2.0 * off.cols
    return StackedCosts(stack, (rows, cols))
