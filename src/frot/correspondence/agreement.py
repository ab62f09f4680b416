"""Hough matching: votes weighed by how many others agree, as strongly as the pair of images bears.

What stands still in both photographs moves by the same displacement all over, and votes for that
one are worth more. Where things face opposite ways nothing moves alike, and the same weighing does
harm: most of what it costs on birds it costs there. Whether A matches B better as it is or mirrored
says, without labels, which of the two it is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot.correspondence._features import Grid

__all__ = [
    "AUTO",
    "NARROW",
    "RIGID",
    "STRENGTH",
    "WIDE",
    "fitting_strength",
    "hough",
    "hough_bins",
    "rigidity",
]

# Bins of displacement in all, and the smoothing's spread and reach in bins, as in the original.
BINS = 8192
NARROW = (7 / 2.0 / 2.354, 3)

AUTO = "auto"
# What "auto" does where A suits B better as it is than mirrored, chosen on pairs of cars and of
# four species of birds with two networks: the strength, and the smoothing. That is wider than the
# original's, so that votes for far places lose and those for close ones are not moved.
STRENGTH = 0.5
WIDE = (3.0, 9)
# From this rigidity on nothing faces opposite ways: there is no need to look. Where no mirrored
# photograph can be looked at, there is no Hough matching up to the other one.
LEAST_RIGID, RIGID = 0.07, 0.12
# The share of the longer side within which two displacements are alike, at least a cell; and the
# matches that are compared.
ALIKE, MOST = 0.05, 1_000


def hough_bins(
    source_size: tuple[int, int], target_size: tuple[int, int]
) -> tuple[float, int, int]:
    """Return the size of a bin in pixels, and the numbers of bins down and across.

    Examples
    --------
    >>> size, down, across = hough_bins((225, 300), (225, 300))
    >>> round(size, 5), across, down
    (5.74099, 105, 79)
    """
    tall = source_size[0] + target_size[0]
    wide = source_size[1] + target_size[1]
    size = float(np.sqrt(tall * wide / BINS))
    return size, int(tall / size) + 1, int(wide / size) + 1


def hough(
    votes: Any,
    source_grid: Grid,
    target_grid: Grid,
    source_size: tuple[int, int],
    target_size: tuple[int, int],
    home: Home,
    strength: float = 1.0,
    smoothing: tuple[float, int] = NARROW,
) -> Any:
    r"""Weigh votes by how much others agree on their displacement.

    .. math::
        \mathrm{score}_{ij} = V_{ij}\, (k * h)(\mathrm{bin}_{ij})^\lambda, \qquad
        h(\beta) = \sum_{\mathrm{bin}_{ij} = \beta} V_{ij}, \qquad
        \mathrm{bin}_{ij} = \Big\lfloor \frac{s - c_i + c_j}{\mathrm{cell}} \Big\rfloor

    with s the size of the source image, c the centres of the cells and k a Gaussian, of 7 x 7 bins
    in the original.

    Parameters
    ----------
    votes : array of shape (n, m)
    source_grid, target_grid : Grid
    source_size, target_size : (h, w)
        Sizes of the images in pixels of the grids.
    home : Home
        Where the votes live.
    strength : float
        The power lambda; 1 is the original's.
    smoothing : (float, int)
        The Gaussian's standard deviation and reach, in bins.

    Returns
    -------
    array of shape (n, m)
    """
    xp = home.xp
    size, count_y, count_x = hough_bins(source_size, target_size)
    # Grids are regular, so the bins of x and of y are found apart, and sums over bins are two
    # products with zeros and ones: no scattering, the same in every library.
    strides = (source_grid.stride, target_grid.stride)
    tall, wide = (source_grid.h, target_grid.h), (source_grid.w, target_grid.w)
    one_y = _one_hot(strides, tall, source_size[0], size, count_y, home)
    one_x = _one_hot(strides, wide, source_size[1], size, count_x, home)
    shape = (source_grid.h, source_grid.w, target_grid.h, target_grid.w)
    turned = xp.permute_dims(xp.reshape(votes, shape), (0, 2, 1, 3))
    turned = xp.reshape(turned, (one_y.shape[0], one_x.shape[0]))
    counts = xp.matrix_transpose(one_y) @ turned @ one_x
    smooth_y, smooth_x = (home.bring(_smoothing(count, *smoothing)) for count in (count_y, count_x))
    agreed = smooth_y @ counts @ smooth_x
    if strength != 1.0:
        agreed = xp.clip(agreed, 0.0, None) ** strength
    scored = turned * (one_y @ agreed @ xp.matrix_transpose(one_x))
    scored = xp.reshape(scored, (shape[0], shape[2], shape[1], shape[3]))
    return xp.reshape(xp.permute_dims(scored, (0, 2, 1, 3)), votes.shape)


def rigidity(votes: Any, source_grid: Grid, target_grid: Grid, home: Home) -> float:
    r"""Return the chance that two of the mutual best matches move alike, from 0 to 1.

    .. math:: \Pr_{i, i' \in \mathcal{M}} \big[\, \|d_i - d_{i'}\|_\infty \le r \,\big],
        \qquad d_i = c_{j(i)} - c_i

    with j(i) the best match of cell i, M the cells that their match leads back to within a cell,
    and r a twentieth of the source's longer side. It needs no label; 0 where nothing is mutual.
    """
    xp = home.xp
    # One wait for both.
    best = to_numpy(xp.concat([xp.argmax(votes, axis=axis) for axis in (1, 0)]))
    there, back = best[: source_grid.count], best[source_grid.count :]
    centres = source_grid.centres
    apart = np.abs(centres[back[there]] - centres).max(axis=1)
    mutual = np.flatnonzero(apart <= source_grid.stride)
    # So many say as much as all.
    mutual = mutual[:: -(-len(mutual) // MOST) or 1]
    moves = target_grid.centres[there[mutual]] - centres[mutual]
    if not len(moves):
        return 0.0
    reach = source_grid.stride * max(ALIKE * max(source_grid.h, source_grid.w), 1.0)
    x, y = home.bring(np.ascontiguousarray(moves.T))
    alike = xp.abs(x[:, None] - x[None, :]) <= reach
    alike = alike & (xp.abs(y[:, None] - y[None, :]) <= reach)
    return float(xp.count_nonzero(alike)) / len(moves) ** 2


def fitting_strength(found: float) -> float:
    """Return the strength of Hough matching that a rigidity bears, if nothing else is known.

    Examples
    --------
    >>> fitting_strength(0.05), fitting_strength(0.2)
    (0.0, 0.5)
    """
    share = (found - LEAST_RIGID) / (RIGID - LEAST_RIGID)
    return STRENGTH * float(np.clip(share, 0.0, 1.0))


def _one_hot(
    strides: tuple[float, float], counts: tuple[int, int], length: int, size: float, bins: int,
    home: Home,
) -> Any:  # fmt: skip
    """Which pairs of rows (or columns) are in which bin along one side, (pairs, bins)."""
    here, there = (stride * np.arange(count) for stride, count in zip(strides, counts, strict=True))
    places = np.floor((length - here[:, None] + there[None, :]) / size)
    # Made where it is used: most of it is zeros.
    places = home.bring(np.clip(places.ravel(), 0, bins - 1))
    numbers = home.xp.arange(bins, dtype=home.dtype, device=home.device)
    return home.xp.astype(places[:, None] == numbers[None, :], home.dtype)


@lru_cache(maxsize=256)
def _smoothing(count: int, spread: float, reach: int) -> np.ndarray:
    """The Gaussian along one side as a banded matrix; beyond the ends there is nothing."""
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / spread) ** 2)
    kernel = kernel / kernel.sum()
    apart = np.arange(count)[:, None] - np.arange(count)[None, :]
    return np.where(np.abs(apart) <= reach, kernel[np.clip(apart + reach, 0, 2 * reach)], 0.0)
