"""From votes between cells to where a point lies: Hough matching, then reading off."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot.correspondence._features import Grid
from frot.correspondence._interpolation import sampling

__all__ = ["TRANSFERS", "Transfer", "Transferring", "hough", "hough_bins"]

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


TRANSFERS = ("median", "near", "boxes", "argmax", "soft")
# The windows, in cells, within which a match is a centre of gravity rather than the best cell.
WINDOWS = {"median": 3, "soft": 15}
# How far "median" looks, in strides, where no radius is given; the others look one stride far.
SPREAD = 1.5
# Cells that weigh less than this share of the closest one are left out.
FAINT = 0.01
# A match within this many cells of the answer counts as agreeing with it.
AGREES = 2.0
# Points that are moved at once: their weights are a matrix of points and cells.
AT_ONCE = 2_000


@dataclass(frozen=True, eq=False)
class Transfer:
    """Where points went.

    Attributes
    ----------
    points : array of shape (k, 2)
        x and y in pixels of the target.
    confidence : array of shape (k,)
        Share of the votes of the cells within a stride of a point that lie within two cells of
        the answer.
    """

    points: np.ndarray
    confidence: np.ndarray


@dataclass(frozen=True, eq=False)
class Transferring:
    r"""Scores between the cells of two grids, read off at points.

    A point moves by the mean (or median) displacement of the cells around it that have votes (a
    cell without mass has none),

    .. math:: t(p) = p + \operatorname{mean}_{i \in N(p)} (d_i - c_i), \qquad
        d_i = c_{j^*(i)}, \quad j^*(i) = \arg\max_j \mathrm{score}_{ij}

    Parameters
    ----------
    scores : array of shape (n, m)
    source, target : Grid
    home : Home
    mode : {"median", "near", "boxes", "argmax", "soft"}
        "median" takes the weighted median of the displacements, x and y apart, with Gaussian
        weights around the point: cells that went astray do not matter as long as they are the
        fewer. "near" takes the mean over cells whose centres are within a stride, "boxes" over
        all cells that see the point, "argmax" the closest cell. "soft" is "near" with :math:`d_i`
        the centre of gravity of the scores in 15 x 15 cells around the best one ("median" does
        so in 3 x 3, for places between cells).
    radius : float, optional
        Pixels instead of one stride; the standard deviation of "median" instead of one and a half.
    """

    scores: Any
    source: Grid
    target: Grid
    home: Home
    mode: str = "median"
    radius: float | None = None

    @cached_property
    def voting(self) -> np.ndarray:
        """Which cells of the source have votes, (n,): those off a mask have not."""
        some = to_numpy(self.home.xp.any(self.scores > 0.0, axis=1))
        return some if some.any() else np.ones_like(some)

    def around(self, points: np.ndarray) -> np.ndarray:
        """Return the weights of the source's cells around each point, (k, n), rows sum to one."""
        return self._around(points, self.mode, self.radius)

    def _around(self, points: np.ndarray, mode: str, radius: float | None) -> np.ndarray:
        apart = _apart(points, self.source.centres)
        apart[:, ~self.voting] = np.inf
        closest = apart <= apart.min(axis=1, keepdims=True)
        if mode == "median":
            spread = SPREAD * self.source.stride if radius is None else radius
            return _gaussian(apart, spread)
        if mode == "argmax":
            chosen = closest
        elif mode == "boxes":
            boxes = self.source.boxes
            inside = (points[:, None, :] >= boxes[:, :2]) & (points[:, None, :] <= boxes[:, 2:])
            chosen = inside.all(axis=2) & self.voting
        else:
            chosen = apart <= (self.source.stride if radius is None else radius)
        # A point beyond the last cells still belongs to the closest one.
        chosen = np.where(chosen.any(axis=1, keepdims=True), chosen, closest)
        return chosen / chosen.sum(axis=1, keepdims=True)

    def __call__(self, points: np.ndarray) -> Transfer:
        """Move points, (k, 2), all in pixels of the grids."""
        parts = [
            self._moved(points[start : start + AT_ONCE])
            for start in range(0, max(len(points), 1), AT_ONCE)
        ]
        return Transfer(
            np.concatenate([part.points for part in parts]),
            np.concatenate([part.confidence for part in parts]),
        )

    def _moved(self, points: np.ndarray) -> Transfer:
        if len(points) == 0:
            return Transfer(np.zeros((0, 2)), np.zeros(0))
        weights = self.around(points)
        used = np.flatnonzero(weights.any(axis=0))
        weights = weights[:, used]
        moves = self._lands(self._rows(used)) - self.source.centres[used]
        moved = points + (_medians(weights, moves) if self.mode == "median" else weights @ moves)
        return Transfer(moved, self._confidence(self._votes(points), moved))

    def _rows(self, cells: np.ndarray) -> np.ndarray:
        """Scores of some cells of the source, (k, m), in double precision."""
        taken = self.home.xp.take(self.scores, self.home.indices(cells), axis=0)
        return to_numpy(taken).astype(float)

    def _votes(self, points: np.ndarray) -> np.ndarray:
        """Shares of the target's cells in the votes of the cells close to each point, (k, m)."""
        # Some modes look far to be safe; where a point itself may be is known to its own cells.
        weights = self._around(points, "near", None)
        used = np.flatnonzero(weights.any(axis=0))
        return weights[:, used] @ _shares(self._rows(used))

    def _lands(self, rows: np.ndarray) -> np.ndarray:
        """Where some cells of the source lie in the target, (k, 2)."""
        best = rows.argmax(axis=1)
        centres = self.target.centres
        if self.mode not in WINDOWS:
            return centres[best]
        reach = WINDOWS[self.mode] // 2
        y, x = np.divmod(np.arange(self.target.count), self.target.w)
        near = (np.abs(y - y[best][:, None]) <= reach) & (np.abs(x - x[best][:, None]) <= reach)
        near = np.where(near, rows, 0.0)
        # A cell without any score stays where the first of equals is.
        alone = near.sum(axis=1) <= 0.0
        near[alone, best[alone]] = 1.0
        return _shares(near) @ centres

    def _confidence(self, votes: np.ndarray, moved: np.ndarray) -> np.ndarray:
        apart = _apart(moved, self.target.centres)
        close = apart <= np.maximum(AGREES * self.target.stride, apart.min(axis=1, keepdims=True))
        return np.clip((votes * close).sum(axis=1), 0.0, 1.0)

    def heatmap(self, point: np.ndarray, size: tuple[int, int], ratio: float) -> np.ndarray:
        """Return the votes of the cells close to a point, over the target's own pixels.

        Parameters
        ----------
        point : array of shape (2,)
            In pixels of the grids.
        size : (h, w)
            Of the target as it is on disk.
        ratio : float
            Pixels of the grid a pixel of the target.
        """
        votes = self._votes(point[None])[0]
        grid = self.target
        h, w = size
        down = sampling(np.arange(h) * ratio / grid.stride, grid.h)
        across = sampling(np.arange(w) * ratio / grid.stride, grid.w)
        heat = down @ votes.reshape(grid.h, grid.w) @ across.T
        return (heat / max(heat.max(), np.finfo(float).tiny)).astype(np.float32)


def _apart(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Distances between points and centres, (k, n), a coordinate at a time: no (k, n, 2) array."""
    x = points[:, :1] - centres[:, 0]
    y = points[:, 1:] - centres[:, 1]
    x *= x
    y *= y
    x += y
    return np.sqrt(x, out=x)


def _gaussian(apart: np.ndarray, spread: float) -> np.ndarray:
    """Weights that fall off with the distance, (k, n), rows sum to one."""
    # Relative to the closest cell, so that a point far from all of them has weights too.
    nearest = apart.min(axis=1, keepdims=True)
    weights = np.exp(-0.5 * (apart**2 - nearest**2) / max(spread, 1e-9) ** 2)
    weights[weights < FAINT] = 0.0
    return weights / weights.sum(axis=1, keepdims=True)


def _medians(weights: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """Weighted medians of the displacements (n, 2), x and y apart, for every row of weights."""
    found = np.empty((len(weights), 2))
    for axis in (0, 1):
        order = np.argsort(moves[:, axis], kind="stable")
        reached = np.cumsum(weights[:, order], axis=1) >= 0.5 - 1e-12
        found[:, axis] = moves[order, axis][reached.argmax(axis=1)]
    return found


def _shares(rows: np.ndarray) -> np.ndarray:
    """Rows as shares of their sums; rows without any score are spread evenly."""
    totals = rows.sum(axis=1, keepdims=True)
    even = 1.0 / rows.shape[1]
    return np.where(totals > 0.0, rows / np.where(totals > 0.0, totals, 1.0), even)
