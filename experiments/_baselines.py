"""Rankings of features, FROT's and others', and how accurate a classifier is on the best of them.

A ranking takes X of shape (n, d), standardised, and labels y of two classes; it returns scores of
shape (d,), larger for features that tell the classes apart better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import ot
from sklearn.feature_selection import r_regression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import frot
from _paper import FW_EMD, ITERATIONS
from frot._base.errors import collect_warnings
from frot.selection import FROTSelector

Array = np.ndarray
Ranking = Callable[[Array, Array], Array]

# How many features are selected; frot chooses eta by the largest number.
KS = (10, 20, 30, 40, 50)
TEST_SHARE = 0.25


def sides(X: Array, y: Array) -> tuple[Array, Array]:
    """Return the samples of either class."""
    first = y == np.unique(y)[0]
    return X[first], X[~first]


def frot_paper(X: Array, y: Array) -> Array:
    """The paper's settings; the costs phi rank as alpha does, and do not underflow."""
    with collect_warnings():
        return frot.solve(*sides(X, y), "each", eta=1.0, solver=FW_EMD).phi


def frot_stack(X: Array, y: Array) -> Array:
    r"""The paper's algorithm 2 line by line, on the stack of d matrices C_l = (x_il - y_jl)^2."""
    x, z = sides(X, y)
    a, b = np.full(len(x), 1.0 / len(x)), np.full(len(z), 1.0 / len(z))
    stack = np.empty((X.shape[1], len(x), len(z)))
    for k, costs in enumerate(stack):
        costs[:] = ot.dist(x[:, [k]], z[:, [k]], metric="sqeuclidean")
    plan = np.outer(a, b)
    for step in range(ITERATIONS):
        phi = np.sum(plan * stack, axis=(1, 2))
        alpha = np.exp(phi - phi.max())
        mixed = np.sum((alpha / alpha.sum())[:, None, None] * stack, axis=0)
        gamma = 2.0 / (2.0 + step)
        plan = (1.0 - gamma) * plan + gamma * np.asarray(ot.emd(a, b, mixed))
    return np.sum(plan * stack, axis=(1, 2))


def frot_alpha(X: Array, y: Array) -> Array:
    """The weights alpha of frot's selector, which balances the classes and chooses eta."""
    with collect_warnings():
        return FROTSelector(min(KS[-1], X.shape[1]), score="alpha").fit(X, y).scores_


def moderated(X: Array, y: Array) -> Array:
    """What frot's selector ranks by unless told otherwise: a moderated t, and no transport."""
    return FROTSelector(plan=False).fit(X, y).scores_


def wasserstein(X: Array, y: Array) -> Array:
    r"""W_1 of each feature by sorting, all of them at once.

    Both quantile functions are steps; with n m as the unit of mass their ends are whole numbers.
    """
    x, z = (np.sort(np.ascontiguousarray(side.T), axis=1) for side in sides(X, y))
    n, m = x.shape[1], z.shape[1]
    ends = np.union1d(m * np.arange(1, n + 1), n * np.arange(1, m + 1))
    mass = np.diff(ends, prepend=0) / (n * m)
    return np.abs(x[:, (ends - 1) // m] - z[:, (ends - 1) // n]) @ mass


def wasserstein_call(X: Array, y: Array) -> Array:
    """W_1 by a call of POT's sort for each feature."""
    x, z = sides(X, y)
    return np.array([ot.emd2_1d(*pair, metric="euclidean") for pair in zip(x.T, z.T, strict=True)])


def linear(X: Array, y: Array) -> Array:
    """The correlation with the label, without its sign; ranks as ``f_classif`` does."""
    return np.abs(r_regression(X, y == np.unique(y)[0]))


def mmd(X: Array, y: Array) -> Array:
    r"""Squared maximum mean discrepancy of each feature, with a Gaussian kernel of bandwidth 1.

    The biased estimate of Gretton et al. 2012:

    .. math:: \sum_{ij} v_i v_j e^{-(x_i - x_j)^2 / 2}, \quad v_i = 1 / n \text{ or } -1 / m
    """
    first = y == np.unique(y)[0]
    signed = np.where(first, 1.0 / first.sum(), -1.0 / (~first).sum())
    rows, columns = np.triu_indices(len(y), 1)
    products = 2.0 * signed[rows] * signed[columns]
    scores = np.full(X.shape[1], signed @ signed)
    # A block's differences stay in the cache.
    for block in np.array_split(np.arange(X.shape[1]), len(X.T) // 32 + 1):
        values = X[:, block]
        scores[block] += products @ np.exp(-0.5 * np.square(values[rows] - values[columns]))
    return scores


def mrmr(X: Array, y: Array) -> Array:
    """Minimum redundancy, maximum relevance, as scores of the order in which it takes features.

    Each step takes the feature of the largest quotient of F and the mean |r| with those taken.
    """
    share = np.square(linear(X, y))
    relevance = share / np.maximum(1.0 - share, 1e-12)
    scores = relevance / (1.0 + relevance.max())
    redundancy, left = np.zeros(X.shape[1]), np.ones(X.shape[1], dtype=bool)
    for step in range(min(KS[-1], X.shape[1])):
        quotient = relevance / np.maximum(redundancy / max(step, 1), 1e-3)
        best = int(np.where(left, quotient, -1.0).argmax())
        left[best] = False
        scores[best] = 1.0 + KS[-1] - step
        redundancy += np.abs(X[:, best] @ X) / len(X)
    return scores


RANKINGS: dict[str, tuple[str, Ranking]] = {
    "frot_paper": ("FROT, as in the paper (η = 1, T = 10)", frot_paper),
    "frot_alpha": ("FROT, α of FROTSelector", frot_alpha),
    "moderated": ("FROTSelector's default, a moderated t", moderated),
    "wasserstein": ("Wasserstein, by sorting", wasserstein),
    "linear": ("linear correlation", linear),
    "mmd": ("MMD", mmd),
    "mrmr": ("mRMR", mrmr),
}
# What is timed besides, as code without frot would do it.
TIMED: dict[str, tuple[str, Ranking]] = {
    **RANKINGS,
    "stack": ("FROT as written, a stack of d cost matrices", frot_stack),
    "call": ("Wasserstein, a call of POT a feature", wasserstein_call),
}


def split(X: Array, y: Array, seed: int, index: int) -> tuple[Array, Array, Array, Array]:
    """Return training X and y, test X and y: 75 % to train, classes in proportion.

    Both are standardised with means and deviations of the training part. Every index has a seed of
    its own, so that the first ten splits of fifty are those of ten.
    """
    state = int(np.random.SeedSequence([seed, index]).generate_state(1)[0])
    rows = np.arange(len(y))
    parts = train_test_split(rows, test_size=TEST_SHARE, stratify=y, random_state=state)
    train, test = map(np.sort, parts)
    scaler = StandardScaler().fit(X[train])
    scaled = [np.asarray(scaler.transform(X[part])) for part in (train, test)]
    return scaled[0], y[train], scaled[1], y[test]


def accuracies(
    X: Array,
    y: Array,
    seed: int,
    index: int,
    *,
    rankings: Iterable[Ranking],
    ks: Sequence[int] = KS,
) -> Array:
    """Return the accuracy of an SVM on the test part of one split, shape (rankings, ks)."""
    train, labels, test, truth = split(X, y, seed, index)
    rows = []
    for ranking in rankings:
        order = np.argsort(-ranking(train, labels), kind="stable")
        best = [order[:k] for k in ks]
        rows.append([SVC().fit(train[:, k], labels).score(test[:, k], truth) for k in best])
    return np.array(rows)
