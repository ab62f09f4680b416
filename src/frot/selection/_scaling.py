r"""Scaling of features, so that two classes are comparable: the centre and the unit of each.

Costs are squared differences, so that the centre matters for rounding only; it is the midpoint of
the two class means. The scale decides the ranking:

- "balanced": :math:`s^2 = \tfrac12 (e_0 + e_1)` with :math:`e_k` the mean square of class k about
  the midpoint, so that after scaling the two energies sum to 2 and both classes count alike;
- "paper": the standard deviation over both classes pooled, where the larger class sets the scale;
- "none": :math:`s = 1`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from frot._base.errors import InputError
from frot.costs.protocol import blocks
from frot.selection._effects import Effects, measure


@dataclass(frozen=True, eq=False)
class Sides:
    """Samples of two classes with their weights.

    Features are handed out in blocks, as float64 and one row per feature, so that neither a sparse
    table nor one of another precision is ever copied whole.

    Examples
    --------
    >>> table = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]])
    >>> sides = Sides.of(table, np.array([0, 1]), np.array([2]))
    >>> sides.block(slice(0, 2))
    (array([[1., 2.],
           [5., 6.]]), array([[3.],
           [7.]]))
    """

    # Of shape (N, d), dense or in CSC order.
    table: Any
    # Which n samples are in the first class and which m in the second.
    rows: tuple[np.ndarray, np.ndarray]
    # Positive, each summing to one.
    weights: tuple[np.ndarray, np.ndarray]
    # The first class's part of the weight of both.
    share: float

    @classmethod
    def of(
        cls, table: Any, first: np.ndarray, second: np.ndarray, weight: np.ndarray | None = None
    ) -> Sides:
        """Split by rows; samples of weight zero are left out."""
        if weight is None:
            sizes = len(first), len(second)
            weights = tuple(np.full(size, 1.0 / size) for size in sizes)
            return cls(table, (first, second), (weights[0], weights[1]), sizes[0] / sum(sizes))
        first, second = first[weight[first] > 0.0], second[weight[second] > 0.0]
        totals = float(weight[first].sum()), float(weight[second].sum())
        weights = weight[first] / totals[0], weight[second] / totals[1]
        return cls(table, (first, second), weights, totals[0] / sum(totals))

    @property
    def shape(self) -> tuple[int, int, int]:
        """(d, n, m)."""
        return (self.table.shape[1], len(self.rows[0]), len(self.rows[1]))

    @property
    def is_sparse(self) -> bool:
        """Whether the table is."""
        return sparse.issparse(self.table)

    def block(self, columns: slice | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return both classes' values of some features, shapes (k, n) and (k, m), as copies."""
        if self.is_sparse:
            # A CSC table's transpose is the same arrays read as CSR: rows of it are features.
            dense = self.table.T[columns].toarray()
            # `dense[:, rows]` would lay features out in columns, and whoever reads one would hop.
            first, second = (np.take(dense, rows, axis=1) for rows in self.rows)
            return np.asarray(first, dtype=float), np.asarray(second, dtype=float)
        picked = self.table[:, columns]
        if picked.flags.f_contiguous:
            first, second = (np.take(picked.T, rows, axis=1) for rows in self.rows)
        else:
            first, second = (picked[rows].T for rows in self.rows)
        return np.ascontiguousarray(first, dtype=float), np.ascontiguousarray(second, dtype=float)


class SortedTransport:
    r"""Inner products of optimally matched values, :math:`\sum_{ij} \pi^*_{ij} x_i y_j`.

    In one dimension the optimal plan of any convex cost fills the masses of both sides in
    increasing order. With equal weights within each side that plan is the same for every feature
    once its values are sorted, whatever the two sizes, and has n + m - 1 entries at most: a block
    of features takes two sorts and one sum. Other weights follow their values into order. The
    weights a and b, of shapes (n,) and (m,), sum to one.

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
        self._pieces = sorted_pieces(len(a), len(b)) if self.equal else None

    def sort(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of both in increasing order; as they are where weights must follow."""
        return (np.sort(x, axis=1), np.sort(y, axis=1)) if self.equal else (x, y)

    def products(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the sums for features in rows as `sort` left them, (k, n) and (k, m) to (k,)."""
        if self._pieces is None:
            return self._weighted(x, y)
        if x.shape == y.shape:
            return np.einsum("ki,ki->k", x, y) / x.shape[1]
        at_x, at_y, mass = self._pieces
        pairs = x[:, at_x]
        pairs *= y[:, at_y]
        return pairs @ mass

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


def sorted_pieces(n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which of n and of m sorted points, of equal weights, share each piece of mass.

    There are n + m - 1 pieces at most. Point i holds the masses from i m to (i + 1) m of n m
    units, in whole numbers, so that no rounding decides which points meet.

    Examples
    --------
    >>> at_x, at_y, mass = sorted_pieces(2, 3)
    >>> at_x.tolist(), at_y.tolist(), mass.round(3).tolist()
    ([0, 0, 1, 1], [0, 1, 1, 2], [0.333, 0.167, 0.167, 0.333])
    """
    ends = np.union1d(m * np.arange(1, n + 1), n * np.arange(1, m + 1))
    mass = np.diff(ends, prepend=0) / (n * m)
    return (ends - 1) // m, (ends - 1) // n, mass


SCALINGS = ("balanced", "paper", "none")

# Temporaries of a block stay in the cache; scaled copies of dense tables this large are kept.
CACHE_BYTES = 1_000_000
KEEP_BYTES = 256_000_000
# A feature whose values differ by less than this share of their size is constant.
CONSTANT = 16.0 * float(np.finfo(float).eps)
# One whose spread is less than this share of its mean may be, but for rounding.
SUSPECT = 1e-6
OVERFLOW = "X: holds numbers so large that their squares overflow; divide it by a constant"


class Units(NamedTuple):
    """What makes two classes comparable: arrays of shape (d,)."""

    # A value v becomes (v - centre) / scale.
    centre: np.ndarray
    scale: np.ndarray
    # Features that do not vary: their scaled values are zero.
    constant: np.ndarray
    # Squared difference of the class means, in scaled units.
    shift: np.ndarray
    # Four times the squared correlation of the feature with the class, between 0 and 4 as the shift
    # is, in units of the pooled standard deviation, whatever the scaling.
    correlation: np.ndarray

    def apply(
        self, values: np.ndarray, columns: slice | np.ndarray, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Scale values of some features, in rows; they are overwritten, and written to `out`."""
        values -= self.centre[columns, None]
        out = np.multiply(
            values, 1.0 / self.scale[columns, None], out=values if out is None else out
        )
        if (constant := self.constant[columns]).any():
            out[constant] = 0.0
        return out


@dataclass(frozen=True, eq=False)
class Scaled:
    """Two classes in scaled units; arrays of shape (d,)."""

    # The samples as they came.
    sides: Sides
    units: Units
    # Mean squares of both classes, added up.
    energy: np.ndarray
    # Squared 2-Wasserstein distance of each feature alone, where it was asked for.
    wasserstein: np.ndarray | None
    # Largest square of a scaled value.
    peaks: np.ndarray
    # Scaled values of dense tables that are small enough.
    kept: tuple[np.ndarray, np.ndarray] | None

    def block(self, columns: slice | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scaled values of some features, shapes (k, n) and (k, m); not to be changed."""
        if self.kept is not None:
            return self.kept[0][columns], self.kept[1][columns]
        first, second = self.sides.block(columns)
        self.units.apply(first, columns)
        self.units.apply(second, columns)
        return first, second

    @property
    def parts(self) -> list[slice]:
        """All features, in blocks that suit the cache."""
        return _parts(self.sides)


def _parts(sides: Sides) -> list[slice]:
    d, n, m = sides.shape
    return blocks(d, 24 * (n + m), CACHE_BYTES)


def units_of(sides: Sides, effects: Effects, how: str = "balanced") -> Units:
    """Return centre, scale, shift and correlation from means and variances alone.

    Examples
    --------
    >>> from frot.selection._effects import measure
    >>> table = np.array([[0.0], [2.0], [4.0], [6.0]])
    >>> rows = np.array([0, 1]), np.array([2, 3])
    >>> units_of(Sides.of(table, *rows), measure(table, *rows)).shift
    array([3.2])
    """
    one, two = effects.means
    with np.errstate(over="ignore", invalid="ignore"):
        gap = np.square(one - two)
        # About the midpoint, and of the samples themselves.
        x_energy, y_energy = (
            variance * (1.0 - 1.0 / size) + 0.25 * gap
            for variance, size in zip(effects.variances, effects.sizes, strict=True)
        )
        if not np.isfinite(x_energy + y_energy).all():
            raise InputError(OVERFLOW)
    middle = 0.5 * (one + two)
    size = np.sqrt(_variance(x_energy, y_energy, gap, sides.share, how))
    spread = np.sqrt(x_energy + y_energy)
    constant = size == 0.0
    # Rounding makes a spread of constants: those that have next to none are looked at.
    suspects = np.flatnonzero(spread <= SUSPECT * np.abs(middle))
    for part in blocks(len(suspects), 24 * sum(sides.shape[1:]), CACHE_BYTES):
        low, high = _extremes(*sides.block(suspects[part]))
        flat = high - low <= CONSTANT * np.maximum(np.abs(low), np.abs(high))
        constant[suspects[part]] |= flat
        middle[suspects[part]] = np.where(flat, low, middle[suspects[part]])
    size[constant] = 1.0
    shift = np.where(constant, 0.0, gap / size**2)
    pooled = np.where(constant, 1.0, _variance(x_energy, y_energy, gap, sides.share, "paper"))
    related = sides.share * (1.0 - sides.share) * gap / np.where(pooled > 0.0, pooled, 1.0)
    correlation = np.where(constant, 0.0, 4.0 * np.minimum(related, 1.0))
    return Units(middle, size, constant, shift, correlation)


def scale_sides(
    sides: Sides, how: str = "balanced", effects: Effects | None = None, *, wasserstein: bool = True
) -> Scaled:
    """Read every feature in scaled units: its energy and, if asked for, Wasserstein distance.

    `effects` are those between the two sides, where they are known.

    Examples
    --------
    >>> table = np.array([[0.0], [2.0], [4.0], [6.0]])
    >>> scaled = scale_sides(Sides.of(table, np.array([0, 1]), np.array([2, 3])))
    >>> scaled.energy, scaled.units.shift, scaled.wasserstein
    (array([2.]), array([3.2]), array([3.2]))
    """
    d, n, m = sides.shape
    a, b = sides.weights
    if effects is None:
        weight = np.zeros(sides.table.shape[0])
        # Equal weights are ones, to the last digit.
        weight[sides.rows[0]], weight[sides.rows[1]] = a / a.max(), b / b.max()
        effects = measure(sides.table, *sides.rows, weight)
    units = units_of(sides, effects, how)
    matched = SortedTransport(a, b)
    keep = not sides.is_sparse and 8 * d * (n + m) <= KEEP_BYTES
    kept = (np.empty((d, n)), np.empty((d, m))) if keep else None
    energy, product, peaks = np.zeros((3, d))
    with np.errstate(over="ignore", invalid="ignore"):
        for part in _parts(sides):
            outs = (None, None) if kept is None else (kept[0][part], kept[1][part])
            x, y = (
                units.apply(values, part, out)
                for values, out in zip(sides.block(part), outs, strict=True)
            )
            energy[part] = np.square(x) @ a + np.square(y) @ b
            x, y = matched.sort(x, y) if wasserstein else (x, y)
            low, high = _extremes(x, y, in_order=wasserstein and matched.equal)
            peaks[part] = np.square(np.maximum(high, -low))
            if wasserstein:
                product[part] = matched.products(x, y)
    if not (np.isfinite(energy).all() and np.isfinite(peaks).all()):
        raise InputError(OVERFLOW)
    distance = np.maximum(energy - 2.0 * product, units.shift) if wasserstein else None
    return Scaled(sides, units, energy, distance, peaks, kept)


def _extremes(
    x: np.ndarray, y: np.ndarray, in_order: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest value of features in rows, over both classes."""
    if in_order:
        return np.minimum(x[:, 0], y[:, 0]), np.maximum(x[:, -1], y[:, -1])
    low = np.minimum(x.min(axis=1), y.min(axis=1))
    return low, np.maximum(x.max(axis=1), y.max(axis=1))


def _variance(
    x_energy: np.ndarray, y_energy: np.ndarray, gap: np.ndarray, share: float, how: str
) -> np.ndarray:
    """Return the squared scale of features from energies about the midpoint."""
    if how == "balanced":
        return 0.5 * (x_energy + y_energy)
    if how == "paper":
        # The pooled mean is not the midpoint: 1/4 - p (1 - p) of the squared gap lies between.
        apart = (0.5 - share) ** 2
        pooled = share * x_energy + (1.0 - share) * y_energy - apart * gap
        return np.maximum(pooled, 0.0)
    return np.ones_like(gap)
