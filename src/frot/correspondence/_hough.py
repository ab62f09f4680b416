"""Regularised Hough matching: matches that agree on a displacement vote for each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from frot._base.arrays import Home
from frot.correspondence._feature_map import Grid

__all__ = ["hough", "hough_bins"]

# Bins of displacement in all, as in the original; and the width of the smoothing, in bins.
BINS = 8192
WINDOW = 7
SIGMA = WINDOW / 2.0 / 2.354


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
) -> Any:
    r"""Weigh votes by how much others agree on their displacement.

    .. math::
        \mathrm{score}_{ij} = V_{ij}\, (k * h)(\mathrm{bin}_{ij}), \qquad
        h(\beta) = \sum_{\mathrm{bin}_{ij} = \beta} V_{ij}, \qquad
        \mathrm{bin}_{ij} = \Big\lfloor \frac{s - c_i + c_j}{\mathrm{cell}} \Big\rfloor

    with s the size of the source image, c the centres of the cells and k a 7 x 7 Gaussian.

    Parameters
    ----------
    votes : array of shape (n, m)
    source_grid, target_grid : Grid
    source_size, target_size : (h, w)
        Sizes of the images in pixels of the grids.
    home : Home
        Where the votes live.

    Returns
    -------
    array of shape (n, m)
    """
    xp = home.xp
    size, count_y, count_x = hough_bins(source_size, target_size)
    # Grids are regular, so the bins of x and of y are found apart, and sums over bins are two
    # products with zeros and ones: no scattering, the same in every library.
    strides = (source_grid.stride, target_grid.stride)
    bins_y = _line_bins(strides, (source_grid.h, target_grid.h), source_size[0], size)
    bins_x = _line_bins(strides, (source_grid.w, target_grid.w), source_size[1], size)
    one_y, one_x = (
        home.bring(np.eye(count)[np.clip(bins, 0, count - 1)])
        for count, bins in ((count_y, bins_y), (count_x, bins_x))
    )
    shape = (source_grid.h, source_grid.w, target_grid.h, target_grid.w)
    turned = xp.permute_dims(xp.reshape(votes, shape), (0, 2, 1, 3))
    turned = xp.reshape(turned, (len(bins_y), len(bins_x)))
    counts = xp.matrix_transpose(one_y) @ turned @ one_x
    smooth_y, smooth_x = (home.bring(_smoothing(count)) for count in (count_y, count_x))
    agreed = smooth_y @ counts @ smooth_x
    scored = turned * (one_y @ agreed @ xp.matrix_transpose(one_x))
    scored = xp.reshape(scored, (shape[0], shape[2], shape[1], shape[3]))
    return xp.reshape(xp.permute_dims(scored, (0, 2, 1, 3)), votes.shape)


def _line_bins(
    strides: tuple[float, float], counts: tuple[int, int], length: int, size: float
) -> np.ndarray:
    """Bins along one side of all pairs of rows (or columns), flat."""
    here, there = (stride * np.arange(count) for stride, count in zip(strides, counts, strict=True))
    return np.floor((length - here[:, None] + there[None, :]) / size).astype(int).ravel()


def _smoothing(count: int) -> np.ndarray:
    """The Gaussian along one side as a banded matrix; beyond the ends there is nothing."""
    reach = WINDOW // 2
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / SIGMA) ** 2)
    kernel = kernel / kernel.sum()
    apart = np.arange(count)[:, None] - np.arange(count)[None, :]
    return np.where(np.abs(apart) <= reach, kernel[np.clip(apart + reach, 0, WINDOW - 1)], 0.0)
