"""`Restricted`: the interior point on some arcs and groups, and how the others enter by price."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frot._base.errors import SolverError
from frot.plans.plan import Plan
from frot.problem.bounds import Lower, Upper, lower_bound, upper_bound
from frot.problem.problem import Problem
from frot.solvers._linear_program import EpigraphProgram
from frot.solvers.exact.interior import Interior
from frot.solvers.exact.seed import FEW_GROUPS, cheapest, costs_at

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
        return self.problem.simplex.project(alpha)

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
            vertex = program.solve()
        except SolverError:
            # The vertex only polishes an answer that is there already.
            return None
        if vertex is None:
            return None
        plan = Plan.from_arcs(rows, cols, vertex.mass, self.problem.shape[1:])
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
