"""All pairs of clouds, cut into tiles that workers solve: one by one, or with eps in batches."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from frot._base.contract import check_cost_range, check_eps_range
from frot._base.errors import InputError, SolverError, collect_warnings
from frot._base.stopping import Interrupted
from frot._base.validate import check_weights
from frot.api.batch import run_batch
from frot.api.batch_work import BatchWork
from frot.api.clouds import Cloud, Clouds
from frot.api.solve import solve
from frot.costs.build import build_costs, factored_metric, points_costs
from frot.costs.stack import Stack, stack_of
from frot.groups.groups import Groups
from frot.problem.adversary import SimplexFamily
from frot.solvers.entropic.dense import dense_bytes

# Tiles to aim at: what a few hundred workers can share evenly, as long as a tile lasts longer
# than it takes to send it, and not so long that much is lost with it.
TILES = 256
LEAST_SECONDS, MOST_SECONDS = 0.1, 1.0
# Clouds that go along with a tile, unless a single pair has more.
MOST_BYTES = 4e6


@dataclass(frozen=True, eq=False)
class Together:
    """What `solve_batch` needs besides clouds and options: pairs with eps are solved in batches."""

    adversary: SimplexFamily
    tau: tuple[float, float]
    tol: float
    max_iter: int
    time_limit: float | None


@dataclass(frozen=True, eq=False)
class Call:
    """What every pair is solved with; goes to the workers.

    `options` are those of `solve`. `together` is None where pairs are solved one by one, and
    `any_mass` is whether weights need not sum to one.
    """

    groups: Groups
    options: dict[str, Any]
    memory_budget: float
    together: Together | None = None
    any_mass: bool = False


class Tile(NamedTuple):
    """The pairs of some rows and columns, and about how long they take."""

    rows: range
    cols: range
    seconds: float


class Job(NamedTuple):
    """A tile's number, its pairs (i, j), the clouds they are of, and what to solve them with."""

    number: int
    pairs: list[tuple[int, int]]
    rows: dict[int, Cloud]
    cols: dict[int, Cloud]
    call: Call


@dataclass(frozen=True, eq=False)
class PairTable:
    """All the pairs there are to solve, in tiles.

    Without `second` they are the pairs i < j of the first clouds, and those with i = j if
    `diagonal`.
    """

    first: Clouds
    second: Clouds | None
    call: Call
    tiles: list[Tile]
    diagonal: bool

    @property
    def columns(self) -> Clouds:
        """The clouds of the columns."""
        return self.first if self.second is None else self.second

    def pairs(self, number: int) -> list[tuple[int, int]]:
        """Return the pairs of a tile, in the order in which they are solved."""
        return pairs_of(self.tiles[number], self.second is None, self.diagonal)

    def job(self, number: int) -> Job:
        """Return a tile and what it takes to solve it."""
        tile = self.tiles[number]
        rows = {i: self.first.members[i] for i in tile.rows}
        cols = {j: self.columns.members[j] for j in tile.cols}
        return Job(number, self.pairs(number), rows, cols, self.call)


def pairs_of(tile: Tile, triangle: bool, diagonal: bool) -> list[tuple[int, int]]:
    """Return the pairs of a tile; of a triangle only those with i < j, or i <= j.

    Examples
    --------
    >>> pairs_of(Tile(range(0, 2), range(0, 2), 1.0), triangle=True, diagonal=True)
    [(0, 0), (0, 1), (1, 1)]
    """
    everything = ((i, j) for i in tile.rows for j in tile.cols)
    return [(i, j) for i, j in everything if not triangle or i < j or (diagonal and i == j)]


def cut_tiles(
    rows: np.ndarray,
    cols: np.ndarray | None,
    effort: tuple[float, float],
    width: int,
    diagonal: bool,
) -> list[Tile]:
    r"""Cut the matrix of all pairs into tiles of about equal effort, the dearest first.

    A pair of n and m points takes :math:`s + t n m` seconds, which is at most
    :math:`(\sqrt{s} + \sqrt{t} n)(\sqrt{s} + \sqrt{t} m)`: cut into blocks of clouds whose loads
    :math:`\sqrt{s} + \sqrt{t} n` sum to at most :math:`\sqrt{S}`, rows by columns are tiles of at
    most S seconds.

    Parameters
    ----------
    rows, cols : arrays of shape (N,) and (M,)
        The points in each cloud; None for `cols` is the upper triangle of rows by rows, with its
        `diagonal` or without.
    effort : pair of floats
        Rough seconds s for a pair and t for an entry of its cost matrix.
    width : int
        Features of a point.

    Tiles depend on nothing but the arguments, so that a run that goes on where another ended has
    the same ones, with however many workers.

    Examples
    --------
    >>> sizes = np.array([20, 20, 20])
    >>> [(tile.rows, tile.cols) for tile in cut_tiles(sizes, None, (0.02, 0.0), 3, False)]
    [(range(0, 2), range(0, 2)), (range(0, 2), range(2, 3))]
    """
    per_pair, per_entry = map(math.sqrt, effort)
    row_loads = per_pair + per_entry * rows
    col_loads = row_loads if cols is None else per_pair + per_entry * cols
    total = row_loads.sum() * col_loads.sum() * (0.5 if cols is None else 1.0)
    most = math.sqrt(np.clip(total / TILES, LEAST_SECONDS, MOST_SECONDS))
    most_points = 0.5 * MOST_BYTES / (8.0 * width)
    row_blocks = _blocks(rows, row_loads, most, most_points)
    col_blocks = row_blocks if cols is None else _blocks(cols, col_loads, most, most_points)
    tiles = []
    for row_block in row_blocks:
        for col_block in col_blocks:
            seconds = float(row_loads[row_block].sum() * col_loads[col_block].sum())
            own, its = (range(part.start, part.stop) for part in (row_block, col_block))
            tile = Tile(own, its, seconds)
            if cols is not None or row_block.start < col_block.start:
                tiles.append(tile)
            elif row_block.start == col_block.start and (diagonal or len(tile.rows) > 1):
                tiles.append(tile._replace(seconds=0.5 * seconds))
    # A long one that begins last would leave all other workers idle.
    return sorted(tiles, key=lambda tile: -tile.seconds)


def _blocks(
    sizes: np.ndarray, loads: np.ndarray, most_load: float, most_points: float
) -> list[slice]:
    """Cut clouds into runs of at most so much load and so many points, or of one cloud."""
    starts, load, points = [0], 0.0, 0.0
    for index, (more_load, more_points) in enumerate(zip(loads, sizes, strict=True)):
        too_much = load + more_load > most_load or points + more_points > most_points
        if too_much and index > starts[-1]:
            starts.append(index)
            load = points = 0.0
        load, points = load + more_load, points + more_points
    return [slice(*ends) for ends in zip(starts, [*starts[1:], len(sizes)], strict=True)]


def solve_tile(job: Job) -> tuple[int, np.ndarray]:
    """Return the tile's number, and value, gap and whether it fell short of each pair, (K, 3).

    Runs in a worker, where nobody hears a warning.
    """
    call, pairs = job.call, [(job.rows[i], job.cols[j]) for i, j in job.pairs]
    if call.together is None:
        return job.number, np.array([solve_pair(*pair, call) for pair in pairs], dtype=float)
    solved = np.empty((len(pairs), 3))
    for batch in batches_of(pairs):
        members = [pairs[k] for k in batch]
        room = members_that_fit(members, call)
        if room == 0:
            # Kernels that are not kept are streamed, one problem at a time.
            solved[batch] = [solve_pair(*pair, call) for pair in members]
            continue
        for first in range(0, len(batch), room):
            part = slice(first, first + room)
            solved[batch[part]] = solve_together(members[part], call)
    return job.number, solved


def solve_pair(source: Cloud, target: Cloud, call: Call) -> tuple[float, float, bool]:
    """Return value, gap and whether it fell short of its tolerance."""
    try:
        with collect_warnings() as collected:
            result = solve(
                source.points,
                target.points,
                call.groups,
                a=source.weights,
                b=target.weights,
                # Each cloud is within the contract on its own; a pair of two at the limits may
                # exceed it.
                normalise_weights=not call.any_mass,
                memory_budget=call.memory_budget,
                **call.options,
            )
    except (InputError, SolverError) as error:
        raise type(error)(f"{source.name}, {target.name}: {error}") from None
    except Interrupted:
        # The result of a single pair is not the matrix that was asked for.
        raise KeyboardInterrupt from None
    # In a table, pairs too far apart to keep mass at their tau are not warned of one by one.
    return result.value, result.gap, bool(collected) and not result.status.ok


def batches_of(pairs: list[tuple[Cloud, Cloud]]) -> list[list[int]]:
    """Sort pairs into batches of like shapes.

    Sides that round up to one power of two go together: padding then makes the kernels of a batch
    at most four times as large, and a step of 20 small members takes hardly longer than one of 5.
    """
    batches: dict[tuple[int, int], list[int]] = {}
    for k, (source, target) in enumerate(pairs):
        shape = (len(source.points) - 1).bit_length(), (len(target.points) - 1).bit_length()
        batches.setdefault(shape, []).append(k)
    return list(batches.values())


def members_that_fit(pairs: list[tuple[Cloud, Cloud]], call: Call) -> int:
    """Return how many members of a batch fit the memory budget: kernels, costs and points."""
    n = max(len(source.points) for source, _ in pairs)
    m = max(len(target.points) for _, target in pairs)
    points = 8 * (n + m) * pairs[0][0].points.shape[1]
    factored = factored_metric(call.options["metric"], call.options["p"]) is not None
    costs = 0 if factored else 8 * len(call.groups) * n * m
    return int(call.memory_budget // (dense_bytes(n, m) + points + costs))


def solve_together(pairs: list[tuple[Cloud, Cloud]], call: Call) -> np.ndarray:
    """Return value, gap and whether it fell short of pairs that are solved as one batch, (K, 3)."""
    together, options, groups = call.together, call.options, call.groups
    assert together is not None
    count = len(pairs)
    X, a = _padded([source for source, _ in pairs], call.any_mass)
    Y, b = _padded([target for _, target in pairs], call.any_mass)
    shares = tuple(weights / weights.sum(axis=1, keepdims=True) for weights in (a, b))
    factored = factored_metric(options["metric"], options["p"])
    with np.errstate(over="ignore", invalid="ignore"):
        if factored is not None:
            costs = points_costs(X, Y, groups, factored, shares)
        else:
            costs = _stacked(X, Y, shares, call)
        means = costs.product(*shares)
        largest = costs.peaks.max(axis=1)
    level, eps = means.mean(axis=1), options["eps"]
    for k, (source, target) in enumerate(pairs):
        names = f"{source.name}, {target.name}"
        check_cost_range(float(level[k]), float(largest[k]), f"{names}: costs")
        check_eps_range(float(level[k]), eps, f"costs of {names}")
    limit = None if together.time_limit is None else count * together.time_limit
    work = BatchWork(together.tol, together.max_iter, limit, time.perf_counter())
    amounts = np.full(count, options["eta"]), np.full(count, eps)
    try:
        result = run_batch(
            (costs, costs), (a, b), together.adversary, amounts, means, groups, None, work,
            call.memory_budget, tau=together.tau,
        )  # fmt: skip
    except SolverError as error:
        raise SolverError(f"{pairs[0][0].name}, {pairs[0][1].name} and others: {error}") from None
    short = [not status.ok for status in result.status]
    return np.column_stack([result.value, result.gap, short])


def _padded(clouds: list[Cloud], any_mass: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return points (K, n, d) and weights (K, n) of clouds of at most n points.

    What is missing stands at the place of the heaviest point and weighs nothing: it moves neither
    the centre of the points nor the scale of a kernel.
    """
    most, width = max(len(cloud.points) for cloud in clouds), clouds[0].points.shape[1]
    points, weights = np.empty((len(clouds), most, width)), np.zeros((len(clouds), most))
    for k, cloud in enumerate(clouds):
        n = len(cloud.points)
        weights[k, :n] = check_weights(cloud.weights, n, cloud.name, not any_mass, any_mass)
        points[k, :n] = cloud.points
        points[k, n:] = cloud.points[weights[k, :n].argmax()]
    return points, weights


def _stacked(X: np.ndarray, Y: np.ndarray, weights: tuple[np.ndarray, ...], call: Call) -> Stack:
    """Costs of a metric that does not factor: each member's stack, with the largest error."""
    metric, p = call.options["metric"], call.options["p"]
    stacks = [
        stack_of(build_costs(x, y, call.groups, metric, p, call.memory_budget, (u, v)))
        for x, y, u, v in zip(X, Y, *weights, strict=True)
    ]
    errors = [costs.error for costs in stacks if costs.error is not None]
    error = None
    if errors:
        rows, cols = zip(*errors, strict=True)
        error = np.max(rows, axis=0), np.max(cols, axis=0)
    relative = max(costs.relative for costs in stacks)
    return Stack(np.stack([costs.C for costs in stacks]), relative, error)
