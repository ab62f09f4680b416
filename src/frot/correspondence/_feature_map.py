"""What one layer of a network says about an image, and where in the image it says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["FeatureMap", "Grid"]


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """The activations of one layer.

    Parameters
    ----------
    name : str
        The layer's name.
    values : array of shape (channels, h, w)
        Single precision.
    stride : float
        Pixels of the network's input between neighbouring cells.
    receptive_field : float
        Pixels of the network's input, across, that a cell sees.

    Examples
    --------
    >>> FeatureMap("stem", np.zeros((64, 75, 57), dtype="float32"), 4, 11).grid.count
    4275
    """

    name: str
    values: Any
    stride: float
    receptive_field: float

    @property
    def channels(self) -> int:
        """Number of channels."""
        return int(self.values.shape[0])

    @property
    def grid(self) -> Grid:
        """The cells."""
        _, h, w = self.values.shape
        return Grid(int(h), int(w), float(self.stride), float(self.receptive_field))


@dataclass(frozen=True)
class Grid:
    """Cells over an image, row by row; cell (y, x) has its centre at stride (x, y).

    Parameters
    ----------
    h, w : int
        Rows and columns of cells.
    stride : float
        Pixels between the centres of neighbours.
    receptive_field : float
        Pixels across that a cell sees.

    Examples
    --------
    >>> Grid(2, 3, 8.0, 11.0).centres.tolist()
    [[0.0, 0.0], [8.0, 0.0], [16.0, 0.0], [0.0, 8.0], [8.0, 8.0], [16.0, 8.0]]
    """

    h: int
    w: int
    stride: float
    receptive_field: float

    @property
    def count(self) -> int:
        """Number of cells."""
        return self.h * self.w

    @property
    def centres(self) -> np.ndarray:
        """Centres of the cells as (x, y), shape (h w, 2)."""
        y, x = np.mgrid[: self.h, : self.w]
        return self.stride * np.stack([x.ravel(), y.ravel()], axis=1).astype(float)

    @property
    def boxes(self) -> np.ndarray:
        """What the cells see, as (left, top, right, bottom), shape (h w, 4)."""
        reach = self.receptive_field // 2
        centres = self.centres
        return np.concatenate([centres - reach, centres + reach], axis=1)

    def inside(self, size: tuple[int, int]) -> np.ndarray:
        """Return which cells see at most a stride beyond an image of (h, w) pixels, (h w,).

        All of them where none does: the network sees further than the image is wide.

        Examples
        --------
        >>> Grid(4, 4, 8.0, 19.0).inside((32, 32)).reshape(4, 4).astype(int)[1]
        array([0, 1, 1, 1])
        """
        low, high = self.boxes[:, :2], self.boxes[:, 2:]
        limit = np.array(size[::-1]) + self.stride
        found = np.all((low >= -self.stride) & (high < limit), axis=1)
        return found if found.any() else np.ones(self.count, dtype=bool)
