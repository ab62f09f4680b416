"""Costs of layers, put together from whatever forms their cosines are kept in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from frot._base.arrays import Home
from frot.correspondence._grid_parts import SUMMED, Part
from frot.costs.protocol import Rounding, constant_potentials
from frot.costs.stack import StackGeometry

__all__ = ["GridGeometry"]


@dataclass(frozen=True, eq=False)
class GridGeometry:
    """Costs of L layers between n and m cells: a batch of one for the entropic engines.

    Parameters
    ----------
    parts : tuple of Part
        The layers, in whatever form, in working precision.
    size : tuple of int
        (n, m).
    channels : array of shape (L,)
        What a cosine is a sum over, for the bounds on rounding.
    home : Home
        Where results go, and their precision; bounds are about the parts' own.
    scale : array of shape (L,)
        Factors of the costs.
    span : tuple of int
        The rows that are looked at.
    """

    parts: tuple[Part, ...]
    size: tuple[int, int]
    channels: np.ndarray
    home: Home
    scale: np.ndarray
    span: tuple[int, int]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(1, L, n, m)."""
        start, stop = self.span
        return (1, len(self.channels), stop - start, self.size[1])

    @property
    def work(self) -> Home:
        """Where the parts live, and their precision."""
        return self.parts[0].home

    def _gather(self, found: list[Any]) -> Any:
        """Put the parts' numbers, (layers, ...) each, into the order of the layers."""
        xp = self.home.xp
        order = np.argsort(np.concatenate([part.layers for part in self.parts]), kind="stable")
        return xp.take(xp.concat(found, axis=0), self.home.indices(order), axis=0)

    def mix(self, alpha: Any) -> Any:
        """Return the mixed cost, (1, n, m)."""
        xp, work = self.home.xp, self.work
        weights = alpha[0, :] * self.home.bring(self.scale)
        level = 2.0 * float(xp.sum(weights))
        out = xp.full(self.shape[2:], level, dtype=work.dtype, device=work.device)
        weights = xp.astype(-2.0 * weights, work.dtype)
        for part in self.parts:
            part.add(out, xp.take(weights, work.indices(part.layers), axis=0), *self.span)
        return xp.astype(out, self.home.dtype, copy=False)[None, ...]

    def inner(self, plan: Any) -> Any:
        """Return the costs of a plan, (1, L); sums of rows are in double precision."""
        xp = self.home.xp
        rows = xp.sum(plan[0, ...], axis=1)
        block = xp.astype(plan[0, ...], self.work.dtype, copy=False)
        found = self._gather([part.sums(block, *self.span) for part in self.parts])
        return self._costs(xp.sum(rows, dtype=xp.float64), found)

    def product(self, u: Any, v: Any) -> Any:
        """Return the costs of u v^T from moments, (1, L)."""
        xp, work = self.home.xp, self.work
        left, right = (xp.astype(x[0, :], work.dtype) for x in (u, v))
        found = self._gather([part.product(left, right, *self.span) for part in self.parts])
        return self._costs(xp.sum(u) * xp.sum(v), found)

    def _costs(self, mass: Any, cosines: Any) -> Any:
        """Return 2 mass - 2 cosines, scaled, in the precision of results."""
        xp = self.home.xp
        found = 2.0 * mass - 2.0 * xp.astype(cosines, xp.float64)
        return xp.astype(found * self.home.double().bring(self.scale), self.home.dtype)[None, :]

    def least(self, u: Any, v: Any) -> Any:
        """No cost is negative."""
        count = self.shape[1]
        return self.home.xp.zeros((1, count), dtype=self.home.dtype, device=self.home.device)

    def least_potentials(self, alpha: Any, u: Any, v: Any) -> tuple[Any, Any]:
        """Return nothing for either side."""
        return constant_potentials(alpha, self.least(u, v), u, v)

    def take(self, rows: Any, cols: Any) -> StackGeometry:
        """The costs between some cells, as a stack."""
        each = [np.broadcast_to(self._doubts[:, None], (len(self.scale), k)) for k in self.size]
        return StackGeometry(self.stack(), error=(each[0], 0.0 * each[1])).take(rows, cols)

    def stand_in(self, rows: Any, cols: Any) -> GridGeometry:
        """Cells stay where they are: those without weight cost no more than others do."""
        return self

    def rows(self, part: slice) -> GridGeometry:
        """The costs of some rows only."""
        start, stop, _ = part.indices(self.shape[2])
        return replace(self, span=(self.span[0] + start, self.span[0] + stop))

    def members(self, index: Any) -> GridGeometry:
        """A batch of one has one member."""
        return self

    def stack(self) -> Any:
        """All costs, (1, L, n, m), one layer at a time."""
        eye = np.eye(self.shape[1])
        found = [self.mix(self.home.bring(alone[None, :]))[0, ...] for alone in eye]
        return self.home.xp.stack(found, axis=0)[None, ...]

    @property
    def _doubts(self) -> np.ndarray:
        """Bounds on the rounding of a cosine, (L,): k errors of either sign add up like sqrt(k)."""
        unit = float(self.home.xp.finfo(self.work.dtype).eps)
        return 2.0 * self.scale * (16.0 + 2.0 * np.sqrt(self.channels)) * unit

    def mix_error(self, alpha: Any) -> Rounding:
        """Bound the rounding of cosines, and of the sum over layers: the same for all cells."""
        home, (_, _, n, m) = self.home, self.shape
        unit = float(home.xp.finfo(self.work.dtype).eps)
        each = self._doubts + 4.0 * self.scale * np.sqrt(self.shape[1]) * unit
        rows = home.xp.zeros((1, n), dtype=home.dtype, device=home.device)
        rows = rows + home.xp.sum(alpha * home.bring(each), axis=1)[:, None]
        cols = home.xp.zeros((1, m), dtype=home.dtype, device=home.device)
        return Rounding(home.xp.zeros_like(alpha[:, 0]), rows, cols)

    def inner_error(self, phi: Any, u: Any, v: Any) -> Any:
        """Bound the rounding of cosines, and of the sums along rows; those are added in double."""
        unit = float(self.home.xp.finfo(self.work.dtype).eps)
        along = 2.0 * self.scale * (8.0 + 2.0 * np.sqrt(max(self.size[1], SUMMED))) * unit
        return self.home.bring((self._doubts + along)[None, :])

    def double(self) -> GridGeometry:
        """Results in double precision; what single precision worked out is bounded as such."""
        return replace(self, home=self.home.double())

    def single(self) -> GridGeometry:
        """The same costs worked out in single precision."""
        xp = self.home.xp
        home = Home(xp, self.home.device, xp.float32)
        return replace(self, parts=tuple(part.cast(xp.float32) for part in self.parts), home=home)

    @property
    def nonnegative(self) -> bool:
        """No cosine exceeds one."""
        return True

    def sizes(self, u: Any, v: Any) -> Any:
        """Return the mean size of every layer's costs, (1, L)."""
        return self.product(u, v)

    def rescaled(self, factor: Any) -> GridGeometry:
        """The costs times a factor each."""
        return replace(self, scale=self.scale * np.asarray(factor))

    def at(self, rows: Any, cols: Any) -> Any:
        """Return the costs at a few arcs, (L, K)."""
        xp = self.home.xp
        found = self._gather([part.at(rows + self.span[0], cols) for part in self.parts])
        return self.home.double().bring(self.scale)[:, None] * (
            2.0 - 2.0 * xp.astype(found, xp.float64)
        )
