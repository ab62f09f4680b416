r"""What a feature's cost is made of: a shift of the mean, a change of shape, and misalignment.

For one feature with values x and y, weights a and b, and any plan in U(a, b),

.. math::
    \phi = \underbrace{\Delta^2}_{\text{shift}}
        + \underbrace{W_2^2 - \Delta^2}_{\text{shape}}
        + \underbrace{\phi - W_2^2}_{\text{misalignment}},
    \qquad \Delta = \textstyle\sum_i a_i x_i - \sum_j b_j y_j,

where :math:`W_2` is the Wasserstein distance of the feature alone. All three are >= 0: the mean
cannot move by more than the points do, and no plan moves one feature more cheaply than sorting.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

__all__ = ["Parts", "SortedTransport"]


@dataclass(frozen=True, eq=False)
class Parts:
    """Costs of features, or of groups of them, and what they are made of; shapes (L,).

    Examples
    --------
    >>> Parts.of(np.array([3.0]), shift=np.array([1.0]), wasserstein=np.array([1.5]))
    Parts(phi=array([3.]), shift=array([1.]), shape=array([0.5]), misalignment=array([1.5]))
    """

    phi: np.ndarray
    shift: np.ndarray
    shape: np.ndarray
    misalignment: np.ndarray

    @classmethod
    def of(cls, phi: np.ndarray, shift: np.ndarray, wasserstein: np.ndarray) -> Parts:
        """Take the parts apart; what rounding leaves below zero is zero."""
        return cls(
            phi, shift, np.maximum(wasserstein - shift, 0.0), np.maximum(phi - wasserstein, 0.0)
        )

    @classmethod
    def mean(cls, several: list[Parts]) -> Parts:
        """Average over comparisons."""
        if len(several) == 1:
            return several[0]
        names = [field.name for field in fields(cls)]
        return cls(*(np.mean([getattr(parts, name) for parts in several], axis=0)
                     for name in names))  # fmt: skip


class SortedTransport:
    r"""Inner products of optimally matched values, :math:`\sum_{ij} \pi^*_{ij} x_i y_j`.

    In one dimension the optimal plan of any convex cost fills the masses of both sides in
    increasing order. With equal weights within each side that plan is the same for every feature
    once its values are sorted, whatever the two sizes, so that a block of features takes two
    sorts and one small product. Other weights follow their values into order, feature by feature.

    Parameters
    ----------
    a, b : arrays of shape (n,) and (m,)
        Weights that sum to one.

    Examples
    --------
    >>> matched = SortedTransport(np.full(2, 0.5), np.full(3, 1 / 3))
    >>> x, y = np.array([[3.0, 0.0]]), np.array([[1.0, 3.0, 2.0]])
    >>> matched.products(*matched.sort(x, y))  # 3 with 3 and half of 2, 0 with 1 and half of 2
    array([4.])
    """

    def __init__(self, a: np.ndarray, b: np.ndarray) -> None:
        self.a, self.b = a, b
        # Weights that came from dividing equal ones may differ in the last place.
        self.equal = bool(np.ptp(a) <= 1e-12 * a[0] and np.ptp(b) <= 1e-12 * b[0])
        self._plan = _fill(len(a), len(b)) if self.equal else None

    def sort(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of both in increasing order; as they are where weights must follow."""
        return (np.sort(x, axis=1), np.sort(y, axis=1)) if self.equal else (x, y)

    def products(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the sums for features in rows as `sort` left them, (k, n) and (k, m) to (k,)."""
        if self._plan is not None:
            return np.einsum("kj,kj->k", x @ self._plan, y)
        return self._weighted(x, y)

    def _weighted(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        n, m = len(self.a), len(self.b)
        rows, cols = np.argsort(x, axis=1), np.argsort(y, axis=1)
        ends = np.concatenate([self.a[rows].cumsum(axis=1), self.b[cols].cumsum(axis=1)], axis=1)
        order = np.argsort(ends, axis=1, kind="stable")
        mass = np.diff(np.take_along_axis(ends, order, axis=1), prepend=0.0, axis=1)
        # The piece of mass that ends here is of the value after all those that ended before.
        of_x = order < n
        past_x = np.minimum(of_x.cumsum(axis=1) - of_x, n - 1)
        past_y = np.minimum((~of_x).cumsum(axis=1) - ~of_x, m - 1)
        at_x = np.take_along_axis(rows, past_x, axis=1)
        at_y = np.take_along_axis(cols, past_y, axis=1)
        values = np.take_along_axis(x, at_x, axis=1) * np.take_along_axis(y, at_y, axis=1)
        return np.einsum("kp,kp->k", mass, values)


def _fill(n: int, m: int) -> np.ndarray:
    """Return the plan between n and m sorted points of equal weights, shape (n, m).

    Point i holds the masses from i m to (i + 1) m of n m units, in whole numbers, so that no
    rounding decides which points meet.
    """
    starts_x, starts_y = m * np.arange(n)[:, None], n * np.arange(m)
    overlap = np.minimum(starts_x + m, starts_y + n) - np.maximum(starts_x, starts_y)
    return np.maximum(overlap, 0) / (n * m)
