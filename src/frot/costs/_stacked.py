"""A dense stack of cost matrices: few groups, or costs that came as matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from frot.costs.protocol import UNIT, Rounding, constant_potentials, summation
from frot.plans.plan import Plan

__all__ = ["StackedCosts"]


@dataclass(frozen=True, eq=False)
class StackedCosts:
    """Costs kept as one array of shape (L, n, m).

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
    def on_host(self) -> bool:
        """NumPy's."""
        return True

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
    def _largest(self) -> np.ndarray:
        """Largest size of an entry in each group."""
        return np.maximum(self._flat.max(axis=1), -self._flat.min(axis=1))

    @cached_property
    def _flat(self) -> np.ndarray:
        return self.stack.reshape(len(self.stack), -1)

    @property
    def forbidden(self) -> None:
        """No arc is."""
        return None

    @property
    def line(self) -> None:
        """Not one convex cost on a line."""
        return None

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return sum_l alpha_l C_l, reading only the groups that have weight."""
        if len(alpha) == 1:
            return alpha[0] * self.stack[0]
        on = np.flatnonzero(alpha)
        if len(on) * 3 < len(alpha):
            mixed = np.zeros(self._flat.shape[1])
            for group in on:
                mixed += alpha[group] * self._flat[group]
        else:
            mixed = alpha @ self._flat
        return mixed.reshape(self.shape[1:])

    def inner(self, plan: Plan) -> np.ndarray:
        """Return <plan, C_l> for every group."""
        if plan.is_sparse:
            rows, cols, mass = plan.arcs()
            return self.at(rows, cols) @ mass
        return self._flat @ plan.dense().ravel()

    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the costs at the arcs, shape (groups, K)."""
        where = np.asarray(rows, dtype=np.intp) * self.shape[2] + cols
        if groups is None:
            return np.take(self._flat, where, axis=1)
        return np.stack([self._flat[group][where] for group in groups])

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return a^T C_l b for every group."""
        return (self.stack @ b) @ a

    def magnitudes(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the mean size of every group's cost."""
        if self.nonnegative:
            return self.independent(a, b)
        return np.array([a @ np.abs(cost) @ b for cost in self.stack])

    def take(self, rows: np.ndarray, cols: np.ndarray) -> StackedCosts:
        """Return the costs between some of the points."""
        part = np.ascontiguousarray(self.stack[:, rows][:, :, cols])
        error = self.error and (self.error[0][:, rows], self.error[1][:, cols])
        return StackedCosts(part, error, self.relative)

    def least(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the least entry of every group: one pass, which the stack has cost already."""
        least = self._flat.min(axis=1)
        return least - (self.relative + 4.0 * UNIT) * np.abs(least) - self._most_error

    def least_potentials(
        self, alpha: np.ndarray, a: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a constant for the rows, and nothing for the columns."""
        return constant_potentials(self, alpha, a, b)

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Bound the error of a sum of L products: relative where no term is negative."""
        rows, cols = (0.0, 0.0) if self.error is None else (alpha @ off for off in self.error)
        relative = (np.count_nonzero(alpha) + 2) * UNIT + self.relative
        if self.nonnegative:
            return Rounding(relative, rows, cols)
        return Rounding(0.0, rows + relative * float(alpha @ self._largest), cols)

    def sharp(self, alpha: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> None:
        """Entries of a mix are as sharp as they get."""

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Bound the error of sums over the plan, and of the entries themselves."""
        size = np.abs(phi) if self.nonnegative else self._largest
        error = self._most_error
        if self.error is not None and plan.is_sparse:
            error = self.error[0] @ plan.sum(axis=1) + self.error[1] @ plan.sum(axis=0)
        return (summation(plan) + self.relative) * size + error

    @cached_property
    def _most_error(self) -> np.ndarray | float:
        if self.error is None:
            return 0.0
        return self.error[0].max(axis=1) + self.error[1].max(axis=1)
