"""Costs kept as a stack, (B, L, n, m): given as one, or summed from differences of points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot.costs.geometry import Geometry, unit_of
from frot.costs.protocol import UNIT, Costs, Rounding, summation
from frot.plans.plan import Plan, is_sparse


@dataclass(frozen=True, eq=False)
class StackGeometry(Geometry):
    """Costs given as a stack.

    Parameters
    ----------
    C : array of shape (B, L, n, m)
    relative : float
        How far entries may be from the costs they stand for, as a share of each.
    error : arrays of shape (L, n) and (L, m), optional
        The same, whatever the entry (i, j): what its two points add; on the host.
    """

    C: Any
    relative: float = 0.0
    error: Any = None

    @property
    def home(self) -> Home:
        """Where the stack lives."""
        return self._home

    @cached_property
    def _home(self) -> Home:
        return Home.of(self.C)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(B, L, n, m)."""
        return tuple(self.C.shape)

    def _flat(self) -> Any:
        batch, count, n, m = self.shape
        return self.home.xp.reshape(self.C, (batch, count, n * m))

    def mix(self, alpha: Any) -> Any:
        """Return the weighted sum of the stack."""
        batch, count, n, m = self.shape
        if count == 1:
            return alpha[:, :, None] * self.C[:, 0, :, :]
        return self.home.xp.reshape(alpha[:, None, :] @ self._flat(), (batch, n, m))

    def inner(self, plan: Any) -> Any:
        """Return the sums of plan times cost."""
        batch, _, n, m = self.shape
        flat = self.home.xp.reshape(plan, (batch, n * m, 1))
        return (self._flat() @ flat)[:, :, 0]

    def product(self, u: Any, v: Any) -> Any:
        """Return u^T C v."""
        return ((self.C @ v[:, None, :, None])[:, :, :, 0] @ u[:, :, None])[:, :, 0]

    def least(self, u: Any, v: Any) -> Any:
        """Return the least cost of every group."""
        xp = self.home.xp
        found = xp.min(xp.min(self.C, axis=3), axis=2)
        error = sum((self.home.bring(part.max(axis=1)) for part in self.error or ()), start=0.0)
        return found - (self.relative + 8.0 * unit_of(self.home)) * xp.abs(found) - error

    def rows(self, part: slice) -> StackGeometry:
        """The costs of some rows only."""
        if part.start == 0 and part.stop == self.C.shape[2]:
            return self
        error = self.error and (self.error[0][:, part], self.error[1])
        return replace(self, C=self.C[:, :, part, :], error=error)

    def take(self, rows: Any, cols: Any) -> StackGeometry:
        """The costs between some points, the same ones of every member."""
        take, home = self.home.xp.take, self.home
        C = take(take(self.C, home.indices(rows), axis=2), home.indices(cols), axis=3)
        error = self.error and (self.error[0][:, rows], self.error[1][:, cols])
        return replace(self, C=C, error=error)

    def members(self, index: Any) -> StackGeometry:
        """Some problems of the batch only."""
        return replace(self, C=self.home.xp.take(self.C, index, axis=0))

    def stack(self) -> Any:
        """The stack itself."""
        return self.C

    @property
    def nonnegative(self) -> bool:
        """Whether no entry is negative."""
        return self._nonnegative

    @cached_property
    def _nonnegative(self) -> bool:
        return bool(self.home.xp.min(self.C) >= 0.0)

    def sizes(self, u: Any, v: Any) -> Any:
        """Return the mean sizes, of a stack of sizes."""
        return StackGeometry(self.home.xp.abs(self.C)).product(u, v)

    def peaks(self) -> Any:
        """Return the largest size of an entry of every group."""
        xp = self.home.xp
        flat = self._flat()
        return xp.maximum(xp.max(flat, axis=2), -xp.min(flat, axis=2))

    def rescaled(self, factor: Any) -> StackGeometry:
        """The stack times its factors."""
        scaled = self.C * self.home.bring(factor)[None, :, None, None]
        error = self.error and tuple(part * factor[:, None] for part in self.error)
        return StackGeometry(scaled, self.relative + unit_of(self.home), error)

    def at(self, rows: Any, cols: Any) -> Any:
        """Return entries of the stack."""
        flat = self._flat()[0, ...]
        return self.home.xp.take(flat, rows * self.shape[3] + cols, axis=1)

    @cached_property
    def _peaks(self) -> Any:
        """Largest size of every row and group, (B, L, n)."""
        xp = self.home.xp
        return xp.max(xp.abs(self.C), axis=3)

    def mix_error(self, alpha: Any) -> Rounding:
        """Bound the error of a sum of L terms: relative where no term is negative."""
        xp, (batch, count, n, m) = self.home.xp, self.shape
        share = (count + 8.0) * unit_of(self.home) + self.relative
        nothing = xp.zeros_like(alpha[:, 0])
        rows = xp.zeros((batch, n), dtype=self.home.dtype, device=self.home.device)
        cols = xp.zeros((batch, m), dtype=self.home.dtype, device=self.home.device)
        if self.error is not None:
            rows, cols = (alpha @ self.home.bring(part) for part in self.error)
        if self.nonnegative:
            return Rounding(nothing + share, rows, cols)
        return Rounding(nothing, rows + share * (alpha[:, None, :] @ self._peaks)[:, 0, :], cols)

    def inner_error(self, phi: Any, u: Any, v: Any) -> Any:
        """Bound the error of a sum over n m entries, in whatever order it is taken."""
        _, _, n, m = self.shape
        share = (8.0 + 0.5 * n * m) * unit_of(self.home) + self.relative
        xp = self.home.xp
        size = phi if self.nonnegative else (self._peaks @ u[:, :, None])[:, :, 0]
        found = share * xp.abs(size)
        for weights, part in zip((u, v), self.error or (), strict=False):
            found = found + weights @ xp.matrix_transpose(self.home.bring(part))
        return found

    def _as(self, dtype: Any) -> StackGeometry:
        if self.home.dtype == dtype:
            return self
        return replace(self, C=self.home.xp.astype(self.C, dtype))

    def double(self) -> StackGeometry:
        """The same stack in double precision."""
        return self._as(self.home.xp.float64)

    def single(self) -> StackGeometry:
        """The same stack in single precision."""
        return self._as(self.home.xp.float32)


@dataclass(frozen=True, eq=False)
class StackedCosts(Costs):
    """The same of one problem on the host, (L, n, m), as a `Problem` asks for them.

    Exact solvers ask for mixes, arcs and bounds of small problems hundreds of times, where a batch
    axis and an array library in between would cost more than the sums themselves.

    Parameters
    ----------
    stack : array of shape (L, n, m)
    error : arrays of shape (L, n) and (L, m), optional
        How far entry (i, j) may be from the cost it stands for: what its two points add.
    relative : float
        The same as a share of each entry.

    Examples
    --------
    >>> costs = StackedCosts(np.array([[[0.0, 1.0]], [[2.0, 0.0]]]))
    >>> costs.mix(np.array([0.5, 0.5]))
    array([[1. , 0.5]])
    >>> costs.inner(Plan(np.array([[0.5, 0.5]])))
    array([0.5, 1. ])
    """

    stack: np.ndarray
    error: tuple[np.ndarray, np.ndarray] | None = None
    relative: float = 0.0

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        return self.stack.shape  # type: ignore[return-value]

    @property
    def nonnegative(self) -> bool:
        """Whether no entry is negative."""
        return self._least >= 0.0

    @cached_property
    def _least(self) -> float:
        return float(self.stack.min())

    @cached_property
    def peaks(self) -> np.ndarray:
        """Largest size of an entry in each group."""
        return np.maximum(self._flat.max(axis=1), -self._flat.min(axis=1))

    @cached_property
    def _flat(self) -> np.ndarray:
        return self.stack.reshape(len(self.stack), -1)

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return sum_l alpha_l C_l, reading only the groups that have weight."""
        if len(alpha) == 1:
            return alpha[0] * self.stack[0]
        if np.count_nonzero(alpha) * 3 < len(alpha):
            mixed = np.zeros(self._flat.shape[1])
            for group in np.flatnonzero(alpha):
                mixed += alpha[group] * self._flat[group]
        else:
            mixed = alpha @ self._flat
        return mixed.reshape(self.shape[1:])

    def inner(self, plan: Plan) -> np.ndarray:
        """Return <plan, C_l> for every group."""
        if is_sparse(plan):
            rows, cols, mass = plan.arcs()
            return self.at(rows, cols) @ mass
        return self._flat @ plan.dense().ravel()

    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the costs at the arcs, shape (groups, K)."""
        where = np.asarray(rows, dtype=np.intp) * self.shape[2] + cols
        if groups is None:
            return self._flat.take(where, axis=1)
        return np.stack([self._flat[group][where] for group in groups])

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return a^T C_l b for every group."""
        return (self.stack @ b) @ a

    def take(self, rows: np.ndarray, cols: np.ndarray) -> StackedCosts:
        """Return the costs between some of the points."""
        part = np.ascontiguousarray(self.stack[:, rows][:, :, cols])
        error = self.error and (self.error[0][:, rows], self.error[1][:, cols])
        return StackedCosts(part, error, self.relative)

    def geometry(self) -> StackGeometry:
        """The stack itself."""
        return StackGeometry(self.stack[None], self.relative, self.error)

    def least(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the least entry of every group: one pass, which the stack has cost already."""
        least = self._flat.min(axis=1)
        return least - (self.relative + 4.0 * UNIT) * np.abs(least) - self._most_error

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Bound the error of a sum of L products: relative where no term is negative."""
        rows, cols = (0.0, 0.0) if self.error is None else (alpha @ off for off in self.error)
        relative = (np.count_nonzero(alpha) + 2) * UNIT + self.relative
        if self.nonnegative:
            return Rounding(relative, rows, cols)
        if len(alpha) == 1 and alpha[0] == 1.0 and self.relative == 0.0:
            # Nothing is added up, nor multiplied.
            return Rounding(0.0, rows, cols)
        return Rounding(0.0, rows + relative * (alpha @ self._row_peaks), cols)

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Bound the error of sums over the plan, and of the entries themselves."""
        size, error = np.abs(phi), self._most_error
        if not self.nonnegative:
            size = self.peaks
            if is_sparse(plan):
                rows, cols, mass = plan.arcs()
                size = np.abs(self.at(rows, cols)) @ mass * (1.0 + summation(plan))
        if self.error is not None and is_sparse(plan):
            error = self.error[0] @ plan.sum(axis=1) + self.error[1] @ plan.sum(axis=0)
        return (summation(plan) + self.relative) * size + error

    @cached_property
    def _row_peaks(self) -> np.ndarray:
        """Largest size of an entry in each group and row, (L, n)."""
        return np.abs(self.stack).max(axis=2)

    @cached_property
    def _most_error(self) -> np.ndarray | float:
        if self.error is None:
            return 0.0
        return self.error[0].max(axis=1) + self.error[1].max(axis=1)


def stack_of(costs: Costs) -> StackedCosts:
    """Form the stack of any costs, one group's matrix at a time; it knows its errors."""
    if isinstance(costs, StackedCosts):
        return costs
    count, n, m = costs.shape
    stack, rows, cols = np.empty(costs.shape), np.empty((count, n)), np.empty((count, m))
    relative = 0.0
    for group, alone in enumerate(np.eye(count)):
        stack[group] = costs.mix(alone)
        off = costs.rounding(alone)
        rows[group], cols[group] = off.rows, off.cols
        relative = max(relative, off.relative)
    return StackedCosts(stack, (rows, cols), relative)


def difference_stack(
    X: Any,
    Y: Any,
    columns: np.ndarray,
    offsets: np.ndarray,
    shares: np.ndarray | None = None,
    error: float = 0.0,
) -> StackGeometry:
    r"""Sum squared differences of features, group by group: no digit of a small cost is lost.

    Parameters
    ----------
    X, Y : arrays of shape (B, n, d) and (B, m, d)
    columns, offsets : arrays of int
        Group l has the features ``columns[offsets[l] : offsets[l + 1]]``.
    shares : array of the shape of `columns`, optional
        What it pays for them; one if left out.
    error : float
        What coordinates may be off by, in units in the last place of each.

    Examples
    --------
    >>> X, Y = np.array([[[0.0, 1.0]]]), np.array([[[2.0, 1.0], [0.0, 4.0]]])
    >>> difference_stack(X, Y, np.array([0, 1]), np.array([0, 1, 2])).C[0, :, 0]
    array([[4., 0.],
           [0., 9.]])
    """
    # Taken after they are turned, so that what is subtracted lies as it is read.
    across, down = _columns(X, columns), _columns(Y, columns)
    gaps = across[:, :, :, None] - down[:, :, None, :]
    gaps *= gaps
    plain = shares is None or bool((shares == 1.0).all())
    if not plain:
        gaps *= Home.of(gaps).bring(shares)[None, :, None, None]
    edges = offsets.tolist()
    most = max(end - start for start, end in pairwise(edges))
    # A difference errs by half a unit, its square by one and a half, the sum by one per feature.
    relative = 0.5 * (most + (4.0 if plain else 6.0)) * UNIT
    off = None
    if error > 0.0:
        # A gap moves by e units of x and of y, its square by no more than 4 e (x^2 + y^2).
        each = 4.01 * error * UNIT * (np.ones(len(columns)) if shares is None else shares)
        off = tuple(
            np.add.reduceat(each[:, None] * (to_numpy(part) ** 2).max(axis=0), offsets[:-1], axis=0)
            for part in (across, down)
        )
    if most > 1:
        gaps = _sums(gaps, edges)
    return StackGeometry(gaps, relative, off)


def _columns(points: Any, columns: np.ndarray) -> Any:
    """Return some columns of points (B, n, d) as rows, (B, k, n)."""
    if isinstance(points, np.ndarray):
        # Small problems are solved in less time than a library's own way of saying this takes.
        return points.transpose(0, 2, 1).take(columns, axis=1)
    home = Home.of(points)
    return home.xp.take(home.xp.matrix_transpose(points), home.indices(columns), axis=1)


def _sums(gaps: Any, edges: list[int]) -> Any:
    """Sum consecutive parts of the second axis of (B, k, n, m)."""
    if isinstance(gaps, np.ndarray):
        batch, _, n, m = gaps.shape
        found = np.empty((batch, len(edges) - 1, n, m))
        for group, (start, end) in enumerate(pairwise(edges)):
            np.add.reduce(gaps[:, start:end], axis=1, out=found[:, group])
        return found
    xp = Home.of(gaps).xp
    return xp.stack([xp.sum(gaps[:, i:j, :, :], axis=1) for i, j in pairwise(edges)], axis=1)
