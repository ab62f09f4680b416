r"""Statistics that depend on labels through class sums only, under many labels at once.

With Z a table centred at its means and M a matrix of B labellings, one per row, the products
:math:`M Z` and :math:`M Z^2` hold the sums and the sums of squares of one class under all of them;
means, variances, Welch's t and the shift follow. Sparse tables stay sparse: with m the means,

.. math::
    \sum_i M_{bi} (x_i - m) = (M x)_b - m (M 1)_b, \qquad
    \sum_i M_{bi} (x_i - m)^2 = \bigl(M (x^2 - 2 m x)\bigr)_b + m^2 (M 1)_b.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from frot._base.errors import InputError
from frot.costs.protocol import blocks as in_blocks
from frot.selection._costs import pooling
from frot.selection._inputs import Prepared

__all__ = ["OF_SUMS", "Centred", "ClassSums"]

# Statistics that are functions of class sums.
OF_SUMS = ("t", "shift")
# Labellings that are taken together at most, and the bytes that the matrix of them may have.
TOGETHER, LABEL_BYTES = 32, 64_000_000
# A block of features: what should stay in the cache, and dense copies of columns.
CACHE_BYTES, COPY_BYTES = 500_000, 8_000_000
# Columns of a sparse table that are fuller than this are multiplied as dense ones, after
# centring: that is about as fast, and loses no digits where the mean is large.
FULL = 1.0 / 3.0
# Values other than zero of which a variance is known.
FEW = 10.0
# A standard deviation below this share of the values is rounding. So is a variance below this
# share of what it was a difference of, and one within both classes, of that of all samples.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Centred:
    """A table, dense or sparse, that is multiplied as if the means of blocks were taken off it.

    Examples
    --------
    >>> table = sparse.csc_array([[1.0], [0.0], [0.0], [3.0]])
    >>> centred = Centred.of(table, np.ones(4), np.zeros(4, dtype=int))
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
    def of(cls, table: Any, weight: np.ndarray, block: np.ndarray) -> Centred:
        """Take the means of samples with weights, block by block."""
        members = sparse.csr_array((weight, (block, np.arange(len(weight)))))
        totals: Any = members @ table
        dense = totals.toarray() if sparse.issparse(totals) else totals
        centre = dense / members.sum(axis=1)[:, None]
        if not sparse.issparse(table):
            return cls(table, block, centre, np.empty(0, dtype=int), None)
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
                [labels[self.block == one].sum(axis=0) for one in range(len(self.centre))]
            )
            # Few columns at a time: more do not fit into the cache, row by row.
            slabs = [np.ascontiguousarray(labels[:, part]) for part in in_blocks(m, 1, TOGETHER)]
            sums, squares = (
                np.hstack([np.asarray(matrix @ slab) for slab in slabs]) for matrix in self.thin
            )
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
        width = max(8 * m, 8 * n * CACHE_BYTES // COPY_BYTES)
        rest = self.table.shape[1] - len(self.columns)
        for part in in_blocks(rest, width, CACHE_BYTES):
            where = part if full is None else full[part]
            values = self.table[:, where]
            values = values.toarray() if sparse.issparse(values) else values
            values = values - self.centre[:, where][self.block]
            yield where, values.T @ labels, np.square(values).T @ labels


class _Side(NamedTuple):
    """One class under B labellings: numbers of shape (B,), features in rows, (k, B)."""

    size: np.ndarray
    effective: np.ndarray
    mean: np.ndarray
    variance: np.ndarray

    @classmethod
    def of(
        cls, size: np.ndarray, count: np.ndarray, sums: np.ndarray, squares: np.ndarray
    ) -> _Side:
        """Take sums of weights, of their squares, of weighted values and of squared ones."""
        mean = sums / size
        return cls(size, size**2 / count, mean, np.maximum(squares / size - mean**2, 0.0))


@dataclass(frozen=True, eq=False)
class ClassSums:
    r"""A statistic of every group under any labels.

    "t" is Welch's t, which does not trust classes to vary alike, as the normal deviate that is as
    rare: for :math:`\nu` degrees of freedom (Welch and Satterthwaite's) Wallace's approximation

    .. math::
        z = \frac{8 \nu + 1}{8 \nu + 3} \sqrt{\nu \log(1 + t^2 / \nu)}.

    With many samples z is |t|. With few of a class that varies more, t has wider tails than
    permuted labels give it, and z hardly has. Over several comparisons, and over the members of a
    group, it is the root of the mean (or sum) of the squares. "shift" is as in `Parts`.

    Where most values are zero and none is less, a small class may hold nothing else, and a variance
    of zero would make any difference large. With a share :math:`\zeta` of zeros the variance of a
    class of n samples is :math:`(n s^2 + k \bar s^2) / (n + k)`, with :math:`\bar s^2` that within
    both classes and :math:`k = 10 \zeta / (1 - \zeta)`. Where nothing is zero this is Welch's.

    Examples
    --------
    >>> from frot.selection import FROTSelector
    >>> from frot.selection._inputs import prepare
    >>> table = np.array([[1.0], [3.0], [5.0], [9.0]])
    >>> ready = prepare(FROTSelector(), table, [0, 0, 1, 1])
    >>> sums = ClassSums.of(ready, np.zeros(4, dtype=int), "shift")
    >>> sums.under(np.array([[0, 0, 1, 1], [0, 1, 0, 1]])).round(4)
    array([[2.8571],
           [1.0286]], dtype=float32)
    """

    centred: Centred
    weight: np.ndarray
    # About the centres; zero for features that do not vary.
    variance: np.ndarray
    # Samples that the variance of all counts for, within each class.
    prior: np.ndarray
    classes: tuple[int, ...]
    # Places in `classes`; None stands for all other samples.
    pairs: tuple[tuple[int, int | None], ...]
    pool: Any
    statistic: str
    scaling: str

    @classmethod
    def of(cls, prepared: Prepared, block: np.ndarray, statistic: str) -> ClassSums:
        """Centre the table, within blocks for "t": what differs between them is no effect."""
        table, codes, settings = prepared.table, prepared.codes, prepared.settings
        weight = np.ones(len(codes)) if prepared.weight is None else prepared.weight
        centred = Centred.of(table, weight, block if statistic == "t" else np.zeros_like(block))
        variance, rounding = np.empty(table.shape[1]), np.full(table.shape[1], ROUNDING**2)
        rounding[centred.columns] = ROUNDING
        with np.errstate(over="ignore", invalid="ignore"):
            for part, _, squares in centred.products(weight[:, None]):
                variance[part] = squares[:, 0] / weight.sum()
            rounding *= np.square(centred.centre).max(axis=0)
        if not np.isfinite(variance).all():
            raise InputError(
                "X: holds numbers so large that their squares overflow; divide it by a constant"
            )
        variance[variance <= rounding] = 0.0
        zeros = 1.0 - np.asarray((table != 0).sum(axis=0)).ravel() / len(codes)
        least = table.min(axis=0)
        # A zero that is not the least value is one like any other.
        zeros[(least.toarray() if sparse.issparse(least) else least).ravel() < 0.0] = 0.0
        pairs = prepared.compared_codes()
        classes = sorted({code for pair in pairs for code in pair if code is not None})
        place = {code: number for number, code in enumerate(classes)}
        return cls(
            centred,
            weight,
            variance,
            FEW * zeros / np.maximum(1.0 - zeros, 1.0 / len(codes)),
            tuple(classes),
            tuple((place[one], None if other is None else place[other]) for one, other in pairs),
            pooling(prepared.groups, variance == 0.0, settings.group_cost),
            statistic,
            settings.scaling,
        )

    @property
    def together(self) -> int:
        """How many labellings to take at a time."""
        each = 8 * len(self.weight) * len(self.classes)
        return int(np.clip(LABEL_BYTES // each, 1, TOGETHER))

    def under(self, codes: np.ndarray) -> np.ndarray:
        """Return the statistic of every group under labels of shape (B, N), as float32 (B, L).

        In single precision ties stay ties, whatever the last digits are, and the null is half as
        large.
        """
        classes = np.array(self.classes)[None, :, None]
        labels = np.where(codes.T[:, None, :] == classes, self.weight[:, None, None], 0.0)
        sizes, counts = labels.sum(axis=0), np.square(labels).sum(axis=0)
        all_size, all_count = self.weight.sum(), np.square(self.weight).sum()
        found = np.zeros((len(self.variance), len(codes)))
        for part, sums, squares in self.centred.products(labels.reshape(len(labels), -1)):
            shape = (-1, *labels.shape[1:])
            sums, squares = sums.reshape(shape), squares.reshape(shape)
            variance = self.variance[part, None]
            for one, other in self.pairs:
                first = _Side.of(sizes[one], counts[one], sums[:, one], squares[:, one])
                if other is None:
                    # Sums about the mean are zero.
                    rest = -sums[:, one], variance * all_size - squares[:, one]
                    second = _Side.of(all_size - sizes[one], all_count - counts[one], *rest)
                else:
                    second = _Side.of(
                        sizes[other], counts[other], sums[:, other], squares[:, other]
                    )
                with np.errstate(divide="ignore", invalid="ignore"):
                    if self.statistic == "t":
                        found[part] += _squared_deviate(
                            first, second, ROUNDING * variance, self.prior[part, None]
                        )
                    else:
                        found[part] += _shift(first, second, self.scaling)
        found[self.variance == 0.0] = 0.0
        found /= len(self.pairs)
        if self.pool is not None:
            found = np.asarray(self.pool @ found)
        if self.statistic == "t":
            np.sqrt(found, out=found)
        return np.ascontiguousarray(found.T, dtype=np.float32)


def _squared_deviate(
    first: _Side, second: _Side, least: np.ndarray, prior: np.ndarray
) -> np.ndarray:
    sides = [(side.variance, side.effective) for side in (first, second)]
    if prior.any():
        (v, n), (w, m) = sides
        within = (n * v + m * w) * (prior / (n + m))
        sides = [((n * v + within) / (n + prior), n), ((m * w + within) / (m + prior), m)]
    # One sample alone has no variance.
    free = [np.where(n > 1.0, n - 1.0, np.inf) for _, n in sides]
    a, b = sides[0][0] / free[0], sides[1][0] / free[1]
    error = np.maximum(a + b, least)
    t = np.square(first.mean - second.mean) / error
    degrees = np.square(a) / (free[0] + prior) + np.square(b) / (free[1] + prior)
    most = np.maximum(first.effective + second.effective - 2.0, 1.0)
    degrees = np.minimum(np.square(error) / degrees, most)
    factor = np.square((8.0 * degrees + 1.0) / (8.0 * degrees + 3.0))
    return factor * degrees * np.log(1.0 + t / degrees)


def _shift(first: _Side, second: _Side, scaling: str) -> np.ndarray:
    gap = np.square(first.mean - second.mean)
    if scaling == "none":
        return gap
    if scaling == "balanced":
        return gap / (0.5 * (first.variance + second.variance) + 0.25 * gap)
    share = first.size / (first.size + second.size)
    within = share * first.variance + (1.0 - share) * second.variance
    return gap / (within + share * (1.0 - share) * gap)
