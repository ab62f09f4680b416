"""The referee: the paper's linear program, whole, by HiGHS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from frot._bounds import lower_bound, upper_bound
from frot._errors import InputError
from frot._plan import Plan
from frot._problem import Problem
from frot._solvers._drive import Driven, Offer
from frot._solvers._start import Start
from frot._solvers._vertex import solve_vertex
from frot._validate import check_choice

__all__ = ["LinearProgram"]


@dataclass(frozen=True)
class LinearProgram(Driven):
    r"""Solve the paper's equation for eta = 0 as one linear program with n m + 1 columns.

    .. math::
        \min_{\Pi \in U(a, b),\, t} t \quad \text{s.t.} \quad \langle \Pi, C_l \rangle \le t,
        \quad l = 1, \dots, L

    Slow and plain on purpose: it shares nothing with the other solvers but the bounds, so it can
    judge them.

    Parameters
    ----------
    method : {"simplex", "ipm"}
        HiGHS's algorithm.
    tol : float
        Relative gap that counts as solved.
    max_iter : int
        Kept for symmetry: the program is solved once.
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
    max_iter: int = 2
    time_limit: float | None = None

    def offers(self, problem: Problem, start: Start) -> Iterator[Offer]:
        """Solve the program once; a start is not used."""
        _, n, m = problem.shape
        mass_unit = 1.0 / max(n, m)
        rows, cols = np.divmod(np.arange(n * m), m)
        costs = problem.costs.at(rows, cols)
        unit = float(np.abs(costs).max()) or 1.0
        found = solve_vertex(
            problem.a / mass_unit,
            problem.b / mass_unit,
            rows,
            cols,
            costs / unit,
            method=self.method,
            time_limit=self.time_limit,
            presolve=True,
        )
        if found is not None:
            plan = Plan.from_arcs(rows, cols, found.mass * mass_unit, (n, m))
            lower = lower_bound(problem, found.alpha, found.g * unit)
            yield Offer(upper_bound(problem, plan), lower)

    def check(self, shape: tuple[int, ...], eta: float, eps: float) -> None:
        """Refuse what this solver cannot do."""
        check_choice(self.method, "method", ("simplex", "ipm"))
        if eta > 0.0 or eps > 0.0:
            raise InputError(
                "solver: LinearProgram solves eta = 0 and eps = 0; drop them or use solver='auto'"
            )
