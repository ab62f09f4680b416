"""Points and costs that the entropic benchmarks share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

__all__ = ["Clouds", "clouds", "marginal_error", "mixed_cost"]

SHIFTS = (0.5, 0.75, 1.0)


class Clouds(NamedTuple):
    """Two sets of points and the groups of their features, as one label per feature."""

    X: np.ndarray
    Y: np.ndarray
    labels: np.ndarray

    @property
    def groups(self) -> list[np.ndarray]:
        """The features of each group."""
        return [np.flatnonzero(self.labels == group) for group in range(self.labels.max() + 1)]


def clouds(n: int, groups: int, seed: int) -> Clouds:
    """Make Gaussian points in random groups of two to five features; three groups are shifted."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(groups), rng.integers(2, 6, size=groups)))
    X, Y = rng.normal(size=(2, n, len(labels)))
    for group, shift in enumerate(SHIFTS[:groups]):
        Y[:, labels == group] += shift
    return Clouds(X, Y, labels)


def mixed_cost(n: int, kind: str) -> np.ndarray:
    """Return a squared Euclidean cost: of points in the plane, or 34 groups mixed evenly."""
    if kind == "plane":
        X, Y = np.random.default_rng(0).normal(size=(2, n, 2))
        Y[:, 0] += 1.0
        return cdist(X, Y, "sqeuclidean")
    points = clouds(n, 34, seed=0)
    return cdist(points.X, points.Y, "sqeuclidean") / 34.0


def marginal_error(plan: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """Return the mass that is in a wrong row, plus that in a wrong column (NaN where it is)."""
    return float(np.abs(plan.sum(axis=1) - a).sum() + np.abs(plan.sum(axis=0) - b).sum())
