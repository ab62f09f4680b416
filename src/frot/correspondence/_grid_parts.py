"""Cosines of some of the layers, kept in one of three ways.

Kept: the matrices themselves, one multiplication an entry. Factored: vectors of unit length, one
multiplication a channel. Coarse: products between coarse cells (in a module of its own).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from frot._arrays import Home

__all__ = ["FactoredLayers", "KeptLayers", "Part"]

# What rows that are worked on together may take.
BLOCK_BYTES = 500_000
PRODUCT_BYTES = 8_000_000


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
    """Cosines as an array of shape (n, layers, m): rows of a block lie together."""

    layers: tuple[int, ...]
    values: Any

    @property
    def home(self) -> Home:
        """Where the array lives."""
        return Home.of(self.values)

    def add(self, out: Any, weights: Any, start: int, stop: int) -> None:
        """A few rows at a time, so that they are read and written once; on a device all at once."""
        if not self.home.on_host:
            out += (weights[None, None, :] @ self.values[start:stop, :, :])[:, 0, :]
            return
        for part in _blocks(self.home, start, stop, out.shape[1]):
            rows = out[part.start - start : part.stop - start, :]
            for k in range(self.values.shape[1]):
                rows += weights[k] * self.values[part, k, :]

    def sums(self, plan: Any, start: int, stop: int) -> Any:
        """Sums along rows in working precision, of rows in double."""
        xp = self.home.xp
        rows = (self.values[start:stop, :, :] @ plan[:, :, None])[:, :, 0]
        return xp.sum(rows, axis=0, dtype=xp.float64)

    def product(self, u: Any, v: Any, start: int, stop: int) -> Any:
        """Products with v, then u."""
        return u @ (self.values[start:stop, :, :] @ v)

    def at(self, rows: Any, cols: Any) -> Any:
        """Entries."""
        xp = self.home.xp
        n, count, m = self.values.shape
        flat = xp.reshape(self.values, (n * count * m,))
        picked = [xp.take(flat, (rows * count + k) * m + cols, axis=0) for k in range(count)]
        return xp.stack(picked, axis=0)

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
        for part in _blocks(self.home, start, stop, out.shape[1], PRODUCT_BYTES):
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


def _blocks(home: Home, start: int, stop: int, m: int, size: int = BLOCK_BYTES) -> list[slice]:
    """Cut rows into blocks that stay in a core's cache; on a device one block is as good."""
    step = max(1, size // (8 * m)) if home.on_host else stop - start
    return [slice(at, min(at + step, stop)) for at in range(start, stop, step)]
