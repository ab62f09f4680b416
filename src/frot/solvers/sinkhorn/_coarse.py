"""A start for many points: the same problem between a sample of them, extended to all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from frot._base.arrays import to_numpy
from frot.costs.geometry import Geometry
from frot.solvers.sinkhorn.blocks import row_blocks
from frot.solvers.sinkhorn.dense import DenseEngine
from frot.solvers.sinkhorn.engine import gaps
from frot.solvers.sinkhorn.forming import column_potentials
from frot.solvers.sinkhorn.scores import scores_at
from frot.solvers.sinkhorn.terms import Terms

__all__ = ["coarse_start", "coarse_weights"]

# Points of either side in the sample, and how well the problem between them is solved.
SAMPLE_ON_HOST = 2_000
SAMPLE_ON_DEVICE = 8_000
ACCURACY = 1e-3


def _sample(count: int, size: int, weights: Any) -> np.ndarray:
    """Draw points by their weights, without repetition; always the same ones."""
    mass = to_numpy(weights)[0].astype(float)
    size = min(size, int(np.count_nonzero(mass)))
    # Points evenly spaced along the cumulated mass, in random order of the points.
    order = np.random.default_rng(0).permutation(count)
    edges = np.cumsum(mass[order])
    picks = np.searchsorted(edges, (np.arange(size) + 0.5) / size * edges[-1])
    return np.unique(order[np.minimum(picks, count - 1)])


def coarse_engine(geometry: Geometry, terms: Terms) -> tuple[DenseEngine, Geometry]:
    """Return the problem between the sample's points, and from its rows to all columns."""
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
    part = replace(
        terms,
        a=a,
        b=b,
        exact=None,
        # Points are drawn by their weight, so that none of the sample is without.
        gaps=False,
        even=False,
        symmetric=False,
    )
    strip = geometry.take(rows, np.arange(m))
    return DenseEngine(strip.take(np.arange(len(rows)), cols), part), strip


def coarse_weights(geometry: Geometry, terms: Terms, alpha: Any) -> tuple[Any, Any]:
    """Solve the problem between samples, and return its weights and the potential g of all."""
    from frot.solvers.sinkhorn.ascent import ascend

    engine, strip = coarse_engine(geometry, terms)
    xp = terms.home.xp
    at = None
    for count, at in enumerate(ascend(engine, alpha, tol=ACCURACY)):
        if count >= 50 or float(gaps(xp, at)[0]) <= ACCURACY:
            break
    assert at is not None
    return at.alpha, _extend(engine.terms, strip, at.alpha, at.f)


def coarse_start(geometry: Geometry, terms: Terms, alpha: Any) -> Any:
    """Return the potential g that the sample's solution at the given weights extends to."""
    engine, strip = coarse_engine(geometry, terms)
    at = engine.start(alpha)
    return _extend(engine.terms, strip, alpha, at.f)


def _extend(terms: Terms, strip: Geometry, alpha: Any, f: Any) -> Any:
    """Return the potentials of all columns that f on the sample's rows leaves them."""
    return column_potentials(scores_at(strip, terms, alpha), terms, f, row_blocks(strip))
