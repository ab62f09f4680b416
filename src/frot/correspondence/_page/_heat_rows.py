"""Rows of scores, small enough to embed: the best cells of each, the others as means of blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frot.correspondence._feature_map import Grid

__all__ = ["HeatRows", "heat_rows"]

# Three bytes each.
MAX_KEPT = 400_000
# Along the longer side of the target, for what is not kept.
_BLOCKS = 12
_AT_ONCE = 256


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
        Share of the row's sum that its largest score is; 0 for a cell without votes, as off a mask.
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

    def around(self, point: np.ndarray, source: Grid) -> list[int]:
        """Return the cells close to a point of the source's grid, as `Match.heatmap` reads it.

        Those within a stride that have votes, or else the nearest that have, whatever moves points.
        """
        x, y = (source.centres - point).T
        apart = np.sqrt(x * x + y * y)
        apart[self.shares == 0.0] = np.inf
        return np.flatnonzero(apart <= max(source.stride, apart.min())).tolist()

    def heat(self, point: np.ndarray, source: Grid, grid: Grid) -> np.ndarray:
        """Return the mean of the rows around a point of the source's grid, over its maximum.

        Each as shares of its sum.
        """
        near = self.around(point, source)
        mean = sum(self.shares[cell] * self.row(cell, grid) for cell in near)
        return mean / np.max(mean)


def heat_rows(scores: np.ndarray, grid: Grid, most: int = MAX_KEPT) -> HeatRows:
    """Keep about `most` scores of a matrix of shape (n, m), the same number in each row.

    Examples
    --------
    >>> rows = heat_rows(np.array([[1.0, 4.0, 0.0, 2.0]]), Grid(1, 4, 8.0, 8.0))
    >>> rows.row(0, Grid(1, 4, 8.0, 8.0)).round(2)
    array([[0.25, 1.  , 0.  , 0.5 ]])
    """
    n, m = scores.shape
    if not np.any(scores > 0.0):
        # Where no cell has votes, all have, and spread them evenly.
        scores = np.broadcast_to(np.float32(1.0), (n, m))
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
        largest = part.max(axis=1, keepdims=True)
        part = part / np.where(largest > 0.0, largest, np.float32(1.0))
        best = np.argpartition(part, m - kept, axis=1)[:, m - kept :]
        rows = slice(start, start + len(part))
        shares[rows] = (largest[:, 0] > 0.0) / np.maximum(part.sum(axis=1, dtype=float), 1.0)
        cells[rows] = best
        values[rows] = (255.0 * np.take_along_axis(part, best, axis=1)).round()
        left = np.ones_like(part)
        np.put_along_axis(left, best, 0.0, axis=1)
        means = (part * left) @ owner / np.maximum(left @ owner, 1.0)
        rest[rows] = (255.0 * means).round()
    return HeatRows(cells, values, block, rest, shares)
