"""Coherence of a layer: do neighbours match neighbours? It needs no label, and noise has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot.correspondence._cosines import inverse, lengths
from frot.correspondence._features import FeatureMap

__all__ = ["coherence", "coherences"]

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
    return float(coherences([source], [target], home)[0])


def coherences(
    source: Sequence[FeatureMap], target: Sequence[FeatureMap], home: Home
) -> np.ndarray:
    """Return the coherence of every layer, (L,): a device is waited for once."""
    xp, matches = home.xp, []
    for pair in zip(source, target, strict=True):
        F, G = (_unit_vectors(home, layer) for layer in pair)
        cosines = F @ xp.matrix_transpose(G)
        matches += [xp.argmax(cosines, axis=1), xp.argmax(cosines, axis=0)]
    ends = np.cumsum([len(part) for part in matches])[:-1]
    found = iter(np.split(to_numpy(xp.concat(matches)), ends))
    return np.array(
        [
            np.sqrt(_one_way(next(found), one, other) * _one_way(next(found), other, one))
            for one, other in zip(source, target, strict=True)
        ]
    )


def _unit_vectors(home: Home, layer: FeatureMap) -> Any:
    xp = home.xp
    values = home.bring(layer.values)
    flat = xp.matrix_transpose(xp.reshape(values, (layer.channels, layer.grid.count)))
    return flat * inverse(xp, lengths(xp, flat))[:, None]


def _one_way(matches: np.ndarray, source: FeatureMap, target: FeatureMap) -> float:
    """The share of neighbours that stay neighbours, beyond chance."""
    grid, other = source.grid, target.grid
    y, x = np.divmod(matches.reshape(grid.h, grid.w), other.w)
    across = (np.abs(np.diff(x, axis=1) - 1) <= 1) & (np.abs(np.diff(y, axis=1)) <= 1)
    down = (np.abs(np.diff(y, axis=0) - 1) <= 1) & (np.abs(np.diff(x, axis=0)) <= 1)
    count = across.size + down.size
    chance = min(9.0 / other.count, 0.99)
    share = (across.sum() + down.sum()) / count if count else 0.0
    return max((share - chance) / (1.0 - chance), LEAST)
