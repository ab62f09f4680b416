"""Two or three classes that differ in a few known features."""

from __future__ import annotations

import numpy as np

from frot.selection._costs import BlockedCosts
from frot.selection._scaling import Sides, scale_sides

SIGNAL = (0, 1, 2)


def planted(n=24, m=16, d=40, gap=2.5, seed=0, classes=2):
    """Shift the first three features of every class but the first."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(classes), [n, *[m] * (classes - 1)])
    X = rng.normal(size=(len(y), d))
    for label in range(1, classes):
        X[np.ix_(y == label, SIGNAL)] += gap * label
    return X, np.array(["control", "treated", "rescued"])[y]


def two_sides(n=9, m=6, d=12, seed=0, weighted=False):
    """Return samples of two classes, with random weights if asked for."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n + m, d)) * rng.uniform(0.1, 10.0, size=d) + rng.normal(size=d)
    weight = rng.uniform(0.5, 2.0, size=n + m) if weighted else None
    return Sides.of(table, np.arange(n), np.arange(n, n + m), weight)


def blocked(scaling="balanced", **options):
    """Return costs of random samples, one group a feature."""
    return BlockedCosts(scale_sides(two_sides(**options), scaling))
