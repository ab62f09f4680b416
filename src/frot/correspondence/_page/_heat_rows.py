"""Rows of scores, small enough to embed: the best cells of each, the others as means of blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from frot.correspondence._feature_map import Grid

__all__ = ["NEAR", "HeatRows", "Reach", "heat_rows", "reach_of"]

# Three bytes each.
MAX_KEPT = 400_000
# Along the longer side of the target, for what is not kept.
_BLOCKS = 12
_AT_ONCE = 256


class Reach(NamedTuple):
    """Which cells are around a point: how far, and in a square or in a circle."""

    strides: float
    square: bool


NEAR = Reach(1.0, False)


def reach_of(match: Any) -> Reach:
    """Return which cells the match itself reads a point off, where it says so."""
    reading = getattr(match, "transferring", None)
    grid = match.source_grid
    if reading is None or reading.mode == "median":
        return NEAR
    if reading.mode == "argmax":
        return Reach(0.0, False)
    if reading.mode == "boxes":
        return Reach(grid.receptive_field // 2 / grid.stride, True)
    return NEAR if reading.radius is None else Reach(reading.radius / grid.stride, False)


@dataclass(frozen=True, eq=False)
class HeatRows:
    """For every cell of the source, where in the target it may be.

    A row's scores are divided by its largest one; 255 stands for that.

    Parameters
    ----------
    cells : array of shape (n, k), uint16 or uint32
        The k cells of the target with the largest scores.
    scores : uint8 array of shape (n, k)
        Their scores.
    block : int
        Cells of the target along a side of a block.
    rest : uint8 array of shape (n, blocks)
        Means over what is not kept, of blocks row by row.
    shares : float32 array of shape (n,)
        Share of the row's sum that its largest score is.
    """

    cells: np.ndarray
    scores: np.ndarray
    block: int
    rest: np.ndarray
    shares: np.ndarray

    def row(self, cell: int, grid: Grid) -> np.ndarray:
        """Return a row as the page draws it, shape (h, w), in [0, 1]."""
        y, x = np.mgrid[: grid.h, : grid.w] // self.block
        made = self.rest[cell][y * -(-grid.w // self.block) + x].astype(float).ravel()
        made[self.cells[cell]] = self.scores[cell]
        return made.reshape(grid.h, grid.w) / 255.0

    def heat(self, point: np.ndarray, source: Grid, grid: Grid, reach: Reach = NEAR) -> np.ndarray:
        """Return the mean of the rows around a point of the source's grid, over its maximum.

        Each as shares of its sum.
        """
        apart = np.linalg.norm(source.centres - point, np.inf if reach.square else 2, axis=1)
        near = np.flatnonzero(apart <= max(reach.strides * source.stride, apart.min())).tolist()
        mean = sum(self.shares[cell] * self.row(cell, grid) for cell in near)
        return mean / max(np.max(mean), 1e-30)


def heat_rows(scores: np.ndarray, grid: Grid, most: int = MAX_KEPT) -> HeatRows:
    """Keep about `most` scores of a matrix of shape (n, m), the same number in each row.

    Examples
    --------
    >>> rows = heat_rows(np.array([[1.0, 4.0, 0.0, 2.0]]), Grid(1, 4, 8.0, 8.0))
    >>> rows.row(0, Grid(1, 4, 8.0, 8.0)).round(2)
    array([[0.25, 1.  , 0.  , 0.5 ]])
    """
    n, m = scores.shape
    kept = int(np.clip(most // n, 16, m)) if m > 16 else m
    block = -(-max(grid.h, grid.w) // _BLOCKS)
    y, x = np.mgrid[: grid.h, : grid.w] // block
    wide = -(-grid.w // block)
    blocks = wide * -(-grid.h // block)
    owner = np.zeros((m, blocks), dtype=np.float32)
    owner[np.arange(m), (y * wide + x).ravel()] = 1.0
    cells = np.empty((n, kept), dtype="<u2" if m <= 65_536 else "<u4")
    values = np.empty((n, kept), dtype=np.uint8)
    rest = np.empty((n, blocks), dtype=np.uint8)
    shares = np.empty(n, dtype="<f4")
    for start in range(0, n, _AT_ONCE):
        part = np.clip(np.asarray(scores[start : start + _AT_ONCE], dtype=np.float32), 0.0, None)
        part = part / np.maximum(part.max(axis=1, keepdims=True), np.float32(1e-30))
        best = np.argpartition(part, m - kept, axis=1)[:, m - kept :]
        rows = slice(start, start + len(part))
        shares[rows] = 1.0 / np.maximum(part.sum(axis=1, dtype=float), 1.0)
        cells[rows] = best
        values[rows] = (255.0 * np.take_along_axis(part, best, axis=1)).round()
        left = np.ones_like(part)
        np.put_along_axis(left, best, 0.0, axis=1)
        means = (part * left) @ owner / np.maximum(left @ owner, 1.0)
        rest[rows] = (255.0 * means).round()
    return HeatRows(cells, values, block, rest, shares)
