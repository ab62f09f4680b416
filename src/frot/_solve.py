"""`solve`, `solve_costs` and `distance`: the library's front doors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from frot._adversary import Simplex
from frot._bounds import c_transforms
from frot._costs import Costs, StackedCosts, build_costs
from frot._errors import InputError
from frot._groups import Groups
from frot._normalise import NORMALISATIONS, normalise_costs
from frot._problem import Problem
from frot._result import Result
from frot._solvers import Callback, Start
from frot._solvers._choose import Solver, choose_solver
from frot._validate import (
    check_choice,
    check_costs,
    check_masses,
    check_metric,
    check_number,
    check_points,
    check_prior,
    check_weights,
)

__all__ = ["distance", "solve", "solve_costs"]


def solve(
    X: Any,
    Y: Any,
    groups: Any = None,
    *,
    a: Any = None,
    b: Any = None,
    eta: float = 0.0,
    eps: float = 0.0,
    prior: Any = None,
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
) -> Result:
    r"""Solve feature-robust optimal transport between two sets of points.

    .. math::
        \min_{\Pi \in U(a, b)} \; \max_{\alpha \in \Sigma^L} \;
        \sum_{ij} \pi_{ij} \sum_l \alpha_l\, d(x_i^{(l)}, y_j^{(l)})^p
        - \eta \sum_l \alpha_l \log \alpha_l

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d), or DataFrames
        The points.
    groups : optional
        What `Groups.parse` reads: index lists, sizes, names, a ``.gmt`` file, ``"prefix"``...
        The default is one group per feature.
    a, b : arrays of shape (n,) and (m,), optional
        Weights that sum to one; uniform if left out.
    eta : float
        Entropy of alpha, in units of cost. 0, the default, is the maximum over groups itself.
    eps : float
        Entropy of the plan, in units of cost, for solvers with a Sinkhorn oracle.
    prior : array of shape (L,), optional
        Prior q on the groups: the adversary then pays :math:`\eta\,\mathrm{KL}(\alpha | q)`.
    metric : str or callable
        "sqeuclidean", "cosine", whatever `scipy.spatial.distance.cdist` knows, or
        ``f(u, v) -> float``.
    p : float
        Power of the metric.
    normalise : {"none", "mean", "regret"}
        Make groups comparable: divide by the mean cost, or subtract the group's own optimum.
    normalise_weights : bool
        Divide a and b by their sums.
    solver : {"auto", "exact", "frank_wolfe", "linear_program"} or a solver
        "auto" takes `Exact` (for eps = 0), or `FrankWolfe`; ``result.solver`` tells.
    tol, max_iter, time_limit : optional
        Override the solver's own relative gap, iteration limit and seconds.
    start : Result, weights (L,) or plan (n, m), optional
        Where to begin.
    callback : callable, optional
        Called with a `Progress` after every iteration; returning True stops the run.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Result
        ``value``, ``lower <= truth <= upper``, ``status``, ``alpha``, ``phi``, ``plan``, ...

    Raises
    ------
    InputError
        If an argument cannot be used; the message names it and the fix.

    Warns
    -----
    ConvergenceWarning
        If the interval is wider than `tol` at the end.

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
    X, x_names = check_points(X, "X")
    Y, y_names = check_points(Y, "Y")
    if X.shape[1] != Y.shape[1]:
        raise InputError(
            f"X, Y: have {X.shape[1]} and {Y.shape[1]} features; they must be the same ones"
        )
    if x_names is not None and y_names is not None and x_names != y_names:
        raise InputError("X, Y: have different columns; reorder one by the other, Y[X.columns]")
    parsed = Groups.parse(groups, X.shape[1], x_names or y_names)
    metric = check_metric(metric)
    p = check_number(p, "p", strict=True)
    problem = _Problem(a, b, eta, eps, prior, normalise, normalise_weights)
    prepared = problem.prepare(
        lambda: build_costs(X, Y, parsed, metric, p),
        (len(parsed), len(X), len(Y)),
        parsed.names,
        (X, Y),
        parsed,
    )
    chosen = choose_solver(solver, prepared, tol, max_iter, time_limit)
    return _run(prepared, chosen, start, callback, progress)


def solve_costs(
    C: Any,
    a: Any = None,
    b: Any = None,
    *,
    eta: float = 0.0,
    eps: float = 0.0,
    prior: Any = None,
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
        One cost matrix a group; negative entries are allowed.
    a, b : arrays of shape (n,) and (m,), optional
        Weights that sum to one; uniform if left out.
    names : sequence of str, optional
        Names of the groups.
    eta, eps, prior, normalise, normalise_weights, solver, tol, max_iter, time_limit, start, \
callback, progress :
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
    stack = check_costs(C)
    labels = tuple(f"g{i}" for i in range(len(stack))) if names is None else tuple(map(str, names))
    if len(labels) != len(stack):
        raise InputError(f"names: {len(labels)} names for {len(stack)} groups")
    problem = _Problem(a, b, eta, eps, prior, normalise, normalise_weights)
    prepared = problem.prepare(lambda: StackedCosts(stack), stack.shape, labels)
    chosen = choose_solver(solver, prepared, tol, max_iter, time_limit)
    return _run(prepared, chosen, start, callback, progress)


def distance(
    X: Any, Y: Any, groups: Any = None, *, p: float = 2.0, metric: Any = "euclidean", **options: Any
) -> float:
    r"""Return the feature-robust Wasserstein distance (the paper's proposition 1).

    .. math::
        \mathrm{FRWD}_p(\mu, \nu) = \Big( \min_\Pi \max_{\alpha \in \Sigma^L}
        \sum_{ij} \pi_{ij} \sum_l \alpha_l\, d(x_i^{(l)}, y_j^{(l)})^p \Big)^{1/p}

    It is a metric between weighted sets of points for every p >= 1 and every metric d.

    Parameters
    ----------
    X, Y, groups :
        As in `solve`.
    p : float
        The order, at least 1.
    metric : str or callable
        The distance d within a group.
    **options :
        As in `solve`; eta and eps must be left out, since they make it no distance.

    Examples
    --------
    >>> import frot
    >>> frot.distance([[0.0, 0.0]], [[3.0, 4.0]], groups="each")
    4.0
    >>> frot.distance([[0.0, 0.0]], [[3.0, 4.0]], groups="all")
    5.0
    """
    p = check_number(p, "p", least=1.0)
    if options.get("eta") or options.get("eps"):
        raise InputError("eta, eps: a distance has neither; use frot.solve for regularised values")
    value = solve(X, Y, groups, p=p, metric=metric, **options).value
    return float(max(value, 0.0) ** (1.0 / p))


@dataclass(frozen=True, eq=False)
class _Problem:
    """The arguments that points and cost stacks share, before they are checked."""

    a: Any
    b: Any
    eta: Any
    eps: Any
    prior: Any
    normalise: Any
    normalise_weights: bool

    def prepare(
        self,
        make_costs: Callable[[], Costs],
        shape: tuple[int, ...],
        names: tuple[str, ...],
        points: tuple[np.ndarray, np.ndarray] | None = None,
        groups: Groups | None = None,
    ) -> Problem:
        """Check everything, then build the costs: no work is done for bad input."""
        count, n, m = shape
        check_masses(self.a, self.b, self.normalise_weights)
        a = check_weights(self.a, n, "a", self.normalise_weights)
        b = check_weights(self.b, m, "b", self.normalise_weights)
        eta, eps = check_number(self.eta, "eta"), check_number(self.eps, "eps")
        log_prior = check_prior(self.prior, count)
        how = check_choice(self.normalise, "normalise", NORMALISATIONS)
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                costs = normalise_costs(make_costs(), a, b, how)
            except (TypeError, ValueError) as error:
                if isinstance(error, InputError):
                    raise
                raise InputError(f"metric: could not be computed ({error})") from error
            problem = Problem(costs, a, b, Simplex(eta, log_prior), eps, names, points, groups)
            level = problem.mean_cost
        if not np.isfinite(level) or level > 1e290:
            raise InputError(
                "costs: are infinite or NaN; scale the points down, or check the metric"
            )
        return problem


def _run(
    problem: Problem, solver: Solver, start: Any, callback: Callback | None, progress: bool
) -> Result:
    """Solve without the points of zero weight, then put them back."""
    small, rows, cols = problem.support()
    begin = Start.parse(start, small, rows, cols, problem.shape)
    result = solver(small, begin, callback, progress)
    if small is problem:
        return result
    _, n, m = problem.shape
    g = np.zeros(m)
    g[cols] = result.potentials[1]
    # Points without weight take the best potential the others leave them.
    mixed = problem.costs.mix(result.alpha)
    f = (mixed[:, cols] - g[cols]).min(axis=1)
    f[rows], g = result.potentials[0], c_transforms(mixed[rows].T, result.potentials[0])[0]
    g[cols] = result.potentials[1]
    return replace(
        result,
        plan=result.plan.expand(rows, cols, (n, m)),
        potentials=(f, g),
        points=problem.points,
    )
