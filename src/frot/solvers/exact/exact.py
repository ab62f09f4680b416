"""Exact: the min-max solved to the last digits, with arcs and groups generated on demand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from frot._base.arrays import UNIT
from frot._base.errors import InputError, SolverError
from frot.costs.protocol import Line
from frot.plans.line import line_arcs, line_cost, line_potentials
from frot.plans.plan import Plan
from frot.problem.bounds import FAINT, Lower, Upper, lower_bound, upper_bound
from frot.problem.problem import Problem
from frot.solvers._linear_program import EpigraphProgram, Vertex
from frot.solvers.drive import Offer, Solver, Start
from frot.solvers.exact.column_generation import column_generation
from frot.solvers.exact.seed import (
    FEW_GROUPS,
    Seed,
    cheapest,
    cost_scale,
    costs_at,
    first_groups,
    first_iterate,
    rough_sweeps,
    seed_arcs,
    unbalanced_seed,
)
from frot.solvers.oracles import NetworkSimplex

# Above this many groups the smooth problem's Newton matrix is too large; see FrankWolfe.
SMOOTH_GROUPS = 3_000


@dataclass(frozen=True)
class Exact(Solver):
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
        """Choose the algorithm by what the problem is, and yield the bounds it proves."""
        groups, n, m = problem.shape
        if problem.marginals.unbalanced:
            yield from interior_point(problem, start, self.tol)
        elif n == 1 or m == 1:
            yield only_plan(problem)
        elif problem.costs.line is not None:
            yield on_a_line(problem, problem.costs.line)
        elif groups == 1 or problem.mean_cost == 0.0 or problem.adversary.single(groups):
            yield one_group(problem)
        elif problem.adversary.eta == 0.0 and n * m <= 2_500 and groups <= 8:
            # Milliseconds on Gaussian points, and those of the interior point: n = 5, L = 3 .9
            # and 6.8; n = 10, L = 8 3.3 and 9.9; n = 20, L = 8 7.9 and 11.2; n = 20, L = 15 27, 13.
            yield from column_generation(problem, start.alpha)
        else:
            yield from interior_point(problem, start, self.tol)

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


def interior_point(problem: Problem, start: Start, tol: float) -> Iterator[Offer]:
    """Restrict to some arcs and groups, step, price all others, let in what pays, until none does.

    Bounds are those of the full problem.
    """
    unbalanced = problem.marginals.unbalanced
    linear = problem.adversary.eta == 0.0 and not unbalanced
    # Restrict.
    uniform = np.full(problem.shape[0], 1.0 / problem.shape[0])
    alpha = uniform if start.alpha is None else start.alpha
    unit, g = cost_scale(problem, alpha)
    if unbalanced:
        seed = unbalanced_seed(problem, start, unit)
    else:
        sweeps = rough_sweeps(problem, alpha, unit, g)
        if sweeps.mixed.size >= 1_000_000:
            # What follows takes seconds.
            yield sweeps.bounds(problem)
        seed = seed_arcs(problem, sweeps, unit, move_weights=start.alpha is None)
    state = Restricted(problem, start, seed, unit)
    target = 0.05
    while True:
        # Step, until the restricted problem is solved to the target: some twenty steps are usual,
        # and an iterate that needs more than eighty has lost its digits.
        for _ in range(80):
            moved = state.interior.step()
            if not moved or state.settled(target):
                break
            yield Offer()
        else:
            moved = False
        # Price.
        inner_gap = state.gap()
        upper, lower, reduced = state.bounds()
        gap = problem.gap(lower.bound, upper.bound)
        vertex = None
        if linear and (min(gap, inner_gap) <= 10.0 * tol or not moved):
            # A vertex is sparse, and right to the last digit where the interior point is not.
            vertex = state.vertex()
            if vertex is not None and vertex[0].bound <= upper.bound:
                upper = vertex[0]
                gap = problem.gap(lower.bound, upper.bound)
        yield Offer(upper, lower)
        # Enter violated arcs and groups, or solve the restricted problem more closely.
        if state.enter(reduced, upper, lower):
            target = 0.2 * gap
        elif moved:
            # Of 600 problems with eta > 0 two stalled above the tolerance where steps went on past
            # half of it, until they lost their digits.
            target = max(0.01 * min(gap, inner_gap), 0.5 * tol)
        else:
            # Steps no longer progress: the adversary's answer to the best plan may prove more.
            if not unbalanced:
                answer = problem.adversary.best(upper.phi)[1] if vertex is None else vertex[1]
                yield lower_at(problem, answer)
            return


class Restricted:
    """The interior point on a growing part of a problem: some arcs, and some groups.

    It works in units of a typical cost and of the mean mass of a point, and eliminates its rows:
    so its rows are the larger side of the problem (`flipped` if these are the columns).
    """

    def __init__(self, problem: Problem, start: Start, seed: Seed, unit: float) -> None:
        _, n, m = problem.shape
        self.problem, self.unit, self.flipped = problem, unit, m > n
        self.mass_unit = 1.0 / max(n, m)
        if problem.marginals.unbalanced:
            self.mass_unit *= max(float(problem.a.sum()), float(problem.b.sum()))
        arcs = seed.arcs
        if start.plan is not None:
            rows, cols, _ = start.plan.arcs()
            arcs = np.union1d(arcs, rows * m + cols)
        self.groups = first_groups(problem, seed.alpha)
        self.interior = first_iterate(problem, seed, arcs, self.groups, (unit, self.mass_unit))

    @property
    def arcs(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the arcs, as the problem counts them."""
        rows, cols = self.interior.rows, self.interior.cols
        return (cols, rows) if self.flipped else (rows, cols)

    def gap(self) -> float:
        """Relative duality gap of the restricted problem, as far as it is feasible."""
        width = self.interior.complementarity * self.mass_unit * self.unit
        size = self.interior.size() * self.mass_unit * self.unit
        return self.problem.gap(size - width, size)

    def settled(self, target: float) -> bool:
        """Whether it is time to price."""
        misplaced = self.interior.infeasibility()
        if self.interior.unbalanced and misplaced <= 1e-3:
            # Any plan is feasible in the unbalanced problem; the bounds account for its marginals.
            misplaced = 0.0
        gap = self.gap()
        # Mass that is still misplaced when the gap is all but closed is round-off, and stays.
        return gap <= (target if misplaced <= target else 0.01 * target)

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
        entering = cheapest(reduced, per_point=4, below=near)
        rows, cols = self.arcs
        entering = np.setdiff1d(entering, rows * m + cols, assume_unique=True)
        worst = float(reduced.min())
        violated = len(new_groups) > 0 or (len(entering) > 0 and worst < -1e-12)
        if len(entering):
            self._add_arcs(entering, reduced)
        if len(new_groups):
            self._add_groups(new_groups)
        if violated:
            by_row = (reduced.T if self.flipped else reduced).min(axis=1)
            barrier = width / self.mass_unit / (len(inside.x) + len(inside.s))
            self._recentre(0.3 * barrier, by_row)
        return violated

    def vertex(self) -> tuple[Upper, np.ndarray] | None:
        """End on a vertex: the linear program on the arcs that carry mass, and its weights."""
        inside = self.interior
        groups = np.flatnonzero(inside.alpha > 1e-3 * inside.s)
        # HiGHS's simplex is quick to end on a vertex while there are no more groups than this.
        if len(groups) == 0 or len(groups) > 120:
            return None
        try:
            # Early on, the arcs that seem to carry mass may not admit a feasible plan.
            vertex = self._program(groups, inside.x > inside.z)
            vertex = vertex or self._program(groups, inside.x > 0.0)
        except SolverError:
            # The vertex only polishes an answer that is there already.
            return None
        if vertex is None:
            return None
        plan = Plan.from_arcs(*vertex.arcs, vertex.mass, self.problem.shape[1:])
        alpha = np.zeros(self.problem.shape[0])
        alpha[self.groups[groups]] = vertex.alpha
        return upper_bound(self.problem, plan), alpha

    def _program(self, groups: np.ndarray, used: np.ndarray) -> Vertex | None:
        """Solve the linear program on some groups and arcs."""
        inside = self.interior
        rows, cols = (ends[used] for ends in self.arcs)
        costs = inside.costs[np.ix_(groups, used)]
        a, b = self.problem.a, self.problem.b
        return EpigraphProgram(a, b, rows, cols, costs, cap=inside.cap).solve()

    def _violated_groups(self, upper: Upper) -> np.ndarray:
        if len(self.groups) == len(upper.phi):
            return np.empty(0, dtype=np.intp)
        # A group outside that costs more than the k-th largest inside is violated.
        last = len(self.groups) - self.problem.adversary.k
        level = np.partition(upper.phi[self.groups], last)[last]
        outside = np.setdiff1d(np.arange(len(upper.phi)), self.groups, assume_unique=True)
        # Groups just below the level are likely to be violated by the next plan: they enter too.
        close = outside[upper.phi[outside] > level - 0.01 * abs(level)]
        over = outside[upper.phi[outside] > level * (1.0 + 1e-12)]
        if len(over) == 0:
            return over
        order = np.argsort(-upper.phi[close], kind="stable")
        close = close[order]
        # Of groups that cost the same one is enough for now: they may be copies of each other.
        falls = np.append(True, np.diff(upper.phi[close]) < -1e-12 * abs(level))
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


def lower_at(problem: Problem, alpha: np.ndarray) -> Offer:
    """The most that weights prove, by ordinary transport at their mixed cost."""
    mixed = problem.costs.mix(alpha)
    g = NetworkSimplex()(mixed, problem.a, problem.b).g
    return Offer(lower=lower_bound(problem, alpha, g, mixed))


def only_plan(problem: Problem) -> Offer:
    """With one point on a side there is one plan, and the adversary answers it."""
    arcs = Plan(np.outer(problem.a, problem.b), copy=False).arcs()
    upper = upper_bound(problem, Plan.from_arcs(*arcs, problem.shape[1:]))
    _, alpha = problem.adversary.best(upper.phi)
    mixed = problem.costs.mix(alpha)
    g = mixed[0] if len(mixed) == 1 else np.zeros(1)
    return Offer(upper, lower_bound(problem, alpha, g, mixed))


def one_group(problem: Problem) -> Offer:
    """One group, weights that cannot move, or no cost at all: ordinary transport."""
    _, alpha = problem.adversary.best(problem.independent)
    mixed = problem.costs.mix(alpha)
    transport = NetworkSimplex()(mixed, problem.a, problem.b)
    lower = lower_bound(problem, alpha, transport.g, mixed)
    return Offer(upper_bound(problem, transport.plan), lower)


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
    error = (0.5 * len(mass) + 8.0 * p + 8.0) * UNIT * cost + FAINT * problem.mean_cost
    phi = np.array([cost])
    value, alpha = problem.adversary.best(phi)
    plan = Plan.from_arcs(rows, cols, mass, problem.shape[1:])
    return Offer(
        Upper(value + error, value, plan, phi),
        Lower(value - min(error, cost), alpha, *line_potentials(x, y, arcs, p), error),
    )
