"""Coherence of a layer: do neighbours match neighbours? It needs no label, and noise has none."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from frot._base.arrays import Home, namespace, to_numpy
from frot.correspondence._features import FeatureMap, Grid
from frot.correspondence.layer_costs import LayerCosts, layer_costs

# Layers that are no better than chance keep this much, so that logarithms exist.
LEAST = 1e-6


def coherence(source: FeatureMap, target: FeatureMap) -> float:
    r"""Return how coherently a layer matches two images, from 0 (by chance) to 1.

    On the layer's own grids, j(i) is the cosine nearest neighbour in the target of cell i of the
    source. The statistic is the share s of adjacent pairs of cells, across and down, whose matches
    are adjacent in the same direction within one cell, less its chance value :math:`c = 9/m`:

    .. math:: \frac{s - c}{1 - c}, \qquad
        s = \operatorname{mean}_{i \sim i'} \,[\, \|j(i') - j(i) - (i' - i)\|_\infty \le 1 \,]

    and the geometric mean of both directions; each direction counts at least 1e-6. A layer whose
    vectors are all the same in one image matches nothing, and has the least.

    Parameters
    ----------
    source, target : FeatureMap
        The same layer of both images.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> layer = FeatureMap("a", rng.normal(size=(16, 9, 7)), 8, 43)
    >>> coherence(layer, layer)
    1.0
    """
    cells, home = (source.grid, target.grid), Home.of(np.zeros(1))
    return float(coherences(layer_costs([source], [target], cells, home))[0])


def coherences(costs: LayerCosts) -> np.ndarray:
    """Return the coherence of every layer, (L,), from the distances that the costs are made of."""
    result = np.empty(costs.shape[0])
    for level in costs.levels:
        distances, (one, other) = level.distances, level.grids
        there = to_numpy(namespace(distances).argmin(distances, axis=2))
        back = to_numpy(_first_least(distances))
        both = _kept_each(there.T, one, other) * _kept_each(back, other, one)
        # The nearest of equals is the first, and neighbours would seem to match neighbours. Vectors
        # of unit length that differ by less are equal but for rounding.
        telling = to_numpy(level.telling) > 1e-5
        result[list(level.layers)] = np.sqrt(np.where(telling, both, LEAST**2))
    return result


def _first_least(distances: Any) -> Any:
    """Return argmin over the first axis of (n, layers, m).

    Of NumPy's from the minima, which takes less than half the time of its own way.
    """
    if not isinstance(distances, np.ndarray):
        return namespace(distances).argmin(distances, axis=0)
    least = distances.min(axis=0)
    rows, rest = np.divmod(np.flatnonzero(distances == least), least.size)
    found = np.empty(least.size, dtype=np.intp)
    # Of equals the first is written last.
    found[rest[::-1]] = rows[::-1]
    return found.reshape(least.shape)


def _kept_each(matches: np.ndarray, grid: Grid, other: Grid) -> np.ndarray:
    """Return the share of neighbours that stay neighbours, beyond chance, at least 1e-6.

    Of layers one after another, (layers,): `matches` are for each cell of each the number of a cell
    of the other grid.
    """
    code, right, below = _moves(other.h, other.w)
    places = code[matches].reshape(-1, grid.h, grid.w)
    across = right[places[:, :, 1:] - places[:, :, :-1]]
    down = below[places[:, 1:] - places[:, :-1]]
    asked = grid.h * (grid.w - 1) + (grid.h - 1) * grid.w
    kept = np.count_nonzero(across, axis=(1, 2)) + np.count_nonzero(down, axis=(1, 2))
    chance = min(9.0 / other.count, 0.99)
    share = kept / max(asked, 1)
    return np.maximum((share - chance) / (1.0 - chance), LEAST)


@lru_cache(maxsize=64)
def _moves(h: int, w: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a number for each cell of a grid, and which differences are one cell right, or below.

    Within one cell. Differences below zero count from the end of their tables.
    """
    wide = 2 * w + 4
    code = (wide * np.arange(h)[:, None] + np.arange(w)).ravel()
    right, below = np.zeros((2, 2 * wide * (h + 2)), dtype=bool)
    for one in (0, 1, 2):
        for other in (-1, 0, 1):
            right[wide * other + one] = below[wide * one + other] = True
    return code, right, below
