"""Costs kept as a stack, (B, L, n, m): given as one, or summed from differences of points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from frot._base.arrays import Home
from frot.solvers.sinkhorn.geometry import Rounding, constant_potentials, unit_of

__all__ = ["StackGeometry", "difference_stack"]


@dataclass(frozen=True, eq=False)
class StackGeometry:
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

    def least_potentials(self, alpha: Any, u: Any, v: Any) -> tuple[Any, Any]:
        """Return the least mixed cost for the rows, and nothing for the columns."""
        return constant_potentials(alpha, self.least(u, v), u, v)

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

    def stand_in(self, rows: Any, cols: Any) -> StackGeometry:
        """The costs with points at the places of others."""
        return self.take(rows, cols)

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


def difference_stack(X: Any, Y: Any, membership: Any, error: float = 0.0) -> StackGeometry:
    r"""Sum squared differences of features, group by group: no digit of a small cost is lost.

    Parameters
    ----------
    X, Y : arrays of shape (B, n, d) and (B, m, d)
    membership : sparse array of shape (L, d)
        What a group pays for a feature, by rows.
    error : float
        Units in the last place that coordinates may be off by, of size one at most.

    Examples
    --------
    >>> from scipy import sparse
    >>> X, Y = np.array([[[0.0, 1.0]]]), np.array([[[2.0, 1.0], [0.0, 4.0]]])
    >>> difference_stack(X, Y, sparse.csr_array(np.eye(2))).C[0, :, 0]
    array([[4., 0.],
           [0., 9.]])
    """
    home, n = Home.of(X), X.shape[1]
    xp, flat = home.xp, home.indices(membership.indices)
    # Taken from the transposed points the stack has the order in memory that its members have.
    across, down = (xp.take(xp.matrix_transpose(points), flat, axis=1) for points in (X, Y))
    gaps = across[:, :, :, None] - down[:, :, None, :]
    gaps *= gaps
    if (membership.data != 1.0).any():
        gaps *= home.bring(membership.data)[None, :, None, None]
    sizes, edges = np.diff(membership.indptr), membership.indptr.tolist()
    if (sizes != 1).any():
        parts = [xp.sum(gaps[:, i:j, :, :], axis=1) for i, j in pairwise(edges)]
        gaps = xp.stack(parts, axis=1)
    off = None
    if error > 0.0:
        # A gap g moves by 2 e units, its square by 4 e g + 4 e^2; gaps are two at most.
        each = (4.0 * error + 2.0) * unit_of(home) * np.asarray(membership.sum(axis=1))
        off = tuple(np.broadcast_to(each[:, None], (len(each), k)) for k in (n, Y.shape[1]))
    # A difference errs by half a unit, its square by one and a half, the sum by one a feature.
    return StackGeometry(gaps, 0.5 * (float(sizes.max()) + 6.0) * unit_of(home), off)
