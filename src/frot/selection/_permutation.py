r"""Permutation tests: p and q of costs that are larger than under labels permuted at random.

Three answers to "how many of these are wrong", from the same B permutations of L features:

- Benjamini and Hochberg's, on each feature's own p-value, which is never below 1 / (1 + B): with
  L = 10,000 and B = 999 ten features at the least p-value have q = 1.
- Westfall and Young's max-T: p-values that hold for all features together.
- A pooled null, as in SAM (Tusher, Tibshirani, Chu 2001): what lies beyond a threshold under
  permuted labels, in all features, is what lies there by chance. B L values instead of B.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse, stats

from frot._base.errors import ConvergenceWarning, InputError, warn_caller
from frot._base.fingerprint import fingerprint
from frot._base.tables import make_table
from frot._base.validate import check_choice, check_count
from frot.selection._comparison import WITHOUT_PLAN, statistic_of
from frot.selection._costs import one_each
from frot.selection._inputs import SCORES, Prepared, prepare
from frot.selection._label_statistics import OF_SUMS, FeatureStatistic, permuted_labels
from frot.selection._selector import FROTSelector, unfitted
from frot.selection._tasks import CHUNK, check_run, run_chunks

STATISTICS = tuple(dict.fromkeys(("t", *SCORES, "wasserstein")))
# Statistics that are on one scale for all features, so that their nulls may be pooled.
STUDENTISED = ("t",)
# The false discovery rate that a test should be able to reach.
LEVEL = 0.05
# A null that is larger is refused.
NULL_BYTES = 4_000_000_000
SHOWN = 5


@dataclass(frozen=True, eq=False, repr=False)
class PermutationTest:
    """The result of a permutation test. Its printed form has ten lines at most.

    Attributes
    ----------
    names : tuple of str, length L
        The features or groups.
    statistic : str
    observed : array of shape (L,)
        The statistic under the labels as they are.
    p : array of shape (L,)
        Permutation p-values of single features.
    q : array of shape (L,)
        The false discovery rate at which a feature is accepted: from the null of all features
        together where `q_method` is "pooled", and `q_bh` where it is "bh".
    q_bh : array of shape (L,)
        Benjamini-Hochberg on p.
    p_max : array of shape (L,)
        Westfall-Young max-T, step-down: p-values that hold for all features together.
    null : array of float32, shape (B, L)
        The statistic under each permutation.
    pi0 : float
        The share of features that do not differ, estimated from above; 1 unless pooled.
    q_method : str
        "pooled" for single features and "t", whose null is much the same for all of them; "bh"
        otherwise.
    by_feature : bool
        Whether the statistic of a feature depends on that feature alone, so that its p-value
        holds whatever the others do. If not, small p-values say that something differs.
    """

    names: tuple[str, ...]
    statistic: str
    observed: np.ndarray
    p: np.ndarray
    q: np.ndarray
    q_bh: np.ndarray
    p_max: np.ndarray
    null: np.ndarray
    pi0: float
    q_method: str
    by_feature: bool

    @classmethod
    def of(
        cls,
        names: tuple[str, ...],
        statistic: str,
        observed: np.ndarray,
        null: np.ndarray,
        *,
        by_feature: bool = True,
        pooled: bool = False,
    ) -> PermutationTest:
        """Test numbers of shape (L,) against those under permuted labels, (B, L).

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> observed, null = np.abs(rng.normal(size=6)), np.abs(rng.normal(size=(99, 6)))
        >>> observed[2] = 5.0
        >>> print(PermutationTest.of(tuple("abcdef"), "t", observed, null, pooled=True))
        Permutation test of 6 features: 99 permutations of t
        1 with q <= 0.05, 1 with q <= 0.1; 1 with max-T p <= 0.05
        q: pooled null, pi0 = 1.00
        feature       t       p       q    q_bh   p_max
        c             5    0.01    0.01    0.06    0.01
        e         0.536    0.62    0.93    0.95       1
        f         0.362    0.68    0.93    0.95       1
        b         0.132     0.9    0.93    0.95       1
        a         0.126    0.92    0.93    0.95       1
        """
        p = permutation_p(observed, null)
        q_bh = benjamini_hochberg(p)
        q, pi0 = pooled_q(observed, null) if pooled else (q_bh, 1.0)
        return cls(
            names=names,
            statistic=statistic,
            observed=observed.astype(float),
            p=p,
            q=q,
            q_bh=q_bh,
            p_max=max_t(observed, null),
            null=null,
            pi0=pi0,
            q_method="pooled" if pooled else "bh",
            by_feature=by_feature,
        )

    def quantiles(self, levels: Any = (0.5, 0.95, 0.99)) -> np.ndarray:
        """Return quantiles of each feature's null, shape (len(levels), L)."""
        return np.quantile(self.null, levels, axis=0)

    @property
    def order(self) -> np.ndarray:
        """Positions, smallest p-value first."""
        return np.lexsort((-self.observed, self.p, self.q))

    @property
    def table(self) -> Any:
        """Feature, observed statistic, p, q, q_bh and p_max, smallest p-value first."""
        order = self.order
        columns = {"feature": np.array(self.names, dtype=object), self.statistic: self.observed}
        columns |= {name: getattr(self, name) for name in ("p", "q", "q_bh", "p_max")}
        return make_table({name: values[order] for name, values in columns.items()})

    @property
    def outstanding(self) -> np.ndarray:
        """Which ones no permutation reaches, shape (L,): their p could be smaller with more."""
        return self.p <= 1.5 / (1.0 + len(self.null))

    @property
    def needed(self) -> int:
        """How many permutations could give those that stand out a q of 0.05.

        As many as were run, where none stands out or where one has such a q.
        """
        count, number = len(self.null), int(self.outstanding.sum())
        if not number or (self.q <= LEVEL).any():
            return count
        share = 1.0 if self.q_method == "pooled" else len(self.p) / number
        return max(count, math.ceil(round(share / LEVEL, 6)) - 1)

    def __repr__(self) -> str:
        def at(values: np.ndarray, level: float) -> str:
            return f"{int((values <= level).sum()):,}"

        how = f"pooled null, pi0 = {self.pi0:.2f}" if self.q_method == "pooled" else (
            "Benjamini-Hochberg"
        )  # fmt: skip
        width = max([7, *(len(self.names[one][:24]) for one in self.order[:SHOWN])])
        heads = (self.statistic, "p", "q", "q_bh", "p_max")
        columns = (self.observed, self.p, self.q, self.q_bh, self.p_max)
        lines = [
            f"Permutation test of {len(self.names):,} features: {len(self.null):,} permutations "
            f"of {self.statistic}",
            f"{at(self.q, 0.05)} with q <= 0.05, {at(self.q, 0.1)} with q <= 0.1; "
            f"{at(self.p_max, 0.05)} with max-T p <= 0.05",
            f"q: {how}",
            "feature".ljust(width) + "".join(f"{head:>8}" for head in heads),
        ]
        lines += [
            self.names[one][:24].ljust(width)
            + "".join(f"{values[one]:>8.3g}" for values in columns)
            for one in self.order[:SHOWN]
        ]
        return "\n".join(lines)


def permutation_test(
    X: Any,
    y: Any,
    *,
    selector: FROTSelector | None = None,
    statistic: str = "t",
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
    is below 1 / (1 + B), so that Benjamini and Hochberg's q-values of L features cannot be below
    L / (k (1 + B)) where k of them stand out against all permutations. The q-values of the default
    statistic come from the permutations of all features together and need not pay for that:

    .. math::
        q_l = \min_{t \le T_l} \frac{\pi_0 V(t) + R(t)}{(1 + B)\, R(t)},
        \qquad V(t) = \#\{ b, k : T_k^{(b)} \ge t \}, \quad R(t) = \#\{ k : T_k \ge t \}.

    A `frot.ConvergenceWarning` says so where more permutations would be needed for a q of 0.05, and
    how many.

    Parameters
    ----------
    X : array, sparse array or DataFrame of shape (N, d)
    y : array of shape (N,)
    selector : FROTSelector, optional
        Whose parameters to use: groups, scaling, eta... A new one by default.
    statistic : str
        What to test: "t", Welch's t without its sign, as the normal deviate that is as rare for
        its degrees of freedom; "shift", "shape" or "wasserstein", their sum, which are of one
        feature each too and need no plan; or a score that comes from the plan: "combined",
        "alpha", "phi" or "misalignment". See the notes before using one of the latter. With
        three or more classes, and for groups, "t" is the root mean square of the comparisons'
        and the members'; all others are means.
    n_permutations : int
        B. The null takes 4 B L bytes; more than 4 GB are refused.
    block : array of shape (N,), optional
        Batch, donor...: labels are permuted within each block only. For "t" features are also
        centred within each block, so that what differs between blocks is not noise.
    sample_weight : array of shape (N,), optional
        Weights stay with their samples; those of weight zero are left out.
    n_jobs : int, optional
        Workers, as joblib counts them. The answer does not depend on it.
    progress : bool
        Show a bar.
    checkpoint : path, optional
        A file for finished permutations; a run that was stopped resumes from it.
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

    "t" and "shift" are functions of class sums, and permutations of them are matrix products, of
    sparse tables too: 1,000 of 10,000 features of 50 samples take less than a second.

    Permutations suppose that classes are distributed alike where they do not differ in the mean.
    Where they vary differently "t" is still near right, if features are not skewed too: with 50
    samples against 10 of three times the standard deviation 4.6 % of normal features that do not
    differ have p <= 0.05 (of the shift 14 %), and 10 % of exponential ones.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 10)), np.repeat(["a", "b"], 20)
    >>> X[y == "b", 3] += 2.0
    >>> test = permutation_test(X, y, n_permutations=99)
    >>> print(test)
    Permutation test of 10 features: 99 permutations of t
    1 with q <= 0.05, 1 with q <= 0.1; 1 with max-T p <= 0.05
    q: pooled null, pi0 = 1.00
    feature       t       p       q    q_bh   p_max
    x3         4.98    0.01    0.01     0.1    0.01
    x7         2.37    0.04   0.105     0.2    0.14
    x1        0.774    0.39    0.92    0.94    0.99
    x9        0.698    0.43    0.92    0.94    0.99
    x4        0.729    0.57    0.92    0.94    0.99
    """
    check_choice(statistic, "statistic", STATISTICS)
    count = check_count(n_permutations, "n_permutations")
    seed = check_run(n_jobs, progress, checkpoint, random_state)
    prepared = prepare(unfitted(selector), X, y, sample_weight)
    prepared.contrasts()
    _check_size(count, len(prepared.groups))
    blocks = check_blocks(block, prepared.codes)
    prepared, blocks = prepared.weighted_only(blocks)
    chunk, under = CHUNK, partial(_one_by_one, prepared, statistic)
    if statistic in OF_SUMS:
        sums = FeatureStatistic.of(prepared, blocks, statistic)
        chunk, under = sums.chunk_size, sums.under
    found = run_chunks(
        partial(_permuted, under, prepared.codes, blocks, seed),
        count,
        chunk=chunk,
        n_jobs=n_jobs,
        progress=progress,
        what="permutations",
        checkpoint=checkpoint,
        fingerprint=lambda: fingerprint(
            **describe(prepared), blocks=blocks, statistic=statistic, seed=seed, work="permutation"
        ),
    )
    test = PermutationTest.of(
        prepared.groups.names,
        statistic,
        under(prepared.codes[None])[0],
        np.stack(found),
        by_feature=statistic in ("t", *WITHOUT_PLAN),
        pooled=statistic in STUDENTISED and one_each(prepared.groups),
    )
    if test.needed > count:
        warn_caller(
            f"n_permutations: {int(test.outstanding.sum()):,} of {len(test.p):,} stand out against "
            f"all {count:,}, but no q can be below {test.q.min():.2g}; {test.needed:,} would allow "
            f"{LEVEL:g}"
        )
    return test


def _check_size(count: int, groups: int) -> None:
    """Refuse a null that is too large to keep."""
    size, most = 4 * count * groups, NULL_BYTES // (4 * groups)
    if size > NULL_BYTES:
        raise InputError(
            f"n_permutations: {count:,} of {groups:,} features make a null of {size / 1e9:.3g} GB; "
            f"give {most:,} at most"
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
            f"block: has shape {labels.shape}; give one block per row, shape {codes.shape}"
        )
    _, numbers = np.unique(labels, return_inverse=True)
    if not any(np.ptp(codes[numbers == number]) for number in range(numbers.max() + 1)):
        raise InputError(
            "block: every block holds a single class, so that no label can move; leave block out, "
            "or give one that holds both classes"
        )
    return numbers


def _permuted(
    under: Callable[[np.ndarray], np.ndarray],
    codes: np.ndarray,
    blocks: np.ndarray,
    seed: int,
    indices: list[int],
) -> list[np.ndarray]:
    """Return statistics under some permutations, each given by the seed and its own number."""
    return list(under(permuted_labels(codes, blocks, seed, indices)))


def _one_by_one(prepared: Prepared, statistic: str, labels: np.ndarray) -> np.ndarray:
    """Return a statistic under labels of shape (B, N), the mean over comparisons, as float32."""
    found = []
    with warnings.catch_warnings():
        # A statistic is one whether or not its interval is as narrow as was asked for.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for codes in labels:
            contrasts = prepared.contrasts(codes)
            several = [statistic_of(prepared, contrast, statistic) for contrast in contrasts]
            found.append(np.mean(several, axis=0))
    return np.array(found, dtype=np.float32)


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
        "multiclass": (prepared.multiclass, prepared.reference),
        "score": prepared.score,
        "picks": prepared.picks,
        "settings": prepared.settings,
    }


# Temporaries of a part of the null.
PART_BYTES = 64_000_000
# Of the shares that permutations find below the null's median: how far an unlucky one is off.
UNLUCKY = 0.05


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
    return np.asarray(stats.false_discovery_control(p), dtype=float)


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
    rising = np.argsort(-observed, kind="stable")[::-1]
    count = np.zeros(len(observed))
    for part in _parts(null):
        largest = part[:, rising]
        np.maximum.accumulate(largest, axis=1, out=largest)
        count += (largest >= observed[rising]).sum(axis=0)
    p = np.empty(len(observed))
    # A feature cannot be surer than one that stands out more.
    falling = np.maximum.accumulate((1.0 + count[::-1]) / (1.0 + len(null)))
    p[rising] = falling[::-1]
    return p


def pooled_q(observed: np.ndarray, null: np.ndarray) -> tuple[np.ndarray, float]:
    r"""Return q-values from the null of all features together, shape (L,), and :math:`\pi_0`.

    With V(t) values of the null at t or beyond, in all features and permutations, and R(t)
    observed ones,

    .. math::
        q_l = \min_{t \le T_l} \; \frac{\pi_0 V(t) + R(t)}{(1 + B)\, R(t)}.

    The data as it is counts as one more permutation, as in `permutation_p`, so that no q is below
    1 / (1 + B). V(t) / B is what features that do not differ are expected to put beyond t, however
    their statistics are distributed; q is sharp where all are distributed alike.

    :math:`\pi_0`, the share of features that do not differ, is what the data has below the median
    of the null over what permutations have there (Storey's estimate at 1/2). Where features are
    correlated that count varies much by chance, so that it is taken larger by as much as one
    permutation in twenty falls short of the mean. Features that never vary count nowhere.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> observed, null = np.abs(rng.normal(size=200)), np.abs(rng.normal(size=(99, 200)))
    >>> observed[:20] += 4.0
    >>> q, pi0 = pooled_q(observed, null)
    >>> int((q[:20] <= 0.05).sum()), int((q[20:] <= 0.05).sum()), 0.8 < pi0 <= 1.0
    (20, 0, True)
    """
    varies = (observed > 0.0) | null.any(axis=0)
    q = np.ones(len(observed))
    if not varies.any():
        return q, 1.0
    if not varies.all():
        q[varies], pi0 = pooled_q(observed[varies], null[:, varies])
        return q, pi0
    order = np.argsort(observed)
    rising = observed[order]
    beyond = np.zeros(len(rising))
    below: list[np.ndarray] = []
    middle = None
    for part in _parts(null):
        pooled = np.sort(part, axis=None)
        beyond += pooled.size - np.searchsorted(pooled, rising)
        # Any value will do that is near the median: the null says what share lies below it.
        middle = pooled[pooled.size // 2] if middle is None else middle
        below.append((part <= middle).sum(axis=1))
    shares = np.concatenate(below)
    shares = shares / shares.mean()
    found = (rising <= middle).sum() / np.concatenate(below).mean()
    pi0 = float(min(1.0, found + max(0.0, 1.0 - np.quantile(shares, UNLUCKY))))
    q[order] = pooled_rates(rising, beyond, len(null), pi0)
    return q, pi0


def pooled_rates(
    rising: np.ndarray, beyond: np.ndarray, count: int, pi0: float = 1.0
) -> np.ndarray:
    """Return q of observed values that rise, with the numbers of the null's at or beyond each.

    Examples
    --------
    >>> pooled_rates(np.array([1.0, 2.0]), np.array([9, 0]), 9)
    array([0.55, 0.1 ])
    """
    accepted = len(rising) - np.searchsorted(rising, rising)
    rate = (pi0 * beyond + accepted) / ((1.0 + count) * accepted)
    return np.minimum.accumulate(np.minimum(rate, 1.0))


def _parts(null: np.ndarray) -> Iterator[np.ndarray]:
    """Take a few permutations at a time."""
    rows = max(1, PART_BYTES // max(1, null[:1].nbytes))
    for start in range(0, len(null), rows):
        yield null[start : start + rows]
