"""Exact: the min-max solved to the last digits, with arcs and groups generated on demand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from frot._base.errors import InputError
from frot._base.stopping import seconds_left
from frot.costs.protocol import UNIT, Line
from frot.plans.line import line_arcs, line_cost, line_potentials
from frot.plans.plan import Plan
from frot.problem.bounds import FAINT, Lower, Upper, lower_bound, upper_bound
from frot.problem.problem import Problem
from frot.solvers.drive import Driven, Offer
from frot.solvers.exact.column_generation import column_generation, column_generation_suits
from frot.solvers.exact.restricted import Restricted
from frot.solvers.exact.seed import LONG_RUN, cost_unit, place, rough_sweeps, seed_arcs, soft_seed
from frot.solvers.oracles import NetworkSimplex
from frot.solvers.start import Start

# Above this many groups the smooth problem's Newton matrix is too large; see FrankWolfe.
SMOOTH_GROUPS = 3_000
# While arcs still enter, the restricted problem is solved to this share of the full gap.
SOLVE_TO = 0.2
# Nor is it solved to less than this share of the tolerance: of 600 problems with eta > 0 two
# stalled above it where steps went on until they lost their digits.
ENOUGH = 0.5
# Steps of the interior point between two looks at all arcs, at most: some twenty are usual, and a
# point that needs more has lost its digits.
MOST_STEPS = 80


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
        """Choose the algorithm by what the problem is, and yield the bounds it proves."""
        groups, n, m = problem.shape
        if problem.marginals.soft:
            yield from interior_point(problem, start, self.tol)
        elif n == 1 or m == 1:
            yield only_plan(problem)
        elif problem.costs.line is not None:
            yield on_a_line(problem, problem.costs.line)
        elif groups == 1 or problem.mean_cost == 0.0 or problem.adversary.single(groups):
            yield from one_group(problem)
        elif column_generation_suits(problem):
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
    soft = problem.marginals.soft
    linear = problem.adversary.eta == 0.0 and not soft
    # Restrict.
    if soft:
        seed = soft_seed(problem, start, cost_unit(problem))
    else:
        alpha = np.full(problem.shape[0], 1.0 / problem.shape[0])
        sweeps = rough_sweeps(problem, alpha if start.alpha is None else start.alpha)
        if sweeps.mixed.size >= LONG_RUN:
            yield sweeps.bounds(problem)
        seed = seed_arcs(problem, sweeps, move_weights=start.alpha is None)
    state = Restricted(problem, *place(problem, start, seed))
    target = 0.05
    while True:
        # Step, until the restricted problem is solved to the target.
        for _ in range(MOST_STEPS):
            moved = state.interior.step(state.floor)
            if not moved or state.settled(target):
                break
            yield Offer()
        else:
            moved = False
        # Price.
        inner_gap = state.gap()
        upper, lower, reduced = state.bounds()
        gap = problem.gap(lower.bound, upper.bound)
        if linear and (min(gap, inner_gap) <= 10.0 * tol or not moved):
            # A vertex is sparse, and right to the last digit where the interior point is not.
            vertex = state.vertex()
            if vertex is not None and vertex.bound <= upper.bound:
                upper = vertex
                gap = problem.gap(lower.bound, upper.bound)
        yield Offer(upper, lower)
        # Let in, or solve what there is more closely; stop where that is not to be had.
        if state.enter(reduced, upper, lower):
            target = SOLVE_TO * gap
        elif moved:
            # Past the tolerance steps lose the digits that the last ones won.
            target = max(0.01 * min(gap, inner_gap), ENOUGH * tol)
        else:
            return


def only_plan(problem: Problem) -> Offer:
    """With one point on a side there is one plan, and the adversary answers it."""
    arcs = Plan(np.outer(problem.a, problem.b), copy=False).arcs()
    upper = upper_bound(problem, Plan.from_arcs(*arcs, problem.shape[1:]), rounded=True)
    _, alpha = problem.adversary.best(upper.phi)
    mixed = problem.costs.mix(alpha)
    g = mixed[0] if len(mixed) == 1 else np.zeros(1)
    return Offer(upper, lower_bound(problem, alpha, g, mixed))


def one_group(problem: Problem) -> Iterator[Offer]:
    """One group, weights that cannot move, or no cost at all: ordinary transport.

    The network simplex has nothing to show before its end; sweeps have, where it takes long.
    """
    _, alpha = problem.adversary.best(problem.independent)
    if seconds_left() < np.inf and problem.shape[1] * problem.shape[2] >= LONG_RUN:
        yield rough_sweeps(problem, alpha).bounds(problem)
    mixed = problem.costs.mix(alpha)
    transport = NetworkSimplex()(mixed, problem.a, problem.b)
    yield Offer(
        upper_bound(problem, transport.plan), lower_bound(problem, alpha, transport.g, mixed)
    )


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
