"""`Stack`: costs kept as an array (..., L, n, m), given as one or summed from differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from frot._base.arrays import UNIT, Array, Home, blocks, summation, to_numpy, unit_of
from frot.costs.protocol import Costs, Rounding
from frot.plans.plan import Plan, is_sparse

# Rows that are converted at a time stay in the cache: on the host 12 x 1200 x 1200 single-precision
# costs are mixed in 11 ms by 2 MB and in 70 by 32 MB. An H200 mixes 34 x 4275 x 4275 in 14 ms by
# 32 MB and in 4 by 512 MB, as every block is a wait for Python.
HOST_BLOCK, DEVICE_BLOCK = 2_000_000, 512_000_000


@dataclass(frozen=True, eq=False)
class Stack(Costs):
    """Costs given as a stack, which is never copied for sums in a better precision than its own.

    Parameters
    ----------
    C : array of shape (..., L, n, m)
    relative : float
        How far entries may be from the costs they stand for, as a share of each.
    error : arrays of shape (L, n) and (L, m), optional
        The same, whatever the entry (i, j): what its two points add; on the host.
    dtype : optional
        The precision of sums, the stack's own if left out. In another one they are taken by blocks
        of rows, which are converted one after the other and stay in the cache.
    given : optional
        The precision that the costs were given in; the stack's own if left out.
    ends : arrays of shape (..., L), optional
        The least and the largest entry of every group, where they are known.

    Examples
    --------
    >>> costs = Stack(np.array([[[0.0, 1.0]], [[2.0, 0.0]]]))
    >>> costs.mix(np.array([0.5, 0.5]))
    array([[1. , 0.5]])
    >>> costs.inner(Plan(np.array([[0.5, 0.5]])))
    array([0.5, 1. ])
    """

    C: Array
    relative: float = 0.0
    error: tuple[np.ndarray, np.ndarray] | None = None
    dtype: Any = None
    given: Any = None  # type: ignore[assignment]
    ends: tuple[Any, Any] | None = None

    def __post_init__(self) -> None:
        if self.given is None:
            object.__setattr__(self, "given", self.C.dtype)

    @cached_property
    def home(self) -> Home:  # type: ignore[override]
        """Where the stack lives, and the precision of its sums."""
        home = Home.of(self.C)
        return home if self.dtype in (None, home.dtype) else replace(home, dtype=self.dtype)

    @cached_property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """(..., L, n, m)."""
        return tuple(self.C.shape)

    @cached_property
    def _converts(self) -> bool:
        """Whether entries have to be converted before they are summed."""
        return self.C.dtype != self.home.dtype

    @cached_property
    def _flat(self) -> Array:
        *batch, n, m = self.shape
        return self.home.xp.reshape(self.C, (*batch, n * m))

    def _converted(self) -> Iterator[tuple[slice, Stack]]:
        """Yield blocks of rows in the precision of sums."""
        *others, n, m = self.shape
        xp, home = self.home.xp, self.home
        budget = HOST_BLOCK if home.on_host else DEVICE_BLOCK
        for part in blocks(n, 8 * m * prod(others), budget):
            block = xp.astype(self.C[..., part, :], home.dtype)
            yield part, Stack(block)

    def matrices(self) -> Iterator[tuple[int, slice, Any]]:
        """Yield the matrix of one group after the other in the precision of sums."""
        *_, count, n, _ = self.shape
        for group in range(count):
            own = self.C[..., group, :, :]
            yield group, slice(0, n), self.home.xp.astype(own, self.home.dtype, copy=False)

    def mix(self, alpha: Array) -> Array:
        """Return the weighted sum, reading on the host only the groups that have weight."""
        *batch, count, n, m = self.shape
        xp = self.home.xp
        if count == 1:
            return alpha[..., None] * self.C[..., 0, :, :]
        if self._converts:
            mixed = xp.empty((*batch, n, m), dtype=self.home.dtype, device=self.home.device)
            for part, block in self._converted():
                mixed[..., part, :] = block.mix(alpha)
            return mixed
        if self.home.library == "numpy" and not batch and np.count_nonzero(alpha) * 3 < count:
            mixed = np.zeros(n * m)
            for group in np.flatnonzero(alpha):
                mixed += alpha[group] * self._flat[group]
        else:
            mixed = alpha[..., None, :] @ self._flat
        return xp.reshape(mixed, (*batch, n, m))

    def inner(self, plan: Any) -> Array:
        """Return the sums of plan times cost, of a sparse one along its arcs."""
        xp, (*_, n, m) = self.home.xp, self.shape
        if isinstance(plan, Plan):
            if is_sparse(plan):
                rows, cols, mass = plan.arcs()
                return self.at(rows, cols) @ self.home.bring(mass)
            plan = self.home.bring(to_numpy(plan.dense()))
        if self._converts:
            parts = self._converted()
            return sum((block.inner(plan[..., part, :]) for part, block in parts), start=0.0)
        return (self._flat @ xp.reshape(plan, (*plan.shape[:-2], n * m, 1)))[..., 0]

    def product(self, u: Array, v: Array) -> Array:
        """Return u^T C v."""
        if self._converts:
            parts = self._converted()
            return sum((block.product(u[..., part], v) for part, block in parts), start=0.0)
        return ((self.C @ v[..., None, :, None])[..., 0] @ u[..., :, None])[..., 0]

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """The least and the largest entry of every group, (..., L) each."""
        xp, home = self.home.xp, self.home
        least, most = self.ends or xp.ends(self._flat, axis=-1)
        return xp.astype(least, home.dtype, copy=False), xp.astype(most, home.dtype, copy=False)

    @cached_property
    def nonnegative(self) -> bool:  # type: ignore[override]
        """Whether no entry is negative."""
        return bool(self.home.xp.min(self._ends[0]) >= 0.0)

    @cached_property
    def peaks(self) -> Array:
        """Largest size of an entry in each group."""
        least, most = self._ends
        return self.home.xp.maximum(most, -least)

    @cached_property
    def _row_peaks(self) -> Array:
        """Largest size of every row and group, (..., L, n)."""
        xp = self.home.xp
        return self.home.bring(xp.maximum(xp.max(self.C, axis=-1), -xp.min(self.C, axis=-1)))

    def stack(self) -> Array:
        """The stack itself."""
        return self.C

    def at(self, rows: np.ndarray, cols: np.ndarray) -> Array:
        """Return entries of the stack."""
        where = np.asarray(rows, dtype=np.intp) * self.shape[-1] + cols
        if self.home.library == "numpy" and not self._converts:
            return self._flat.take(where, axis=-1)
        axis = len(self.shape) - 2
        return self.home.bring(self.home.xp.take(self._flat, self.home.indices(where), axis=axis))

    def entries(self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray) -> Array:
        """Return entries of some groups, one after the other."""
        where = np.asarray(rows, dtype=np.intp) * self.shape[-1] + cols
        return np.stack([self._flat[group][where] for group in groups])

    def rows(self, part: slice) -> Stack:
        """Return the costs of some rows, which are a view."""
        if part.start == 0 and part.stop == self.shape[-2]:
            return self
        error = self.error and (self.error[0][:, part], self.error[1])
        return replace(self, C=self.C[..., part, :], error=error, ends=None)

    def take(self, rows: np.ndarray, cols: np.ndarray) -> Stack:
        """Return the costs between some points, the same ones of every member."""
        take, home, axis = self.home.xp.take, self.home, len(self.shape) - 2
        C = take(take(self.C, home.indices(rows), axis=axis), home.indices(cols), axis=axis + 1)
        error = self.error and (self.error[0][:, rows], self.error[1][:, cols])
        return replace(self, C=C, error=error, ends=None)

    def members(self, index: Array) -> Stack:
        """Return some problems of the batch."""
        return replace(self, C=self.home.xp.take(self.C, index, axis=0), ends=None)

    def member(self, index: int) -> Stack:
        """Return the costs of one problem of the batch."""
        return replace(self, C=self.C[index, ...], ends=None)

    def batch(self) -> Stack:
        """Return the same stack as a batch of one."""
        least, most = self._ends
        return replace(self, C=self.C[None, ...], ends=(least[None, ...], most[None, ...]))

    def to(self, home: Home) -> Stack:
        """Return the stack elsewhere; for sums in a better precision it stays as it is."""
        if home == self.home:
            return self
        if home.library != self.home.library:
            return replace(self, C=home.bring(to_numpy(self.C)), dtype=home.dtype, ends=None)
        single = home.dtype == home.xp.float32
        return replace(self, C=home.bring(self.C) if single else self.C, dtype=home.dtype)

    def rescaled(self, scale: np.ndarray, shift: np.ndarray | None = None) -> Stack:
        """Return ``scale_l * (C_l - shift_l)``, a stack of its own."""
        home, error, unit = self.home, self.error, unit_of(self.home)
        C, relative = home.bring(self.C), self.relative + unit
        if shift is not None:
            # A difference may be small against its parts: errors are bounded by these.
            C = C - home.bring(shift)[:, None, None]
            off = (self.relative + 4.0 * unit) * (to_numpy(self.peaks) + np.abs(shift))
            rows, cols = error or (np.zeros(self.shape[-3:-1]), np.zeros(self.shape[-3::2]))
            error, relative = (rows + off[:, None], cols), 2.0 * unit
        factor = home.bring(scale)[:, None, None]
        C = home.xp.multiply(C, factor, out=C) if shift is not None else C * factor
        return Stack(C, relative, error and (scale[:, None] * error[0], scale[:, None] * error[1]))

    def rounding(self, alpha: Array) -> Rounding:
        """Bound the error of a sum of L products: relative where no term is negative."""
        xp, unit = self.home.xp, unit_of(self.home)
        used = xp.sum(xp.astype(alpha != 0.0, alpha.dtype), axis=-1)
        share = (used + 8.0) * unit + self.relative
        rows = cols = 0.0 * share[..., None]
        if self.error is not None:
            rows, cols = (alpha @ self.home.bring(part) for part in self.error)
        if self.nonnegative:
            return Rounding(share, rows, cols)
        reach = (alpha[..., None, :] @ self._row_peaks)[..., 0, :]
        return Rounding(0.0 * share, rows + share[..., None] * reach, cols)

    def doubt(self, phi: Array, u: Array, v: Array, entries: int | None = None) -> Array:
        """Bound the error of sums over the plan, and of the entries themselves."""
        *_, n, m = self.shape
        xp = self.home.xp
        share = summation(entries or n * m, unit_of(self.home)) + self.relative
        size = xp.abs(phi)
        if not self.nonnegative:
            size = (self._row_peaks @ u[..., :, None])[..., 0]
        bound = share * size
        for weights, part in zip((u, v), self.error or (), strict=False):
            bound = bound + weights @ xp.matrix_transpose(self.home.bring(part))
        return bound


def stack_of(costs: Costs) -> Stack:
    """Form the stack of the costs of one problem; it knows its errors."""
    if isinstance(costs, Stack):
        return costs
    relative, rows, cols = _errors_of(costs)
    return Stack(costs.stack(), relative, (rows, cols), given=costs.given)


def part_of(costs: Costs, rows: np.ndarray, cols: np.ndarray) -> Stack:
    """Form the stack of the costs of one problem between some of its points.

    Examples
    --------
    >>> costs = Stack(np.arange(6.0).reshape(1, 2, 3))
    >>> part_of(costs, np.array([1]), np.array([2, 0])).C
    array([[[5., 3.]]])
    """
    home, (count, _, _) = costs.home, costs.shape
    shape = (count, len(rows), len(cols))
    C = home.xp.empty(shape, dtype=home.dtype, device=home.device)
    for part in blocks(len(rows), 16 * count * len(cols)):
        some = rows[part]
        entries = costs.at(np.repeat(some, len(cols)), np.tile(cols, len(some)))
        C[:, part, :] = home.xp.reshape(entries, (count, len(some), len(cols)))
    relative, by_row, by_col = _errors_of(costs)
    return Stack(C, relative, (by_row[:, rows], by_col[:, cols]), given=costs.given)


def _errors_of(costs: Costs) -> tuple[float, np.ndarray, np.ndarray]:
    """Bound what entries are off by: a share of them, and what points add, (L, n) and (L, m)."""
    count, n, m = costs.shape
    relative, rows, cols = 0.0, np.empty((count, n)), np.empty((count, m))
    for group, alone in enumerate(np.eye(count)):
        off, rows[group], cols[group] = map(to_numpy, costs.rounding(costs.home.bring(alone)))
        relative = max(relative, float(off))
    return relative, rows, cols


def difference_stack(
    X: Array,
    Y: Array,
    columns: np.ndarray,
    offsets: np.ndarray,
    shares: np.ndarray | None = None,
    error: float = 0.0,
) -> Stack:
    r"""Sum squared differences of features, group by group: no digit of a small cost is lost.

    Parameters
    ----------
    X, Y : arrays of shape (..., n, d) and (..., m, d)
    columns, offsets : arrays of int
        Group l has the features ``columns[offsets[l] : offsets[l + 1]]``.
    shares : array of the shape of `columns`, optional
        What it pays for them; one if left out.
    error : float
        What coordinates may be off by, in units in the last place of each.

    Examples
    --------
    >>> X, Y = np.array([[0.0, 1.0]]), np.array([[2.0, 1.0], [0.0, 4.0]])
    >>> difference_stack(X, Y, np.array([0, 1]), np.array([0, 1, 2])).C[:, 0]
    array([[4., 0.],
           [0., 9.]])
    """
    # Taken after they are turned, so that what is subtracted lies as it is read.
    across, down = _columns(X, columns), _columns(Y, columns)
    gaps = across[..., :, None] - down[..., None, :]
    gaps *= gaps
    plain = shares is None or bool((shares == 1.0).all())
    if not plain:
        gaps *= Home.of(gaps).bring(shares)[:, None, None]
    edges = offsets.tolist()
    most = max(end - start for start, end in pairwise(edges))
    # A difference errs by half a unit, its square by one and a half, the sum by one per feature.
    relative = 0.5 * (most + (4.0 if plain else 6.0)) * UNIT
    off = None
    if error > 0.0:
        # A gap moves by e units of x and of y, its square by no more than 4 e (x^2 + y^2).
        each = 4.01 * error * UNIT * (np.ones(len(columns)) if shares is None else shares)
        rows, cols = (
            np.add.reduceat(each[:, None] * _largest(to_numpy(part) ** 2), offsets[:-1], axis=0)
            for part in (across, down)
        )
        off = rows, cols
    if most > 1:
        gaps = _sums(gaps, edges)
    return Stack(gaps, relative, off)


def _largest(squares: np.ndarray) -> np.ndarray:
    """Return the largest of all problems, (k, n)."""
    return squares.reshape(-1, *squares.shape[-2:]).max(axis=0)


def _columns(points: Array, columns: np.ndarray) -> Array:
    """Return some columns of points (..., n, d) as rows, (..., k, n)."""
    if isinstance(points, np.ndarray):
        # Small problems are solved in less time than a library's own way of saying this takes.
        return points.swapaxes(-1, -2).take(columns, axis=-2)
    home = Home.of(points)
    turned = home.xp.matrix_transpose(points)
    return home.xp.take(turned, home.indices(columns), axis=turned.ndim - 2)


def _sums(gaps: Array, edges: list[int]) -> Array:
    """Sum consecutive parts of the third axis from the end of (..., k, n, m)."""
    if isinstance(gaps, np.ndarray):
        *batch, _, n, m = gaps.shape
        sums = np.empty((*batch, len(edges) - 1, n, m))
        for group, (start, end) in enumerate(pairwise(edges)):
            np.add.reduce(gaps[..., start:end, :, :], axis=-3, out=sums[..., group, :, :])
        return sums
    xp = Home.of(gaps).xp
    parts = [xp.sum(gaps[..., i:j, :, :], axis=-3) for i, j in pairwise(edges)]
    return xp.stack(parts, axis=gaps.ndim - 3)
