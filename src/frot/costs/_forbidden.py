"""Costs with forbidden arcs: infinite in some group, and so for every plan worth having."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from frot.costs.protocol import Costs, Rounding
from frot.costs.stack import StackedCosts
from frot.plans.plan import Plan

__all__ = ["ForbiddenCosts"]


@dataclass(frozen=True, eq=False)
class ForbiddenCosts(Costs):
    r"""Costs on the arcs that are allowed, infinite on the others.

    An arc of infinite cost in one group is forbidden in all: whatever mass it carried, the
    adversary would put weight on that group.

    Parameters
    ----------
    base : Costs
        Finite everywhere; what it says of forbidden arcs does not matter.
    shut : array of shape (n, m), bool
        The forbidden arcs.

    Examples
    --------
    >>> costs = ForbiddenCosts.of_stack(np.array([[[0.0, np.inf]], [[2.0, 1.0]]]))
    >>> costs.mix(np.array([1.0, 0.0]))
    array([[ 0., inf]])
    """

    base: Costs
    shut: np.ndarray

    @property
    def forbidden(self) -> np.ndarray:
        """The forbidden arcs, (n, m)."""
        return self.shut

    @classmethod
    def of_stack(cls, stack: np.ndarray) -> ForbiddenCosts:
        """Read forbidden arcs off a stack of shape (L, n, m) that has infinite entries."""
        forbidden = np.asarray(np.isinf(stack).any(axis=0))
        allowed = ~forbidden
        filled = np.array(stack, dtype=float)
        for cost in filled:
            # The least of the others changes neither the range of the costs nor their sign.
            cost[forbidden] = cost[allowed].min(initial=np.inf) if allowed.any() else 0.0
        return cls(StackedCosts(filled), forbidden)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        return self.base.shape

    @property
    def nonnegative(self) -> bool:
        """Whether no allowed entry is negative."""
        return self.base.nonnegative

    @cached_property
    def peaks(self) -> np.ndarray:
        """Largest size of an entry that is allowed."""
        return self.base.peaks

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return sum_l alpha_l C_l, infinite on forbidden arcs whatever the weights."""
        mixed = self.base.mix(alpha)
        mixed[self.forbidden] = np.inf
        return mixed

    def inner(self, plan: Plan) -> np.ndarray:
        """Return <plan, C_l>, infinite if the plan uses a forbidden arc."""
        rows, cols, _ = plan.arcs()
        if self.forbidden[rows, cols].any():
            return np.full(self.shape[0], np.inf)
        return self.base.inner(plan)

    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the costs at the arcs, shape (groups, K)."""
        found = self.base.at(rows, cols, groups)
        found[:, self.forbidden[rows, cols]] = np.inf
        return found

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the mean of every group's cost over the allowed arcs, weighted by a b^T."""
        return self._allowed_mean(a, b, absolute=False)

    def magnitudes(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the mean size of every group's cost over the allowed arcs."""
        return self._allowed_mean(a, b, absolute=True)

    def _allowed_mean(self, a: np.ndarray, b: np.ndarray, absolute: bool) -> np.ndarray:
        rows, cols = np.nonzero(~self.forbidden)
        weights = a[rows] * b[cols]
        entries = self.base.at(rows, cols)
        total = float(weights.sum())
        return (np.abs(entries) if absolute else entries) @ weights / (total or 1.0)

    def take(self, rows: np.ndarray, cols: np.ndarray) -> ForbiddenCosts:
        """Return the costs between some of the points."""
        return ForbiddenCosts(self.base.take(rows, cols), self.forbidden[np.ix_(rows, cols)])

    def least(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the base's."""
        return self.base.least(a, b)

    def least_potentials(
        self, alpha: np.ndarray, a: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the base's."""
        return self.base.least_potentials(alpha, a, b)

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Bound the rounding of entries that are allowed."""
        return self.base.rounding(alpha)

    def sharp(self, alpha: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray | None:
        """Return the base's sharper entries; forbidden arcs never bind."""
        return self.base.sharp(alpha, rows, cols)

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Bound the error of sums over a plan that uses allowed arcs."""
        return self.base.doubt(phi, plan)
