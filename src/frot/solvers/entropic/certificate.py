r"""Certificates with eps > 0: what weights and potentials prove, in double precision.

Lower bound: the dual value. Given g, the best f makes the rows of the plan exact, and

.. math:: \langle a, f \rangle + \langle b, g \rangle + r(\alpha) \;\le\; \text{optimum} .

Upper bound: the plan's columns are shrunk to b where they are too heavy, and what then lacks in
rows (u) and columns (v), a mass t, is added as :math:`u v^\top / t`. The entropy of the sum is at
most that of its parts, by convexity:

.. math::
    \mathrm{KL}\big(\Pi + \tfrac{u v^\top}{t} \,\big|\, a b^\top\big) \le
    \langle \Pi, \log \tfrac{\Pi}{a b^\top} \rangle - (1 - t) \log (1 - t)
    + t\, \mathrm{KL}\big(\tfrac{u}{t} | a\big) + t\, \mathrm{KL}\big(\tfrac{v}{t} | b\big) .

Where marginals need not be kept, the lower bound is the dual value of g and of the best f for it,

.. math::
    -\tau_a \langle a, e^{-f / \tau_a} - 1 \rangle - \tau_b \langle b, e^{-g / \tau_b} - 1 \rangle
    - \varepsilon\,(|\Pi| - |a| |b|) + r(\alpha) \;\le\; \text{optimum} ,

and the upper bound the objective of their plan, for any plan is feasible once the columns of a side
that has to be kept are scaled. Its rows are :math:`x_i = a_i e^{-f_i / \tau_a}`, its columns c, and

.. math::
    \varepsilon\,\mathrm{KL}(\Pi | a b^\top) = \langle x, f \rangle + \langle c, g \rangle
    - \langle \alpha, \phi \rangle - \varepsilon\,(|\Pi| - |a| |b|) .

Rounding, of both bounds alike (`_margin`). With u a unit in the last place (`Passes.unit`), s what
a sum over points is off by (`Passes.sums`), and S = <x, |f|> + 2 <c, |g|> the size of what is
carried, each point counting by the more of its weight and of what is kept of it:

1. a score :math:`(g_j - M_{ij}) / \varepsilon + \log b_j` is right to six units (`SCORE`) of its
   parts. With :math:`M = f \oplus g - \varepsilon t`, t the logarithm of the plan's density, these
   are :math:`|f_i| + 2 |g_j| + \varepsilon (|\log b_j| + |t_{ij}|)` over eps; what goes with a
   point is taken off its potential, and t is a share of an exponent: its mean is at most KL + 1 per
   unit of mass. So 6u (S + eps (2 |Pi| + 2 |a||b| + <c, |log b|>));
2. sums: 2s (S + eps (|Pi| + |a||b|) + the size of entropy and prices);
3. an entry of the mixed cost is off by :math:`\rho M_{ij} + p_i + q_j` (`Costs.rounding`): <x, p> +
   <c, q>, and rho + (L + 10) u of S and of the entropy, which what is carried costs at most.

The upper bound also pays `Costs.doubt` of each group's cost, and 9s of a b^T in each, which fills
what marginals lack that are off by some s. `docs/proofs.md` has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from frot._base.arrays import Array, at_least, quiet, unit_of
from frot.solvers.entropic.engine import Engine
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.kernel import FirstPass, Passes, RowBlock
from frot.solvers.entropic.point import Point

# Units in the last place that a score takes on its way: six operations, each off by one at most.
SCORE = 6.0


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds of a batch, and the plans and potentials that prove them, in double precision.

    The plan of the upper bound is `weight` times the one with exact rows that g makes, its columns
    times `thin`, plus the product of `left` and `right`. Bounds are (B,), and so is `value`,
    the objective of the plan with its entropy bounded by that of its parts.
    """

    value: Array
    upper: Array
    lower: Array
    slack: Array
    phi: Array
    alpha: Array
    f: Array
    g: Array
    thin: Array
    weight: Array
    left: Array
    right: Array


class Objective(NamedTuple):
    """A plan and what it costs, before anything is widened.

    Attributes
    ----------
    phi : array of shape (B, L)
    rows, cols : arrays of shape (B, n) and (B, m)
        Its marginals.
    extra : array of shape (B,)
        What it pays besides: its entropy, and prices of mass that is not kept.
    dual : array of shape (B,)
        The dual value of its potentials, without what the adversary is paid.
    size : array of shape (B,)
        Sizes of what was added up for `extra` and `dual` besides costs and potentials.
    thin, weight, left, right :
        The plan: see `Certificate`.
    """

    phi: Array
    rows: Array
    cols: Array
    extra: Array
    dual: Array
    size: Array
    thin: Array
    weight: Array
    left: Array
    right: Array


def certify(engine: Engine, alpha: Array, g: Array, point: Point | None = None) -> Certificate:
    """Prove an interval from weights (B, L) and potentials of the columns (B, m).

    Where `point` is that of a search that these are of, its kernel serves the proof if it can.
    """
    engine = engine.prover
    problem, xp, dtype = engine.problem, engine.problem.home.xp, engine.problem.home.dtype
    # A bound needs weights inside the adversary's set.
    given, alpha = alpha, problem.adversary.project(xp.astype(alpha, dtype))
    g = xp.astype(g, dtype)
    # Non-finite potentials are replaced by zero.
    g = xp.where(xp.isfinite(g), g, xp.zeros_like(g))
    if not problem.unbalanced:
        # A constant common to f and -g costs digits: g is centred.
        g = g - xp.vecdot(problem.b, g)[:, None]
    passes, first = engine.passes(alpha), None
    if point is not None and bool(xp.all(alpha == given)):
        first = kernel_pass(problem, point)
    first = first or passes.first(g)
    objective = unbalanced_objective if problem.unbalanced else balanced_objective
    return _interval(engine, passes, alpha, first, objective(engine, passes, alpha, first))


def certify_start(engine: Engine) -> Certificate:
    """Prove an interval for whoever had no time for a step: of equal weights, and of g = 0."""
    problem, xp = engine.problem, engine.problem.home.xp
    # Weights are projected into the adversary's set, where they sum to one.
    return certify(engine, xp.ones_like(problem.sizes), xp.zeros_like(problem.b))


def kernel_pass(problem: EntropicProblem, point: Point) -> FirstPass | None:
    r"""Take the plan from the kernel that a search in double precision ended with.

    That saves forming it, 10 to 18 % of the time where one group of 100 or 200 points is solved.
    Rounding of what the search made of
    its kernel K, at a base :math:`g^0` of potentials, is within what a proof is charged for scores:
    six units of :math:`|f_i| + 2 |g_j| + \varepsilon |t_{ij}|`, and eight or more of the
    potentials besides. Scores of K are off by two operations on costs, as ever;
    :math:`f = f^0 + \varepsilon \log(x / a)` by four on :math:`f^0`, which on average is no more
    than costs of the plan are, or squares that these are charged for, and by three on itself; g by
    as many, and both by one for the constant that is taken off them. All of it is relative to the
    potentials as the search had them, so that these must be no larger than what is charged: no
    constant far apart, and no base. And the plan that is handed out is formed anew: where scores
    are large, its columns would be off by their last places.

    None where that is not so, and where weights vanish or mass may go.
    """
    home, kernel = problem.home, point.kernel
    if kernel is None or kernel.dtype != home.xp.float64 or problem.unbalanced or problem.uneven:
        return None
    xp, a, b = home.xp, problem.a, problem.b
    mean = xp.vecdot(b, point.g)
    f, g = point.f + mean[:, None], point.g - mean[:, None]
    charged = xp.vecdot(a, xp.abs(f)) + xp.vecdot(b, xp.abs(g))
    apart = xp.abs(mean) + xp.vecdot(b, xp.abs(point.base))
    # Scores of up to a hundred are the same, to few units of what they make, in whichever order
    # they are summed.
    reach = xp.max(xp.abs(f), axis=1) + xp.max(xp.abs(g), axis=1)
    good = (apart <= charged) & (reach <= 100.0 * problem.eps[:, 0])
    if not (bool(xp.all(good)) and bool(xp.all(point.left > 0.0))):
        return None
    block = RowBlock(slice(0, a.shape[1]), kernel, a / point.left, f)
    return FirstPass(g, f, b * point.columns, [block], point.right)


def balanced_objective(engine: Engine, passes: Passes, alpha: Array, first: FirstPass) -> Objective:
    """Shrink columns that are too heavy, and fill what lacks by a product."""
    problem, f, g = engine.problem, first.f, first.g
    xp, a, b, dot = problem.home.xp, problem.a, problem.b, problem.home.xp.vecdot
    columns, ones = problem.over_b(first.masses), xp.ones_like(b)
    thin = 1.0 / xp.maximum(columns, ones)
    rows, phi = passes.second(first, thin)
    # Round-off may leave rows or columns above their weights: the plan is scaled down.
    columns = columns * thin
    excess = xp.maximum(xp.max(rows, axis=1), xp.max(columns, axis=1))
    weight = 1.0 / xp.maximum(excess, ones[:, 0])[:, None]
    kept, phi = b * (columns * weight), phi * weight
    rows = a * (rows * weight)
    left, right, total = _lacking(problem, rows, kept)
    with quiet():
        entropy = dot(rows, f) + dot(kept, g + problem.eps * xp.log(thin * weight))
        entropy = entropy - dot(alpha, phi)
        mixing = _mixing(problem, xp.sum(rows, axis=1), left, right, total)
        entropy = entropy + problem.eps[:, 0] * mixing
    phi = phi + engine.costs.product(left, right)
    dual = dot(a, f) + dot(b, g)
    return Objective(phi, a, b, entropy, dual, abs(entropy), thin, weight[:, 0], left, right)


def unbalanced_objective(
    engine: Engine, passes: Passes, alpha: Array, first: FirstPass
) -> Objective:
    """Take the plan of the potentials as it is; columns that have to be kept are scaled to b."""
    problem, f, g = engine.problem, first.f, first.g
    xp, dot, eps = problem.home.xp, problem.home.xp.vecdot, problem.eps[:, 0]
    thin, empty = xp.ones_like(first.masses), 0.0 * eps
    if problem.cols is None:
        columns = problem.over_b(first.masses)
        thin = 1.0 / xp.where(columns > 0.0, columns, thin)
        # An empty column cannot be scaled to its weight.
        lost = xp.any((problem.b > 0.0) & ~(first.masses > 0.0), axis=1)
        empty = xp.where(lost, xp.inf + empty, empty)
    ratio, phi = passes.second(first, thin)
    rows, cols = problem.a * ratio, first.masses * thin
    with quiet():
        entropy = dot(rows, f) + dot(cols, g + problem.eps * xp.log(thin)) - dot(alpha, phi)
        entropy = entropy - eps * (xp.sum(cols, axis=1) - problem.product_mass)
    price = problem.price(rows, cols)
    # The plan of the potentials themselves, whose rows are exact.
    over = eps * (xp.sum(problem.row_masses(f), axis=1) - problem.product_mass)
    size = abs(entropy) + price + abs(over)
    nothing = xp.zeros_like(problem.a), xp.zeros_like(problem.b)
    return Objective(
        phi, rows, cols, entropy + price + empty, problem.linear(f, g) - over, size,
        thin, xp.ones_like(eps), *nothing,
    )  # fmt: skip


def _interval(
    engine: Engine, passes: Passes, alpha: Array, first: FirstPass, objective: Objective
) -> Certificate:
    """Widen what a plan and its potentials say by what rounding may have done to it."""
    problem, adversary = engine.problem, engine.problem.adversary
    xp, phi, extra = problem.home.xp, objective.phi, objective.extra
    off = _margin(engine, passes, first, objective)
    doubt = passes.doubt(phi, objective.rows, objective.cols)
    mass = xp.sum(objective.cols, axis=1) + problem.product_mass
    doubt = doubt + 9.0 * passes.sums * mass[:, None] * problem.sizes
    upper = adversary.upper(phi, doubt) + extra + off
    dual, error = objective.dual - off, adversary.reward_error(alpha)
    if engine.costs.nonnegative:
        # With nonnegative costs the potentials f = g = 0 prove zero.
        dual = xp.maximum(dual, 0.0 * dual)
    lower = dual + adversary.reward(alpha) - error
    return Certificate(
        # The plan's objective is in the interval, even if what was summed for it is not.
        value=xp.minimum(xp.maximum(adversary.value(phi) + extra, lower), upper),
        upper=upper,
        lower=lower,
        slack=off + error,
        phi=phi,
        alpha=alpha,
        f=first.f,
        g=first.g,
        thin=objective.thin,
        weight=objective.weight,
        left=objective.left,
        right=objective.right,
    )


def _margin(engine: Engine, passes: Passes, first: FirstPass, objective: Objective) -> Array:
    """Bound what rounding may have done to either bound, (B,): see the head of this file."""
    problem, dot, eps = engine.problem, engine.problem.home.xp.vecdot, engine.problem.eps[:, 0]
    xp, off, unit = problem.home.xp, passes.rounding(), SCORE * passes.unit
    rows = xp.maximum(objective.rows, problem.a)
    cols = xp.maximum(xp.maximum(objective.cols, first.masses), problem.b)
    carried = dot(rows, xp.abs(first.f)) + 2.0 * dot(cols, xp.abs(first.g))
    mass = xp.sum(cols, axis=1) + problem.product_mass
    scores = unit * (carried + eps * (2.0 * mass + dot(cols, problem.light)))
    sums = 2.0 * passes.sums * (carried + eps * mass + objective.size)
    entries = xp.sum(rows * off.rows, axis=1) + xp.sum(cols * off.cols, axis=1)
    # The simplex is met to L units, and the objective is linear in alpha.
    share = off.relative + (engine.costs.shape[1] + 4.0) * unit_of(problem.home) + unit
    return scores + sums + entries + share * (carried + objective.size)


def proving(engine: Engine, f: Array, g: Array) -> tuple[Array, Array]:
    """Return potentials (B, n) and (B, m), or none where these prove less than nothing would.

    No cost is negative: zeros prove zero, which is what bounds fall back to.
    """
    problem = engine.problem
    if not engine.costs.nonnegative or problem.unbalanced:
        return f, g
    xp = problem.home.xp
    some = (xp.vecdot(problem.a, f) + xp.vecdot(problem.b, g) > 0.0)[:, None]
    if bool(xp.all(some)):
        return f, g
    return xp.where(some, f, xp.zeros_like(f)), xp.where(some, g, xp.zeros_like(g))


def _lacking(problem: EntropicProblem, rows: Array, kept: Array) -> tuple[Array, Array, Array]:
    """Return u, v / t and t.

    Both sides lack the same but for rounding: the one that seems to lack less is given what is
    missing in proportion to its weights, so that every marginal is right to some units of itself.
    """
    xp, a, b = problem.home.xp, problem.a, problem.b
    lack_a, lack_b = xp.maximum(a - rows, 0.0 * a), xp.maximum(b - kept, 0.0 * b)
    sums = xp.sum(lack_a, axis=1), xp.sum(lack_b, axis=1)
    total = xp.maximum(*sums)
    lack_a = lack_a + (total - sums[0])[:, None] * a
    lack_b = lack_b + (total - sums[1])[:, None] * b
    share = xp.where(total > 0.0, total, xp.ones_like(total))[:, None]
    return lack_a, lack_b / share, total


def _mixing(
    problem: EntropicProblem, mass: Array, left: Array, right: Array, total: Array
) -> Array:
    """Return what the entropy of the sum adds to that of the plan, in units of eps."""
    xp, tiny = problem.home.xp, float(problem.home.xp.finfo(problem.home.dtype).smallest_normal)
    result = -mass * xp.log(mass)
    share = xp.where(total > 0.0, total, xp.ones_like(total))[:, None]
    for part, full in ((left / share, problem.a), (right, problem.b)):
        surprise = xp.log(at_least(xp, part / at_least(xp, full, tiny), tiny))
        result = result + total * xp.vecdot(part, surprise)
    return result
