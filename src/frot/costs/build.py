"""The right kind of costs for points, groups and a metric, chosen by flops and bytes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from frot._base.arrays import UNIT, Array, Home, to_numpy
from frot.costs.distances import ONE_FEATURE_ABSOLUTE, Distances, Powers
from frot.costs.metrics import METRICS, FactoredMetric, map_points
from frot.costs.points import Points, is_identity
from frot.costs.protocol import Costs
from frot.costs.stack import Stack, difference_stack, stack_of
from frot.groups.groups import Groups

# A stack may take this much; beyond it costs are recomputed.
MEMORY_BUDGET = 2e9

# A stack reads 8 bytes per group and entry, a factored mix does 2 d_l flops: they tie where
# memory bandwidth and BLAS tie, at about this many features per group.
STACK_PAYS_FROM = 13


def factored_metric(metric: Any, p: float = 1.0) -> FactoredMetric | None:
    """Return the metric whose costs are d(x, y)^p, where it factors.

    Examples
    --------
    >>> factored_metric("euclidean", 2.0) is METRICS["sqeuclidean"]
    True
    >>> factored_metric("euclidean") is None
    True
    """
    if not isinstance(metric, str):
        return None
    if p == 2.0:
        return METRICS["sqeuclidean"] if metric == "euclidean" else None
    return METRICS.get(metric) if p == 1.0 else None


def build_costs(
    X: np.ndarray,
    Y: np.ndarray,
    groups: Groups,
    metric: str | Callable[[np.ndarray, np.ndarray], float] = "sqeuclidean",
    p: float = 1.0,
    memory_budget: float = MEMORY_BUDGET,
    weights: tuple[np.ndarray, np.ndarray] | None = None,
) -> Costs:
    """Choose and build the costs d(x, y)^p of every group, on the host.

    Squared Euclidean costs of few points are stacked, from differences. Of more points they and
    other metrics of the registry, `METRICS`, are factored, unless groups are so wide that a stack
    is cheaper and fits `memory_budget` bytes. ``|x - y|^p`` with one feature per group is one
    Minkowski distance. Everything else is a stack where it fits, and recomputed in chunks where it
    does not.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d)
    groups : Groups
    metric : str or callable
        A name in `METRICS`, one that `scipy.spatial.distance.cdist` knows, or ``f(u, v) -> float``.
    p : float
        The power.
    memory_budget : float
        Bytes that a stack may take.
    weights : arrays a and b, optional
        They say where the points' centre is; points without weight need not be in the domain of
        the metric.

    Examples
    --------
    >>> X, Y = np.zeros((2, 3)), np.ones((4, 3))
    >>> type(build_costs(X, Y, Groups.each(3))).__name__
    'Stack'
    >>> type(build_costs(X, Y, Groups.each(3), metric="cityblock")).__name__
    'Powers'
    >>> type(build_costs(X, Y, Groups.all(3), metric="cityblock")).__name__
    'Stack'
    """
    count, n, m = len(groups), len(X), len(Y)
    fits = 8 * count * n * m <= memory_budget
    factored = factored_metric(metric, p)
    if factored is not None:
        plain = not factored.maps and factored.scale == 1.0
        if plain and len(groups.flat) == 1:
            return Powers(X[:, groups.flat], Y[:, groups.flat], 2.0)
        # Sums of differences lose no digit of a small one, and a stack of so many takes a few
        # hundred microseconds.
        if plain and n * m * max(len(groups.flat), count) <= 300_000 and fits:
            return difference_stack(X, Y, groups.flat, groups.offsets)
        costs = Points.of(X, Y, groups, factored, weights)
        wide = len(groups.flat) > STACK_PAYS_FROM * count
        # A handful of mixes never repays building a stack of a single group.
        return _cleared(costs) if wide and fits and count > 1 else costs
    one_each = len(groups.flat) == count
    if one_each and isinstance(metric, str) and metric in ONE_FEATURE_ABSOLUTE:
        return Powers(X[:, groups.flat], Y[:, groups.flat], p)
    mapping = METRICS[metric] if isinstance(metric, str) and metric in METRICS else None
    if mapping is not None and (mapping.maps or mapping.scale != 1.0):
        # A power of it: between the mapped points, whose differences keep their digits.
        mapped = map_points(mapping, X, Y, groups, weights)
        chunked = Distances.of_mapped(mapped, groups.names, p)
        return stack_of(chunked) if fits else chunked
    chunked = Distances(X, Y, groups, metric, p)
    return Stack(chunked.stack(), chunked.relative) if fits else chunked


def mean_scales(costs: Costs, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return what makes every mean one, (L,); a mean that is zero but for rounding has none."""
    u, v = map(costs.home.bring, (a, b))
    means, sizes = to_numpy(costs.product(u, v)), to_numpy(costs.sizes(u, v))
    rounding = 4.0 * (len(a) + len(b)) * UNIT * sizes
    return np.divide(1.0, means, out=np.ones(len(means)), where=means > rounding)


def is_line(groups: Groups, metric: Any, p: float) -> bool:
    """Whether costs are convex on a line: one feature, where transport is sorting.

    Examples
    --------
    >>> is_line(Groups.all(1), "euclidean", 2.0), is_line(Groups.all(2), "euclidean", 2.0)
    (True, False)
    """
    if not isinstance(metric, str) or len(groups.flat) != 1 or p < 1.0:
        return False
    return metric in ONE_FEATURE_ABSOLUTE or (metric == "sqeuclidean" and p == 1.0)


def points_costs(
    X: Array,
    Y: Array,
    groups: Groups,
    metric: str | FactoredMetric = "sqeuclidean",
    weights: tuple[np.ndarray, np.ndarray] | None = None,
    named: bool = False,
) -> Points | Stack:
    """Build costs by a metric of the registry where the points are, in double precision.

    They are summed from differences where points are few, and factored where they are many.

    Parameters
    ----------
    X, Y : arrays of shape (..., n, d) and (..., m, d)
        NumPy's or PyTorch's, of one problem or of a batch.
    groups : Groups
    metric : str or FactoredMetric
        A metric of the registry, `METRICS`, or its name.
    weights : pair of arrays of shape (..., n) and (..., m), optional
        NumPy's. Points count by them for their centre: one far away that weighs little must not
        move the others away from the origin.
    named : bool
        Whether errors should name the member of the batch.

    Examples
    --------
    >>> import torch, frot
    >>> X, Y = torch.zeros(2, 3), torch.ones(4, 3)
    >>> costs = points_costs(X, Y, Groups.all(3))
    >>> frot.Entropic()(frot.Problem(costs, np.full(2, 0.5), np.full(4, 0.25), eps=0.1)).value
    3.0
    """
    home = Home.of(X)
    xp, given = home.xp, X.dtype
    X, Y = xp.astype(X, xp.float64), xp.astype(Y, xp.float64)
    X, Y, membership, error = map_points(metric, X, Y, groups, weights, member=named)
    *batch, n, _ = X.shape
    columns, shares = membership.indices, membership.data
    # More than where one problem is built: sweeps ask for the stack more often.
    if math.prod(batch) * n * Y.shape[-2] * len(columns) <= 1_000_000:
        stack = difference_stack(X, Y, columns, membership.indptr, shares, error)
        return replace(stack, given=given)
    if error == 0.0:
        centre, error = _centre(X, Y, weights, home.double()), 0.5
        X, Y = X - centre, Y - centre
    W = None if is_identity(membership) else home.double().bring(membership.toarray())
    return Points(X, Y, W, error, given=given)


def _centre(X: Array, Y: Array, weights: Array, home: Home) -> Array:
    """Return the middle of both clouds' means, (..., 1, d)."""
    xp = home.xp
    if weights is None:
        return 0.5 * (xp.mean(X, axis=-2, keepdims=True) + xp.mean(Y, axis=-2, keepdims=True))
    a, b = (home.bring(part)[..., None, :] for part in weights)
    return 0.5 * (a @ X + b @ Y)


def _cleared(costs: Costs) -> Stack:
    """Form the stack; entries that rounding alone could have made are zero: points are the same."""
    made = stack_of(costs)
    assert made.error is not None
    for cost, rows, cols in zip(made.C, *made.error, strict=True):
        cost[cost <= np.add.outer(rows, cols)] = 0.0
    return replace(made, error=(2.0 * made.error[0], 2.0 * made.error[1]))
