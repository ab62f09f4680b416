"""A solver and how to run it: without the points of zero weight, which are put back after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from frot._interrupted import finish
from frot._problem import Problem
from frot._result import Result
from frot._solvers import Callback, Start
from frot._solvers._choose import Solver
from frot._validate import check_callable, check_flag

__all__ = ["Run", "on_support"]


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
        """Solve on the support of the weights, unless the solver takes points without weight."""
        if getattr(self.solver, "takes_zero_weights", False):
            everyone = np.arange(len(problem.a)), np.arange(len(problem.b))
            plans = not getattr(self.solver, "any_library", False)
            start = Start.parse(self.start, problem, *everyone, plans=plans)
            return self.solver(problem, start, self.callback, self.progress)
        return on_support(
            problem,
            lambda small, rows, cols: self.solver(
                small, Start.parse(self.start, small, rows, cols), self.callback, self.progress
            ),
        )


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
