r"""How each feature differs between two classes: a linear model with blocks, and its moderated t.

A value is the effect of its block plus, in the first class, a difference :math:`\beta`. With
:math:`n_{kb}` samples of class k in block b, their means :math:`m_{kb}` and sums of squares about
these :math:`S_{kb}`, least squares give

.. math::
    w_b = \frac{n_{1b} n_{2b}}{n_{1b} + n_{2b}}, \quad
    \beta = \frac{\sum_b w_b (m_{1b} - m_{2b})}{\sum_b w_b}, \quad
    s^2 = \frac1{\nu} \sum_b \bigl( S_{1b} + S_{2b} + w_b (m_{1b} - m_{2b} - \beta)^2 \bigr)

with :math:`\nu = n - B - 1` degrees of freedom. Variances of all features together say how much
one of them can be trusted (Smyth 2004): with the prior :math:`s_0^2` of :math:`\nu_0` degrees of
freedom

.. math::
    t = \frac{\beta}{\tilde s} \Bigl(\sum_b w_b\Bigr)^{1/2}, \qquad
    \tilde s^2 = \frac{\nu s^2 + \nu_0 s_0^2}{\nu + \nu_0},

which has a t distribution of :math:`\nu + \nu_0` degrees of freedom. It is limma's, with the blocks
as covariates. Positive is higher in the first class. The table is read once for all comparisons,
and sparse tables stay sparse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse, special, stats

from frot._base.errors import InputError

# What the numbers of a table are: logarithms to the base 2, log(1 + x), or as they were measured.
VALUES = ("auto", "log2", "log1p", "linear")
# Spread below this share of the values is rounding.
ROUNDING = 1e-12
OVERFLOW = "X: holds numbers so large that their squares overflow; divide it by a constant"


@dataclass(frozen=True, eq=False)
class Effects:
    """Two classes, feature by feature; arrays of shape (d,).

    Attributes
    ----------
    means : pair of arrays
        Of the first class and of the second, as they would be if blocks were mixed alike.
    difference : array
        The first mean less the second, beta.
    variance : array
        Within classes and blocks, s^2.
    df : int
        Degrees of freedom of it.
    information : float
        The sum of w: the variance of the difference is s^2 over it.
    constant : array of bool
        Features that do not vary.
    inflation : float
        What the variance of the difference is with a variance for each class, over what it is with
        one for both: the median over features. Far from 1, classes vary differently.

    Examples
    --------
    >>> table = np.array([[1.0], [3.0], [5.0], [9.0]])
    >>> effects = measure(table, np.array([True, True, False, False]))
    >>> effects.difference, effects.t
    (array([-5.]), array([-2.23606798]))
    """

    means: tuple[np.ndarray, np.ndarray]
    difference: np.ndarray
    variance: np.ndarray
    df: int
    information: float
    constant: np.ndarray
    inflation: float = 1.0

    @cached_property
    def prior(self) -> tuple[float, float]:
        """Degrees of freedom and variance of the prior, from the features that vary."""
        return fit_prior(self.variance[~self.constant], self.df)

    @cached_property
    def t(self) -> np.ndarray:
        """The moderated t; infinite where there is no variance at all, zero without difference."""
        prior_df, prior_variance = self.prior
        if np.isinf(prior_df):
            moderated = np.full(len(self.variance), prior_variance)
        else:
            total = max(self.df + prior_df, 1e-300)
            moderated = (self.df * self.variance + prior_df * prior_variance) / total
        t = np.zeros(len(self.difference))
        error = np.sqrt(moderated / self.information)
        differs = ~self.constant & (self.difference != 0.0)
        with np.errstate(divide="ignore"):
            np.divide(self.difference, error, out=t, where=differs)
        return t

    @cached_property
    def p(self) -> np.ndarray:
        """Two-sided p-values of t; 1 for features that do not vary."""
        # No more than all features together have.
        most = self.df * max(int((~self.constant).sum()), 1)
        df = min(self.df + self.prior[0], most)
        if df <= 0.0:
            return np.ones(len(self.t))
        return np.where(self.constant, 1.0, 2.0 * stats.t.sf(np.abs(self.t), df))


def fit_prior(variances: np.ndarray, df: int) -> tuple[float, float]:
    r"""Return degrees of freedom and variance of the distribution that variances are drawn from.

    Moments of :math:`\log s^2` are matched to those of a scaled F distribution (Smyth 2004): its
    mean is :math:`\log s_0^2 + \psi(\nu / 2) - \log(\nu / 2) - \psi(\nu_0 / 2) + \log(\nu_0 / 2)`
    and its variance :math:`\psi'(\nu / 2) + \psi'(\nu_0 / 2)`. Infinite degrees of freedom: the
    variances differ by no more than chance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> variances = 2.0 * rng.chisquare(8, 5000) / 8 / (rng.chisquare(4, 5000) / 4)
    >>> df, variance = fit_prior(variances, 8)
    >>> round(df, 1), round(variance, 1)
    (4.1, 2.0)
    """
    known = variances[variances > 0.0]
    if df <= 0 or len(known) < 2:
        return 0.0, 0.0
    # One variance that is nearly zero must not decide.
    logs = np.log(np.maximum(known, 1e-5 * np.median(known)))
    centred = logs - special.digamma(0.5 * df) + np.log(0.5 * df)
    excess = float(centred.var(ddof=1) - special.polygamma(1, 0.5 * df))
    if excess <= 0.0:
        return np.inf, float(np.exp(centred.mean()))
    half = _inverse_trigamma(excess)
    return 2.0 * half, float(np.exp(centred.mean() + special.digamma(half) - np.log(half)))


def _inverse_trigamma(value: float) -> float:
    """Solve trigamma(x) = value by Newton's method on its reciprocal, which is nearly linear."""
    x = 0.5 + 1.0 / value
    for _ in range(50):
        trigamma = float(special.polygamma(1, x))
        step = trigamma * (1.0 - trigamma / value) / float(special.polygamma(2, x))
        x += step
        if -step <= 1e-10 * x:
            break
    return x


@dataclass(frozen=True, eq=False)
class Moments:
    """Sizes, means and spreads of each class in each block, from one reading of a table.

    Examples
    --------
    >>> table = np.array([[1.0], [3.0], [5.0], [9.0]])
    >>> moments = Moments.of(table, np.array([0, 0, 1, 2]), 3)
    >>> moments.between([0], [1, 2]).difference
    array([-5.])
    """

    # Of shape (classes, blocks).
    counts: np.ndarray
    # Means, and sums of squares about them, (classes, blocks, d).
    means: np.ndarray
    deviations: np.ndarray

    @classmethod
    def of(
        cls, table: Any, codes: np.ndarray, classes: int, block: np.ndarray | None = None
    ) -> Moments:
        """Read a dense or sparse table (N, d); memory is that of a part, besides the answer."""
        block = np.zeros(len(codes), dtype=int) if block is None else block
        blocks = int(block.max()) + 1
        cells = codes * blocks + block
        counts = np.bincount(cells, minlength=classes * blocks).astype(float)
        read = _sparse_moments if sparse.issparse(table) else _dense_moments
        with np.errstate(over="ignore", invalid="ignore"):
            means, deviations = read(table, cells, counts)
        if not np.isfinite(deviations).all():
            raise InputError(OVERFLOW)
        shape = (classes, blocks)
        return cls(counts.reshape(shape), means.reshape(*shape, -1), deviations.reshape(*shape, -1))

    def between(self, first: Sequence[int], second: Sequence[int]) -> Effects:
        """Return the effects between two sets of classes."""
        n, mean, spread = self._side(list(first))
        m, other_mean, other_spread = self._side(list(second))
        sizes = np.maximum(n + m, 1.0)
        w = n * m / sizes
        gaps = mean - other_mean
        information = float(w.sum())
        difference = w @ gaps / information
        residual = spread.sum(axis=0) + other_spread.sum(axis=0)
        residual += w @ np.square(gaps - difference)
        overall = (n @ mean + m @ other_mean) / (n.sum() + m.sum())
        total = residual + information * np.square(difference)
        constant = total <= (n.sum() + m.sum()) * np.square(ROUNDING * overall)
        difference[constant], residual[constant] = 0.0, 0.0
        df = int(n.sum() + m.sum()) - int(((n + m) > 0.0).sum()) - 1
        sides = ((n, spread), (m, other_spread))
        inflation = _inflation(sides, residual / max(df, 1), ~constant)
        share = m.sum() / (n.sum() + m.sum())
        return Effects(
            means=(overall + share * difference, overall - (1.0 - share) * difference),
            difference=difference,
            variance=residual / max(df, 1),
            df=df,
            information=information,
            constant=constant,
            inflation=inflation,
        )

    def _side(self, classes: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pool classes: sizes (blocks,), means and sums of squares about them (blocks, d)."""
        if len(classes) == 1:
            (only,) = classes
            return self.counts[only], self.means[only], self.deviations[only]
        counts = self.counts[classes]
        size = counts.sum(axis=0)
        shares = counts / np.maximum(size, 1.0)
        mean = np.einsum("kb,kbd->bd", shares, self.means[classes])
        spread = self.deviations[classes].sum(axis=0)
        for code, count in zip(classes, counts, strict=True):
            spread += count[:, None] * np.square(self.means[code] - mean)
        return size, mean, spread

    def block_effects(self, first: Sequence[int], second: Sequence[int]) -> np.ndarray:
        """Return what each block adds in the model of two sets of classes, (blocks, d), mean 0."""
        n, mean, _ = self._side(list(first))
        m, other_mean, _ = self._side(list(second))
        sizes = np.maximum(n + m, 1.0)[:, None]
        means = (n[:, None] * mean + m[:, None] * other_mean) / sizes
        means -= n[:, None] / sizes * self.between(first, second).difference
        return means - (n + m) @ means / (n + m).sum()


def _inflation(
    sides: Sequence[tuple[np.ndarray, np.ndarray]], pooled: np.ndarray, varying: np.ndarray
) -> float:
    """Return the median of Welch's variance of a difference over the pooled one."""
    own, alike = np.zeros(len(pooled)), 0.0
    for sizes, spread in sides:
        df = sizes.sum() - (sizes > 0.0).sum()
        if df < 4:
            return 1.0
        own += spread.sum(axis=0) / df / sizes.sum()
        alike += 1.0 / sizes.sum()
    chosen = varying & (pooled > 0.0)
    # The median of few features, or of variances of few samples, says little.
    if chosen.sum() < 100:
        return 1.0
    return float(np.median(own[chosen] / (alike * pooled[chosen])))


def measure(table: Any, is_first: np.ndarray, block: np.ndarray | None = None) -> Effects:
    """Return the effects between the rows of a table that are in the first class and the others."""
    return Moments.of(table, (~is_first).astype(int), 2, block).between([0], [1])


# Numbers that are read together: 32 MB of them.
PART = 4_000_000


def _dense_moments(
    table: np.ndarray, cells: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and summed squared deviations, (cells, d), some columns at a time."""
    n, d = table.shape
    means, deviations = np.zeros((2, len(counts), d))
    order = np.argsort(cells, kind="stable")
    ends = np.cumsum(counts).astype(int)
    members = [(cell, order[ends[cell] - int(counts[cell]) : ends[cell]])
               for cell in np.flatnonzero(counts)]  # fmt: skip
    width = max(1, PART // max(n, 1))
    for begin in range(0, d, width):
        part = slice(begin, begin + width)
        values = np.asarray(table[:, part], dtype=float)
        for cell, rows in members:
            chosen = values[rows]
            means[cell, part] = chosen.mean(axis=0)
            # About the mean: squares about zero cancel where the mean is large.
            chosen -= means[cell, part]
            deviations[cell, part] = np.einsum("ij,ij->j", chosen, chosen)
    return means, deviations


def _sparse_moments(
    table: Any, cells: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the same of what is stored, the zeros that are not counted in afterwards."""
    shape = len(counts), table.shape[1]
    sums, stored, deviations = np.zeros((3, shape[0] * shape[1]))

    def entries() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for rows, columns, values in _entries(table):
            yield cells[rows] * shape[1] + columns, values

    for place, values in entries():
        sums += np.bincount(place, values, len(sums))
        stored += np.bincount(place, minlength=len(sums))
    means = sums.reshape(shape) / np.maximum(counts, 1.0)[:, None]
    flat = means.ravel()
    for place, values in entries():
        deviations += np.bincount(place, np.square(values - flat[place]), len(sums))
    zeros = np.maximum(counts[:, None] - stored.reshape(shape), 0.0)
    return means, deviations.reshape(shape) + zeros * np.square(means)


def _entries(table: Any) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield rows, columns and values of the entries that are stored, in parts."""
    if table.format not in ("csr", "csc"):
        table = table.tocsr()
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    ends, lines = table.indptr, len(table.indptr) - 1
    begin = 0
    while begin < lines:
        end = int(np.searchsorted(ends, int(ends[begin]) + PART, side="right")) - 1
        end = min(max(end, begin + 1), lines)
        part = slice(int(ends[begin]), int(ends[end]))
        major = np.repeat(np.arange(begin, end), np.diff(ends[begin : end + 1]))
        minor, values = table.indices[part], np.asarray(table.data[part], dtype=float)
        yield (major, minor, values) if table.format == "csr" else (minor, major, values)
        begin = end


def kind_of_values(table: Any) -> str:
    """Guess what the numbers are, "linear", "log2" or "log1p".

    They are linear if one is larger than 50, which no logarithm of a measurement is, or if all are
    whole and none is negative. A dense log1p table cannot be told from one of log2: whoever knows
    says so. In a sparse one zeros are counts of zero, so that it is log1p.

    Examples
    --------
    >>> kind_of_values(np.array([[0.0, 3.0], [2.0, 1.0]])), kind_of_values(np.array([[-1.5, 8.2]]))
    ('linear', 'log2')
    """
    values = table.data if sparse.issparse(table) else table
    # Intensities from which a background was subtracted may be negative, too.
    if not values.size or values.max() > 50.0:
        return "linear"
    if values.min() < 0.0:
        return "log2"
    part = np.ravel(values)[:: max(1, values.size // 100_000)]
    if (part == np.floor(part)).all():
        return "linear"
    return "log1p" if sparse.issparse(table) else "log2"


def fold_change(
    effects: Effects, values: str, base: float | None = None, nonnegative: bool = False
) -> np.ndarray:
    r"""Return log2 fold changes of the first class over the second, shape (d,).

    "log2" tables give the difference of the means; "log1p" ones, as scanpy does,
    :math:`\log_2 \frac{\exp(\mu_1) - 1}{\exp(\mu_2) - 1}`, with `base` the base of the logarithms
    if it is not e; "linear" ones :math:`\log_2 (\mu_1 / \mu_2)`, NaN where a mean is negative. In
    tables that are `nonnegative`, a mean below zero is one of nothing, but for rounding or the
    adjustment for blocks.

    Examples
    --------
    >>> table = np.array([[8.0], [8.0], [2.0], [2.0]])
    >>> effects = measure(table, np.array([True, True, False, False]))
    >>> fold_change(effects, "linear").round(6), fold_change(effects, "log2")
    (array([2.]), array([6.]))
    """
    if values == "log2":
        return effects.difference
    first, second = (np.maximum(mean, 0.0 if nonnegative else -np.inf) for mean in effects.means)
    # Added to means before a ratio is taken, as scanpy does.
    little = 1e-9
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if values == "log1p":
            factor = 1.0 if base is None else float(np.log(base))
            first, second = np.expm1(factor * first), np.expm1(factor * second)
        change = np.log2((first + little) / (second + little))
    change[effects.constant] = 0.0
    return np.where((first < 0.0) | (second < 0.0), np.nan, change)
