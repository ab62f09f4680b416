"""Coherence of a layer: do neighbours match neighbours? It needs no label, and noise has none."""

from __future__ import annotations

from typing import Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot.correspondence._cosines import inverse, lengths
from frot.correspondence._features import FeatureMap, Grid

__all__ = ["coherence", "kept_neighbours"]

# Layers that are no better than chance keep this much, so that logarithms exist.
LEAST = 1e-6


def coherence(source: FeatureMap, target: FeatureMap, home: Home | None = None) -> float:
    r"""Return how coherently a layer matches two images, from 0 (by chance) to 1.

    On the layer's own grids, j(i) is the cosine nearest neighbour in the target of cell i of the
    source. The statistic is the share s of adjacent pairs of cells, across and down, whose matches
    are adjacent in the same direction within one cell, less its chance value :math:`c = 9/m`:

    .. math:: \frac{s - c}{1 - c}, \qquad
        s = \operatorname{mean}_{i \sim i'} \,[\, \|j(i') - j(i) - (i' - i)\|_\infty \le 1 \,]

    and the geometric mean of both directions; each direction counts at least 1e-6.

    Parameters
    ----------
    source, target : FeatureMap
        The same layer of both images.
    home : Home, optional
        Where to work; in NumPy if left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> layer = FeatureMap("a", rng.normal(size=(16, 9, 7)), 8, 43)
    >>> coherence(layer, layer)
    1.0
    """
    home = Home.of(np.zeros(1)) if home is None else home
    xp = home.xp
    F, G = (_unit_vectors(home, layer) for layer in (source, target))
    cosines = F @ xp.matrix_transpose(G)
    there = kept_neighbours(to_numpy(xp.argmax(cosines, axis=1)), source.grid, target.grid)
    back = kept_neighbours(to_numpy(xp.argmax(cosines, axis=0)), target.grid, source.grid)
    return float(np.sqrt(there * back))


def _unit_vectors(home: Home, layer: FeatureMap) -> Any:
    xp = home.xp
    values = home.bring(layer.values)
    flat = xp.matrix_transpose(xp.reshape(values, (layer.channels, layer.grid.count)))
    return flat * inverse(xp, lengths(xp, flat))[:, None]


def kept_neighbours(
    matches: np.ndarray, grid: Grid, other: Grid, some: np.ndarray | None = None
) -> float:
    """Return the share of neighbours that stay neighbours, beyond chance, at least 1e-6.

    Parameters
    ----------
    matches : integer array of shape (n,)
        For each cell of a grid the number of a cell of the other.
    grid, other : Grid
    some : bool array of shape (n,), optional
        The cells that are asked; all if left out.
    """
    y, x = np.divmod(matches.reshape(grid.h, grid.w), other.w)
    across = (np.abs(np.diff(x, axis=1) - 1) <= 1) & (np.abs(np.diff(y, axis=1)) <= 1)
    down = (np.abs(np.diff(y, axis=0) - 1) <= 1) & (np.abs(np.diff(x, axis=0)) <= 1)
    if some is not None:
        asked = some.reshape(grid.h, grid.w)
        across, down = across[asked[:, 1:] & asked[:, :-1]], down[asked[1:] & asked[:-1]]
    count = across.size + down.size
    chance = min(9.0 / other.count, 0.99)
    share = (across.sum() + down.sum()) / count if count else 0.0
    return max((share - chance) / (1.0 - chance), LEAST)
