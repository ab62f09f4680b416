"""Scores of single features to hold FROT against, as plain functions for ``SelectKBest``.

Each takes ``(X, y)`` and returns an array of shape (d,), larger for features that tell the
classes apart better. Features are standardised over all samples first, as in the paper; one that
does not vary scores zero. With three or more classes, scores of pairs are means over one class
against the rest. scikit-learn's own ``f_classif`` belongs in the same list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_X_y

from frot._base.errors import InputError
from frot._base.validate import check_count, check_number
from frot.costs.protocol import blocks
from frot.selection._comparison import contrasts_of
from frot.selection._inputs import check_labels
from frot.selection._scaling import Sides, scale_sides, sorted_pieces

Score = Callable[[np.ndarray, np.ndarray], np.ndarray]


def wasserstein_score(X: Any, y: Any, *, p: float = 1.0) -> np.ndarray:
    r"""Wasserstein distance of each feature between the classes, by sorting.

    .. math::
        W_p^p = \int_0^1 | F^{-1}(t) - G^{-1}(t) |^p \, dt

    The two quantile functions are steps, so that the integral is a sum over n + m - 1 pieces that
    are the same for every feature: exact for classes of any sizes.

    Parameters
    ----------
    X : array or sparse array of shape (N, d)
    y : array of shape (N,)
    p : float
        The order, at least 1.

    Returns
    -------
    array of shape (d,)

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [0.0, 5.0], [2.0, 1.0], [2.0, 5.0]])
    >>> wasserstein_score(X, [0, 0, 1, 1])
    array([2., 0.])
    """
    p = check_number(p, "p", least=1.0)
    pieces: dict[tuple[int, int], tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        sizes = x.shape[1], y.shape[1]
        if sizes not in pieces:
            pieces[sizes] = sorted_pieces(*sizes)
        at_x, at_y, mass = pieces[sizes]
        gaps = np.abs(np.sort(x, axis=1)[:, at_x] - np.sort(y, axis=1)[:, at_y])
        return ((gaps if p == 1.0 else gaps**p) @ mass) ** (1.0 / p)

    return _by_pairs(X, y, distance)


def mmd_score(X: Any, y: Any, *, bandwidth: float = 1.0) -> np.ndarray:
    r"""Squared maximum mean discrepancy of each feature, with a Gaussian kernel.

    .. math::
        \sum_{ij} v_i v_j\, e^{-(x_i - x_j)^2 / 2 h^2}, \qquad
        v_i = 1/n \text{ in the first class}, \; -1/m \text{ in the second}

    Parameters
    ----------
    X : array or sparse array of shape (N, d)
    y : array of shape (N,)
    bandwidth : float
        The kernel's h, in standard deviations of the feature.

    Returns
    -------
    array of shape (d,)

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [0.0, 5.0], [2.0, 1.0], [2.0, 5.0]])
    >>> mmd_score(X, [0, 0, 1, 1]).round(3)
    array([1.729, 0.   ])
    """
    bandwidth = check_number(bandwidth, "bandwidth", strict=True)

    def discrepancy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        n, m = x.shape[1], y.shape[1]
        signed = np.repeat([1.0 / n, -1.0 / m], [n, m])
        one, two = np.triu_indices(n + m, 1)
        both = np.concatenate([x, y], axis=1) / (bandwidth * np.sqrt(2.0))
        found = np.full(len(both), float(signed @ signed))
        product = 2.0 * signed[one] * signed[two]
        for part in blocks(len(both), 8 * len(one)):
            gaps = both[part][:, one] - both[part][:, two]
            np.square(gaps, out=gaps)
            np.negative(gaps, out=gaps)
            found[part] += np.exp(gaps, out=gaps) @ product
        return np.maximum(found, 0.0)

    return _by_pairs(X, y, discrepancy)


def correlation_score(X: Any, y: Any) -> np.ndarray:
    r"""Correlation of each feature with the class, as :math:`|r|`.

    With more classes it is the correlation ratio, the root of the share of the variance that lies
    between the classes; for two classes that is :math:`|r|`. It ranks like ``f_classif``.

    Parameters
    ----------
    X : array or sparse array of shape (N, d)
    y : array of shape (N,)

    Returns
    -------
    array of shape (d,)

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [0.0, 5.0], [2.0, 1.0], [2.0, 5.0]])
    >>> correlation_score(X, [0, 0, 1, 1])
    array([1., 0.])
    """
    X, codes, classes = _checked(X, y)
    everyone, nobody = np.arange(len(codes)), np.arange(0)
    sides = Sides(X, (everyone, nobody), (np.full(len(codes), 1.0 / len(codes)), np.ones(0)), 1.0)
    members = np.equal(codes, np.arange(len(classes))[:, None]).astype(float)
    shares = members.mean(axis=1)
    means = (members / members.sum(axis=1)[:, None]).T
    found = np.zeros(X.shape[1])
    for part in blocks(X.shape[1], 16 * len(codes)):
        values, _ = sides.block(part)
        flat = np.ptp(values, axis=1) == 0.0
        values -= values.mean(axis=1)[:, None]
        total = np.square(values).mean(axis=1)
        total[flat | (total == 0.0)] = np.inf
        found[part] = np.sqrt(np.minimum(np.square(values @ means) @ shares / total, 1.0))
    return found


def mrmr_scores(X: Any, y: Any, *, n_ranked: int = 100) -> np.ndarray:
    r"""Minimum redundancy, maximum relevance: the greedy ranking, as scores.

    Each step takes the feature of the largest quotient of relevance, the F statistic, and
    redundancy, the mean :math:`|r|` with the features already taken. The first gets the score
    `n_ranked`, the next one less, and so on; the others rank below by relevance alone.

    Parameters
    ----------
    X : array of shape (N, d)
    y : array of shape (N,)
    n_ranked : int
        How many steps to take; as many as are to be selected, or more.

    Returns
    -------
    array of shape (d,)

    Examples
    --------
    >>> y = np.repeat([0, 1], 20)
    >>> noise = np.random.default_rng(0).normal(size=(3, 40))
    >>> first, other = y + noise[0], y + noise[1]
    >>> X = np.column_stack([first, first + 0.1 * noise[2], other])
    >>> np.argsort(-mrmr_scores(X, y)).tolist()  # of the twins, one comes last
    [0, 2, 1]
    """
    X, codes, classes = _checked(X, y, accept_sparse=False)
    X = np.asarray(X, dtype=float)
    count = check_count(n_ranked, "n_ranked")
    share = np.square(correlation_score(X, y))
    others = len(codes) - len(classes)
    # F is a rising function of the share of variance between classes.
    relevance = share / np.maximum(1.0 - share, 1e-12) * others / (len(classes) - 1)
    standard = X - X.mean(axis=0)
    size = np.sqrt(np.square(standard).sum(axis=0))
    varying = np.ptp(X, axis=0) > 0.0
    standard[:, varying] /= size[varying]
    standard[:, ~varying] = 0.0
    scores = relevance / (1.0 + relevance.max())
    redundancy = np.zeros(X.shape[1])
    open_ = varying.copy()
    for step in range(min(count, int(varying.sum()))):
        quotient = relevance / np.maximum(redundancy / max(step, 1), 1e-3)
        best = int(np.where(open_, quotient if step else relevance, -1.0).argmax())
        open_[best] = False
        scores[best] = count - step
        redundancy += np.abs(standard[:, best] @ standard)
    return scores


def _checked(X: Any, y: Any, accept_sparse: Any = "csc") -> tuple[Any, np.ndarray, np.ndarray]:
    check_labels(X, y)
    kinds: Any = (np.float64, np.float32)
    try:
        X, y = check_X_y(X, y, accept_sparse=accept_sparse, dtype=kinds)
        check_classification_targets(y)
    except ValueError as error:
        raise InputError(str(error).partition("\n")[0]) from None
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InputError("y: has 1 class; give labels of two or more classes")
    return X, codes, classes


def _by_pairs(X: Any, y: Any, score: Score) -> np.ndarray:
    """Score every feature, standardised over all samples, in each comparison; return the mean."""
    X, codes, classes = _checked(X, y)
    contrasts = contrasts_of(codes, classes, "ovr", np.ones(len(codes)))
    total = np.zeros(X.shape[1])
    for contrast in contrasts:
        scaled = scale_sides(Sides.of(X, *contrast.rows), "paper", wasserstein=False)
        for part in scaled.parts:
            total[part] += score(*scaled.block(part))
        total[scaled.units.constant] = 0.0
    return total / len(contrasts)
