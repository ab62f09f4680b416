"""Bilinear interpolation as two small matrices, one a side."""

from __future__ import annotations

import numpy as np

__all__ = ["interpolation", "resize", "sampling"]


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


def resize(maps: np.ndarray, h: int, w: int, align_corners: bool) -> np.ndarray:
    """Return maps of shape (..., old h, old w) at another size, in their own precision.

    Examples
    --------
    >>> resize(np.array([[0.0, 1.0]]), 1, 3, align_corners=True)
    array([[0. , 0.5, 1. ]])
    """
    old_h, old_w = maps.shape[-2:]
    if (old_h, old_w) == (h, w):
        return maps
    down = interpolation(old_h, h, align_corners).astype(maps.dtype)
    across = interpolation(old_w, w, align_corners).astype(maps.dtype)
    return down @ (maps @ across.T)
