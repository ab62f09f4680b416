r"""Statistics of features and of gene sets under many permuted labels at once.

**Features.** With Z a table centred at its means and M a matrix of B labellings, one per row, the
products :math:`M Z` and :math:`M Z^2` hold the sums and the sums of squares of one class under all
of them; means, variances, Welch's t and the shift follow. Sparse tables stay sparse: with m the
means,

.. math::
    \sum_i M_{bi} (x_i - m) = (M x)_b - m (M 1)_b, \qquad
    \sum_i M_{bi} (x_i - m)^2 = \bigl(M (x^2 - 2 m x)\bigr)_b + m^2 (M 1)_b.

**Sets.** Gene by gene, Welch's t is taken to the normal deviate z that is as rare. A gene counts by
what it has beyond one standard error, and a set S by the mean over its genes that vary,

.. math::
    e_j = \max(|z_j| - 1, 0)^2, \qquad
    D_S = \frac{1}{|S|} \sum_{j \in S} e_j, \qquad
    R_S = \frac{D_S - \operatorname{mean}_j e_j}{\operatorname{sd}_j e_j},

with mean and standard deviation over all genes of the table. The noise of genes that do not respond
adds little to D, so that a few that do are enough. R says how far the set is above random sets of
genes. The same is taken of the genes that are up alone, with 0 for the others, and of those that
are down: a set may go one way or both.

How far R is from zero by chance depends on the set's size and on how correlated its genes are.
Permuted labels tell, since they leave the correlation as it is, and what they give is taken out:

.. math::
    Z_S = \operatorname{st} \max\bigl(\operatorname{st} R_S,
        \operatorname{st} \max(R_S^{up}, R_S^{down})\bigr), \qquad
    \operatorname{st}(R) = \frac{R - \operatorname{mean}_b R^{(b)}}{\operatorname{sd}_b R^{(b)}}.

This is the restandardisation of Efron and Tibshirani (2007, "On testing the significance of sets
of genes") with another statistic of the set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from frot._base.errors import InputError
from frot.costs.protocol import blocks as in_blocks
from frot.selection._costs import pooling
from frot.selection._inputs import Prepared
from frot.selection._scaling import OVERFLOW

# Statistics that are functions of class sums.
OF_SUMS = ("t", "shift")
# Labellings that are taken together at most, and the bytes that the matrix of them may have.
TOGETHER, LABEL_BYTES = 64, 64_000_000
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
# Permutations that standardise the scores of a fit: they are for a mean and a deviation.
FOR_SCORES = 400


def permuted_labels(
    codes: np.ndarray, blocks: np.ndarray, seed: int, indices: Sequence[int]
) -> np.ndarray:
    """Return labels (B, N) permuted within blocks, each row given by the seed and its own number.

    Examples
    --------
    >>> codes, blocks = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    >>> labels = permuted_labels(codes, blocks, 0, range(5))
    >>> labels[:, :2].sum(axis=1).tolist()
    [1, 1, 1, 1, 1]
    >>> bool((labels[3] == permuted_labels(codes, blocks, 0, [3])[0]).all())
    True
    """
    members = [np.flatnonzero(blocks == number) for number in np.unique(blocks)]
    labels = np.tile(codes, (len(indices), 1))
    for row, index in zip(labels, indices, strict=True):
        rng = np.random.default_rng([seed, index])
        for several in members:
            row[several] = codes[rng.permutation(several)]
    return labels


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
        mean, variance = sums / size, squares / size
        variance -= mean * mean
        return cls(size, size**2 / count, mean, np.maximum(variance, 0.0, out=variance))


@dataclass(frozen=True, eq=False)
class _ClassSums:
    """A table whose classes are summed up under any labels."""

    centred: Centred
    weight: np.ndarray
    # About the centres; zero for features that do not vary.
    variance: np.ndarray
    classes: tuple[int, ...]
    # Places in `classes`; None stands for all other samples.
    pairs: tuple[tuple[int, int | None], ...]

    @classmethod
    def of(cls, prepared: Prepared, block: np.ndarray) -> _ClassSums:
        """Centre the table within blocks."""
        table = prepared.table
        weight = np.ones(len(block)) if prepared.weight is None else prepared.weight
        centred = Centred.of(table, weight, block)
        variance, rounding = np.empty(table.shape[1]), np.full(table.shape[1], ROUNDING**2)
        rounding[centred.columns] = ROUNDING
        with np.errstate(over="ignore", invalid="ignore"):
            for part, _, squares in centred.products(weight[:, None]):
                variance[part] = squares[:, 0] / weight.sum()
            rounding *= np.square(centred.centre).max(axis=0)
        if not np.isfinite(variance).all():
            raise InputError(OVERFLOW)
        variance[variance <= rounding] = 0.0
        pairs = prepared.compared_codes()
        classes = sorted({code for pair in pairs for code in pair if code is not None})
        place = {code: number for number, code in enumerate(classes)}
        places = tuple((place[one], None if two is None else place[two]) for one, two in pairs)
        return cls(centred, weight, variance, tuple(classes), places)

    @property
    def chunk_size(self) -> int:
        """How many labellings to take at a time."""
        each = 8 * len(self.weight) * len(self.classes)
        return int(np.clip(LABEL_BYTES // each, 1, TOGETHER))

    def under(self, codes: np.ndarray) -> Iterator[tuple[Any, list[tuple[_Side, _Side]]]]:
        """Yield features, and both sides of each comparison under labels of shape (B, N)."""
        classes = np.array(self.classes)[None, :, None]
        labels = np.where(codes.T[:, None, :] == classes, self.weight[:, None, None], 0.0)
        sizes, counts = labels.sum(axis=0), np.square(labels).sum(axis=0)
        all_size, all_count = self.weight.sum(), np.square(self.weight).sum()
        for part, sums, squares in self.centred.products(labels.reshape(len(labels), -1)):
            shape = (-1, *labels.shape[1:])
            sums, squares = sums.reshape(shape), squares.reshape(shape)
            total = self.variance[part, None] * all_size
            pairs = []
            for one, two in self.pairs:
                first = _Side.of(sizes[one], counts[one], sums[:, one], squares[:, one])
                if two is None:
                    # Sums about the mean are zero.
                    others = -sums[:, one], total - squares[:, one]
                    second = _Side.of(all_size - sizes[one], all_count - counts[one], *others)
                else:
                    second = _Side.of(sizes[two], counts[two], sums[:, two], squares[:, two])
                pairs.append((first, second))
            yield part, pairs


@dataclass(frozen=True, eq=False)
class FeatureStatistic:
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
    >>> shift = FeatureStatistic.of(ready, np.zeros(4, dtype=int), "shift")
    >>> shift.under(np.array([[0, 0, 1, 1], [0, 1, 0, 1]])).round(4)
    array([[2.8571],
           [1.0286]], dtype=float32)
    """

    sums: _ClassSums
    # Samples that the variance of all counts for, within each class.
    prior: np.ndarray
    pool: Any
    statistic: str
    scaling: str

    @classmethod
    def of(cls, prepared: Prepared, block: np.ndarray, statistic: str) -> FeatureStatistic:
        """Centre the table, within blocks for "t": what differs between them is no effect."""
        table, settings = prepared.table, prepared.settings
        sums = _ClassSums.of(prepared, block if statistic == "t" else np.zeros_like(block))
        zeros = 1.0 - np.asarray((table != 0).sum(axis=0)).ravel() / len(block)
        least = table.min(axis=0)
        # A zero that is not the least value is one like any other.
        zeros[(least.toarray() if sparse.issparse(least) else least).ravel() < 0.0] = 0.0
        prior = FEW * zeros / np.maximum(1.0 - zeros, 1.0 / len(block))
        pool = pooling(prepared.groups, sums.variance == 0.0, settings.group_cost)
        return cls(sums, prior, pool, statistic, settings.scaling)

    @property
    def chunk_size(self) -> int:
        """How many labellings to take at a time."""
        return self.sums.chunk_size

    def under(self, codes: np.ndarray) -> np.ndarray:
        """Return the statistic of every group under labels of shape (B, N), as float32 (B, L).

        In single precision ties stay ties, whatever the last digits are, and the null is half as
        large.
        """
        variance = self.sums.variance
        found = np.zeros((len(variance), len(codes)))
        for part, pairs in self.sums.under(codes):
            least, prior = ROUNDING * variance[part, None], self.prior[part, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                for first, second in pairs:
                    if self.statistic == "t":
                        found[part] += _squared_deviate(first, second, least, prior)
                    else:
                        found[part] += _shift(first, second, self.scaling)
        found[variance == 0.0] = 0.0
        found /= len(self.sums.pairs)
        if self.pool is not None:
            found = np.asarray(self.pool @ found)
        if self.statistic == "t":
            np.sqrt(found, out=found)
        return np.ascontiguousarray(found.T, dtype=np.float32)


def _squared_deviate(
    first: _Side, second: _Side, least: np.ndarray, prior: Any = 0.0
) -> np.ndarray:
    sides = [(side.variance, side.effective) for side in (first, second)]
    if np.any(prior):
        (v, n), (w, m) = sides
        within = (n * v + m * w) * (prior / (n + m))
        sides = [((n * v + within) / (n + prior), n), ((m * w + within) / (m + prior), m)]
    # One sample alone has no variance.
    free = [np.where(n > 1.0, n - 1.0, np.inf) for _, n in sides]
    a, b = sides[0][0] / free[0], sides[1][0] / free[1]
    error = np.maximum(a + b, least)
    # Of shares of the error: squares of variances would overflow in units that squares fit in.
    a /= error
    a *= a
    a /= free[0] + prior
    b /= error
    b *= b
    b /= free[1] + prior
    a += b
    degrees = np.divide(1.0, a, out=a)
    most = np.maximum(first.effective + second.effective - 2.0, 1.0)
    np.minimum(degrees, most, out=degrees)
    found = np.square(first.mean - second.mean)
    found /= error
    found /= degrees
    np.log1p(found, out=found)
    found *= degrees
    degrees *= 8.0
    found *= np.square((degrees + 1.0) / (degrees + 3.0))
    return found


def _shift(first: _Side, second: _Side, scaling: str) -> np.ndarray:
    gap = np.square(first.mean - second.mean)
    if scaling == "none":
        return gap
    if scaling == "balanced":
        return gap / (0.5 * (first.variance + second.variance) + 0.25 * gap)
    share = first.size / (first.size + second.size)
    within = share * first.variance + (1.0 - share) * second.variance
    return gap / (within + share * (1.0 - share) * gap)


@dataclass(frozen=True, eq=False)
class SetStatistics:
    """Statistics of L sets under B + 1 labellings, of which the first is the data's."""

    # Z and D, (B + 1, L). In single precision ties stay ties, whatever the last digits are.
    competitive: np.ndarray
    self_contained: np.ndarray
    # Signed deviates of all features, (C, d), one row per comparison, under the labels as they are.
    z: np.ndarray
    varying: np.ndarray

    @property
    def contributions(self) -> np.ndarray:
        """What each feature adds to its sets, the mean over comparisons, shape (d,)."""
        return excess(self.z).mean(axis=0)


def excess(z: np.ndarray) -> np.ndarray:
    r"""Return :math:`\max(|z| - 1, 0)^2`.

    Examples
    --------
    >>> excess(np.array([0.5, -3.0]))
    array([0., 4.])
    """
    found = np.abs(z)
    found -= 1.0
    np.maximum(found, 0.0, out=found)
    return np.square(found, out=found)


def standardise(statistics: np.ndarray) -> np.ndarray:
    """Take mean and deviation over labellings out of statistics, shape (..., B + 1, L).

    The data's own labels count as one more, so that under the null hypothesis all rows are alike
    and tests of what comes out are exact.

    Examples
    --------
    >>> standardise(np.array([[5.0, 1.0], [1.0, 1.0], [3.0, 1.0]])).round(3)
    array([[ 1.225,  0.   ],
           [-1.225,  0.   ],
           [ 0.   ,  0.   ]])
    """
    found = statistics - statistics.mean(axis=-2, keepdims=True)
    spread = np.broadcast_to(found.std(axis=-2, keepdims=True), found.shape)
    return np.divide(found, spread, out=np.zeros_like(found), where=spread > ROUNDING)


def set_scores(prepared: Prepared, seed: int = 0) -> np.ndarray:
    """Return Z of every set, shape (L,), from a few hundred permutations.

    Examples
    --------
    >>> from frot.selection import FROTSelector
    >>> from frot.selection._inputs import prepare
    >>> X, y = np.random.default_rng(0).normal(size=(40, 60)), np.repeat([0, 1], 20)
    >>> X[y == 1, :3] += 1.5
    >>> sets = {"few of many": range(20), "large": range(20, 60), "small": range(50, 55)}
    >>> ready = prepare(FROTSelector(groups=sets), X, y)
    >>> int(set_scores(ready).argmax())
    0
    """
    blocks = np.zeros(len(prepared.codes), dtype=int)
    return set_statistics(prepared, blocks, FOR_SCORES, seed).competitive[0].astype(float)


def set_statistics(prepared: Prepared, blocks: np.ndarray, count: int, seed: int) -> SetStatistics:
    """Return the statistics under the labels and under `count` permutations within blocks.

    Permutation b is the same whatever their number.
    """
    prepared, blocks = prepared.weighted_only(blocks)
    sums = _ClassSums.of(prepared, blocks)
    members = sparse.csc_array(prepared.groups.membership())
    z = np.zeros((len(sums.pairs), prepared.groups.n_features))
    found = [_of_sets(sums, members, prepared.codes[None], z)]
    for part in in_blocks(count, 1, sums.chunk_size):
        labels = permuted_labels(prepared.codes, blocks, seed, range(part.start, part.stop))
        found.append(_of_sets(sums, members, labels))
    alone = np.concatenate([difference for difference, _ in found])
    relative = np.concatenate([parts for _, parts in found], axis=1)
    ways = standardise(np.stack([relative[0], relative[1:].max(axis=0)]))
    competitive = standardise(ways.max(axis=0)).astype(np.float32)
    return SetStatistics(competitive, alone.astype(np.float32), z, sums.variance > 0.0)


def _of_sets(
    sums: _ClassSums, members: Any, codes: np.ndarray, deviates: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return D (B, L) and R (1 + 2 C, B, L) under labels (B, N).

    R is of both ways, and of up and down in each comparison. The deviates under the first labels
    go to `deviates`. Features are taken a block at a time: no table of labellings by features is
    ever whole.
    """
    parts = 1 + 2 * len(sums.pairs)
    found = np.zeros((parts, members.shape[0], len(codes)))
    moments = np.zeros((parts, 2, len(codes)))
    for part, pairs in sums.under(codes):
        variance = sums.variance[part, None]
        both = np.zeros((len(variance), len(codes)))
        pieces = [both]
        for place, (first, second) in enumerate(pairs):
            with np.errstate(divide="ignore", invalid="ignore"):
                z = np.sqrt(_squared_deviate(first, second, ROUNDING * variance))
            z[sums.variance[part] == 0.0] = 0.0
            up = first.mean > second.mean
            if deviates is not None:
                deviates[place, part] = np.where(up, z, -z)[:, 0]
            beyond = excess(z)
            both += beyond
            higher = beyond * up
            pieces += [higher, np.subtract(beyond, higher, out=beyond)]
        both /= len(pairs)
        for place, piece in enumerate(pieces):
            moments[place, 0] += piece.sum(axis=0)
            moments[place, 1] += np.einsum("kb,kb->b", piece, piece)
            found[place] += members[:, part] @ piece
    varying = sums.variance > 0.0
    found /= np.maximum(members @ varying, 1.0)[:, None]
    mean, square = np.moveaxis(moments / max(int(varying.sum()), 1), 1, 0)
    spread = np.sqrt(np.maximum(square - mean**2, ROUNDING))
    relative = (found - mean[:, None]) / spread[:, None]
    return found[0].T, relative.swapaxes(1, 2)


def leading_edge(contributions: np.ndarray, members: np.ndarray, ordinary: float) -> np.ndarray:
    """Return the members that make the set differ, those that add most first.

    They are as many as must be left out, the largest first, until the mean over the others is no
    more than `ordinary`, that of all other features. None, where the set is no more than ordinary.

    Examples
    --------
    >>> leading_edge(np.array([0.1, 9.0, 0.3, 4.0, 0.1]), np.array([0, 1, 3, 4]), 0.2)
    array([1, 3])
    """
    order = members[np.argsort(-contributions[members], kind="stable")]
    values = contributions[order]
    # Mean over what is left once the first 0, 1, ... are out; what is left may be nothing.
    left = np.append(np.cumsum(values[::-1])[::-1], 0.0)
    left /= np.maximum(np.arange(len(values), -1, -1), 1)
    # Rounding leaves a little of nothing.
    return order[: int(np.argmax(left <= ordinary + ROUNDING))]
