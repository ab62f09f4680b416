"""Equitable transport (Scetbon et al. 2021): mass is split among costs, and the worst counts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from frot._base.arrays import UNIT, adopt, find_home, summation, to_numpy
from frot._base.errors import InputError, SolverError
from frot._base.stopping import check_limits
from frot._base.validate import check_callable, check_costs, check_flag, check_names, second_names
from frot.api.solve import make_problem
from frot.costs import Stack
from frot.plans.feasible import fill, marginal_error, round_plan
from frot.plans.plan import Plan, n_entries
from frot.problem.bounds import Lower, Upper, lower_bound
from frot.problem.options import check_problem
from frot.problem.problem import Problem
from frot.problem.result import Chosen, Result, handed_out
from frot.solvers import EpigraphProgram
from frot.solvers.drive import Callback, Offer, drive
from frot.solvers.oracles import NetworkSimplex
from frot.solvers.weightless import on_support


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
    C, a, b = map(adopt, (C, a, b), "Cab")
    home = find_home(C=C, a=a, b=b)
    stack = to_numpy(check_costs(C)).astype(float)
    if (stack < 0.0).any():
        where = tuple(int(k) for k in np.argwhere(stack < 0.0)[0])
        raise InputError(
            f"C: costs must be >= 0 for equitable transport, but C{list(where)} = "
            f"{stack[where]:.6g}; add a constant"
        )
    checked = check_problem(stack.shape, a, b, normalise_weights=normalise_weights)
    labels = check_names(names, len(stack))
    limits = check_limits(tol, max_iter, time_limit)
    check_callable(callback, "callback")
    check_flag(progress, "progress")
    begin = time.perf_counter()
    problem = make_problem(lambda: Stack(stack), checked, labels)

    def search(small: Problem, rows: np.ndarray, cols: np.ndarray) -> Result:
        split = _Split(small, stack[:, rows][:, :, cols])
        result = drive(
            chain([split.first()], split.offers()),
            small,
            solver="equitable(HiGHS)",
            tol=limits.tol,
            max_iter=limits.max_iter,
            time_limit=limits.time_limit,
            callback=callback,
            progress=progress,
        )
        return replace(result, chosen=Chosen("costs", split.shares, labels))

    result = replace(on_support(problem, search), time=time.perf_counter() - begin)
    return handed_out(result.at(home))


@dataclass(eq=False)
class _Split:
    """Arcs (group, row, column) that the linear program may use, and the best split so far."""

    problem: Problem
    stack: np.ndarray
    known: np.ndarray = field(init=False)
    shares: np.ndarray = field(init=False)
    upper: float = np.inf

    def __post_init__(self) -> None:
        self.known = np.zeros(self.stack.shape, dtype=bool)

    def first(self) -> Offer:
        """Split some plan in inverse proportion to the mean costs; what is free does all."""
        means = self.problem.independent
        free = means == 0.0
        weights = free.astype(float) if free.any() else 1.0 / means
        weights /= weights.sum()
        rows, cols, mass = fill(self.problem.a, self.problem.b)
        self.known[:, rows, cols] = True
        parts = np.zeros(self.stack.shape)
        parts[:, rows, cols] = weights[:, None] * mass
        return Offer(self._judge(parts), self._transport(weights))

    def offers(self) -> Iterator[Offer]:
        """Solve on the known arcs, price all others, and let those in that pay."""
        while True:
            try:
                parts, weights, g = self._solve()
            except SolverError:
                # HiGHS gave up: the bounds so far are the answer.
                return
            before = int(self.known.sum())
            lower = self._prove(weights, g, self._least(weights))
            self._enter(weights[:, None, None] * self.stack - lower.f[:, None] - lower.g)
            if int(self.known.sum()) == before:
                # The program's potentials are right to its tolerance; an exact transport adds the
                # last digits, and arcs.
                lower = self._transport(weights)
            yield Offer(self._judge(parts), lower)
            if int(self.known.sum()) == before:
                return

    def _solve(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Solve the program on the known arcs; return parts of the plan, weights, and g."""
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

    def _transport(self, weights: np.ndarray) -> Lower:
        """Transport exactly at min_l lambda_l C_l; the arcs it uses enter."""
        least = self._least(weights)
        transport = NetworkSimplex()(least, self.problem.a, self.problem.b)
        rows, cols, _ = transport.plan.arcs()
        self.known[:, rows, cols] = True
        return self._prove(weights, transport.g, least)

    def _least(self, weights: np.ndarray) -> np.ndarray:
        return (weights[:, None, None] * self.stack).min(axis=0)

    def _prove(self, weights: np.ndarray, g: np.ndarray, least: np.ndarray) -> Lower:
        """What weights and a potential prove, with the least of the weighted costs."""
        costs = Stack(least[None] * (1.0 - 2.0 * UNIT))
        proven = lower_bound(Problem(costs, self.problem.a, self.problem.b), np.ones(1), g)
        return replace(proven, alpha=weights)

    def _enter(self, reduced: np.ndarray) -> None:
        """Let in the three arcs of each row and column that pay most."""
        reduced = np.where(self.known, np.inf, reduced)
        for axis in (1, 2):
            count = min(3, reduced.shape[axis])
            least = np.partition(reduced, count - 1, axis=axis).take([count - 1], axis=axis)
            self.known |= (reduced <= np.minimum(least, 0.0)) & (reduced < 0.0)

    def _judge(self, parts: np.ndarray) -> Upper:
        """Round the whole plan to its marginals, split it as it was, and take the largest cost."""
        a, b = self.problem.a, self.problem.b
        whole = parts.sum(axis=0)
        dense = np.asarray(round_plan(Plan(whole, copy=False), a, b))
        split = np.divide(parts, whole, out=np.zeros_like(parts), where=whole > 0.0)
        # Mass that rounding put where there was none goes to the cost that is least there.
        rows, cols = np.nonzero((whole <= 0.0) & (dense > 0.0))
        split[self.stack[:, rows, cols].argmin(axis=0), rows, cols] = 1.0
        parts = split * dense
        phi = np.einsum("lij,lij->l", parts, self.stack)
        rows, cols = np.nonzero(dense)
        plan = Plan.from_arcs(rows, cols, dense[rows, cols], dense.shape)
        value = float(phi.max())
        bound = value * (1.0 + summation(n_entries(plan)) + 8.0 * UNIT)
        error = marginal_error(plan, a, b)
        bound += error.level * value + error.spread * float(self.problem.sizes.max())
        if bound < self.upper:
            self.upper, self.shares = bound, parts.sum(axis=(1, 2))
        return Upper(bound, value, plan, phi)
