"""Which points of a photograph to show when nobody says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import InputError

if TYPE_CHECKING:
    from frot.correspondence.match import Match

__all__ = ["as_points", "grid_points", "object_points"]

# A cell is of the object if it has this share of the heaviest cell's weight.
_HEAVY = 0.75
# Of the photograph, left free on every side where the object may be anywhere.
_MARGIN = 0.1
_GOLDEN = (5**0.5 - 1) / 2


def grid_points(size: tuple[int, int], count: int, box: Any = None) -> np.ndarray:
    """Return points evenly over a photograph of size (h, w), row by row.

    Parameters
    ----------
    size : pair of int
    count : int
        Points along the longer side.
    box : (left, top, right, bottom), optional
        The part to cover, in pixels; by default all of it.

    Returns
    -------
    array of shape (k, 2)
        x and y, each in the middle of its share.

    Examples
    --------
    >>> grid_points((20, 40), 4).tolist()[:4]
    [[4.5, 4.5], [14.5, 4.5], [24.5, 4.5], [34.5, 4.5]]
    """
    if count < 1:
        raise InputError(f"grid: {count} points a side are none; give one or more")
    h, w = size
    left, top, right, bottom = (-0.5, -0.5, w - 0.5, h - 0.5) if box is None else box
    wide, high = right - left, bottom - top
    step = max(wide, high) / count
    across, down = (max(1, round(length / step)) for length in (wide, high))
    x = left + (np.arange(across) + 0.5) * wide / across
    y = top + (np.arange(down) + 0.5) * high / down
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    return np.clip(points, 0.0, [w - 1, h - 1])


def object_points(match: Match, count: int = 16) -> np.ndarray:
    """Return about so many points of the source's object, evenly spread, from top to bottom.

    The object is where the cells have most weight. Where all weigh the same it is anybody's guess:
    then these are the surest of eight times as many points away from the edges, kept apart from
    each other. No two points are at the same height, so that lines from one photograph to the
    other do not lie on each other.
    """
    if count < 1:
        raise InputError(f"points: {count} points cannot be chosen; give one or more")
    h, w = match.source.size
    mass = np.asarray(match.a, dtype=float)
    heavy = mass >= _HEAVY * mass.max()
    if heavy.all():
        box = _MARGIN * np.array([w, h, -w, -h]) + [0, 0, w - 1, h - 1]
        return _surest(match, _spread(box, 8 * count), count, box)
    centres = match.source_grid.centres / match.source_ratio
    reach = 0.5 * match.source_grid.stride / match.source_ratio
    ends = centres[heavy].min(axis=0) - reach, centres[heavy].max(axis=0) + reach
    box = np.clip(np.concatenate(ends), 0.0, [w - 1, h - 1, w - 1, h - 1])
    # The object fills only a part of its box.
    area = np.prod(np.maximum(box[2:] - box[:2], 1.0))
    share = np.clip(heavy.sum() * (2 * reach) ** 2 / area, 0.05, 1.0)
    points = _spread(box, int(np.ceil(count / share)))
    nearest = ((points[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    on = points[heavy[nearest]]
    return on if len(on) else np.clip(centres[heavy][:count], 0.0, [w - 1, h - 1])


def as_points(match: Match, points: Any) -> np.ndarray:
    """Return the points asked for: some, so many on the object, or a default."""
    if points is None:
        return object_points(match)
    if isinstance(points, int | np.integer):
        return object_points(match, int(points))
    given = np.asarray(points, dtype=float)
    if given.ndim == 1 and given.shape == (2,):
        given = given[None]
    if given.ndim != 2 or given.shape[1] != 2 or not len(given):
        raise InputError(f"points: shape {given.shape} is not (k, 2); give x and y of each")
    return given


def _surest(match: Match, points: np.ndarray, count: int, box: np.ndarray) -> np.ndarray:
    """Return the surest points that are half as far from each other as evenly spread ones."""
    apart = 0.5 * float(np.sqrt(np.prod(box[2:] - box[:2]) / count))
    sure = np.asarray(match.transfer(points).confidence)
    kept: list[int] = []
    for one in np.argsort(-sure, kind="stable").tolist():
        if len(kept) < count and all(np.linalg.norm(points[kept] - points[one], axis=1) >= apart):
            kept.append(one)
    return points[sorted(kept)]


def _spread(box: np.ndarray, count: int) -> np.ndarray:
    """Return points of a box that fill it evenly and share no row: a lattice of Fibonacci's."""
    order = np.arange(count) + 0.5
    share = np.stack([order * _GOLDEN % 1.0, order / count], axis=1)
    return box[:2] + share * (box[2:] - box[:2])
