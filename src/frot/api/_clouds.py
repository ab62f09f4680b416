"""Lists of point clouds and their weights, checked one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from frot._base.errors import InputError, brief
from frot._base.tables import frame_like
from frot._base.validate import check_points, check_weights

__all__ = ["Cloud", "Clouds", "check_clouds", "check_same_features"]


class Cloud(NamedTuple):
    """Points of shape (n, d), their weights, and what they are called in messages."""

    name: str
    points: np.ndarray
    weights: np.ndarray | None

    def __repr__(self) -> str:
        return f"Cloud({self.name!r}, {self.points.shape})"


class Clouds(NamedTuple):
    """Clouds of the same features, and the names of these where the clouds have any."""

    members: tuple[Cloud, ...]
    columns: tuple[str, ...] | None

    @property
    def width(self) -> int:
        """Features."""
        return self.members[0].points.shape[1]

    @property
    def sizes(self) -> np.ndarray:
        """Points in each cloud."""
        return np.array([len(cloud.points) for cloud in self.members])


def check_clouds(
    clouds: Any, weights: Any, normalise: bool, name: str = "clouds", weights_name: str = "weights"
) -> Clouds:
    """Check every cloud and its weights; the message names the one that cannot be used.

    Examples
    --------
    >>> check_clouds([[[0.0]], [[1.0], [2.0]]], None, normalise=False).sizes
    array([1, 2])
    >>> check_clouds([[[0.0]], [[float("nan")]]], None, normalise=False)
    Traceback (most recent call last):
    ...
    frot.InputError: clouds[1]: 1 of 1 entries are NaN or infinite, ...
    """
    listed = _listed(clouds, name)
    given = [None] * len(listed) if weights is None else _weights(weights, weights_name, name)
    if len(given) != len(listed):
        raise InputError(
            f"{weights_name}: {len(given)} vectors for {len(listed)} {name}; give one for each, "
            "or None where it is uniform"
        )
    members: list[Cloud] = []
    # What the others are compared with: the first, or the first whose features have names.
    model: Clouds | None = None
    for number, (one, weight) in enumerate(zip(listed, given, strict=True)):
        points, columns = check_points(one, f"{name}[{number}]")
        check_weights(weight, len(points), f"{weights_name}[{number}]", normalise)
        # As they came, so that they are made to sum to one only once.
        weight = None if weight is None else np.asarray(weight, dtype=float)
        members.append(Cloud(f"{name}[{number}]", points, weight))
        alone = Clouds((members[-1],), columns)
        if model is not None:
            check_same_features(model, alone)
        if model is None or (model.columns is None and columns is not None):
            model = alone
    return Clouds(tuple(members), model.columns if model is not None else None)


def check_same_features(first: Clouds, second: Clouds) -> None:
    """Refuse clouds of other features than the first's."""
    one, other = first.members[0].name, second.members[0].name
    if first.width != second.width:
        raise InputError(
            f"{other}: has {second.width} features and {one} has {first.width}; they must be the "
            "same ones"
        )
    if None not in (first.columns, second.columns) and first.columns != second.columns:
        raise InputError(
            f"{other}: has other columns than {one}; reorder them, {other}[{one}.columns]"
        )


def _listed(clouds: Any, name: str) -> Sequence[Any]:
    if isinstance(clouds, Mapping):
        raise InputError(f"{name}: is a mapping; pass list({name}.values())")
    # An array of objects may hold clouds of different sizes, and a frame never does.
    whole = getattr(clouds, "ndim", 3) < 3 and getattr(clouds, "dtype", None) != np.dtype(object)
    if whole or frame_like(clouds)[1] is not None:
        raise InputError(f"{name}: is one table; pass a list of clouds, [{name}]")
    if isinstance(clouds, str) or not isinstance(clouds, Iterable):
        raise InputError(f"{name}: {brief(clouds)} is no list of clouds")
    try:
        listed = list(clouds)
    except TypeError:
        raise InputError(f"{name}: {brief(clouds)} is no list of clouds") from None
    if not listed:
        raise InputError(f"{name}: is empty; give one cloud at least")
    return listed


def _weights(weights: Any, name: str, of: str) -> Sequence[Any]:
    try:
        if not isinstance(weights, str | Mapping | Set):
            return list(weights)
    except TypeError:
        # Some say that they can be read one by one, and cannot.
        pass
    raise InputError(f"{name}: is no list of weight vectors; give one for each of {of}")
