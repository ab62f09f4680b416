"""A photograph mirrored for the network, with cells where the photograph's own cells look.

Cell j of the mirror image looks at :math:`s j + d`, the photograph's own cell i is there at
:math:`W - 1 - d - s i`. The mirror image gets a margin on the left, so that to half a pixel cells
lie on cells; what is left is interpolated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from frot._base.arrays import Home
from frot.correspondence._features import FeatureMap, Grid


def mirrored_width(width: int, grid: Grid) -> int:
    """Return the width of the mirror image of a photograph whose cells are matched on a grid.

    Examples
    --------
    >>> mirrored_width(40, Grid(4, 5, 8.0, 19.0))
    41
    >>> mirrored_width(42, Grid(3, 3, 14.0, 14.0, start=(6.5, 6.5)))
    42
    """
    stride = grid.strides[1]
    margin = round((2.0 * grid.start[1] - (width - 1)) % stride)
    return width + margin if margin < stride else width


def mirrored_image(image: np.ndarray, width: int) -> np.ndarray:
    """Return an image, (h, w, 3), mirrored, with a margin of its reflection up to a width.

    Examples
    --------
    >>> mirrored_image(np.array([[[1], [2], [3]]]), 5)[0, :, 0]
    array([1, 2, 3, 2, 1])
    """
    padded = np.pad(image, ((0, 0), (0, width - image.shape[1]), (0, 0)), mode="reflect")
    return np.ascontiguousarray(padded[:, ::-1])


def mirrored_grid(grid: Grid, width: int) -> Grid:
    """Return the cells of a photograph where they lie in its mirror image of this width.

    Examples
    --------
    >>> mirrored_grid(Grid(1, 3, 8.0, 19.0, start=(0.0, -3.0)), 27).centres[:, 0]
    array([13., 21., 29.])
    """
    y, x = grid.start
    return replace(grid, start=(y, width - 1 - x - grid.strides[1] * (grid.w - 1)))


def at_cells(layers: Sequence[FeatureMap], number: int, cells: Grid) -> tuple[FeatureMap, ...]:
    """Return layers of a mirror image, the one whose cells are matched on these cells."""
    known = [layer if layer.start else replace(layer, start=(0.0, 0.0)) for layer in layers]
    return (*known[:number], known[number].at(cells), *known[number + 1 :])


def mirrored_cells(values: Any, grid: Grid, home: Home) -> Any:
    """Return values of cells, (n, ...), in the order that the cells have in the mirror image.

    Examples
    --------
    >>> mirrored_cells(np.arange(6), Grid(2, 3, 8.0, 43.0), Home.of(np.zeros(1)))
    array([2, 1, 0, 5, 4, 3])
    """
    rows = home.xp.reshape(values, (grid.h, grid.w, *values.shape[1:]))
    return home.xp.reshape(home.xp.flip(rows, axis=1), values.shape)
