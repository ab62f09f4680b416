"""Bilinear interpolation as two small matrices, one per side, and the lengths of what it makes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.ndimage import map_coordinates

from frot._base.arrays import Home


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
