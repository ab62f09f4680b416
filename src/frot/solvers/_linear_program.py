"""The referee: the paper's linear program, whole, by HiGHS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from frot._base.errors import InputError, SolverError
from frot._base.stopping import DeadlineError, seconds_left
from frot._base.validate import check_choice
from frot.plans.plan import Plan
from frot.problem.bounds import lower_bound, upper_bound
from frot.problem.problem import Problem
from frot.problem.status import Status
from frot.solvers._start import Start
from frot.solvers.drive import Driven, Offer
from frot.solvers.exact.column_generation import column_generation, column_generation_suits
from frot.solvers.exact.vertex import EpigraphProgram, Vertex

__all__ = ["LinearProgram"]

REFINEMENTS = 6
# Units of cost that are tried.
UNITS = 3
# Refinements in a row that prove no more, after which more of them would not either.
IDLE = 2
# Seconds it takes to hand an entry of the program to HiGHS, roughly.
BUILD_SECONDS = 1e-7


@dataclass(frozen=True)
class LinearProgram(Driven):
    r"""Solve the paper's equation for eta = 0 as one linear program with n m + 1 columns.

    With a `CappedSimplex` it has L more.

    .. math::
        \min_{\Pi \in U(a, b),\, t} t \quad \text{s.t.} \quad \langle \Pi, C_l \rangle \le t,
        \quad l = 1, \dots, L

    The reference for small problems: it shares nothing with the other solvers but the bounds. Only
    where HiGHS cannot decide, as with costs from 1 to 1e15, exact pivots of `Exact` finish small
    problems.

    Parameters
    ----------
    method : {"simplex", "ipm"}
        HiGHS's algorithm.
    tol : float
        Relative gap that counts as solved.
    max_iter : int
        Solutions at most: the first one, and each of its refinements.
    time_limit : float, optional
        Seconds.

    Examples
    --------
    >>> import frot
    >>> X, Y = [[0.0, 0.0], [1.0, 1.0]], [[1.0, 3.0], [0.0, 2.0]]
    >>> round(frot.solve(X, Y, solver=frot.LinearProgram()).value, 9)
    4.0
    """

    method: Literal["simplex", "ipm"] = "simplex"
    tol: float = 1e-7
    max_iter: int = 10
    time_limit: float | None = None

    @property
    def end(self) -> Status:
        """The program was solved, but not well enough."""
        return Status.UNDECIDED

    def offers(self, problem: Problem, start: Start) -> Iterator[Offer]:
        """Solve the program, and refine its solution while it is not good enough.

        A start is not used.
        """
        groups, n, m = problem.shape
        if BUILD_SECONDS * (groups + 2) * n * m > seconds_left():
            raise DeadlineError
        rows, cols = np.divmod(np.arange(n * m), m)
        if problem.costs.forbidden is not None:
            allowed = ~problem.costs.forbidden.ravel()
            rows, cols = rows[allowed], cols[allowed]
        costs = problem.costs.at(rows, cols)
        unit, alpha = _unit(problem, costs), None
        for _ in range(UNITS):
            program = EpigraphProgram(
                problem.a, problem.b, rows, cols, costs, self.method, problem.adversary.cap, unit
            )
            # HiGHS may give up where the unit is far from what has to be paid, as the mean may be.
            value, doubt, best, idle = problem.mean_cost, 0.0, (np.inf, -np.inf), 0
            for found in _refined(program):
                plan = Plan.from_arcs(rows, cols, found.mass, (n, m))
                upper = upper_bound(problem, plan)
                lower = lower_bound(problem, found.alpha, found.g)
                alpha = lower.alpha
                yield Offer(upper, lower)
                value, doubt = abs(upper.value), upper.bound - upper.value + lower.slack
                idle = 0 if upper.bound < best[0] or lower.bound > best[1] else idle + 1
                if idle == IDLE:
                    break
                best = min(best[0], upper.bound), max(best[1], lower.bound)
            # Of a value that may be rounding and no more, no unit can be told.
            if not doubt < value < np.inf or 0.01 * unit <= value <= 100.0 * unit:
                break
            # Digits are where the unit is: that of the value, now that it is known.
            unit = value
        if column_generation_suits(problem):
            # Still not good enough: costs are further apart than HiGHS's tolerances can tell.
            pivots = column_generation(problem, alpha, self.tol)
            yield from (offer for offer in pivots if offer.lower is not None)

    def check(self, shape: tuple[int, ...], eta: float, eps: float) -> None:
        """Refuse what this solver cannot do."""
        check_choice(self.method, "method", ("simplex", "ipm"))
        if eta > 0.0 or eps > 0.0:
            raise InputError(
                "solver: LinearProgram solves eta = 0 and eps = 0; drop them or use solver='auto'"
            )


def _unit(problem: Problem, costs: np.ndarray) -> float:
    """The unit of cost to work in: typical ones, so that a few huge ones do not hide them."""
    return problem.typical_cost or float(np.abs(costs).max()) or 1.0


def _refined(program: EpigraphProgram) -> Iterator[Vertex]:
    """Yield the solution, and what refinements make of it."""
    try:
        more = program.solve(presolve=True)
        for _ in range(REFINEMENTS):
            if not more:
                return
            yield program.vertex()
            more = program.refine()
    except SolverError:
        # What was found until then holds; where that is nothing the driver has bounds.
        return
