"""Which two coordinates of d-dimensional points a picture of their plan shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from frot._errors import InputError
from frot.show.style import shorten

if TYPE_CHECKING:
    from frot._group_arrays import GroupArrays
    from frot._result import Result

__all__ = ["Projection", "checked_features", "project"]


class Projection(NamedTuple):
    """Two coordinates of both point clouds, and what to write on the axes."""

    x: np.ndarray
    y: np.ndarray
    labels: tuple[str, str]


def project(
    result: Result,
    features: tuple[int, int] | None = None,
    groups: GroupArrays | None = None,
    feature_names: Sequence[str] | None = None,
) -> Projection:
    """Choose two coordinates of the points of `result`: shapes (n, 2) and (m, 2).

    The two `features` asked for; else those of the heaviest group: its two features, its two
    principal components if it has more, its feature and the next heaviest group's if it has one.
    Points of two features are shown as they are.

    Examples
    --------
    >>> import frot
    >>> res = frot.solve([[0.0, 0.0, 0.0]], [[1.0, 9.0, 2.0]], groups="each")
    >>> project(res).labels
    ('x1', 'x2')
    """
    if result.points is None:
        raise InputError("features: the result has no points, only costs; leave features out")
    X, Y = result.points
    names = feature_names or _names(result, X.shape[1])
    chosen = checked_features(features, X.shape[1]) if features is not None else None
    title = ""
    if chosen is None:
        chosen, title = _heaviest(result, X.shape[1], groups)
    if len(chosen) == 1:
        # Points on a line are drawn on two parallel ones, or all arcs would lie on each other.
        return Projection(
            np.hstack([X[:, chosen], np.ones((len(X), 1))]),
            np.hstack([Y[:, chosen], np.zeros((len(Y), 1))]),
            (shorten(names[chosen[0]]), ""),
        )
    if len(chosen) == 2:
        first, second = (shorten(names[feature]) for feature in chosen)
        return Projection(X[:, chosen], Y[:, chosen], (first, second))
    return _components(X[:, chosen], Y[:, chosen], title)


def checked_features(features: tuple[int, int], d: int) -> list[int]:
    """Return two features of d, each of which there is."""
    chosen = [int(feature) for feature in features]
    if len(chosen) != 2:
        raise InputError(f"features: {len(chosen)} given; a picture has two axes, give two")
    for feature in chosen:
        if not 0 <= feature < d:
            raise InputError(f"features: {feature} is none of the {d} features 0 to {d - 1}")
    return chosen


def _names(result: Result, d: int) -> Sequence[str]:
    # With as many groups as features, each feature most likely is a group and lends its name.
    if len(result.names) == d:
        return result.names
    return [f"feature {feature}" for feature in range(d)]


def _heaviest(result: Result, d: int, groups: GroupArrays | None) -> tuple[list[int], str]:
    """Return the features of the heaviest group, or of the heaviest two, and what to call them."""
    if d <= 2:
        return list(range(d)), ""
    ranking = result.ranking()
    if groups is None:
        groups = result.groups
    if groups is not None:
        members = [int(feature) for feature in groups.indices[ranking[0]]]
        for follower in ranking[1:]:
            if len(members) != 1:
                break
            more = [int(f) for f in groups.indices[follower] if f not in members]
            members += more[:1]
        return members, f"{shorten(result.names[ranking[0]], 20)}: "
    if len(result.names) == d:
        return [int(feature) for feature in ranking[:2]], ""
    return list(range(d)), ""


def _components(X: np.ndarray, Y: np.ndarray, title: str) -> Projection:
    both = np.vstack([X, Y])
    centre = both.mean(axis=0)
    _, scales, right = np.linalg.svd(both - centre, full_matrices=False)
    variance = scales**2
    share = variance / max(variance.sum(), np.finfo(float).tiny)
    axes = right[:2].T
    # A component's sign is arbitrary; the larger entries shall point to the right and up.
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] < 0.0, -1.0, 1.0)
    first, second = (f"{title}component {k + 1} ({share[k]:.0%})" for k in range(2))
    return Projection((X - centre) @ axes, (Y - centre) @ axes, (first, second))
