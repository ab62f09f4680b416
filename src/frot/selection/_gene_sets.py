r"""How much sets of genes differ between classes, under the labels as they are and permuted.

Gene by gene, Welch's t is taken to the normal deviate z that is as rare. A gene counts by what it
has beyond one standard error, and a set S by the mean over its genes that vary,

.. math::
    e_j = \max(|z_j| - 1, 0)^2, \qquad
    D_S = \frac{1}{|S|} \sum_{j \in S} e_j, \qquad
    R_S = \frac{D_S - \operatorname{mean}_j e_j}{\operatorname{sd}_j e_j},

with mean and standard deviation over all genes of the table. The noise of genes that do not respond
adds little to D, so that a few that do are enough. R says how far the set is above random sets of
genes (its size is the same under all labels). Under permuted labels whatever genes are correlated
stays so; the mean and the standard deviation of R there depend on the set's size and correlation,
and are taken out of it:

.. math::
    Z_S = \frac{R_S - \operatorname{mean}_b R_S^{(b)}}{\operatorname{sd}_b R_S^{(b)}}.

This is the restandardisation of Efron and Tibshirani (2007, "On testing the significance of sets
of genes") with another statistic of the set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from frot.costs.protocol import blocks as in_blocks
from frot.selection._inputs import Prepared
from frot.selection._tasks import generator_of

__all__ = ["SetStatistics", "excess", "leading_edge", "set_scores", "set_statistics", "standardise"]

# Bytes of the labellings that are multiplied together, and of one temporary of a block of features.
LABEL_BYTES, CACHE_BYTES = 32_000_000, 1_000_000
TOGETHER = 256
# A standard deviation below this share of the values is rounding; so is such a squared error of
# values whose standard deviation is one.
ROUNDING = 1e-12
# Permutations that standardise the scores of a fit: they are for a mean and a deviation.
FOR_SCORES = 400

# Sums over the samples of a class, under B labellings: of weights and squared weights (B, 1), of
# values and squared values (B, k).
Sums = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class SetStatistics:
    """Statistics of L sets under B + 1 labellings, of which the first is the data's.

    Attributes
    ----------
    difference, relative : arrays of float32, shape (B + 1, L)
        D and R. In single precision ties stay ties, whatever the last digits are.
    z : array of shape (C, d)
        Signed deviates of all features, a row a comparison, under the labels as they are.
    varying : array of bool, shape (d,)
    """

    difference: np.ndarray
    relative: np.ndarray
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
    """Take mean and deviation of the permutations, rows 1 to B, out of all rows (B + 1, L).

    Examples
    --------
    >>> standardise(np.array([[5.0, 1.0], [1.0, 1.0], [3.0, 1.0]]))
    array([[ 3.,  0.],
           [-1.,  0.],
           [ 1.,  0.]])
    """
    statistics = np.asarray(statistics, dtype=float)
    found = statistics - statistics[1:].mean(axis=0)
    spread = statistics[1:].std(axis=0)
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
    return standardise(set_statistics(prepared, blocks, FOR_SCORES, seed).relative)[0]


def set_statistics(prepared: Prepared, blocks: np.ndarray, count: int, seed: int) -> SetStatistics:
    """Return the statistics under the labels and under `count` permutations within blocks.

    Permutation b is the same whatever their number. Features are taken a block at a time: no
    table of labellings by features is ever whole, and sparse ones are made dense in parts.
    """
    groups, d = prepared.groups, prepared.table.shape[1]
    members = sparse.csc_array(groups.membership())
    pairs = _pairs(prepared)
    classes = sorted({code for pair in pairs for code in pair if code is not None})
    found = np.zeros((count + 1, len(groups)))
    moments = np.zeros((2, count + 1))
    z, varying = np.zeros((len(pairs), d)), np.zeros(d, dtype=bool)
    weight = np.ones(len(blocks)) if prepared.weight is None else prepared.weight
    for rows, codes in _labellings(prepared.codes, blocks, count, seed):
        masks = {code: (codes == code) * weight for code in classes}
        for part in in_blocks(d, 8 * len(codes), CACHE_BYTES):
            values, varying[part] = _centred(prepared.table[:, part], blocks, weight)
            squares = np.square(values)
            sums = {code: _sums(mask, values, squares) for code, mask in masks.items()}
            whole = _sums(weight[None], values, squares)
            added = 0.0
            for place, (one, two) in enumerate(pairs):
                rest = _less(whole, sums[one]) if two is None else sums[two]
                deviates = _deviates(sums[one], rest)
                if rows.start == 0:
                    z[place, part] = deviates[0]
                added = added + excess(deviates)
            mean = added / len(pairs)
            moments[0, rows] += mean.sum(axis=1)
            moments[1, rows] += np.square(mean).sum(axis=1)
            found[rows] += (members[:, part] @ mean.T).T
    found /= np.maximum(members @ varying, 1.0)
    mean, square = moments / max(int(varying.sum()), 1)
    spread = np.sqrt(np.maximum(square - mean**2, ROUNDING))
    relative = (found - mean[:, None]) / spread[:, None]
    return SetStatistics(found.astype(np.float32), relative.astype(np.float32), z, varying)


def _pairs(prepared: Prepared) -> list[tuple[int, int | None]]:
    """Return the classes that are compared, by code; None is every other sample."""
    contrasts, codes = prepared.contrasts(), prepared.codes
    alone = len(contrasts) == 1
    return [
        (int(codes[one.rows[0][0]]), None if alone or one.second is None else codes[one.rows[1][0]])
        for one in contrasts
    ]


def _labellings(
    codes: np.ndarray, blocks: np.ndarray, count: int, seed: int
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield labels (B, N), some rows at a time; the first of all are the data's own."""
    members = [np.flatnonzero(blocks == number) for number in range(blocks.max() + 1)]
    step = int(np.clip(LABEL_BYTES // (8 * len(codes)), 8, TOGETHER))
    for start in range(0, count + 1, step):
        rows = slice(start, min(start + step, count + 1))
        found = np.tile(codes, (rows.stop - start, 1))
        for index in range(max(start, 1), rows.stop):
            rng = generator_of(seed, index - 1)
            for inside in members:
                found[index - start, inside] = codes[rng.permutation(inside)]
        yield rows, found


def _centred(
    columns: np.ndarray, blocks: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return features about their mean, block by block, in deviations; and which ones vary."""
    columns = columns.toarray() if sparse.issparse(columns) else columns
    peak = np.abs(columns).max(axis=0)
    values = np.array(columns, dtype=float, order="C")
    for number in range(blocks.max() + 1):
        inside = np.flatnonzero(blocks == number)
        share = weight[inside] / max(weight[inside].sum(), ROUNDING)
        values[inside] -= share @ values[inside]
    spread = np.sqrt(weight @ np.square(values) / weight.sum())
    varying = spread > ROUNDING * peak
    values *= np.divide(1.0, spread, out=np.zeros_like(spread), where=varying)
    return values, varying


def _sums(mask: np.ndarray, values: np.ndarray, squares: np.ndarray) -> Sums:
    total, square = mask.sum(axis=1)[:, None], np.square(mask).sum(axis=1)[:, None]
    return total, square, mask @ values, mask @ squares


def _less(whole: Sums, part: Sums) -> Sums:
    return whole[0] - part[0], whole[1] - part[1], whole[2] - part[2], whole[3] - part[3]


def _deviates(first: Sums, second: Sums) -> np.ndarray:
    r"""Return Welch's t as signed normal deviates, shape (B, k).

    Wallace's approximation, with :math:`\nu` Welch and Satterthwaite's degrees of freedom:
    :math:`z = \frac{8 \nu + 1}{8 \nu + 3} \sqrt{\nu \log(1 + t^2 / \nu)}`. The statistics of few
    samples then have tails like those of many.
    """
    means, errors, spreads = [], [], 0.0
    for total, square, value, values in (first, second):
        mean = value / total
        free = np.maximum(total**2 / square - 1.0, ROUNDING)
        error = values / total
        error -= np.square(mean)
        error /= free
        np.maximum(error, ROUNDING, out=error)
        spreads = spreads + np.square(error) / free
        means.append(mean)
        errors.append(error)
    difference, error = means[0] - means[1], errors[0] + errors[1]
    freedom = np.square(error) / spreads
    ratio = np.square(difference) / error
    ratio /= freedom
    np.log1p(ratio, out=ratio)
    ratio *= freedom
    np.sqrt(ratio, out=ratio)
    freedom *= 8.0
    ratio *= (freedom + 1.0) / (freedom + 3.0)
    return np.copysign(ratio, difference, out=ratio)


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
