r"""Certificates: an interval that holds the optimum, whatever a solver did.

Upper bound: the objective of a plan whose marginals are right. Lower bound: for any weights
alpha and any potential g, with f and g made feasible by two c-transforms of the mixed cost,

.. math::
    \langle a, f \rangle + \langle b, g \rangle + r(\alpha)
    \;\le\; \min_{\Pi} \langle \Pi, M_\alpha \rangle + r(\alpha) \;\le\; \text{optimum},

where r is what the adversary is paid for alpha (its entropy), and alpha is one that it may choose:
weights that are not in the (capped) simplex are projected into it first. Both are widened by what
rounding may have done. With u = 2.2e-16 (`UNIT`), one operation is right to u/2 of its result, and
S = <a, |f|> + <b, |g|> is the size of the potentials, the lower bound loses

1. 8u S: f and g are minima of differences, feasible but for u/2 of each; the shift of unbalanced
   problems, products with weights and the exact sum of these (`math.fsum`) add less than 4u S;
2. <a, rho> + <b, sigma>, where entries of M are known to rho_i + sigma_j besides a share r;
3. (r + 4u + |sum(alpha) - 1|) of its own value, the last on the simplex only: with costs >= 0
   (else r is zero) potentials that are feasible for M are so for (1 - r) M if multiplied by
   1 - r, and so is what they prove;
4. |sum(a) - 1| S, and for b alike: weights stand for a / sum(a);
5. `FAINT` mean costs, for underflow.

The upper bound gains `Costs.doubt` of each phi_l, the error of the sum of the weights and what
`marginal_doubt` says. The proofs stand in `docs/proofs.md`, under "Rounding margins".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np

from frot._base.arrays import UNIT, blocks, quiet, summation, to_numpy
from frot._base.errors import SolverError
from frot.costs.protocol import Costs, Rounding
from frot.plans.feasible import MarginalError, marginal_error, round_plan
from frot.plans.plan import Plan, n_entries
from frot.problem.adversary import SimplexFamily
from frot.problem.marginals import even_out
from frot.problem.problem import Problem

# Margin for underflow, in mean costs: products that underflow are below it, and so is their error.
FAINT = 1e-200


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


def upper_bound(problem: Problem, plan: Plan, phi: np.ndarray | None = None) -> Upper:
    """Return what a plan proves: its objective, once its marginals are right.

    A plan that comes with its costs `phi` is feasible as it is, any other is rounded. The objective
    grows with every group's cost, and these are widened by what they are not known to.
    """
    price, price_error, marginals = 0.0, 0.0, None
    if problem.marginals.unbalanced:
        plan, phi = _keep_balanced_side(problem, plan), None
        price, price_error, marginals = _price(problem, plan)
    elif phi is None:
        plan = round_plan(plan, problem.a, problem.b)
    phi = to_numpy(problem.costs.inner(plan) if phi is None else phi)
    value, alpha = problem.adversary.best(phi)
    bound = problem.adversary.upper(phi, cost_doubt(problem, plan, phi, marginals))
    return Upper(float(bound) + price + price_error, float(value) + price, plan, phi, alpha)


def _keep_balanced_side(problem: Problem, plan: Plan) -> Plan:
    """Scale the masses of a side that has to be kept; points that have none get all of theirs."""
    weights = (problem.a, problem.b)
    for axis, side in zip((1, 0), problem.marginals.sides, strict=True):
        if side.finite:
            continue
        wanted, sums = weights[1 - axis], plan.sum(axis=axis)
        empty = np.flatnonzero(sums <= 0.0)
        rows, cols, mass = plan.arcs()
        ends = [rows, cols] if axis == 1 else [cols, rows]
        mass = mass * np.divide(wanted, sums, out=np.zeros_like(sums), where=sums > 0.0)[ends[0]]
        ends = [np.append(ends[0], empty), np.append(ends[1], np.zeros_like(empty))]
        rows, cols = ends if axis == 1 else ends[::-1]
        plan = Plan.from_arcs(rows, cols, np.append(mass, wanted[empty]), plan.shape)
    return plan


def _price(problem: Problem, plan: Plan) -> tuple[float, float, MarginalError]:
    """What a plan pays for the mass it loses, the error of that, and that of a side it keeps."""
    masses = (plan.sum(axis=1), plan.sum(axis=0))
    share = summation(n_entries(plan))
    price = error = 0.0
    sides = zip(problem.marginals.sides, (problem.a, problem.b), masses, strict=True)
    for side, weights, kept in sides:
        price += side.price(weights, kept)
        error += side.price_error(weights, kept, share)
    return price, error, MarginalError(2.0 * share * float(masses[0].sum()), 4.0 * share)


def cost_doubt(
    problem: Problem, plan: Plan, phi: np.ndarray, error: MarginalError | None = None
) -> np.ndarray:
    """Bound, (L,), by how much more than `phi` a plan costs whose marginals are exact.

    The costs' own rounding, the `error` of the marginals and the sum of the weights add up.
    """
    if error is None:
        error = marginal_error(plan, problem.a, problem.b)
    # The sum of the masses is one up to round-off, a common factor of all costs.
    doubt = plan_doubt(problem.costs, phi, plan) + (problem.mass_error + UNIT) * np.abs(phi)
    return doubt + FAINT * problem.sizes + marginal_doubt(problem, phi, error)


def plan_doubt(costs: Costs, phi: np.ndarray, plan: Plan) -> np.ndarray:
    """Return bounds, (L,) on the host, on the rounding errors of the costs of a plan."""
    bring = costs.home.bring
    u, v = (bring(to_numpy(plan.sum(axis=axis))) for axis in (1, 0))
    return to_numpy(costs.doubt(bring(phi), u, v, n_entries(plan)))


def marginal_doubt(problem: Problem, phi: np.ndarray, error: MarginalError) -> np.ndarray:
    """Bound, (L,), what it costs to make the marginals of a plan of costs `phi` exact."""
    if error.level == 0.0:
        return np.zeros(len(phi))
    filled = error.spread * (1.0 + problem.mass_error) * problem.sizes
    if problem.costs.nonnegative:
        return filled + error.level * phi
    # With costs of both signs a share of the plan may cost more than that share of phi.
    return filled + (error.level + error.spread) * to_numpy(problem.costs.peaks)


def lower_bound(
    problem: Problem, alpha: np.ndarray, g: np.ndarray, mixed: np.ndarray | None = None
) -> Lower:
    """Make (alpha, g) dual feasible and return the value it proves.

    Weights that are not in the (capped) simplex are projected into it. `mixed` is
    ``problem.costs.mix(alpha)`` where the caller has it already, or anything that is nowhere above
    it; it is mixed again where the weights had to be projected.
    """
    allowed = allowed_weights(problem, alpha)
    if mixed is None or allowed is not alpha:
        mixed = problem.costs.mix(allowed)
    assert mixed is not None
    if not np.isfinite(g).all():
        g = np.zeros_like(g)
    # g is zero at the heaviest point, which keeps the size S, and with it the margin, small.
    g = g - g[problem.b.argmax()]
    f, least = c_transforms(mixed, g)
    # In exact arithmetic `least` >= g; subtracting the large f of a far point may round below it.
    return proven_dual(problem, allowed, f, np.maximum(g, least), problem.costs.rounding(allowed))


def allowed_weights(problem: Problem, alpha: np.ndarray) -> np.ndarray:
    """Return weights that the adversary may choose: others are projected into the simplex."""
    adversary = problem.adversary
    if isinstance(adversary, SimplexFamily) and not adversary.contains(alpha):
        return adversary.project(alpha)
    return alpha


def proven_dual(
    problem: Problem, alpha: np.ndarray, f: np.ndarray, g: np.ndarray, rounding: Rounding
) -> Lower:
    r"""Return what weights prove with potentials that are feasible but for rounding.

    .. math::
        \langle a, f \rangle + \langle b, g \rangle + r(\alpha), \quad \text{or} \quad
        -\tau_a \langle a, e^{-f / \tau_a} - 1 \rangle
        - \tau_b \langle b, e^{-g / \tau_b} - 1 \rangle + r(\alpha)

    where mass may go, the potentials shifted to where they prove most. The derivative by a
    potential is the mass that it keeps, and errors of it cost as much.
    """
    adversary, nonnegative = problem.adversary, problem.costs.nonnegative
    a, b = problem.a, problem.b
    gains, masses = (a * f, b * g), (a, b)
    # The masses of very negative potentials overflow: the bound is then -inf.
    with quiet():
        if problem.marginals.unbalanced:
            rows, cols = sides = problem.marginals.sides
            shift = float(even_out(sides, (a, b), (f, g)))
            f, g = f + shift, g - shift
            gains = rows.gains(a, f), cols.gains(b, g)
            masses = np.maximum(rows.masses(a, f), a), np.maximum(cols.masses(b, g), b)
        value = fsum(np.concatenate(gains).tolist())
        if nonnegative and not value > 0.0:
            # With nonnegative costs f = g = 0 proves at least as much.
            value, f, g = 0.0, np.zeros_like(f), np.zeros_like(g)
        size = float(masses[0] @ np.abs(f) + masses[1] @ np.abs(g))
        slack = (8.0 * UNIT + problem.mass_error) * size
        slack += float(np.sum(masses[0] * rounding.rows) + np.sum(masses[1] * rounding.cols))
        # Weights of other sets than the simplex have any sum.
        missed = abs(float(alpha.sum()) - 1.0) if adversary.on_simplex else 0.0
        slack += (rounding.relative + 4.0 * UNIT + missed) * abs(value)
        slack += FAINT * problem.mean_cost
        bound = max(0.0 if nonnegative else -np.inf, value - slack)
    error = float(adversary.reward_error(alpha))
    return Lower(float(bound + adversary.reward(alpha) - error), alpha, f, g, slack + error)


def c_transforms(mixed: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return f_i = min_j M_ij - g_j, then g_j = min_i M_ij - f_i: feasible, and no worse.

    Examples
    --------
    >>> c_transforms(np.array([[0.0, 2.0], [2.0, 0.0]]), np.array([0.0, 1.0]))
    (array([ 0., -1.]), array([0., 1.]))
    """
    f, best = np.empty(len(mixed)), np.full(mixed.shape[1], np.inf)
    # In blocks of rows, whose temporaries stay in the cache.
    for part in blocks(len(mixed), 8 * mixed.shape[1]):
        f[part] = (mixed[part] - g).min(axis=1)
        np.minimum(best, (mixed[part] - f[part, None]).min(axis=0), out=best)
    return f, best


def is_rounding(width: float, doubt: float) -> bool:
    """Whether an interval is no more than four times what rounding may have done to its ends."""
    return width <= 4.0 * doubt


def mostly_rounding(upper: Upper, lower: Lower) -> bool:
    """Whether what rounding may have done to these bounds is most of what lies between them."""
    return is_rounding(upper.bound - lower.bound, upper.bound - upper.value + lower.slack)


def refuse_contradiction(lower: float, upper: float, solver: str) -> None:
    """Raise if a lower bound is above an upper one: then neither can be trusted."""
    if lower > upper:
        raise SolverError(
            f"{solver}: the bounds [{lower!r}, {upper!r}] contradict each other; please report "
            "this problem"
        )
