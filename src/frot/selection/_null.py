r"""p- and q-values from statistics under permuted labels, taken in a few permutations at a time.

Three answers to "how many of these are wrong", from the same B permutations of L features:

- That of Benjamini and Hochberg 1995, on each feature's own p-value, which is never below
  1 / (1 + B): with L = 10,000 and B = 999 ten features at the least p-value have q = 1.
- Max-T (Westfall and Young 1993): p-values that hold for all features together.
- A pooled null, as in SAM (Tusher et al. 2001): what lies beyond a threshold under
  permuted labels, in all features, is what lies there by chance. B L values instead of B.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from frot._base.validate import check_flag
from frot.selection._label_statistics import TOGETHER
from frot.solvers.progress import counting_bar


@dataclass(frozen=True, eq=False)
class NullTest:
    """What permutations say of L statistics; arrays of shape (L,).

    Attributes
    ----------
    p : array
        ``(1 + #{b : T_b >= T}) / (1 + B)``: the data as it is counts as one more permutation
        (Phipson and Smyth 2010).
    q : array
        False discovery rate from the null of all features together.
    q_bh : array
        Benjamini-Hochberg on p.
    p_max : array
        Westfall-Young max-T, step-down: p-values that hold for all features together.
    pi0 : float
        The share of features that do not differ, estimated from above.
    """

    p: np.ndarray
    q: np.ndarray
    q_bh: np.ndarray
    p_max: np.ndarray
    pi0: float


def against_null(observed: np.ndarray, null: Iterable[np.ndarray]) -> NullTest:
    r"""Hold statistics (L,) against those under permuted labels, which come as arrays (B', L).

    With V(t) values of the null at t or beyond, in all features and permutations, and R(t) observed
    ones,

    .. math::
        q_l = \min_{t \le T_l} \; \frac{\pi_0 V(t) + R(t)}{(1 + B)\, R(t)},

    so that no q is below 1 / (1 + B). V(t) / B is what features that do not differ are expected to
    put beyond t; q is sharp where all are distributed alike. :math:`\pi_0` is what the data has
    below the median of the null over what permutations have there (Storey 2002 at 1/2). Where
    features are correlated that count varies much by chance, so that it is taken larger by as much
    as one permutation in twenty falls short of the mean. Features that never vary count nowhere.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> observed, null = np.abs(rng.normal(size=200)), np.abs(rng.normal(size=(99, 200)))
    >>> observed[:20] += 4.0
    >>> found = against_null(observed, [null[:50], null[50:]])
    >>> int((found.q[:20] <= 0.05).sum()), int((found.q[20:] <= 0.05).sum()), 0.8 < found.pi0 <= 1.0
    (20, 0, True)
    """
    # In single precision ties stay ties, whatever the last digits are.
    observed = observed.astype(np.float32)
    varying = np.flatnonzero(observed > 0.0)
    order = varying[np.argsort(observed[varying], kind="stable")]
    rising = observed[order]
    beyond = np.zeros(len(observed))
    pooled, joint = np.zeros((2, len(rising)))
    below: list[np.ndarray] = []
    middle, count = np.float32(0.0), 0
    for part in null:
        part = part.astype(np.float32, copy=False)
        count += len(part)
        beyond += (part >= observed).sum(axis=0)
        part = part[:, order]
        flat = np.sort(part, axis=None)
        pooled += flat.size - np.searchsorted(flat, rising)
        if not below and flat.size:
            # Any value will do that is near the median: the null says what share lies below it.
            middle = flat[flat.size // 2]
        below.append((part <= middle).sum(axis=1))
        # The largest statistic of those features whose own observed one is no larger.
        np.maximum.accumulate(part, axis=1, out=part)
        joint += (part >= rising).sum(axis=0)
    p = (1.0 + beyond) / (1.0 + count)
    q, p_max = np.ones((2, len(observed)))
    pi0 = 1.0
    if len(rising):
        # A feature cannot be surer than one that stands out more.
        p_max[order] = np.maximum.accumulate((1.0 + joint[::-1]) / (1.0 + count))[::-1]
        shares = np.concatenate(below) / np.concatenate(below).mean()
        kept = float((rising <= middle).sum() / np.concatenate(below).mean())
        pi0 = min(1.0, kept + max(0.0, 1.0 - float(np.quantile(shares, 0.05))))
        q[order] = pooled_rates(rising, pooled, count, pi0)
    return NullTest(p, q, benjamini_hochberg(p), p_max, pi0)


def in_chunks(count: int, progress: bool = False) -> Iterator[range]:
    """Yield the numbers of the permutations, some at a time, and show a bar where asked."""
    bar = counting_bar("permutations", count, count, enabled=check_flag(progress, "progress"))
    with bar as show:
        for start in range(0, count, TOGETHER):
            chunk = range(start, min(start + TOGETHER, count))
            yield chunk
            show(len(chunk), len(chunk))


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
