"""Transfer of points: from scores between cells to where a point lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot.correspondence._features import Grid
from frot.correspondence._interpolation import sampling
from frot.correspondence.agreement import MIRRORED

TRANSFERS = ("median", "boxes", "argmax")
# A match within this many cells of the answer counts as agreeing with it.
AGREES = 2.0


@dataclass(frozen=True, eq=False)
class Transfer:
    """The transferred points.

    Attributes
    ----------
    points : array of shape (k, 2)
        x and y in pixels of the target.
    confidence : array of shape (k,)
        Of `Match.transfer` the chance that a point is right, see `frot.correspondence.chance`;
        of `Transferring` the share.
    share : array of shape (k,), optional
        Share of the votes of the cells within a stride of a point that lie within two cells of
        the answer.
    """

    points: np.ndarray
    confidence: np.ndarray
    share: np.ndarray | None = None


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
    mode : {"median", "boxes", "argmax"}
        "median" takes the weighted median of the displacements, x and y apart, with Gaussian
        weights around the point: cells that went astray do not matter as long as they are the
        fewer. :math:`d_i` is then the centre of gravity of the scores in 3 x 3 cells around the
        best one, for places between cells. "boxes" takes the mean over all cells that see the
        point, "argmax" the closest cell.
    blank : bool
        Whether one of the images has no content: then nothing is known, and no place is sure.
    reflected : bool
        Whether the images face opposite ways: displacements are those from the places mirrored,
        (-x, y).
    """

    scores: Any
    source: Grid
    target: Grid
    home: Home
    mode: str = "median"
    blank: bool = False
    reflected: bool = False

    def _placed(self, points: np.ndarray) -> np.ndarray:
        """Where displacements of points, (k, 2), begin."""
        return points * MIRRORED if self.reflected else points

    @cached_property
    def voting(self) -> np.ndarray:
        """Which cells of the source have votes, (n,): those off a mask have not."""
        some = to_numpy(self.home.xp.any(self.scores > 0.0, axis=1))
        return some if some.any() else np.ones_like(some)

    @cached_property
    def _centres(self) -> np.ndarray:
        return self.source.centres

    @cached_property
    def moves(self) -> np.ndarray:
        """Displacements of the source's cells, (n, 2)."""
        best = to_numpy(self.home.xp.argmax(self.scores, axis=1))
        centres = self.target.centres
        if self.mode != "median":
            return centres[best] - self._placed(self._centres)
        y, x = np.divmod(best, self.target.w)
        cells, inside = _window(x, y, 1, self.target)
        rows = np.arange(self.source.count)[:, None]
        near = np.where(inside, self._taken(self.scores, rows, cells), 0.0)
        # A cell without any score stays where the first of equals is.
        alone = near.sum(axis=1) <= 0.0
        near[alone] = cells[alone] == best[alone, None]
        places = np.einsum("nk,nkc->nc", _shares(near), centres[cells])
        return places - self._placed(self._centres)

    def _taken(self, values: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """What an array, (n, m), has for some pairs of cells, in double precision."""
        flat = self.home.xp.reshape(values, (-1,))
        places = rows * self.target.count + columns
        found = self.home.xp.take(flat, self.home.indices(places.ravel()))
        return to_numpy(found).astype(float).reshape(places.shape)

    def around(self, points: np.ndarray) -> np.ndarray:
        """Return the weights of the source's cells around each point, (k, n), rows sum to one."""
        weights = np.zeros((len(points), self.source.count))
        for some, cells in self._neighbourhoods(points):
            weights[np.ix_(some, cells)] = self._around(points[some], cells)
        return weights

    def _neighbourhoods(self, points: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield points that share a closest cell, and all cells with votes that may weigh there.

        Both as numbers. Points and cells are never all held against each other: there may be
        hundreds of thousands of the former.
        """
        grid, voting = self.source, np.flatnonzero(self.voting)
        x, y = _nearest(points, grid)
        owner = y * grid.w + x
        order = np.argsort(owner, kind="stable")
        owners, starts = np.unique(owner[order], return_index=True)
        across, down = np.ascontiguousarray(self._centres[voting].T)
        off = _apart_each(points, self._centres[owner])[order]
        far = np.maximum.reduceat(off, starts) if len(order) else off
        for cell, start, end, most in zip(owners, starts, [*starts[1:], None], far, strict=False):
            squares = (across - self._centres[cell, 0]) ** 2
            squares += (down - self._centres[cell, 1]) ** 2
            # How far the closest cell with votes may be from a point here.
            near = float(np.sqrt(squares.min())) + most
            reach = near
            if self.mode == "median":
                # There the Gaussian falls to .01 of the closest cell's.
                reach = float(np.hypot(near, np.sqrt(-2.0 * np.log(0.01)) * self._width))
            elif self.mode == "boxes":
                reach = max(near, 2**0.5 * (grid.receptive_field // 2))
            limit = ((reach + most) * (1.0 + 1e-9)) ** 2
            yield order[start:end], voting[squares <= limit]

    @property
    def _width(self) -> float:
        """Pixels: the standard deviation of "median"."""
        return 1.5 * self.source.spacing

    def _around(self, points: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Weights of some cells with votes, among them all that have any weight, (k, cells)."""
        if self.mode == "median":
            weights = _gaussian(points, self._centres[cells], self._width)
            return weights / weights.sum(axis=1, keepdims=True)
        apart = _apart(points, self._centres[cells])
        closest = apart <= apart.min(axis=1, keepdims=True)
        chosen = closest
        if self.mode == "boxes":
            boxes = self.source.boxes[cells]
            inside = (points[:, None, :] >= boxes[:, :2]) & (points[:, None, :] <= boxes[:, 2:])
            chosen = inside.all(axis=2)
        # A point beyond the last cells still belongs to the closest one.
        chosen = np.where(np.any(chosen, axis=1, keepdims=True), chosen, closest)
        return chosen / chosen.sum(axis=1, keepdims=True)

    def __call__(self, points: np.ndarray) -> Transfer:
        """Move points, (k, 2), all in pixels of the grids."""
        moved = self.moved(points)
        return Transfer(moved, self.confidence(points, moved))

    def confidence(self, points: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """Return the share of votes that points, (k, 2), have for these places, (k,)."""
        if self.blank:
            return np.zeros(len(points))
        return _in_parts(self._confidence, points, moved)

    def support(self, points: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """Return the share of the cells around points, (k, 2), that go to these places too, (k,).

        Cells weigh by a Gaussian of one and a half strides, whatever the mode, and agree if they
        take the point to within two cells of its place.
        """
        return _in_parts(self._support, points, moved)

    def _support(self, points: np.ndarray, moved: np.ndarray, around: int = 4) -> np.ndarray:
        grid = self.source
        x, y = _nearest(points, grid)
        cells, inside = _window(x, y, around, grid)
        # A Gaussian is a product, of what lies across and what lies down.
        steps, width = np.arange(-around, around + 1), self._width
        across, down = (
            np.exp(-0.5 * ((start + stride * (near + steps) - along) / width) ** 2)
            for start, stride, near, along in zip(
                grid.start[::-1], grid.strides[::-1], (x[:, None], y[:, None]),
                (points[:, :1], points[:, 1:]), strict=True,
            )
        )  # fmt: skip
        weights = (down[:, :, None] * across[:, None, :]).reshape(cells.shape)
        weights *= inside & self.voting[cells]
        start = self._placed(points) - moved
        squares = sum(
            (start[:, c, None] + np.ascontiguousarray(self.moves[:, c])[cells]) ** 2 for c in (0, 1)
        )
        total = weights.sum(axis=1)
        weights *= squares <= (AGREES * self.target.spacing) ** 2
        return weights.sum(axis=1) / np.where(total > 0.0, total, 1.0)

    def votes_at(self, y: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return whether the closest cell has votes, at all places of some rows and columns."""
        grid = self.source
        down, across = (
            np.clip(places.round().astype(int), 0, count - 1)
            for places, count in ((grid.rows(y), grid.h), (grid.columns(x), grid.w))
        )
        return self.voting.reshape(grid.h, grid.w)[np.ix_(down, across)] & (not self.blank)

    @property
    def inverse(self) -> Transferring:
        """The same scores read from the target to the source."""
        xp = self.home.xp
        scores = xp.matrix_transpose(self.scores)
        # Row after row in memory, as they are read.
        scores = xp.reshape(xp.reshape(scores, (-1,)), scores.shape)
        return replace(self, scores=scores, source=self.target, target=self.source)

    def moved(self, points: np.ndarray) -> np.ndarray:
        """Return where points, (k, 2), go, and not how sure that is."""
        found = np.zeros((len(points), 2))
        for some, cells in self._neighbourhoods(points):
            here, moves = points[some], self.moves[cells]
            if self.mode == "median":
                weights = _gaussian(here, self._centres[cells], self._width)
                found[some] = _medians(weights, moves)
            else:
                found[some] = self._around(here, cells) @ moves
        return self._placed(points) + found

    def _close(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cells with votes within a stride of each point, or else the closest: numbers, weights."""
        # Some modes look far to be safe; where a point itself may be is known to its own cells.
        x, y = _nearest(points, self.source)
        cells, inside = _window(x, y, 1, self.source)
        apart = _apart_each(points[:, None], self._centres[cells])
        chosen = inside & self.voting[cells] & (apart <= max(self.source.strides))
        voting = np.flatnonzero(self.voting)
        for one in np.flatnonzero(~chosen.any(axis=1)):
            far = _apart(points[one : one + 1], self._centres[voting])[0]
            closest = voting[far <= far.min()][: cells.shape[1]]
            cells[one, : len(closest)], chosen[one, : len(closest)] = closest, True
        return cells, chosen / chosen.sum(axis=1, keepdims=True)

    def _confidence(self, points: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """Share of the votes of the cells close to a point that are for its new place, (k,)."""
        grid = self.target
        columns, inside = _window(*_nearest(moved, grid), int(AGREES), grid)
        apart = _apart_each(moved[:, None], grid.centres[columns])
        least = apart.min(axis=1, keepdims=True, initial=np.inf)
        agree = inside & (apart <= np.maximum(AGREES * grid.spacing, least))
        rows, weights = self._close(points)
        votes = self._taken(self._shares, rows[:, :, None], columns[:, None, :]) * agree[:, None, :]
        return np.clip((weights * votes.sum(axis=2)).sum(axis=1), 0.0, 1.0)

    @cached_property
    def _shares(self) -> Any:
        """Scores as shares of a cell's votes, (n, m); cells without any spread theirs evenly."""
        xp = self.home.xp
        totals = xp.sum(self.scores, axis=1, keepdims=True)
        some = totals > 0.0
        even = xp.full_like(self.scores[:1, :1], 1.0 / self.target.count)
        return xp.where(some, self.scores / xp.where(some, totals, xp.ones_like(totals)), even)

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
        grid = self.target
        rows, weights = self._close(point[None])
        votes = weights[0] @ self._taken(self._shares, rows.T, np.arange(grid.count)[None, :])
        h, w = size
        down = sampling(grid.rows(np.arange(h) * ratio), grid.h)
        across = sampling(grid.columns(np.arange(w) * ratio), grid.w)
        heat = down @ votes.reshape(grid.h, grid.w) @ across.T
        return (heat / max(heat.max(), np.finfo(float).tiny)).astype(np.float32)


def _in_parts(
    read: Callable[[np.ndarray, np.ndarray], np.ndarray], points: np.ndarray, moved: np.ndarray,
    most: int = 2_000,
) -> np.ndarray:  # fmt: skip
    """Return what is read off for points and places, (k,), so many at a time.

    Their votes are a matrix of points and pairs of cells.
    """
    starts = range(0, max(len(points), 1), most)
    return np.concatenate([read(*(x[k : k + most] for x in (points, moved))) for k in starts])


def _nearest(points: np.ndarray, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Columns and rows of the cells closest to points, (k,) each."""
    x = np.clip(grid.columns(points[:, 0]).round().astype(int), 0, grid.w - 1)
    y = np.clip(grid.rows(points[:, 1]).round().astype(int), 0, grid.h - 1)
    return x, y


def _window(x: np.ndarray, y: np.ndarray, reach: int, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of the cells around some, (k, (2 reach + 1)^2), and which of them exist."""
    down, across = np.mgrid[-reach : reach + 1, -reach : reach + 1].reshape(2, -1)
    down, across = y[:, None] + down, x[:, None] + across
    inside = (down >= 0) & (down < grid.h) & (across >= 0) & (across < grid.w)
    cells = np.clip(down, 0, grid.h - 1) * grid.w + np.clip(across, 0, grid.w - 1)
    return cells, inside


def _apart(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Distances between points and centres, (k, n), a coordinate at a time: no (k, n, 2) array."""
    x = points[:, :1] - centres[:, 0]
    y = points[:, 1:] - centres[:, 1]
    x *= x
    y *= y
    x += y
    return np.sqrt(x, out=x)


def _apart_each(points: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Distances between points and the places that belong to them, (..., 2) both."""
    x, y = np.moveaxis(points - places, -1, 0)
    return np.sqrt(x * x + y * y)


def _gaussian(
    points: np.ndarray, centres: np.ndarray, spread: float, least: float = 0.01
) -> np.ndarray:
    """Weights that fall off with the distance, (k, n), of the closest cell 1; 0 below the least."""
    # There may be a hundred times a million of them: single precision, about one of the centres.
    near = ((points - centres[0]) / (2**0.5 * spread)).astype(np.float32)
    cells = ((centres - centres[0]) / (2**0.5 * spread)).astype(np.float32)
    x = near[:, :1] - cells[:, 0]
    y = near[:, 1:] - cells[:, 1]
    x *= x
    y *= y
    x += y
    # Relative to the closest cell, so that a point far from all of them has weights too.
    np.subtract(x.min(axis=1, keepdims=True), x, out=x)
    np.exp(x, out=x)
    x *= x >= least
    return x


def _medians(weights: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """Weighted medians of the displacements (n, 2), x and y apart, for every row of weights."""
    found = np.empty((len(weights), 2))
    for axis in (0, 1):
        order = np.argsort(moves[:, axis], kind="stable")
        reached = np.take(weights, order, axis=1).cumsum(axis=1)
        # Sums that are apart by less are the same but for rounding.
        half = (0.5 - 1e-6) * reached[:, -1:]
        found[:, axis] = moves[order, axis][(reached >= half).argmax(axis=1)]
    return found


def _shares(rows: np.ndarray) -> np.ndarray:
    """Rows as shares of their sums; rows without any score are spread evenly."""
    totals = rows.sum(axis=1, keepdims=True)
    even = 1.0 / rows.shape[1]
    return np.where(totals > 0.0, rows / np.where(totals > 0.0, totals, 1.0), even)
