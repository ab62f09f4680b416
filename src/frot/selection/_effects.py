r"""How each feature differs between two classes, with its sign: means, fold change, Welch's t.

For classes of means :math:`\mu_1, \mu_2`, variances :math:`s_1^2, s_2^2` (unbiased) and effective
sizes :math:`n_1, n_2`,

.. math::
    t = \frac{\mu_1 - \mu_2}{\sqrt{s_1^2 / n_1 + s_2^2 / n_2}},

which does not trust the classes to vary alike. Positive is higher in the first class. Nothing here
needs a plan, and all of it comes from one reading of the table, so that sparse ones stay sparse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

# What the numbers of a table are: logarithms to the base 2, log(1 + x), or as they were measured.
VALUES = ("auto", "log2", "log1p", "linear")
# No logarithm of a measurement is as large as this; no table of raw ones is as small.
LARGEST_LOGARITHM = 50.0
# Samples that the variance of both classes counts for in that of each.
PRIOR = 10.0
# Added to means before a ratio is taken, as scanpy does.
PSEUDOCOUNT = 1e-9


@dataclass(frozen=True, eq=False)
class Effects:
    """Two classes, feature by feature; arrays of shape (d,).

    Attributes
    ----------
    means : pair of arrays
        Of the first class and of the second, in the units of the table.
    variances : pair of arrays
        Unbiased, within each class.
    sizes : pair of floats
        Samples in each; with weights the effective number, (sum w)^2 / sum w^2.

    Examples
    --------
    >>> table = np.array([[1.0], [3.0], [5.0], [9.0]])
    >>> effects = measure(table, np.array([0, 1]), np.array([2, 3]))
    >>> effects.difference, effects.t
    (array([-5.]), array([-2.23606798]))
    """

    means: tuple[np.ndarray, np.ndarray]
    variances: tuple[np.ndarray, np.ndarray]
    sizes: tuple[float, float]

    @property
    def difference(self) -> np.ndarray:
        """Mean of the first class less that of the second."""
        return self.means[0] - self.means[1]

    @property
    def t(self) -> np.ndarray:
        """Welch's t; zero for features that do not vary within the classes nor between them."""
        return self._studentised(*self.variances)

    @property
    def moderated(self) -> np.ndarray:
        r"""Welch's t with the variance of each class drawn towards that of both, shape (d,).

        .. math::
            \tilde s_k^2 = \frac{(n_k - 1) s_k^2 + \kappa s^2}{n_k - 1 + \kappa},
            \qquad \kappa = 10,

        with :math:`s^2` the pooled variance. Of ten cells none may express a gene: their variance
        of zero says little, and Welch's t would be huge. With many samples it is Welch's t.
        """
        n, m = (max(size - 1.0, 0.0) for size in self.sizes)
        one, two = self.variances
        pooled = (n * one + m * two) / max(n + m, 1e-300)
        return self._studentised(
            (n * one + PRIOR * pooled) / (n + PRIOR), (m * two + PRIOR * pooled) / (m + PRIOR)
        )

    def _studentised(self, one: np.ndarray, two: np.ndarray) -> np.ndarray:
        """Divide the difference by its standard error, at these variances."""
        error = one / self.sizes[0] + two / self.sizes[1]
        found = np.zeros(len(self.means[0]))
        np.divide(self.difference, np.sqrt(error), out=found, where=error > 0.0)
        apart = (error <= 0.0) & (self.difference != 0.0)
        found[apart] = np.copysign(np.inf, self.difference[apart])
        return found


@dataclass(frozen=True, eq=False)
class Moments:
    """Means and spreads of several classes, read once; any two sets of them can then be compared.

    Examples
    --------
    >>> table = np.array([[1.0], [3.0], [5.0], [9.0]])
    >>> moments = Moments.of(table, np.array([0, 0, 1, 2]), 3)
    >>> moments.between([0], [1, 2]).difference
    array([-5.])
    """

    # Sums of the samples' weights, and of their squares, (G,).
    totals: np.ndarray
    squares: np.ndarray
    # Means, and sums of weighted squares about them, (G, d).
    means: np.ndarray
    deviations: np.ndarray

    @classmethod
    def of(
        cls, table: Any, codes: np.ndarray, count: int, weight: np.ndarray | None = None
    ) -> Moments:
        """Read a dense or sparse table (N, d); `codes`, of shape (N,), below zero are in no class.

        Memory is that of a block, besides the answer.
        """
        weight = np.ones(len(codes)) if weight is None else weight
        weight, codes = np.where(codes < 0, 0.0, weight), np.maximum(codes, 0)
        totals = np.bincount(codes, weight, count)
        read = _sparse_moments if sparse.issparse(table) else _dense_moments
        with np.errstate(over="ignore", invalid="ignore"):
            means, deviations = read(table, codes, totals, weight)
        return cls(totals, np.bincount(codes, weight**2, count), means, deviations)

    def between(self, first: Sequence[int], second: Sequence[int]) -> Effects:
        """Return the effects between two sets of classes, whose spreads add up."""
        sides = [self._pooled(list(classes)) for classes in (first, second)]
        (mean, variance, size), (other_mean, other_variance, other_size) = sides
        return Effects((mean, other_mean), (variance, other_variance), (size, other_size))

    def _pooled(self, classes: list[int]) -> tuple[np.ndarray, np.ndarray, float]:
        totals, total = self.totals[classes], float(self.totals[classes].sum())
        mean = totals @ self.means[classes] / total
        spread = self.deviations[classes].sum(axis=0)
        if len(classes) > 1:
            spread = spread + totals @ np.square(self.means[classes] - mean)
        # Weights say how much a sample counts, not how often it was seen.
        size = total**2 / float(self.squares[classes].sum())
        if size <= 1.0:
            return mean, np.zeros_like(mean), size
        return mean, spread / total * (size / (size - 1.0)), size


def measure(
    table: Any, first: np.ndarray, second: np.ndarray, weight: np.ndarray | None = None
) -> Effects:
    """Return the effects between two sets of rows of a dense or sparse table (N, d).

    Samples of weight zero do not count.
    """
    codes = np.full(table.shape[0], -1)
    codes[first], codes[second] = 0, 1
    return Moments.of(table, codes, 2, weight).between([0], [1])


# Numbers that are looked at together: 32 MB of them.
BLOCK = 4_000_000


def _dense_moments(
    table: np.ndarray, codes: np.ndarray, totals: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and summed squared deviations, shapes (G, d), a block of columns at a time."""
    n, d = table.shape
    means, deviations = np.zeros((2, len(totals), d))
    members = [np.flatnonzero((codes == code) & (weight > 0.0)) for code in range(len(totals))]
    width = max(1, BLOCK // max(n, 1))
    for begin in range(0, d, width):
        part = slice(begin, begin + width)
        values = np.asarray(table[:, part], dtype=float)
        for code, rows in enumerate(members):
            if len(rows):
                chosen = values[rows]
                means[code, part] = weight[rows] @ chosen / totals[code]
                # About the mean: squares about zero cancel where the mean is large.
                chosen -= means[code, part]
                deviations[code, part] = weight[rows] @ np.square(chosen, out=chosen)
    return means, deviations


def _sparse_moments(
    table: Any, codes: np.ndarray, totals: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the same of what is stored, the zeros that are not counted in afterwards."""
    shape = len(totals), table.shape[1]
    sums, stored, deviations = np.zeros((3, shape[0] * shape[1]))
    counted = np.maximum(totals, np.finfo(float).tiny)[:, None]

    def cells() -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        for rows, columns, values in _entries(table):
            yield codes[rows] * shape[1] + columns, values, weight[rows]

    for cell, values, of_row in cells():
        sums += np.bincount(cell, of_row * values, len(sums))
        stored += np.bincount(cell, of_row, len(sums))
    means = sums.reshape(shape) / counted
    flat = means.ravel()
    for cell, values, of_row in cells():
        deviations += np.bincount(cell, of_row * np.square(values - flat[cell]), len(sums))
    zeros = np.maximum(totals[:, None] - stored.reshape(shape), 0.0)
    return means, deviations.reshape(shape) + zeros * np.square(means)


def _entries(table: Any) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield rows, columns and values of the entries that are stored, in blocks."""
    if table.format not in ("csr", "csc"):
        table = table.tocsr()
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    ends, lines = table.indptr, len(table.indptr) - 1
    begin = 0
    while begin < lines:
        end = int(np.searchsorted(ends, int(ends[begin]) + BLOCK, side="right")) - 1
        end = min(max(end, begin + 1), lines)
        part = slice(int(ends[begin]), int(ends[end]))
        major = np.repeat(np.arange(begin, end), np.diff(ends[begin : end + 1]))
        minor, values = table.indices[part], np.asarray(table.data[part], dtype=float)
        yield (major, minor, values) if table.format == "csr" else (minor, major, values)
        begin = end


def kind_of_values(table: Any) -> str:
    """Guess what the numbers are, "linear", "log2" or "log1p".

    They are linear if one is larger than a logarithm can be, or if all are whole and none is
    negative. A dense log1p table cannot be told from one of log2: whoever knows says so. In a
    sparse one zeros are counts of zero, so that it is log1p.

    Examples
    --------
    >>> kind_of_values(np.array([[0.0, 3.0], [2.0, 1.0]])), kind_of_values(np.array([[-1.5, 8.2]]))
    ('linear', 'log2')
    """
    values = table.data if sparse.issparse(table) else table
    if not values.size:
        return "linear"
    # Intensities from which a background was subtracted may be negative, too.
    if values.max() > LARGEST_LOGARITHM:
        return "linear"
    if values.min() < 0.0:
        return "log2"
    part = np.ravel(values)[:: max(1, values.size // 100_000)]
    if (part == np.floor(part)).all():
        return "linear"
    return "log1p" if sparse.issparse(table) else "log2"


def fold_change(effects: Effects, values: str, base: float | None = None) -> np.ndarray:
    r"""Return log2 fold changes of the first class over the second, shape (d,).

    "log2" tables give the difference of the means; "log1p" ones, as scanpy does,
    :math:`\log_2 \frac{\exp(\mu_1) - 1}{\exp(\mu_2) - 1}`, with `base` the base of the logarithms
    if it is not e; "linear" ones :math:`\log_2 (\mu_1 / \mu_2)`, NaN where a mean is negative.

    Examples
    --------
    >>> table = np.array([[8.0], [8.0], [2.0], [2.0]])
    >>> effects = measure(table, np.array([0, 1]), np.array([2, 3]))
    >>> fold_change(effects, "linear").round(6), fold_change(effects, "log2")
    (array([2.]), array([6.]))
    """
    if values == "log2":
        return effects.difference
    one, two = effects.means
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if values == "log1p":
            factor = 1.0 if base is None else float(np.log(base))
            one, two = np.expm1(factor * one), np.expm1(factor * two)
        found = np.log2((one + PSEUDOCOUNT) / (two + PSEUDOCOUNT))
    return np.where((one < 0.0) | (two < 0.0), np.nan, found)
