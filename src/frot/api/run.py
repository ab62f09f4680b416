"""From checked options to a result: make the problem, leave out points without weight, solve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot._base.contract import check_cost_range, check_eps_range
from frot._base.errors import DataWarning, warn_caller
from frot._base.stopping import Interrupted
from frot._base.validate import check_callable, check_flag
from frot.api.normalise import normalise_costs
from frot.costs import Costs
from frot.costs.protocol import UNIT, blocks
from frot.plans.combine import expand_plan
from frot.problem.adversary import SimplexFamily
from frot.problem.marginals import MarginalPrice
from frot.problem.problem import Problem
from frot.problem.result import Result, Status
from frot.problem.terms import ProblemTerms, amount_at, check_terms
from frot.solvers import Callback, Start
from frot.solvers.choose import Solver, choose_solver, refuse_exact


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
) -> tuple[ProblemTerms, SolverRun]:
    """Check the options that `solve`, `solve_costs` and `pairwise` share, before any work.

    Costs have the given shape, and arrays are at `home`; points may be `on_a_line`, where
    transport is sorting. What is `given` besides a solver and its limits is for
    `check_terms`.
    """
    terms = check_terms(shape, **given)
    if isinstance(solver, str) and solver == "auto":
        refuse_exact(shape, terms, on_accelerator(home), on_a_line)
    chosen = choose_solver(solver, shape, terms, tol=tol, max_iter=max_iter, time_limit=time_limit)
    run = SolverRun(chosen, start, callback, progress)
    run.check(shape)
    return terms, run


def make_problem(
    make_costs: Callable[[], Costs], terms: ProblemTerms, names: tuple[str, ...], **known: Any
) -> Problem:
    """Compute the costs and normalise them.

    What else is `known` of the problem, its points for one, goes in as it is.
    """
    a, b = terms.a, terms.b
    with np.errstate(over="ignore", invalid="ignore"):
        costs = make_costs()
        if terms.normalise != "none":
            costs = normalise_costs(costs, *terms.shares, terms.normalise)
        plain = Problem(
            costs, a, b, terms.adversary, names=names, marginals=terms.marginals(), **known
        )
        level = plain.mean_cost
        check_cost_range(level, plain.largest_cost)
    adversary = terms.adversary
    if isinstance(adversary, SimplexFamily):
        adversary = adversary.having(amount_at(terms.eta, level), terms.log_prior)
    # Where nothing costs anything every eps gives a b^T, but it has to be one.
    eps = amount_at(terms.eps, level or 1.0)
    check_eps_range(level, eps)
    if adversary is plain.adversary and eps == 0.0 and terms.tau is None:
        return plain
    return plain.having(adversary=adversary, eps=eps, marginals=terms.marginals(level or 1.0))


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
        """Solve without the points that weigh nothing, which are put back after.

        After Ctrl-C the result has the status INTERRUPTED: see `handed_out`.
        """
        result = on_support(problem, self._solve)
        warn_if_destroyed(problem, result)
        return result

    def _solve(self, problem: Problem, rows: np.ndarray, cols: np.ndarray) -> Result:
        """Solve what is left of a problem: some rows and columns."""
        start = Start.parse(self.start, problem, rows, cols, plans=not self.solver.any_library)
        try:
            return self.solver(problem, start, self.callback, self.progress)
        except Interrupted as stop:
            return stop.result


def on_support(
    problem: Problem, solve: Callable[[Problem, np.ndarray, np.ndarray], Result]
) -> Result:
    """Solve without the points of zero weight, and put them back.

    `solve` gets the problem that is left, and the rows and columns it has.
    """
    small, rows, cols = problem.support()
    if small is problem:
        return solve(small, rows, cols)
    return _put_back(problem, solve(small, rows, cols), rows, cols)


def _put_back(problem: Problem, result: Result, rows: np.ndarray, cols: np.ndarray) -> Result:
    """Give points without weight rows and columns of zeros, and potentials.

    These are c-transforms of the others' (`_transformed`), rows first. Without eps columns look at
    all rows, so that no two points are left with a cost below their potentials.
    """
    n, m = len(problem.a), len(problem.b)
    f, g = np.zeros(n), np.zeros(m)
    f[rows], g[cols] = (to_numpy(part) for part in result.potentials)
    alpha, terms = to_numpy(result.alpha), problem.marginals
    eps = problem.eps
    out_rows, out_cols = np.setdiff1d(np.arange(n), rows), np.setdiff1d(np.arange(m), cols)
    if len(out_rows):
        costs = problem.costs.take(out_rows, cols)
        f[out_rows] = _transformed(costs, alpha, g[cols], problem.b[cols], eps, 0)
        f[out_rows] = _priced(f[out_rows], terms.tau_a, problem)
    if len(out_cols):
        by = rows if eps > 0.0 else np.arange(n)
        costs = problem.costs.take(by, out_cols)
        g[out_cols] = _transformed(costs, alpha, f[by], problem.a[by], eps, 1)
        g[out_cols] = _priced(g[out_cols], terms.tau_b, problem)
    plan = expand_plan(result.plan, rows, cols, (n, m))
    known = None if result.problem is None else problem
    return replace(result, plan=plan, potentials=(f, g), points=problem.points, problem=known)


# Entries of costs that are looked at together.
TRANSFORMED_AT_ONCE = 4_000_000


def _transformed(
    costs: Costs, alpha: np.ndarray, other: np.ndarray, weights: np.ndarray, eps: float, axis: int
) -> np.ndarray:
    r"""Return the potentials of all rows (`axis` 0) or columns (1) that the other side leaves them.

    .. math::
        \min_j M_{ij} - g_j, \qquad \text{with eps} \quad
        -\varepsilon \log \sum_j b_j e^{(g_j - M_{ij}) / \varepsilon}

    The second is the derivative of the optimum by the weight of a point that has none.
    """
    count, width = costs.shape[1 + axis], costs.shape[2 - axis]
    found, everyone = np.empty(count), np.arange(width)
    for part in blocks(count, width, TRANSFORMED_AT_ONCE):
        some = np.arange(count)[part]
        ends = (some, everyone) if axis == 0 else (everyone, some)
        mixed = costs.take(*ends).mix(alpha)
        reduced = (mixed if axis == 0 else mixed.T) - other
        least = reduced.min(axis=1)
        if eps > 0.0:
            shares = np.exp((least[:, None] - reduced) / eps) @ weights
            least = least - eps * np.log(np.maximum(shares, UNIT * weights.min()))
        found[part] = least
    # A user's metric may be infinite where it has no say.
    return np.where(np.isfinite(found), found, 0.0)


def _priced(potential: np.ndarray, tau: float, problem: Problem) -> np.ndarray:
    """Potentials where mass has a price: with eps a share of them, without it at most the price."""
    if tau == np.inf:
        return potential
    if problem.marginals.partial:
        return np.minimum(potential, tau)
    return potential * (tau / (tau + problem.eps))


# Less of the lighter side than this is next to nothing.
NEXT_TO_NOTHING = 1e-2
# Rows that are looked at for a tau, and columns with each.
LOOKED_AT = 1_000
HALVINGS = 60


def warn_if_destroyed(problem: Problem, result: Result) -> None:
    """Say which tau keeps half where less than a hundredth was kept."""
    settled = result.status in (Status.CONVERGED, Status.STALLED)
    if problem.marginals.kept or not settled:
        return
    mass = _mass(problem, result)
    if mass >= NEXT_TO_NOTHING * min(result.totals):
        return
    kept = f"{mass / min(result.totals):.1e} of the lighter side's mass was kept"
    if not problem.costs.on_host:
        text = f"tau: is too small: {kept}; the mean cost is {result.mean_cost:.4g}"
        warn_caller(text, category=DataWarning)
        return
    half = keeps_half(problem, to_numpy(result.alpha))
    text = f"tau: is too small: {kept}; tau={half:.3g} would keep about half"
    warn_caller(text, category=DataWarning)


def warn_if_members_are_destroyed(
    weights: tuple[np.ndarray, np.ndarray],
    potentials: tuple[np.ndarray, np.ndarray],
    prices: tuple[np.ndarray, np.ndarray],
) -> None:
    """Say so of a batch; weights and potentials are (B, n) and (B, m), prices (B,)."""
    kept = np.zeros(len(prices[0]))
    for masses, potential, tau in zip(weights, potentials, prices, strict=True):
        for at in np.flatnonzero(np.isfinite(tau)):
            own = masses[at] > 0.0
            mass = MarginalPrice(tau[at]).kept(masses[at][own], potential[at][own]).sum()
            kept[at] = max(kept[at], mass)
    shares = kept / np.minimum(weights[0].sum(axis=1), weights[1].sum(axis=1))
    if (low := int((shares < NEXT_TO_NOTHING).sum())) > 0:
        worst = int(shares.argmin())
        warn_caller(
            f"tau: is too small: {low} of {len(shares)} members kept less than a hundredth of "
            f"their mass; frot.solve on member {worst} names a tau that keeps half",
            category=DataWarning,
        )


def _mass(problem: Problem, result: Result) -> float:
    """What was kept, about, without a pass over a plan that is not there yet."""
    if problem.marginals.partial:
        return result.mass
    pairs = zip(problem.marginals.sides, (problem.a, problem.b), result.potentials, strict=True)
    # Points without weight may have any potential.
    return max(
        float(side.kept(weights[weights > 0.0], to_numpy(potential)[weights > 0.0]).sum())
        for side, weights, potential in pairs
        if side.soft
    )


def keeps_half(problem: Problem, alpha: np.ndarray) -> float:
    r"""Return a price of both sides that keeps half of the mass, or so.

    With one partner each, at the distance :math:`m_i` of the nearest point, a pair keeps
    :math:`e^{-m_i / 2 \tau}` of its mass, or, where mass is left out, all if
    :math:`m_i < 2 \tau`.

    Examples
    --------
    >>> import math
    >>> from frot.costs import StackedCosts
    >>> from frot.problem.marginals import Marginals
    >>> costs = StackedCosts(np.array([[[2.0]]]))
    >>> problem = Problem(costs, np.ones(1), np.ones(1), marginals=Marginals(0.01, 0.01))
    >>> round(keeps_half(problem, np.ones(1)) * math.log(2.0), 9)
    1.0
    """
    n, m = problem.shape[1:]
    rows, cols = (np.linspace(0, k - 1, min(k, LOOKED_AT)).astype(int) for k in (n, m))
    part = problem.part(rows, cols)
    mixed = part.costs.mix(alpha)
    sides = ((mixed.min(axis=1), part.a), (mixed.min(axis=0), part.b))
    # The side that is worse off decides.
    return max(_half(np.maximum(least, 0.0), w, problem.marginals.partial) for least, w in sides)


def _half(least: np.ndarray, weights: np.ndarray, partial: bool) -> float:
    """Return the tau of one side."""
    shares = weights / weights.sum()
    if partial:
        order = np.argsort(least)
        return 0.5 * float(least[order][np.searchsorted(np.cumsum(shares[order]), 0.5)])
    low, high = 0.0, float(least.max()) / np.log(2.0) + 1e-300
    for _ in range(HALVINGS):
        tau = 0.5 * (low + high)
        kept = float(shares @ np.exp(-np.minimum(least / (2.0 * tau), 700.0)))
        low, high = (tau, high) if kept < 0.5 else (low, tau)
    return float(high)
