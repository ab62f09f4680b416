r"""The paper's linear program by HiGHS (Huangfu and Hall 2018).

Whole, to check others, or on some arcs, to end a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from frot._base.errors import InputError, SolverError
from frot._base.stopping import DeadlineError, seconds_left
from frot._base.validate import check_choice
from frot.plans.plan import Plan
from frot.problem.bounds import lower_bound, upper_bound
from frot.problem.problem import Problem
from frot.solvers.drive import Offer, Solver, Start


@dataclass(frozen=True)
class LinearProgram(Solver):
    r"""Solve the paper's equation for eta = 0 as one linear program with n m + 1 columns.

    With a `CappedSimplex` it has L more.

    .. math::
        \min_{\Pi \in U(a, b),\, t} t \quad \text{s.t.} \quad \langle \Pi, C_l \rangle \le t,
        \quad l = 1, \dots, L

    The reference for small problems: it shares nothing with the other solvers but the bounds. It is
    right to HiGHS's tolerance, an absolute 1e-10 in units of a typical cost and of a uniform
    weight.

    Parameters
    ----------
    method : {"simplex", "ipm"}
        HiGHS's algorithm.
    tol : float
        Relative gap that counts as solved.
    max_iter : int
        What all solvers have. HiGHS runs once.
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

    def offers(self, problem: Problem, start: Start) -> Iterator[Offer]:
        """Solve the program on all arcs. A start is not used."""
        groups, n, m = problem.shape
        # Roughly the seconds it takes to hand the program's entries to HiGHS.
        if 1e-7 * (groups + 2) * n * m > seconds_left():
            raise DeadlineError
        rows, cols = np.divmod(np.arange(n * m), m)
        costs = problem.costs.at(rows, cols)
        unit, cap = problem.typical_cost or 1.0, problem.adversary.cap
        program = EpigraphProgram(problem.a, problem.b, rows, cols, costs, self.method, cap, unit)
        try:
            vertex = program.solve(presolve=True)
        except SolverError:
            # HiGHS gave up: what the points alone prove holds.
            return
        if vertex is not None:
            plan = Plan.from_arcs(rows, cols, vertex.mass, (n, m))
            lower = lower_bound(problem, vertex.alpha, vertex.g)
            yield Offer(upper_bound(problem, plan), lower)

    def check(self, shape: tuple[int, ...], eta: float, eps: float) -> None:
        """Refuse what this solver cannot do."""
        check_choice(self.method, "method", ("simplex", "ipm"))
        if eta > 0.0 or eps > 0.0:
            raise InputError(
                "solver: LinearProgram solves eta = 0 and eps = 0; drop them or use solver='auto'"
            )


class Vertex(NamedTuple):
    """The arcs, the mass on them, weights of the groups, and potentials of the columns."""

    arcs: tuple[np.ndarray, np.ndarray]
    mass: np.ndarray
    alpha: np.ndarray
    g: np.ndarray


class EpigraphProgram:
    r"""The linear program on some arcs.

    .. math::
        \min_{x, v \ge 0,\, t} t + c\, 1^\top v \quad \text{s.t.} \quad A x = (a, b), \quad
        C x \le t 1 + v

    with v = 0 where the cap c on the weights of groups, which are the duals of their rows, is one.
    Arcs are `rows` and `cols`, (K,), of `costs`, (G, K).

    HiGHS's tolerances are absolute: costs are in multiples of `unit`, and masses in those of a
    uniform weight.

    Examples
    --------
    >>> half, arcs = np.array([0.5, 0.5]), np.array([0, 1])
    >>> EpigraphProgram(half, half, arcs, arcs, np.array([[1.0, 3.0]])).solve().mass
    array([0.5, 0.5])
    """

    # Steps for each row and column, or of the interior point, after which HiGHS cycles.
    most_steps = 200

    def __init__(
        self,
        a: np.ndarray,
        b: np.ndarray,
        rows: np.ndarray,
        cols: np.ndarray,
        costs: np.ndarray,
        method: str = "simplex",
        cap: float = 1.0,
        unit: float = 1.0,
    ) -> None:
        groups, count = costs.shape
        n, m = len(a), len(b)
        self.unit, self.mass_unit, self.method = unit, 1.0 / max(n, m), method
        self.a, self.b, self.rows, self.cols = a / self.mass_unit, b / self.mass_unit, rows, cols
        # HiGHS refuses larger entries.
        self.costs = np.clip(costs / unit, -1e12, 1e12)
        self.sizes = (groups, count, n, m)
        # One marginal follows from the others; asked for twice, rounding can make them disagree.
        self.implied = n + int(np.argmax(b))
        # What the variables cost: masses nothing, the level one, what groups are over it the cap.
        over = np.full(groups if cap < 1.0 else 0, cap)
        self.cost = np.concatenate([np.zeros(count), [1.0], over])

    def solve(self, presolve: bool = False) -> Vertex | None:
        """Return the solution as mass, weights and potentials; None if the arcs admit no plan.

        Raises
        ------
        SolverError
            If neither of HiGHS's algorithms ends with an answer.
        """
        groups, count, n, m = self.sizes
        solution = self._run(presolve)
        if solution is None:
            return None
        x, y = solution
        alpha = np.maximum(-y[n + m :], 0.0)
        total = alpha.sum()
        alpha = alpha / total if total > 0.0 else np.full(groups, 1.0 / groups)
        mass = np.maximum(x[:count], 0.0) * self.mass_unit
        return Vertex((self.rows, self.cols), mass, alpha, y[n : n + m] * self.unit)

    def _run(self, presolve: bool) -> tuple[np.ndarray, np.ndarray] | None:
        """Return HiGHS's values of the columns and duals of the rows; None if infeasible."""
        import highspy

        if seconds_left() == 0.0:
            raise DeadlineError
        known = highspy.HighsModelStatus
        groups, count, n, m = self.sizes
        model = highspy.HighsLp()
        model.num_col_ = len(self.cost)
        model.num_row_ = n + m + groups
        model.col_cost_ = self.cost
        least = np.zeros(len(self.cost))
        # The level is free.
        least[count] = -np.inf
        model.col_lower_ = least
        model.col_upper_ = np.full(len(self.cost), np.inf)
        upper = np.concatenate([self.a, self.b, np.zeros(groups)])
        lower = upper.copy()
        lower[n + m :] = -np.inf
        lower[self.implied], upper[self.implied] = -np.inf, np.inf
        model.row_lower_, model.row_upper_ = lower, upper
        self._fill_matrix(model, highspy)
        # Where one of its algorithms gives up, the other may not.
        other = "simplex" if self.method == "ipm" else "ipm"
        for method in (self.method, other):
            highs = self._started(highspy, model, method, presolve)
            status = highs.getModelStatus()
            if status not in (known.kUnknown, known.kSolveError, known.kIterationLimit):
                break
        if status in (known.kInfeasible, known.kUnboundedOrInfeasible):
            return None
        if status == known.kTimeLimit:
            raise DeadlineError
        if status == known.kInterrupt:
            raise KeyboardInterrupt
        if status != known.kOptimal:
            raise SolverError(f"HiGHS stopped with {highs.modelStatusToString(status)!r}")
        solution = highs.getSolution()
        return np.asarray(solution.col_value), np.asarray(solution.row_dual)

    @staticmethod
    def _started(highspy: Any, model: Any, method: str, presolve: bool) -> Any:
        """Run HiGHS on the model; what it came to is asked of it."""
        highs, most_steps = highspy.Highs(), EpigraphProgram.most_steps
        for name, setting in {
            "output_flag": False,
            "threads": 1,
            "solver": method,
            "presolve": "on" if presolve else "off",
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
            "time_limit": max(seconds_left(), 1e-3),
            "simplex_iteration_limit": most_steps * (model.num_col_ + model.num_row_),
            "ipm_iteration_limit": most_steps,
        }.items():
            highs.setOptionValue(name, setting)
        # A long solve runs in a thread of its own, so that Ctrl-C reaches Python.
        highs.HandleKeyboardInterrupt = model.num_col_ > 20_000
        highs.passModel(model)
        (highs.solve if highs.HandleKeyboardInterrupt else highs.run)()
        return highs

    def _fill_matrix(self, model: Any, highspy: Any) -> None:
        groups, count, n, m = self.sizes
        column = np.empty((count, 2 + groups), dtype=np.int32)
        column[:, 0], column[:, 1] = self.rows, n + np.asarray(self.cols)
        column[:, 2:] = n + m + np.arange(groups, dtype=np.int32)
        entries = np.ones((count, 2 + groups))
        entries[:, 2:] = self.costs.T
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        starts = np.arange(count + 1, dtype=np.int64) * (2 + groups)
        # The level, and then what each group is over it.
        over = len(self.cost) - count - 1
        ends = starts[-1] + groups + np.arange(over + 1, dtype=np.int64)
        model.a_matrix_.start_ = np.append(starts, ends)
        last = n + m + np.arange(groups, dtype=np.int32)
        model.a_matrix_.index_ = np.concatenate([column.ravel(), last, last[:over]])
        model.a_matrix_.value_ = np.append(entries.ravel(), -np.ones(groups + over))
