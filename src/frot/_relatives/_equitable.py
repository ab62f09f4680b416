"""Equitable transport (Scetbon et al. 2020): mass is split among costs, and the worst counts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from frot._arrays import find_home, to_numpy
from frot._bounds import Lower, Upper, lower_bound
from frot._chosen import Chosen
from frot._costs import StackedCosts
from frot._costs._protocol import UNIT, summation
from frot._errors import InputError, SolverError
from frot._feasible import fill, marginal_error, round_plan
from frot._oracles import NetworkSimplex
from frot._plan import Plan
from frot._prepare import check_terms, make_problem
from frot._problem import Problem
from frot._relatives._pair import check_limits
from frot._result import Result
from frot._solvers._drive import Callback, Offer, drive
from frot._validate import check_costs, check_names

__all__ = ["equitable"]

# Arcs of each point that enter in a round, where they pay.
ENTER = 3


def equitable(
    C: Any,
    a: Any = None,
    b: Any = None,
    *,
    names: Any = None,
    normalise_weights: bool = False,
    tol: float = 1e-8,
    max_iter: int = 200,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Result:
    r"""Equitable transport: agents with costs :math:`C_l \ge 0` share the work as evenly as can be.

    .. math::
        \min_{\sum_l \Pi_l \in U(a, b)} \; \max_l \; \langle \Pi_l, C_l \rangle
        \;=\; \max_{\lambda \in \Sigma^L} \; \min_{\Pi \in U(a, b)}
        \langle \Pi, \textstyle\min_l \lambda_l C_l \rangle

    The linear program on the left is solved by HiGHS on few arcs, and those that pay enter; the
    right-hand side, a plain transport at any weights, is the lower bound. One cost is plain
    transport.

    Parameters
    ----------
    C : array of shape (L, n, m)
        Costs >= 0.
    a, b, names, normalise_weights, tol, max_iter, time_limit, callback, progress :
        As in `solve_costs`.

    Returns
    -------
    Result
        ``plan`` is the whole plan :math:`\sum_l \Pi_l`; ``phi`` is what each cost pays for its own
        part, ``alpha`` the weights :math:`\lambda`, and ``chosen.array`` the share of the mass
        that each cost carries.

    Examples
    --------
    >>> import frot
    >>> res = frot.equitable([[[1.0]], [[3.0]]])
    >>> round(res.value, 9), res.chosen.array.round(9)
    (0.75, array([0.75, 0.25]))
    """
    home = find_home(C=C, a=a, b=b)
    stack = to_numpy(check_costs(C)).astype(float)
    if (stack < 0.0).any():
        where = tuple(int(at) for at in np.argwhere(stack < 0.0)[0])
        raise InputError(
            f"C: costs must be >= 0 for equitable transport, but C{list(where)} = "
            f"{stack[where]:.6g}; add a constant"
        )
    terms = check_terms(stack.shape, a, b, 0.0, 0.0, None, "none", normalise_weights)
    labels = check_names(names, len(stack))
    limits = check_limits(tol, max_iter, time_limit)
    begin = time.perf_counter()
    problem = make_problem(lambda: StackedCosts(stack), terms, labels)
    pool = _Pool(problem, stack)
    first = pool.first()
    result = drive(
        chain([first], pool.offers()),
        problem,
        solver="equitable(HiGHS)",
        tol=limits.tol,
        max_iter=limits.max_iter,
        time_limit=limits.time_limit,
        callback=callback,
        progress=progress,
    )
    seconds = time.perf_counter() - begin
    chosen = Chosen("costs", pool.shares, labels)
    return replace(result, time=seconds, chosen=chosen).at(home)


@dataclass(eq=False)
class _Pool:
    """Arcs (group, row, column) that the linear program may use, and the best split found."""

    problem: Problem
    stack: np.ndarray
    known: np.ndarray = field(init=False)
    shares: np.ndarray = field(init=False)
    upper: float = np.inf

    def first(self) -> Offer:
        """Split in inverse proportion to the mean costs, moved at the cheapest of each arc."""
        means = self.problem.independent
        weights = np.where(means > 0.0, 1.0 / np.where(means > 0.0, means, 1.0), 0.0)
        if (means == 0.0).any():
            weights = (means == 0.0).astype(float)
        weights /= weights.sum()
        self.known = np.zeros(self.stack.shape, dtype=bool)
        rows, cols, mass = fill(self.problem.a, self.problem.b)
        self.known[:, rows, cols] = True
        lower = self._transport(weights)
        parts = np.zeros(self.stack.shape)
        parts[:, rows, cols] = weights[:, None] * mass
        return Offer(self._judge(parts), lower)

    def offers(self) -> Iterator[Offer]:
        """Solve on the known arcs, price all others, and let those in that pay."""
        while True:
            parts, weights, g = self._solve()
            upper = self._judge(parts)
            lower = self._prove(weights, g)
            yield Offer(upper, lower)
            before = int(self.known.sum())
            reduced = weights[:, None, None] * self.stack - lower.f[:, None] - lower.g
            self._enter(reduced)
            if int(self.known.sum()) == before:
                # Prices are right to HiGHS's tolerance; an exact transport may still add arcs.
                yield Offer(None, self._transport(weights))
                if int(self.known.sum()) == before:
                    return

    def _transport(self, weights: np.ndarray) -> Lower:
        """Transport at min_l lambda_l C_l; the arcs it uses enter."""
        least = (weights[:, None, None] * self.stack).min(axis=0)
        found = NetworkSimplex()(least, self.problem.a, self.problem.b)
        rows, cols, _ = found.plan.arcs()
        self.known[:, rows, cols] = True
        return self._prove(weights, found.g)

    def _prove(self, weights: np.ndarray, g: np.ndarray) -> Lower:
        least = (weights[:, None, None] * self.stack).min(axis=0)
        costs = StackedCosts(least[None] * (1.0 - 2.0 * UNIT))
        proven = lower_bound(Problem(costs, self.problem.a, self.problem.b), np.ones(1), g)
        return replace(proven, alpha=weights)

    def _enter(self, reduced: np.ndarray) -> None:
        """Let in the arcs of each row and column that pay most."""
        reduced = np.where(self.known, np.inf, reduced)
        scale = float(self.problem.typical_cost) or 1.0
        for axis in (1, 2):
            count = min(ENTER, reduced.shape[axis])
            least = np.partition(reduced, count - 1, axis=axis).take([count - 1], axis=axis)
            self.known |= (reduced <= np.minimum(least, 0.0)) & (reduced < 1e-12 * scale)

    def _solve(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Solve the linear program on the known arcs; return the parts, lambda and g."""
        # Imported here, since it would make `import frot` wait.
        from scipy.optimize import linprog

        groups, rows, cols = np.nonzero(self.known)
        count, n, m = self.stack.shape
        # In these units no number is large or small for HiGHS's absolute tolerances.
        largest = float(self.stack[self.known].max()) or 1.0
        unit = max(min(self.upper, largest), 1e-6 * largest)
        mass = 1.0 / max(n, m)
        at = np.arange(len(groups))
        ends = sparse.csr_array(
            (np.ones(2 * len(at)), (np.append(rows, n + cols), np.append(at, at))),
            shape=(n + m, len(at) + 1),
        )
        costs = sparse.csr_array(
            (
                np.append(self.stack[groups, rows, cols] / unit, np.full(count, -1.0)),
                (np.append(groups, np.arange(count)), np.append(at, np.full(count, len(at)))),
            ),
            shape=(count, len(at) + 1),
        )
        target = np.append(self.problem.a, self.problem.b) / mass
        # One marginal follows from the others; with it, rounding may make the program infeasible.
        kept = np.delete(np.arange(n + m), np.argmax(self.problem.a))
        objective = np.append(np.zeros(len(at)), 1.0)
        found = linprog(
            objective,
            A_ub=costs,
            b_ub=np.zeros(count),
            A_eq=ends[kept],
            b_eq=target[kept],
            bounds=(0.0, None),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if found.status != 0:
            raise SolverError(f"HiGHS failed on equitable transport: {found.message}")
        parts = np.zeros(self.stack.shape)
        parts[groups, rows, cols] = np.maximum(found.x[:-1], 0.0) * mass
        weights = np.maximum(-found.ineqlin.marginals, 0.0)
        total = float(weights.sum())
        # At an optimum of zero no cost binds, and all weights prove it.
        weights = weights / total if total > 0.0 else np.full(count, 1.0 / count)
        g = np.asarray(found.eqlin.marginals)[-m:] * unit
        return parts, weights, g

    def _judge(self, parts: np.ndarray) -> Upper:
        """Round the whole plan to its marginals, split it as found, and take the largest cost."""
        whole = parts.sum(axis=0)
        plan = round_plan(Plan(whole), self.problem.a, self.problem.b)
        dense = np.asarray(plan)
        split = np.divide(parts, whole, out=np.zeros_like(parts), where=whole > 0.0)
        # Mass that rounding put where there was none goes to the first cost.
        split[0] += (whole <= 0.0).astype(float)
        parts = split * dense
        phi = np.einsum("lij,lij->l", parts, self.stack)
        value = float(phi.max())
        bound = value * (1.0 + summation(Plan(dense)) + 8.0 * UNIT)
        share = marginal_error(plan, self.problem.a, self.problem.b)
        bound += 8.0 * share * float(self.problem.sizes.max())
        if bound < self.upper:
            self.upper, self.shares = bound, parts.sum(axis=(1, 2))
        rows, cols = np.nonzero(dense)
        sparse_plan = Plan.from_arcs(rows, cols, dense[rows, cols], dense.shape)
        return Upper(bound, value, sparse_plan, phi)
