"""Costs of scaled features, read in blocks: of all groups, and of the few that carry the weight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from frot.costs.protocol import UNIT, Costs, Rounding, blocks, summation
from frot.groups.groups import Groups
from frot.plans.plan import Plan, is_sparse, n_entries
from frot.selection._scaling import CACHE_BYTES, Scaled

# A plan with fewer entries than this share of n m is multiplied as a sparse matrix.
SPARSE_PLAN = 0.05


def one_each(groups: Groups) -> bool:
    """Whether every feature is a group of its own, in order."""
    return groups.in_order and len(groups) == groups.n_features


def pooling(groups: Groups, constant: np.ndarray, how: str) -> sparse.csr_array | None:
    """Return the matrix that pools costs of features into costs of groups; None for one each.

    With ``how="mean"`` a group costs the mean over its features that vary, so that large groups
    do not win by being large; with "sum" their total, as in the paper.

    Examples
    --------
    >>> groups = Groups.from_indices([[0, 1], [2]], 3)
    >>> pooling(groups, np.zeros(3, dtype=bool), "mean").toarray()
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 1. ]])
    """
    if one_each(groups):
        return None
    matrix = groups.membership()
    if how == "mean":
        varying = np.add.reduceat(~constant[groups.flat], groups.offsets[:-1], dtype=float)
        matrix.data /= np.repeat(np.maximum(varying, 1.0), groups.sizes)
    return matrix


def pooled(pool: sparse.csr_array | None, per_feature: np.ndarray) -> np.ndarray:
    """Sum numbers of features, in the last axis, over each group; None is one group a feature."""
    return per_feature if pool is None else np.asarray(pool @ per_feature.T).T


@dataclass(frozen=True, eq=False)
class BlockedCosts(Costs):
    r"""Squared differences of scaled features, pooled into groups.

    .. math::
        [C_l]_{ij} = \sum_k B_{lk} (x_{ik} - y_{jk})^2, \qquad
        \phi_l(\Pi) = \sum_k B_{lk} \Big( e_k - 2 \sum_{ij} \pi_{ij} x_{ik} y_{jk} \Big)

    with :math:`e_k` the energies of both classes and B the `pool`, (L, d), or None for one group a
    feature.

    Examples
    --------
    >>> from frot.selection._scaling import Sides
    >>> from frot.selection._scaling import scale_sides
    >>> table = np.array([[0.0], [2.0], [4.0], [6.0]])
    >>> scaled = scale_sides(Sides.of(table, np.array([0, 1]), np.array([2, 3])), "none")
    >>> BlockedCosts(scaled).mix(np.array([1.0]))
    array([[16., 36.],
           [ 4., 16.]])
    """

    scaled: Scaled
    pool: sparse.csr_array | None = None

    @property
    def nonnegative(self) -> bool:
        """Squares are not negative."""
        return True

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        d, n, m = self.scaled.sides.shape
        return (d if self.pool is None else len(self.pool.indptr) - 1, n, m)

    def pooled(self, per_feature: np.ndarray) -> np.ndarray:
        """Sum numbers of features, in the last axis, over each group."""
        return pooled(self.pool, per_feature)

    def feature_weights(self, alpha: np.ndarray) -> np.ndarray:
        """Return the weight of each feature, from those of all groups that hold it."""
        return alpha if self.pool is None else np.asarray(self.pool.T @ alpha)

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return sum_l alpha_l C_l, shape (n, m)."""
        return self.mix_features(self.feature_weights(alpha))

    def mix_features(self, weights: np.ndarray) -> np.ndarray:
        """Return the squared distances with a weight on each feature; zeros cost nothing."""
        on = np.flatnonzero(weights)
        _, n, m = self.shape
        mixed = np.zeros((n, m))
        if 2 * len(on) > len(weights):
            # Most of them: reading the others along is cheaper than picking.
            parts = self.scaled.parts
        else:
            parts = [on[part] for part in blocks(len(on), 24 * (n + m), CACHE_BYTES)]
        for part in parts:
            mixed += squared_distances(*self.scaled.block(part), weights[part])
        return np.maximum(mixed, 0.0, out=mixed)

    def features(self, plan: Plan) -> np.ndarray:
        """Return the plan's cost in every feature, shape (d,)."""
        n, m = plan.shape
        small = is_sparse(plan) and n_entries(plan) < SPARSE_PLAN * n * m
        matrix = plan if small else plan.dense()
        found = np.empty(len(self.scaled.energy))
        for part in self.scaled.parts:
            x, y = self.scaled.block(part)
            found[part] = np.einsum("kj,kj->k", x @ matrix, y)
        return np.maximum(self.scaled.energy - 2.0 * found, 0.0)

    def inner(self, plan: Plan) -> np.ndarray:
        """Return phi, shape (L,)."""
        return self.pooled(self.features(plan))

    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the costs at the arcs, shape (groups, K)."""
        pool = self.pool
        if groups is None:
            wanted = np.arange(len(self.scaled.energy))
        elif pool is None:
            wanted = np.asarray(groups)
        else:
            pool = sparse.csr_array(pool[groups])
            wanted = np.unique(pool.indices)
            pool = sparse.csr_array(pool[:, wanted])
        found = np.empty((len(wanted), len(rows)))
        for part in blocks(len(wanted), 24 * sum(self.shape[1:]), CACHE_BYTES):
            x, y = self.scaled.block(wanted[part])
            found[part] = np.square(x[:, rows] - y[:, cols])
        return found if pool is None else np.asarray(pool @ found)

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return phi of a b^T, in closed form for the weights of the two classes."""
        own = self.scaled.sides.weights
        if a is own[0] and b is own[1]:
            # The means are at half the shift on either side of zero.
            return self.pooled(self.scaled.energy + 0.5 * self.scaled.units.shift)
        return self.inner(Plan(np.outer(a, b), copy=False))

    def take(self, rows: np.ndarray, cols: np.ndarray) -> BlockedCosts:
        """Samples without weight were left out before."""
        raise NotImplementedError

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Bound the error of the expanded square, which is relative to the norms of the points."""
        weights = self.feature_weights(alpha)
        largest = float(weights @ self.scaled.peaks)
        return Rounding(0.0, (np.count_nonzero(weights) + 4) * UNIT * 4.0 * largest)

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Bound the error of expanded squares, summed over a plan and over a group."""
        sums = summation(plan)
        return (sums + self._sizes * UNIT) * phi + 4.0 * (sums + 8.0 * UNIT) * self._reach

    @cached_property
    def _sizes(self) -> np.ndarray:
        return np.full(self.shape[0], 9.0) if self.pool is None else 8.0 + np.diff(self.pool.indptr)

    @cached_property
    def _reach(self) -> np.ndarray:
        return self.pooled(self.scaled.peaks)


def squared_distances(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return weighted squared distances between points in columns, shape (n, m)."""
    scaled = x * weights[:, None]
    mixed = scaled.T @ y
    mixed *= -2.0
    mixed += np.einsum("ki,ki->i", scaled, x)[:, None]
    mixed += weights @ np.square(y)
    return mixed


# Values of features that are kept for the time of a round, of dense and of sparse tables; more
# are read again at every step.
HOLD_BYTES = 64_000_000
HOLD_SPARSE_BYTES = 8_000_000


def heaviest(weights: np.ndarray, left_out: float, most: int | None = None) -> np.ndarray:
    """Return the fewest positions that hold all but a share `left_out` of the weight, in order.

    `most` is how many there may be at most, whatever they hold.

    Examples
    --------
    >>> heaviest(np.array([0.5, 0.01, 0.09, 0.4]), left_out=0.05)
    array([0, 2, 3])
    """
    rising = np.sort(weights)
    light = int(np.searchsorted(np.cumsum(rising), left_out * weights.sum()))
    if most is not None:
        light = max(light, len(rising) - max(most, 1))
    if light >= len(rising):
        return np.arange(0)
    chosen = np.flatnonzero(weights >= rising[light])
    if len(chosen) > len(rising) - light:
        # Of equal weights some are taken. Where there are none a sort of positions is not needed.
        chosen = np.sort(np.argsort(weights, kind="stable")[light:])
    return chosen


class ActiveCosts:
    """Costs of some of the groups, by position."""

    def __init__(self, costs: BlockedCosts, groups: np.ndarray) -> None:
        self.scaled, self.pool = costs.scaled, None
        self.features = groups
        if costs.pool is not None:
            picked = sparse.csr_array(costs.pool[groups])
            self.features = np.unique(picked.indices)
            self.pool = sparse.csr_array(picked[:, self.features])
        _, self.n, self.m = costs.shape
        self.energy = self.scaled.energy[self.features]
        size = 8 * len(self.features) * (self.n + self.m)
        limit = HOLD_SPARSE_BYTES if self.scaled.sides.is_sparse else HOLD_BYTES
        self._held = self.scaled.block(self.features) if size <= limit else None

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        # Blocks even of what is held, so that temporaries stay in the cache.
        for part in blocks(len(self.features), 24 * (self.n + self.m), CACHE_BYTES):
            if self._held is not None:
                yield part, self._held[0][part], self._held[1][part]
            else:
                yield part, *self.scaled.block(self.features[part])

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the mixed cost at the weights of these groups, shape (n, m)."""
        weights = alpha if self.pool is None else np.asarray(self.pool.T @ alpha)
        mixed = np.zeros((self.n, self.m))
        for part, x, y in self._blocks():
            mixed += squared_distances(x, y, weights[part])
        return np.maximum(mixed, 0.0, out=mixed)

    def inner(self, plan: Plan) -> np.ndarray:
        """Return the plan's cost in each of these groups."""
        matrix = plan.dense()
        found = np.empty(len(self.features))
        for part, x, y in self._blocks():
            found[part] = np.einsum("kj,kj->k", x @ matrix, y)
        costs = self.energy - 2.0 * found
        return costs if self.pool is None else np.asarray(self.pool @ costs)
