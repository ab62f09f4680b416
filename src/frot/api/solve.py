"""`solve` and `solve_costs`: one problem, from points or from cost matrices.

Check, build the costs, choose a solver, run it, return: `check_options` refuses bad input before
any work, `make_problem` builds, and a `SolverRun` is the solver that was chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from frot._base.arrays import Array, Home, adopt, device_room, find_home, to_numpy
from frot._base.contract import check_cost_range, check_eps_range, check_not_beyond
from frot._base.errors import DataWarning, InputError, brief, warn_caller
from frot._base.stopping import Interrupted, StoppingLimits, check_limits, deadline
from frot._base.validate import (
    check_callable,
    check_costs,
    check_flag,
    check_metric,
    check_names,
    check_number,
    check_two_clouds,
    metric_name,
    second_names,
)
from frot.api.kept_mass import warn_if_destroyed
from frot.api.normalise import normalise_costs
from frot.costs import MEMORY_BUDGET, METRICS, Costs, Stack, build_costs, points_costs
from frot.costs.build import factored_metric, is_line
from frot.groups.groups import Groups
from frot.problem.adversary import SimplexFamily
from frot.problem.options import ProblemOptions, Relative, amount_at, check_problem
from frot.problem.problem import Problem
from frot.problem.result import Result, handed_out
from frot.solvers import SOLVERS, Callback, Solver, Start
from frot.solvers.drive import refuse_penalty, refuse_set
from frot.solvers.entropic.dense import dense_bytes, stream_bytes
from frot.solvers.exact.exact import SMOOTH_GROUPS

# Pairs of points up to which "auto" takes `Exact`: a minute at worst.
EXACT_UP_TO = 36_000_000


@second_names
def solve(
    X: Any,
    Y: Any,
    groups: Any = None,
    *,
    a: Any = None,
    b: Any = None,
    eta: float | Relative = 0.0,
    eps: float | Relative = 0.0,
    prior: Any = None,
    adversary: Any = None,
    tau: Any = None,
    penalty: str = "kl",
    mass: float | None = None,
    metric: str | Callable[[np.ndarray, np.ndarray], float] = "sqeuclidean",
    p: float = 1.0,
    normalise: str = "none",
    normalise_weights: bool = False,
    solver: str | Solver = "auto",
    tol: float | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    start: Any = None,
    callback: Callback | None = None,
    progress: bool = False,
    memory_budget: float = MEMORY_BUDGET,
) -> Result:
    r"""Solve feature-robust optimal transport between two sets of points.

    .. math::
        \min_{\Pi \in U(a, b)} \; \max_{\alpha \in \mathcal A} \;
        \sum_{ij} \pi_{ij} \sum_l \alpha_l\, d(x_i^{(l)}, y_j^{(l)})^p
        - \eta \sum_l \alpha_l \log \alpha_l

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d), or DataFrames
        The points: NumPy's, or PyTorch's on any device; what comes back is of the same library
        and on the same device. Arrays of other libraries are read as NumPy's on the host, and as
        PyTorch's on a device.
    groups : optional
        What `Groups.parse` reads: index lists, sizes, names, a ``.gmt`` file, ``"prefix"``...
        The default is one group per feature.
    a, b : arrays of shape (n,) and (m,), optional
        Weights that sum to one; uniform if left out.
    eta : float or `relative`
        Entropy of alpha, in units of cost. 0, the default, is the maximum over groups itself.
    eps : float or `relative`
        Entropy of the plan, in units of cost: the objective then has
        :math:`\varepsilon\,\mathrm{KL}(\Pi | a b^\top)` as well, and
        ``result.unregularised`` is an interval for eps = 0. With 0, the default, more than 36
        million pairs of points, and arrays on a device, are refused.
    prior : array of shape (L,), optional
        Prior q on the groups: the adversary then pays :math:`\eta\,\mathrm{KL}(\alpha | q)`.
    adversary : optional
        The set :math:`\mathcal A` of weights: `Simplex`, the default, or `CappedSimplex` (the k
        worst groups share the weight), to which eta and prior go; or, for eta = 0 and eps = 0 by
        `CuttingSet`, `Ellipsoid`, `Polytope`, or an object of your own with ``best(phi)`` that
        returns the largest :math:`\langle \alpha, \varphi \rangle` and the weights that attain it.
    tau : float, `relative` or a pair of these, optional
        Unbalanced transport: a plan pays tau for each unit of a and of b that it does not keep
        (``tau=(tau_a, tau_b)``), and these may have any sums. ``inf`` keeps a side.
        ``result.marginals`` and ``result.mass`` are what was kept.
    penalty : {"kl", "tv"}
        With tau: the divergence :math:`\sum x \log(x / a) - x + a` of what was kept, x; or the
        mass that is left out, of which none is created (partial transport), for eps = 0.
    mass : float, optional
        Partial transport of that much: plans have this mass, and no point sends or gets more than
        its weight, at eps = 0. At most the sum of a and that of b, which may be any.
    metric : str or callable
        "sqeuclidean", "cosine" and whatever else is in `frot.costs.METRICS`, whatever
        `scipy.spatial.distance.cdist` knows, or ``f(u, v) -> float``.
    p : float
        Power of the metric. The default metric is a square already: with p = 2 it is the fourth
        power of distances, of which a `DataWarning` is given.
    normalise : {"none", "mean", "regret"}
        Make groups comparable: divide by the mean cost, or subtract the group's own optimum.
    normalise_weights : bool
        Divide a and b by their sums.
    solver : str or a solver
        "auto", "exact", "entropic", "frank_wolfe", "linear_program", "cutting_set", or an object
        such as ``frot.FrankWolfe(max_iter=10)``. "auto" takes `Exact` for eps = 0 and `Entropic`
        for eps > 0; for sets other than the (capped) simplex it takes `CuttingSet`.
        ``result.solver`` is the solver that was used.
    tol, max_iter, time_limit : optional
        Override the solver's own relative gap, iteration limit and seconds.
    start : Result, weights (L,) or plan (n, m), optional
        Where to begin.
    callback : callable, optional
        Called with a `Progress` after every iteration, ``result.iterations`` times; the interval is
        infinite as long as none is proven. Returning True stops the run.
    progress : bool
        Show a progress bar.
    memory_budget : float
        Bytes that matrices may take. Beyond it cost stacks are computed in chunks, and `Entropic`
        streams its kernel in blocks of rows and returns a plan that is never formed.

    Returns
    -------
    Result
        ``value``, ``lower <= truth <= upper``, ``status``, ``alpha``, ``phi``, ``plan``, ...

    Raises
    ------
    InputError
        If an argument cannot be used; the message names it and the fix.
    Interrupted
        On Ctrl-C: a `KeyboardInterrupt` whose `result` is the best certified answer until then.

    Warns
    -----
    ConvergenceWarning
        If the interval is wider than `tol` at the end.

    Notes
    -----
    The worst case weighs the groups that cost most, which need not be those that differ most: in
    the example eight features with the same distribution on both sides get more weight than two
    that are shifted. The page "Reading alpha" of the documentation says which `normalise`, `prior`
    and `adversary` answer which question.

    Examples
    --------
    >>> import numpy as np, frot
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(20, 10)), rng.normal(size=(30, 10))
    >>> Y[:, :2] += 1.5
    >>> res = frot.solve(X, Y, groups=[range(2), range(2, 10)])
    >>> res.alpha.round(3)
    array([0.316, 0.684])
    >>> res.lower <= res.value <= res.upper, res.gap < 1e-9
    (True, True)
    """
    X, Y, a, b, prior = map(adopt, (X, Y, a, b, prior), ("X", "Y", "a", "b", "prior"))
    home = find_home(X=X, Y=Y, a=a, b=b, prior=prior)
    X, Y, columns = check_two_clouds(X, Y)
    parsed = Groups.parse(groups, X.shape[1], columns)
    metric = check_metric(metric, METRICS)
    p = check_number(p, "p", strict=True)
    warn_of_fourth_powers(metric, p)
    memory_budget = check_number(memory_budget, "memory_budget")
    shape = (len(parsed), X.shape[0], Y.shape[0])
    checked, run = check_options(
        shape, home, a=a, b=b, eta=eta, eps=eps, prior=prior, adversary=adversary, tau=tau,
        penalty=penalty, mass=mass, normalise=normalise, normalise_weights=normalise_weights,
        solver=solver, tol=tol, max_iter=max_iter, time_limit=time_limit, start=start,
        callback=callback, progress=progress, on_a_line=is_line(parsed, metric, p),
    )  # fmt: skip
    factored = factored_metric(metric, p)
    if home is not None and factored is not None and solved_in_place(run.solver, checked):
        X, Y = home.bring(X), home.bring(Y)
        costs = partial(points_costs, X, Y, parsed, factored, checked.shares)
    else:
        X, Y = to_numpy(X).astype(float), to_numpy(Y).astype(float)
        costs = partial(build_costs, X, Y, parsed, metric, p, memory_budget, checked.shares)
    known = {"points": (X, Y), "groups": parsed, "memory_budget": memory_budget}
    # The time limit covers the computation of the costs.
    with deadline(run.solver.time_limit), _room_for_points(home, X, Y, memory_budget):
        problem = make_problem(costs, checked, parsed.names, **known)
        result = run(problem)
    named = replace(result, metric=metric_name(metric), p=p, normalise=checked.normalise)
    return handed_out(named.at(home))


@second_names
def solve_costs(
    C: Any,
    a: Any = None,
    b: Any = None,
    *,
    eta: float | Relative = 0.0,
    eps: float | Relative = 0.0,
    prior: Any = None,
    adversary: Any = None,
    tau: Any = None,
    penalty: str = "kl",
    mass: float | None = None,
    names: Any = None,
    normalise: str = "none",
    normalise_weights: bool = False,
    solver: str | Solver = "auto",
    tol: float | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    start: Any = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Result:
    """Solve feature-robust optimal transport for given cost matrices.

    Parameters
    ----------
    C : array of shape (L, n, m), or `frot.costs.Costs`
        One cost matrix per group; negative entries are allowed. Give a pair that must not be
        matched a cost larger than all others: infinite ones are refused. Costs of your own class
        are solved as they are, where they are.
    a, b : arrays of shape (n,) and (m,), optional
        Weights that sum to one; uniform if left out.
    names : sequence of str, optional
        Names of the groups.
    eta, eps, prior, adversary, tau, penalty, mass, normalise, normalise_weights, solver, tol, \
max_iter, time_limit, start, callback, progress :
        As in `solve`.

    Returns
    -------
    Result

    Examples
    --------
    >>> import frot
    >>> res = frot.solve_costs([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
    >>> round(res.value, 12), res.alpha.round(12)
    (0.5, array([0.5, 0.5]))
    """
    a, b, prior = map(adopt, (a, b, prior), ("a", "b", "prior"))
    own = isinstance(C, Costs)
    if own:
        home = None if C.home.library == "numpy" else C.home
        shape = C.shape
    else:
        C = check_costs(adopt(C, "C"))
        home = find_home(C=C, a=a, b=b, prior=prior)
        shape = tuple(C.shape)
    labels = check_names(names, shape[0])
    checked, run = check_options(
        shape, home, a=a, b=b, eta=eta, eps=eps, prior=prior, adversary=adversary, tau=tau,
        penalty=penalty, mass=mass, normalise=normalise, normalise_weights=normalise_weights,
        solver=solver, tol=tol, max_iter=max_iter, time_limit=time_limit, start=start,
        callback=callback, progress=progress,
    )  # fmt: skip
    known: dict[str, Any] = {}
    if own:
        # Kernels are kept whatever their size: streaming would form the costs at every sweep.
        costs, known = C.double, {"memory_budget": math.inf}
    elif home is not None and solved_in_place(run.solver, checked):
        # Sums are in double precision without a copy of the stack.
        costs = partial(Stack, C, dtype=home.xp.float64)
    else:
        costs = partial(Stack, to_numpy(C).astype(float))
    with deadline(run.solver.time_limit), _room_for_stack(home, shape):
        problem = make_problem(costs, checked, labels, **known)
        result = replace(run(problem), normalise=checked.normalise)
    return handed_out(result.at(home))


def warn_of_fourth_powers(metric: Any, p: float) -> None:
    """Say that squares are squared, which is seldom meant."""
    if p == 2.0 and metric == "sqeuclidean":
        warn_caller(
            "p: 2 with metric='sqeuclidean' is the fourth power of distances; for squared "
            "distances leave p out, or pass metric='euclidean' too",
            category=DataWarning,
        )


def solved_in_place(solver: Solver, checked: ProblemOptions) -> bool:
    """Whether a problem is solved where its arrays are, rather than on the host.

    Only the entropic solver works in PyTorch, for costs that are factored or given.
    """
    return solver.any_library and checked.normalise != "regret"


def _room_for_points(
    home: Home | None, X: Array, Y: Array, budget: float
) -> AbstractContextManager[None]:
    """Say what points need of a device, and the way out, where its memory does not do."""
    if home is None:
        return nullcontext()
    needed, way = dense_bytes(len(X), len(Y)), "pass a smaller memory_budget, to stream the kernel"
    if needed > budget:
        needed, way = stream_bytes(len(X), len(Y), X.shape[1]), "give fewer points"
    return device_room("X, Y", needed, way)


def _room_for_stack(home: Home | None, shape: tuple[int, ...]) -> AbstractContextManager[None]:
    """Say the same of a stack."""
    if home is None:
        return nullcontext()
    needed = 8 * math.prod(shape) + dense_bytes(*shape[1:])
    return device_room("C", needed, "pass fewer points, or points to frot.solve, which can stream")


def on_accelerator(home: Home | None) -> bool:
    """Whether arrays are on a device that solvers of the host cannot use."""
    return home is not None and not home.on_host


def check_options(
    shape: tuple[int, ...],
    home: Home | None = None,
    *,
    solver: Any,
    tol: Any,
    max_iter: Any,
    time_limit: Any,
    start: Any = None,
    callback: Any = None,
    progress: Any = False,
    on_a_line: bool = False,
    **given: Any,
) -> tuple[ProblemOptions, SolverRun]:
    """Check the options that `solve`, `solve_costs` and `pairwise` share, before any work.

    Costs have the given shape, and arrays are at `home`; points may be `on_a_line`, where
    transport is sorting. What is `given` besides a solver and its limits is for
    `check_problem`.
    """
    checked = check_problem(shape, **given)
    chosen = choose_solver(
        solver, shape, checked, on_accelerator(home), on_a_line,
        tol=tol, max_iter=max_iter, time_limit=time_limit,
    )  # fmt: skip
    run = SolverRun(chosen, start, callback, progress)
    run.check(shape)
    return checked, run


def choose_solver(
    solver: Any,
    shape: tuple[int, ...],
    options: ProblemOptions,
    on_device: bool = False,
    on_a_line: bool = False,
    **limits: float | None,
) -> Solver:
    """Return the solver asked for, or for "auto" the one that suits the problem.

    `limits` override its own `tol`, `max_iter` and `time_limit`, unless they are None.

    "auto" takes `Exact` for eps = 0, unless eta > 0 and there are more than 3000 groups: then
    `FrankWolfe` with fully corrective steps. For eps > 0 it takes `Entropic`, and for sets of
    weights that are neither `Simplex` nor `CappedSimplex` always `CuttingSet`.
    """
    eta, eps = options.regularisation
    if isinstance(solver, str) and solver == "auto":
        solver = "exact"
        if not options.adversary.on_simplex:
            solver = "cutting_set"
        elif eps > 0.0:
            solver = "entropic"
        else:
            refuse_exact(shape, options, on_device, on_a_line)
            if eta > 0.0 and shape[0] > SMOOTH_GROUPS:
                solver = "frank_wolfe"
    if isinstance(solver, str):
        if solver not in SOLVERS:
            names = ", ".join(map(repr, ["auto", *SOLVERS]))
            raise InputError(f"solver: {brief(solver)} is none of {names}, nor one like Exact()")
        solver = SOLVERS[solver]
    if not isinstance(solver, Solver):
        shown = f"{solver.__name__} is a class" if isinstance(solver, type) else brief(solver)
        raise InputError(
            f"solver: {shown}; pass a name, or a solver such as frot.Exact(); one of your own "
            "derives from frot.solvers.Solver"
        )
    given: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
    own = {name: getattr(solver, name) for name in StoppingLimits._fields}
    checked = check_limits(**own | given)
    chosen: Any = replace(solver, **checked._asdict())  # type: ignore[type-var]
    refuse_set(chosen, options.adversary)
    refuse_penalty(chosen, options.marginals())
    chosen.check(shape, eta, eps)
    return chosen


def refuse_exact(
    shape: tuple[int, ...], options: ProblemOptions, on_device: bool, on_a_line: bool = False
) -> None:
    """Refuse eps = 0 where "auto" would take `Exact` and it is too slow, or cannot use the device.

    Partial transport has no eps, and runs on the host; points on a line are sorted, however many
    there are.

    Examples
    --------
    >>> from frot.problem.options import check_problem
    >>> shape = (1, 6_100, 6_000)
    >>> refuse_exact(shape, check_problem(shape), on_device=False)
    Traceback (most recent call last):
    ...
    frot.InputError: eps: is 0, and 6100 x 6000 points are too many for solver='auto' ...
    """
    _, n, m = shape
    sorts = on_a_line and options.tau is None and options.normalise == "none"
    if options.penalty == "tv":
        return
    if on_device:
        why = "the arrays are on a device, where there is no exact solver"
        other = "pass arrays of the host"
    elif n * m > EXACT_UP_TO and not sorts:
        why = (
            f"{n} x {m} points are too many for solver='auto' to solve exactly (36 million pairs "
            "at most)"
        )
        other = "solver='exact' tries all the same"
    else:
        return
    raise InputError(
        f"eps: is 0, and {why}; pass eps=frot.relative(0.02) to frot.solve, which is another "
        "objective: it adds the entropy of the plan, with 2 % of the mean cost as eps, and "
        f"result.unregularised is an interval for eps = 0. Or {other}"
    )


def make_problem(
    make_costs: Callable[[], Costs], checked: ProblemOptions, names: tuple[str, ...], **known: Any
) -> Problem:
    """Compute the costs and normalise them.

    What else is `known` of the problem, its points for one, goes in as it is.
    """
    a, b = checked.a, checked.b
    with np.errstate(over="ignore", invalid="ignore"):
        costs = make_costs()
        if checked.normalise != "none":
            costs = normalise_costs(costs, *checked.shares, checked.normalise)
        plain = Problem(
            costs, a, b, checked.adversary, names=names, marginals=checked.marginals(), **known
        )
        level = plain.mean_cost
        check_cost_range(level, plain.largest_cost)
    adversary = checked.adversary
    if isinstance(adversary, SimplexFamily):
        adversary = adversary.having(amount_at(checked.eta, level), checked.log_prior)
    # If all costs are zero, any eps > 0 has the solution a b^T: shares are taken of one.
    eps = amount_at(checked.eps, level or 1.0)
    check_eps_range(level, eps)
    marginals = checked.marginals(level or 1.0)
    if adversary.eta > 0.0:
        check_not_beyond("eta", adversary.eta, level)
    if not marginals.balanced:
        check_not_beyond("tau", [marginals.tau_a, marginals.tau_b], level)
    if adversary is plain.adversary and eps == 0.0 and checked.tau is None:
        return plain
    return plain.having(adversary=adversary, eps=eps, marginals=marginals)


@dataclass(frozen=True, eq=False)
class SolverRun:
    """A solver, where it starts, and who watches."""

    solver: Solver
    start: Any = None
    callback: Callback | None = None
    progress: bool = False

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse a start or a callback that cannot be used."""
        Start.check(self.start, shape)
        check_callable(self.callback, "callback")
        check_flag(self.progress, "progress")

    def __call__(self, problem: Problem) -> Result:
        """Solve; after Ctrl-C the result has the status INTERRUPTED: see `handed_out`."""
        try:
            result = self.solver(problem, self.start, self.callback, self.progress)
        except Interrupted as stop:
            result = stop.result
        if not problem.marginals.balanced:
            warn_if_destroyed(problem, result)
        return result
