"""Squared Euclidean and cosine costs, factored: the L x n x m stack is never formed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from frot._base.errors import InputError
from frot.costs.protocol import UNIT, Rounding, blocks, summation
from frot.groups.groups import Groups
from frot.plans.line import line_arcs, line_cost, line_potentials
from frot.plans.plan import Plan

__all__ = ["FactoredCosts"]

# What a core keeps close to itself.
CACHE_BYTES = 1_000_000
# Plans of up to this many entries times features are costed by differences, which lose no digits.
PRECISE_UP_TO = 1_000_000
# Up to so many coordinates features are sorted one by one to bound what plans cost: some 50 ms.
LINES_UP_TO = 500_000


@dataclass(frozen=True, eq=False)
class FactoredCosts:
    r"""Squared Euclidean costs of groups of features.

    .. math::
        [C_l]_{ij} = s \sum_{k \in S_l} (x_{ik} - y_{jk})^2,
        \qquad M_\alpha = s\,\big( (X^2 w) 1^\top + 1 (Y^2 w)^\top - 2 (X \circ w) Y^\top \big)

    with :math:`w_k` the weight of all groups that hold feature k. One pass costs 2 n m d flops
    and no more memory than the points and one (n, m) matrix.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d)
        Points whose columns are already centred and picked (see :meth:`squared_euclidean`).
    membership : sparse array of shape (L, d)
        One where a group holds a feature.
    scale : float
        The factor s: 1 for squared Euclidean, 1/2 for cosine on unit vectors.
    origin : pair of arrays, optional
        The points before they were centred, for differences that lose no digit at all.

    Examples
    --------
    >>> X, Y = np.array([[0.0, 0.0]]), np.array([[1.0, 2.0]])
    >>> costs = FactoredCosts.squared_euclidean(X, Y, Groups.each(2))
    >>> costs.mix(np.array([0.5, 0.5]))
    array([[2.5]])
    """

    X: np.ndarray
    Y: np.ndarray
    membership: sparse.csr_array
    scale: float = 1.0
    origin: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def squared_euclidean(
        cls,
        X: np.ndarray,
        Y: np.ndarray,
        groups: Groups,
        weights: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> FactoredCosts:
        """Squared Euclidean costs, centred by the common mean so that offsets cost no digits.

        Points count by their `weights` a and b: one far away that weighs little must not move the
        others away from the origin.
        """
        membership = groups.membership()
        if not groups.covers:
            used = np.unique(groups.flat)
            X, Y, membership = X[:, used], Y[:, used], sparse.csr_array(membership[:, used])
        a, b = weights or (np.full(len(X), 1.0 / len(X)), np.full(len(Y), 1.0 / len(Y)))
        centre = 0.5 * (a @ X + b @ Y)
        return cls(X - centre, Y - centre, membership, origin=(X, Y))

    @classmethod
    def cosine(cls, X: np.ndarray, Y: np.ndarray, groups: Groups) -> FactoredCosts:
        r"""Cosine costs :math:`1 - \cos(x_i^{(l)}, y_j^{(l)})`.

        They are half the squared distances of unit vectors. A group's norm is its own, so a
        feature in two groups becomes two columns.
        """
        flat, offsets = groups.flat, groups.offsets
        sizes = np.diff(offsets)

        def unit(points: np.ndarray, label: str) -> np.ndarray:
            spread = points[:, flat]
            # Dividing by the largest entry first keeps squares of tiny or huge numbers finite.
            peaks = np.maximum.reduceat(np.abs(spread), offsets[:-1], axis=1)
            if not peaks.all():
                row, group = np.argwhere(peaks == 0.0)[0]
                raise InputError(
                    f"{label} row {row} is all zeros in group {groups.names[group]!r}, so it has "
                    "no cosine; drop such points or use metric='sqeuclidean'"
                )
            spread /= np.repeat(peaks, sizes, axis=1)
            norms = np.sqrt(np.add.reduceat(spread**2, offsets[:-1], axis=1))
            spread /= np.repeat(norms, sizes, axis=1)
            return spread

        ones = np.ones(len(flat))
        member = sparse.csr_array((ones, np.arange(len(flat)), offsets), (len(groups), len(flat)))
        return cls(unit(X, "X"), unit(Y, "Y"), member, scale=0.5)

    @property
    def on_host(self) -> bool:
        """NumPy's."""
        return True

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        return (len(self.membership.indptr) - 1, len(self.X), len(self.Y))

    @property
    def nonnegative(self) -> bool:
        """Squares are."""
        return True

    @cached_property
    def _one_to_one(self) -> bool:
        count, features = self.shape[0], self.X.shape[1]
        return count == features == len(self.membership.indices) and bool(
            (self.membership.indices == np.arange(features)).all()
            and (np.diff(self.membership.indptr) == 1).all()
        )

    def _pool(self, per_feature: np.ndarray) -> np.ndarray:
        """Sum the last axis of per-feature numbers over each group (first axis of the result)."""
        if self._one_to_one:
            return self.scale * per_feature.T
        return self.scale * np.asarray(self.membership @ per_feature.T)

    def _feature_weights(self, alpha: np.ndarray) -> np.ndarray:
        weights = alpha if self._one_to_one else self.membership.T @ alpha
        return self.scale * np.asarray(weights)

    @property
    def forbidden(self) -> None:
        """No arc is."""
        return None

    @property
    def line(self) -> None:
        """Not one convex cost on a line."""
        return None

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the one weighted squared distance matrix, shape (n, m)."""
        weights = self._feature_weights(alpha)
        on = np.flatnonzero(weights)
        full = len(on) == len(weights)
        n, m = self.shape[1:]
        cross, x_norms, y_norms = np.zeros((n, m)), np.zeros(n), np.zeros(m)
        for part in blocks(len(on), 8 * (2 * n + m)):
            columns = slice(part.start, part.stop) if full else on[part]
            X, Y, w = self.X[:, columns], self.Y[:, columns], weights[columns]
            scaled = X * w
            cross += scaled @ Y.T
            x_norms += np.einsum("ik,ik->i", scaled, X)
            y_norms += (Y * Y) @ w
        cross *= -2.0
        cross += x_norms[:, None]
        cross += y_norms
        return np.maximum(cross, 0.0, out=cross)

    def inner(self, plan: Plan) -> np.ndarray:
        """Return phi from differences on the arcs, or from X, Y and plan @ Y where it is dense."""
        if plan.is_sparse:
            rows, cols, mass = plan.arcs()
            X, Y = self.origin or (self.X, self.Y)
            total = np.empty(X.shape[1])
            # Blocks of features, so that the gathered differences stay in the cache.
            for part in blocks(len(total), 24 * len(mass), CACHE_BYTES):
                gaps = X[:, part][rows]
                gaps -= Y[:, part][cols]
                gaps *= gaps
                total[part] = mass @ gaps
            return self._pool(total)
        if self.X.shape[1] * plan.count <= PRECISE_UP_TO:
            return self.inner(Plan.from_arcs(*plan.arcs(), plan.shape))
        a, b = plan.sum(axis=1), plan.sum(axis=0)
        total = a @ self.X**2 + b @ self.Y**2
        total -= 2.0 * np.einsum("ik,ik->k", self.X, plan @ self.Y)
        return self._pool(np.maximum(total, 0.0))

    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the costs at the arcs, shape (groups, K)."""
        if groups is not None:
            return self._only(np.asarray(groups)).at(rows, cols)
        found = np.empty((self.shape[0], len(rows)))
        X, Y = self.origin or (self.X, self.Y)
        for part in blocks(len(rows), 16 * X.shape[1]):
            gaps = X[rows[part]]
            gaps -= Y[cols[part]]
            gaps *= gaps
            found[:, part] = self._pool(gaps)
        return found

    def _only(self, groups: np.ndarray) -> FactoredCosts:
        member = sparse.csr_array(self.membership[groups])
        used = np.unique(member.indices)
        origin = self.origin and (self.origin[0][:, used], self.origin[1][:, used])
        member = sparse.csr_array(member[:, used])
        return FactoredCosts(self.X[:, used], self.Y[:, used], member, self.scale, origin)

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        r"""Return phi of a b^T in closed form: both variances, and the distance of the means.

        All three are squares, so that nothing cancels. Points are taken from one of them first: a
        feature that is the same for all must cost nothing, not what rounding leaves.
        """
        X, Y = self.origin or (self.X, self.Y)
        mass_a, mass_b = float(a.sum()), float(b.sum())
        if mass_a == 0.0 or mass_b == 0.0:
            return np.zeros(self.shape[0])
        total = np.empty(X.shape[1])
        for part in blocks(len(total), 16 * (len(a) + len(b))):
            x, y = X[:, part] - X[0, part], Y[:, part] - X[0, part]
            x_mean, y_mean = a @ x / mass_a, b @ y / mass_b
            x, y = x - x_mean, y - y_mean
            spread = mass_b * (a @ (x * x)) + mass_a * (b @ (y * y))
            total[part] = spread + mass_a * mass_b * (x_mean - y_mean) ** 2
        return self._pool(total)

    def magnitudes(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the mean cost of every group."""
        return self.independent(a, b)

    def take(self, rows: np.ndarray, cols: np.ndarray) -> FactoredCosts:
        """Return the costs between some of the points."""
        origin = self.origin and (self.origin[0][rows], self.origin[1][cols])
        return FactoredCosts(self.X[rows], self.Y[cols], self.membership, self.scale, origin)

    def least(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the sum of what each feature's own transport costs, or the distance of the means.

        No plan does better in a feature than the one that is best for it, and no plan brings two
        clouds closer than their means are.
        """
        n, m, d = len(self.X), len(self.Y), self.X.shape[1]
        if (n + m) * d <= LINES_UP_TO:
            X, Y = self.origin or (self.X, self.Y)
            each = [_line_cost(X[:, k], Y[:, k], a, b) for k in range(d)]
            error = (n + m + d + 32.0) * UNIT
            if self.origin is None:
                # Unit vectors are right to a unit in their last place only.
                return np.maximum(self._pool(np.array(each)) * (1.0 - error) - 64.0 * UNIT, 0.0)
            return self._pool(np.array(each)) * (1.0 - error)
        x_mean, y_mean = a @ self.X, b @ self.Y
        gaps = np.abs(x_mean - y_mean)
        error = (n + m + 4.0) * UNIT
        gaps -= error * (a @ np.abs(self.X) + b @ np.abs(self.Y))
        return self._pool(np.maximum(gaps, 0.0) ** 2) * (1.0 - (self.X.shape[1] + 8.0) * UNIT)

    def least_potentials(
        self, alpha: np.ndarray, a: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sum of every feature's own potentials, or tangents at the means."""
        n, m, d = len(self.X), len(self.Y), self.X.shape[1]
        weights = self._feature_weights(alpha)
        if (n + m) * d <= LINES_UP_TO:
            X, Y = self.origin or (self.X, self.Y)
            f, g = np.zeros(n), np.zeros(m)
            for k in np.flatnonzero(weights):
                x, y = X[:, k], Y[:, k]
                own = line_potentials(x, y, line_arcs(x, y, a, b))
                f, g = f + weights[k] * own[0], g + weights[k] * own[1]
            return f, g
        x, y = a @ self.X, b @ self.Y
        slope = 2.0 * weights * (x - y)
        return (self.X - x) @ slope + float(slope @ (x - y)) / 2.0, (y - self.Y) @ slope

    def rounding(self, alpha: np.ndarray) -> Rounding:
        r"""Bound the error of the expanded square, which is relative to the norms of the points.

        With weights w, a sum of d products errs by at most d u times the sum of their sizes, and
        :math:`2 |\langle x, y \rangle_w| \le |x|_w^2 + |y|_w^2`, so that each point answers for
        its own norm; a few units more are what centring does.
        """
        weights = self._feature_weights(alpha)
        share = (np.count_nonzero(weights) + 8) * UNIT
        return Rounding(0.0, share * (self.X**2 @ weights), share * (self.Y**2 @ weights))

    def sharp(self, alpha: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray | None:
        """Return the mixed cost of single arcs from differences, less what rounding may add."""
        if self.origin is None:
            return None
        X, Y = self.origin
        weights = self._feature_weights(alpha)
        found = np.empty(len(rows))
        for part in blocks(len(rows), 16 * X.shape[1]):
            gaps = X[rows[part]]
            gaps -= Y[cols[part]]
            gaps *= gaps
            found[part] = gaps @ weights
        return found * (1.0 - (np.count_nonzero(weights) + 8) * UNIT)

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Bound the error of sums of squared differences; more where the square is expanded.

        Unit vectors are right to a unit in their last place only, so that a gap errs by 2 u, and
        its square by 4 u times the gap; Cauchy-Schwarz does the rest.
        """
        reach = self._pool(self._peaks)
        features = np.diff(self.membership.indptr)
        error = (summation(plan) + (features + 4) * UNIT) * phi
        if self.origin is None:
            error = error + 8.0 * UNIT * np.sqrt(reach * phi) + (4.0 * UNIT) ** 2 * reach
        if not plan.is_sparse and self.X.shape[1] * plan.count > PRECISE_UP_TO:
            error = error + 4.0 * (summation(plan) + 4.0 * UNIT) * reach
        return error

    @cached_property
    def _peaks(self) -> np.ndarray:
        """Largest square in each feature: a bound on every point's norm, whatever the weights."""
        sides = (np.maximum(points.max(axis=0), -points.min(axis=0)) for points in (self.X, self.Y))
        return np.maximum(*sides) ** 2


def _line_cost(x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    return line_cost(x, y, line_arcs(x, y, a, b))
