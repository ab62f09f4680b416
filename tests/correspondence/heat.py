"""What the script of a match's page draws, in Python."""

import numpy as np

from frot.correspondence import Grid
from frot.correspondence.page import HeatRows


def drawn_row(rows: HeatRows, cell: int, grid: Grid) -> np.ndarray:
    """A row as the page draws it, shape (h, w), in [0, 1]."""
    y, x = np.mgrid[: grid.h, : grid.w] // rows.block
    made = rows.rest[cell][y * -(-grid.w // rows.block) + x].astype(float).ravel()
    made[rows.cells[cell]] = rows.scores[cell]
    return made.reshape(grid.h, grid.w) / 255.0


def cells_around(rows: HeatRows, point: np.ndarray, source: Grid) -> list[int]:
    """The cells within a stride of a point that have votes, or else the nearest that have."""
    x, y = (source.centres - point).T
    apart = np.sqrt(x * x + y * y)
    apart[rows.shares == 0.0] = np.inf
    return np.flatnonzero(apart <= max(source.stride, apart.min())).tolist()


def drawn_heat(rows: HeatRows, point: np.ndarray, source: Grid, grid: Grid) -> np.ndarray:
    """The mean of the rows around a point, each as shares of its sum, over its maximum."""
    mean = sum(
        rows.shares[cell] * drawn_row(rows, cell, grid)
        for cell in cells_around(rows, point, source)
    )
    return mean / np.max(mean)
