"""Equitable transport (Scetbon et al. 2020): mass is split among costs, and the worst counts."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from frot._base.arrays import find_home, to_numpy
from frot._base.errors import InputError, SolverError
from frot._base.spelling import second_names
from frot._base.stopping import check_limits
from frot._base.validate import check_callable, check_costs, check_flag, check_names
from frot.api.run import make_problem, on_support
from frot.costs import StackedCosts
from frot.costs.protocol import UNIT, summation
from frot.plans.feasible import Settled, fill, marginal_error, round_plan, settle
from frot.plans.plan import Plan
from frot.problem.bounds import Lower, Upper, lower_bound
from frot.problem.problem import Problem
from frot.problem.result import Chosen, Result, handed_out
from frot.problem.terms import check_terms
from frot.solvers import EpigraphProgram
from frot.solvers.drive import Callback, Offer, drive
from frot.solvers.exact.column_generation import Priced, column_generation
from frot.solvers.oracles import NetworkSimplex

# Arcs of each point that enter in a round, where they pay.
ENTER = 3
# Pivots at the end, and groups up to which there are some.
LAST_PIVOTS, LAST_GROUPS = 150, 20
# Times that a solution is refined.
REFINEMENTS = 6


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
        pool = _Pool(small, stack[:, rows][:, :, cols], limits.tol)
        result = drive(
            chain([pool.first()], pool.offers()),
            small,
            solver="equitable(HiGHS)",
            tol=limits.tol,
            max_iter=limits.max_iter,
            time_limit=limits.time_limit,
            callback=callback,
            progress=progress,
        )
        return replace(result, chosen=Chosen("costs", pool.shares, labels))

    result = replace(on_support(problem, search), time=time.perf_counter() - begin)
    return handed_out(result.at(home))


@dataclass(eq=False)
class _Pool:
    """Arcs (group, row, column) that the linear program may use, and the best split found."""

    problem: Problem
    stack: np.ndarray
    tol: float
    known: np.ndarray = field(init=False)
    shares: np.ndarray = field(init=False)
    weights: np.ndarray = field(init=False)
    upper: float = np.inf

    def first(self) -> Offer:
        """Split in inverse proportion to the mean costs, moved at the cheapest of each arc."""
        means = self.problem.independent
        weights = np.where(means > 0.0, 1.0 / np.where(means > 0.0, means, 1.0), 0.0)
        if (means == 0.0).any():
            weights = (means == 0.0).astype(float)
        weights /= weights.sum()
        self.weights = weights
        self.known = np.zeros(self.stack.shape, dtype=bool)
        rows, cols, mass = fill(self.problem.a, self.problem.b)
        self.known[:, rows, cols] = True
        lower = self._transport(weights)
        parts = np.zeros(self.stack.shape)
        parts[:, rows, cols] = weights[:, None] * mass
        return Offer(self.judge(parts), lower)

    def offers(self) -> Iterator[Offer]:
        """Solve on the known arcs, price all others, and let those in that pay."""
        weights = self.weights
        try:
            for offer in self._programs():
                yield offer
                weights = offer.lower.alpha if offer.lower is not None else weights
        except SolverError:
            # HiGHS gave up, as it may beside weights of 1e-300; pivots go on from there.
            pass
        if len(self.stack) <= LAST_GROUPS:
            # What HiGHS's tolerances leave open: pivots with exact transport.
            pricing = _SplitPricing(self)
            yield from column_generation(
                self.problem, weights, self.tol, LAST_PIVOTS, pricing, self.upper
            )

    def _programs(self) -> Iterator[Offer]:
        while True:
            program = self._program()
            lower = yield from self._bounds(program)
            before = int(self.known.sum())
            self._enter(lower.alpha[:, None, None] * self.stack - lower.f[:, None] - lower.g)
            if int(self.known.sum()) > before:
                continue
            # Prices are right to HiGHS's tolerance: more digits, or an exact transport, may add
            # arcs still.
            for _ in range(REFINEMENTS):
                if not program.program.refine():
                    break
                lower = yield from self._bounds(program)
            yield Offer(None, self._transport(lower.alpha))
            self._enter(lower.alpha[:, None, None] * self.stack - lower.f[:, None] - lower.g)
            if int(self.known.sum()) == before:
                return

    def _bounds(self, program: _Program) -> Generator[Offer, None, Lower]:
        """Offer what a solution of the program proves."""
        parts, weights, g = program.solution(self.stack.shape)
        lower = self.prove(weights, g, self._least(weights))
        yield Offer(self.judge(parts), lower)
        return lower

    def _transport(self, weights: np.ndarray) -> Lower:
        """Transport at min_l lambda_l C_l; the arcs it uses enter."""
        least = self._least(weights)
        found = NetworkSimplex()(least, self.problem.a, self.problem.b)
        rows, cols, _ = found.plan.arcs()
        self.known[:, rows, cols] = True
        return self.prove(weights, found.g, least)

    def _least(self, weights: np.ndarray) -> np.ndarray:
        return (weights[:, None, None] * self.stack).min(axis=0)

    def prove(self, weights: np.ndarray, g: np.ndarray, least: np.ndarray) -> Lower:
        """What weights and a potential prove, with the least of the weighted costs."""
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

    def _program(self) -> _Program:
        """The linear program on the known arcs, solved once."""
        groups, rows, cols = np.nonzero(self.known)
        costs = np.zeros((len(self.stack), len(groups)))
        costs[groups, np.arange(len(groups))] = self.stack[groups, rows, cols]
        unit = self.upper if 0.0 < self.upper < np.inf else 1.0
        program = EpigraphProgram(self.problem.a, self.problem.b, rows, cols, costs, unit=unit)
        if not program.solve():
            raise SolverError("HiGHS found no plan for equitable transport")
        return _Program(program, groups)

    def judge(self, parts: np.ndarray) -> Upper:
        """Round the whole plan to its marginals, split it as found, and take the largest cost."""
        whole = parts.sum(axis=0)
        given = Plan.from_arcs(*Plan(whole, copy=False).arcs(), whole.shape)
        settled = settle(given, self.problem.a, self.problem.b)
        rounded: list[tuple[Plan, Settled | None]] = [
            (round_plan(given, self.problem.a, self.problem.b), None)
        ]
        if settled is not None:
            # Other arcs may cost a billion.
            along = Plan.from_arcs(settled.rows, settled.cols, settled.mass, whole.shape)
            rounded.append((along, settled))
        return min((self._judge_rounded(parts, *one) for one in rounded), key=lambda one: one.bound)

    def _judge_rounded(self, parts: np.ndarray, plan: Plan, settled: Settled | None) -> Upper:
        whole, dense = parts.sum(axis=0), np.asarray(plan)
        split = np.divide(parts, whole, out=np.zeros_like(parts), where=whole > 0.0)
        # Mass that rounding put where there was none goes to the cost that is least there.
        rows, cols = np.nonzero((whole <= 0.0) & (dense > 0.0))
        split[self.stack[:, rows, cols].argmin(axis=0), rows, cols] = 1.0
        parts = split * dense
        phi = np.einsum("lij,lij->l", parts, self.stack)
        value = float(phi.max())
        bound = value * (1.0 + summation(Plan(dense, copy=False)) + 8.0 * UNIT)
        if settled is None:
            share = marginal_error(plan, self.problem.a, self.problem.b)
            bound += 8.0 * share * float(self.problem.sizes.max())
        else:
            dearest = self.stack[:, settled.rows, settled.cols].max(axis=0)
            bound += 2.0 * float(dearest @ np.abs(settled.off))
        if bound < self.upper:
            self.upper, self.shares = bound, parts.sum(axis=(1, 2))
        rows, cols = np.nonzero(dense)
        sparse_plan = Plan.from_arcs(rows, cols, dense[rows, cols], dense.shape)
        return Upper(bound, value, sparse_plan, phi)


class _Program(NamedTuple):
    """A linear program over arcs (group, row, column), and the groups of its arcs."""

    program: EpigraphProgram
    groups: np.ndarray

    def solution(self, shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The parts of the plan, (L, n, m), the weights of the groups, and g."""
        found = self.program.vertex()
        parts = np.zeros(shape)
        parts[self.groups, self.program.rows, self.program.cols] = found.mass
        return parts, found.alpha, found.g


class _SplitPricing:
    """Transport at the least of the weighted costs, every arc's mass in the group that is it."""

    def __init__(self, pool: _Pool) -> None:
        self.pool = pool

    def __call__(self, alpha: np.ndarray) -> Priced:
        """Return the plan that is best at these weights, and its parts."""
        problem, weighted = self.pool.problem, alpha[:, None, None] * self.pool.stack
        mixed = weighted.min(axis=0)
        transport = NetworkSimplex()(mixed, problem.a, problem.b)
        rows, cols, mass = transport.plan.arcs()
        parts = np.zeros(self.pool.stack.shape)
        parts[weighted[:, rows, cols].argmin(axis=0), rows, cols] = mass
        phi = np.einsum("lij,lij->l", parts, self.pool.stack)
        return Priced(alpha, mixed, transport, phi, float(alpha @ phi), parts)

    def upper(self, plans: list[Priced], weights: np.ndarray) -> Upper:
        """The objective of a mixture, part by part."""
        return self.pool.judge(
            np.tensordot(weights, np.array([one.parts for one in plans]), axes=1)
        )

    def lower(self, at: Priced, g: np.ndarray) -> Lower:
        """What a potential proves at the weights of a plan."""
        return self.pool.prove(at.alpha, g, at.mixed)
