"""Batches of points and weights, checked member by member."""

from __future__ import annotations

from typing import Any

import numpy as np

from frot._base.arrays import Home, find_home, is_foreign
from frot._base.errors import InputError, brief
from frot._base.numbers import read_numbers
from frot._base.validate import check_points, check_weights
from frot.costs import FactoredMetric
from frot.costs.build import points_geometry
from frot.costs.geometry import Geometry, stand_ins, take_members
from frot.groups.groups import Groups

__all__ = ["batch_geometry", "batch_home", "batch_points", "batch_weights"]


def batch_home(**arguments: Any) -> Home | None:
    """Return where the arrays live, those in lists too, None if that is NumPy."""
    arrays = {}
    for name, value in arguments.items():
        if isinstance(value, list | tuple):
            arrays |= {f"{name}[{at}]": member for at, member in enumerate(value)}
        else:
            arrays[name] = value
    return find_home(**arrays)


def batch_points(points: Any, name: str, home: Home | None) -> Any:
    """Return points as one array (B, n, d); a member that is bad is named."""
    if getattr(points, "ndim", None) == 3:
        stack, place = points, home
        members = [points[at, ...] for at in range(points.shape[0])] if points.shape[0] else []
    else:
        members, stack, place = _listed(points, name), None, home
    if not members:
        raise InputError(f"{name}: has no members; pass an array of shape (B, n, d)")
    checked = [check_points(member, f"{name}[{at}]")[0] for at, member in enumerate(members)]
    shapes = [tuple(member.shape) for member in checked]
    for at, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise InputError(
                f"{name}[{at}]: has shape {shape}, but {name}[0] has {shapes[0]}; members of a "
                "batch have the same shape"
            )
    if stack is not None and place is not None:
        return stack
    return np.stack(checked) if place is None else place.xp.stack(checked)


def _listed(points: Any, name: str) -> list[Any]:
    try:
        return list(points)
    except TypeError:
        raise InputError(f"{name}: {brief(points)} is no batch; pass an array (B, n, d)") from None


def batch_weights(weights: Any, count: int, size: int, name: str, normalise: bool) -> np.ndarray:
    """Return weights (B, n): None is uniform, (n,) is the same for all."""
    if weights is None:
        return np.full((count, size), 1.0 / size)
    # A list may hold tensors, one a member, which are read one by one.
    listed = isinstance(weights, list | tuple) and any(map(is_foreign, weights))
    host = weights if listed else read_numbers(weights, name)
    if not listed and np.ndim(host) < 2:
        return np.tile(check_weights(host, size, name, normalise), (count, 1))
    if len(host) != count:
        raise InputError(f"{name}: {len(host)} members of weights for a batch of {count}")
    rows = [check_weights(row, size, f"{name}[{at}]", normalise) for at, row in enumerate(host)]
    return np.stack(rows)


def batch_geometry(
    X: Any, Y: Any, groups: Groups, metric: FactoredMetric, home: Home, weights: tuple[Any, Any]
) -> tuple[Geometry, Geometry]:
    """The costs of the members, with points of no weight where others are; and as they are."""
    true = points_geometry(X, Y, groups, metric, home, weights, named=True)
    places_x, places_y = (stand_ins(part) for part in weights)
    if places_x is None and places_y is None:
        return true, true
    moved_x = X if places_x is None else take_members(home, X, places_x)
    moved_y = Y if places_y is None else take_members(home, Y, places_y)
    return points_geometry(moved_x, moved_y, groups, metric, home, weights, named=True), true
