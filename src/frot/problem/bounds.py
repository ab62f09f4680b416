r"""Certificates: an interval that holds the optimum, whatever a solver did.

Upper bound: the objective of a plan whose marginals are right. Lower bound: for any weights
alpha and any potential g, with f and g made feasible by two c-transforms of the mixed cost,

.. math::
    \langle a, f \rangle + \langle b, g \rangle + r(\alpha)
    \;\le\; \min_{\Pi} \langle \Pi, M_\alpha \rangle + r(\alpha) \;\le\; \text{optimum},

where r is what the adversary is paid for alpha (its entropy), and alpha is one that it may choose:
weights that are not in the (capped) simplex are projected into it first. Both are widened by what
rounding in double precision can have done to them, each point by what it weighs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum

import numpy as np

from frot._base.arrays import to_numpy
from frot._base.errors import SolverError
from frot.costs.protocol import UNIT
from frot.plans.feasible import MarginalError, marginal_error, round_plan, settle
from frot.plans.lazy import LazyPlan
from frot.plans.plan import Plan, is_sparse, n_entries
from frot.problem.adversary import SimplexFamily
from frot.problem.problem import Problem

# Share of the mean cost that underflow may have taken from a bound, and more: no cost that matters
# is below it, and products of smaller ones are off by less.
FAINT = 1e-200
# Entries whose temporaries stay in the cache.
BLOCK = 500_000

# An interval of so many times what rounding explains is rounding.
WITHIN_DOUBT = 4.0
# Marginals that are right to this share need no rounding.
FEW_UNITS = 4.0 * UNIT


@dataclass(frozen=True, eq=False)
class Upper:
    """A feasible plan, its group costs, its objective, and that widened by rounding.

    `alpha` is the adversary's answer to `phi` where it was computed.
    """

    bound: float
    value: float
    plan: Plan
    phi: np.ndarray
    alpha: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Lower:
    """Weights and feasible potentials, the value they prove, and what it lost to rounding."""

    bound: float
    alpha: np.ndarray
    f: np.ndarray
    g: np.ndarray
    slack: float = 0.0


def upper_bound(
    problem: Problem, plan: Plan, phi: np.ndarray | None = None, *, rounded: bool = False
) -> Upper:
    """Round the plan unless it already is, and take its objective as an upper bound.

    `phi` may be given where the plan is feasible as it is and its costs are known. The objective
    grows with every group's cost, and these are widened by `cost_doubt`.
    """
    if problem.marginals.soft:
        return _soft_upper(problem, plan)
    error = marginal_error(plan, problem.a, problem.b)
    if not rounded and not isinstance(plan, LazyPlan) and error.level > FEW_UNITS:
        plan, phi = settle(plan, problem.a, problem.b) if is_sparse(plan) else plan, None
        error = marginal_error(plan, problem.a, problem.b)
        if error.level > FEW_UNITS:
            plan = round_plan(plan, problem.a, problem.b)
            error = marginal_error(plan, problem.a, problem.b)
    phi = problem.costs.inner(plan) if phi is None else to_numpy(phi)
    value, alpha = problem.adversary.best(phi)
    bound = problem.adversary.upper(phi, _cost_doubt(problem, plan, phi, error))
    return Upper(bound, float(value), plan, phi, alpha=alpha)


def _soft_upper(problem: Problem, plan: Plan) -> Upper:
    r"""The objective of any plan, where mass may go: its costs, and the price of what it loses.

    A side that has to be kept is: its masses are scaled.
    """
    costs, sides = problem.costs, problem.marginals.sides
    for axis, side, weights in ((1, sides[0], problem.a), (0, sides[1], problem.b)):
        if side.soft:
            continue
        sums = plan.sum(axis=axis)
        if not (sums > 0.0).all():
            return _no_plan(problem, plan)
        rows, cols, mass = plan.arcs()
        plan = Plan.from_arcs(
            rows, cols, mass * (weights / sums)[rows if axis == 1 else cols], plan.shape
        )
    phi, masses = costs.inner(plan), (plan.sum(axis=1), plan.sum(axis=0))
    total = float(masses[0].sum())
    share = (8.0 + 0.5 * n_entries(plan)) * UNIT
    price = error = 0.0
    for side, weights, kept in zip(sides, (problem.a, problem.b), masses, strict=True):
        price += side.price(weights, kept)
        error += side.price_error(weights, kept, share)
    # Errors of costs are those of a unit mass; kept masses are right to some units each.
    doubt = costs.doubt(phi, plan) * max(1.0, total)
    doubt = doubt + (2.0 * share * total + FAINT) * problem.sizes
    value, _ = problem.adversary.best(phi)
    bound = problem.adversary.upper(phi, doubt + 4.0 * share * np.abs(phi)) + price + error
    return Upper(float(bound), float(value) + price, plan, phi)


def _no_plan(problem: Problem, plan: Plan) -> Upper:
    return Upper(np.inf, np.inf, plan, np.full(problem.shape[0], np.inf))


def cost_doubt(problem: Problem, plan: Plan, phi: np.ndarray) -> np.ndarray:
    """Bound, (L,), by how much more than `phi` a plan costs whose marginals are exact."""
    return _cost_doubt(problem, plan, phi, marginal_error(plan, problem.a, problem.b))


def _cost_doubt(problem: Problem, plan: Plan, phi: np.ndarray, error: MarginalError) -> np.ndarray:
    """Add up what the costs' own rounding, marginals and the sum of the weights may change."""
    costs = problem.costs
    # Masses sum to one but for their last places, which scale all costs alike.
    doubt = costs.doubt(phi, plan) + (problem.mass_error + UNIT) * np.abs(phi)
    doubt = doubt + FAINT * problem.sizes
    return doubt + marginal_doubt(problem, phi, error)


def marginal_doubt(problem: Problem, phi: np.ndarray, error: MarginalError) -> np.ndarray:
    """Bound, (L,), what it costs to make the marginals of a plan of costs `phi` exact."""
    if error.level == 0.0:
        return np.zeros(len(phi))
    filled = error.spread * (1.0 + problem.mass_error) * problem.sizes
    if problem.costs.nonnegative:
        return filled + error.level * phi
    # Where costs of both signs cancel, what a share of the plan costs is no share of phi.
    return filled + (error.level + error.spread) * problem.costs.peaks


def lower_bound(
    problem: Problem, alpha: np.ndarray, g: np.ndarray, mixed: np.ndarray | None = None
) -> Lower:
    """Make (alpha, g) dual feasible and return the value it proves.

    Weights that are not in the (capped) simplex are projected into it. `mixed` is
    ``problem.costs.mix(alpha)`` where the caller has it already, or anything that is nowhere above
    it; it is mixed again where the weights had to be projected.
    """
    adversary = problem.adversary
    if isinstance(adversary, SimplexFamily) and not adversary.contains(alpha):
        alpha, mixed = adversary.project(alpha), None
    if mixed is None:
        mixed = problem.costs.mix(alpha)
    if problem.marginals.soft:
        return _soft_lower(problem, alpha, g, mixed)
    a, b = problem.a, problem.b
    rounding = problem.costs.rounding(alpha)
    signed = not problem.costs.nonnegative
    relative = rounding.relative
    f, g = _feasible_potentials(mixed, g, relative, b, signed)
    bound = _dot(a, f) + _dot(b, g)
    absolute = _weighed(a, rounding.rows) + _weighed(b, rounding.cols)
    if problem.costs.nonnegative and bound < 0.0:
        # Where no cost is negative, nothing proves more than these do.
        bound, f, g = 0.0, np.zeros_like(f), np.zeros_like(g)
    # Each potential is right to its last places, and weighs what its point does.
    size = float(a @ np.abs(f) + b @ np.abs(g))
    slack = absolute + (8.0 * UNIT + problem.mass_error) * size
    return _lower(problem, bound, slack, alpha, f, g)


def _lower(
    problem: Problem, bound: float, slack: float, alpha: np.ndarray, f: np.ndarray, g: np.ndarray
) -> Lower:
    """Take off a dual value what rounding may have added, and add what weights are paid."""
    adversary = problem.adversary
    slack += FAINT * problem.mean_cost
    bound -= slack
    if problem.costs.nonnegative:
        bound = max(bound, 0.0)
    # Weights sum to one but for their last places; what they mix is off by as much.
    bound -= (4.0 * UNIT + abs(float(alpha.sum()) - 1.0)) * abs(bound)
    bound += adversary.reward(alpha)
    entropy = adversary.reward_rounding(bound, len(alpha))
    return Lower(float(bound - entropy), alpha, f, g, slack + entropy)


def _soft_lower(problem: Problem, alpha: np.ndarray, g: np.ndarray, mixed: np.ndarray) -> Lower:
    r"""What feasible potentials prove where mass may go, shifted to where they prove most.

    .. math::
        -\tau_a \langle a, e^{-f / \tau_a} - 1 \rangle
        - \tau_b \langle b, e^{-g / \tau_b} - 1 \rangle + r(\alpha), \quad f \oplus g \le M_\alpha .

    The derivative by a potential is what it keeps, and errors of it cost as much.
    """
    a, b, marginals = problem.a, problem.b, problem.marginals
    rounding = problem.costs.rounding(alpha)
    signed = not problem.costs.nonnegative
    f, g = _feasible_potentials(mixed, g, rounding.relative, b, signed)
    rows, cols = marginals.sides
    by = marginals.shift(a, f, b, g)
    f, g = f + by, g - by
    found = rows.dual(a, f) + cols.dual(b, g)
    if not signed and not found > 0.0:
        # Where no cost is negative, nothing proves more than these do.
        found, by, f, g = 0.0, 0.0, np.zeros_like(f), np.zeros_like(g)
    if not found > -np.inf:
        # Potentials so far below zero that they would create more mass than there are numbers.
        return Lower(-np.inf, alpha, f, g)
    kept = np.maximum(rows.kept(a, f), a), np.maximum(cols.kept(b, g), b)
    size = float(kept[0] @ np.abs(f) + kept[1] @ np.abs(g))
    slack = float(np.sum(kept[0] * rounding.rows) + np.sum(kept[1] * rounding.cols))
    mass = float(kept[0].sum() + kept[1].sum())
    slack += (24.0 + 0.5 * sum(mixed.shape)) * UNIT * (size + mass * abs(by))
    return _lower(problem, found, slack, alpha, f, g)


def cheap_lower_bound(problem: Problem) -> Lower:
    r"""Return what the points alone prove, without a pass over the costs.

    Where no weight may be negative, the objective grows with every group's cost, and none is below
    ``problem.costs.least``, so that what the adversary earns from these is below the optimum.
    """
    least = problem.costs.least(problem.a, problem.b)
    if problem.marginals.soft:
        # All mass may be destroyed, and with costs below zero any amount be created.
        least = np.where(problem.costs.nonnegative, 0.0, -np.inf) + np.zeros(len(least))
    _, n, m = problem.shape
    _, alpha = problem.adversary.best(least)
    bound = problem.adversary.least(least)
    if problem.marginals.soft or not np.isfinite(bound):
        found = float(bound) if np.isfinite(bound) else -np.inf
        return Lower(found, alpha, np.zeros(n), np.zeros(m))
    f, g = problem.costs.least_potentials(alpha, problem.a, problem.b)
    # Entropy is never negative: what holds without it holds with it.
    return Lower(float(bound), alpha, f, g)


def _weighed(weights: np.ndarray, errors: np.ndarray | float) -> float:
    return errors if isinstance(errors, float) else float(weights @ errors)


def _dot(weights: np.ndarray, potential: np.ndarray) -> float:
    """A sum of products that cancels without loss."""
    return fsum((weights * potential).tolist())


def _feasible_potentials(
    mixed: np.ndarray, g: np.ndarray, shrink: float, b: np.ndarray, signed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Two c-transforms from a g that makes the potentials weigh little, as rounding goes by that.

    Of two feasible potentials g, before and after, the larger is taken entry by entry: after a far
    point's f was rounded, what it leaves the others may be less than they had.
    """
    if not np.isfinite(g).all():
        g = np.zeros_like(g)
    # The heaviest point's is zero: what the others weigh against it is what a plan costs.
    g = g - g[b.argmax()]
    f, better = c_transforms(mixed, g, shrink + 4.0 * UNIT, signed)
    return f, np.maximum(g, better - 4.0 * UNIT * np.abs(better))


def c_transforms(
    mixed: np.ndarray, g: np.ndarray, shrink: float = 0.0, signed: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return f_i = min_j M_ij - g_j, then g_j = min_i M_ij - f_i: feasible, and no worse.

    `shrink` takes that share off costs first, where they are known no better, and a unit off f,
    for the last place of a subtraction. Costs that are not `signed` are all positive.

    Examples
    --------
    >>> c_transforms(np.array([[0.0, 2.0], [2.0, 0.0]]), np.array([0.0, 1.0]))
    (array([ 0., -1.]), array([0., 1.]))
    """
    if mixed.size <= BLOCK:
        return _block_transforms(mixed, g, shrink, signed)
    f = np.empty(len(mixed))
    best = np.full(mixed.shape[1], np.inf)
    for part in _row_blocks(mixed):
        f[part], below = _block_transforms(mixed[part], g, shrink, signed)
        np.minimum(best, below, out=best)
    return f, best


def _block_transforms(
    block: np.ndarray, g: np.ndarray, shrink: float, signed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The transforms of some rows: what they have, and what they leave each column."""
    if shrink > 0.0:
        # Of either sign, the smaller one; infinite costs stay infinite.
        less = block * (1.0 - shrink)
        block = np.minimum(less, block * (1.0 + shrink)) if signed else less
    row = (block - g).min(axis=1)
    if shrink > 0.0:
        row -= 2.0 * UNIT * np.abs(row)
    return row, (block - row[:, None]).min(axis=0)


def _row_blocks(mixed: np.ndarray) -> Iterator[slice]:
    """Cut rows so that temporaries stay in the cache instead of being (n, m) matrices again."""
    step = max(1, BLOCK // max(1, mixed.shape[1]))
    for start in range(0, len(mixed), step):
        yield slice(start, start + step)


def is_rounding(width: float, doubt: float) -> bool:
    """Whether most of an interval is what rounding may have done to its two ends."""
    return width <= WITHIN_DOUBT * doubt


def refuse_contradiction(lower: float, upper: float, solver: str) -> None:
    """Raise if a lower bound is above an upper one: then neither can be trusted."""
    if lower > upper:
        raise SolverError(
            f"{solver}: the bounds [{lower!r}, {upper!r}] contradict each other; please report "
            "this problem"
        )
