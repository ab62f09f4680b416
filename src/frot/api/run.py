"""A solver and how to run it: without the points of zero weight, which are put back after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from frot._base.stopping import finish, no_deadline
from frot._base.validate import check_callable, check_flag
from frot.api._destroyed import warn_if_destroyed
from frot.plans.plan import Plan
from frot.problem.problem import Problem
from frot.problem.result import Result
from frot.solvers import Callback, Start
from frot.solvers.choose import Solver

__all__ = ["Light", "Run", "negligible", "on_support"]

# Points of weights below this decide nothing if all of them cost no more than this share of what is
# typical.
TINY, NEGLIGIBLE = 1e-100, 1e-30


@dataclass(frozen=True, eq=False)
class Run:
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
        result = self._without_light(problem)
        warn_if_destroyed(problem, result)
        return result

    def _without_light(self, problem: Problem) -> Result:
        if self.start is not None or not problem.costs.on_host:
            return self._solve(problem)
        light = negligible(problem)
        if light is None:
            return self._solve(problem)
        return finish(
            lambda: self._solve(problem.part(light.rows, light.cols)),
            lambda result: _with_light(problem, result, light),
        )

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


class Light(NamedTuple):
    """Rows and columns that matter, and what all others together cost at most."""

    rows: np.ndarray
    cols: np.ndarray
    cost: float


def negligible(problem: Problem) -> Light | None:
    """Find points of so little weight that nothing depends on them; None if there are none.

    Weights of 1e-300, from exponentials, on points far away would otherwise ask an algorithm for
    costs and masses of six hundred digits' range.
    """
    if problem.a.min() >= TINY and problem.b.min() >= TINY:
        return None
    light_a, light_b = (
        (problem.a > 0.0) & (problem.a < TINY),
        (problem.b > 0.0) & (problem.b < TINY),
    )
    if not (light_a.any() or light_b.any()) or problem.costs.forbidden is not None:
        return None
    if not problem.marginals.kept:
        # What a light point keeps is no share of what it weighs.
        return None
    if not problem.adversary.on_simplex:
        # Weights that may be more than one make more of a cost.
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
    return Light(np.flatnonzero(~light_a), np.flatnonzero(~light_b), mass * most)


def _with_light(problem: Problem, result: Result, light: Light) -> Result:
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
