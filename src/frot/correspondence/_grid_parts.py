"""Cosines of some of the layers, kept in one of three ways.

Kept: the matrices themselves, one multiplication an entry. Factored: vectors of unit length, one
multiplication a channel. Coarse: products between coarse cells (in a module of its own).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from frot._base.arrays import Home

__all__ = ["SUMMED", "FactoredLayers", "KeptLayers", "Part"]

# What rows that are worked on together may take.
BLOCK_BYTES = 8_000_000
# Entries that are added up in working precision.
SUMMED = 2_048


class Part(Protocol):
    """Cosines of some layers between rows start..stop of the source and all of the target."""

    @property
    def layers(self) -> tuple[int, ...]:
        """Which layers, counted over all parts."""
        ...

    @property
    def home(self) -> Home:
        """Where it lives, and the precision it works in."""
        ...

    def add(self, out: Any, weights: Any, start: int, stop: int) -> None:
        """Add the sum of weights (of its layers) times cosines to `out`, (stop - start, m)."""
        ...

    def sums(self, plan: Any, start: int, stop: int) -> Any:
        """Return the sums of plan times cosine, one a layer, in double precision."""
        ...

    def product(self, u: Any, v: Any, start: int, stop: int) -> Any:
        """Return u^T cos v, one a layer."""
        ...

    def at(self, rows: Any, cols: Any) -> Any:
        """Return the cosines at a few arcs, shape (layers, K)."""
        ...

    def cast(self, dtype: Any) -> Part:
        """The same in another precision."""
        ...


@dataclass(frozen=True, eq=False)
class KeptLayers:
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
        step = max(1, BLOCK_BYTES // (8 * m)) if self.home.on_host else stop - start
        for first in range(start, stop, step):
            last = min(first + step, stop)
            rows = xp.reshape(weights @ self._flat(first, last), (last - first, m))
            out[first - start : last - start, :] += rows

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

    def cast(self, dtype: Any) -> KeptLayers:
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
        for part in _blocks(self.home, start, stop, out.shape[1]):
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


def _blocks(home: Home, start: int, stop: int, m: int) -> list[slice]:
    """Cut rows into blocks that stay in a core's cache; on a device one block is as good."""
    step = max(1, BLOCK_BYTES // (8 * m)) if home.on_host else stop - start
    return [slice(at, min(at + step, stop)) for at in range(start, stop, step)]
