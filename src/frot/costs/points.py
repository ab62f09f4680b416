"""Costs that factor over features: squared distances of points, of which no matrix is kept."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from frot._base.arrays import Home
from frot.costs.geometry import Geometry, unit_of
from frot.costs.metrics import FactoredMetric, map_points
from frot.costs.protocol import BLOCK_BYTES, UNIT, Costs, Rounding, blocks, summation
from frot.groups.groups import Groups
from frot.plans.line import line_arcs, line_cost, line_potentials
from frot.plans.plan import Plan, is_sparse, n_entries

# What a core keeps close to itself.
CACHE_BYTES = 1_000_000
# Plans of up to this many entries times features are costed by differences, which lose no digits.
PRECISE_UP_TO = 1_000_000
# Up to so many coordinates features are sorted one by one to bound what plans cost: some 50 ms.
LINES_UP_TO = 500_000
# Up to so many coordinates are kept squared.
FEW_COORDINATES = 100_000
# Entries of points that are worked on at a time.
PART = 8_000_000
# What groups pay for features is a dense matrix in sweeps, of so many entries at most.
DENSE_MEMBERSHIP = 4_000_000


def is_identity(membership: Any) -> bool:
    """Whether every group pays for the one feature of its own number."""
    rows, columns = membership.shape
    found = membership.indices
    ones = rows == columns == len(found) and bool((found == np.arange(rows)).all())
    # Rows of one entry each.
    ones = ones and bool((np.diff(membership.indptr) == 1).all())
    return ones and bool((membership.data == 1.0).all())


@dataclass(frozen=True, eq=False)
class PointGeometry(Geometry):
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
        What coordinates may be off by, in units in the last place of each: half a unit where
        they were centred, more where they were computed.
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

    def pool(self, per_feature: Any) -> Any:
        """Return what groups pay, (B, L), for what features cost, (B, d)."""
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
        return self.from_features(self.squares(rows, cols) - 2.0 * cross)

    def from_features(self, per_feature: Any) -> Any:
        """Return phi from what features cost, (B, d); rounding may have left less than zero."""
        return self.pool(self._positive(per_feature))

    def _positive(self, per_feature: Any) -> Any:
        xp = self.home.xp
        return xp.where(per_feature > 0.0, per_feature, xp.zeros_like(per_feature))

    def squares(self, rows: Any, cols: Any) -> Any:
        """Return the sums of x_i^2 and y_j^2 over a plan with these marginals, (B, d)."""
        if self._few:
            X, Y = self._squared
            return (rows[:, None, :] @ X + cols[:, None, :] @ Y)[:, 0, :]
        return _sum_of_squares(self.X, rows) + _sum_of_squares(self.Y, cols)

    def _means(self, u: Any, v: Any) -> tuple[Any, Any]:
        return (u[:, None, :] @ self.X)[:, 0, :], (v[:, None, :] @ self.Y)[:, 0, :]

    def product(self, u: Any, v: Any) -> Any:
        """Return phi of u v^T: both variances and the distance of the means, so nothing cancels."""
        xp = self.home.xp
        total_u, total_v = xp.sum(u, axis=1)[:, None], xp.sum(v, axis=1)[:, None]
        # Seen from a point, a feature that is the same for all costs nothing, not what rounding
        # leaves.
        first = self.X[:, :1, :]
        mean_x, around_x = _moments(xp, self.X, u, total_u, first)
        mean_y, around_y = _moments(xp, self.Y, v, total_v, first)
        around = around_x * total_v + around_y * total_u
        return self.pool(around + total_u * total_v * (mean_x - mean_y) ** 2)

    def least(self, u: Any, v: Any) -> Any:
        """Return the squared distances of the means: no plan brings two clouds closer (Jensen)."""
        xp = self.home.xp
        mean_x, mean_y = self._means(u, v)
        unit = (self.X.shape[1] + self.Y.shape[1] + self.error + 8.0) * unit_of(self.home)
        sizes = PointGeometry(xp.abs(self.X), xp.abs(self.Y))._means(u, v)
        gap = self._positive(xp.abs(mean_x - mean_y) - unit * (sizes[0] + sizes[1]))
        return self.pool(gap * gap) * (1.0 - (self.X.shape[2] + 8.0) * unit_of(self.home))

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

    def members(self, index: Any) -> PointGeometry:
        """Some problems of the batch only."""
        take = self.home.xp.take
        return replace(self, X=take(self.X, index, axis=0), Y=take(self.Y, index, axis=0))

    @property
    def nonnegative(self) -> bool:
        """Squares are not negative."""
        return True

    def peaks(self) -> Any:
        """Return the squares of the features' ranges, pooled."""
        xp = self.home.xp
        least = xp.minimum(xp.min(self.X, axis=1), xp.min(self.Y, axis=1))
        most = xp.maximum(xp.max(self.X, axis=1), xp.max(self.Y, axis=1))
        return self.pool((most - least) ** 2)

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

    def norms(self, weights: Any) -> tuple[Any, Any]:
        """Return squared norms of the points, (B, n) and (B, m); weights are (B, 1, d)."""
        down = self.home.xp.matrix_transpose(weights)
        X, Y = self._squared if self._few else (self.X * self.X, self.Y * self.Y)
        return (X @ down)[:, :, 0], (Y @ down)[:, :, 0]

    @property
    def _few(self) -> bool:
        """Whether squares of the coordinates are kept: few points are asked for them often."""
        batch, n, d = self.X.shape
        return batch * (n + self.Y.shape[1]) * d <= FEW_COORDINATES

    @cached_property
    def _squared(self) -> tuple[Any, Any]:
        return self.X * self.X, self.Y * self.Y

    def mix_error(self, alpha: Any) -> Rounding:
        r"""Bound the error of the expanded square by what the points are from the origin.

        A sum of d products errs by at most (d + 2) / 2 units of the sum of their sizes, and
        :math:`2 |x y| \le x^2 + y^2` lets each point answer for its own norm. Coordinates that are
        e units off move :math:`(x - y)^2` by :math:`4 e (x^2 + y^2)` units; the rest is for the
        three sums that are added up, and for scaling by weights and eps.
        """
        xp = self.home.xp
        w = self.feature_weights(alpha)[:, None, :]
        used = xp.sum(xp.astype(w != 0.0, w.dtype), axis=2, keepdims=True)
        w = mix_share(used, self.error) * unit_of(self.home) * w
        return Rounding(xp.zeros_like(w[:, 0, 0]), *self.norms(w))

    def inner_error(self, phi: Any, u: Any, v: Any) -> Any:
        """Bound the error of sums over the plan, where the square is expanded too."""
        count = self.X.shape[1] + self.Y.shape[1] + self.X.shape[2]
        share = (count + 12.0 + 4.0 * self.error) * unit_of(self.home)
        return share * self.pool(self.squares(u, v))

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


def mix_share(used: Any, error: float) -> Any:
    """Return how many units of its norm a point's expanded squares may err by.

    `used` is how many features are summed; see `PointGeometry.mix_error`.
    """
    return used + 12.0 + 4.0 * error


def _parts(points: Any) -> list[slice]:
    """Cut points (B, n, d) so that a copy of a part takes little memory next to all of them."""
    batch, count, features = points.shape
    return blocks(count, batch * features, PART)


def _moments(xp: Any, points: Any, weights: Any, total: Any, first: Any) -> tuple[Any, Any]:
    """Return means of points as seen from another, and weighted sums of squares around these.

    Both are (B, d), and `total`, (B, 1), is the sum of the weights.
    """
    parts, seen = _parts(points), None
    mean = around = 0.0
    for part in parts:
        seen = points[:, part, :] - first
        mean = mean + (weights[:, None, part] @ seen)[:, 0, :]
    mean = mean / xp.where(total > 0.0, total, xp.ones_like(total))
    for part in parts:
        if len(parts) > 1 or seen is None:
            seen = points[:, part, :] - first
        seen -= mean[:, None, :]
        seen *= seen
        around = around + (weights[:, None, part] @ seen)[:, 0, :]
    return mean, around


def _sum_of_squares(points: Any, weights: Any) -> Any:
    """Return weighted sums of the squares of points, (B, d)."""
    found = 0.0
    for part in _parts(points):
        some = points[:, part, :]
        found = found + (weights[:, None, part] @ (some * some))[:, 0, :]
    return found


@dataclass(frozen=True, eq=False)
class FactoredCosts(Costs):
    r"""The same costs of one problem on the host, as a `Problem` asks for them.

    Formulas are those of `PointGeometry`, feature by feature; groups are summed by a sparse matrix,
    since there may be as many as features. What is written out here is what the host can do better
    for a single problem: features without weight are skipped, plans of few arcs are summed from
    differences, which lose no digit, and features are sorted to tell what plans cost at least.

    Points are kept as they were given, and centred a few features at a time where there are many:
    a second copy of them would be most of the memory that a problem of thousands of genes takes.

    Parameters
    ----------
    points : pair of arrays of shape (n, d) and (m, d)
        The points as they were given or mapped (see :meth:`of`).
    membership : sparse array of shape (L, d)
        What a group pays for a feature.
    error : float
        What coordinates of `X` and `Y` may be off by, in units in the last place of each.
    centre : array of shape (d,), optional
        What is taken off points that are exact, before they are multiplied.

    Examples
    --------
    >>> X, Y = np.array([[0.0, 0.0]]), np.array([[1.0, 2.0]])
    >>> costs = FactoredCosts.of(X, Y, Groups.each(2))
    >>> costs.mix(np.array([0.5, 0.5]))
    array([[2.5]])
    """

    points: tuple[np.ndarray, np.ndarray]
    membership: sparse.csr_array
    error: float = 0.5
    centre: np.ndarray | None = None
    # Weights of features, and the norms of both sides that the last mix had with them: one tuple,
    # which other threads may replace but never change.
    _last_norms: list[tuple[np.ndarray, ...]] = field(default_factory=list, init=False)

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        Y: np.ndarray,
        groups: Groups,
        metric: str | FactoredMetric = "sqeuclidean",
        weights: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> FactoredCosts:
        """Costs by a metric of the registry, `frot.costs.METRICS`.

        Points that are not mapped are centred, by their `weights` a and b, so that offsets cost no
        digits: a point far away that weighs little must not move the others from the origin.
        """
        x, y, membership, error = map_points(metric, X, Y, groups, weights)
        if error > 0.0:
            return cls((x, y), membership, error)
        a, b = weights or (np.full(len(x), 1.0 / len(x)), np.full(len(y), 1.0 / len(y)))
        return cls((x, y), membership, centre=0.5 * (a @ x + b @ y))

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        return (len(self.membership.indptr) - 1, len(self.points[0]), len(self.points[1]))

    @cached_property
    def X(self) -> np.ndarray:  # noqa: N802
        """The centred points of the first side, (n, d)."""
        return self._centred(0)

    @cached_property
    def Y(self) -> np.ndarray:  # noqa: N802
        """Those of the second side, (m, d)."""
        return self._centred(1)

    def _centred(
        self, side: int, columns: Any = slice(None), out: np.ndarray | None = None
    ) -> np.ndarray:
        """The centred points of one side, in some features, for reading; `out` is room for them."""
        some = self.points[side][:, columns]
        return some if self.centre is None else np.subtract(some, self.centre[columns], out=out)

    def _some(self, columns: Any, out: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The centred points of both sides, in some features, for reading."""
        if self._few:
            return self.X[:, columns], self.Y[:, columns]
        n = len(self.points[0])
        rows = (None, None) if out is None else (out[:n], out[n:])
        return self._centred(0, columns, rows[0]), self._centred(1, columns, rows[1])

    @cached_property
    def _bytes(self) -> int:
        return sum(side.nbytes for side in self.points)

    @property
    def _few(self) -> bool:
        """Whether a centred copy takes no more than the temporaries of many points do."""
        return self._bytes <= BLOCK_BYTES

    @property
    def _block_bytes(self) -> int:
        """What temporaries may take: little next to the points."""
        return min(max(self._bytes // 4, CACHE_BYTES), BLOCK_BYTES)

    @property
    def nonnegative(self) -> bool:
        """Squares are not negative."""
        return True

    def _pool(self, per_feature: np.ndarray) -> np.ndarray:
        """Sum the last axis of per-feature numbers over each group (first axis of the result)."""
        if self._one_each:
            return per_feature.T
        return np.asarray(self.membership @ per_feature.T)

    def _feature_weights(self, alpha: np.ndarray) -> np.ndarray:
        return alpha if self._one_each else np.asarray(self.membership.T @ alpha)

    @cached_property
    def _one_each(self) -> bool:
        return is_identity(self.membership)

    @cached_property
    def _features(self) -> PointGeometry:
        """The costs of every feature, as a batch of one."""
        return PointGeometry(self.X[None], self.Y[None], None, self.error)

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the one weighted squared distance matrix, shape (n, m)."""
        weights = self._feature_weights(alpha)
        on = np.flatnonzero(weights)
        full = len(on) == len(weights)
        n, m = self.shape[1:]
        mixed, x_norms, y_norms = None, np.zeros(n), np.zeros(m)
        # Room for one side at a time, and for both where they are centred only now.
        most = max(n, m)
        room = most if self._few else most + n + m
        # Temporaries may be as large as what comes out: each block takes a pass over that.
        parts = blocks(len(on), 8 * room, max(self._block_bytes, 8 * n * m))
        # One piece of memory for all: several would go back to the system after every block.
        scratch = np.empty(room * (parts[0].stop if parts else 0))
        for part in parts:
            columns = part if full else on[part]
            w = weights[columns]
            pieces = scratch[: room * len(w)].reshape(room, len(w))
            X, Y = self._some(columns, out=pieces[most:])
            scaled = np.multiply(X, -2.0 * w, out=pieces[:n])
            cross = scaled @ Y.T
            mixed = cross if mixed is None else np.add(mixed, cross, out=mixed)
            x_norms -= 0.5 * (scaled[:, None, :] @ X[:, :, None])[:, 0, 0]
            y_norms += np.multiply(Y, Y, out=pieces[:m]) @ w
        # Whoever mixes costs asks next what rounding may have done to them.
        self._last_norms[:] = [(weights.copy(), x_norms, y_norms)]
        if mixed is None:
            return np.zeros((n, m))
        for part in blocks(n, 8 * m, CACHE_BYTES):
            rows = mixed[part]
            rows += x_norms[part, None]
            rows += y_norms
            np.maximum(rows, 0.0, out=rows)
        return mixed

    def _norms(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weighted squares of the centred points, (n,) and (m,): kept from the last mix."""
        for known, x_norms, y_norms in self._last_norms:
            if np.array_equal(known, weights):
                return x_norms, y_norms
        x_norms, y_norms = np.zeros(len(self.points[0])), np.zeros(len(self.points[1]))
        for part in blocks(len(weights), 16 * (len(x_norms) + len(y_norms)), self._block_bytes):
            for side, norms in zip(self._some(part), (x_norms, y_norms), strict=True):
                norms += side**2 @ weights[part]
        return x_norms, y_norms

    def inner(self, plan: Plan) -> np.ndarray:
        """Return phi from differences on the arcs, or from X, Y and plan @ Y where it is dense."""
        d = self.points[0].shape[1]
        if not is_sparse(plan) and d * n_entries(plan) <= PRECISE_UP_TO:
            return self.inner(Plan.from_arcs(*plan.arcs(), plan.shape))
        total = np.zeros(d)
        if is_sparse(plan):
            rows, cols, mass = plan.arcs()
            # Blocks of arcs, so that points are read whole and differences stay in the cache.
            for part in blocks(len(mass), 16 * d, self._block_bytes):
                total += mass[part] @ self._square_gaps(rows[part], cols[part])
            return self._pool(total)
        a, b = plan.sum(axis=1), plan.sum(axis=0)
        for part in blocks(d, 16 * sum(plan.shape)):
            X, Y = self._some(part)
            cross = np.einsum("ik,ik->k", X, plan @ Y)
            some = PointGeometry(X[None], Y[None], None, self.error)
            total[part] = some.from_moments(a[None], b[None], cross[None])[0]
        return self._pool(total)

    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the costs at the arcs, shape (groups, K)."""
        if groups is not None:
            return self._only(np.asarray(groups)).at(rows, cols)
        found = np.empty((self.shape[0], len(rows)))
        for part in blocks(len(rows), 16 * self.points[0].shape[1]):
            found[:, part] = self._pool(self._square_gaps(rows[part], cols[part]))
        return found

    def _square_gaps(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Squared differences of the points of arcs, (K, d)."""
        gaps = self.points[0][rows]
        gaps -= self.points[1][cols]
        gaps *= gaps
        return gaps

    def _only(self, groups: np.ndarray) -> FactoredCosts:
        member = sparse.csr_array(self.membership[groups])
        used = np.unique(member.indices)
        X, Y = self.points
        return replace(
            self,
            points=(X[:, used], Y[:, used]),
            membership=sparse.csr_array(member[:, used]),
            centre=None if self.centre is None else self.centre[used],
        )

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return phi of a b^T in closed form, some features at a time."""
        X, Y = self.points
        total = np.empty(X.shape[1])
        for part in blocks(len(total), 16 * (len(a) + len(b)), self._block_bytes):
            some = PointGeometry(X[None, :, part], Y[None, :, part])
            total[part] = some.product(a[None], b[None])[0]
        return self._pool(total)

    def take(self, rows: np.ndarray, cols: np.ndarray) -> FactoredCosts:
        """Return the costs between some of the points."""
        return replace(self, points=(self.points[0][rows], self.points[1][cols]))

    def least(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the sum of what each feature's own transport costs, or the distance of the means.

        No plan does better in a feature than the one that is best for it, and no plan brings two
        clouds closer than their means are.
        """
        X, Y = self.points
        n, m, d = len(X), len(Y), X.shape[1]
        if (n + m) * d > LINES_UP_TO:
            return self._pool(self._features.least(a[None], b[None])[0]) * (1.0 - d * UNIT)
        each = np.array(
            [line_cost(x, y, line_arcs(x, y, a, b)) for x, y in zip(X.T, Y.T, strict=True)]
        )
        if self.centre is None:
            # The root is a norm, which is off by no more than the gaps are.
            off = 2.0 * self.error * UNIT * np.sqrt(self._peaks)
            each = np.maximum(np.sqrt(each) - off, 0.0) ** 2
        return self._pool(each) * (1.0 - (n + m + d + 32.0) * UNIT)

    def least_potentials(
        self, alpha: np.ndarray, a: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sum of every feature's own potentials, or tangents at the means."""
        X, Y = self.points
        n, m, d = len(X), len(Y), X.shape[1]
        weights = self._feature_weights(alpha)
        if (n + m) * d > LINES_UP_TO:
            f, g = self._features.least_potentials(weights[None], a[None], b[None])
            return f[0], g[0]
        f, g = np.zeros(n), np.zeros(m)
        for k in np.flatnonzero(weights):
            x, y = X[:, k], Y[:, k]
            own = line_potentials(x, y, line_arcs(x, y, a, b))
            f, g = f + weights[k] * own[0], g + weights[k] * own[1]
        return f, g

    def geometry(self) -> Geometry:
        """The points: a pass over them is one product and one exponential."""
        count, features = self.shape[0], self.points[0].shape[1]
        if self._one_each:
            return self._features
        if count * features > DENSE_MEMBERSHIP:
            return super().geometry()
        return PointGeometry(self.X[None], self.Y[None], self.membership.toarray(), self.error)

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Bound the error of the expanded square by what the points are from the origin."""
        weights = self._feature_weights(alpha)
        share = mix_share(np.count_nonzero(weights), self.error) * UNIT
        rows, cols = self._norms(weights)
        return Rounding(0.0, share * rows, share * cols)

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Bound the error of sums of squared differences; more where the square is expanded.

        Where coordinates are e units u off, a gap is by 2 e u, and its square by 4 e u times the
        gap; Cauchy-Schwarz does the rest.
        """
        share = summation(plan)
        error = (share + self._additions) * phi
        if self.centre is None:
            off, reach = 2.0 * self.error * UNIT, self._reach
            error = error + 2.0 * off * np.sqrt(reach * phi) + off**2 * reach
        if not is_sparse(plan) and self.points[0].shape[1] * n_entries(plan) > PRECISE_UP_TO:
            error = error + 4.0 * (share + 4.0 * UNIT) * self._reach
        return error

    @property
    def peaks(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The squares of the features' ranges, summed over each group: no cost is larger, (L,)."""
        least, most = self._ends
        return self._pool((most - least) ** 2)

    @cached_property
    def _additions(self) -> np.ndarray:
        """The share by which sums over the features of each group may err, (L,)."""
        return (np.diff(self.membership.indptr) + 4) * UNIT

    @cached_property
    def _reach(self) -> np.ndarray:
        """The largest squares, summed over the features of each group, (L,)."""
        return self._pool(self._peaks)

    @cached_property
    def _peaks(self) -> np.ndarray:
        """Largest square in each feature: a bound on every point's norm, whatever the weights."""
        least, most = self._ends
        if self.centre is not None:
            # Rounding keeps the order: these are the extremes of the centred points.
            least, most = least - self.centre, most - self.centre
        return np.maximum(most, -least) ** 2

    @property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest coordinate of every feature."""
        X, Y = self.points
        least = np.minimum(X.min(axis=0), Y.min(axis=0))
        return least, np.maximum(X.max(axis=0), Y.max(axis=0))
