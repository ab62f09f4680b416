"""Equitable transport (Scetbon et al. 2020): mass is split among costs, and the worst counts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from frot._base.arrays import find_home, to_numpy
from frot._base.errors import InputError, SolverError
from frot._base.spelling import second_names
from frot._base.stopping import check_limits, finish
from frot._base.validate import check_callable, check_costs, check_flag, check_names
from frot.api.run import make_problem, on_support
from frot.costs import StackedCosts
from frot.costs.protocol import UNIT, summation
from frot.plans.feasible import fill, marginal_error, round_plan
from frot.plans.plan import Plan
from frot.problem.bounds import Lower, Upper, lower_bound
from frot.problem.problem import Problem
from frot.problem.result import Chosen, Result
from frot.problem.terms import check_terms
from frot.solvers import EpigraphProgram
from frot.solvers.drive import Callback, Offer, drive
from frot.solvers.oracles import NetworkSimplex

# Arcs of each point that enter in a round, where they pay.
ENTER = 3


@second_names
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
    r"""Equitable transport: agents with costs :math:`C_l \ge 0` share the work evenly.

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
    terms = check_terms(stack.shape, a, b, normalise_weights=normalise_weights)
    labels = check_names(names, len(stack))
    limits = check_limits(tol, max_iter, time_limit)
    check_callable(callback, "callback")
    check_flag(progress, "progress")
    begin = time.perf_counter()
    problem = make_problem(lambda: StackedCosts(stack), terms, labels)

    def search(small: Problem, rows: np.ndarray, cols: np.ndarray) -> Result:
        pool = _Pool(small, stack[:, rows][:, :, cols])
        return finish(
            lambda: drive(
                chain([pool.first()], pool.offers()),
                small,
                solver="equitable(HiGHS)",
                tol=limits.tol,
                max_iter=limits.max_iter,
                time_limit=limits.time_limit,
                callback=callback,
                progress=progress,
            ),
            lambda result: replace(result, chosen=Chosen("costs", pool.shares, labels)),
        )

    return finish(
        lambda: on_support(problem, search),
        lambda result: replace(result, time=time.perf_counter() - begin).at(home),
    )


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
        return Offer(self.judge(parts), lower)

    def offers(self) -> Iterator[Offer]:
        """Solve on the known arcs, price all others, and let those in that pay, until none does."""
        before = -1
        while int(self.known.sum()) > before:
            before = int(self.known.sum())
            parts, weights, g = self._program()
            lower = self._prove(weights, g, self._least(weights))
            yield Offer(self.judge(parts), lower)
            self._enter(weights, lower)
            if int(self.known.sum()) == before:
                # Prices are right to HiGHS's tolerance: those of an exact transport may add arcs.
                lower = self._transport(weights)
                yield Offer(None, lower)
                self._enter(weights, lower)

    def _transport(self, weights: np.ndarray) -> Lower:
        """Transport at min_l lambda_l C_l; the arcs it uses enter."""
        least = self._least(weights)
        found = NetworkSimplex()(least, self.problem.a, self.problem.b)
        rows, cols, _ = found.plan.arcs()
        self.known[:, rows, cols] = True
        return self._prove(weights, found.g, least)

    def _least(self, weights: np.ndarray) -> np.ndarray:
        return (weights[:, None, None] * self.stack).min(axis=0)

    def _prove(self, weights: np.ndarray, g: np.ndarray, least: np.ndarray) -> Lower:
        """What weights and a potential prove, with the least of the weighted costs."""
        costs = StackedCosts(least[None] * (1.0 - 2.0 * UNIT))
        proven = lower_bound(Problem(costs, self.problem.a, self.problem.b), np.ones(1), g)
        return replace(proven, alpha=weights)

    def _enter(self, weights: np.ndarray, lower: Lower) -> None:
        """Let in the arcs of each row and column that pay most."""
        reduced = weights[:, None, None] * self.stack - lower.f[:, None] - lower.g
        reduced = np.where(self.known, np.inf, reduced)
        scale = float(self.problem.typical_cost) or 1.0
        for axis in (1, 2):
            count = min(ENTER, reduced.shape[axis])
            least = np.partition(reduced, count - 1, axis=axis).take([count - 1], axis=axis)
            self.known |= (reduced <= np.minimum(least, 0.0)) & (reduced < 1e-12 * scale)

    def _program(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Solve on the known arcs: parts of the plan, (L, n, m), weights of the groups, and g."""
        groups, rows, cols = np.nonzero(self.known)
        costs = np.zeros((len(self.stack), len(groups)))
        costs[groups, np.arange(len(groups))] = self.stack[groups, rows, cols]
        unit = self.upper if 0.0 < self.upper < np.inf else 1.0
        program = EpigraphProgram(self.problem.a, self.problem.b, rows, cols, costs, unit=unit)
        vertex = program.solve()
        if vertex is None:
            raise SolverError("HiGHS found no plan for equitable transport")
        parts = np.zeros(self.stack.shape)
        parts[groups, rows, cols] = vertex.mass
        return parts, vertex.alpha, vertex.g

    def judge(self, parts: np.ndarray) -> Upper:
        """Round the whole plan to its marginals, split it as found, and take the largest cost."""
        whole = parts.sum(axis=0)
        rows, cols = np.nonzero(whole)
        given = Plan.from_arcs(rows, cols, whole[rows, cols], whole.shape)
        plan = round_plan(given, self.problem.a, self.problem.b)
        rows, cols, mass = plan.arcs()
        share = np.zeros((len(parts), len(mass)))
        known = whole[rows, cols] > 0.0
        share[:, known] = parts[:, rows[known], cols[known]] / whole[rows[known], cols[known]]
        # Mass that rounding put where there was none goes to the cost that is least there.
        added = np.flatnonzero(~known)
        share[self.stack[:, rows[added], cols[added]].argmin(axis=0), added] = 1.0
        split = share * mass
        phi = (split * self.stack[:, rows, cols]).sum(axis=1)
        value = float(phi.max())
        bound = value * (1.0 + summation(plan) + 8.0 * UNIT)
        error = marginal_error(plan, self.problem.a, self.problem.b)
        bound += error.level * value + error.spread * float(self.problem.sizes.max())
        if bound < self.upper:
            self.upper, self.shares = bound, split.sum(axis=1)
        return Upper(bound, value, plan, phi)
