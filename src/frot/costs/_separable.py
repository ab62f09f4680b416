"""|x - y|^p with one feature per group: mixed by one Minkowski distance, never stacked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from frot.costs.protocol import UNIT, Costs, Line, Rounding, blocks, summation
from frot.plans.plan import Plan

__all__ = ["SeparableCosts"]

# Beyond so many pairs of points means of these powers come from cumulated moments.
SORT_FROM = 10_000
WHOLE_POWERS = frozenset({1.0, 2.0, 3.0, 4.0})


@dataclass(frozen=True, eq=False)
class SeparableCosts(Costs):
    r"""Costs :math:`[C_l]_{ij} = |x_{il} - y_{jl}|^p`, one feature per group.

    .. math:: M_\alpha = \| \alpha^{1/p} \circ (x_i - y_j) \|_p^p

    Examples
    --------
    >>> costs = SeparableCosts(np.array([[0.0, 0.0]]), np.array([[1.0, 2.0]]), p=1.0)
    >>> costs.mix(np.array([0.5, 0.5]))
    array([[1.5]])
    """

    X: np.ndarray
    Y: np.ndarray
    p: float = 1.0

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        return (self.X.shape[1], len(self.X), len(self.Y))

    @property
    def nonnegative(self) -> bool:
        """Powers of absolute values are not negative."""
        return True

    def _power(self, gaps: np.ndarray) -> np.ndarray:
        np.abs(gaps, out=gaps)
        return gaps if self.p == 1.0 else np.power(gaps, self.p, out=gaps)

    @property
    def line(self) -> Line | None:
        """The points, where there is one feature and the power is convex."""
        if self.shape[0] > 1 or self.p < 1.0:
            return None
        return Line(self.X[:, 0], self.Y[:, 0], self.p)

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the weighted sum of the costs as one distance matrix."""
        on = np.flatnonzero(alpha)
        X, Y, weights = self.X[:, on], self.Y[:, on], alpha[on]
        # Loads trees and hulls too: only those who need a distance pay for it.
        from scipy.spatial.distance import cdist

        # Differences of points as they are have all their digits, wherever other points lie.
        if self.p == 1.0:
            return cdist(X, Y, "cityblock", w=weights)
        if self.p == 2.0:
            return cdist(X, Y, "sqeuclidean", w=weights)
        return cdist(X, Y, "minkowski", p=self.p, w=weights) ** self.p

    def inner(self, plan: Plan) -> np.ndarray:
        """Return phi from the arcs of the plan."""
        rows, cols, mass = plan.arcs()
        total = np.zeros(self.shape[0])
        for part in blocks(len(mass), 16 * self.shape[0]):
            total += mass[part] @ self._power(self.X[rows[part]] - self.Y[cols[part]])
        return total

    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the costs at the arcs, shape (groups, K)."""
        X, Y = (self.X, self.Y) if groups is None else (self.X[:, groups], self.Y[:, groups])
        return np.ascontiguousarray(self._power(X[rows] - Y[cols]).T)

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return phi of a b^T: by sorting for whole powers, else a row of points at a time."""
        if self.p in WHOLE_POWERS and len(a) * len(b) > SORT_FROM:
            X, Y = self.X - self._centre, self.Y - self._centre
            columns = range(self.shape[0])
            return np.array([_mean_power(X[:, k], Y[:, k], a, b, int(self.p)) for k in columns])
        total = np.zeros(self.shape[0])
        for weight, x in zip(a, self.X, strict=True):
            total += weight * (b @ self._power(self.Y - x))
        return total

    def take(self, rows: np.ndarray, cols: np.ndarray) -> SeparableCosts:
        """Return the costs between some of the points."""
        return SeparableCosts(self.X[rows], self.Y[cols], self.p)

    def least(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        r"""Return :math:`|\bar x - \bar y|^p` for p >= 1 (Jensen), and zero otherwise."""
        if self.p < 1.0:
            return np.zeros(self.shape[0])
        gaps = np.abs(a @ self.X - b @ self.Y)
        gaps -= (len(a) + len(b) + 4.0) * UNIT * (a @ np.abs(self.X) + b @ np.abs(self.Y))
        return np.maximum(gaps, 0.0) ** self.p * (1.0 - 8.0 * self.p * UNIT)

    def least_potentials(
        self, alpha: np.ndarray, a: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""Return tangents: :math:`|t|^p \ge |\delta|^p + p |\delta|^{p-1} s (t - \delta)`."""
        if self.p < 1.0:
            return np.zeros(len(a)), np.zeros(len(b))
        x, y = a @ self.X, b @ self.Y
        gap = np.abs(x - y)
        slope = alpha * self.p * gap ** (self.p - 1.0) * np.sign(x - y)
        return (self.X - x) @ slope + float(alpha @ gap**self.p), (y - self.Y) @ slope

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Bound the error of a sum of powers of differences, which is relative."""
        return Rounding((np.count_nonzero(alpha) + 8.0 * self.p) * UNIT)

    def sharp(self, alpha: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray | None:
        """Return the mixed cost of single arcs from differences, less what rounding may add."""
        found = np.empty(len(rows))
        for part in blocks(len(rows), 16 * self.shape[0]):
            found[part] = self._power(self.X[rows[part]] - self.Y[cols[part]]) @ alpha
        return found * (1.0 - (np.count_nonzero(alpha) + 8.0 * self.p) * UNIT)

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Bound the error of sums over the plan of powers of differences."""
        return (summation(plan) + 8.0 * self.p * UNIT) * phi

    @cached_property
    def _centre(self) -> np.ndarray:
        return (self.X.sum(axis=0) + self.Y.sum(axis=0)) / (len(self.X) + len(self.Y))


def _mean_power(x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray, p: int) -> float:
    r"""Return :math:`\sum_{ij} a_i b_j |x_i - y_j|^p` for a whole p, in O(n log n).

    On either side of :math:`x_i` the power is a polynomial, whose moments of y are cumulated.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> _mean_power(np.array([0.0, 1.0]), np.array([0.0, 3.0]), half, half, p=1)
    1.5
    """
    order = np.argsort(y)
    y, b = y[order], b[order]
    below = np.searchsorted(y, x)
    total = 0.0
    for k in range(p + 1):
        moments = np.append(0.0, np.cumsum(b * (-y) ** k))
        # (x - y)^p below x, and (-1)^p times it above.
        sides = moments[below] + (-1.0) ** p * (moments[-1] - moments[below])
        total += comb(p, k) * float(a @ (x ** (p - k) * sides))
    # Where all points are the same this is what rounding leaves.
    reach = float(max(np.abs(x).max(), np.abs(y).max())) ** p
    return total if total > (len(x) + len(y)) * UNIT * reach else 0.0
