"""Exact: the min-max solved to the last digits, with arcs and groups generated on demand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from frot._base.errors import InputError, SolverError
from frot._base.stopping import seconds_left
from frot.costs.protocol import UNIT, Line
from frot.plans.line import line_arcs, line_cost, line_potentials
from frot.plans.plan import Plan
from frot.problem.bounds import FAINT, Lower, Upper, lower_bound, upper_bound
from frot.problem.problem import Problem
from frot.solvers._linear_program import EpigraphProgram
from frot.solvers.drive import Driven, Offer
from frot.solvers.exact.column_generation import (
    column_generation,
    column_generation_suits,
    last_lower,
)
from frot.solvers.exact.interior import Interior
from frot.solvers.exact.placement import FEW_GROUPS, cheapest, costs_at, place, seed_arcs
from frot.solvers.frank_wolfe import OracleRun, corrective_steps
from frot.solvers.oracles import NetworkSimplex
from frot.solvers.start import Start

# Above this many groups the smooth problem's Newton matrix is too large; see FrankWolfe.
SMOOTH_GROUPS = 3_000
# While arcs still enter, the restricted problem is solved to this share of the full gap.
SOLVE_TO = 0.2
# Steps of the interior point between two looks at all arcs, at most; some twenty are usual.
MOST_STEPS = 80
# Corrective steps at the end, where the interior point could not meet the tolerance.
LAST_STEPS = 50
# Groups at most for which these are pivots of a linear program, of which there may then be more,
# over so many arcs in all.
LAST_GROUPS = 64
LAST_ARCS = 2_000_000


@dataclass(frozen=True)
class Exact(Driven):
    r"""Solve the problem exactly, for eta = 0 and eta > 0.

    The linear program behind it has n m columns and L dense rows, but its optimum uses about
    n + m + L arcs and few groups. An interior point runs on a restricted set; in between, its
    weights and potentials price all arcs and groups, violated ones enter, and both bounds of the
    full problem are computed. For eta = 0 the run ends on a vertex found by HiGHS.

    Parameters
    ----------
    tol : float
        Relative gap between the bounds at which to stop.
    max_iter : int
        Newton steps at most.
    time_limit : float, optional
        Seconds.

    Examples
    --------
    >>> import frot
    >>> res = frot.solve([[0.0, 0.0], [1.0, 1.0]], [[1.0, 3.0], [0.0, 2.0]], solver=frot.Exact())
    >>> res.value, res.gap <= 1e-9
    (4.0, True)
    """

    tol: float = 1e-9
    max_iter: int = 500
    time_limit: float | None = None

    def offers(self, problem: Problem, start: Start) -> Iterator[Offer]:
        """Yield bounds until the interval is as narrow as it gets."""
        groups, n, m = problem.shape
        if problem.marginals.soft:
            yield from _generate(problem, start, self.tol)
            return
        if n == 1 or m == 1:
            yield _only_plan(problem)
            return
        if problem.costs.line is not None:
            yield on_a_line(problem, problem.costs.line)
            return
        # Where all groups have to weigh alike, transport is ordinary.
        if groups == 1 or problem.mean_cost == 0.0 or problem.adversary.single(groups):
            yield from _one_group(problem)
            if problem.mean_cost == 0.0:
                return
        if column_generation_suits(problem):
            yield from column_generation(problem, start.alpha, self.tol)
        yield from _generate(problem, start, self.tol)

    @property
    def penalties(self) -> frozenset[str]:
        """Supports both penalties, "kl" and "tv"."""
        return frozenset({"kl", "tv"})

    def check(self, shape: tuple[int, ...], eta: float, eps: float) -> None:
        """Refuse what this solver cannot do."""
        if eps > 0.0:
            raise InputError(
                "solver: Exact solves eps = 0; drop eps, or use solver=frot.Entropic()"
            )
        if eta > 0.0 and shape[0] > SMOOTH_GROUPS:
            raise InputError(
                f"solver: Exact takes at most {SMOOTH_GROUPS} groups where eta > 0; use "
                "solver=frot.FrankWolfe(step='fully_corrective')"
            )


def _only_plan(problem: Problem) -> Offer:
    """With one point on a side there is one plan, and the adversary answers it."""
    arcs = Plan(np.outer(problem.a, problem.b), copy=False).arcs()
    upper = upper_bound(problem, Plan.from_arcs(*arcs, problem.shape[1:]), rounded=True)
    _, alpha = problem.adversary.best(upper.phi)
    mixed = problem.costs.mix(alpha)
    g = mixed[0] if len(mixed) == 1 else np.zeros(1)
    return Offer(upper, lower_bound(problem, alpha, g, mixed))


def _one_group(problem: Problem) -> Iterator[Offer]:
    """One group, or no cost at all: ordinary transport at the weights that answer it."""
    _, alpha = problem.adversary.best(problem.independent)
    if seconds_left() < np.inf and problem.mean_cost > 0.0:
        # The network simplex has nothing to show before its end; sweeps have, where they are long.
        yield from islice(seed_arcs(problem, alpha, 1, problem.typical_cost, mirror=False), 1)
    mixed = problem.costs.mix(alpha)
    transport = NetworkSimplex()(mixed, problem.a, problem.b)
    yield Offer(
        upper_bound(problem, transport.plan), lower_bound(problem, alpha, transport.g, mixed)
    )


def _generate(problem: Problem, start: Start, tol: float) -> Iterator[Offer]:
    """Run the interior point, pricing all arcs and groups whenever its own gap has shrunk."""
    state = Restricted(problem, *(yield from place(problem, start)))
    soft = problem.marginals.soft
    linear = problem.adversary.eta == 0.0 and not soft
    target, steps = 0.05, 0
    while True:
        steps += 1
        # A point that has not settled after so many steps has lost its digits, and will not.
        moved = state.interior.step(state.floor) and steps <= MOST_STEPS
        if moved and not state.settled(target):
            yield Offer()
            continue
        steps = 0
        inner_gap = state.gap()
        upper, lower, reduced = state.bounds()
        # Where the value is next to nothing the gap never closes, but its width does.
        narrow = upper.bound - lower.bound <= 10.0 * tol * max(upper.bound, problem.typical_cost)
        if linear and (narrow or inner_gap <= 10.0 * tol or not moved):
            # A vertex is sparse, and right to the last digit where the interior point is not.
            vertex = state.vertex()
            if vertex is not None and vertex.bound <= upper.bound:
                upper = vertex
        yield Offer(upper, lower)
        gap = problem.gap(lower.bound, upper.bound)
        if state.enter(reduced, upper, lower):
            target = SOLVE_TO * gap
        elif moved:
            target = 0.01 * min(gap, inner_gap)
        else:
            break
    if soft:
        return
    # Double precision gave out before the tolerance was met: vertices may still close the gap.
    if linear and problem.shape[0] <= LAST_GROUPS:
        pivots = max(LAST_STEPS, LAST_ARCS // (problem.shape[1] * problem.shape[2]))
        yield from column_generation(problem, lower.alpha, tol, pivots)
    run = OracleRun(problem, NetworkSimplex())
    last = corrective_steps(run, Start(lower.alpha, upper.plan), smoothing=0.0)
    for offer in islice(last, LAST_STEPS):
        yield offer
        if offer.upper is not None and offer.upper.bound < upper.bound:
            upper = offer.upper
    yield from last_lower(problem, upper)


def on_a_line(problem: Problem, line: Line) -> Offer:
    r"""Sort, and take the optimum :math:`\sum \pi_{ij} |x_i - y_j|^p` for both bounds.

    Of one convex cost on a line the monotone plan is optimal, and nothing else has to be shown.
    Masses and distances are all positive and each right to some units in its last place, and so is
    the sum: the interval is that wide, without a pass over n m costs.

    With one group the adversary has no choice: its entropy is that of alpha = 1, which is zero, or
    what its prior says.
    """
    x, y, p = line
    arcs = line_arcs(x, y, problem.a, problem.b)
    rows, cols, mass = arcs
    cost = line_cost(x, y, arcs, p)
    error = (0.5 * len(mass) + 8.0 * p + 8.0) * UNIT * cost
    error += FAINT * problem.mean_cost
    phi = np.array([cost])
    value, alpha = problem.adversary.best(phi)
    plan = Plan.from_arcs(rows, cols, mass, problem.shape[1:])
    return Offer(
        Upper(value + error, value, plan, phi),
        Lower(value - error, alpha, *line_potentials(x, y, arcs, p), error),
    )


# Arcs a point that may enter each round.
ARCS_PER_ROUND = 4
# HiGHS's simplex is quick to end a run on a vertex while there are no more groups than this.
VERTEX_GROUPS = 120
# Complementarity is not let below this share of the full problem's gap while arcs still enter.
FLOOR = 0.1
# Groups whose costs differ by less than this share are taken for copies.
COPIES = 1e-12


@dataclass(eq=False)
class Restricted:
    """The interior point on a growing part of a problem.

    It works in units of a typical cost and of the mean mass of a point, and eliminates its rows:
    so its rows are the larger side of the problem (`flipped` if these are the columns).
    """

    problem: Problem
    interior: Interior
    groups: np.ndarray
    flipped: bool
    unit: float
    mass_unit: float
    floor: float = 0.0

    @property
    def arcs(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the arcs, as the problem counts them."""
        rows, cols = self.interior.rows, self.interior.cols
        return (cols, rows) if self.flipped else (rows, cols)

    def gap(self) -> float:
        """Relative duality gap of the restricted problem, as far as it is feasible."""
        share = self.interior.complementarity * self.mass_unit
        return share / max(self.interior.size() * self.mass_unit, 1e-6)

    def settled(self, target: float) -> bool:
        """Whether it is time to price: within `target`, or with the barrier at its floor."""
        misplaced = self.interior.infeasibility()
        at_floor = self.interior.mu <= 1.5 * self.floor and misplaced <= 1e-3
        if self.interior.soft and misplaced <= 1e-3:
            # Any plan is feasible where mass may go, and bounds see what is not right yet.
            misplaced = 0.0
        return at_floor or max(self.gap(), misplaced) <= target

    def weights(self) -> np.ndarray:
        """Weights of all groups, zero outside the restricted problem."""
        alpha = np.zeros(self.problem.shape[0])
        alpha[self.groups] = self.interior.alpha
        return self.problem.adversary.project(alpha)

    def bounds(self) -> tuple[Upper, Lower, np.ndarray]:
        """Bounds of the full problem, and the reduced costs of all its arcs (interior's units)."""
        alpha = self.weights()
        mixed = self.problem.costs.mix(alpha)
        f, g = self.interior.f, self.interior.g
        if self.flipped:
            f, g = g, f
        lower = lower_bound(self.problem, alpha, g * self.unit, mixed)
        mixed /= self.unit
        mixed -= f[:, None]
        mixed -= g
        plan = Plan.from_arcs(*self.arcs, self.interior.x * self.mass_unit, self.problem.shape[1:])
        return upper_bound(self.problem, plan), lower, mixed

    def enter(self, reduced: np.ndarray, upper: Upper, lower: Lower) -> bool:
        """Let in violated groups and the cheapest arcs; True if any was violated."""
        inside = self.interior
        width = (upper.bound - lower.bound) / self.unit
        new_groups = self._violated_groups(upper)
        near = max(3.0 * inside.mu, 2.0 * width)
        m = self.problem.shape[2]
        found = cheapest(reduced, ARCS_PER_ROUND, below=near)
        rows, cols = self.arcs
        found = np.setdiff1d(found, rows * m + cols, assume_unique=True)
        worst = float(reduced.min())
        violated = len(new_groups) > 0 or (len(found) > 0 and worst < -1e-12)
        if len(found):
            self._add_arcs(found, reduced)
        if len(new_groups):
            self._add_groups(new_groups)
        self.floor = 0.0
        if violated:
            by_row = (reduced.T if self.flipped else reduced).min(axis=1)
            barrier = width / self.mass_unit / (len(inside.x) + len(inside.s))
            self._recentre(0.3 * barrier, by_row)
            self.floor = FLOOR * barrier
        return violated

    def vertex(self) -> Upper | None:
        """End on a vertex: the linear program on the arcs that carry mass."""
        inside = self.interior
        groups = np.flatnonzero(inside.alpha > 1e-3 * inside.s)
        if len(groups) == 0 or len(groups) > VERTEX_GROUPS:
            return None
        used = inside.x > inside.z
        rows, cols = (ends[used] for ends in self.arcs)
        costs = inside.costs[np.ix_(groups, used)]
        program = EpigraphProgram(self.problem.a, self.problem.b, rows, cols, costs, cap=inside.cap)
        try:
            if not program.solve():
                return None
        except SolverError:
            # The vertex only polishes an answer that is there already.
            return None
        plan = Plan.from_arcs(rows, cols, program.vertex().mass, self.problem.shape[1:])
        return upper_bound(self.problem, plan)

    def _violated_groups(self, upper: Upper) -> np.ndarray:
        if len(self.groups) == len(upper.phi):
            return np.empty(0, dtype=np.intp)
        # Whoever costs more than the k-th would be among the worst.
        last = len(self.groups) - self.problem.adversary.k
        level = np.partition(upper.phi[self.groups], last)[last]
        outside = np.setdiff1d(np.arange(len(upper.phi)), self.groups, assume_unique=True)
        # Groups just under the level will be over it when the plan moves: take them too.
        close = outside[upper.phi[outside] > level - 0.01 * abs(level)]
        over = outside[upper.phi[outside] > level * (1.0 + 1e-12)]
        if len(over) == 0:
            return over
        order = np.argsort(-upper.phi[close], kind="stable")
        close = close[order]
        # Of groups that cost the same one is enough for now: they may be copies of each other.
        falls = np.append(True, np.diff(upper.phi[close]) < -COPIES * abs(level))
        return np.sort(close[falls][:FEW_GROUPS])

    def _add_arcs(self, arcs: np.ndarray, reduced: np.ndarray) -> None:
        inside = self.interior
        m = self.problem.shape[2]
        rows, cols = arcs // m, arcs % m
        fresh = costs_at(self.problem, rows, cols, self.groups) / self.unit
        z = np.maximum(reduced[rows, cols], 0.3 * np.sqrt(inside.mu))
        ends = (cols, rows) if self.flipped else (rows, cols)
        inside.add_arcs(*ends, fresh, inside.mu / z, z)

    def _add_groups(self, groups: np.ndarray) -> None:
        inside = self.interior
        fresh = costs_at(self.problem, *self.arcs, groups) / self.unit
        count = len(groups)
        self.groups = np.concatenate([self.groups, groups])
        inside.costs = np.concatenate([inside.costs, fresh])
        slack = max(np.sqrt(inside.mu), 1e-6)
        inside.alpha = np.concatenate([inside.alpha, np.full(count, inside.mu / slack)])
        inside.s = np.concatenate([inside.s, np.full(count, slack)])
        prior = self.problem.adversary.log_prior
        fresh_prior = np.zeros(count) if prior is None else prior[groups]
        inside.log_prior = np.concatenate([inside.log_prior, fresh_prior])
        if inside.capped:
            room = inside.cap - inside.alpha[-count:]
            inside.r = np.concatenate([inside.r, room])
            inside.v = np.concatenate([inside.v, inside.mu / room])

    def _recentre(self, wanted: float, worst_by_row: np.ndarray) -> None:
        """Make all reduced costs positive by lowering the rows' potentials, at a larger barrier.

        A step from a point whose complementarity is far below the true gap goes nowhere.
        """
        inside = self.interior
        barrier = max(inside.mu, wanted)
        inside.f = inside.f - np.maximum(0.0, barrier - worst_by_row)
        z = inside.alpha @ inside.costs - inside.f[inside.rows] - inside.g[inside.cols]
        inside.z = np.maximum(z, barrier)
        inside.recentre(barrier)
