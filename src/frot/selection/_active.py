"""The few groups that carry the weight: their costs, read once and kept where they fit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from frot.costs.protocol import blocks
from frot.plans.plan import Plan
from frot.selection._blocked import BlockedCosts, squared_distances
from frot.selection._scaling import CACHE_BYTES

__all__ = ["ActiveCosts", "heaviest"]

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
    order = np.argsort(weights)
    light = int(np.searchsorted(np.cumsum(weights[order]), left_out * weights.sum()))
    if most is not None:
        light = max(light, len(order) - max(most, 1))
    return np.sort(order[light:])


class ActiveCosts:
    """Costs of some of the groups.

    Parameters
    ----------
    costs : BlockedCosts
    groups : array of intp
        Which ones.
    """

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
