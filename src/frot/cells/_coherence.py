r"""Coherence of groups: the gate that keeps noise out, and denoising.

**The gate** finds, without labels, the groups that have information that holds on both days. Group
l predicts the coordinates of another group k, its witness: the prediction :math:`z_i` of cell i is
a ridge regression of k on l, learnt from the cells of the *other* day. Where l and k follow
something that both days have in common, predictions agree with the coordinates :math:`x_i` that
the cell has in k; noise, or a nuisance of l alone, agrees no more than permuted predictions do.
With both centred,

.. math::
    z_{lk} = \sqrt{n - 1}\, \frac{\sum_i \langle z_i, x_i \rangle}
    {\sqrt{\operatorname{tr}(Z^\top Z\, X^\top X)}}

has mean zero and variance one under permutations, exactly. The smaller z of the two days
counts, and a group has the z of its best witness.

**Denoising**: half of a group's cost is measured in directions that its witnesses confirm. A plan
is judged by distances within each group, and much of these is noise: of measurement, or of genes
that follow no other. The adversary would follow it, since nothing couples noise well. What predicts
another group is not noise. Let :math:`B_l` have the coefficients by which the
coordinates of group l predict those of all its witnesses, learnt on one day, and :math:`B_l'` the
same of the other. Squared distances in l become

.. math::
    \tfrac12 \| x - y \|^2 + \tfrac1{2 c} (x - y)^\top M_l^{1/2} (x - y), \qquad
    M_l = \tfrac12 (B_l B_l'^\top + B_l' B_l^\top)_+

where c gives both parts a mean cost of one half. :math:`(x - y)^\top M_l (x - y)` is the squared
distance of the predictions from x and from y; errors of the two days are independent and cancel on
average. The root of :math:`M_l`, half way to the identity, depends less on how many witnesses have
the same information. The first part keeps what the group alone has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.stats import norm

from frot.cells._blocks import Block, mean_cost

# Cells of a day that are used, at most. With more, groups of weak signals pass, but so do those
# that have almost nothing in common.
LOOKED_AT = 1_000
SEED = 0
# Groups that share more than this part of the genes of the smaller one are no witnesses for each
# other: what they have in common may be the noise of those genes.
IN_COMMON = 0.2
# The part of a group's mean cost that is plain distance, whether or not others confirm it.
PLAIN = 0.5


@dataclass(frozen=True, eq=False)
class Coherence:
    """How well, and by what coefficients, the L groups of both days predict each other.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> cells, noise = rng.normal(size=(2, 300, 2)), rng.normal(size=(2, 300, 2))
    >>> def block(name, values):
    ...     noisy = values + 0.5 * rng.normal(size=values.shape)
    ...     return Block(name, *noisy, (name,), None, 1.0, 1.0, np.ones(1))
    >>> found = Coherence.of([block("a", cells), block("b", cells), block("c", noise)])
    >>> found.z.max(axis=1) > 4.0
    array([ True,  True, False])
    """

    # Of every group (rows) with every other as its witness, (L, L). Minus infinity where a group
    # is no witness: for itself, and for one that it shares genes with.
    z: np.ndarray
    # Coefficients by which the k coordinates of each group predict the D coordinates of all,
    # (k, D): learnt from the cells of the source's day, and from those of the target's.
    coefficients: tuple[list[np.ndarray], list[np.ndarray]]
    # The places of each group's coordinates among the D.
    columns: list[np.ndarray]

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> Coherence:
        """Fit the regressions on cells of either day, and test them on those of the other."""
        rng = np.random.default_rng(SEED)
        days = [
            _centred_sample([getattr(block, side) for block in blocks], rng)
            for side in ("source", "target")
        ]
        first, second = (_coefficients(day) for day in days)
        ends = np.cumsum([0, *(block.size for block in blocks)])
        columns = [np.arange(begin, end) for begin, end in pairwise(ends)]
        # Predictions for the cells of a day use the coefficients of the other.
        z = np.minimum(_agreements(days[0], second, columns), _agreements(days[1], first, columns))
        z[_share_genes(blocks)] = -np.inf
        return cls(z, (first, second), columns)

    @property
    def chance(self) -> np.ndarray:
        """The probability that any pair of groups of noise has such a z, shape (L, L)."""
        # The two directions between two groups are nearly the same test.
        pairs = max(1.0, np.isfinite(self.z).sum() / 2.0)
        return np.minimum(1.0, pairs * norm.sf(self.z))

    def passed(self, level: float) -> np.ndarray:
        """Return which groups have a witness at this level, Bonferroni over the pairs, (L,)."""
        return self.chance.min(axis=1) <= level

    def among(self, kept: np.ndarray) -> Coherence:
        """Return the coherence of some groups, a mask of shape (L,), without fitting again."""
        places = np.flatnonzero(kept)
        columns = [self.columns[at] for at in places]
        here, there = (
            [day[at][:, np.concatenate(columns)] for at in places] for day in self.coefficients
        )
        ends = np.cumsum([0, *map(len, columns)])
        moved = [np.arange(begin, end) for begin, end in pairwise(ends)]
        return Coherence(self.z[np.ix_(places, places)], (here, there), moved)

    def confirmed(self, level: float) -> list[np.ndarray | None]:
        r"""Return :math:`M_l^{1/2}` of each group, (k, k), or None for one without a witness.

        A witness is a group that is predicted at this `level`, Bonferroni over the pairs.

        Examples
        --------
        Groups of a signal and a coordinate of noise each: the signal is what the other confirms.

        >>> rng = np.random.default_rng(0)
        >>> signal, noise = rng.normal(size=(2, 300, 1)), rng.normal(size=(2, 2, 300, 1))
        >>> def block(name, own):
        ...     values = np.concatenate([signal + 0.3 * rng.normal(size=signal.shape), own], axis=2)
        ...     return Block(name, *values, (name,), None, 1.0, 1.0, np.ones(2))
        >>> blocks = [block("a", noise[0]), block("b", noise[1])]
        >>> first, _ = Coherence.of(blocks).confirmed(0.01)
        >>> bool(first[1, 1] < 0.2 * first[0, 0])
        True
        """
        found: list[np.ndarray | None] = []
        for witness, one, two in zip(self.chance <= level, *self.coefficients, strict=True):
            if not witness.any():
                found.append(None)
                continue
            predicted = np.concatenate([self.columns[at] for at in np.flatnonzero(witness)])
            product = one[:, predicted] @ two[:, predicted].T
            found.append(_root((product + product.T) / 2.0))
        return found


def denoise(
    blocks: list[Block], coherence: Coherence, weights: tuple[np.ndarray, np.ndarray], level: float
) -> list[Block]:
    """Return blocks in coordinates that have the distances of the module's formula.

    The blocks are those that passed the gate, and the coherence is theirs. A group without a
    witness at this level is left as it is. Coupling at random still costs one. Entries of the list
    are replaced one after the other, so that large sets of cells are in memory only once.
    """
    for at, metric in enumerate(coherence.confirmed(level)):
        if metric is None:
            continue
        block, root = blocks[at], _root(metric)
        cost = mean_cost(block.source @ root, block.target @ root, weights)
        if not cost > 0.0:
            continue
        matrix = _root(PLAIN * np.eye(block.size) + (1.0 - PLAIN) / cost * metric)
        source, target = block.source @ matrix, block.target @ matrix
        blocks[at] = replace(block, source=source, target=target, filter=matrix)
    return blocks


def _root(matrix: np.ndarray) -> np.ndarray:
    """Return the symmetric square root of the positive part of a symmetric matrix."""
    powers, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(powers, 0.0))) @ vectors.T


def _centred_sample(groups: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    count = len(groups[0])
    some = np.sort(rng.choice(count, min(count, LOOKED_AT), replace=False))
    return [values[some] - values[some].mean(axis=0) for values in groups]


def _coefficients(values: list[np.ndarray]) -> list[np.ndarray]:
    every = np.hstack(values)
    found = []
    for one in values:
        gram = one.T @ one
        # The ridge: one more cell of the mean size in every direction, or 1 where a group is the
        # same in all cells of a day.
        gram += (np.trace(gram) / len(one) or 1.0) * np.eye(len(gram))
        found.append(np.linalg.solve(gram, one.T @ every))
    return found


def _agreements(
    here: list[np.ndarray], coefficients: list[np.ndarray], columns: list[np.ndarray]
) -> np.ndarray:
    """Return z of the predictions for the cells here, of each group (rows) for each."""
    found = np.empty((len(here), len(here)))
    for at, (own, learnt) in enumerate(zip(here, coefficients, strict=True)):
        predicted = own @ learnt
        found[at] = [
            agreement(predicted[:, part], one) for one, part in zip(here, columns, strict=True)
        ]
    return found


def agreement(predicted: np.ndarray, points: np.ndarray) -> float:
    """Return how much predictions of shape (n, d) agree with points, in standard deviations.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(100, 2))
    >>> round(agreement(points, points), 1), round(agreement(points[::-1], points), 1)
    (13.9, -1.3)
    """
    predicted, points = predicted - predicted.mean(axis=0), points - points.mean(axis=0)
    spread = float(np.sum((predicted.T @ predicted) * (points.T @ points)))
    if spread <= 0.0:
        return 0.0
    return float(np.sum(predicted * points) * np.sqrt((len(points) - 1) / spread))


def _share_genes(blocks: Sequence[Block]) -> np.ndarray:
    genes = [set(block.genes) for block in blocks]
    return np.array(
        [[len(one & two) > IN_COMMON * min(len(one), len(two)) for two in genes] for one in genes]
    )
