"""Many clouds of points, checked: they have the same features, and weights that can be used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from frot._base.arrays import to_numpy
from frot._base.errors import InputError, brief
from frot._base.validate import check_points, check_weights, frame_like, read_numbers


class Cloud(NamedTuple):
    """Points of shape (n, d), their weights, and what they are called in messages.

    Every point has weight; None is uniform.
    """

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
        """Points in each cloud, (N,)."""
        return np.array([len(cloud.points) for cloud in self.members])

    def lightest(self, any_mass: bool) -> np.ndarray:
        """The weights of the cloud that weighs least, where these sum to `any_mass`."""
        sides = [
            check_weights(cloud.weights, len(cloud.points), cloud.name, not any_mass, any_mass)
            for cloud in self.members
        ]
        return min(sides, key=np.sum)


def check_clouds(
    clouds: Any,
    weights: Any,
    normalise: bool,
    name: str = "clouds",
    weights_name: str = "weights",
    any_mass: bool = False,
) -> Clouds:
    """Check every cloud and its weights; the message names the one that cannot be used.

    Points without weight are left out.
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
    for number, (cloud, weight) in enumerate(zip(listed, given, strict=True)):
        points, columns = check_points(cloud, f"{name}[{number}]")
        points = to_numpy(points).astype(float, copy=False)
        label = f"{weights_name}[{number}]"
        present = check_weights(weight, len(points), label, normalise, any_mass) > 0.0
        if weight is not None:
            # As they came, so that they are made to sum to one only once.
            weight = read_numbers(weight, label)[present]
        if not present.all():
            points = points[present]
        members.append(Cloud(f"{name}[{number}]", points, weight))
        alone = Clouds((members[-1],), columns)
        if model is not None:
            check_same_features(model, alone)
        if model is None or (model.columns is None and columns is not None):
            model = alone
    return Clouds(tuple(members), model.columns if model is not None else None)


def check_same_features(first: Clouds, second: Clouds) -> None:
    """Refuse clouds of other features than the first's."""
    own, its = first.members[0].name, second.members[0].name
    if first.width != second.width:
        raise InputError(
            f"{its}: has {second.width} features and {own} has {first.width}; they must be the "
            "same ones"
        )
    if None not in (first.columns, second.columns) and first.columns != second.columns:
        raise InputError(f"{its}: has other columns than {own}; reorder them, {its}[{own}.columns]")


def refuse_clouds_as_groups(groups: Any) -> None:
    """Refuse the second clouds of a call that is written as SciPy's `cdist` is."""
    listed = groups if isinstance(groups, list | tuple) else ()
    if getattr(groups, "ndim", 0) == 3 or any(getattr(item, "ndim", 0) == 2 for item in listed):
        raise InputError("groups: are clouds; clouds to compare with are given by name: others=...")


def _listed(clouds: Any, name: str) -> Sequence[Any]:
    if isinstance(clouds, Mapping):
        raise InputError(f"{name}: is a mapping; pass list({name}.values())")
    # An array of objects may hold clouds of different sizes, and a frame never does.
    whole = getattr(clouds, "ndim", 3) < 3 and getattr(clouds, "dtype", None) != np.dtype(object)
    if whole or frame_like(clouds)[1] is not None:
        raise InputError(f"{name}: is one table; pass a list of clouds, [{name}]")
    if isinstance(clouds, str) or not isinstance(clouds, Iterable):
        raise InputError(f"{name}: {brief(clouds)} is not a list of clouds")
    try:
        listed = list(clouds)
    except TypeError:
        raise InputError(f"{name}: {brief(clouds)} is not a list of clouds") from None
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
    raise InputError(f"{name}: is not a list of weight vectors; give one for each of {of}")
