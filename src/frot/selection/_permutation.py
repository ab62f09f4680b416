"""Permutation test of every feature: p and q from labels permuted at random, within blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from frot._base.errors import InputError, warn_caller
from frot._base.validate import check_count
from frot.api.permutations import permuted_labels
from frot.api.tasks import check_run
from frot.selection._design import Contrast
from frot.selection._inputs import Prepared, prepare
from frot.selection._label_statistics import LabelStatistics
from frot.selection._null import against_null, in_chunks
from frot.selection._selector import FROTSelector, is_fitted, unfitted

# The false discovery rate of headlines, colours and warnings.
LEVEL = 0.05
# Rows of printed forms.
SHOWN = 5


@dataclass(frozen=True, eq=False, repr=False)
class PermutationTest:
    """The result of a permutation test. Its printed form has ten lines at most.

    Attributes
    ----------
    names : tuple of str, length L
        The features.
    observed : array of shape (L,)
        Welch's :math:`|t|` under the labels as they are, as a normal deviate; of several
        comparisons the largest.
    p : array of shape (L,)
        Permutation p-values of single features.
    q : array of shape (L,)
        The false discovery rate at which a feature is accepted, from the null of all features
        together.
    q_bh : array of shape (L,)
        Benjamini-Hochberg on p.
    p_max : array of shape (L,)
        Westfall-Young max-T, step-down: p-values that hold for all features together.
    pi0 : float
        The share of features that do not differ, estimated from above.
    n_permutations : int
    """

    names: tuple[str, ...]
    observed: np.ndarray
    p: np.ndarray
    q: np.ndarray
    q_bh: np.ndarray
    p_max: np.ndarray
    pi0: float
    n_permutations: int

    @property
    def order(self) -> np.ndarray:
        """Positions, smallest p-value first."""
        return np.lexsort((-self.observed, self.p, self.q))

    @property
    def table(self) -> pd.DataFrame:
        """Feature, observed t, p, q, q_bh and p_max, smallest p-value first."""
        columns = {name: getattr(self, name) for name in ("p", "q", "q_bh", "p_max")}
        names = np.array(self.names, dtype=object)
        table = pd.DataFrame({"feature": names, "t": self.observed, **columns})
        return table.iloc[self.order].reset_index(drop=True)

    def __repr__(self) -> str:
        def many(values: np.ndarray, level: float) -> str:
            return f"{int((values <= level).sum()):,}"

        shown = self.order[:SHOWN]
        width = max([7, *(len(self.names[index][:24]) for index in shown)])
        heads = ("t", "p", "q", "q_bh", "p_max")
        columns = (self.observed, self.p, self.q, self.q_bh, self.p_max)
        lines = [
            f"Permutation test of {len(self.names):,} features: {self.n_permutations:,} "
            "permutations of Welch's t",
            f"{many(self.q, 0.05)} with q <= 0.05, {many(self.q, 0.1)} with q <= 0.1; "
            f"{many(self.p_max, 0.05)} with max-T p <= 0.05",
            f"q: pooled null, pi0 = {self.pi0:.2f}",
            "feature".ljust(width) + "".join(f"{head:>8}" for head in heads),
        ]
        lines += [
            self.names[index][:24].ljust(width)
            + "".join(f"{values[index]:>8.3g}" for values in columns)
            for index in shown
        ]
        return "\n".join(lines)


def permutation_test(
    X: Any,
    y: Any,
    *,
    selector: FROTSelector | None = None,
    n_permutations: int = 1000,
    block: Any = None,
    progress: bool = False,
    random_state: int | None = 0,
) -> PermutationTest:
    r"""Test every feature by permuting the labels.

    The statistic is Welch's t without its sign, as the normal deviate that is as rare for its
    degrees of freedom: it does not trust classes to vary alike. With B permutations

    .. math::
        p_l = \frac{1 + \#\{ b : T_l^{(b)} \ge T_l \}}{1 + B},

    which is exact if labels could be exchanged, within blocks where these are given. No p-value
    is below 1 / (1 + B), so that Benjamini and Hochberg's q-values of L features cannot be below
    L / (k (1 + B)) where k of them stand out against all permutations. The q-values come from the
    permutations of all features together and need not pay for that:

    .. math::
        q_l = \min_{t \le T_l} \frac{\pi_0 V(t) + R(t)}{(1 + B)\, R(t)},
        \qquad V(t) = \#\{ b, k : T_k^{(b)} \ge t \}, \quad R(t) = \#\{ k : T_k \ge t \}.

    A `frot.ConvergenceWarning` says so where they are too few for any q of 0.05.

    Parameters
    ----------
    X : array, sparse array or DataFrame of shape (N, d)
    y : array of shape (N,)
        With three or more classes a feature counts by the comparison in which it differs most.
    selector : FROTSelector, optional
        Whose `reference` and `missing` to use.
    n_permutations : int
        B.
    block : array of shape (N,), optional
        Batch, donor, patient...: labels are permuted within each block only, and what differs
        between blocks is neither signal nor noise. A patient measured in both classes is a block
        of two: the paired test.
    progress : bool
        Show a bar.
    random_state : int, optional
        Permutation b is seeded by this and b. None draws a seed.

    Returns
    -------
    PermutationTest

    Notes
    -----
    The statistic of a feature depends on that feature alone, so that each p-value holds by itself,
    and max-T holds whichever features differ. Permutations are matrix products, of sparse tables
    too. Permutations suppose that classes are distributed alike where they do not differ in the
    mean. Where they vary differently t is still near right, if features are not skewed too.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 10)), np.repeat(["a", "b"], 20)
    >>> X[y == "b", 3] += 2.0
    >>> test = permutation_test(X, y, n_permutations=99)
    >>> print(test)
    Permutation test of 10 features: 99 permutations of Welch's t
    1 with q <= 0.05, 1 with q <= 0.1; 1 with max-T p <= 0.05
    q: pooled null, pi0 = 1.00
    feature       t       p       q    q_bh   p_max
    x3         4.98    0.01    0.01     0.1    0.01
    x7         2.37    0.04   0.105     0.2    0.14
    x1        0.774    0.39    0.92    0.94    0.99
    x9        0.698    0.43    0.92    0.94    0.99
    x4        0.729    0.57    0.92    0.94    0.99
    """
    count = check_count(n_permutations, "n_permutations")
    seed = check_run(None, progress, None, random_state)
    prepared = prepare(unfitted(selector), X, y, block, doubts=not is_fitted(selector))
    if not prepared.single:
        raise InputError("selector: has groups of features; pathway_test tests them")
    return permute_labels(prepared, count, seed, progress)


def permute_labels(
    prepared: Prepared, count: int, seed: int = 0, progress: bool = False
) -> PermutationTest:
    """Test the features of a checked table."""
    contrasts = prepared.contrasts
    statistics = [
        LabelStatistics.of(contrast.of(prepared.table), contrast.is_first, contrast.block)
        for contrast in contrasts
    ]
    observed = _largest(statistics, [contrast.is_first[None] for contrast in contrasts])[0]
    result = against_null(observed, _null(statistics, contrasts, count, seed, progress))
    fewest = round(1.0 / LEVEL) - 1
    if count < fewest:
        warn_caller(
            f"n_permutations: with {count:,} no q can be below {1.0 / (1.0 + count):.2g}; "
            f"{fewest:,} would allow {LEVEL:g}"
        )
    return PermutationTest(
        names=prepared.groups.names,
        observed=observed,
        p=result.p,
        q=result.q,
        q_bh=result.q_bh,
        p_max=result.p_max,
        pi0=result.pi0,
        n_permutations=count,
    )


def _largest(statistics: list[LabelStatistics], labels: list[np.ndarray]) -> np.ndarray:
    """Return the largest deviate of each feature over the comparisons, (B, d)."""
    each = [
        statistic.deviates(labelling)
        for statistic, labelling in zip(statistics, labels, strict=True)
    ]
    return np.max(np.abs(each), axis=0).T


def _null(
    statistics: list[LabelStatistics],
    contrasts: tuple[Contrast, ...],
    count: int,
    seed: int,
    progress: bool,
) -> Iterator[np.ndarray]:
    """Yield the statistic under permuted labels, (B', d) for some permutations at a time."""
    for chunk in in_chunks(count, progress):
        labels = [
            permuted_labels(contrast.is_first, contrast.block, seed, chunk)
            for contrast in contrasts
        ]
        yield _largest(statistics, labels)
