"""`solve_batch`: many problems of one shape, solved together on one device."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from frot._base.arrays import Array, Home, adopt, device_room, find_home, is_foreign, to_numpy
from frot._base.contract import check_batch_range, check_not_beyond
from frot._base.errors import InputError, brief, warn_caller
from frot._base.stopping import check_limits, deadline
from frot._base.validate import (
    check_choice,
    check_flag,
    check_number,
    check_points,
    check_weights,
    read_numbers,
    second_names,
)
from frot.api.batch_result import BatchResult
from frot.api.batch_work import BatchWork
from frot.api.kept_mass import warn_if_members_are_destroyed
from frot.costs import MEMORY_BUDGET, METRICS, FactoredMetric
from frot.costs.build import points_costs
from frot.costs.points import stand_ins, take_members
from frot.costs.protocol import Costs
from frot.groups.groups import Groups
from frot.problem.adversary import GivenSet, SimplexFamily
from frot.problem.options import (
    DEFAULT_EPS,
    Relative,
    amount_at,
    check_adversary,
    check_amount,
    check_tau,
)
from frot.solvers.entropic.certificate import proving
from frot.solvers.entropic.dense import DenseEngine, dense_bytes
from frot.solvers.entropic.entropic import SINGLE_TO
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.kernel import potentials_at


@second_names
def solve_batch(
    X: Any,
    Y: Any,
    groups: Any = None,
    *,
    a: Any = None,
    b: Any = None,
    eta: float | Relative = 0.0,
    eps: float | Relative = DEFAULT_EPS,
    prior: Any = None,
    adversary: Any = None,
    tau: Any = None,
    metric: str = "sqeuclidean",
    normalise_weights: bool = False,
    tol: float = 1e-4,
    max_iter: int = 2_000,
    time_limit: float | None = None,
    memory_budget: float = MEMORY_BUDGET,
) -> BatchResult:
    r"""Solve many entropic problems of the same shape together.

    Every member is the problem of `solve` with eps > 0, and gets its own weights, interval and
    status; together they cost little more than one, which is what small problems and accelerators
    need.

    Parameters
    ----------
    X, Y : arrays of shape (B, n, d) and (B, m, d), or lists of B arrays
        The points of every member.
    groups :
        As in `solve`; the same for all members.
    a, b : arrays of shape (B, n) or (n,), and (B, m) or (m,), optional
        Weights, of each member or of all.
    eta, eps : float or `relative`
        As in `solve`; shares are of each member's own mean cost. There must be some eps:
        ``relative(0.02)`` if left out.
    tau : float, `relative` or a pair of these, optional
        As in `solve` with ``penalty="kl"``; weights may then sum to anything.
    metric : str
        "sqeuclidean", "cosine", or another name in `frot.costs.METRICS`.
    prior, adversary, normalise_weights, memory_budget :
        As in `solve`; of sets of weights `Simplex` and `CappedSimplex`. Batches beyond the budget
        are solved in parts.
    tol, max_iter, time_limit :
        As of `Entropic`.

    Returns
    -------
    BatchResult
        A sequence of `Result`, with all values and weights as arrays too.

    Examples
    --------
    >>> import numpy as np, frot
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(4, 20, 6)), rng.normal(size=(4, 20, 6))
    >>> batch = frot.solve_batch(X, Y, groups=[2, 4], eta=frot.relative(0.1))
    >>> one = frot.solve(X[2], Y[2], groups=[2, 4], eta=frot.relative(0.1), eps=frot.relative(0.02))
    >>> abs(batch[2].value - one.value) < 1e-3 * one.value
    True
    """
    X, Y, a, b = map(_adopt_members, (X, Y, a, b), "XYab")
    prior = adopt(prior, "prior")
    home = batch_home(X=X, Y=Y, a=a, b=b, prior=prior)
    X, Y = batch_points(X, "X", home), batch_points(Y, "Y", home)
    (count, n, d), (others, m, e) = X.shape, Y.shape
    if count != others or d != e:
        raise InputError(
            f"X, Y: have shapes {tuple(X.shape)} and {tuple(Y.shape)}; batches must have as many "
            "members and features each"
        )
    parsed = Groups.parse(groups, d, None)
    metric = check_choice(metric, "metric", tuple(METRICS))
    check_flag(normalise_weights, "normalise_weights")
    prices = check_tau(tau, "kl")
    a = batch_weights(a, count, n, "a", normalise_weights, prices is not None)
    b = batch_weights(b, count, m, "b", normalise_weights, prices is not None)
    weights, eta, log_prior = check_adversary(adversary, len(parsed), eta, prior)
    if isinstance(weights, GivenSet):
        raise InputError(
            f"adversary: solve_batch does not take {weights.name}; use frot.CappedSimplex(k), or "
            "frot.solve with eps = 0"
        )
    if amount_at(eps := check_amount(eps, "eps")) == 0.0:
        raise InputError("eps: batches need eps > 0; pass eps=..., or use frot.solve in a loop")
    limits = check_limits(tol, max_iter, time_limit)
    memory_budget = check_number(memory_budget, "memory_budget")
    begin = time.perf_counter()
    place = home or Home.of(np.zeros(1))
    shares = (a, b) if prices is None else tuple(w / w.sum(axis=1, keepdims=True) for w in (a, b))
    with np.errstate(over="ignore", invalid="ignore"):
        costs, true = batch_costs(X, Y, parsed, METRICS[metric], place, shares)
        means = to_numpy(costs.product(*map(place.double().bring, shares)))
        level = means.mean(axis=1)
        largest = to_numpy(costs.peaks).max(axis=1)
    check_batch_range(level, largest, np.ones(count), "X[{index}], Y[{index}]")
    etas, epss = (np.broadcast_to(amount_at(x, level), (count,)) for x in (eta, eps))
    if not (epss > 0.0).all():
        index = int(np.argmin(epss))
        who = f"X[{index}], Y[{index}]"
        raise InputError(f"{who}: all costs are zero, so eps is; pass eps as a number")
    check_batch_range(level, largest, epss, "X[{index}], Y[{index}]")
    check_not_beyond("eta", etas, level, "costs of X[{index}], Y[{index}]")
    held = max(1, min(count, int(memory_budget // dense_bytes(n, m)))) * dense_bytes(n, m)
    way = "pass a smaller memory_budget, for fewer members at once, or use frot.solve, one by one"
    taus = tuple(amount_at(price, level) for price in prices or (np.inf, np.inf))
    for price in taus:
        check_not_beyond("tau", price, level, "costs of X[{index}], Y[{index}]")
    with device_room("X, Y", held, way):
        result = run_batch(
            (costs, true), (a, b), weights.having(0.0, log_prior), (etas, epss), means, parsed,
            home, BatchWork(*limits, begin), memory_budget,
            tau=taus, metric=metric,
        )  # fmt: skip
    _warn(result, limits.tol)
    if prices is not None:
        each = np.broadcast_to(taus[0], (count,)), np.broadcast_to(taus[1], (count,))
        f, g = map(to_numpy, result.duals)
        warn_if_members_are_destroyed((a, b), (f, g), each)
    return result


def run_batch(
    both_costs: tuple[Costs, Costs],
    weights: tuple[np.ndarray, np.ndarray],
    adversary: SimplexFamily,
    amounts: tuple[np.ndarray, np.ndarray],
    means: np.ndarray,
    groups: Groups,
    home: Home | None,
    work: BatchWork,
    memory_budget: float = MEMORY_BUDGET,
    symmetric: bool = False,
    start: tuple[np.ndarray, np.ndarray] | None = None,
    tau: tuple[Any, ...] = (np.inf, np.inf),
    metric: str = "",
) -> BatchResult:
    """Solve a batch that has been checked.

    `both_costs` are the costs to solve and those of the points' true places, `amounts` are eta and
    eps, `means` the groups' mean costs, (B, L), and `start` weights and potentials to begin with.
    Prices `tau` of the two sides, of all members or of each, are infinite where mass is kept.
    """
    (etas, epss), place = amounts, home or Home.of(np.zeros(1))
    costs, true = both_costs
    level = means.mean(axis=1)
    count, _, n, m = costs.shape
    # Proofs are in double precision all the same, and what single cannot settle is taken up there.
    small = place.dtype == place.xp.float32 or work.aim.sweeps >= SINGLE_TO
    problem = EntropicProblem.of(
        costs.home.double(), *weights, adversary, epss, means, etas, symmetric, (tau[0], tau[1])
    )
    if work.aim.gradient is not None:
        # Gradients are estimated where the search is, which does not see what single precision does
        # to potentials: over eps, that is mass in wrong columns.
        small = small and problem.blur <= work.aim.sweeps
    search = costs.single() if small and problem.single_safe else costs
    problem = problem.to(search.home)
    per_part = max(1, int(memory_budget // dense_bytes(n, m)))
    whole = DenseEngine(search, problem, costs)
    with deadline(work.time_limit):
        for first in range(0, count, per_part):
            work.run(whole, np.arange(first, min(first + per_part, count)), start)
        proof = work.assembled(count)
    potentials = proving(whole.double(), proof.f, proof.g)
    if true is not costs:
        potentials = potentials_at(true, whole.double().problem, proof.alpha, *potentials)
    return BatchResult(
        status=tuple(work.status[index] for index in range(count)),
        proof=proof,
        duals=potentials,
        engine=whole.double(),
        iterations=tuple(work.iterations[index] for index in range(count)),
        time=time.perf_counter() - work.begin,
        eta=etas,
        eps=epss,
        mean_cost=level,
        groups=groups,
        solver=work.name,
        home=home,
        metric=metric,
        adversary=adversary.describe(),
        tol=work.aim.proven,
    )


def _warn(result: BatchResult, tol: float) -> None:
    late = [index for index, status in enumerate(result.status) if not status.ok]
    if late:
        worst = max(late, key=lambda index: result.gap[index])
        warn_caller(
            f"{result.solver}: {len(late)} of {len(result)} members did not reach {tol:.1e}; the "
            f"worst is member {worst} with gap {result.gap[worst]:.1e} "
            f"({result.status[worst].sentence})"
        )


def batch_home(**arguments: Any) -> Home | None:
    """Return where the arrays live, those in lists too, None if that is NumPy."""
    arrays = {}
    for name, value in arguments.items():
        if isinstance(value, list | tuple):
            arrays |= {f"{name}[{index}]": member for index, member in enumerate(value)}
        else:
            arrays[name] = value
    return find_home(**arrays)


def _adopt_members(batch: Any, name: str) -> Any:
    """Return a batch whose arrays are NumPy's or PyTorch's, those in a list too."""
    if isinstance(batch, list | tuple):
        return [adopt(member, f"{name}[{index}]") for index, member in enumerate(batch)]
    return adopt(batch, name)


def batch_points(points: Any, name: str, home: Home | None) -> Array:
    """Return points as one array (B, n, d); a member that is bad is named."""
    whole = getattr(points, "ndim", None) == 3
    listed = [points[k, ...] for k in range(points.shape[0])] if whole else _listed(points, name)
    if not listed:
        raise InputError(f"{name}: has no members; pass an array of shape (B, n, d)")
    checked = [check_points(member, f"{name}[{index}]")[0] for index, member in enumerate(listed)]
    shapes = [tuple(member.shape) for member in checked]
    for index, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise InputError(
                f"{name}[{index}]: has shape {shape}, but {name}[0] has {shapes[0]}; members of a "
                "batch have the same shape"
            )
    if home is None:
        return np.stack(checked)
    return points if whole else home.xp.stack(checked)


def _listed(points: Any, name: str) -> list[Any]:
    try:
        return list(points)
    except TypeError:
        raise InputError(f"{name}: {brief(points)} is not a batch; pass (B, n, d)") from None


def batch_weights(
    weights: Any, count: int, size: int, name: str, normalise: bool, any_mass: bool = False
) -> np.ndarray:
    """Return weights (B, n): None is uniform, (n,) is the same for all."""
    if weights is None:
        return np.full((count, size), 1.0 / size)
    # A list may hold tensors, one per member, which are read one by one.
    listed = isinstance(weights, list | tuple) and any(map(is_foreign, weights))
    host = weights if listed else read_numbers(weights, name)
    if not listed and np.ndim(host) < 2:
        return np.tile(check_weights(host, size, name, normalise, any_mass), (count, 1))
    if len(host) != count:
        raise InputError(f"{name}: {len(host)} members of weights for a batch of {count}")
    rows = [
        check_weights(row, size, f"{name}[{index}]", normalise, any_mass)
        for index, row in enumerate(host)
    ]
    return np.stack(rows)


def batch_costs(
    X: Array, Y: Array, groups: Groups, metric: FactoredMetric, home: Home, weights: tuple[Any, Any]
) -> tuple[Costs, Costs]:
    """The costs of the members, with points of no weight where others are; and as they are."""
    true = points_costs(X, Y, groups, metric, weights, named=True)
    places_x, places_y = (stand_ins(part) for part in weights)
    if places_x is None and places_y is None:
        return true, true
    moved_x = X if places_x is None else take_members(home, X, places_x)
    moved_y = Y if places_y is None else take_members(home, Y, places_y)
    return points_costs(moved_x, moved_y, groups, metric, weights, named=True), true
