"""Which solver: by name, or by what the problem is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from frot._errors import InputError
from frot._oracles import NetworkSimplex, Sinkhorn
from frot._problem import Problem
from frot._result import Result
from frot._solvers._drive import Callback
from frot._solvers._exact import SMOOTH_GROUPS, Exact
from frot._solvers._frank_wolfe import FrankWolfe
from frot._solvers._linear_program import LinearProgram
from frot._solvers._start import Start
from frot._validate import check_number

__all__ = ["Solver", "choose_solver"]


class Solver(Protocol):
    """A frozen dataclass with ``tol``, ``max_iter`` and ``time_limit`` that can be called."""

    @property
    def tol(self) -> float:
        """Relative gap at which to stop."""
        ...

    @property
    def max_iter(self) -> int:
        """Iterations at most."""
        ...

    @property
    def time_limit(self) -> float | None:
        """Seconds at most."""
        ...

    def __call__(
        self,
        problem: Problem,
        start: Start | None = None,
        callback: Callback | None = None,
        progress: bool = False,
    ) -> Result:
        """Solve `problem`."""
        ...

    def check(self, problem: Problem) -> None:
        """Raise InputError if `problem` is not for this solver."""
        ...


def choose_solver(
    solver: Any,
    problem: Problem,
    tol: float | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
) -> Solver:
    """Return the solver asked for, or for "auto" the one that suits the problem.

    "auto" takes `Exact` for eps = 0, unless eta > 0 and there are more than 3000 groups: then
    `FrankWolfe` with fully corrective steps. For eps > 0 it takes `FrankWolfe` with `Sinkhorn`.
    """
    if solver == "auto":
        many = problem.adversary.eta > 0.0 and problem.shape[0] > SMOOTH_GROUPS
        exact = problem.eps == 0.0 and not many
        solver = "exact" if exact else "frank_wolfe"
    if isinstance(solver, str):
        oracle = Sinkhorn() if problem.eps > 0.0 else NetworkSimplex()
        known = {
            "exact": Exact(),
            "frank_wolfe": FrankWolfe(oracle=oracle),
            "linear_program": LinearProgram(),
        }
        if solver not in known:
            names = ", ".join(map(repr, ["auto", *known]))
            raise InputError(f"solver: {solver!r} is none of {names}, nor a solver like Exact()")
        solver = known[solver]
    if isinstance(solver, type):
        raise InputError(f"solver: {solver.__name__} is a class; pass {solver.__name__}()")
    if not callable(solver) or not hasattr(solver, "check"):
        raise InputError(f"solver: {solver!r} is neither a name nor a solver like Exact()")
    limits = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit}
    changes = {name: limit for name, limit in limits.items() if limit is not None}
    chosen: Any = replace(solver, **changes) if changes else solver  # type: ignore[type-var]
    _check_limits(chosen)
    chosen.check(problem)
    return chosen


def _check_limits(solver: Solver) -> None:
    check_number(solver.tol, "tol")
    if not isinstance(solver.max_iter, int) or solver.max_iter < 1:
        raise InputError(f"max_iter: must be a whole number >= 1, got {solver.max_iter!r}")
    if solver.time_limit is not None:
        check_number(solver.time_limit, "time_limit", strict=True)
