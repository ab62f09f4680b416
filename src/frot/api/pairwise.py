"""`pairwise`: the matrix of distances between many clouds, spread over workers, resumable.

Clouds are checked and their pairs cut into tiles, which workers solve. A tile is enough work to be
worth sending, and few clouds.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from frot._base.errors import InputError, SolverError, brief, collect_warnings, warn_caller
from frot._base.files import check_path
from frot._base.fingerprint import fingerprint
from frot._base.parallel import check_n_jobs, spread
from frot._base.spelling import second_names
from frot._base.stopping import Interrupted
from frot._base.validate import (
    check_flag,
    check_metric,
    check_number,
    check_points,
    check_weights,
    frame_like,
    read_numbers,
)
from frot.api.normalise import refuse_normalised_distance
from frot.api.run import check_options
from frot.api.solve import solve
from frot.costs import MEMORY_BUDGET, METRICS
from frot.groups.groups import Groups
from frot.problem.adversary import SimplexFamily
from frot.problem.terms import Relative, check_tau
from frot.solvers.choose import Solver
from frot.solvers.progress import counting_bar

# Seconds for a pair, and for an entry of a cost matrix: measured, and right to a factor of
# three or so, which is enough to cut the work into tiles.
PER_PAIR, PER_ENTRY = 5e-3, 1.5e-7
# How much dearer an entry is where Python computes it, and where there is entropy on the plan.
CALLABLE, ENTROPIC = 15.0, 5.0
# The one metric of SciPy's in which a point is not at distance zero from itself.
NO_IDENTITY = "russellrao"


@second_names
def pairwise(
    clouds: Any,
    groups: Any = None,
    *,
    others: Any = None,
    weights: Any = None,
    other_weights: Any = None,
    p: float = 2.0,
    metric: str | Callable[[np.ndarray, np.ndarray], float] = "euclidean",
    eta: float | Relative = 0.0,
    eps: float | Relative = 0.0,
    prior: Any = None,
    adversary: Any = None,
    tau: Any = None,
    penalty: str = "kl",
    normalise: str = "none",
    normalise_weights: bool = False,
    solver: str | Solver = "auto",
    tol: float | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    memory_budget: float = MEMORY_BUDGET,
    n_jobs: int | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
) -> np.ndarray:
    r"""Return the feature-robust Wasserstein distances between all pairs of clouds.

    .. math::
        D_{ij} = \mathrm{FRWD}_p(\mu_i, \mu_j) = \Big( \min_\Pi \max_{\alpha \in \Sigma^L}
        \sum_{kl} \pi_{kl} \sum_g \alpha_g\, d(x_k^{(g)}, y_l^{(g)})^p \Big)^{1/p}

    Without `others` the matrix is symmetric: d is taken to be symmetric and one of each two
    pairs is solved. Its diagonal is zero, unless d is a callable or "russellrao": then it is
    computed, since nothing says that such a d is zero between equal points.

    With `eta` or `eps` the entries are the optimal values *with their entropies*, to the power
    1/p (values below zero count as zero), and so they are with sets of weights other than the
    (capped) simplex. That is no distance: the diagonal, which is computed,
    is not zero, and the triangle inequality may fail. With `tau` the entries include the price of
    mass that is not kept; a cloud keeps all of itself.

    Parameters
    ----------
    clouds : list of N arrays of shape (n_i, d), or of DataFrames
        The clouds; they may differ in size.
    groups : optional
        What `Groups.parse` reads; the default is one group per feature.
    others : list of M arrays of shape (m_j, d), optional
        Distances are from `clouds` to these, rather than among `clouds`.
    weights, other_weights : lists of arrays of shapes (n_i,) and (m_j,), optional
        Weights of each cloud's points, which sum to one; None, for all or for one, is uniform.
    p : float
        The order, at least 1.
    metric : str or callable
        The distance d within a group, as in `solve`.
    tau, penalty :
        As in `solve`: weights may then sum to anything. Among `clouds` alone both sides have one
        price, so that the matrix is symmetric.
    eta, eps, prior, adversary, normalise_weights, solver, tol, max_iter, memory_budget :
        As in `solve`. A `relative` eta or eps is a share of each pair's own mean cost, and the
        budget is for each worker.
    normalise : {"none"}
        The other ways of `solve` depend on the pair, and make distances that cannot be compared.
    time_limit : float, optional
        Seconds at most for one pair.
    n_jobs : int, optional
        Worker processes; -1 is one per processor. 1 is this process. None, the default, follows
        ``joblib.parallel_config``: ``parallel_config(backend="dask")`` spreads the work over a
        Dask cluster, where tasks of lost workers are run again on others.
    progress : bool
        Show a bar with the count of pairs and the time left, on stderr.
    checkpoint : path, optional
        A file that keeps what is finished. The same call with the same file goes on from there,
        after Ctrl-C, a crash or a kill, with whatever `n_jobs`. A callable metric is known by
        its code, not by what globals it reads.

    Returns
    -------
    array of shape (N, N), or (N, M) with `others`

    Raises
    ------
    InputError
        If an argument cannot be used, before any work; the message names the cloud. Also if
        `checkpoint` is of other data or options.

    Warns
    -----
    ConvergenceWarning
        Once, if some pairs ended before their tolerance; it says how many, and the worst.

    Examples
    --------
    >>> import frot
    >>> clouds = [[[0.0, 0.0]], [[3.0, 4.0]], [[0.0, 1.0], [0.0, 3.0]]]
    >>> frot.pairwise(clouds, groups="all").round(3)
    array([[0.   , 5.   , 2.236],
           [5.   , 0.   , 3.742],
           [2.236, 3.742, 0.   ]])
    >>> frot.pairwise(clouds, groups="all", others=clouds[:1]).round(3)
    array([[0.   ],
           [5.   ],
           [2.236]])
    """
    prices = check_tau(tau, penalty)
    any_mass = prices is not None and not normalise_weights
    first = check_clouds(clouds, weights, normalise_weights, any_mass=any_mass)
    if others is None:
        if other_weights is not None:
            raise InputError("other_weights: are of no clouds; pass others, or use weights")
        if prices is not None and prices[0] != prices[1]:
            raise InputError(
                "tau: the prices of the two sides differ, and so would the matrix and its "
                "transpose; pass one price, or others=clouds"
            )
        second = None
    else:
        second = check_clouds(
            others, other_weights, normalise_weights, "others", "other_weights", any_mass
        )
        check_same_features(first, second)
    columns = first.columns or (second.columns if second is not None else None)
    _refuse_clouds_as_groups(groups)
    parsed = Groups.parse(groups, first.width, columns)
    p = check_number(p, "p", least=1.0)
    metric = check_metric(metric, METRICS)
    n_jobs = check_n_jobs(n_jobs)
    progress = check_flag(progress, "progress")
    checkpoint = None if checkpoint is None else check_path(checkpoint, "checkpoint")
    shape = (len(parsed), int(first.sizes.max()), int((second or first).sizes.max()))
    refuse_normalised_distance(normalise)
    terms, run = check_options(
        shape, eta=eta, eps=0.0 if eps is None else eps, prior=prior, adversary=adversary, tau=tau,
        penalty=penalty, normalise=normalise, normalise_weights=normalise_weights, solver=solver,
        tol=tol, max_iter=max_iter, time_limit=time_limit,
    )  # fmt: skip
    options = {
        "metric": metric,
        "p": p,
        "eta": terms.eta,
        "eps": terms.eps,
        "prior": None if prior is None else read_numbers(prior, "prior"),
        "normalise": normalise,
        "solver": solver,
        # As the chosen solver has them: plain numbers.
        "tol": None if tol is None else run.solver.tol,
        "max_iter": None if max_iter is None else run.solver.max_iter,
        "time_limit": None if time_limit is None else run.solver.time_limit,
    }
    # Only what is asked for is added, for checkpoints that are there.
    if prices is not None:
        options |= {"tau": prices, "penalty": penalty}
    if adversary is not None:
        # Eta is among the options.
        options["adversary"] = adversary
        if isinstance(adversary, SimplexFamily):
            options["adversary"] = adversary.having(0.0, adversary.log_prior)
    per_entry = PER_ENTRY * len(parsed) * (CALLABLE if callable(metric) else 1.0)
    per_entry *= ENTROPIC if terms.regularisation[1] > 0.0 else 1.0
    apart = callable(metric) or metric == NO_IDENTITY or any(terms.regularisation)
    apart = apart or not terms.adversary.on_simplex
    budget = check_number(memory_budget, "memory_budget")
    call = Call(parsed, options, budget, diagonal=apart, any_mass=any_mass)
    table = PairTable(first, second, call, (PER_PAIR, per_entry))
    values = fill_table(table, n_jobs, progress, checkpoint)
    return np.maximum(values, 0.0) ** (1.0 / p)


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


def _refuse_clouds_as_groups(groups: Any) -> None:
    """Refuse the second clouds of a call that is written as SciPy's `cdist` is."""
    listed = groups if isinstance(groups, list | tuple) else ()
    if getattr(groups, "ndim", 0) == 3 or any(getattr(one, "ndim", 0) == 2 for one in listed):
        raise InputError("groups: are clouds; clouds to compare with are given by name: others=...")


def check_clouds(
    clouds: Any,
    weights: Any,
    normalise: bool,
    name: str = "clouds",
    weights_name: str = "weights",
    any_mass: bool = False,
) -> Clouds:
    """Check every cloud and its weights; the message names the one that cannot be used."""
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
    rows: np.ndarray,
    cols: np.ndarray | None,
    effort: tuple[float, float],
    width: int,
    diagonal: bool,
) -> tuple[list[Tile], list[float]]:
    """Cut the matrix of all pairs into tiles of about equal effort, the dearest first.

    `rows` and `cols` are the points in each cloud, (N,) and (M,); None for `cols` is the upper
    triangle of rows by rows, with its `diagonal` or without. `effort` are rough seconds for a pair
    and for an entry of its cost matrix, and `width` the features of a point. Tiles depend on
    nothing but the arguments, so that a run that goes on where another ended has the same ones,
    with however many workers. Returns them, and the seconds of each.
    """
    up_to_row = np.concatenate([[0], np.cumsum(rows)])
    up_to_col = up_to_row if cols is None else np.concatenate([[0], np.cumsum(cols)])

    def seconds(tile: Tile) -> float:
        n, m = _total(up_to_row, tile.rows), _total(up_to_col, tile.cols)
        per_pair, per_entry = effort
        half = 0.5 if tile.triangle else 1.0
        return per_pair * tile.count_pairs(diagonal) + per_entry * n * (half * m)

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
class PairTable:
    """All the pairs there are to solve, in tiles."""

    first: Clouds
    second: Clouds | None
    call: Call
    effort: tuple[float, float]

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
    table: PairTable, n_jobs: int | None, progress: bool, path: str | os.PathLike[str] | None
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
        with collect_warnings() as collected:
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
    # Clouds too far apart to keep mass at their tau warn too, which is no news in a table.
    return result.value, result.gap, bool(collected) and not result.status.ok


def _warn(table: PairTable, gaps: np.ndarray, short: np.ndarray, count: int) -> None:
    i, j = np.unravel_index(np.argmax(np.where(short, gaps, -1.0)), gaps.shape)
    one, other = table.first.members[i].name, table.columns.members[j].name
    warn_caller(
        f"pairwise: {int(short.sum())} of {count} pairs ended before their tolerance. The worst "
        f"gap is {gaps[i, j]:.1e}, between {one} and {other}; frot.solve on these two tells more. "
        "Raise max_iter or time_limit, or ask for less with tol."
    )
