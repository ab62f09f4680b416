"""Two or three classes that differ in a few known features."""

from __future__ import annotations

import numpy as np

SIGNAL = (0, 1, 2)


def planted(n=24, m=16, d=40, gap=2.5, seed=0, classes=2):
    """Shift the first three features of every class but the first."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(classes), [n, *[m] * (classes - 1)])
    X = rng.normal(size=(len(y), d))
    for label in range(1, classes):
        X[np.ix_(y == label, SIGNAL)] += gap * label
    return X, np.array(["control", "treated", "rescued"])[y]
