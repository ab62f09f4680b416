"""Cosines of some of the layers between the cells of two images, in one of three forms.

Dense: the matrices themselves, one multiplication an entry. Factored: vectors of unit length, one
multiplication a channel. Coarse: products between coarse cells, interpolated a few lines at a time.

Each is a `Part` of all layers: `layers` are their numbers, `home` is where it lives and the
precision it works in. Of rows start..stop of the source and all of the target, `add` adds the sum
of weights (of its layers) times cosines to an array, `sums` returns the sums of a plan times the
cosines, one per layer and in double precision, `product` u^T cos v, and `at` the cosines at a few
arcs, (layers, K).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from frot._base.arrays import Home
from frot.correspondence._interpolation import Line, corners

# What rows that are worked on together may take.
BLOCK_BYTES = 8_000_000
# Entries that are added up in working precision.
SUMMED = 2_048


def lengths(xp: Any, vectors: Any) -> Any:
    """Return the lengths of vectors, (k, channels) to (k,)."""
    return xp.sqrt(xp.sum(vectors * vectors, axis=1))


def inverse(xp: Any, norms: Any) -> Any:
    """Return one over the norms; zero where there is no vector, so that its cosines are zero."""
    ones = xp.ones_like(norms)
    return xp.where(norms > 0.0, 1.0 / xp.where(norms > 0.0, norms, ones), 0.0 * ones)


@dataclass(frozen=True, eq=False)
class DenseLayers:
    """Cosines as an array of shape (layers, n, m): sums over entries are products with a vector."""

    layers: tuple[int, ...]
    values: Any

    @property
    def home(self) -> Home:
        """Where the array lives."""
        return Home.of(self.values)

    def _flat(self, start: int, stop: int) -> Any:
        """Some rows of every layer, (layers, rows m)."""
        xp = self.home.xp
        count, n, m = self.values.shape
        return xp.reshape(self.values, (count, n * m))[:, start * m : stop * m]

    def add(self, out: Any, weights: Any, start: int, stop: int) -> None:
        """Add one product; on the host in blocks of rows, so that no second matrix is made."""
        xp, m = self.home.xp, self.values.shape[2]
        for part in row_blocks(self.home, start, stop, 8 * m):
            rows = xp.reshape(weights @ self._flat(part.start, part.stop), (-1, m))
            out[part.start - start : part.stop - start, :] += rows

    def sums(self, plan: Any, start: int, stop: int) -> Any:
        """Sums of blocks in working precision, of blocks in double."""
        xp, home = self.home.xp, self.home
        if not home.on_host:
            # Few rows of a long matrix would keep a device idle.
            rows = xp.permute_dims(self.values[:, start:stop, :], (1, 0, 2)) @ plan[:, :, None]
            return xp.sum(rows[:, :, 0], axis=0, dtype=xp.float64)
        flat, entries = self._flat(start, stop), xp.reshape(plan, (-1,))
        total = xp.zeros((len(self.layers),), dtype=xp.float64, device=home.device)
        for first in range(0, entries.shape[0], SUMMED):
            part = slice(first, first + SUMMED)
            total += xp.astype(flat[:, part] @ entries[part], xp.float64)
        return total

    def product(self, u: Any, v: Any, start: int, stop: int) -> Any:
        """Products with v, then u."""
        return (self.values[:, start:stop, :] @ v) @ u

    def at(self, rows: Any, cols: Any) -> Any:
        """Entries."""
        return self.home.xp.take(
            self._flat(0, self.values.shape[1]), rows * self.values.shape[2] + cols, axis=1
        )

    def cast(self, dtype: Any) -> DenseLayers:
        """The same in another precision."""
        return replace(self, values=self.home.xp.astype(self.values, dtype, copy=False))


@dataclass(frozen=True, eq=False)
class FactoredLayers:
    """Vectors of unit length side by side, (n, channels) and (m, channels)."""

    layers: tuple[int, ...]
    channels: tuple[int, ...]
    X: Any
    Y: Any

    @property
    def home(self) -> Home:
        """Where the vectors live."""
        return Home.of(self.X)

    def _layers(self) -> Iterator[slice]:
        ends = np.cumsum(self.channels)
        return (slice(int(e - c), int(e)) for e, c in zip(ends, self.channels, strict=True))

    def add(self, out: Any, weights: Any, start: int, stop: int) -> None:
        """One product over all channels."""
        xp = self.home.xp
        each = xp.concat(
            [
                xp.broadcast_to(weights[k : k + 1], (count,))
                for k, count in enumerate(self.channels)
            ],
            axis=0,
        )
        Y = xp.matrix_transpose(self.Y)
        for part in row_blocks(self.home, start, stop, 8 * out.shape[1]):
            out[part.start - start : part.stop - start, :] += (self.X[part, :] * each) @ Y

    def sums(self, plan: Any, start: int, stop: int) -> Any:
        """One product over all channels, then sums of each layer's."""
        xp = self.home.xp
        each = xp.sum(self.X[start:stop, :] * (plan @ self.Y), axis=0, dtype=xp.float64)
        return xp.stack([xp.sum(each[part]) for part in self._layers()], axis=0)

    def product(self, u: Any, v: Any, start: int, stop: int) -> Any:
        """Means of the vectors, multiplied."""
        xp = self.home.xp
        each = (u @ self.X[start:stop, :]) * (v @ self.Y)
        return xp.stack([xp.sum(each[part]) for part in self._layers()], axis=0)

    def at(self, rows: Any, cols: Any) -> Any:
        """Products of single vectors."""
        xp = self.home.xp
        each = xp.take(self.X, rows, axis=0) * xp.take(self.Y, cols, axis=0)
        return xp.stack([xp.sum(each[:, part], axis=1) for part in self._layers()], axis=0)

    def cast(self, dtype: Any) -> FactoredLayers:
        """The same in another precision."""
        astype = self.home.xp.astype
        return replace(self, X=astype(self.X, dtype), Y=astype(self.Y, dtype))


def row_blocks(home: Home, start: int, stop: int, row: int, size: int = BLOCK_BYTES) -> list[slice]:
    """Cut rows of so many bytes into blocks that stay in a core's cache.

    On a device one block is as good: a launch costs more than memory.
    """
    step = max(1, size // row) if home.on_host else stop - start
    return [slice(at, min(at + step, stop)) for at in range(start, stop, step)]


# Fine cells across a tile: fewer need fewer coarse columns each, more make larger products.
TILE = 8


class _Tile(NamedTuple):
    """Fine cells, their weights, and the rows of K that these are for.

    Weights are of shape (lines, cells, columns, slots, layers), values (columns, slots, layers, m).
    """

    cells: tuple[int, int, slice, slice]
    weights: Any
    values: Any


@dataclass(frozen=True, eq=False)
class CoarseLayers:
    r"""Products between coarse cells, for layers that share their grids.

    .. math:: \cos = D_s U_s K U_t^\top D_t, \qquad K = F G^\top, \quad U = U_y \otimes U_x .

    Between two coarse rows and a few coarse columns of the source, a tile of fine cells sees few
    rows of K; these are interpolated on the target's side and multiplied by the tile's weights,
    one matrix product for all layers of the same grids.
    """

    layers: tuple[int, ...]
    # Products of the vectors of the source's cells with the target's, (hs, ws, layers, wt, ht).
    K: Any
    # Down and across.
    source: tuple[Line, Line]
    target: tuple[Line, Line]
    # Inverse lengths of the interpolated vectors, (layers, h, w) and (layers, h w).
    ds: Any
    dt: Any

    @property
    def home(self) -> Home:
        """Where the products live."""
        return Home.of(self.K)

    def only(self, which: int) -> CoarseLayers:
        """One layer of them, as the first of all."""
        one = slice(which, which + 1)
        return replace(
            self, layers=(0,), K=self.K[:, :, one, ...], ds=self.ds[one], dt=self.dt[one]
        )

    def _row(self, k: int, down: Any, across: Any) -> Any:
        """Row k of the source's coarse grid against all fine cells of the target, (ws, L, m)."""
        xp = self.home.xp
        _, ws, count, wt, ht = self.K.shape
        fine = down.shape[1]
        found = xp.reshape(self.K[k, ...], (ws * count * wt, ht)) @ down
        found = xp.matrix_transpose(xp.reshape(found, (ws * count, wt, fine)))
        found = xp.reshape(found, (ws * count * fine, wt)) @ across
        found = xp.reshape(found, (ws, count, fine * across.shape[1]))
        found *= self.dt
        return found

    def _tiles(self, start: int, stop: int) -> Iterator[_Tile]:
        """Cut rows start..stop into tiles between two coarse rows and a few coarse columns.

        The two rows alternate between the slots of a buffer, so that each is worked out once.
        """
        xp, home = self.home.xp, self.home
        down, across = self.source
        sides = [home.bring(line.matrix.T) for line in self.target]
        _, ws, count, _, _ = self.K.shape
        slots = min(2, down.old)
        room = (ws, slots, count, self.dt.shape[1])
        buffer = xp.empty(room, dtype=home.dtype, device=home.device)
        held = [-1] * slots
        pieces = max(1, round(across.new / TILE))
        edges = np.linspace(0, across.new, pieces + 1).astype(int)
        for first, last, left, right in _rectangles(start, stop, across.new):
            lows = down.low[first:last]
            for k in np.unique(lows).tolist():
                for at in range(k, k + slots):
                    if held[at % slots] != at:
                        buffer[:, at % slots, :, :] = self._row(at, *sides)
                        held[at % slots] = at
                here = first + np.flatnonzero(lows == k)
                y0, y1 = int(here[0]), int(here[-1]) + 1
                taps = down.taps[y0:y1, :slots]
                taps = home.bring(taps if k % slots == 0 else taps[:, ::-1].copy())
                for begin, end in pairwise(edges.tolist()):
                    x0, x1 = max(begin, left), min(end, right)
                    if x0 >= x1:
                        continue
                    c0 = int(across.low[x0])
                    c1 = min(int(across.low[x1 - 1]) + 2, across.old)
                    sideways = home.bring(across.matrix[x0:x1, c0:c1])
                    scale = xp.permute_dims(self.ds[:, y0:y1, x0:x1], (1, 2, 0))
                    weights = (
                        sideways[None, :, :, None, None]
                        * taps[:, None, None, :, None]
                        * scale[:, :, None, None, :]
                    )
                    lines_in, across_in = slice(y0 - first, y1 - first), slice(x0 - left, x1 - left)
                    cells = (first * across.new + left - start, right - left, lines_in, across_in)
                    yield _Tile(cells, weights, buffer[c0:c1, ...])

    def add(self, out: Any, weights: Any, start: int, stop: int) -> None:
        """One product a tile."""
        xp, m = self.home.xp, out.shape[1]
        for cells, shares, values in self._tiles(start, stop):
            ny, nx = shares.shape[:2]
            factor = xp.reshape(shares * weights, (ny * nx, -1))
            found = factor @ xp.reshape(values, (-1, m))
            rows = _view(xp, out, cells)
            rows += xp.reshape(found, (ny, nx, m))

    def sums(self, plan: Any, start: int, stop: int) -> Any:
        """The plan's rows of a tile times K's rows, weighted."""
        xp, m = self.home.xp, plan.shape[1]
        total = 0.0
        for cells, shares, values in self._tiles(start, stop):
            ny, nx = shares.shape[:2]
            block = xp.reshape(_view(xp, plan, cells), (ny * nx, m))
            found = block @ xp.matrix_transpose(xp.reshape(values, (-1, m)))
            found = xp.reshape(found, shares.shape) * shares
            total = total + xp.sum(found, axis=(0, 1, 2, 3), dtype=xp.float64)
        return total

    def product(self, u: Any, v: Any, start: int, stop: int) -> Any:
        """Pool both sides to the coarse grids."""
        xp, home = self.home.xp, self.home
        count, h, w = self.ds.shape
        full = xp.zeros((h * w,), dtype=home.dtype, device=home.device)
        full[start:stop] = u
        left = _pooled(home, self.ds * xp.reshape(full, (1, h, w)), self.source)
        lines = self.target
        shape = (count, lines[0].new, lines[1].new)
        right = _pooled(home, xp.reshape(self.dt * v[None, :], shape), lines)
        hs, ws = self.K.shape[:2]
        found = []
        for k in range(count):
            rows = xp.reshape(self.K[:, :, k, ...], (hs * ws, -1))
            found.append(
                xp.reshape(left[k], (-1,)) @ rows @ xp.reshape(xp.matrix_transpose(right[k]), (-1,))
            )
        return xp.stack(found, axis=0)

    def at(self, rows: Any, cols: Any) -> Any:
        """Sixteen products an arc: four corners on either side."""
        xp, home = self.home.xp, self.home
        count, _, w = self.ds.shape
        wide = self.target[1].new
        total = 0.0
        source = _corners(home, self.source, rows, w)
        target = _corners(home, self.target, cols, wide)
        for y, x, share in source:
            for v, u, other in target:
                picked = self.K[y, x, :, u, v]
                total = total + picked * (share * other)[:, None]
        total = xp.matrix_transpose(xp.reshape(total, (-1, count)))
        ds = xp.take(xp.reshape(self.ds, (count, -1)), rows, axis=1)
        return total * ds * xp.take(self.dt, cols, axis=1)

    def cast(self, dtype: Any) -> CoarseLayers:
        """The same in another precision."""
        astype = self.home.xp.astype
        return replace(
            self, K=astype(self.K, dtype), ds=astype(self.ds, dtype), dt=astype(self.dt, dtype)
        )


def _rectangles(start: int, stop: int, width: int) -> list[tuple[int, int, int, int]]:
    """Cut cells start..stop into rectangles of lines (first, last, left, right).

    A part of a line at either end, and whole lines in between.
    """
    first, left = divmod(start, width)
    last, right = divmod(stop, width)
    if first == last:
        return [(first, first + 1, left, right)]
    found = [(first, first + 1, left, width)] if left else []
    if last > first + bool(left):
        found.append((first + bool(left), last, 0, width))
    return [*found, (last, last + 1, 0, right)] if right else found


def _view(xp: Any, matrix: Any, cells: tuple[int, int, slice, slice]) -> Any:
    """Return the rows of a tile, (lines, cells, m), sharing memory with the matrix."""
    begin, width, lines, across = cells
    end = begin + lines.stop * width
    whole = xp.reshape(matrix[begin:end, :], (lines.stop, width, matrix.shape[1]))
    return whole[lines, across, :]


def _pooled(home: Home, fine: Any, lines: tuple[Line, Line]) -> Any:
    """Return U^T of (layers, h, w)."""
    down, across = (home.bring(line.matrix) for line in lines)
    return home.xp.matrix_transpose(down) @ (fine @ across)


def _corners(
    home: Home, lines: tuple[Line, Line], cells: Any, width: int
) -> list[tuple[Any, Any, Any]]:
    """Return row, column and weight of the four corners of cells."""
    xp = home.xp
    y, x = cells // width, cells % width
    found = []
    for rows, cols, down, across in corners(*lines):
        share = xp.take(home.bring(down), y, axis=0) * xp.take(home.bring(across), x, axis=0)
        row = xp.take(home.indices(rows), y, axis=0)
        found.append((row, xp.take(home.indices(cols), x, axis=0), share))
    return found


Part = DenseLayers | FactoredLayers | CoarseLayers
