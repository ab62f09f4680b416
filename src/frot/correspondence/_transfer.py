"""From scores between cells to where a point of the one image lies in the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frot._arrays import Home, to_numpy
from frot.correspondence._feature_map import Grid
from frot.correspondence._interpolate import sampling

__all__ = ["TRANSFERS", "Transfer", "Transferring"]

TRANSFERS = ("near", "boxes", "argmax", "soft")
# The window of the soft argmax, in cells.
WINDOW = 15
# A match within this many cells of the answer counts as agreeing with it.
AGREES = 2.0


@dataclass(frozen=True, eq=False)
class Transfer:
    """Where points went.

    Attributes
    ----------
    points : array of shape (k, 2)
        x and y in pixels of the target.
    confidence : array of shape (k,)
        Share of the votes of the cells around a point that lie within two cells of the answer.
    """

    points: np.ndarray
    confidence: np.ndarray


@dataclass(frozen=True, eq=False)
class Transferring:
    r"""Scores between the cells of two grids, read off at points.

    A point moves by the mean displacement of the cells around it,

    .. math:: t(p) = p + \operatorname{mean}_{i \in N(p)} (d_{i} - c_i), \qquad
        j^*(i) = \arg\max_j \mathrm{score}_{ij}

    Parameters
    ----------
    scores : array of shape (n, m)
    source, target : Grid
    home : Home
    mode : {"near", "boxes", "argmax", "soft"}
        Which cells N(p) are around a point and where each one lies in the target: those whose
        centres are within a stride of it ("near", "soft"), all that see it ("boxes", with
        :math:`d_i` the best cell's centre), or the closest one ("argmax"). "soft" takes for
        :math:`d_i` the centre of gravity of the scores around the best cell.
    radius : float, optional
        Pixels instead of one stride.
    """

    scores: Any
    source: Grid
    target: Grid
    home: Home
    mode: str = "near"
    radius: float | None = None

    def around(self, points: np.ndarray) -> np.ndarray:
        """Return the weights of the source's cells around each point, (k, n), rows sum to one."""
        centres = self.source.centres
        apart = np.linalg.norm(points[:, None, :] - centres[None, :, :], axis=2)
        closest = apart <= apart.min(axis=1, keepdims=True)
        if self.mode == "argmax":
            chosen = closest
        elif self.mode == "boxes":
            boxes = self.source.boxes
            inside = (points[:, None, :] >= boxes[:, :2]) & (points[:, None, :] <= boxes[:, 2:])
            chosen = inside.all(axis=2)
        else:
            chosen = apart <= (self.source.stride if self.radius is None else self.radius)
        # A point beyond the last cells still belongs to the closest one.
        chosen = np.where(chosen.any(axis=1, keepdims=True), chosen, closest)
        return chosen / chosen.sum(axis=1, keepdims=True)

    def __call__(self, points: np.ndarray) -> Transfer:
        """Move points, (k, 2), all in pixels of the grids."""
        weights = self.around(points)
        used = np.flatnonzero(weights.any(axis=0))
        rows = to_numpy(self.home.xp.take(self.scores, self.home.indices(used), axis=0))
        rows = rows.astype(float)
        lands = self._lands(rows)
        moved = points + weights[:, used] @ (lands - self.source.centres[used])
        return Transfer(moved, self._confidence(weights[:, used] @ _shares(rows), moved))

    def _lands(self, rows: np.ndarray) -> np.ndarray:
        """Where some cells of the source lie in the target, (k, 2)."""
        best = rows.argmax(axis=1)
        centres = self.target.centres
        if self.mode != "soft":
            return centres[best]
        reach = WINDOW // 2
        y, x = np.divmod(np.arange(self.target.count), self.target.w)
        near = (np.abs(y - y[best][:, None]) <= reach) & (np.abs(x - x[best][:, None]) <= reach)
        return _shares(np.where(near, rows, 0.0)) @ centres

    def _confidence(self, votes: np.ndarray, moved: np.ndarray) -> np.ndarray:
        apart = np.linalg.norm(moved[:, None, :] - self.target.centres[None, :, :], axis=2)
        close = apart <= np.maximum(AGREES * self.target.stride, apart.min(axis=1, keepdims=True))
        return np.clip((votes * close).sum(axis=1), 0.0, 1.0)

    def heatmap(self, point: np.ndarray, size: tuple[int, int], ratio: float) -> np.ndarray:
        """Return the scores of the cells around a point, over the target's own pixels.

        Parameters
        ----------
        point : array of shape (2,)
            In pixels of the grids.
        size : (h, w)
            Of the target as it is on disk.
        ratio : float
            Pixels of the grid a pixel of the target.
        """
        weights = self.around(point[None])
        used = np.flatnonzero(weights[0])
        rows = to_numpy(self.home.xp.take(self.scores, self.home.indices(used), axis=0))
        votes = weights[0, used] @ _shares(rows.astype(float))
        grid = self.target
        h, w = size
        down = sampling(np.arange(h) * ratio / grid.stride, grid.h)
        across = sampling(np.arange(w) * ratio / grid.stride, grid.w)
        heat = down @ votes.reshape(grid.h, grid.w) @ across.T
        return (heat / max(heat.max(), np.finfo(float).tiny)).astype(np.float32)


def _shares(rows: np.ndarray) -> np.ndarray:
    """Rows as shares of their sums; rows without any score are spread evenly."""
    totals = rows.sum(axis=1, keepdims=True)
    even = 1.0 / rows.shape[1]
    return np.where(totals > 0.0, rows / np.where(totals > 0.0, totals, 1.0), even)
