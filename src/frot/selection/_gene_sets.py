r"""How much sets of genes differ between classes, under the labels as they are and permuted.

Gene by gene, Welch's t is taken to the normal deviate z that is as rare. A gene counts by what it
has beyond one standard error, and a set S by the mean over its genes that vary,

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

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from frot.costs.protocol import blocks as in_blocks
from frot.groups.groups import Groups
from frot.selection._inputs import Prepared
from frot.selection._tasks import permuted_labels

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
    sums = _SetSums.of(prepared, blocks)
    z = np.zeros((len(sums.pairs), sums.groups.n_features))
    found = [sums.under(prepared.codes[None], z)]
    step = int(np.clip(LABEL_BYTES // (8 * len(blocks)), 8, TOGETHER))
    for part in in_blocks(count, 1, step):
        indices = range(part.start, part.stop)
        found.append(sums.under(permuted_labels(prepared.codes, blocks, seed, indices)))
    alone = np.concatenate([difference for difference, _ in found])
    relative = np.concatenate([parts for _, parts in found], axis=1)
    ways = standardise(np.stack([relative[0], relative[1:].max(axis=0)]))
    competitive = standardise(ways.max(axis=0)).astype(np.float32)
    varying = (z != 0.0).any(axis=0)
    return SetStatistics(competitive, alone.astype(np.float32), z, varying)


@dataclass(frozen=True, eq=False)
class _SetSums:
    """A table and its sets, for statistics under many labellings.

    Features are taken a block at a time: no table of labellings by features is ever whole, and
    sparse ones are made dense in parts.
    """

    table: Any
    weight: np.ndarray
    blocks: tuple[np.ndarray, ...]
    pairs: list[tuple[int, int | None]]
    groups: Groups
    members: Any

    @classmethod
    def of(cls, prepared: Prepared, blocks: np.ndarray) -> _SetSums:
        weight = np.ones(len(blocks)) if prepared.weight is None else prepared.weight
        inside = tuple(np.flatnonzero(blocks == number) for number in np.unique(blocks))
        members = sparse.csc_array(prepared.groups.membership())
        pairs = prepared.compared_codes()
        return cls(prepared.table, weight, inside, pairs, prepared.groups, members)

    def under(
        self, codes: np.ndarray, deviates: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return D (B, L) and R (1 + 2 C, B, L) under labels (B, N).

        R is of both ways, and of up and down in each comparison. The deviates under the first
        labels go to `deviates`.
        """
        d = self.groups.n_features
        parts = 1 + 2 * len(self.pairs)
        found = np.zeros((parts, len(codes), len(self.groups)))
        moments = np.zeros((parts, 2, len(codes)))
        varying = np.zeros(d, dtype=bool)
        classes = {code for pair in self.pairs for code in pair if code is not None}
        masks = {code: (codes == code) * self.weight for code in classes}
        for part in in_blocks(d, 8 * len(codes), CACHE_BYTES):
            values, varying[part] = self._values(part)
            squares = np.square(values)
            sums = {code: _sums(mask, values, squares) for code, mask in masks.items()}
            whole = _sums(self.weight[None], values, squares)
            both = np.zeros((len(codes), values.shape[1]))
            pieces = [both]
            for place, (one, two) in enumerate(self.pairs):
                z = _deviates(sums[one], _less(whole, sums[one]) if two is None else sums[two])
                if deviates is not None:
                    deviates[place, part] = z[0]
                beyond = excess(z)
                up = np.where(z > 0.0, beyond, 0.0)
                both += beyond
                pieces += [up, np.subtract(beyond, up, out=beyond)]
            both /= len(self.pairs)
            for place, piece in enumerate(pieces):
                moments[place, 0] += piece.sum(axis=1)
                moments[place, 1] += np.einsum("bk,bk->b", piece, piece)
                found[place] += (self.members[:, part] @ piece.T).T
        found /= np.maximum(self.members @ varying, 1.0)
        mean, square = np.moveaxis(moments / max(int(varying.sum()), 1), 1, 0)
        spread = np.sqrt(np.maximum(square - mean**2, ROUNDING))
        return found[0], (found - mean[..., None]) / spread[..., None]

    def _values(self, part: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return features about their means, in standard deviations; and which ones vary."""
        columns = self.table[:, part]
        columns = columns.toarray() if sparse.issparse(columns) else columns
        peak = np.abs(columns).max(axis=0)
        values = np.array(columns, dtype=float, order="C")
        _centre(values, self.blocks, self.weight)
        spread = np.sqrt(self.weight @ np.square(values) / self.weight.sum())
        varying = spread > ROUNDING * peak
        values *= np.divide(1.0, spread, out=np.zeros_like(spread), where=varying)
        return values, varying


def _centre(values: np.ndarray, blocks: tuple[np.ndarray, ...], weight: np.ndarray) -> None:
    """Take the mean of each block out of the columns, in place."""
    for inside in blocks:
        values[inside] -= weight[inside] @ values[inside] / weight[inside].sum()


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
