r"""Welch's t of every feature under many permuted labels at once, within blocks.

With z a table whose block means are taken off and M a matrix of B labellings, one per row, the
products :math:`M z` and :math:`M z^2` hold the sums and the sums of squares of the first class
under all of them. With :math:`p_b` the share of the first class in block b, which no permutation
within blocks changes, and :math:`q_b = 1 - p_b`, the difference of the classes is

.. math::
    \beta = \frac1G \sum_{i \in 1} z_i, \qquad G = \sum_b n_b p_b q_b,

as in the linear model of `Effects`. Welch's t does not trust classes to vary alike: each has the
variance of its own residuals, :math:`s_k^2`, with :math:`\nu_k` degrees of freedom,

.. math::
    t = \frac{\beta G}{\sqrt{s_1^2 A_1 + s_2^2 A_2}}, \qquad
    A_1 = \sum_b n_b p_b q_b^2, \quad A_2 = \sum_b n_b p_b^2 q_b,
    \qquad \nu_1 = n_1 - \sum_b p_b - A_1 / G.

With one block this is Welch's test, and with blocks of one sample of each class the paired one.
Sparse tables stay sparse; with m the means,

.. math::
    \sum_i M_{bi} (x_i - m) = (M x)_b - m (M 1)_b, \qquad
    \sum_i M_{bi} (x_i - m)^2 = \bigl(M (x^2 - 2 m x)\bigr)_b + m^2 (M 1)_b.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from frot._base.arrays import blocks as in_blocks
from frot._base.errors import InputError
from frot.selection._effects import OVERFLOW, ROUNDING

# Labellings that are taken together: more hardly make products faster, and fewer need less memory.
TOGETHER = 64
# A block of features: temporaries stay in the cache.
CACHE_BYTES = 500_000
# Columns of a sparse table that are fuller than this are multiplied as dense ones, after
# centring: that is about as fast, and loses no digits where the mean is large.
FULL = 1.0 / 3.0


@dataclass(frozen=True, eq=False)
class Centred:
    """A table, dense or sparse, that is multiplied as if the means of blocks were taken off it.

    Examples
    --------
    >>> table = sparse.csc_array([[1.0], [0.0], [0.0], [3.0]])
    >>> centred = Centred.of(table, np.zeros(4, dtype=int))
    >>> list(centred.products(np.array([[1.0], [0.0], [0.0], [1.0]])))
    [(slice(0, 1, None), array([[2.]]), array([[4.]]))]
    """

    # Of shape (N, d), dense or in CSC order.
    table: Any
    block: np.ndarray
    # Of shape (blocks, d).
    centre: np.ndarray
    # The k thin columns of a sparse table; all others are made dense and centred a few at a time.
    columns: np.ndarray
    # Of the thin columns x and x^2 - 2 m x, both (k, N).
    thin: tuple[Any, Any] | None

    @classmethod
    def of(cls, table: Any, block: np.ndarray) -> Centred:
        """Take the means of the samples of each block."""
        rows = np.arange(len(block))
        members = sparse.csr_array((np.ones(len(block)), (block, rows)))
        totals: Any = members @ table
        dense = totals.toarray() if sparse.issparse(totals) else totals
        centre = dense / members.sum(axis=1)[:, None]
        if not sparse.issparse(table):
            return cls(table, block, centre, np.empty(0, dtype=int), None)
        table = sparse.csc_array(table)
        columns = np.flatnonzero(np.diff(table.indptr) <= FULL * table.shape[0])
        x = (table if len(columns) == table.shape[1] else table[:, columns]).T.tocsr()
        feature = np.repeat(columns, np.diff(x.indptr))
        crossed = x.data * (x.data - 2.0 * centre[block[x.indices], feature])
        thin = x, sparse.csr_array((crossed, x.indices, x.indptr), shape=x.shape)
        return cls(table, block, centre, columns, thin)

    def products(self, labels: np.ndarray) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """Multiply z and z^2 with columns of weights, (N, m): features, and two arrays (k, m)."""
        n, m = labels.shape
        if self.thin is not None and len(self.columns):
            sizes = np.stack(
                [labels[self.block == number].sum(axis=0) for number in range(len(self.centre))]
            )
            sums, squares = (np.asarray(matrix @ labels) for matrix in self.thin)
            for part in in_blocks(len(self.columns), 8 * m, CACHE_BYTES):
                where = self.columns[part]
                centre = self.centre[:, where].T
                yield (
                    where,
                    sums[part] - centre @ sizes,
                    squares[part] + np.square(centre) @ sizes,
                )
        full = None
        if len(self.columns):
            full = np.setdiff1d(np.arange(self.table.shape[1]), self.columns, assume_unique=True)
        # Dense copies of columns take little memory next to the table.
        width = max(8 * m, n // 2)
        for part in in_blocks(self.table.shape[1] - len(self.columns), width, CACHE_BYTES):
            where = part if full is None else full[part]
            values = self.table[:, where]
            values = values.toarray() if sparse.issparse(values) else values
            values = values - self.centre[:, where][self.block]
            yield where, values.T @ labels, np.square(values).T @ labels


@dataclass(frozen=True, eq=False)
class LabelStatistics:
    r"""Welch's t of every feature, as a normal deviate, under any labels of the same blocks.

    For :math:`\nu` degrees of freedom (Welch and Satterthwaite's) Wallace's approximation

    .. math::
        z = \frac{8 \nu + 1}{8 \nu + 3} \sqrt{\nu \log(1 + t^2 / \nu)}

    is the normal deviate that is as rare. With many samples z is t; with few of a class that varies
    more, t has wider tails than permuted labels give it, and z hardly has.

    Where most values are zero and none is less, a small class may hold nothing else, and a variance
    of zero would make any difference large. With a share :math:`\zeta` of zeros the variance of a
    class is drawn towards that within both classes, as if by :math:`10 \zeta / (1 - \zeta)` more
    samples: so many hold ten values other than zero. Where nothing is zero this is Welch's.

    Examples
    --------
    >>> table = np.array([[1.0], [3.0], [5.0], [9.0]])
    >>> is_first = np.array([True, True, False, False])
    >>> statistics = LabelStatistics.of(table, is_first, np.zeros(4, dtype=int))
    >>> statistics.deviates(np.array([is_first, [True, False, True, False]])).round(3)
    array([[-1.276, -0.673]])
    """

    centred: Centred
    is_first: np.ndarray
    # Of each sample, the share of the first class in its block.
    share: np.ndarray
    # The three numbers of the design: G, A_1 and A_2; degrees of freedom of both classes.
    information: float
    parts: tuple[float, float]
    df: tuple[float, float]
    # Sums of squares of the centred table; zero for features that do not vary.
    total: np.ndarray
    # Samples that the variance within both classes counts for in that of each.
    borrowed: np.ndarray

    @classmethod
    def of(cls, table: Any, is_first: np.ndarray, block: np.ndarray) -> LabelStatistics:
        """Centre a table (N, d) within blocks."""
        n_b = np.bincount(block)
        p_b = np.bincount(block, is_first) / n_b
        weights = n_b * p_b * (1.0 - p_b)
        information = float(weights.sum())
        a_1, a_2 = float(weights @ (1.0 - p_b)), float(weights @ p_b)
        df_1 = is_first.sum() - p_b.sum() - a_1 / information
        df_2 = (~is_first).sum() - (1.0 - p_b).sum() - a_2 / information
        centred = Centred.of(table, block)
        total, rounding = np.empty(table.shape[1]), np.full(table.shape[1], ROUNDING**2)
        # Squares of thin columns are differences of large numbers.
        rounding[centred.columns] = ROUNDING
        with np.errstate(over="ignore", invalid="ignore"):
            for part, _, squares in centred.products(np.ones((len(block), 1))):
                total[part] = squares[:, 0]
            rounding *= len(block) * np.square(centred.centre).max(axis=0)
        if not np.isfinite(total).all():
            raise InputError(OVERFLOW)
        total[total <= rounding] = 0.0
        zeros = 1.0 - np.asarray((table != 0).sum(axis=0)).ravel() / len(block)
        least = table.min(axis=0)
        # A zero that is not the least value is one like any other.
        zeros[(least.toarray() if sparse.issparse(least) else least).ravel() < 0.0] = 0.0
        return cls(
            centred=centred,
            is_first=is_first,
            share=p_b[block],
            information=information,
            parts=(a_1, a_2),
            df=(float(df_1), float(df_2)),
            total=total,
            borrowed=10.0 * zeros / np.maximum(1.0 - zeros, 1.0 / len(block)),
        )

    def deviates(self, labels: np.ndarray) -> np.ndarray:
        """Return signed deviates z, (d, B), for labels (B, N) that are true in the first class."""
        first = labels.T.astype(float)
        even = np.ptp(self.share) == 0.0
        both = first if even else np.hstack([first, first * self.share[:, None]])
        z = np.empty((len(self.total), len(labels)))
        for part, sums, squares in self.centred.products(both):
            count = len(labels)
            crossed = self.share[0] * sums if even else sums[:, count:]
            z[part] = self._deviates(part, sums[:, :count], squares[:, :count], crossed)
        z[self.total == 0.0] = 0.0
        return z

    def _deviates(
        self, part: Any, sums: np.ndarray, squares: np.ndarray, crossed: np.ndarray
    ) -> np.ndarray:
        """Return z from sums, sums of squares, and sums weighted by p_b, of the first class."""
        (a_1, a_2), (df_1, df_2) = self.parts, self.df
        total, borrowed = self.total[part, None], self.borrowed[part, None]
        beta = sums / self.information
        # Residual sums of squares of each class.
        first = squares - 2.0 * beta * (sums - crossed) + a_1 * np.square(beta)
        second = total - squares - 2.0 * beta * crossed + a_2 * np.square(beta)
        np.maximum(first, 0.0, out=first)
        np.maximum(second, 0.0, out=second)
        if borrowed.any():
            within = borrowed * (first + second) / (df_1 + df_2)
            first, second = first + within, second + within
            df_1, df_2 = df_1 + borrowed, df_2 + borrowed
        # A class without degrees of freedom has no variance of its own.
        first *= a_1 / np.maximum(df_1, 1e-300) if np.any(df_1 > 0.0) else 0.0
        second *= a_2 / np.maximum(df_2, 1e-300) if np.any(df_2 > 0.0) else 0.0
        error = np.maximum(first + second, ROUNDING * total)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Shares of the error: squares of variances would overflow in units that squares fit in.
            first /= error
            second /= error
            degrees = np.square(first) / df_1 + np.square(second) / df_2
            np.divide(1.0, degrees, out=degrees)
            np.minimum(degrees, max(sum(self.df), 1.0), out=degrees)
            z = np.square(sums) / error
            z /= degrees
            np.log1p(z, out=z)
            z *= degrees
            np.sqrt(z, out=z)
        degrees *= 8.0
        z *= (degrees + 1.0) / (degrees + 3.0)
        return np.copysign(z, sums)
