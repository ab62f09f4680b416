"""A start for many points: the same problem between a sample of them, extended to all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from frot._base.arrays import to_numpy
from frot.costs.geometry import Geometry
from frot.solvers.sinkhorn.dense import DenseEngine
from frot.solvers.sinkhorn.engine import Point, gaps
from frot.solvers.sinkhorn.terms import Terms

__all__ = ["coarse_start", "coarse_weights"]

# Points of either side in the sample, and how well the problem between them is solved.
SAMPLE_ON_HOST = 2_000
SAMPLE_ON_DEVICE = 8_000
ACCURACY = 1e-3


class Extends(Protocol):
    """An engine that finds potentials of all columns from those of some rows."""

    @property
    def geometry(self) -> Geometry:
        """The costs."""
        ...

    @property
    def terms(self) -> Terms:
        """Everything else."""
        ...

    def extend(self, alpha: Any, rows: np.ndarray, weights: Any, f: Any) -> Any:
        """Return the potentials of all columns, (B, m)."""
        ...


def _sample(count: int, size: int, weights: Any) -> np.ndarray:
    """Draw points by their weights, without repetition; always the same ones."""
    mass = to_numpy(weights)[0].astype(float)
    size = min(size, int(np.count_nonzero(mass)))
    # Points evenly spaced along the cumulated mass, in random order of the points.
    order = np.random.default_rng(0).permutation(count)
    edges = np.cumsum(mass[order])
    picks = np.searchsorted(edges, (np.arange(size) + 0.5) / size * edges[-1])
    return np.unique(order[np.minimum(picks, count - 1)])


def coarse_engine(geometry: Geometry, terms: Terms) -> tuple[DenseEngine, np.ndarray]:
    """Return the problem between the sample's points, and the numbers of its rows."""
    _, _, n, m = geometry.shape
    home = terms.home
    size = SAMPLE_ON_HOST if home.on_host else SAMPLE_ON_DEVICE
    rows, cols = _sample(n, size, terms.a), _sample(m, size, terms.b)
    xp = home.xp
    i, j = home.indices(rows), home.indices(cols)
    a, b = xp.take(terms.a, i, axis=1), xp.take(terms.b, j, axis=1)
    a, b = a / xp.sum(a, axis=1, keepdims=True), b / xp.sum(b, axis=1, keepdims=True)
    if terms.soft:
        a = a * xp.sum(terms.a, axis=1, keepdims=True)
        b = b * xp.sum(terms.b, axis=1, keepdims=True)
    # Points are drawn by their weight, so that none of the sample is without.
    part = replace(terms, a=a, b=b, exact=None, gaps=False, even=False, symmetric=False)
    sample = geometry.take(rows, cols)
    if not home.on_host and part.single_safe:
        sample = sample.single()
    return DenseEngine(sample, part.at(sample.home)), rows


def coarse_weights(whole: Extends, alpha: Any) -> tuple[Any, Any]:
    """Solve the problem between samples, and return its weights and the potential g of all."""
    from frot.solvers.sinkhorn.ascent import ascend

    engine, rows = coarse_engine(whole.geometry, whole.terms)
    home = engine.terms.home
    at = None
    for count, at in enumerate(ascend(engine, home.xp.astype(alpha, home.dtype), tol=ACCURACY)):
        if count >= 50 or float(gaps(home.xp, at)[0]) <= ACCURACY:
            break
    assert at is not None
    return _extended(whole, engine, rows, at)


def coarse_start(whole: Extends, alpha: Any) -> Any:
    """Return the potential g that the sample's solution at the given weights extends to."""
    engine, rows = coarse_engine(whole.geometry, whole.terms)
    home = engine.terms.home
    at = engine.start(home.xp.astype(alpha, home.dtype))
    return _extended(whole, engine, rows, at)[1]


def _extended(whole: Extends, engine: DenseEngine, rows: np.ndarray, at: Point) -> tuple[Any, Any]:
    """Return the sample's weights, and the potentials that it leaves to all columns."""
    home = whole.terms.home
    alpha, a, f = (home.xp.astype(x, home.dtype) for x in (at.alpha, engine.terms.a, at.f))
    alpha = alpha / home.xp.sum(alpha, axis=1, keepdims=True)
    return alpha, whole.extend(alpha, rows, a, f)
