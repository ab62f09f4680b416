"""P-values of many features at once: by permutation, and corrected for their number."""

from __future__ import annotations

import numpy as np

__all__ = ["benjamini_hochberg", "max_t", "permutation_p"]


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
