"""Permutation tests: which costs are larger than labels dealt out by chance would give."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from frot._base.errors import ConvergenceWarning, InputError
from frot._base.fingerprint import fingerprint
from frot._base.validate import check_choice, check_count
from frot.selection._comparison import WITHOUT_PLAN, statistic_of
from frot.selection._inputs import SCORES, Prepared, prepare
from frot.selection._selector import FROTSelector, make_table, unfitted
from frot.selection._tasks import check_run, generator_of, run_tasks

__all__ = [
    "STATISTICS",
    "PermutationTest",
    "benjamini_hochberg",
    "max_t",
    "permutation_p",
    "permutation_test",
]


def permutation_p(observed: np.ndarray, null: np.ndarray) -> np.ndarray:
    r"""Return :math:`p_l = (1 + \#\{b : T_l^{(b)} \ge T_l\}) / (1 + B)`, shape (L,).

    The data as it is counts as one more permutation, which makes the test exact: under the null
    hypothesis p is at most u with probability at most u.

    Examples
    --------
    >>> permutation_p(np.array([2.0, 0.5]), np.array([[1.0, 1.0], [0.0, 1.0], [1.5, 0.0]]))
    array([0.25, 0.75])
    """
    return (1.0 + (null >= observed).sum(axis=0)) / (1.0 + len(null))


def benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    r"""Return q-values: the least false discovery rate at which each p-value is accepted.

    .. math::
        q_{(i)} = \min_{j \ge i} \; \min(1, L\, p_{(j)} / j)

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03, 0.5]))
    array([0.04      , 0.05333333, 0.05333333, 0.5       ])
    """
    order = np.argsort(p)[::-1]
    ranks = np.arange(len(p), 0, -1)
    q = np.empty(len(p))
    q[order] = np.minimum(np.minimum.accumulate(p[order] * len(p) / ranks), 1.0)
    return q


def max_t(observed: np.ndarray, null: np.ndarray) -> np.ndarray:
    r"""Return p-values that hold for all features together (Westfall and Young, step-down).

    Each feature is held against the largest statistic, in each permutation, of those features
    whose own observed statistic is no larger. Accepting all with p <= u errs once or more with
    probability at most u.

    Examples
    --------
    >>> null = np.array([[1.0, 1.8], [0.0, 0.2], [2.5, 0.0]])
    >>> max_t(np.array([2.0, 0.5]), null)
    array([0.5, 0.5])
    """
    order = np.argsort(-observed, kind="stable")
    count = np.zeros(len(observed))
    for statistic in null:
        largest = np.maximum.accumulate(statistic[order][::-1])[::-1]
        count += largest >= observed[order]
    p = np.empty(len(observed))
    # A feature cannot be surer than one that stands out more.
    p[order] = np.maximum.accumulate((1.0 + count) / (1.0 + len(null)))
    return p


STATISTICS = (*SCORES, "wasserstein")


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """What a permutation test found.

    Attributes
    ----------
    names : tuple of str, length L
        The features or groups.
    statistic : str
    observed : array of shape (L,)
        The statistic under the labels as they are.
    p : array of shape (L,)
        Permutation p-values, each feature for itself.
    q : array of shape (L,)
        Benjamini-Hochberg: the false discovery rate at which a feature is accepted.
    p_max : array of shape (L,)
        Westfall-Young max-T, step-down: p-values that hold for all features together.
    null : array of float32, shape (B, L)
        The statistic under each permutation.
    by_feature : bool
        Whether the statistic of a feature depends on that feature alone, so that its p-value
        holds whatever the others do. If not, small p-values say that something differs.
    """

    names: tuple[str, ...]
    statistic: str
    observed: np.ndarray
    p: np.ndarray
    q: np.ndarray
    p_max: np.ndarray
    null: np.ndarray
    by_feature: bool

    def quantiles(self, levels: Any = (0.5, 0.95, 0.99)) -> np.ndarray:
        """Return quantiles of each feature's null, shape (len(levels), L)."""
        return np.quantile(self.null, levels, axis=0)

    @property
    def table(self) -> Any:
        """Feature, observed statistic, p, q and p_max, the surest first."""
        order = np.lexsort((-self.observed, self.p))
        columns = {
            "feature": np.array(self.names, dtype=object)[order],
            self.statistic: self.observed[order],
            "p": self.p[order],
            "q": self.q[order],
            "p_max": self.p_max[order],
        }
        return make_table(columns)


def permutation_test(
    X: Any,
    y: Any,
    *,
    selector: FROTSelector | None = None,
    statistic: str = "shift",
    n_permutations: int = 1000,
    block: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    random_state: int | None = 0,
) -> PermutationTest:
    r"""Test every feature, or group, by permuting the labels.

    Each permutation is scaled and solved anew, exactly as the data is; with B of them

    .. math::
        p_l = \frac{1 + \#\{ b : T_l^{(b)} \ge T_l \}}{1 + B},

    which is exact if labels could be exchanged, within blocks where these are given. No p-value
    is below 1 / (1 + B), so that with d features q-values below 0.1 may need B of some 10 d / k
    where k of them differ.

    Parameters
    ----------
    X : array, sparse array or DataFrame of shape (N, d)
    y : array of shape (N,)
    selector : FROTSelector, optional
        Whose parameters to use: groups, scaling, eta... A new one by default.
    statistic : str
        What to test: "shift", "shape" or "wasserstein", their sum, which are of one feature each
        and need no plan; or a score that comes from the plan: "combined", "alpha", "phi" or
        "misalignment". See the notes before using one of the latter.
    n_permutations : int
        B.
    block : array of shape (N,), optional
        Batch, donor...: labels are permuted within each block only.
    sample_weight : array of shape (N,), optional
        Weights stay with their samples; those of weight zero are left out.
    n_jobs : int, optional
        Workers, as joblib counts them. The answer does not depend on it.
    progress : bool
        Show a bar.
    checkpoint : path, optional
        A file for what is done; a run that was stopped goes on from it.
    random_state : int, optional
        Permutation b is seeded by this and b. None draws a seed, and allows no checkpoint.

    Returns
    -------
    PermutationTest

    Notes
    -----
    A plan serves all features at once. Where some differ, it follows them and aligns the others
    less well than under permuted labels, so that the cost of a feature which does not differ at
    all is larger than its null. P-values of statistics that come from the plan are therefore
    right for the hypothesis that nothing differs, and too small for single features besides
    others that do; ``by_feature`` of the result says which kind it is. The other statistics are
    right feature by feature, and their max-T holds whichever features differ.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 10)), np.repeat(["a", "b"], 20)
    >>> X[y == "b", 3] += 2.0
    >>> test = permutation_test(X, y, n_permutations=99)
    >>> int(test.p.argmin()), float(test.p.min()), test.null.shape
    (3, 0.01, (99, 10))
    """
    check_choice(statistic, "statistic", STATISTICS)
    count = check_count(n_permutations, "n_permutations")
    seed = check_run(n_jobs, progress, checkpoint, random_state)
    prepared = prepare(unfitted(selector), X, y, sample_weight)
    prepared.contrasts()
    blocks = check_blocks(block, prepared.codes)
    prepared, blocks = _weighted_only(prepared, blocks)
    task = partial(_permuted, prepared, blocks, statistic, seed)
    observed = _statistics(prepared, prepared.codes, statistic)
    found = run_tasks(
        task,
        count,
        n_jobs=n_jobs,
        progress=progress,
        what="permutations",
        checkpoint=checkpoint,
        fingerprint=lambda: fingerprint(
            **describe(prepared), blocks=blocks, statistic=statistic, seed=seed, work="permutation"
        ),
    )
    null = np.stack(found)
    p = permutation_p(observed, null)
    return PermutationTest(
        names=prepared.groups.names,
        statistic=statistic,
        observed=observed.astype(float),
        p=p,
        q=benjamini_hochberg(p),
        p_max=max_t(observed, null),
        null=null,
        by_feature=statistic in WITHOUT_PLAN,
    )


def check_blocks(block: Any, codes: np.ndarray) -> np.ndarray:
    """Return each sample's block as a number; one block for all if none are given.

    Examples
    --------
    >>> check_blocks(["x", "x", "y", "y"], np.array([0, 1, 0, 1]))
    array([0, 0, 1, 1])
    """
    if block is None:
        return np.zeros(len(codes), dtype=int)
    labels = np.asarray(block)
    if labels.shape != codes.shape:
        raise InputError(
            f"block: has shape {labels.shape}; give one block a row, shape {codes.shape}"
        )
    _, numbers = np.unique(labels, return_inverse=True)
    if not any(np.ptp(codes[numbers == number]) for number in range(numbers.max() + 1)):
        raise InputError(
            "block: every block holds a single class, so that no label can move; leave block out, "
            "or give one that holds both classes"
        )
    return numbers


def _weighted_only(prepared: Prepared, blocks: np.ndarray) -> tuple[Prepared, np.ndarray]:
    """Leave out samples of weight zero, which would carry labels away."""
    if prepared.weight is None or prepared.weight.all():
        return prepared, blocks
    kept = np.flatnonzero(prepared.weight)
    smaller = replace(
        prepared,
        table=prepared.table[kept],
        codes=prepared.codes[kept],
        weight=prepared.weight[kept],
    )
    return smaller, blocks[kept]


def _permuted(
    prepared: Prepared, blocks: np.ndarray, statistic: str, seed: int, index: int
) -> np.ndarray:
    rng = generator_of(seed, index)
    codes = prepared.codes.copy()
    for number in range(blocks.max() + 1):
        members = np.flatnonzero(blocks == number)
        codes[members] = codes[rng.permutation(members)]
    return _statistics(prepared, codes, statistic)


def _statistics(prepared: Prepared, codes: np.ndarray, statistic: str) -> np.ndarray:
    """Return the statistic under the given labels, the mean over comparisons, as float32.

    In single precision ties stay ties, whatever the last digits are, and the null is half as
    large.
    """
    with warnings.catch_warnings():
        # A statistic is one whether or not its interval is as narrow as was asked for.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = [
            statistic_of(
                prepared.table,
                contrast,
                prepared.groups,
                prepared.settings,
                prepared.weight,
                statistic,
            )
            for contrast in prepared.contrasts(codes)
        ]
    return np.mean(found, axis=0).astype(np.float32)


def describe(prepared: Prepared) -> dict[str, Any]:
    """Return all that an answer depends on, in parts that a fingerprint can be taken of."""
    table, groups = prepared.table, prepared.groups
    if sparse.issparse(table):
        table = (table.data, table.indices, table.indptr, table.shape)
    return {
        "table": table,
        "codes": prepared.codes,
        "weight": prepared.weight,
        "groups": (groups.flat, groups.offsets),
        "multiclass": prepared.multiclass,
        "score": prepared.score,
        "picks": prepared.picks,
        "settings": prepared.settings,
    }
