"""From checked options to a result: make the problem, leave out weightless points, solve.

Points of zero weight, or next to none, are put back after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot._base.contract import check_cost_range, check_eps_range
from frot._base.errors import InputError, warn_caller
from frot._base.stopping import finish, no_deadline
from frot._base.validate import check_callable, check_flag
from frot.api.normalise import normalise_costs
from frot.costs import Costs
from frot.plans.plan import Plan
from frot.problem.adversary import SimplexFamily
from frot.problem.marginals import MarginalPrice
from frot.problem.problem import Problem
from frot.problem.result import Result, Status
from frot.problem.terms import ProblemTerms, amount_at, check_terms
from frot.solvers import Callback, Start
from frot.solvers.choose import Solver, choose_solver
from frot.solvers.start import allowed_plan


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
    **given: Any,
) -> tuple[ProblemTerms, SolverRun]:
    """Check the options that `solve`, `solve_costs` and `pairwise` share, before any work.

    Costs have the given shape, and arrays are at `home`. What is `given` besides a solver and its
    limits is for `check_terms`.
    """
    auto, on_device = isinstance(solver, str) and solver == "auto", on_accelerator(home)
    terms = check_terms(shape, **given, eps_if_needed=auto, on_device=on_device)
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
        if costs.forbidden is not None and terms.tau is None:
            # Raises where these leave none.
            allowed_plan(costs.forbidden, a, b)
        elif costs.forbidden is not None and terms.penalty == "kl":
            raise InputError("C: infinite costs are taken with penalty='tv' or without tau")
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


# Points of weights below this decide nothing if all of them cost no more than this share of what is
# typical.
TINY, NEGLIGIBLE = 1e-100, 1e-30


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
        """Solve without the points that weigh next to nothing, which are put back after."""
        light = negligible(problem) if self.start is None and problem.costs.on_host else None
        if light is None:
            result = self._solve(problem)
        else:
            result = finish(
                lambda: self._solve(problem.part(light.rows, light.cols)),
                lambda found: _with_negligible(problem, found, light),
            )
        warn_if_destroyed(problem, result)
        return result

    def _solve(self, problem: Problem) -> Result:
        """Solve on the support of the weights, unless the solver takes points without weight."""
        if self.solver.takes_zero_weights:
            everyone = np.arange(len(problem.a)), np.arange(len(problem.b))
            plans = not self.solver.any_library
            start = Start.parse(self.start, problem, *everyone, plans=plans)
            return self.solver(problem, start, self.callback, self.progress)
        return on_support(
            problem,
            lambda small, rows, cols: self.solver(
                small, Start.parse(self.start, small, rows, cols), self.callback, self.progress
            ),
        )


class NegligiblePoints(NamedTuple):
    """Rows and columns that matter, and what all others together cost at most."""

    rows: np.ndarray
    cols: np.ndarray
    cost: float


def negligible(problem: Problem) -> NegligiblePoints | None:
    """Find points of so little weight that nothing depends on them; None if there are none.

    Weights of 1e-300, from exponentials, on points far away would otherwise ask an algorithm for
    costs and masses of six hundred digits' range.
    """
    if problem.a.min() >= TINY and problem.b.min() >= TINY:
        return None
    light_a, light_b = ((side > 0.0) & (side < TINY) for side in (problem.a, problem.b))
    if not (light_a.any() or light_b.any()) or problem.costs.forbidden is not None:
        return None
    # What a light point keeps is no share of what it weighs where marginals are not kept, and
    # weights that may be more than one make more of a cost.
    if not (problem.marginals.kept and problem.adversary.on_simplex):
        return None
    # No group's cost is more than the sum of all, where none is negative.
    total = problem.costs.mix(np.ones(problem.shape[0]))
    if not (total >= 0.0).all() or problem.costs.least(problem.a, problem.b).min() < 0.0:
        return None
    # Their mass moves at the largest cost at most, and their potentials are no larger; an entropy
    # of the plan has logarithms of weights, which are no more than 1,500 in size.
    most = 4.0 * float(total.max()) + 1_500.0 * problem.eps
    mass = float(problem.a[light_a].sum() + problem.b[light_b].sum())
    if not mass * most <= NEGLIGIBLE * problem.typical_cost:
        return None
    return NegligiblePoints(np.flatnonzero(~light_a), np.flatnonzero(~light_b), mass * most)


def _with_negligible(problem: Problem, result: Result, light: NegligiblePoints) -> Result:
    """Send light points to the heaviest of the others, and widen the interval by their cost."""
    # The answer is there: that its time is up must not lose it.
    with no_deadline():
        whole = _put_back(problem, result, light.rows, light.cols)
        rows, cols, mass = whole.plan.arcs()
    out_a = np.setdiff1d(np.arange(len(problem.a)), light.rows)
    out_b = np.setdiff1d(np.arange(len(problem.b)), light.cols)
    heavy_a, heavy_b = int(np.argmax(problem.a)), int(np.argmax(problem.b))
    plan = Plan.from_arcs(
        np.concatenate([rows, out_a, np.full(len(out_b), heavy_a)]),
        np.concatenate([cols, np.full(len(out_a), heavy_b), out_b]),
        np.concatenate([mass, problem.a[out_a], problem.b[out_b]]),
        problem.shape[1:],
    )
    return replace(whole, plan=plan, lower=whole.lower - light.cost, upper=whole.upper + light.cost)


def on_support(
    problem: Problem, solve: Callable[[Problem, np.ndarray, np.ndarray], Result]
) -> Result:
    """Solve without the points of zero weight, and put them back.

    `solve` gets the problem that is left, and the rows and columns it has.
    """
    small, rows, cols = problem.support()
    if small is problem:
        return solve(small, rows, cols)
    return finish(
        lambda: solve(small, rows, cols), lambda result: _put_back(problem, result, rows, cols)
    )


def _put_back(problem: Problem, result: Result, rows: np.ndarray, cols: np.ndarray) -> Result:
    f, g = result.potentials
    # Points without weight take the best potential the others leave them, rows first.
    mixed = problem.costs.mix(result.alpha)
    all_f = _finite((mixed[:, cols] - g).min(axis=1))
    all_f[rows] = f
    all_g = _finite((mixed - all_f[:, None]).min(axis=0))
    all_g[cols] = g
    plan = result.plan.expand(rows, cols, (len(problem.a), len(problem.b)))
    potentials = (all_f, np.asarray(all_g))
    return replace(result, plan=plan, potentials=potentials, points=problem.points)


def _finite(potential: np.ndarray) -> np.ndarray:
    """Points that may go nowhere can have any potential: zero."""
    return np.where(np.isfinite(potential), potential, 0.0)


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
        warn_caller(f"tau: is too small: {kept}; the mean cost is {result.mean_cost:.4g}")
        return
    with no_deadline():
        half = keeps_half(problem, to_numpy(result.alpha))
    warn_caller(f"tau: is too small: {kept}; tau={half:.3g} would keep about half")


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
            f"their mass; frot.solve on member {worst} names a tau that keeps half"
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
