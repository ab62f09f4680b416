"""`pairwise`: the matrix of distances between many clouds, spread over workers, resumable."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import closing, nullcontext
from typing import Any, NamedTuple

import numpy as np

from frot._base.errors import InputError, warn_caller
from frot._base.files import check_path
from frot._base.fingerprint import fingerprint
from frot._base.parallel import check_n_jobs, spread
from frot._base.validate import check_flag, check_metric, check_number, read_numbers, second_names
from frot.api.clouds import Clouds, check_clouds, check_same_features, refuse_clouds_as_groups
from frot.api.distance import NO_METRICS, refuse_no_metric, refuse_normalised, refuse_shares
from frot.api.pair_tiles import Call, PairTable, Together, cut_tiles, solve_tile
from frot.api.solve import check_options
from frot.costs import MEMORY_BUDGET, METRICS
from frot.costs.metrics import map_points
from frot.groups.groups import Groups
from frot.problem.adversary import SimplexFamily
from frot.problem.options import ProblemOptions, Relative, amount_at, check_mass, check_tau
from frot.solvers import Solver
from frot.solvers.entropic.entropic import Entropic
from frot.solvers.progress import counting_bar

# Seconds for a pair, and for an entry of a cost matrix, one by one and in batches: measured, and
# right to a factor of three or so, which is enough to cut the work into tiles.
ALONE, IN_BATCHES = (5e-3, 1.5e-7), (1e-4, 5e-8)
# How much dearer an entry is where Python computes it, and where there is entropy on the plan.
CALLABLE, ENTROPIC = 15.0, 5.0


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
    mass: float | None = None,
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

    It is a metric (see `distance`), and what makes it none is refused: a d that is no metric,
    groups that leave features out, scales that depend on the pair. Without `others` the matrix is
    symmetric: one of each two pairs is solved. Its diagonal is zero, unless d is a callable: then
    it is computed, since nothing says that such a d is zero between equal points.

    With `eta`, `eps`, `tau`, `mass` or a set of weights other than the (capped) simplex it returns
    *values* and no distances: the optimal values with their entropies and the price of mass that
    is not kept, to the power 1/p (values below zero count as zero). They are those of `solve`, for
    any metric and groups. The diagonal of eta or eps, which is computed, is not zero, and the
    triangle inequality may fail. With `tau` or `mass` a cloud is at zero from itself.

    With `eps` pairs are solved in batches, as `solve_batch` does, those of similar sizes together.

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
        The distance d within a group, as in `solve`. A callable is taken at its word that it is a
        metric.
    tau, penalty, mass :
        As in `solve`: weights may then sum to anything; no cloud has less than the mass. Among
        `clouds` alone both sides have one price, so that the matrix is symmetric.
    eta, eps, prior, adversary, normalise_weights, solver, tol, max_iter, memory_budget :
        As in `solve`; eta, eps and tau are numbers, the same for all pairs. The budget is for each
        worker.
    normalise : {"none"}
        The other ways of `solve` depend on the pair, and make distances that cannot be compared.
    time_limit : float, optional
        Seconds at most for one pair; for a batch as many times that as it has pairs.
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
    first, second, prices, mass, any_mass = _check_sides(
        (clouds, weights), (others, other_weights), tau, penalty, mass, normalise_weights
    )
    refuse_clouds_as_groups(groups)
    columns = first.columns or (second.columns if second is not None else None)
    parsed = Groups.parse(groups, first.width, columns)
    p = check_number(p, "p", least=1.0)
    metric = check_metric(metric, METRICS)
    n_jobs = check_n_jobs(n_jobs)
    progress = check_flag(progress, "progress")
    checkpoint = None if checkpoint is None else check_path(checkpoint, "checkpoint")
    budget = check_number(memory_budget, "memory_budget")
    refuse_normalised(normalise)
    shape = (len(parsed), int(first.sizes.max()), int((second or first).sizes.max()))
    checked, run = check_options(
        shape, eta=eta, eps=eps, prior=prior, adversary=adversary, tau=tau,
        # This check has uniform weights; the clouds' own may have other sums.
        mass=None if mass is None else 1.0,
        penalty=penalty, normalise=normalise, normalise_weights=normalise_weights, solver=solver,
        tol=tol, max_iter=max_iter, time_limit=time_limit,
    )  # fmt: skip
    refuse_shares(eta=checked.eta, eps=checked.eps, tau=prices)
    regularised, partly = any(checked.regularisation), prices is not None or mass is not None
    if not (regularised or partly) and isinstance(checked.adversary, SimplexFamily):
        refuse_no_metric(metric, parsed)
    _refuse_points_without_image(first, second, parsed, metric)
    options = {
        "metric": metric,
        "p": p,
        "eta": checked.eta,
        "eps": checked.eps,
        "prior": None if prior is None else read_numbers(prior, "prior"),
        "solver": solver,
        # The solver's limits are checked numbers by now.
        "tol": None if tol is None else run.solver.tol,
        "max_iter": None if max_iter is None else run.solver.max_iter,
        "time_limit": None if time_limit is None else run.solver.time_limit,
        "tau": prices,
        "penalty": penalty,
        "mass": mass,
        "adversary": adversary,
    }
    if isinstance(adversary, SimplexFamily):
        # Eta is among the options.
        options["adversary"] = adversary.having(0.0, adversary.log_prior)
    together = _together(run.solver, checked)
    call = Call(parsed, options, budget, together, any_mass)
    # Otherwise the diagonal is zero, and is not solved for.
    diagonal = callable(metric) or metric in NO_METRICS or regularised
    diagonal = diagonal or not checked.adversary.on_simplex
    per_pair, per_entry = IN_BATCHES if together is not None else ALONE
    per_entry *= len(parsed) * (CALLABLE if callable(metric) else 1.0)
    if checked.eps and together is None:
        per_entry *= ENTROPIC
    cols = None if second is None else second.sizes
    tiles = cut_tiles(first.sizes, cols, (per_pair, per_entry), first.width, diagonal)
    values = fill_table(
        PairTable(first, second, call, tiles, diagonal), n_jobs, progress, checkpoint
    )
    return np.maximum(values, 0.0) ** (1.0 / p)


class Sides(NamedTuple):
    """Clouds of rows and of columns, if these are others; and what pairs keep of their mass."""

    first: Clouds
    second: Clouds | None
    prices: tuple[Any, Any] | None
    mass: float | None
    any_mass: bool


def _check_sides(
    rows: tuple[Any, Any],
    cols: tuple[Any, Any],
    tau: Any,
    penalty: Any,
    mass: Any,
    normalise_weights: bool,
) -> Sides:
    """Check clouds and their weights, of rows and of columns, with `tau` or a mass."""
    prices = check_tau(tau, penalty)
    any_mass = (prices is not None or mass is not None) and not normalise_weights
    first = check_clouds(*rows, normalise_weights, any_mass=any_mass)
    others, other_weights = cols
    second = None
    if others is not None:
        second = check_clouds(
            others, other_weights, normalise_weights, "others", "other_weights", any_mass
        )
        check_same_features(first, second)
    elif other_weights is not None:
        raise InputError("other_weights: are of no clouds; pass others, or use weights")
    elif prices is not None and prices[0] != prices[1]:
        raise InputError(
            "tau: the prices of the two sides differ, and so would the matrix and its "
            "transpose; pass one price, or others=clouds"
        )
    if mass is not None:
        mass = check_mass(mass, *(side.lightest(any_mass) for side in (first, second or first)))
    return Sides(first, second, prices, mass, any_mass)


def _together(solver: Solver, checked: ProblemOptions) -> Together | None:
    """What batches of pairs are solved with; None where pairs are solved one by one."""
    if not isinstance(solver, Entropic) or not isinstance(checked.adversary, SimplexFamily):
        return None
    tau_a, tau_b = map(amount_at, checked.tau or (np.inf, np.inf))
    return Together(
        checked.adversary.having(0.0, checked.log_prior),
        (tau_a, tau_b),
        solver.tol,
        solver.max_iter,
        solver.time_limit,
    )


def _refuse_points_without_image(
    first: Clouds, second: Clouds | None, groups: Groups, metric: Any
) -> None:
    """Name the cloud with a point that the metric cannot take: all zeros have no cosine."""
    if not (isinstance(metric, str) and metric in METRICS and METRICS[metric].maps):
        return
    for cloud in first.members + (() if second is None else second.members):
        map_points(metric, cloud.points, cloud.points, groups, names=(cloud.name, cloud.name))


def work_of(table: PairTable) -> str:
    """Return the fingerprint of all that the values depend on, and how the pairs are numbered."""
    call = table.call
    sides = [table.first] if table.second is None else [table.first, table.second]
    return fingerprint(
        kind="pairwise 2",
        clouds=[[(cloud.points, cloud.weights) for cloud in side.members] for side in sides],
        groups=(call.groups.flat, call.groups.offsets),
        tiles=[(t.rows.start, t.rows.stop, t.cols.start, t.cols.stop) for t in table.tiles],
        diagonal=table.diagonal,
        **call.options,
    )


def fill_table(
    table: PairTable, n_jobs: int | None, progress: bool, path: str | os.PathLike[str] | None
) -> np.ndarray:
    """Solve what the checkpoint does not have, and return every value in its place, (N, M)."""
    # Imported here, since it loads SQLite.
    from frot._base.store import open_checkpoint

    shape = (len(table.first.members), len(table.columns.members))
    values, gaps, short = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool)

    def place(number: int, solved: np.ndarray) -> None:
        rows, cols = np.array(table.pairs(number)).T
        values[rows, cols], gaps[rows, cols], short[rows, cols] = solved.T

    tiles = range(len(table.tiles))
    count = sum(len(table.pairs(number)) for number in tiles)
    effort = [tile.seconds for tile in table.tiles]
    with nullcontext() if path is None else open_checkpoint(path, work_of(table)) as store:
        known = {} if store is None else store.finished()
        for number, solved in known.items():
            place(number, solved)
        before = sum(map(len, known.values())), sum(effort[number] for number in known)
        left = [number for number in tiles if number not in known]
        # No workers are started where nothing is left to solve.
        work = spread(solve_tile, map(table.job, left), n_jobs if left else 1)
        bar = counting_bar("pairs", count, sum(effort), enabled=progress, before=before)
        # Threads that silence a library's warnings at the same time may leave them silenced.
        with warnings.catch_warnings(), bar as show, closing(work) as results:
            for number, solved in results:
                if store is not None:
                    store.add(number, solved)
                place(number, solved)
                show(len(solved), effort[number])
    if short.any():
        _warn(table, gaps, short, count)
    if table.second is None:
        # Only pairs on and above the diagonal were solved: below it all is zero.
        values = values + np.triu(values, 1).T
    return values


def _warn(table: PairTable, gaps: np.ndarray, short: np.ndarray, count: int) -> None:
    i, j = np.unravel_index(np.argmax(np.where(short, gaps, -1.0)), gaps.shape)
    row, col = table.first.members[i].name, table.columns.members[j].name
    warn_caller(
        f"pairwise: {int(short.sum())} of {count} pairs ended before their tolerance. The worst "
        f"gap is {gaps[i, j]:.1e}, between {row} and {col}; frot.solve on these two tells more. "
        "Raise max_iter or time_limit, or ask for less with tol."
    )
