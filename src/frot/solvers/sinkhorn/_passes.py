"""Passes over the plan that a proof needs, and what rounding they leave."""

from __future__ import annotations

from typing import Any

from frot._base.arrays import quiet
from frot.costs.geometry import Geometry, unit_of
from frot.costs.protocol import Rounding
from frot.solvers.sinkhorn.engine import FirstPass, Passes, Point
from frot.solvers.sinkhorn.kernel import (
    Block,
    Scores,
    form_rows,
    score_rows,
    scores_at,
    softmax_below,
    softmax_block,
)
from frot.solvers.sinkhorn.terms import Terms

__all__ = ["SCORE", "BlockPasses", "kept_pass", "settled_pass"]

# Units in the last place that a score takes on its way: some operations, each off by one.
SCORE = 6.0
# A potential is coarse where its last places are this share of eps; so often such are lowered.
COARSE, LOWERINGS = 1e-2, 3


def settled_pass(terms: Terms, passes: Passes, g: Any) -> FirstPass:
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


def kept_pass(terms: Terms, at: Point, unit: float) -> FirstPass | None:
    r"""Take the plan from the kernel that a search in double precision ended with.

    That saves forming it; minima of reduced costs are left out. Rounding of what the search made of
    its kernel K, at a base :math:`g^0` of potentials, is within what a proof is charged for scores:
    six units of :math:`|f_i| + 2 |g_j| + \varepsilon |t_{ij}|`, and eight or more of the
    potentials besides. Scores of K are off by two operations on costs, as ever;
    :math:`f = f^0 + \varepsilon \log(x / a)` by four on :math:`f^0`, which on average is no more
    than costs of the plan are, or squares that these are charged for, and by three on itself; g by
    as many, and both by one for the constant that is taken off them. All of it is relative to the
    potentials as the search had them, so that these must be no larger than what is charged: no
    constant far apart, and no base.

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
    if not good or bool(xp.any(_coarse(terms, unit, g))):
        return None
    block = Block(slice(0, a.shape[1]), at.kernel, a / at.left, f)
    return FirstPass(g, f, b * at.columns, None, None, [block], at.right)


def _coarse(terms: Terms, unit: float, g: Any) -> Any:
    """Tell columns whose potential has last places that are no small share of eps."""
    return 4.0 * unit * terms.home.xp.abs(g) > COARSE * terms.eps


def _lowered(terms: Terms, unit: float, g: Any, masses: Any) -> Any:
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


class BlockPasses:
    """Passes over blocks of rows of the plan at the weights alpha, (B, L).

    The blocks of the first are kept for the second where there is room.
    """

    def __init__(
        self, geometry: Geometry, terms: Terms, alpha: Any, parts: list[slice], keeps: bool
    ) -> None:
        self.terms, self.alpha, self.parts, self.keeps = terms, alpha, parts, keeps
        self.geometry = geometry
        self.scores: Scores = scores_at(geometry, terms, alpha)

    @property
    def unit(self) -> float:
        """What a number is off by, of itself."""
        return unit_of(self.terms.home)

    @property
    def sums(self) -> float:
        """What a sum over points is off by: k terms err by k / 2 units at most, in any order."""
        _, _, n, m = self.geometry.shape
        return (8.0 + 0.5 * (n + m)) * self.unit

    def mix_error(self) -> Rounding:
        """Bound the rounding of the mixed costs."""
        return self.geometry.mix_error(self.alpha)

    def inner_error(self, phi: Any, u: Any, v: Any) -> Any:
        """Bound the rounding of group costs, (B, L), of a plan with marginals u and v."""
        return self.geometry.inner_error(phi, u, v)

    def first(self, g: Any) -> FirstPass:
        """Form the plan once, and take the minima of the reduced costs on the way."""
        scores, terms = self.scores, self.terms
        xp, kept, potentials, plain = terms.home.xp, [], [], []
        masses, most = 0.0, None
        for part, block in score_rows(scores, terms, g, self.parts):
            if terms.even:
                top = xp.max(block, axis=2)
                block -= top[:, :, None]
                best = xp.max(block, axis=1)
                formed = softmax_below(scores, terms, part, block, top)
            else:
                best, top = _minima(scores, terms, g, part, block)
                formed = softmax_block(scores, terms, part, block)
            plain.append(terms.eps * (scores.offset(part) - top))
            most = best if most is None else xp.maximum(most, best)
            potentials.append(formed.f)
            left = terms.a[:, part] / formed.total
            masses = masses + (left[:, None, :] @ formed.kernel)[:, 0, :]
            if self.keeps:
                kept.append(formed)
        f, plain_f = (xp.concat(each, axis=1) for each in (potentials, plain))
        return FirstPass(g, f, masses, plain_f, g - terms.eps * most, kept)

    def second(self, first: FirstPass, thin: Any) -> tuple[Any, Any]:
        """Return row sums over a and group costs of the plan with its columns times `thin`."""
        terms, scores = self.terms, self.scores
        sums, partials, right = [], 0.0, first.columns(thin)
        for block in first.kept or form_rows(scores, terms, first.g, self.parts):
            sums.append((block.kernel @ right[:, :, None])[:, :, 0] / block.total)
            left = terms.a[:, block.part] / block.total
            partials = partials + scores.partial(block.part, block.kernel, left, right)
        rows = terms.home.xp.concat(sums, axis=1)
        return rows, scores.total(partials, terms.a * rows, first.masses * thin)


def _minima(scores: Scores, terms: Terms, g: Any, part: slice, block: Any) -> tuple[Any, Any]:
    """Return columns' largest scores below the rows' largest, and these, without weights."""
    xp = terms.home.xp
    if terms.bare:
        # Columns without weight bind nothing: they take what the others leave them.
        bare = scores.block(part, g / terms.eps)
        top = xp.max(bare + terms.closed[:, None, :], axis=2)
    else:
        bare = block - terms.log_b[:, None, :]
        top = xp.max(bare, axis=2)
    bare -= top[:, :, None]
    return xp.max(bare, axis=1), top
