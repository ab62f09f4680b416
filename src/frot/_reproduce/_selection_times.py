"""How long a fit takes by each method, on the training part of the first split."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frot._errors import require
from frot._reproduce._selection_methods import METHODS
from frot._reproduce._selection_protocol import split
from frot._reproduce._selection_stacked import stacked_phi, wasserstein_by_call

__all__ = ["PAPER_TIMES", "TIMED", "agreement", "seconds"]

# The paper's table, in its own seconds.
PAPER_TIMES = {
    "colon": {"wasserstein": 12.57, "linear": 0.0, "mmd": 1.36, "frot": 0.41},
    "leukemia": {"wasserstein": 46.76, "linear": 0.01, "mmd": 5.03, "frot": 1.13},
    "prostate_ge": {"wasserstein": 51.99, "linear": 0.02, "mmd": 6.01, "frot": 1.04},
    "gli_85": {"wasserstein": 142.1, "linear": 0.04, "mmd": 23.6, "frot": 3.44},
}

TIMED = {
    **{key: method.label for key, method in METHODS.items()},
    "stacked": "FROT as written (stack of d cost matrices, T = 10)",
    "wasserstein_call": "Wasserstein (a call of POT per feature)",
}
# Seconds from which a fit is repeated less often.
LONG = 1.0


def seconds(X: NDArray, y: NDArray, seed: int) -> dict[str, float]:
    """Return the median seconds of a fit, one thread, all in the same process.

    Parameters
    ----------
    X : numpy.ndarray, shape (n, d)
    y : numpy.ndarray, shape (n,)
        Two classes.
    seed : int
        Of the first split, on whose training part everything is timed.
    """
    with require("threadpoolctl", "selection").threadpool_limits(1):
        train, labels, _, _ = split(X, y, 0, seed)
        one = labels == np.unique(labels)[0]
        first, second = train[one], train[~one]
        ks = [min(50, X.shape[1])]
        work: dict[str, Callable[[], Any]] = {
            key: lambda choose=method.choose: choose(train, labels, ks)
            for key, method in METHODS.items()
        }
        work["stacked"] = lambda: stacked_phi(first, second)
        work["wasserstein_call"] = lambda: wasserstein_by_call(first, second)
        return {key: _median(work[key]) for key in TIMED}


def agreement(X: NDArray, y: NDArray, seed: int, k: int = 50) -> float:
    """Return the share of the best k features that FROT as written and frot's FROT have in common.

    Parameters
    ----------
    X : numpy.ndarray, shape (n, d)
    y : numpy.ndarray, shape (n,)
    seed : int
        Of the first split, on whose training part both are run.
    k : int
    """
    train, labels, _, _ = split(X, y, 0, seed)
    one = labels == np.unique(labels)[0]
    written = np.argsort(-stacked_phi(train[one], train[~one]), kind="stable")[:k]
    (ours,) = METHODS["frot_paper"].choose(train, labels, [k])
    return len(np.intersect1d(written, ours)) / len(ours)


def _median(work: Callable[[], Any]) -> float:
    """The first run does not count, since it may also import."""
    repeats = 5 if _once(work) < LONG else 2
    return statistics.median(_once(work) for _ in range(repeats))


def _once(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
