r"""Statistics of gene sets under permuted labels, and probes of one gene made one feature.

Gene by gene, Welch's t is taken to the normal deviate z that is as rare (`LabelStatistics`). A gene
counts by what it has beyond one standard error, and a set S by the mean over its genes that vary,

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

This is the restandardisation of Efron and Tibshirani 2007 with another statistic of the set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import brentq

from frot._base.validate import check_choice
from frot.api.permutations import permuted_labels
from frot.groups.groups import Groups
from frot.selection._design import Contrast
from frot.selection._effects import ROUNDING
from frot.selection._inputs import Prepared
from frot.selection._label_statistics import LabelStatistics
from frot.selection._null import in_chunks

COLLAPSE = ("max", "mean")


@dataclass(frozen=True, eq=False)
class Collapsed:
    """A table of genes, made from one of probes; `note` says what was done, empty for nothing."""

    table: Any
    groups: Groups
    names: tuple[str, ...]
    note: str = ""

    @classmethod
    def of(
        cls, table: Any, groups: Groups, names: Sequence[str], how: str | None = "max"
    ) -> Collapsed:
        """Make features of the same name one: that of the highest mean, or their mean.

        Examples
        --------
        >>> table = np.array([[1.0, 5.0, 2.0], [3.0, 7.0, 2.0]])
        >>> sets = Groups.parse([[0, 1, 2]], 3)
        >>> found = Collapsed.of(table, sets, ("TP53", "TP53", "MYC"))
        >>> found.names, found.table.tolist(), found.groups.sizes.tolist()
        (('TP53', 'MYC'), [[5.0, 2.0], [7.0, 2.0]], [2])
        """
        if how is not None:
            check_choice(how, "collapse", COLLAPSE)
        position = {name: index for index, name in enumerate(dict.fromkeys(names))}
        if how is None or len(position) == len(names):
            return cls(table, groups, tuple(names))
        gene = np.array([position[name] for name in names])
        count = len(position)
        if how == "mean":
            shares = (1.0 / np.bincount(gene))[gene]
            merge = sparse.csc_array((shares, (np.arange(len(gene)), gene)))
            table, done = table @ merge, "their mean"
        else:
            mean = np.asarray(table.mean(axis=0)).ravel()
            order = np.lexsort((-mean, gene))
            table, done = table[:, order[np.unique(gene[order], return_index=True)[1]]], "the one"
            done += " of the highest mean"
        members = [np.unique(gene[index]) for index in groups.indices]
        offsets = np.concatenate([[0], np.cumsum([len(each) for each in members])])
        groups = replace(groups, flat=np.concatenate(members), offsets=offsets, n_features=count)
        note = (
            f"{len(names):,} features are {count:,} genes: of several with one name {done} counts "
            f"(collapse={how!r})"
        )
        return cls(table, groups, tuple(position), note)


@dataclass(frozen=True, eq=False)
class SetStatistics:
    """Statistics of L sets under B + 1 labellings, of which the first is the data's.

    Attributes
    ----------
    competitive, self_contained : arrays of float32, shape (B + 1, L)
        Z and D. In single precision ties stay ties, whatever the last digits are.
    z : array of shape (C, d)
        Signed deviates of all features, one row per comparison, under the labels as they are.
    varying : array of bool, shape (d,)
    detectable : float
        By how many standard deviations all genes of a set of median size would have to differ, the
        same way, for it to have a q of .05 in every second study like this one.
    """

    competitive: np.ndarray
    self_contained: np.ndarray
    z: np.ndarray
    varying: np.ndarray
    detectable: float

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
    return np.square(np.maximum(np.abs(z) - 1.0, 0.0))


def set_scores(prepared: Prepared, permutations: int = 400) -> np.ndarray:
    """Return Z of every set, shape (L,); a few hundred permutations give a mean and a deviation.

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
    genes = Collapsed.of(prepared.table, prepared.groups, prepared.names)
    statistics = set_statistics(genes.table, prepared.contrasts, genes.groups, permutations)
    return statistics.competitive[0].astype(float)


def set_statistics(
    table: Any,
    contrasts: Sequence[Contrast],
    groups: Groups,
    count: int,
    seed: int = 0,
    progress: bool = False,
) -> SetStatistics:
    """Return the statistics under the labels and under `count` permutations within blocks.

    Permutation b is the same whatever their number.
    """
    statistics = [
        LabelStatistics.of(statistic.of(table), statistic.is_first, statistic.block)
        for statistic in contrasts
    ]
    varying = np.logical_or.reduce([statistic.total > 0.0 for statistic in statistics])
    members = sparse.csr_array(groups.membership())
    z = [
        statistic.deviates(contrast.is_first[None])
        for statistic, contrast in zip(statistics, contrasts, strict=True)
    ]
    results = [_of_sets(z, members, varying)]
    typical = _Typical.of(groups, varying, statistics[0])
    shifted = []
    for chunk in in_chunks(count, progress):
        labels = [
            permuted_labels(contrast.is_first, contrast.block, seed, chunk)
            for contrast in contrasts
        ]
        permuted = [
            statistic.deviates(labelling)
            for statistic, labelling in zip(statistics, labels, strict=True)
        ]
        results.append(_of_sets(permuted, members, varying))
        shifted.append(typical.seen(permuted[0], labels[0], results[-1][2]))
    kept = [np.concatenate(parts, axis=-1) for parts in zip(*shifted, strict=True)]
    alone = np.concatenate([difference for difference, *_ in results])
    scale = Standard.of(np.concatenate([relative for _, relative, _ in results], axis=1))
    return SetStatistics(
        competitive=scale.score.astype(np.float32),
        self_contained=alone.astype(np.float32),
        z=np.stack([statistic[:, 0] for statistic in z]),
        varying=varying,
        detectable=typical.detectable(scale.score[1:], *kept),
    )


def _of_sets(
    deviates: list[np.ndarray], members: Any, varying: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return D (B, L), R (1 + 2 C, B, L) and moments (1 + 2 C, 2, B) from deviates (d, B) of each.

    R is of both ways, and of up and down in each comparison; moments are mean and standard
    deviation over all genes.
    """
    each = [excess(z) for z in deviates]
    pieces = [np.mean(each, axis=0)]
    for z, beyond in zip(deviates, each, strict=True):
        higher = beyond * (z > 0.0)
        pieces += [higher, beyond - higher]
    counts = np.maximum(members @ varying, 1.0)[:, None]
    means = [(members @ piece) / counts for piece in pieces]
    relative, moments = [], []
    for piece, mean in zip(pieces, means, strict=True):
        genes = piece[varying]
        centre = genes.mean(axis=0)
        spread = np.maximum(genes.std(axis=0), np.sqrt(ROUNDING))
        relative.append(((mean - centre) / spread).T)
        moments.append((centre, spread))
    return means[0].T, np.stack(relative), np.array(moments)


@dataclass(frozen=True, eq=False)
class Standard:
    """R made comparable by its mean and deviation over labellings, step by step, and Z.

    The data's own labels count as one more, so that under the null hypothesis all rows are alike
    and tests of what comes out are exact.
    """

    # Of both ways, of one way, and of the larger of them, (B + 1, L).
    both: np.ndarray
    one_way: np.ndarray
    larger: np.ndarray
    score: np.ndarray

    @classmethod
    def of(cls, relative: np.ndarray) -> Standard:
        """Standardise R, (1 + 2 C, B + 1, L)."""
        both, one_way = relative[0], relative[1:].max(axis=0)
        larger = np.maximum(standardise(both), standardise(one_way))
        return cls(both, one_way, larger, standardise(larger))

    def score_of(self, both: np.ndarray, one_way: np.ndarray, place: int) -> np.ndarray:
        """Return Z of other values of R of one set, by the same means and deviations."""
        pairs = ((both, self.both), (one_way, self.one_way))
        ways = [_in_units(value, of[:, place]) for value, of in pairs]
        return _in_units(np.maximum(*ways), self.larger[:, place])


def standardise(statistics: np.ndarray) -> np.ndarray:
    """Take mean and deviation over labellings out of statistics, shape (B + 1, L).

    Examples
    --------
    >>> standardise(np.array([[5.0, 1.0], [1.0, 1.0], [3.0, 1.0]])).round(3)
    array([[ 1.225,  0.   ],
           [-1.225,  0.   ],
           [ 0.   ,  0.   ]])
    """
    return _in_units(statistics, statistics)


def _in_units(values: np.ndarray, of: np.ndarray) -> np.ndarray:
    spread = of.std(axis=0)
    centred = values - of.mean(axis=0)
    return np.where(spread > ROUNDING, centred / np.where(spread > ROUNDING, spread, 1.0), 0.0)


@dataclass(frozen=True, eq=False)
class _Typical:
    """A set of median size, whose genes are shifted to see what would be found."""

    # Its columns that vary, and how many vary in all.
    columns: np.ndarray
    count: int
    statistic: LabelStatistics

    @classmethod
    def of(cls, groups: Groups, varying: np.ndarray, statistic: LabelStatistics) -> _Typical:
        """Take the set in the middle, by size."""
        columns = groups.indices[int(np.argsort(groups.sizes, kind="stable")[len(groups) // 2])]
        return cls(columns[varying[columns]], int(varying.sum()), statistic)

    def seen(
        self, z: np.ndarray, labels: np.ndarray, moments: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what is kept of permuted labels (B', n), each with a last axis of them.

        Deviates of the set's genes; the means of all genes that are up, and down, and of their
        squares; and the part of a shift that these labels have, 1 for those of the data.
        """
        statistic = self.statistic
        alike = labels @ (statistic.is_first - statistic.share) / statistic.information
        centre, spread = moments[1:3].swapaxes(0, 1)
        return z[self.columns], np.stack([centre, np.square(spread) + np.square(centre)]), alike

    def detectable(
        self, null: np.ndarray, z: np.ndarray, sums: np.ndarray, alike: np.ndarray
    ) -> float:
        """Return the shift of all its genes, in standard deviations, that would be seen.

        It is added to the deviates under permuted labels, until half of these have the score at
        which one set would have a q of .05, in scores `null` (B, L); NaN where so few permutations
        allow no such q. Labels that are like those of the data have a part of the shift under the
        null, too, so that the score is less than it would be in standard deviations without it.
        """
        allowed = int(0.05 * (1 + len(null))) - 1
        if allowed < 0 or not len(self.columns):
            return np.nan
        needed = np.sort(null, axis=None)[null.size - 1 - allowed]

        def ways(deviates: np.ndarray) -> np.ndarray:
            return np.stack([np.square(np.maximum(sign * deviates - 1.0, 0.0)) for sign in (1, -1)])

        before = ways(z)

        def relative(shift: float | np.ndarray) -> np.ndarray:
            after = ways(z + shift * np.sqrt(self.statistic.information))
            gains = (after - before).sum(axis=1), (np.square(after) - np.square(before)).sum(axis=1)
            centre, squares = sums + np.stack(gains) / self.count
            # Both ways, and each.
            means, centre, squares = (
                np.vstack([values.sum(axis=0), values])
                for values in (after.mean(axis=1), centre, squares)
            )
            return (means - centre) / np.sqrt(np.maximum(squares - np.square(centre), ROUNDING))

        def short(shift: float) -> float:
            both, *one_way = relative(shift)
            scale = Standard.of(relative(shift * alike)[:, :, None])
            score = scale.score_of(both, np.max(one_way, axis=0), 0)
            return float(np.median(score) - needed)

        # At large shifts permuted labels have so much of it that the score falls again.
        least = 0.0
        for most in np.geomspace(0.05, 10.0, 16).tolist():
            if short(least) < 0.0 < short(most):
                root: Any = brentq(short, least, most, xtol=1e-3)
                return float(root)
            least = most
        return np.nan


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
