"""The pairs behind `frot.pairwise`: cut into tiles, solved by workers, kept and put in place.

A tile is enough work to be worth sending, and few clouds.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from frot._base.errors import InputError, SolverError, brief, hearing, warn_caller
from frot._base.fingerprint import fingerprint
from frot._base.parallel import spread
from frot._base.stopping import Interrupted
from frot._base.tables import frame_like
from frot._base.validate import check_points, check_weights
from frot.api.solve import solve
from frot.groups.groups import Groups
from frot.solvers.progress import counting_bar

__all__ = [
    "Call",
    "Cloud",
    "Clouds",
    "Effort",
    "Table",
    "Tile",
    "check_clouds",
    "check_same_features",
    "cut_tiles",
    "fill_table",
]


class Cloud(NamedTuple):
    """Points of shape (n, d), their weights, and what they are called in messages."""

    name: str
    points: np.ndarray
    weights: np.ndarray | None

    def __repr__(self) -> str:
        return f"Cloud({self.name!r}, {self.points.shape})"


class Clouds(NamedTuple):
    """Clouds of the same features, and the names of these where the clouds have any."""

    members: tuple[Cloud, ...]
    columns: tuple[str, ...] | None

    @property
    def width(self) -> int:
        """Features."""
        return self.members[0].points.shape[1]

    @property
    def sizes(self) -> np.ndarray:
        """Points in each cloud."""
        return np.array([len(cloud.points) for cloud in self.members])


def check_clouds(
    clouds: Any,
    weights: Any,
    normalise: bool,
    name: str = "clouds",
    weights_name: str = "weights",
    any_mass: bool = False,
) -> Clouds:
    """Check every cloud and its weights; the message names the one that cannot be used.

    Examples
    --------
    >>> check_clouds([[[0.0]], [[1.0], [2.0]]], None, normalise=False).sizes
    array([1, 2])
    >>> check_clouds([[[0.0]], [[float("nan")]]], None, normalise=False)
    Traceback (most recent call last):
    ...
    frot.InputError: clouds[1]: 1 of 1 entries are NaN or infinite, ...
    """
    listed = _listed(clouds, name)
    given = [None] * len(listed) if weights is None else _weights(weights, weights_name, name)
    if len(given) != len(listed):
        raise InputError(
            f"{weights_name}: {len(given)} vectors for {len(listed)} {name}; give one for each, "
            "or None where it is uniform"
        )
    members: list[Cloud] = []
    # What the others are compared with: the first, or the first whose features have names.
    model: Clouds | None = None
    for number, (one, weight) in enumerate(zip(listed, given, strict=True)):
        points, columns = check_points(one, f"{name}[{number}]")
        check_weights(weight, len(points), f"{weights_name}[{number}]", normalise, any_mass)
        # As they came, so that they are made to sum to one only once.
        weight = None if weight is None else np.asarray(weight, dtype=float)
        members.append(Cloud(f"{name}[{number}]", points, weight))
        alone = Clouds((members[-1],), columns)
        if model is not None:
            check_same_features(model, alone)
        if model is None or (model.columns is None and columns is not None):
            model = alone
    return Clouds(tuple(members), model.columns if model is not None else None)


def check_same_features(first: Clouds, second: Clouds) -> None:
    """Refuse clouds of other features than the first's."""
    one, other = first.members[0].name, second.members[0].name
    if first.width != second.width:
        raise InputError(
            f"{other}: has {second.width} features and {one} has {first.width}; they must be the "
            "same ones"
        )
    if None not in (first.columns, second.columns) and first.columns != second.columns:
        raise InputError(
            f"{other}: has other columns than {one}; reorder them, {other}[{one}.columns]"
        )


def _listed(clouds: Any, name: str) -> Sequence[Any]:
    if isinstance(clouds, Mapping):
        raise InputError(f"{name}: is a mapping; pass list({name}.values())")
    # An array of objects may hold clouds of different sizes, and a frame never does.
    whole = getattr(clouds, "ndim", 3) < 3 and getattr(clouds, "dtype", None) != np.dtype(object)
    if whole or frame_like(clouds)[1] is not None:
        raise InputError(f"{name}: is one table; pass a list of clouds, [{name}]")
    if isinstance(clouds, str) or not isinstance(clouds, Iterable):
        raise InputError(f"{name}: {brief(clouds)} is not a list of clouds")
    try:
        listed = list(clouds)
    except TypeError:
        raise InputError(f"{name}: {brief(clouds)} is not a list of clouds") from None
    if not listed:
        raise InputError(f"{name}: is empty; give one cloud at least")
    return listed


def _weights(weights: Any, name: str, of: str) -> Sequence[Any]:
    try:
        if not isinstance(weights, str | Mapping | Set):
            return list(weights)
    except TypeError:
        # Some say that they can be read one by one, and cannot.
        pass
    raise InputError(f"{name}: is not a list of weight vectors; give one for each of {of}")


# Tiles to aim at: what a few hundred workers can share evenly, as long as a tile lasts longer
# than it takes to send it, and not so long that much is lost with it.
TILES = 256
LEAST_SECONDS, MOST_SECONDS = 0.1, 1.0
# Clouds that go along with a tile, unless a single pair has more.
MOST_BYTES = 4e6


@dataclass(frozen=True)
class Effort:
    """Rough seconds for a pair of clouds of n and m points: per_pair + per_entry * n * m.

    Examples
    --------
    >>> Effort(per_pair=1.0, per_entry=0.5).of(2, 3, 4)
    8.0
    """

    per_pair: float
    per_entry: float

    def of(self, pairs: float, n: float, m: float) -> float:
        """Return the seconds for some pairs, of n and m points in all."""
        return self.per_pair * pairs + self.per_entry * n * m


class Tile(NamedTuple):
    """The pairs (i, j) of some rows and columns; of equal ones only those with i <= j.

    Examples
    --------
    >>> list(Tile(range(0, 2), range(2, 4)).pairs(diagonal=False))
    [(0, 2), (0, 3), (1, 2), (1, 3)]
    >>> list(Tile(range(0, 2), range(0, 2), triangle=True).pairs(diagonal=True))
    [(0, 0), (0, 1), (1, 1)]
    """

    rows: range
    cols: range
    triangle: bool = False

    def pairs(self, diagonal: bool) -> Iterator[tuple[int, int]]:
        """Yield the pairs, of a triangle with or without its diagonal."""
        for i in self.rows:
            for j in self.cols:
                if not self.triangle or i < j or (diagonal and i == j):
                    yield i, j

    def count_pairs(self, diagonal: bool) -> int:
        """Return how many pairs there are."""
        n = len(self.rows)
        return n * (n + 1 if diagonal else n - 1) // 2 if self.triangle else n * len(self.cols)

    def halves(self) -> list[Tile]:
        """Cut the longer side in two; a triangle into two triangles and a square."""
        rows, cols, triangle = self
        if triangle:
            a, b = _halves(rows)
            return [Tile(a, a, True), Tile(a, b), Tile(b, b, True)]
        if len(rows) >= len(cols):
            return [Tile(half, cols) for half in _halves(rows)]
        return [Tile(rows, half) for half in _halves(cols)]


def _halves(whole: range) -> tuple[range, range]:
    middle = whole.start + len(whole) // 2
    return range(whole.start, middle), range(middle, whole.stop)


def cut_tiles(
    rows: np.ndarray, cols: np.ndarray | None, effort: Effort, width: int, diagonal: bool
) -> tuple[list[Tile], list[float]]:
    """Cut the matrix of all pairs into tiles of about equal effort, the dearest first.

    They depend on nothing but the arguments, so that a run that goes on where another ended has
    the same ones, with however many workers.

    Parameters
    ----------
    rows, cols : arrays of shape (N,) and (M,) of int
        Points in each cloud; None for `cols` is the upper triangle of rows by rows.
    effort : Effort
    width : int
        Features of a point.
    diagonal : bool
        Whether the triangle has its diagonal.

    Returns
    -------
    tiles : list of Tile
    seconds : list of float
        The effort of each.

    Examples
    --------
    >>> tiles, seconds = cut_tiles(np.full(3, 10), None, Effort(0.07, 0.0), 1, diagonal=False)
    >>> [list(tile.pairs(diagonal=False)) for tile in tiles]
    [[(0, 1)], [(0, 2)], [(1, 2)]]
    >>> seconds
    [0.07, 0.07, 0.07]
    """
    up_to_row = np.concatenate([[0], np.cumsum(rows)])
    up_to_col = up_to_row if cols is None else np.concatenate([[0], np.cumsum(cols)])

    def seconds(tile: Tile) -> float:
        n, m = _total(up_to_row, tile.rows), _total(up_to_col, tile.cols)
        return effort.of(tile.count_pairs(diagonal), n, m / 2 if tile.triangle else m)

    def size(tile: Tile) -> float:
        n, m = _total(up_to_row, tile.rows), _total(up_to_col, tile.cols)
        return 8.0 * width * (n if tile.triangle else n + m)

    whole = Tile(
        range(len(rows)), range(len(rows) if cols is None else len(cols)), triangle=cols is None
    )
    most = float(np.clip(seconds(whole) / TILES, LEAST_SECONDS, MOST_SECONDS))
    found: list[tuple[float, Tile]] = []
    uncut = [whole]
    while uncut:
        tile = uncut.pop()
        count = tile.count_pairs(diagonal)
        if count == 0:
            continue
        cost = seconds(tile)
        if (cost <= most and size(tile) <= MOST_BYTES) or (count == 1 and len(tile.rows) == 1):
            found.append((cost, tile))
        else:
            uncut += reversed(tile.halves())
    # A long one that begins last would leave all other workers idle.
    found.sort(key=lambda pair: -pair[0])
    return [tile for _, tile in found], [cost for cost, _ in found]


def _total(up_to: np.ndarray, where: range) -> float:
    return float(up_to[where.stop] - up_to[where.start])


@dataclass(frozen=True, eq=False)
class Call:
    """What every pair is solved with; goes to the workers.

    `diagonal` is whether clouds are solved against themselves too, and `any_mass` whether weights
    need not sum to one.
    """

    groups: Groups
    options: dict[str, Any]
    memory_budget: float
    diagonal: bool
    any_mass: bool = False


class _Job(NamedTuple):
    """A tile with the clouds it needs."""

    number: int
    tile: Tile
    rows: tuple[Cloud, ...]
    cols: tuple[Cloud, ...]
    call: Call


@dataclass(frozen=True, eq=False)
class Table:
    """All the pairs there are to solve, in tiles."""

    first: Clouds
    second: Clouds | None
    call: Call
    effort: Effort

    @cached_property
    def cut(self) -> tuple[list[Tile], list[float]]:
        """The tiles and the effort of each."""
        cols = None if self.second is None else self.second.sizes
        diagonal = self.call.diagonal
        return cut_tiles(self.first.sizes, cols, self.effort, self.first.width, diagonal)

    @property
    def columns(self) -> Clouds:
        """The clouds of the columns."""
        return self.first if self.second is None else self.second

    def job(self, number: int) -> _Job:
        """Return a tile and what it takes to solve it."""
        tile = self.cut[0][number]
        rows = self.first.members[tile.rows.start : tile.rows.stop]
        cols = self.columns.members[tile.cols.start : tile.cols.stop]
        return _Job(number, tile, rows, rows if tile.triangle else cols, self.call)

    def pairs(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the pairs of a tile, in the order they are solved in."""
        pairs = np.array(list(self.cut[0][number].pairs(self.call.diagonal)))
        return pairs[:, 0], pairs[:, 1]

    def fingerprint(self) -> str:
        """Everything the values depend on, and how the pairs are numbered."""
        sides = [self.first] if self.second is None else [self.first, self.second]
        return fingerprint(
            kind="pairwise 1",
            clouds=[[(one.points, one.weights) for one in side.members] for side in sides],
            groups=(self.call.groups.flat, self.call.groups.offsets),
            tiles=[(t.rows.start, t.rows.stop, t.cols.start, t.cols.stop) for t in self.cut[0]],
            diagonal=self.call.diagonal,
            **self.call.options,
        )


def fill_table(
    table: Table, n_jobs: int | None, progress: bool, path: str | os.PathLike[str] | None
) -> np.ndarray:
    """Solve what the checkpoint does not have, and return every value in its place, (N, M)."""
    # Not before it is needed: it loads SQLite.
    from frot._base.store import open_checkpoint

    shape = (len(table.first.members), len(table.columns.members))
    values, gaps, short = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool)
    tiles, seconds = table.cut
    count = sum(tile.count_pairs(table.call.diagonal) for tile in tiles)

    def place(number: int, found: np.ndarray) -> None:
        where = table.pairs(number)
        values[where], gaps[where], short[where] = found.T

    with nullcontext() if path is None else open_checkpoint(path, table.fingerprint()) as kept:
        known = {} if kept is None else kept.finished()
        for number, found in known.items():
            place(number, found)
        before = sum(map(len, known.values())), sum(seconds[number] for number in known)
        left = [number for number in range(len(tiles)) if number not in known]
        # Workers are not started for nothing.
        work = spread(_solve_tile, map(table.job, left), n_jobs if left else 1)
        bar = counting_bar("pairs", count, sum(seconds), enabled=progress, before=before)
        # Threads that silence a library's warnings at the same time may leave them silenced.
        with warnings.catch_warnings(), bar as show, closing(work) as solved:
            for number, found in solved:
                if kept is not None:
                    kept.add(number, found)
                place(number, found)
                show(len(found), seconds[number])
    if short.any():
        _warn(table, gaps, short, count)
    if table.second is None:
        # Only pairs on and above the diagonal were solved: below it all is zero.
        values = values + np.triu(values, 1).T
    return values


def _solve_tile(job: _Job) -> tuple[int, np.ndarray]:
    """Return the tile's number, and value, gap and whether it fell short, for each pair.

    Runs in a worker, where nobody hears a warning.
    """
    found = []
    for i, j in job.tile.pairs(job.call.diagonal):
        one, other = job.rows[i - job.tile.rows.start], job.cols[j - job.tile.cols.start]
        found.append(_solve_pair(one, other, job.call))
    return job.number, np.array(found)


def _solve_pair(one: Cloud, other: Cloud, call: Call) -> tuple[float, float, bool]:
    try:
        with hearing() as heard:
            result = solve(
                one.points,
                other.points,
                call.groups,
                a=one.weights,
                b=other.weights,
                # They were checked at the door; here two that are just within bounds may not
                # be within bounds of one another.
                normalise_weights=not call.any_mass,
                memory_budget=call.memory_budget,
                **call.options,
            )
    except (InputError, SolverError) as error:
        raise type(error)(f"{one.name}, {other.name}: {error}") from None
    except Interrupted:
        # The answer of one pair is none of the whole.
        raise KeyboardInterrupt from None
    # Clouds too far apart to keep mass at their tau are heard of too, and are no news in a table.
    return result.value, result.gap, bool(heard) and not result.status.ok


def _warn(table: Table, gaps: np.ndarray, short: np.ndarray, count: int) -> None:
    i, j = np.unravel_index(np.argmax(np.where(short, gaps, -1.0)), gaps.shape)
    one, other = table.first.members[i].name, table.columns.members[j].name
    warn_caller(
        f"pairwise: {int(short.sum())} of {count} pairs ended before their tolerance. The worst "
        f"gap is {gaps[i, j]:.1e}, between {one} and {other}; frot.solve on these two tells more. "
        "Raise max_iter or time_limit, or ask for less with tol."
    )
