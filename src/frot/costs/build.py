"""The right kind of costs for points, groups and a metric, chosen by flops and bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from frot._base.arrays import Home
from frot._base.stopping import seconds_left
from frot.costs._metric import MetricCosts, SeparableCosts
from frot.costs.geometry import DeviceCosts
from frot.costs.metrics import METRICS, FactoredMetric, factored_metric, map_points
from frot.costs.points import FactoredCosts, PointGeometry, is_identity
from frot.costs.protocol import Costs
from frot.costs.stack import StackedCosts, StackGeometry, difference_stack, stack_of
from frot.groups.groups import Groups

# A stack may take this much; beyond it costs are recomputed.
MEMORY_BUDGET = 2e9

# A stack reads 8 bytes per group and entry, a factored mix does 2 d_l flops: they tie where
# memory bandwidth and BLAS tie, at about this many features per group.
STACK_PAYS_FROM = 13

# Up to so many differences of features costs are summed from them, which loses no digit of a small
# one, and stacked: a few hundred microseconds. Sweeps, which ask more often, do so up to more.
DIFFERENCES_UP_TO, DIFFERENCES_IN_SWEEPS_UP_TO = 300_000, 1_000_000

# Seconds an entry of a stack takes, roughly: whoever has no time for it gets along without.
STACK_SECONDS = 2e-8

# On one feature all of these are |x - y|.
ONE_FEATURE_ABSOLUTE = frozenset({"cityblock", "euclidean", "chebyshev", "minkowski"})


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
    'StackedCosts'
    >>> type(build_costs(X, Y, Groups.each(3), metric="cityblock")).__name__
    'SeparableCosts'
    >>> type(build_costs(X, Y, Groups.all(3), metric="cityblock")).__name__
    'StackedCosts'
    """
    count, n, m = len(groups), len(X), len(Y)
    fits = 8 * count * n * m <= memory_budget
    in_time = STACK_SECONDS * count * n * m <= 0.2 * seconds_left()
    factored = factored_metric(metric, p)
    if factored is not None:
        plain = not factored.maps and factored.scale == 1.0
        if plain and len(groups.flat) == 1:
            return SeparableCosts(X[:, groups.flat], Y[:, groups.flat], 2.0)
        if plain and n * m * max(len(groups.flat), count) <= DIFFERENCES_UP_TO and fits:
            stack = difference_stack(X[None], Y[None], groups.flat, groups.offsets)
            return StackedCosts(stack.C[0], relative=stack.relative)
        costs = FactoredCosts.of(X, Y, groups, factored, weights)
        wide = len(groups.flat) > STACK_PAYS_FROM * count
        # A handful of mixes never repays building a stack of a single group.
        return _cleared(costs) if wide and fits and in_time and count > 1 else costs
    one_each = len(groups.flat) == count
    if one_each and isinstance(metric, str) and metric in ONE_FEATURE_ABSOLUTE:
        return SeparableCosts(X[:, groups.flat], Y[:, groups.flat], p)
    mapping = METRICS[metric] if isinstance(metric, str) and metric in METRICS else None
    if mapping is not None and (mapping.maps or mapping.scale != 1.0):
        # A power of it: between the mapped points, whose differences keep their digits.
        mapped = map_points(mapping, X, Y, groups, weights)
        chunked = MetricCosts.of_mapped(mapped, groups.names, p)
        return stack_of(chunked) if fits and in_time else chunked
    chunked = MetricCosts(X, Y, groups, metric, p)
    if fits and in_time:
        return StackedCosts(np.stack([chunked.block(group) for group in range(count)]))
    return chunked


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


def points_geometry(
    X: Any,
    Y: Any,
    groups: Groups,
    metric: str | FactoredMetric,
    home: Home,
    weights: tuple[np.ndarray, np.ndarray] | None = None,
    named: bool = False,
) -> PointGeometry | StackGeometry:
    """Costs of a batch of points by a metric of the registry, in double precision.

    They are summed from differences where points are few, and factored where they are many.

    Parameters
    ----------
    X, Y : arrays of shape (B, n, d) and (B, m, d)
    weights : pair of arrays of shape (B, n) and (B, m), optional
        Points count by them for their centre: one far away that weighs little must not move the
        others away from the origin.
    named : bool
        Whether errors should name the member of the batch.
    """
    xp, double = home.xp, home.double()
    X, Y = xp.astype(X, xp.float64), xp.astype(Y, xp.float64)
    X, Y, membership, error = map_points(metric, X, Y, groups, weights, member=named)
    batch, n, _ = X.shape
    columns, shares = membership.indices, membership.data
    if batch * n * Y.shape[1] * len(columns) <= DIFFERENCES_IN_SWEEPS_UP_TO:
        return difference_stack(X, Y, columns, membership.indptr, shares, error)
    if error == 0.0:
        centre, error = _centre(X, Y, weights, double), 0.5
        X, Y = X - centre, Y - centre
    W = None if is_identity(membership) else double.bring(membership.toarray())
    return PointGeometry(X, Y, W, error)


def _centre(X: Any, Y: Any, weights: Any, home: Home) -> Any:
    """Return the middle of both clouds' means, (B, 1, d)."""
    xp = home.xp
    if weights is None:
        return 0.5 * (xp.mean(X, axis=1, keepdims=True) + xp.mean(Y, axis=1, keepdims=True))
    a, b = (home.bring(part)[:, None, :] for part in weights)
    return 0.5 * (a @ X + b @ Y)


def device_points(
    X: Any,
    Y: Any,
    groups: Groups,
    metric: str | FactoredMetric = "sqeuclidean",
    home: Home | None = None,
    weights: tuple[np.ndarray, np.ndarray] | None = None,
) -> DeviceCosts:
    """Build costs where the points are: in another array library, on a device.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d)
        NumPy's or PyTorch's.
    groups : Groups
    metric : str or FactoredMetric
        A metric of the registry, `METRICS`, or its name.
    home : Home, optional
        Where results go, and the precision to search in: those of X.
    weights : arrays a and b of NumPy, optional
        They say where the points' centre is.

    Examples
    --------
    >>> import torch, frot
    >>> X, Y = torch.zeros(2, 3), torch.ones(4, 3)
    >>> costs = device_points(X, Y, Groups.all(3))
    >>> frot.Entropic()(frot.Problem(costs, np.full(2, 0.5), np.full(4, 0.25), eps=0.1)).value
    3.0
    """
    home = home or Home.of(X)
    both = None if weights is None else (weights[0][None], weights[1][None])
    geometry = points_geometry(X[None, ...], Y[None, ...], groups, metric, home, both)
    return DeviceCosts(geometry, home)


def device_stack(C: Any, home: Home | None = None) -> DeviceCosts:
    """Take costs given as a stack of shape (L, n, m), where it is: on a device, for one."""
    home = home or Home.of(C)
    return DeviceCosts(StackGeometry(home.xp.astype(C, home.xp.float64)[None, ...]), home)


def _cleared(costs: Costs) -> StackedCosts:
    """Form the stack; entries that rounding alone could have made are zero: points are the same."""
    made = stack_of(costs)
    assert made.error is not None
    for cost, rows, cols in zip(made.stack, *made.error, strict=True):
        cost[cost <= np.add.outer(rows, cols)] = 0.0
    return replace(made, error=(2.0 * made.error[0], 2.0 * made.error[1]))
