"""Batches of group costs in any array library: mixed by weights, summed over plans.

Arrays have a leading axis of B problems of the same shape; one problem is a batch of one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from frot._arrays import Home

__all__ = ["DeviceGeometry", "Geometry", "PointGeometry", "StackGeometry"]


class Geometry(Protocol):
    """B times L cost matrices of shape (n, m)."""

    @property
    def home(self) -> Home:
        """Where the arrays live, and their precision."""
        ...

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(B, L, n, m)."""
        ...

    def mix(self, alpha: Any) -> Any:
        """Return sum_l alpha_l C_l: (B, L) to (B, n, m)."""
        ...

    def inner(self, plan: Any) -> Any:
        """Return <plan, C_l>: (B, n, m) to (B, L)."""
        ...

    def product(self, u: Any, v: Any) -> Any:
        """Return <u v^T, C_l>: (B, n) and (B, m) to (B, L)."""
        ...

    def rows(self, part: slice) -> Geometry:
        """The costs of some rows only."""
        ...

    def members(self, index: Any) -> Geometry:
        """Some problems of the batch only."""
        ...

    def stack(self) -> Any:
        """All costs, (B, L, n, m)."""
        ...

    def mix_error(self, alpha: Any) -> Any:
        """Bound the rounding of an entry of ``mix(alpha)``, (B,)."""
        ...

    def inner_error(self, phi: Any) -> Any:
        """Bound the rounding of ``phi = inner(plan)`` of a plan of unit mass, (B, L)."""
        ...

    def double(self) -> Geometry:
        """The same costs in double precision."""
        ...

    def single(self) -> Geometry:
        """The same costs in single precision, where that is possible."""
        ...


class DeviceGeometry(Geometry, Protocol):
    """Costs of one problem that need not be on the host: all that a `Problem` asks about them."""

    @property
    def nonnegative(self) -> bool:
        """Whether no cost is known to be negative."""
        ...

    def sizes(self, u: Any, v: Any) -> Any:
        """Return <u v^T, |C_l|>: (1, n) and (1, m) to (1, L)."""
        ...

    def rescaled(self, factor: Any) -> DeviceGeometry:
        """The costs times a factor each, (L,) on the host."""
        ...

    def at(self, rows: Any, cols: Any) -> Any:
        """Return the costs at K arcs, (L, K)."""
        ...


def _unit(home: Home) -> float:
    return float(home.xp.finfo(home.dtype).eps)


@dataclass(frozen=True, eq=False)
class PointGeometry:
    r"""Squared Euclidean costs of points, factored.

    .. math:: M_\alpha = (X^2 w) 1^\top + 1 (Y^2 w)^\top - 2 (X \circ w) Y^\top,
        \qquad w = W^\top \alpha

    Parameters
    ----------
    X, Y : arrays of shape (B, n, d) and (B, m, d)
        Centred points.
    membership : array of shape (L, d), optional
        W, what a group pays for a feature; None is the identity.
    """

    X: Any
    Y: Any
    membership: Any = None

    @property
    def home(self) -> Home:
        """Where the points live."""
        return Home.of(self.X)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(B, L, n, m)."""
        count = self.X.shape[2] if self.membership is None else self.membership.shape[0]
        return (self.X.shape[0], count, self.X.shape[1], self.Y.shape[1])

    def feature_weights(self, alpha: Any) -> Any:
        """Return w, (B, d)."""
        return alpha if self.membership is None else alpha @ self.membership

    def _pool(self, per_feature: Any) -> Any:
        if self.membership is None:
            return per_feature
        return per_feature @ self.home.xp.matrix_transpose(self.membership)

    def mix(self, alpha: Any) -> Any:
        """Return the weighted squared distances, (B, n, m)."""
        xp = self.home.xp
        w = self.feature_weights(alpha)[:, None, :]
        scaled = self.X * w
        mixed = (-2.0 * scaled) @ xp.matrix_transpose(self.Y)
        mixed += xp.sum(scaled * self.X, axis=2)[:, :, None]
        mixed += xp.sum(self.Y * self.Y * w, axis=2)[:, None, :]
        return xp.clip(mixed, 0.0, None)

    def inner(self, plan: Any) -> Any:
        """Return phi from the marginals and plan @ Y."""
        xp = self.home.xp
        rows, cols = xp.sum(plan, axis=2), xp.sum(plan, axis=1)
        return self.from_moments(rows, cols, xp.sum(self.X * (plan @ self.Y), axis=1))

    def from_moments(self, rows: Any, cols: Any, cross: Any) -> Any:
        """Return phi from a plan's marginals and the sums of x_i * y_j over it, (B, d)."""
        xp = self.home.xp
        return self._pool(xp.clip(self._squares(rows, cols) - 2.0 * cross, 0.0, None))

    def _squares(self, rows: Any, cols: Any) -> Any:
        X2, Y2 = self.X * self.X, self.Y * self.Y
        return (rows[:, None, :] @ X2)[:, 0, :] + (cols[:, None, :] @ Y2)[:, 0, :]

    def product(self, u: Any, v: Any) -> Any:
        """Return phi of u v^T from moments."""
        xp = self.home.xp
        total_u, total_v = xp.sum(u, axis=1)[:, None], xp.sum(v, axis=1)[:, None]
        mean_x, mean_y = (u[:, None, :] @ self.X)[:, 0, :], (v[:, None, :] @ self.Y)[:, 0, :]
        squares = self._squares(u * total_v, v * total_u)
        return self._pool(xp.clip(squares - 2.0 * mean_x * mean_y, 0.0, None))

    def rows(self, part: slice) -> PointGeometry:
        """The costs of some rows only."""
        return replace(self, X=self.X[:, part, :])

    def members(self, index: Any) -> PointGeometry:
        """Some problems of the batch only."""
        take = self.home.xp.take
        return replace(self, X=take(self.X, index, axis=0), Y=take(self.Y, index, axis=0))

    def stack(self) -> Any:
        """All costs, (B, L, n, m), one group at a time."""
        home = self.home
        batch, count = self.shape[:2]
        eye = home.xp.eye(count, dtype=home.dtype, device=home.device)
        ones = home.xp.ones((batch, 1), dtype=home.dtype, device=home.device)
        return home.xp.stack([self.mix(ones * eye[None, k, :]) for k in range(count)], axis=1)

    @property
    def nonnegative(self) -> bool:
        """Squares are."""
        return True

    def sizes(self, u: Any, v: Any) -> Any:
        """Return the costs of u v^T, which are their own size."""
        return self.product(u, v)

    def rescaled(self, factor: Any) -> PointGeometry:
        """What a group pays for a feature, times its factor."""
        member = (
            self.home.bring(np.eye(len(factor))) if self.membership is None else self.membership
        )
        return replace(self, membership=self.home.bring(factor)[:, None] * member)

    def at(self, rows: Any, cols: Any) -> Any:
        """Return the costs at the arcs from differences."""
        xp = self.home.xp
        gaps = xp.take(self.X, rows, axis=1)[0, ...] - xp.take(self.Y, cols, axis=1)[0, ...]
        squares = xp.matrix_transpose(gaps * gaps)
        return squares if self.membership is None else self.membership @ squares

    def _peaks(self) -> Any:
        xp = self.home.xp
        return xp.maximum(xp.max(xp.abs(self.X), axis=1) ** 2, xp.max(xp.abs(self.Y), axis=1) ** 2)

    def mix_error(self, alpha: Any) -> Any:
        """Bound the error of the expanded square, relative to the norms of the points."""
        xp = self.home.xp
        largest = xp.sum(self.feature_weights(alpha) * self._peaks(), axis=1)
        return (self.X.shape[2] + 4) * 4.0 * _unit(self.home) * largest

    def inner_error(self, phi: Any) -> Any:
        """Bound the error of sums over the plan; the square is expanded here too."""
        n, m = self.shape[2:]
        unit = (8.0 + 2.0 * float(np.sqrt(n * m))) * _unit(self.home)
        return (unit + (self.X.shape[2] + 4) * _unit(self.home)) * phi + 4.0 * unit * self._pool(
            self._peaks()
        )

    def _as(self, dtype: Any) -> PointGeometry:
        if self.home.dtype == dtype:
            return self
        astype = self.home.xp.astype
        parts = [None if x is None else astype(x, dtype) for x in (self.X, self.Y, self.membership)]
        return PointGeometry(*parts)

    def double(self) -> PointGeometry:
        """The same points in double precision."""
        return self._as(self.home.xp.float64)

    def single(self) -> PointGeometry:
        """The same points in single precision."""
        return self._as(self.home.xp.float32)


@dataclass(frozen=True, eq=False)
class StackGeometry:
    """Costs given as a stack, (B, L, n, m)."""

    C: Any

    @property
    def home(self) -> Home:
        """Where the stack lives."""
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
        batch, _, n, m = self.shape
        return self.home.xp.reshape(alpha[:, None, :] @ self._flat(), (batch, n, m))

    def inner(self, plan: Any) -> Any:
        """Return the sums of plan times cost."""
        batch, _, n, m = self.shape
        flat = self.home.xp.reshape(plan, (batch, n * m, 1))
        return (self._flat() @ flat)[:, :, 0]

    def product(self, u: Any, v: Any) -> Any:
        """Return u^T C v."""
        return ((self.C @ v[:, None, :, None])[:, :, :, 0] @ u[:, :, None])[:, :, 0]

    def rows(self, part: slice) -> StackGeometry:
        """The costs of some rows only."""
        return StackGeometry(self.C[:, :, part, :])

    def members(self, index: Any) -> StackGeometry:
        """Some problems of the batch only."""
        return StackGeometry(self.home.xp.take(self.C, index, axis=0))

    def stack(self) -> Any:
        """The stack itself."""
        return self.C

    @property
    def nonnegative(self) -> bool:
        """A stack may be anything."""
        return False

    def sizes(self, u: Any, v: Any) -> Any:
        """Return the mean sizes, of a stack of sizes."""
        return StackGeometry(self.home.xp.abs(self.C)).product(u, v)

    def rescaled(self, factor: Any) -> StackGeometry:
        """The stack times its factors."""
        return StackGeometry(self.C * self.home.bring(factor)[None, :, None, None])

    def at(self, rows: Any, cols: Any) -> Any:
        """Return entries of the stack."""
        flat = self._flat()[0, ...]
        return self.home.xp.take(flat, rows * self.shape[3] + cols, axis=1)

    def mix_error(self, alpha: Any) -> Any:
        """Bound the error of a sum of L terms."""
        xp = self.home.xp
        peaks = xp.max(xp.abs(self._flat()), axis=2)
        return (self.shape[1] + 2) * _unit(self.home) * xp.sum(alpha * peaks, axis=1)

    def inner_error(self, phi: Any) -> Any:
        """Bound the error of a sum over n m entries."""
        _, _, n, m = self.shape
        xp = self.home.xp
        peaks = xp.max(xp.abs(self._flat()), axis=2)
        return (8.0 + 2.0 * float(np.sqrt(n * m))) * _unit(self.home) * xp.maximum(peaks, phi)

    def _as(self, dtype: Any) -> StackGeometry:
        if self.home.dtype == dtype:
            return self
        return StackGeometry(self.home.xp.astype(self.C, dtype))

    def double(self) -> StackGeometry:
        """The same stack in double precision."""
        return self._as(self.home.xp.float64)

    def single(self) -> StackGeometry:
        """The same stack in single precision."""
        return self._as(self.home.xp.float32)
