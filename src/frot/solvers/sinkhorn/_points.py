"""Squared Euclidean costs of points, factored: no cost matrix is kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from frot._base.arrays import Home
from frot.solvers.sinkhorn.geometry import Rounding, unit_of

__all__ = ["PointGeometry"]


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
    error : float
        Units in the last place that coordinates may be off by, where they were computed.
    """

    X: Any
    Y: Any
    membership: Any = None
    error: float = 0.5

    @property
    def home(self) -> Home:
        """Where the points live."""
        return self._home

    @cached_property
    def _home(self) -> Home:
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
        return xp.where(mixed > 0.0, mixed, xp.zeros_like(mixed))

    def inner(self, plan: Any) -> Any:
        """Return phi from the marginals and plan @ Y."""
        xp = self.home.xp
        rows, cols = xp.sum(plan, axis=2), xp.sum(plan, axis=1)
        return self.from_moments(rows, cols, xp.sum(self.X * (plan @ self.Y), axis=1))

    def from_moments(self, rows: Any, cols: Any, cross: Any) -> Any:
        """Return phi from a plan's marginals and the sums of x_i * y_j over it, (B, d)."""
        return self._pool(self._positive(self._squares(rows, cols) - 2.0 * cross))

    def _positive(self, per_feature: Any) -> Any:
        xp = self.home.xp
        return xp.where(per_feature > 0.0, per_feature, xp.zeros_like(per_feature))

    def _squares(self, rows: Any, cols: Any) -> Any:
        X2, Y2 = self.X * self.X, self.Y * self.Y
        return (rows[:, None, :] @ X2)[:, 0, :] + (cols[:, None, :] @ Y2)[:, 0, :]

    def _means(self, u: Any, v: Any) -> tuple[Any, Any]:
        return (u[:, None, :] @ self.X)[:, 0, :], (v[:, None, :] @ self.Y)[:, 0, :]

    def product(self, u: Any, v: Any) -> Any:
        """Return phi of u v^T: both variances and the distance of the means, so nothing cancels."""
        xp = self.home.xp
        total_u, total_v = xp.sum(u, axis=1)[:, None], xp.sum(v, axis=1)[:, None]
        one = xp.ones_like(total_u)
        mean_x, mean_y = self._means(u, v)
        mean_x = mean_x / xp.where(total_u > 0.0, total_u, one)
        mean_y = mean_y / xp.where(total_v > 0.0, total_v, one)
        around = replace(self, X=self.X - mean_x[:, None, :], Y=self.Y - mean_y[:, None, :])
        apart = total_u * total_v * (mean_x - mean_y) ** 2
        return self._pool(around._squares(u * total_v, v * total_u) + apart)

    def least(self, u: Any, v: Any) -> Any:
        """Return the squared distances of the means: no plan brings two clouds closer (Jensen)."""
        xp = self.home.xp
        mean_x, mean_y = self._means(u, v)
        unit = (self.X.shape[1] + self.Y.shape[1] + self.error + 8.0) * unit_of(self.home)
        sizes = PointGeometry(xp.abs(self.X), xp.abs(self.Y))._means(u, v)
        gap = self._positive(xp.abs(mean_x - mean_y) - unit * (sizes[0] + sizes[1]))
        return self._pool(gap * gap) * (1.0 - (self.X.shape[2] + 8.0) * unit_of(self.home))

    def least_potentials(self, alpha: Any, u: Any, v: Any) -> tuple[Any, Any]:
        r"""Return affine potentials, which leave a square to every cost.

        .. math::
            M_{ij} = 2 \langle x_i - y_j, \delta \rangle - |\delta|^2 + |x_i - y_j - \delta|^2 ,
            \qquad \delta = \bar x - \bar y ,

        with features weighted by w.
        """
        mean_x, mean_y = self._means(u, v)
        w = self.feature_weights(alpha)
        lean = w * (mean_x - mean_y)
        level = 0.5 * ((mean_x - mean_y)[:, None, :] @ lean[:, :, None])[:, :, 0]
        f, g = (
            2.0 * ((points - mean[:, None, :]) @ lean[:, :, None])[:, :, 0]
            for points, mean in ((self.X, mean_x), (self.Y, mean_y))
        )
        return level + f, level - g

    def rows(self, part: slice) -> PointGeometry:
        """The costs of some rows only."""
        return replace(self, X=self.X[:, part, :])

    def take(self, rows: Any, cols: Any) -> PointGeometry:
        """The costs between some points, the same ones of every member."""
        home = self.home
        X = home.xp.take(self.X, home.indices(rows), axis=1)
        return replace(self, X=X, Y=home.xp.take(self.Y, home.indices(cols), axis=1))

    def stand_in(self, rows: Any, cols: Any) -> PointGeometry:
        """The costs with points at the places of others."""
        return self.take(rows, cols)

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

    def mix_error(self, alpha: Any) -> Rounding:
        r"""Bound the error of the expanded square by what the points are from the origin.

        A sum of d products errs by at most (d + 2) / 2 units of the sum of their sizes, and
        :math:`2 |x y| \le x^2 + y^2` lets each point answer for its own norm. Coordinates that are
        e units off move :math:`(x - y)^2` by :math:`4 e (x^2 + y^2)` units; the rest is for the
        three sums that are added up, and for scaling by weights and eps.
        """
        xp = self.home.xp
        share = (self.X.shape[2] + 12.0 + 4.0 * self.error) * unit_of(self.home)
        w = share * self.feature_weights(alpha)[:, None, :]
        rows, cols = (xp.sum(points * points * w, axis=2) for points in (self.X, self.Y))
        return Rounding(xp.zeros_like(alpha[:, 0]), rows, cols)

    def inner_error(self, phi: Any, u: Any, v: Any) -> Any:
        """Bound the error of sums over the plan, where the square is expanded too."""
        count = self.X.shape[1] + self.Y.shape[1] + self.X.shape[2]
        share = (count + 12.0 + 4.0 * self.error) * unit_of(self.home)
        return share * self._pool(self._squares(u, v))

    def _as(self, dtype: Any) -> PointGeometry:
        if self.home.dtype == dtype:
            return self
        astype = self.home.xp.astype
        member = None if self.membership is None else astype(self.membership, dtype)
        return replace(self, X=astype(self.X, dtype), Y=astype(self.Y, dtype), membership=member)

    def double(self) -> PointGeometry:
        """The same points in double precision."""
        return self._as(self.home.xp.float64)

    def single(self) -> PointGeometry:
        """The same points in single precision."""
        return self._as(self.home.xp.float32)
