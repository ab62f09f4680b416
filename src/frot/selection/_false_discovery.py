r"""From a statistic and its permutations to p- and q-values: each alone, all together, pooled.

Three answers to "how many of these are wrong", from the same B permutations of L features:

- Benjamini and Hochberg's, on each feature's own p-value, which is never below 1 / (1 + B): with
  L = 10,000 and B = 999 ten features at the least p-value have q = 1.
- Westfall and Young's max-T: p-values that hold for all features together.
- A pooled null, as in SAM (Tusher, Tibshirani, Chu 2001): what lies beyond a threshold under
  permuted labels, in all features, is what lies there by chance. B L values instead of B.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import stats

__all__ = ["benjamini_hochberg", "max_t", "permutation_p", "pooled_q", "pooled_rates"]

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
