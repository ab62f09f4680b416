r"""What weights and potentials prove, in double precision, whatever precision found them.

Upper bound: the plan's columns are shrunk to b where they are too heavy, and what then lacks in
rows (u) and columns (v), a mass t, is added as :math:`u v^\top / t`. The entropy of the sum is at
most that of its parts, by convexity:

.. math::
    \mathrm{KL}\big(\Pi + \tfrac{u v^\top}{t} \,\big|\, a b^\top\big) \le
    \langle \Pi, \log \tfrac{\Pi}{a b^\top} \rangle - (1 - t) \log (1 - t)
    + t\, \mathrm{KL}\big(\tfrac{u}{t} | a\big) + t\, \mathrm{KL}\big(\tfrac{v}{t} | b\big) .

Lower bound: the dual value, which any potentials and weights have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from frot._arrays import quiet
from frot._entropic._engine import Engine, Point
from frot._entropic._forming import measure

__all__ = ["Certificate", "certify"]


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds of a batch, and the plans and potentials that prove them, in double precision.

    The plan of the upper bound is `weight` times that of `alpha`, `f` and `g` plus the product of
    `left` and `right`; the lower bound without eps is that of `plain_f` and `plain_g`. Bounds have
    shape (B,).
    """

    value: Any
    upper: Any
    lower: Any
    plain_upper: Any
    plain_lower: Any
    slack: Any
    phi: Any
    alpha: Any
    f: Any
    g: Any
    dual_g: Any
    weight: Any
    left: Any
    right: Any
    plain_f: Any
    plain_g: Any


def certify(engine: Engine, at: Point) -> Certificate:
    """Prove an interval from a point of the ascent."""
    precise = engine.double()
    if precise is not engine:
        home = precise.terms.home
        alpha = home.xp.astype(at.alpha, home.dtype)
        alpha = alpha / home.xp.sum(alpha, axis=1, keepdims=True)
        at = precise.sweep(alpha, home.xp.astype(at.g, home.dtype), float("inf"))
    terms, geometry = precise.terms, precise.geometry
    xp = terms.home.xp
    eps, a, b = terms.eps[:, 0], terms.a, terms.b
    unit = float(xp.finfo(terms.home.dtype).eps)
    tiny = float(xp.finfo(terms.home.dtype).smallest_normal)
    with quiet():
        g = at.g - terms.eps * xp.log(xp.clip(at.columns, 1.0, None))
    rows, masses, phi = measure(geometry, terms, at.alpha, at.f, g)
    # Rounding in the exponents may leave rows or columns too heavy still: all shrink alike.
    safe = xp.where(b > 0.0, b, xp.ones_like(b))
    excess = xp.maximum(xp.max(rows, axis=1), xp.max(masses / safe, axis=1))
    weight = 1.0 / xp.clip(excess, 1.0, None)[:, None]
    rows, kept, phi = rows * weight, masses * weight, phi * weight
    lack_a, lack_b = xp.clip(a - a * rows, 0.0, None), xp.clip(b - kept, 0.0, None)
    # Rounding leaves next to nothing on one side and nothing on the other: then nothing lacks.
    total = xp.minimum(xp.sum(lack_a, axis=1), xp.sum(lack_b, axis=1))
    some = total > 4.0 * unit
    share = xp.where(some, total, xp.ones_like(total))[:, None]
    keep = xp.astype(some, terms.home.dtype)[:, None]
    lack_a, lack_b = lack_a * keep, lack_b * keep
    right = lack_b / share
    whole = phi + geometry.product(lack_a, right)
    linear = xp.sum(a * rows * at.f, axis=1) + xp.sum(kept * g, axis=1)
    entropy = linear - xp.sum(at.alpha * phi, axis=1)
    mass = xp.sum(a * rows, axis=1)
    entropy = entropy + eps * mass * (xp.log(weight[:, 0]) - xp.log(mass))
    for lack, full in ((lack_a, a), (right * share, b)):
        ratio = lack / share / xp.clip(full, tiny, None)
        entropy = entropy + eps * xp.sum(lack * xp.log(xp.clip(ratio, tiny, None)), axis=1)
    value = terms.worst(whole) + entropy
    # Costs may be off by some doubt each; the objective grows with every one of them.
    worst = terms.worst(whole + geometry.inner_error(whole))
    reach = xp.max(xp.abs(at.f), axis=1) + xp.max(xp.abs(at.g), axis=1) + xp.abs(at.dual) + eps
    # Where entries are off the plan of the potentials is, too, by as much over eps.
    off = geometry.mix_error(at.alpha) + 16.0 * unit * reach
    spread = 8.0 * unit * (xp.abs(value) + terms.eta[:, 0] * (1.0 + float(whole.shape[1]) ** 0.5))
    plain_f, plain_g = precise.transforms(at)
    plain = xp.sum(a * plain_f, axis=1) + xp.sum(b * plain_g, axis=1) + terms.reward(at.alpha)
    slack = off + spread
    return Certificate(
        value=value,
        upper=worst + entropy + slack,
        lower=at.dual - slack,
        plain_upper=worst + spread,
        plain_lower=plain - slack,
        slack=slack,
        phi=whole,
        alpha=at.alpha,
        f=at.f,
        g=g,
        # Columns without weight are not swept: any potential of theirs proves the same.
        dual_g=at.g if terms.holes is None else xp.where(b > 0.0, at.g, plain_g),
        weight=weight[:, 0],
        left=lack_a,
        right=right,
        plain_f=plain_f,
        plain_g=plain_g,
    )
