r"""What weights and potentials prove where marginals need not be kept, in double precision.

Lower bound: the dual value of g and of the best f for it,

.. math::
    -\tau_a \langle a, e^{-f / \tau_a} - 1 \rangle - \tau_b \langle b, e^{-g / \tau_b} - 1 \rangle
    - \varepsilon\,(|\Pi| - |a| |b|) + r(\alpha) \;\le\; \text{optimum} .

Upper bound: the objective of their plan itself, for any plan is feasible. Its rows are
:math:`x_i = a_i e^{-f_i / \tau_a}`, its columns c are summed, and

.. math::
    \varepsilon\,\mathrm{KL}(\Pi | a b^\top) = \langle x, f \rangle + \langle c, g \rangle
    - \langle \alpha, \phi \rangle - \varepsilon\,(|\Pi| - |a| |b|) .

Columns that have to be kept are: those of the plan are scaled to b, and rows pay for what that
moves. Rows that have to be are, whatever rounding does.

Rounding is bounded as for ordinary problems, each point paying by what it carries: scores are off
by units of :math:`|f_i| + 2 |g_j|` and of eps, entries of the mixed cost by what the geometry says;
the derivative of a price by what a point keeps is its potential.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from frot._base.arrays import quiet
from frot.costs.geometry import unit_of
from frot.solvers.sinkhorn._passes import SCORE, settled_pass
from frot.solvers.sinkhorn.engine import Engine
from frot.solvers.sinkhorn.terms import Terms

__all__ = ["SoftProof", "prove_soft", "soft_product"]


class SoftProof(NamedTuple):
    """Bounds, (B,) each, and the plan and potentials that prove them; as in `Certificate`."""

    value: Any
    upper: Any
    lower: Any
    plain_upper: Any
    plain_lower: Any
    slack: Any
    phi: Any
    f: Any
    g: Any
    thin: Any
    plain_f: Any
    plain_g: Any


def prove_soft(engine: Engine, alpha: Any, g: Any) -> SoftProof:
    """Prove an interval from weights (B, L) and potentials of the columns (B, m)."""
    terms, geometry = engine.terms, engine.geometry
    xp, dot, eps = terms.home.xp, terms.home.xp.vecdot, terms.eps[:, 0]
    passes = engine.passes(alpha)
    # A search that ran out of range proves no less than one that has not begun.
    g = xp.where(xp.isfinite(g), g, xp.zeros_like(g))
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
    plain_f, plain_g, plain = _plain(terms, first.plain_f, first.plain_g)
    heavy = terms.row_masses(plain_f), terms.col_masses(plain_g)
    plain_off = 3.0 * _margin(engine, alpha, heavy, (plain_f, plain_g), 0.0 * plain)
    upper, lower = worst + entropy + price + off, _at_least(engine, linear - over - off) + reward
    if terms.cols is None:
        # A column that got nothing cannot be scaled to what it has to keep.
        empty = xp.any((terms.b > 0.0) & ~(cols > 0.0), axis=1)
        upper, worst = (xp.where(empty, 0.0 * part + xp.inf, part) for part in (upper, worst))
    return SoftProof(
        # The plan's objective is in the interval, even if what was summed for it is not.
        value=xp.minimum(xp.maximum(terms.worst(phi) + entropy + price, lower), upper),
        upper=upper,
        lower=lower,
        plain_upper=worst + price + off,
        plain_lower=_at_least(engine, plain - plain_off) + reward,
        slack=off + terms.reward_error(alpha),
        phi=phi,
        f=f,
        g=g,
        thin=thin,
        plain_f=plain_f,
        plain_g=plain_g,
    )


def soft_product(engine: Engine) -> tuple[SoftProof, dict[str, Any]]:
    r"""Prove an interval without looking at single costs, none of which is negative.

    A multiple c of the product of the weights is a plan, whose divergences are those of numbers;
    potentials of zero prove what the adversary is paid. Returns what goes into a `Certificate`
    besides: the weights of the groups, and the plan as a product.
    """
    terms, geometry = engine.terms, engine.geometry
    xp, a, b, eps = terms.home.xp, terms.a, terms.b, terms.eps[:, 0]
    mass_a, mass_b = xp.sum(a, axis=1), xp.sum(b, axis=1)
    share = (mass_a * mass_b) ** -0.5
    if terms.rows is None:
        share = 1.0 / mass_b
    if terms.cols is None:
        share = 1.0 / mass_a
    left, nothing = a * share[:, None], 0.0 * share
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
    proof = SoftProof(
        value=xp.maximum(terms.worst(phi) + entropy + price, lower),
        upper=worst + entropy + price + off,
        lower=lower,
        plain_upper=worst + price + off,
        plain_lower=lower,
        slack=terms.worst_error(0.0 * phi),
        phi=phi,
        f=f,
        g=g,
        thin=xp.ones_like(b),
        plain_f=f,
        plain_g=g,
    )
    known = {"alpha": terms.answer(0.0 * phi), "weight": nothing, "left": left, "right": b}
    return proof, known


def _plain(terms: Terms, f: Any, g: Any) -> tuple[Any, Any, Any]:
    """Shift potentials without eps to where they prove most; return them and their dual value."""
    by = terms.shift(f, g)
    f, g = f + by, g - by
    return f, g, terms.linear(f, g)


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
    """No cost is negative: potentials of zero prove zero."""
    if not engine.geometry.nonnegative:
        return dual
    return engine.terms.home.xp.maximum(dual, 0.0 * dual)
