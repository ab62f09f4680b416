"""A start for many points: the same problem between a sample of them, extended to all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from frot._arrays import quiet, to_numpy
from frot._entropic._blocks import row_blocks
from frot._entropic._costs_geometry import CostsGeometry
from frot._entropic._dense import DenseEngine
from frot._entropic._engine import gaps
from frot._entropic._geometry import Geometry, PointGeometry
from frot._entropic._terms import Terms

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
    """Return the problem between the sample's points, and from all columns to its rows."""
    _, _, n, m = geometry.shape
    home = terms.home
    size = SAMPLE_ON_HOST if home.on_host else SAMPLE_ON_DEVICE
    rows, cols = _sample(n, size, terms.a), _sample(m, size, terms.b)
    xp = home.xp
    i, j = home.indices(rows), home.indices(cols)
    small, strip = _take(geometry, i, j, rows, cols)
    a, b = xp.take(terms.a, i, axis=1), xp.take(terms.b, j, axis=1)
    part = replace(
        terms,
        a=a / xp.sum(a, axis=1, keepdims=True),
        b=b / xp.sum(b, axis=1, keepdims=True),
        exact=None,
        # Points are drawn by their weight, so that none of the sample is without.
        holes=None,
    )
    return DenseEngine(small, part), strip


def _take(
    geometry: Geometry, i: Any, j: Any, rows: np.ndarray, cols: np.ndarray
) -> tuple[Geometry, Geometry]:
    if isinstance(geometry, PointGeometry):
        xp = geometry.home.xp
        X, Y = xp.take(geometry.X, i, axis=1), xp.take(geometry.Y, j, axis=1)
        membership = geometry.membership
        return PointGeometry(X, Y, membership), PointGeometry(geometry.Y, X, membership)
    assert isinstance(geometry, CostsGeometry)
    costs = geometry.costs
    transposed: Any = _Transposed(costs.take(rows, np.arange(costs.shape[2])))
    return (
        CostsGeometry(costs.take(rows, cols)),
        CostsGeometry(transposed),
    )


class _Transposed:
    """Costs with rows and columns exchanged, as far as extending a potential needs them."""

    def __init__(self, costs: Any) -> None:
        self.costs = costs

    @property
    def shape(self) -> tuple[int, int, int]:
        count, n, m = self.costs.shape
        return (count, m, n)

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        return self.costs.mix(alpha).T

    def take(self, rows: np.ndarray, cols: np.ndarray) -> _Transposed:
        return _Transposed(self.costs.take(cols, rows))


def coarse_weights(geometry: Geometry, terms: Terms, alpha: Any) -> tuple[Any, Any]:
    """Solve the problem between samples, and return its weights and the potential g of all."""
    from frot._entropic._ascent import ascend

    engine, strip = coarse_engine(geometry, terms)
    xp = terms.home.xp
    at = None
    for count, at in enumerate(ascend(engine, alpha, tol=ACCURACY)):
        if count >= 50 or float(gaps(xp, at)[0]) <= ACCURACY:
            break
    assert at is not None
    return at.alpha, _extend(engine.terms, strip, at.alpha, at.f, row_blocks(strip))


def coarse_start(geometry: Geometry, terms: Terms, alpha: Any) -> Any:
    """Return the potential g that the sample's solution at the given weights extends to."""
    engine, strip = coarse_engine(geometry, terms)
    at = engine.start(alpha)
    return _extend(engine.terms, strip, alpha, at.f, row_blocks(strip))


def _extend(terms: Terms, strip: Geometry, alpha: Any, f: Any, parts: list[slice]) -> Any:
    r"""Return :math:`g_j = -\varepsilon \log \sum_i a_i e^{(f_i - M_{ij})/\varepsilon}`."""
    xp, found = terms.home.xp, []
    with quiet():
        for part in parts:
            score = (f[:, None, :] - strip.rows(part).mix(alpha)) / terms.eps[:, :, None]
            top = xp.max(score, axis=2)
            total = xp.sum(terms.a[:, None, :] * xp.exp(score - top[:, :, None]), axis=2)
            found.append(-terms.eps * (top + xp.log(total)))
    return xp.concat(found, axis=1)
