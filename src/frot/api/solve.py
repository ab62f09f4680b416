"""`solve`, `solve_costs` and `distance`: one problem, from points or from cost matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from frot._base.arrays import adopt, device_room, find_home, to_numpy
from frot._base.errors import DataWarning, InputError, warn_caller
from frot._base.spelling import second_names
from frot._base.stopping import deadline
from frot._base.validate import (
    check_costs,
    check_metric,
    check_names,
    check_number,
    check_two_clouds,
)
from frot.api.metric import refuse_no_metric, refuse_normalised
from frot.api.run import check_options, make_problem
from frot.costs import (
    MEMORY_BUDGET,
    METRICS,
    StackedCosts,
    build_costs,
    device_points,
    device_stack,
)
from frot.costs.build import is_line
from frot.costs.metrics import factored_metric
from frot.groups.groups import Groups
from frot.problem.adversary import SimplexFamily
from frot.problem.result import Result, handed_out
from frot.problem.terms import ProblemTerms, Relative, amount_at, check_amount
from frot.solvers import Callback
from frot.solvers.choose import Solver
from frot.solvers.sinkhorn.dense import dense_bytes, stream_bytes


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
    if p == 2.0 and metric == "sqeuclidean":
        warn_caller(
            "p: 2 with metric='sqeuclidean' is the fourth power of distances; for squared "
            "distances leave p out, or pass metric='euclidean' too",
            category=DataWarning,
        )
    memory_budget = check_number(memory_budget, "memory_budget")
    shape = (len(parsed), X.shape[0], Y.shape[0])
    terms, run = check_options(
        shape, home, a=a, b=b, eta=eta, eps=eps, prior=prior, adversary=adversary, tau=tau,
        penalty=penalty, normalise=normalise, normalise_weights=normalise_weights, solver=solver,
        tol=tol, max_iter=max_iter, time_limit=time_limit, start=start, callback=callback,
        progress=progress, on_a_line=is_line(parsed, metric, p),
    )  # fmt: skip
    factored = factored_metric(metric, p)
    if home is not None and factored is not None and solved_in_place(run.solver, terms):
        X, Y = home.bring(X), home.bring(Y)
        make = partial(device_points, X, Y, parsed, factored, home, terms.shares)
    else:
        X, Y = to_numpy(X).astype(float), to_numpy(Y).astype(float)
        make = partial(build_costs, X, Y, parsed, metric, p, memory_budget, terms.shares)
    needed, way = dense_bytes(*shape[1:]), "pass a smaller memory_budget, to stream the kernel"
    if needed > memory_budget:
        needed, way = stream_bytes(*shape[1:], X.shape[1]), "give fewer points"
    # The time that costs take to be made is the user's, too.
    with deadline(run.solver.time_limit), device_room("X, Y", needed, way):
        known = {"points": (X, Y), "groups": parsed, "memory_budget": memory_budget}
        problem = make_problem(make, terms, parsed.names, **known)
        named = metric if isinstance(metric, str) else getattr(metric, "__name__", repr(metric))
        result = replace(run(problem), metric=named, p=p, normalise=terms.normalise)
    return handed_out(result.at(home))


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
    C : array of shape (L, n, m)
        One cost matrix per group; negative entries are allowed. Give a pair that must not be
        matched a cost larger than all others: infinite ones are refused.
    a, b : arrays of shape (n,) and (m,), optional
        Weights that sum to one; uniform if left out.
    names : sequence of str, optional
        Names of the groups.
    eta, eps, prior, adversary, tau, penalty, normalise, normalise_weights, solver, tol, max_iter, \
time_limit, start, callback, progress :
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
    C, a, b, prior = map(adopt, (C, a, b, prior), ("C", "a", "b", "prior"))
    home = find_home(C=C, a=a, b=b, prior=prior)
    stack = check_costs(C)
    shape = tuple(stack.shape)
    labels = check_names(names, shape[0])
    terms, run = check_options(
        shape, home, a=a, b=b, eta=eta, eps=eps, prior=prior, adversary=adversary, tau=tau,
        penalty=penalty, normalise=normalise, normalise_weights=normalise_weights, solver=solver,
        tol=tol, max_iter=max_iter, time_limit=time_limit, start=start, callback=callback,
        progress=progress,
    )  # fmt: skip
    if home is not None and solved_in_place(run.solver, terms):
        make = partial(device_stack, stack, home)
    else:
        make = partial(StackedCosts, to_numpy(stack).astype(float))
    needed = 8 * math.prod(shape) + dense_bytes(*shape[1:])
    room = device_room("C", needed, "pass fewer points, or points to frot.solve, which can stream")
    with deadline(run.solver.time_limit), room:
        problem = make_problem(make, terms, labels)
        result = replace(run(problem), normalise=terms.normalise)
    return handed_out(result.at(home))


def solved_in_place(solver: Solver, terms: ProblemTerms) -> bool:
    """Whether a problem is solved where its arrays are, rather than on the host.

    Only the entropic solver works in PyTorch, for costs that are factored or given.
    """
    return solver.any_library and terms.normalise != "regret"


@second_names
def distance(
    X: Any, Y: Any, groups: Any = None, *, p: float = 2.0, metric: Any = "euclidean", **options: Any
) -> float:
    r"""Return the feature-robust Wasserstein distance (the paper's proposition 1).

    .. math::
        \mathrm{FRWD}_p(\mu, \nu) = \Big( \min_\Pi \max_{\alpha \in \Sigma^L}
        \sum_{ij} \pi_{ij} \sum_l \alpha_l\, d(x_i^{(l)}, y_j^{(l)})^p \Big)^{1/p}

    It is a metric between weighted sets of points for every p >= 1 and every metric d, and with
    ``adversary=frot.CappedSimplex(k)`` as well: whatever the weights of groups are, the triangle
    inequality is Minkowski's, and a maximum preserves it. What makes it none is refused: costs d
    that are no metric (squared Euclidean, cosine), groups that leave features out, and scales that
    depend on the pair.

    Parameters
    ----------
    X, Y, groups :
        As in `solve`.
    p : float
        The order, at least 1.
    metric : str or callable
        The distance d within a group, a metric; a callable is taken at its word.
    **options :
        As in `solve`; eta, eps and normalise must be left out, since they make it no distance.

    Examples
    --------
    >>> import frot
    >>> frot.distance([[0.0, 0.0]], [[3.0, 4.0]], groups="each")
    4.0
    >>> frot.distance([[0.0, 0.0]], [[3.0, 4.0]], groups="all")
    5.0
    """
    p = check_number(p, "p", least=1.0)
    given = [(name, options[name]) for name in ("eta", "eps") if name in options]
    if any(amount_at(check_amount(amount, name)) != 0.0 for name, amount in given):
        raise InputError("eta, eps: a distance has neither; use frot.solve for regularised values")
    if options.get("tau") is not None:
        raise InputError("tau: a distance keeps all mass; use frot.solve for values with tau")
    weights = options.get("adversary")
    if isinstance(weights, SimplexFamily) and weights.eta != 0.0:
        raise InputError("adversary: a distance has no eta; use frot.solve for regularised values")
    if not isinstance(weights, SimplexFamily | None):
        raise InputError(
            "adversary: a distance needs weights of sum one, frot.CappedSimplex(k) or none; use "
            "frot.solve for other sets"
        )
    refuse_normalised(options.get("normalise", "none"))
    points, _, columns = check_two_clouds(X, Y)
    groups = Groups.parse(groups, points.shape[1], columns)
    refuse_no_metric(check_metric(metric, METRICS), groups)
    value = solve(X, Y, groups, p=p, metric=metric, **options).value
    return float(max(value, 0.0) ** (1.0 / p))
