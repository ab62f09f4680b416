"""Hough matching: votes weighed by how many others agree, as strongly as the pair of images bears.

Things that stand still in both photographs move all by the same displacement, and votes for it are
worth more. Birds bend, and turn: there the same weighing does harm. How well the surest matches of
a pair agree says, without labels, which of the two it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot.correspondence._features import Grid

__all__ = ["AUTO", "Agreement", "fitting_strength", "hough", "hough_bins", "rigidity"]

# Bins of displacement in all, as in the original; and the width of the smoothing, in bins.
BINS = 8192
WINDOW = 7
SIGMA = WINDOW / 2.0 / 2.354

AUTO = "auto"
# Chosen on 45 pairs of cars and 60 of four species of birds with three networks: no Hough matching
# up to this rigidity, and from the other on this strength.
LEAST_RIGID, RIGID, STRONGEST = 0.8, 1.4, 0.5


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


@dataclass(frozen=True, eq=False)
class Agreement:
    r"""Votes by their displacement.

    .. math::
        \mathrm{agreed} = k * h, \qquad h(\beta) = \sum_{\mathrm{bin}_{ij} = \beta} V_{ij}, \qquad
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
    """

    votes: Any
    source_grid: Grid
    target_grid: Grid
    home: Home
    agreed: Any
    bins: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(
        cls,
        votes: Any,
        source_grid: Grid,
        target_grid: Grid,
        source_size: tuple[int, int],
        target_size: tuple[int, int],
        home: Home,
    ) -> Agreement:
        """Count the votes of every displacement."""
        size, *counts = hough_bins(source_size, target_size)
        # Grids are regular, so the bins of x and of y are found apart, and sums over bins are two
        # products with zeros and ones: no scattering, the same in every library.
        strides = (source_grid.stride, target_grid.stride)
        lengths = ((source_grid.h, target_grid.h), (source_grid.w, target_grid.w))
        y, x = (
            np.clip(_line_bins(strides, length, source_size[axis], size), 0, counts[axis] - 1)
            for axis, length in enumerate(lengths)
        )
        one_y, one_x = (home.bring(np.eye(n)[k]) for n, k in zip(counts, (y, x), strict=True))
        smooth_y, smooth_x = (home.bring(_smoothing(count)) for count in counts)
        turned = _by_lines(votes, source_grid, target_grid, home)
        h = home.xp.matrix_transpose(one_y) @ turned @ one_x
        return cls(votes, source_grid, target_grid, home, smooth_y @ h @ smooth_x, (y, x))

    def weighed(self, strength: float = 1.0) -> Any:
        r"""Return :math:`V_{ij}\, \mathrm{agreed}(\mathrm{bin}_{ij})^\lambda`, (n, m)."""
        if not strength:
            return self.votes
        xp = self.home.xp
        weights = self.agreed if strength == 1.0 else xp.clip(self.agreed, 0.0, None) ** strength
        one_y, one_x = (
            self.home.bring(np.eye(count)[bins])
            for count, bins in zip(weights.shape, self.bins, strict=True)
        )
        source, target = self.source_grid, self.target_grid
        scored = _by_lines(self.votes, source, target, self.home)
        scored = scored * (one_y @ weights @ xp.matrix_transpose(one_x))
        scored = xp.reshape(scored, (source.h, target.h, source.w, target.w))
        return xp.reshape(xp.permute_dims(scored, (0, 2, 1, 3)), self.votes.shape)


def hough(
    votes: Any,
    source_grid: Grid,
    target_grid: Grid,
    source_size: tuple[int, int],
    target_size: tuple[int, int],
    home: Home,
    strength: float = 1.0,
) -> Any:
    """Return votes, (n, m), weighed by `Agreement`, at full strength as in the original."""
    grids, sizes = (source_grid, target_grid), (source_size, target_size)
    return Agreement.of(votes, *grids, *sizes, home).weighed(strength)


def rigidity(found: Agreement) -> float:
    r"""Return how much better cells' mutual best matches agree than any pairs of cells do.

    .. math:: \operatorname{mean}_{i \in \mathcal{M}} \log \mathrm{agreed}(\mathrm{bin}_{i j(i)})
        - \operatorname{mean}_{i, j} \log \mathrm{agreed}(\mathrm{bin}_{ij})

    with j(i) the best match of cell i, and M the cells that their match leads back to within a
    cell. It needs no label; 0 where nothing is mutual.
    """
    xp, source, target = found.home.xp, found.source_grid, found.target_grid
    there, back = (to_numpy(xp.argmax(found.votes, axis=axis)) for axis in (1, 0))
    apart = np.abs(source.centres[back[there]] - source.centres).max(axis=1)
    mutual = np.flatnonzero(apart <= source.stride)
    agreed = to_numpy(found.agreed).astype(float)
    if not len(mutual) or not agreed.max() > 0.0:
        return 0.0
    # Bins without any vote count as those with very few.
    agreed = np.log(np.maximum(agreed, 1e-6 * agreed.max()))
    (sy, sx), (ty, tx) = (
        np.divmod(cells, grid.w) for cells, grid in ((mutual, source), (there[mutual], target))
    )
    y, x = found.bins
    best = agreed[y[sy * target.h + ty], x[sx * target.w + tx]].mean()
    shares = [
        np.bincount(bins, minlength=count) / len(bins)
        for bins, count in zip(found.bins, agreed.shape, strict=True)
    ]
    return float(best - shares[0] @ agreed @ shares[1])


def fitting_strength(found: float) -> float:
    """Return the strength of Hough matching that a rigidity bears.

    Examples
    --------
    >>> fitting_strength(0.0), fitting_strength(3.0)
    (0.0, 0.5)
    """
    share = (found - LEAST_RIGID) / (RIGID - LEAST_RIGID)
    return STRONGEST * float(np.clip(share, 0.0, 1.0))


def _by_lines(votes: Any, source: Grid, target: Grid, home: Home) -> Any:
    """Votes with pairs of rows down and pairs of columns across."""
    xp = home.xp
    turned = xp.reshape(votes, (source.h, source.w, target.h, target.w))
    turned = xp.permute_dims(turned, (0, 2, 1, 3))
    return xp.reshape(turned, (source.h * target.h, source.w * target.w))


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
