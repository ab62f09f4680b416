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

Rounding. Let entries of the mixed cost be off by :math:`\rho M_{ij} + p_i + q_j`, rho being zero
where a cost may be negative. What goes with a point can be taken off its potential, and the
optimum of :math:`(1 - \rho) M` is no less than :math:`1 - \rho` times that of M, since KL is not
negative; so the lower bound pays :math:`\langle a, p \rangle + \langle b, q \rangle` and that
share of itself, and the upper bound the same in each group, because its plan has the marginals a
and b. A score :math:`s_{ij} = (g_j - M_{ij}) / \varepsilon + \log b_j` is computed to some units of
:math:`(|g_j| + |M_{ij}|) / \varepsilon + |\log b_j|`. With :math:`M = f \oplus g - \varepsilon t`,
t being the logarithm of the plan's density, that is at most so many units of

.. math:: |f_i| + 2 |g_j| + \varepsilon\,(|\log b_j| + |t_{ij}|) ,

and what goes with a point is taken off its potential again: the lower bound pays for it what the
point weighs, however far away and badly known it is. What goes with t is a share of an exponent,
:math:`\sum_{ij} \pi_{ij} |t_{ij}| \le \mathrm{KL} + 1`. The entropy of the plan is a sum over it,
and pays the same: for its scores, and for entries of the mixed cost, which it is taken from as
:math:`\langle \alpha, \phi \rangle`.

Where marginals need not be kept, the lower bound is the dual value of g and of the best f for it,

.. math::
    -\tau_a \langle a, e^{-f / \tau_a} - 1 \rangle - \tau_b \langle b, e^{-g / \tau_b} - 1 \rangle
    - \varepsilon\,(|\Pi| - |a| |b|) + r(\alpha) \;\le\; \text{optimum} ,

and the upper bound the objective of their plan itself, for any plan is feasible. Its rows are
:math:`x_i = a_i e^{-f_i / \tau_a}`, its columns c are summed, and

.. math::
    \varepsilon\,\mathrm{KL}(\Pi | a b^\top) = \langle x, f \rangle + \langle c, g \rangle
    - \langle \alpha, \phi \rangle - \varepsilon\,(|\Pi| - |a| |b|) .

Columns that have to be kept are: those of the plan are scaled to b, and rows pay for what that
moves. Rows that have to be are, whatever rounding does. Rounding is bounded likewise, each point
paying by what it carries; the derivative of a price by what a point keeps is its potential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from frot._base.arrays import at_least, quiet
from frot.costs.geometry import unit_of
from frot.solvers.sinkhorn.engine import Engine, FirstPass, Passes, Point
from frot.solvers.sinkhorn.kernel import RowBlock
from frot.solvers.sinkhorn.terms import BatchTerms

# Units in the last place that a score takes on its way: some operations, each off by one.
SCORE = 6.0
# A potential is coarse where its last places are this share of eps; so often such are lowered.
COARSE, LOWERINGS = 1e-2, 3
# Scores of up to this are the same, to few units of what they make, in whichever order they are
# summed.
LARGEST_SCORE = 100.0


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds of a batch, and the plans and potentials that prove them, in double precision.

    The plan of the upper bound is `weight` times the one with exact rows that g makes, its columns
    times `thin`, plus the product of `left` and `right`. Bounds are (B,), and so is `value`,
    the objective of the plan with its entropy bounded by that of its parts.
    """

    value: Any
    upper: Any
    lower: Any
    slack: Any
    phi: Any
    alpha: Any
    f: Any
    g: Any
    thin: Any
    weight: Any
    left: Any
    right: Any


def certify(engine: Engine, alpha: Any, g: Any, at: Point | None = None) -> Certificate:
    """Prove an interval from weights (B, L) and potentials of the columns (B, m).

    Where `at` is the point of a search that these are of, its kernel serves the proof if it can.
    """
    precise = engine.prover
    home = precise.terms.home
    # Only weights that the adversary may choose prove anything.
    given, alpha = alpha, precise.terms.project(home.xp.astype(alpha, home.dtype))
    g = home.xp.astype(g, home.dtype)
    # A search that ran out of range proves no less than one that has not begun.
    g = home.xp.where(home.xp.isfinite(g), g, home.xp.zeros_like(g))
    if precise.terms.soft:
        return _prove_soft(precise, alpha, g)
    if at is not None and not bool(home.xp.all(alpha == given)):
        at = None
    return _prove(precise, alpha, g, at)


def settled_pass(terms: BatchTerms, passes: Passes, g: Any) -> FirstPass:
    """Form the plan of g, lowered where it cannot be told to a fraction of eps."""
    if terms.soft:
        # What f and g share is no constant: it decides how much mass there is.
        return passes.first(g)
    # The constant that f and g share costs digits: on average, g is zero.
    g = g - terms.home.xp.vecdot(terms.b, g)[:, None]
    first = passes.first(g)
    for _ in range(LOWERINGS):
        lowered = _lowered(terms, passes.unit, g, first.masses)
        if lowered is None:
            break
        g = lowered
        first = passes.first(g)
    return first


def kept_pass(terms: BatchTerms, at: Point, unit: float) -> FirstPass | None:
    r"""Take the plan from the kernel that a search in double precision ended with.

    That saves forming it. Rounding of what the search made of
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
    home = terms.home
    if at.kernel is None or terms.soft or terms.uneven or at.kernel.dtype != home.xp.float64:
        return None
    xp, a, b = home.xp, terms.a, terms.b
    mean = xp.vecdot(b, at.g)
    f, g = at.f + mean[:, None], at.g - mean[:, None]
    charged = xp.vecdot(a, xp.abs(f)) + xp.vecdot(b, xp.abs(g))
    apart = xp.abs(mean) + xp.vecdot(b, xp.abs(at.base))
    good = bool(xp.all(apart <= charged)) and bool(xp.all(at.left > 0.0))
    reach = xp.max(xp.abs(f), axis=1) + xp.max(xp.abs(g), axis=1)
    good = good and bool(xp.all(reach <= LARGEST_SCORE * terms.eps[:, 0]))
    if not good or bool(xp.any(_coarse(terms, unit, g))):
        return None
    block = RowBlock(slice(0, a.shape[1]), at.kernel, a / at.left, f)
    return FirstPass(g, f, b * at.columns, [block], at.right)


def _coarse(terms: BatchTerms, unit: float, g: Any) -> Any:
    """Tell columns whose potential has last places that are no small share of eps."""
    return 4.0 * unit * terms.home.xp.abs(g) > COARSE * terms.eps


def _lowered(terms: BatchTerms, unit: float, g: Any, masses: Any) -> Any:
    """Return g with potentials lowered that are too large for their last place to be less than eps.

    The columns of such, far points of next to no weight, get all or nothing of what they should,
    and too much would take rows from the others. None where no column does.
    """
    xp, coarse = terms.home.xp, _coarse(terms, unit, g)
    if not bool(xp.any(coarse)):
        return None
    place = 4.0 * unit * xp.abs(g)
    columns = terms.over_b(masses)
    coarse = coarse & (columns > 1.0)
    if not bool(xp.any(coarse)):
        return None
    with quiet():
        less = g - terms.eps * xp.log(xp.where(coarse, columns, xp.ones_like(columns))) - place
    return xp.where(coarse, less, g)


def _prove(engine: Engine, alpha: Any, g: Any, at: Point | None) -> Certificate:
    terms, geometry = engine.terms, engine.geometry
    xp, a, b, eps = terms.home.xp, terms.a, terms.b, terms.eps[:, 0]
    dot = xp.vecdot
    passes = engine.passes(alpha)
    first = None if at is None else kept_pass(terms, at, passes.unit)
    if first is None:
        first = settled_pass(terms, passes, g)
    f, g, columns, one = first.f, first.g, terms.over_b(first.masses), xp.ones_like(b)
    thin = 1.0 / xp.maximum(columns, one)
    rows, phi = passes.second(first, thin)
    # Rounding may leave rows or columns too heavy still: all shrink alike.
    columns = columns * thin
    excess = xp.maximum(xp.max(rows, axis=1), xp.max(columns, axis=1))
    weight = 1.0 / xp.maximum(excess, one[:, 0])[:, None]
    kept, phi = b * (columns * weight), phi * weight
    rows = a * (rows * weight)
    left, right, total = _lacking(terms, rows, kept)
    whole = phi + geometry.product(left, right)
    with quiet():
        entropy = dot(rows, f) - dot(alpha, phi)
        entropy = entropy + dot(kept, g + terms.eps * xp.log(thin * weight))
        entropy = entropy + eps * _mixing(terms, xp.sum(rows, axis=1), left, right, total)
    dual = dot(a, f) + dot(b, g)
    margin = _margins(terms, passes, geometry.shape[1], first.masses)
    scored = margin.scores(terms, f, g, entropy)
    off = scored + margin.costs + margin.share * xp.abs(dual)
    doubt = passes.inner_error(whole, a, b) + margin.moved * terms.sizes
    worst = terms.worst(whole + doubt) + terms.worst_error(whole)
    reward = terms.reward(alpha) - terms.reward_error(alpha)
    # The plan was made of entries of the mixed cost, and its entropy is taken from group costs.
    apart = margin.costs + margin.share * xp.abs(dot(alpha, phi))
    upper = worst + entropy + scored + apart
    lower = _at_least(engine, dual - off) + reward
    return Certificate(
        # The plan's objective is in the interval, even if what was summed for it is not.
        value=xp.minimum(xp.maximum(terms.worst(whole) + entropy, lower), upper),
        upper=upper,
        lower=lower,
        slack=off + terms.reward_error(alpha),
        phi=whole,
        alpha=alpha,
        f=f,
        g=g,
        thin=thin,
        weight=weight[:, 0],
        left=left,
        right=right,
    )


def _prove_soft(engine: Engine, alpha: Any, g: Any) -> Certificate:
    """Prove an interval where mass may go: nothing is put into the plan of the potentials."""
    terms, geometry = engine.terms, engine.geometry
    xp, dot, eps = terms.home.xp, terms.home.xp.vecdot, terms.eps[:, 0]
    passes = engine.passes(alpha)
    first = settled_pass(terms, passes, g)
    f, g, cols = first.f, first.g, first.masses
    thin = xp.ones_like(cols)
    if terms.cols is None:
        columns = terms.over_b(cols)
        thin = 1.0 / xp.where(columns > 0.0, columns, thin)
    ratio, phi = passes.second(first, thin)
    rows, kept, moved_rows = terms.row_masses(f), cols * thin, terms.a * ratio
    mass = xp.sum(kept, axis=1)
    with quiet():
        entropy = dot(moved_rows, f) + dot(kept, g + terms.eps * xp.log(thin)) - dot(alpha, phi)
        entropy = entropy - eps * (mass - terms.product_mass)
    price = terms.price(moved_rows, kept)
    linear, over = terms.linear(f, g), eps * (xp.sum(rows, axis=1) - terms.product_mass)
    off = _margin(engine, alpha, (moved_rows, kept), (f, g), abs(entropy) + price + abs(over))
    sums = _sums(engine)
    doubt = geometry.inner_error(phi, moved_rows, kept)
    doubt = doubt + 9.0 * sums * (mass + terms.product_mass)[:, None] * terms.sizes
    worst = terms.worst(phi + doubt) + terms.worst_error(phi)
    reward = terms.reward(alpha) - terms.reward_error(alpha)
    upper, lower = worst + entropy + price + off, _at_least(engine, linear - over - off) + reward
    if terms.cols is None:
        # A column that got nothing cannot be scaled to what it has to keep.
        empty = xp.any((terms.b > 0.0) & ~(cols > 0.0), axis=1)
        upper = xp.where(empty, 0.0 * upper + xp.inf, upper)
    return Certificate(
        # The plan's objective is in the interval, even if what was summed for it is not.
        value=xp.minimum(xp.maximum(terms.worst(phi) + entropy + price, lower), upper),
        upper=upper,
        lower=lower,
        slack=off + terms.reward_error(alpha),
        phi=phi,
        alpha=alpha,
        f=f,
        g=g,
        thin=thin,
        weight=xp.ones_like(upper),
        left=xp.zeros_like(terms.a),
        right=xp.zeros_like(terms.b),
    )


def certify_product(engine: Engine) -> Certificate:
    r"""Prove an interval without looking at single costs: for whoever has no time.

    The product :math:`a b^\top` is a plan without entropy, and no plan pays less in a group than
    the geometry's `least`, which potentials without a look at single costs prove too.
    """
    engine = engine.double()
    terms, geometry = engine.terms, engine.geometry
    xp, a, b = terms.home.xp, terms.a, terms.b
    if terms.soft and geometry.nonnegative:
        return _soft_product(engine)
    if terms.soft:
        # Any amount of mass may be created, and only costs tell how much.
        return _prove_soft(engine, terms.project(terms.prior + 0.0 * terms.sizes), xp.zeros_like(b))
    phi, below = geometry.product(a, b), geometry.least(a, b)
    doubt = geometry.inner_error(phi, a, b) + 16.0 * unit_of(terms.home) * xp.abs(phi)
    value, margin = terms.worst(phi), terms.worst_error(phi)
    upper, lower = terms.worst(phi + doubt) + margin, terms.worst(below) - margin
    alpha = terms.answer(below)
    f, g = geometry.least_potentials(alpha, a, b)
    return Certificate(
        value=value, upper=upper, lower=lower, slack=margin, phi=phi, alpha=alpha, f=f, g=g,
        thin=xp.ones_like(b), weight=xp.zeros_like(value), left=a, right=b,
    )  # fmt: skip


def _soft_product(engine: Engine) -> Certificate:
    r"""Prove an interval without looking at single costs, none of which is negative.

    A multiple c of the product of the weights is a plan, whose divergences are those of numbers;
    potentials of zero prove what the adversary is paid.
    """
    terms, geometry = engine.terms, engine.geometry
    xp, a, b, eps = terms.home.xp, terms.a, terms.b, terms.eps[:, 0]
    mass_a, mass_b = xp.sum(a, axis=1), xp.sum(b, axis=1)
    share = (mass_a * mass_b) ** -0.5
    if terms.rows is None:
        share = 1.0 / mass_b
    if terms.cols is None:
        share = 1.0 / mass_a
    left = a * share[:, None]
    phi = geometry.product(left, b)
    rows, cols = a * (share * mass_b)[:, None], b * (share * mass_a)[:, None]
    entropy = eps * mass_a * mass_b * (share * xp.log(share) - share + 1.0)
    price, sums = terms.price(rows, cols), _sums(engine)
    doubt = geometry.inner_error(phi, rows, cols) + 4.0 * sums * xp.abs(phi)
    size = entropy + price + eps * mass_a * mass_b * (1.0 + share)
    for side, mass in ((terms.rows, mass_a), (terms.cols, mass_b)):
        size = size if side is None else size + side.tau[:, 0] * mass
    worst, off = terms.worst(phi + doubt) + terms.worst_error(phi), 8.0 * sums * size
    lower = terms.worst(0.0 * phi) - terms.worst_error(0.0 * phi)
    f, g = 0.0 * a, 0.0 * b
    return Certificate(
        value=xp.maximum(terms.worst(phi) + entropy + price, lower),
        upper=worst + entropy + price + off, lower=lower, slack=terms.worst_error(0.0 * phi),
        phi=phi, alpha=terms.answer(0.0 * phi), f=f, g=g, thin=xp.ones_like(b),
        weight=0.0 * share, left=left, right=b,
    )  # fmt: skip


def proving(engine: Engine, f: Any, g: Any) -> tuple[Any, Any]:
    """Return potentials (B, n) and (B, m), or none where these prove less than nothing would.

    No cost is negative: zeros prove zero, which is what bounds fall back to.
    """
    terms = engine.terms
    if not engine.geometry.nonnegative or terms.soft:
        return f, g
    xp = terms.home.xp
    some = (xp.vecdot(terms.a, f) + xp.vecdot(terms.b, g) > 0.0)[:, None]
    if bool(xp.all(some)):
        return f, g
    return xp.where(some, f, xp.zeros_like(f)), xp.where(some, g, xp.zeros_like(g))


def _lacking(terms: BatchTerms, rows: Any, kept: Any) -> tuple[Any, Any, Any]:
    """Return u, v / t and t.

    Both sides lack the same but for rounding: the one that seems to lack less is given what is
    missing in proportion to its weights, so that every marginal is right to some units of itself.
    """
    xp, a, b = terms.home.xp, terms.a, terms.b
    lack_a, lack_b = xp.maximum(a - rows, 0.0 * a), xp.maximum(b - kept, 0.0 * b)
    sums = xp.sum(lack_a, axis=1), xp.sum(lack_b, axis=1)
    total = xp.maximum(*sums)
    lack_a = lack_a + (total - sums[0])[:, None] * a
    lack_b = lack_b + (total - sums[1])[:, None] * b
    share = xp.where(total > 0.0, total, xp.ones_like(total))[:, None]
    return lack_a, lack_b / share, total


def _mixing(terms: BatchTerms, mass: Any, left: Any, right: Any, total: Any) -> Any:
    """Return what the entropy of the sum adds to that of the plan, in units of eps."""
    xp, tiny = terms.home.xp, float(terms.home.xp.finfo(terms.home.dtype).smallest_normal)
    found = -mass * xp.log(mass)
    share = xp.where(total > 0.0, total, xp.ones_like(total))[:, None]
    for part, full in ((left / share, terms.a), (right, terms.b)):
        surprise = xp.log(at_least(xp, part / at_least(xp, full, tiny), tiny))
        found = found + total * xp.vecdot(part, surprise)
    return found


class _Margins(NamedTuple):
    """What rounding may have done: see the head of this file.

    `unit` is what scores are off by, relative to their parts, `costs` what the costs' own errors do
    to a dual value, `share` the same relative to it; `sums` is what a sum
    over points is off by, `moved` the mass that marginals may be, `masses` what columns weigh at
    most and `light` the mean size of their weights' logarithms.
    """

    unit: float
    costs: Any
    share: Any
    sums: float
    moved: float
    masses: Any
    light: Any

    def scores(self, terms: BatchTerms, f: Any, g: Any, entropy: Any) -> Any:
        """Bound the rounding of f, and of the plan's entropy, by its potentials, (B,)."""
        xp, eps, unit = terms.home.xp, terms.eps[:, 0], SCORE * self.unit
        rows, cols = xp.vecdot(terms.a, xp.abs(f)), xp.vecdot(self.masses, xp.abs(g))
        off = unit * (abs(entropy) + eps * (2.0 + 2.0 * self.light) + rows + 2.0 * cols)
        return off + eps * (self.sums + self.moved) + self.sums * (rows + cols)


def _margins(terms: BatchTerms, passes: Passes, count: int, masses: Any) -> _Margins:
    xp = terms.home.xp
    unit, off, sums = passes.unit, passes.mix_error(), passes.sums
    heavy = xp.maximum(masses, terms.b)
    return _Margins(
        unit=unit,
        costs=xp.vecdot(terms.a, off.rows) + xp.vecdot(terms.b, off.cols),
        # The simplex is met to L units, and the objective is linear in alpha.
        share=off.relative + SCORE * unit + (count + 4.0) * unit_of(terms.home),
        sums=sums,
        # A plan whose marginals are off by k units is near one whose are not: nine times k of a b^T
        # make up for what it lacks.
        moved=9.0 * sums,
        masses=heavy,
        light=xp.vecdot(heavy, terms.light),
    )


def _sums(engine: Engine) -> float:
    """What sums over points are off by: k terms err by k / 2 units at most, in whatever order."""
    _, _, n, m = engine.geometry.shape
    return (8.0 + 0.5 * (n + m)) * unit_of(engine.terms.home)


def _margin(
    engine: Engine, alpha: Any, masses: tuple[Any, Any], potentials: tuple[Any, Any], size: Any
) -> Any:
    """Bound what rounding may have done to a value, (B,), with summands of some `size` besides.

    Points pay by the more of what they weigh and of what is kept of them.
    """
    terms, geometry = engine.terms, engine.geometry
    xp, unit, (f, g) = terms.home.xp, unit_of(terms.home), potentials
    rows, cols = xp.maximum(masses[0], terms.a), xp.maximum(masses[1], terms.b)
    off, sums = geometry.mix_error(alpha), _sums(engine)
    carried = xp.vecdot(rows, xp.abs(f)) + 2.0 * xp.vecdot(cols, xp.abs(g))
    mass = xp.sum(cols, axis=1) + terms.product_mass
    light = xp.vecdot(cols, terms.light)
    found = SCORE * unit * (carried + terms.eps[:, 0] * (2.0 * mass + light))
    found = found + 2.0 * sums * (carried + terms.eps[:, 0] * mass + size)
    costs = xp.vecdot(rows, off.rows + 0.0 * rows) + xp.vecdot(cols, off.cols + 0.0 * cols)
    # Mixed costs of what is carried are no more than its potentials and its entropy.
    share = off.relative + (geometry.shape[1] + 4.0 + SCORE) * unit
    return found + costs + share * (carried + size)


def _at_least(engine: Engine, dual: Any) -> Any:
    """Where no cost is negative, potentials of zero prove zero."""
    if not engine.geometry.nonnegative:
        return dual
    return engine.terms.home.xp.maximum(dual, 0.0 * dual)
