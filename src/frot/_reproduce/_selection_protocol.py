"""The paper's protocol: a split, standardised on its training part, the top K into an SVM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from frot._errors import require
from frot._reproduce._selection_methods import METHODS, Method

__all__ = ["KS", "Split", "accuracies", "split"]

KS = (10, 20, 30, 40, 50)
TEST_SHARE = 0.25

Split = tuple[NDArray, NDArray, NDArray, NDArray]


def split(X: NDArray, y: NDArray, index: int, seed: int) -> Split:
    """Return (training X, training y, test X, test y); 75 % to train, classes in proportion.

    Every index has a seed of its own, so that the first ten splits of fifty are those of ten. Both
    parts are standardised with means and deviations of the training part.

    Examples
    --------
    >>> X, y = np.arange(40.0).reshape(20, 2), np.repeat(["a", "b"], 10)
    >>> train, labels, test, _ = split(X, y, 0, seed=0)
    >>> train.shape, test.shape, bool(abs(train.mean()) < 1e-12)
    ((15, 2), (5, 2), True)
    """
    chosen = require("sklearn.model_selection", "selection").train_test_split(
        np.arange(len(y)),
        test_size=TEST_SHARE,
        stratify=y,
        random_state=int(np.random.SeedSequence([seed, index]).generate_state(1)[0]),
    )
    train, test = (np.sort(part) for part in chosen)
    scaler = require("sklearn.preprocessing", "selection").StandardScaler().fit(X[train])
    return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def accuracies(
    X: NDArray,
    y: NDArray,
    index: int,
    seed: int,
    methods: Iterable[Method] | None = None,
    ks: Sequence[int] = KS,
) -> NDArray[np.float64]:
    """Return the accuracy on the test part of one split.

    Parameters
    ----------
    X : numpy.ndarray, shape (n, d)
    y : numpy.ndarray, shape (n,)
    index, seed : int
        Which split.
    methods : iterable of Method, optional
        All of `METHODS` by default.
    ks : sequence of int
        Numbers of features.

    Returns
    -------
    numpy.ndarray, shape (len(methods), len(ks))
    """
    svm = require("sklearn.svm", "selection").SVC
    # One thread, whoever runs other splits beside this one.
    with require("threadpoolctl", "selection").threadpool_limits(1):
        train, labels, test, truth = split(X, y, index, seed)
        rows = []
        for method in METHODS.values() if methods is None else methods:
            chosen = method.choose(train, labels, ks)
            rows.append(
                [
                    svm().fit(train[:, columns], labels).score(test[:, columns], truth)
                    for columns in chosen
                ]
            )
    return np.array(rows)
