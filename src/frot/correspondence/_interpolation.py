"""Bilinear interpolation as two small matrices, one per side, and the lengths of what it makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import map_coordinates

from frot._base.arrays import Home, to_numpy


def sampling(places: np.ndarray, count: int) -> np.ndarray:
    """Return the matrix that reads `count` samples of a line at fractional places, (k, count).

    What lies beyond the ends has the value of the ends.

    Examples
    --------
    >>> sampling(np.array([-1.0, 0.25, 1.0]), 2)
    array([[1.  , 0.  ],
           [0.75, 0.25],
           [0.  , 1.  ]])
    """
    place = np.clip(np.asarray(places, dtype=float), 0.0, count - 1)
    # Rounding must not put the last place beyond the last sample.
    low = np.minimum(place.astype(int), max(count - 2, 0))
    part = place - low
    matrix = np.zeros((len(place), count))
    rows = np.arange(len(place))
    matrix[rows, low] = 1.0 - part
    if count > 1:
        matrix[rows, low + 1] = part
    return matrix


def interpolation(old: int, new: int, align_corners: bool) -> np.ndarray:
    """Return the matrix that takes `old` samples of a line to `new` ones, shape (new, old).

    With `align_corners` the first and last samples keep their places; without, the outer edges of
    the end samples do, and what lies beyond the centres of the ends is the ends' value. No
    antialiasing in either case.

    Examples
    --------
    >>> interpolation(2, 3, align_corners=True)
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    >>> interpolation(2, 4, align_corners=False)[:, 1]
    array([0.  , 0.25, 0.75, 1.  ])
    """
    if align_corners:
        place = np.arange(new) * ((old - 1) / (new - 1) if new > 1 else 0.0)
    else:
        place = (np.arange(new) + 0.5) * (old / new) - 0.5
    return sampling(place, old)


def shrinking(old: int, new: int) -> np.ndarray:
    """Return `interpolation` without aligned corners, antialiased where `new` is less, (new, old).

    A sample counts by its distance from the new one, up to the distance between new ones.

    Examples
    --------
    >>> shrinking(4, 2)
    array([[0.42857143, 0.42857143, 0.14285714, 0.        ],
           [0.        , 0.14285714, 0.42857143, 0.42857143]])
    """
    if new >= old:
        return interpolation(old, new, align_corners=False)
    place = (np.arange(new) + 0.5) * (old / new) - 0.5
    apart = np.abs(np.arange(old) - place[:, None]) * (new / old)
    weights = np.maximum(1.0 - apart, 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def resize(maps: Any, h: int, w: int, align_corners: bool) -> Any:
    """Return maps of shape (..., old h, old w) at another size, in their own precision and place.

    Examples
    --------
    >>> resize(np.array([[0.0, 1.0]]), 1, 3, align_corners=True)
    array([[0. , 0.5, 1. ]])
    """
    old_h, old_w = maps.shape[-2:]
    if (old_h, old_w) == (h, w):
        return maps
    home = Home.of(maps)
    down, across = (
        home.bring(interpolation(old, new, align_corners)) for old, new in ((old_h, h), (old_w, w))
    )
    return down @ (maps @ across.T)


def sample_image(image: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Return what an image, (h, w) or (h, w, c), has at places, (H, W) or (H, W, c), bilinear.

    Places are rows and columns, (2, H, W); what lies beyond the edges has the value of the edges.

    Examples
    --------
    >>> sample_image(np.array([[0.0, 1.0]]), np.array([[[0.0, 0.0]], [[0.5, 3.0]]]))
    array([[0.5, 1. ]])
    """
    channels = image.reshape(*image.shape[:2], -1)
    found = [
        map_coordinates(channels[..., c], where, order=1, mode="nearest")
        for c in range(channels.shape[2])
    ]
    return np.stack(found, axis=-1).reshape(*where.shape[1:], *image.shape[2:])


# A vector that interpolation leaves with less than this share of its neighbours' squared lengths
# has no direction that rounding did not make.
NO_LENGTH = 1e-13


@dataclass(frozen=True, eq=False)
class Line:
    """Samples of a line at `new` places: the matrix of `interpolation`, and two taps each.

    `low`, (new,), is the first of the two samples, and the second is the next one, where there is
    one; `taps`, (new, 2), are their weights.

    Examples
    --------
    >>> line = Line.between(2, 3)
    >>> line.low, line.taps.tolist()
    (array([0, 0, 0]), [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    """

    matrix: np.ndarray
    low: np.ndarray
    taps: np.ndarray

    @classmethod
    def between(cls, old: int, new: int) -> Line:
        """The line that keeps its first and last samples in place (align_corners=True)."""
        matrix = interpolation(old, new, align_corners=True)
        low = np.minimum((matrix > 0.0).argmax(axis=1), max(old - 2, 0))
        rows = np.arange(new)
        second = matrix[rows, low + 1] if old > 1 else np.zeros(new)
        return cls(matrix, low, np.stack([matrix[rows, low], second], axis=1))

    @property
    def old(self) -> int:
        """Number of samples that are there."""
        return self.matrix.shape[1]

    @property
    def new(self) -> int:
        """Number of places."""
        return self.matrix.shape[0]


def corners(down: Line, across: Line) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield of each of the four corners of all places: rows, columns, and the weights of both."""
    for i in range(2):
        rows = np.minimum(down.low + i, down.old - 1)
        for j in range(2):
            columns = np.minimum(across.low + j, across.old - 1)
            yield rows, columns, down.taps[:, i], across.taps[:, j]


def inverse_norms(maps: Any, home: Home, down: Line, across: Line) -> np.ndarray:
    r"""Return one over the lengths of the interpolated vectors, shape (new h, new w).

    .. math:: \Big\| \sum_c w_c f_c \Big\|^2 = \sum_{c, c'} w_c w_{c'} \langle f_c, f_{c'} \rangle

    over the four corners c of a place, so that products of neighbours on the coarse grid are all
    that is needed. Vectors of length zero get 0: their cosine with anything is then 0.
    """
    _, h, w = maps.shape
    y1, x1 = min(1, h - 1), min(1, w - 1)
    here, right = maps[:, : h - y1, : w - x1], maps[:, : h - y1, x1:]
    below, across_below = maps[:, y1:, : w - x1], maps[:, y1:, x1:]

    def products(one: Any, other: Any) -> np.ndarray:
        return to_numpy(home.xp.sum(one * other, axis=0, dtype=home.xp.float64))

    squares = products(maps, maps)
    beside = products(maps[:, :, : w - x1], maps[:, :, x1:])
    under = products(maps[:, : h - y1, :], maps[:, y1:, :])
    falling, rising = products(here, across_below), products(right, below)
    y, x = down.low[:, None], across.low[None, :]
    next_y, next_x = np.minimum(y + 1, h - 1), np.minimum(x + 1, w - 1)
    top, bottom = down.taps[:, :1], down.taps[:, 1:]
    left, far = across.taps[None, :, 0], across.taps[None, :, 1]
    corners = (top * left, top * far, bottom * left, bottom * far)
    lengths = (squares[y, x], squares[y, next_x], squares[next_y, x], squares[next_y, next_x])
    total = sum(weight**2 * length for weight, length in zip(corners, lengths, strict=True))
    total = total + 2.0 * left * far * (top**2 * beside[y, x] + bottom**2 * beside[next_y, x])
    total = total + 2.0 * top * bottom * (left**2 * under[y, x] + far**2 * under[y, next_x])
    total = total + 2.0 * top * bottom * left * far * (falling[y, x] + rising[y, x])
    largest = np.maximum.reduce(lengths)
    alive = total > NO_LENGTH * largest
    return np.where(alive, 1.0 / np.sqrt(np.where(alive, total, 1.0)), 0.0)
