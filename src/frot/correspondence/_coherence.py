"""Coherence of a layer: do neighbours match neighbours? It needs no label, and noise has none."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot.correspondence._cosines import inverse
from frot.correspondence._features import FeatureMap, Grid

# Layers that are no better than chance keep this much, so that logarithms exist.
LEAST = 1e-6
# Vectors of unit length that differ by less are the same but for rounding.
SAME = 1e-5


def coherence(source: FeatureMap, target: FeatureMap, home: Home | None = None) -> float:
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
    """Return the coherence of every layer, (L,): layers alike together, and one wait for all."""
    xp, groups, matches = home.xp, alike(source, target, home), []
    for layers in groups:
        (F, living), (G, there) = (
            _unit_vectors(home, [maps[k] for k in layers]) for maps in (source, target)
        )
        cosines = F @ xp.matrix_transpose(G)
        nearest = [xp.reshape(xp.argmax(cosines, axis=axis), (-1,)) for axis in (2, 1)]
        # The nearest of equals is the first, and neighbours would seem to match neighbours.
        matches += [*nearest, xp.astype(living & there, nearest[0].dtype)]
    ends = np.cumsum([len(part) for part in matches])[:-1]
    found = np.split(to_numpy(xp.concat(matches)), ends)
    result = np.empty(len(source))
    for group, layers in enumerate(groups):
        there, back, alive = found[3 * group : 3 * group + 3]
        one, other = (maps[layers[0]].grid for maps in (source, target))
        both = _kept_each(there, one, other) * _kept_each(back, other, one)
        result[layers] = np.sqrt(np.where(alive, both, LEAST**2))
    return result


def alike(
    source: Sequence[FeatureMap], target: Sequence[FeatureMap], home: Home
) -> list[list[int]]:
    """Return the numbers of layers that have the same sizes; on the host each is alone.

    A device has as much work with one layer as with many, the host has no room for many.

    Examples
    --------
    >>> maps = [FeatureMap(str(k), np.zeros((2, k // 2, 3)), 8, 43) for k in (2, 3, 4)]
    >>> alike(maps, maps, Home.of(np.zeros(1)))
    [[0], [1], [2]]
    """
    if home.on_host:
        return [[layer] for layer in range(len(source))]
    found: dict[Any, list[int]] = {}
    for layer, (one, other) in enumerate(zip(source, target, strict=True)):
        found.setdefault((one.values.shape, other.values.shape), []).append(layer)
    return list(found.values())


def _unit_vectors(home: Home, layers: Sequence[FeatureMap]) -> tuple[Any, Any]:
    """Return vectors of layers alike at unit length, (layers, cells, channels), and which differ.

    On a device, where features stay, those of a photograph are made once.
    """

    def make() -> tuple[Any, Any]:
        xp = home.xp
        maps = xp.stack([home.bring(layer.values) for layer in layers])
        flat = xp.matrix_transpose(xp.reshape(maps, (*maps.shape[:2], -1)))
        unit = flat * inverse(xp, xp.sqrt(xp.sum(flat * flat, axis=2)))[:, :, None]
        apart = xp.max(unit, axis=1) - xp.min(unit, axis=1)
        return unit, xp.max(apart, axis=1) > SAME

    if home.on_host:
        return make()
    return layers[0].once(("unit", *(layer.name for layer in layers)), make)


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
