r"""The paper's linear program by HiGHS: whole, to check others, or on some arcs, to end a run.

HiGHS is right to an absolute 1e-10, which is nothing to a point of weight 1e-12. A solution is
therefore refined: what it misses is a linear program of the same shape, and once that is scaled up
its solution adds as many digits again (Gleixner, Steffy and Wolter, Iterative refinement for linear
programming, 2016).
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
from frot.solvers.drive import Driven, Offer
from frot.solvers.exact.column_generation import column_generation, column_generation_suits
from frot.solvers.start import Start

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

    def offers(self, problem: Problem, start: Start) -> Iterator[Offer]:
        """Solve the program, and refine its solution while it is not good enough.

        A start is not used.
        """
        groups, n, m = problem.shape
        if BUILD_SECONDS * (groups + 2) * n * m > seconds_left():
            raise DeadlineError
        rows, cols = np.divmod(np.arange(n * m), m)
        costs = problem.costs.at(rows, cols)
        # A typical cost is the unit, so that a few huge ones do not hide the others.
        unit, alpha = problem.typical_cost or float(np.abs(costs).max()) or 1.0, None
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


# Units that an arc costs at most.
DEAREST = 1e12
# Steps of HiGHS: of the simplex for each row and column, and of the interior point.
MOST_STEPS = 200
# What a refinement may magnify, at most.
MOST_SCALE = 1e9


class Vertex(NamedTuple):
    """Mass on the arcs, weights of the groups, and potentials of the columns."""

    mass: np.ndarray
    alpha: np.ndarray
    g: np.ndarray


class EpigraphProgram:
    r"""The linear program on some arcs, and its solution so far: masses, level and duals.

    .. math::
        \min_{x, v \ge 0,\, t} t + c\, 1^\top v \quad \text{s.t.} \quad A x = (a, b), \quad
        C x \le t 1 + v

    with v = 0 where the cap c on the weights of groups, which are the duals of their rows, is one.
    Arcs are `rows` and `cols`, (K,), of `costs`, (G, K).

    HiGHS's tolerances are absolute, and it takes entries from 1e-9 to 1e15: costs are in multiples
    of `unit`, cut where no good plan pays them, and masses in those of a uniform weight.

    Examples
    --------
    >>> half, arcs = np.array([0.5, 0.5]), np.array([0, 1])
    >>> program = EpigraphProgram(half, half, arcs, arcs, np.array([[1.0, 3.0]]))
    >>> program.solve(), program.vertex().mass
    (True, array([0.5, 0.5]))
    """

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
        self.costs = np.clip(costs / unit, -DEAREST, DEAREST)
        self.sizes = (groups, count, n, m)
        # One marginal follows from the others; asked for twice, rounding can make them disagree.
        self.implied = n + int(np.argmax(b))
        # What the variables cost: masses nothing, the level one, what groups are over it the cap.
        over = np.full(groups if cap < 1.0 else 0, cap)
        self.cost = np.concatenate([np.zeros(count), [1.0], over])
        self.x = np.zeros(len(self.cost), dtype=np.longdouble)
        self.y = np.zeros(n + m + groups, dtype=np.longdouble)

    def solve(self, presolve: bool = False) -> bool:
        """Solve it; False if the arcs admit no plan."""
        right = np.concatenate([self.a, self.b, np.zeros(self.sizes[0])])
        found = self._run(right, np.zeros(len(self.cost)), self.cost, presolve)
        if found is None:
            return False
        self.x, self.y = (part.astype(np.longdouble) for part in found)
        return True

    def refine(self) -> bool:
        """Add digits by solving for what is missing; False if there is nothing to add."""
        groups, count, n, m = self.sizes
        right = np.concatenate([self.a, self.b, np.zeros(groups)]) - self._times(self.x)
        right[self.implied] = 0.0
        short = np.append(np.abs(right[: n + m]), np.maximum(-right[n + m :], 0.0)).max()
        positive = np.arange(len(self.x)) != count
        short = max(short, float(np.maximum(-self.x[positive], 0.0).max()))
        reduced = self.cost - self._transposed(self.y)
        wrong = max(float(np.maximum(-reduced[positive], 0.0).max()), float(abs(reduced[count])))
        up = float(min(1.0 / short, MOST_SCALE)) if short > 0.0 else MOST_SCALE
        dual_up = float(min(1.0 / wrong, MOST_SCALE)) if wrong > 0.0 else MOST_SCALE
        try:
            found = self._run(
                (right * up).astype(float),
                (-self.x * up).astype(float),
                (reduced * dual_up).astype(float),
                presolve=False,
            )
        except SolverError:
            found = None
        if found is None:
            return False
        move, more = found
        self.x, self.y = self.x + move / up, self.y + more / dual_up
        return True

    def vertex(self) -> Vertex:
        """The solution as mass, weights and potentials."""
        groups, count, n, m = self.sizes
        alpha = np.maximum(-self.y[n + m :].astype(float), 0.0)
        total = alpha.sum()
        alpha = alpha / total if total > 0.0 else np.full(groups, 1.0 / groups)
        mass = np.maximum(self.x[:count].astype(float), 0.0) * self.mass_unit
        return Vertex(mass, alpha, self.y[n : n + m].astype(float) * self.unit)

    def _times(self, x: np.ndarray) -> np.ndarray:
        """Rows of the program at x, with more digits than double has where there are any."""
        groups, count, n, m = self.sizes
        found = np.zeros(n + m + groups, dtype=np.longdouble)
        np.add.at(found, self.rows, x[:count])
        np.add.at(found, n + np.asarray(self.cols), x[:count])
        found[n + m :] = self.costs.astype(np.longdouble) @ x[:count] - x[count]
        if len(x) > count + 1:
            found[n + m :] -= x[count + 1 :]
        return found

    def _transposed(self, y: np.ndarray) -> np.ndarray:
        _, count, n, m = self.sizes
        found = np.zeros(len(self.cost), dtype=np.longdouble)
        found[:count] = y[self.rows] + y[n + np.asarray(self.cols)]
        found[:count] += y[n + m :] @ self.costs.astype(np.longdouble)
        found[count] = -y[n + m :].sum()
        if len(found) > count + 1:
            found[count + 1 :] = -y[n + m :]
        return found

    def _run(
        self, right: np.ndarray, least: np.ndarray, cost: np.ndarray, presolve: bool
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Minimise the cost over A x = right (groups: <=) and x >= least; None if infeasible.

        The level is free.
        """
        import highspy

        if seconds_left() == 0.0:
            raise DeadlineError
        known = highspy.HighsModelStatus
        groups, count, n, m = self.sizes
        model = highspy.HighsLp()
        model.num_col_ = len(cost)
        model.num_row_ = n + m + groups
        model.col_cost_ = cost
        least = least.copy()
        least[count] = -np.inf
        model.col_lower_ = least
        model.col_upper_ = np.full(len(cost), np.inf)
        lower, upper = right.astype(float), right.astype(float)
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
        # A refinement is unbounded where rounding made it so; the program itself never is.
        if status in (known.kInfeasible, known.kUnboundedOrInfeasible, known.kUnbounded):
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
        highs = highspy.Highs()
        for name, setting in {
            "output_flag": False,
            "threads": 1,
            "solver": method,
            "presolve": "on" if presolve else "off",
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
            "time_limit": max(seconds_left(), 1e-3),
            # It cycles where rounding is all there is to decide by.
            "simplex_iteration_limit": MOST_STEPS * (model.num_col_ + model.num_row_),
            "ipm_iteration_limit": MOST_STEPS,
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
