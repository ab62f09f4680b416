"""The ways to choose features that the figure compares, each as a function to K index lists."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frot._errors import ConvergenceWarning
from frot._reproduce._runs import FW_EMD, run

__all__ = ["METHODS", "Method"]

Choose = Callable[[NDArray, NDArray, Sequence[int]], "list[NDArray]"]


@dataclass(frozen=True)
class Method:
    """A way to choose features.

    Parameters
    ----------
    label : str
        For pictures and tables.
    choose : callable
        From X (n, d), standardised, y (n,) and several K to the indices of K features each.
    """

    label: str
    choose: Choose


def ranked(score: Callable[[Any, Any], Any]) -> Choose:
    """Take the K best of one score; `score` may return scores, or scores and p-values.

    Examples
    --------
    >>> choose = ranked(lambda X, y: X.sum(axis=0))
    >>> [list(map(int, found)) for found in choose(np.diag([1.0, 3.0, 2.0]), np.ones(3), [1, 2])]
    [[1], [1, 2]]
    """

    def choose(X: NDArray, y: NDArray, ks: Sequence[int]) -> list[NDArray]:
        made = score(X, y)
        scores = np.asarray(made[0] if isinstance(made, tuple) else made)
        # A feature without a score, being constant, comes last.
        order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")
        return [order[:k] for k in ks]

    return choose


def _paper(X: NDArray, y: NDArray) -> Any:
    """The paper's settings to the letter; costs rank as alpha does, and do not underflow."""
    first = y == np.unique(y)[0]
    return run(X[first], X[~first], "each", eta=1.0, solver=FW_EMD).result.phi


def _defaults(X: NDArray, y: NDArray, ks: Sequence[int]) -> list[NDArray]:
    from frot.selection import FROTSelector

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = (FROTSelector(n_features_to_select=k).fit(X, y) for k in ks)
        return [np.argsort(each.ranking_)[:k] for each, k in zip(fitted, ks, strict=True)]


def _wasserstein(X: NDArray, y: NDArray) -> Any:
    from frot.selection import wasserstein_score

    return wasserstein_score(X, y)


def _correlation(X: NDArray, y: NDArray) -> Any:
    from frot.selection import correlation_score

    return correlation_score(X, y)


def _mmd(X: NDArray, y: NDArray) -> Any:
    from frot.selection import mmd_score

    return mmd_score(X, y)


def _mrmr(X: NDArray, y: NDArray) -> Any:
    from frot.selection import mrmr_scores

    return mrmr_scores(X, y)


def _f_classif(X: NDArray, y: NDArray) -> Any:
    from sklearn.feature_selection import f_classif

    with warnings.catch_warnings():
        # Of features that are constant in the training part.
        warnings.simplefilter("ignore")
        return f_classif(X, y)


METHODS: dict[str, Method] = {
    "frot_paper": Method("FROT (as in the paper, η = 1, T = 10)", ranked(_paper)),
    "frot": Method("FROT (frot's defaults)", _defaults),
    "wasserstein": Method("Wasserstein (sort)", ranked(_wasserstein)),
    "linear": Method("Linear correlation", ranked(_correlation)),
    "mmd": Method("MMD", ranked(_mmd)),
    "f_classif": Method("f_classif", ranked(_f_classif)),
    "mrmr": Method("mRMR", ranked(_mrmr)),
}
