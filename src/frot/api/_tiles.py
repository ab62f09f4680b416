"""A matrix of pairs cut into tiles: enough work each to be worth sending, and few clouds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

__all__ = ["Effort", "Tile", "cut_tiles"]

# Tiles to aim at: what a few hundred workers can share evenly, as long as a tile lasts longer
# than it takes to send it, and not so long that much is lost with it.
TILES = 256
LEAST_SECONDS, MOST_SECONDS = 0.1, 1.0
# Clouds that go along with a tile, unless a single pair has more.
MOST_BYTES = 4e6


@dataclass(frozen=True)
class Effort:
    """Rough seconds for a pair of clouds of n and m points: per_pair + per_entry * n * m.

    Examples
    --------
    >>> Effort(per_pair=1.0, per_entry=0.5).of(2, 3, 4)
    8.0
    """

    per_pair: float
    per_entry: float

    def of(self, pairs: float, n: float, m: float) -> float:
        """Return the seconds for some pairs, of n and m points in all."""
        return self.per_pair * pairs + self.per_entry * n * m


class Tile(NamedTuple):
    """The pairs (i, j) of some rows and columns; of equal ones only those with i <= j.

    Examples
    --------
    >>> list(Tile(range(0, 2), range(2, 4)).pairs(diagonal=False))
    [(0, 2), (0, 3), (1, 2), (1, 3)]
    >>> list(Tile(range(0, 2), range(0, 2), triangle=True).pairs(diagonal=True))
    [(0, 0), (0, 1), (1, 1)]
    """

    rows: range
    cols: range
    triangle: bool = False

    def pairs(self, diagonal: bool) -> Iterator[tuple[int, int]]:
        """Yield the pairs, of a triangle with or without its diagonal."""
        for i in self.rows:
            for j in self.cols:
                if not self.triangle or i < j or (diagonal and i == j):
                    yield i, j

    def count_pairs(self, diagonal: bool) -> int:
        """Return how many pairs there are."""
        n = len(self.rows)
        return n * (n + 1 if diagonal else n - 1) // 2 if self.triangle else n * len(self.cols)

    def halves(self) -> list[Tile]:
        """Cut the longer side in two; a triangle into two triangles and a square."""
        rows, cols, triangle = self
        if triangle:
            a, b = _halves(rows)
            return [Tile(a, a, True), Tile(a, b), Tile(b, b, True)]
        if len(rows) >= len(cols):
            return [Tile(half, cols) for half in _halves(rows)]
        return [Tile(rows, half) for half in _halves(cols)]


def _halves(whole: range) -> tuple[range, range]:
    middle = whole.start + len(whole) // 2
    return range(whole.start, middle), range(middle, whole.stop)


def cut_tiles(
    rows: np.ndarray, cols: np.ndarray | None, effort: Effort, width: int, diagonal: bool
) -> tuple[list[Tile], list[float]]:
    """Cut the matrix of all pairs into tiles of about equal effort, the dearest first.

    They depend on nothing but the arguments, so that a run that goes on where another ended has
    the same ones, with however many workers.

    Parameters
    ----------
    rows, cols : arrays of shape (N,) and (M,) of int
        Points in each cloud; None for `cols` is the upper triangle of rows by rows.
    effort : Effort
    width : int
        Features of a point.
    diagonal : bool
        Whether the triangle has its diagonal.

    Returns
    -------
    tiles : list of Tile
    seconds : list of float
        The effort of each.

    Examples
    --------
    >>> tiles, seconds = cut_tiles(np.full(3, 10), None, Effort(0.07, 0.0), 1, diagonal=False)
    >>> [list(tile.pairs(diagonal=False)) for tile in tiles]
    [[(0, 1)], [(0, 2)], [(1, 2)]]
    >>> seconds
    [0.07, 0.07, 0.07]
    """
    up_to_row = np.concatenate([[0], np.cumsum(rows)])
    up_to_col = up_to_row if cols is None else np.concatenate([[0], np.cumsum(cols)])

    def seconds(tile: Tile) -> float:
        n, m = _total(up_to_row, tile.rows), _total(up_to_col, tile.cols)
        return effort.of(tile.count_pairs(diagonal), n, m / 2 if tile.triangle else m)

    def size(tile: Tile) -> float:
        n, m = _total(up_to_row, tile.rows), _total(up_to_col, tile.cols)
        return 8.0 * width * (n if tile.triangle else n + m)

    whole = Tile(
        range(len(rows)), range(len(rows) if cols is None else len(cols)), triangle=cols is None
    )
    most = float(np.clip(seconds(whole) / TILES, LEAST_SECONDS, MOST_SECONDS))
    found: list[tuple[float, Tile]] = []
    uncut = [whole]
    while uncut:
        tile = uncut.pop()
        count = tile.count_pairs(diagonal)
        if count == 0:
            continue
        cost = seconds(tile)
        if (cost <= most and size(tile) <= MOST_BYTES) or (count == 1 and len(tile.rows) == 1):
            found.append((cost, tile))
        else:
            uncut += reversed(tile.halves())
    # A long one that begins last would leave all other workers idle.
    found.sort(key=lambda pair: -pair[0])
    return [tile for _, tile in found], [cost for cost, _ in found]


def _total(up_to: np.ndarray, where: range) -> float:
    return float(up_to[where.stop] - up_to[where.start])
