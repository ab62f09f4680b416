"""A photograph mirrored for the network, and cells of its mirror image.

Where layers have several strides, their cells are at multiples of these from the first pixel on.
The mirror image therefore gets a margin, on the left and below, so that cells mirrored lie on
cells: layers see columns of the margin first, and after these the photograph's own, from the last
to the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from frot._base.arrays import Home
from frot.correspondence._features import FeatureMap, Grid


def mirrored_size(size: tuple[int, int], strides: Sequence[float]) -> tuple[int, int]:
    """Return height and width of the mirror image: one pixel more than multiples of all strides.

    Where all layers have one stride, as patches do, cells fill the image: it needs no margin.

    Examples
    --------
    >>> mirrored_size((30, 40), (4, 8)), mirrored_size((30, 40), (8, 8))
    ((33, 41), (30, 40))
    """
    if len(set(strides)) == 1 or not all(float(stride).is_integer() for stride in strides):
        return size
    whole = math.lcm(*(int(stride) for stride in strides))
    h, w = (side + (1 - side) % whole for side in size)
    return h, w


def mirrored_image(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return an image, (h, w, 3), mirrored, with a margin of its reflection up to a size.

    Examples
    --------
    >>> mirrored_image(np.array([[[1], [2], [3]]]), (1, 5))[0, :, 0]
    array([1, 2, 3, 2, 1])
    """
    (h, w), (tall, wide) = image.shape[:2], size
    padded = np.pad(image, ((0, tall - h), (0, wide - w), (0, 0)), mode="reflect")
    return np.ascontiguousarray(padded[:, ::-1])


def without_margin(
    layers: Sequence[FeatureMap], own: Sequence[FeatureMap]
) -> tuple[FeatureMap, ...]:
    """Return layers of the mirror image on as many cells as the photograph's own layers have."""
    return tuple(
        replace(layer, values=layer.values[:, : one.grid.h, layer.grid.w - one.grid.w :])
        for layer, one in zip(layers, own, strict=True)
    )


def mirrored_cells(values: Any, grid: Grid, home: Home) -> Any:
    """Return values of cells, (n, ...), in the order that the cells have in the mirror image.

    Examples
    --------
    >>> mirrored_cells(np.arange(6), Grid(2, 3, 8.0, 43.0), Home.of(np.zeros(1)))
    array([2, 1, 0, 5, 4, 3])
    """
    rows = home.xp.reshape(values, (grid.h, grid.w, *values.shape[1:]))
    return home.xp.reshape(home.xp.flip(rows, axis=1), values.shape)
