"""Passes over the plan that a proof needs."""

from __future__ import annotations

from typing import Any, NamedTuple

from frot._base.arrays import quiet
from frot.costs.geometry import unit_of
from frot.solvers.sinkhorn.engine import Engine
from frot.solvers.sinkhorn.forming import Block, form_rows, score_rows, softmax_below, softmax_block
from frot.solvers.sinkhorn.scores import Scores
from frot.solvers.sinkhorn.terms import Terms

__all__ = ["SCORE", "FirstPass", "second_pass", "settled_pass"]

# Units in the last place that a score takes on its way: some operations, each off by one.
SCORE = 6.0
# A potential is coarse where its last places are this share of eps; so often such are lowered.
COARSE, LOWERINGS = 1e-2, 3


class FirstPass(NamedTuple):
    """What is known once the plan has been formed.

    Attributes
    ----------
    g, f : arrays of shape (B, m) and (B, n)
        Potentials; rows are exact.
    masses : array of shape (B, m)
        What the columns weigh.
    plain_f, plain_g : arrays of shape (B, n) and (B, m)
        Minima of the reduced costs: potentials of the problem without eps.
    kept : list of Block
        The plan over a, where there is room for it.
    """

    g: Any
    f: Any
    masses: Any
    plain_f: Any
    plain_g: Any
    kept: list[Block]


def settled_pass(engine: Engine, scores: Scores, g: Any) -> FirstPass:
    """Form the plan of g, lowered where it cannot be told to a fraction of eps."""
    terms = engine.terms
    if terms.soft:
        # What f and g share is no constant: it decides how much mass there is.
        return _form(engine, scores, g)
    # The constant that f and g share costs digits: on average, g is zero.
    g = g - terms.home.xp.vecdot(terms.b, g)[:, None]
    first = _form(engine, scores, g)
    for _ in range(LOWERINGS):
        lowered = _lowered(terms, g, terms.over_b(first.masses))
        if lowered is None:
            break
        g = lowered
        first = _form(engine, scores, g)
    return first


def _form(engine: Engine, scores: Scores, g: Any) -> FirstPass:
    """Form the plan once, and take the minima of the reduced costs on the way."""
    terms = engine.terms
    xp, kept, potentials, plain = terms.home.xp, [], [], []
    masses, most = 0.0, None
    for part, block in score_rows(scores, terms, g, engine.parts):
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
        if engine.keeps:
            kept.append(formed)
    f, plain_f = (xp.concat(each, axis=1) for each in (potentials, plain))
    return FirstPass(g, f, masses, plain_f, g - terms.eps * most, kept)


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


def _lowered(terms: Terms, g: Any, columns: Any) -> Any:
    """Return g with potentials lowered that are too large for their last place to be less than eps.

    The columns of such, far points of next to no weight, get all or nothing of what they should,
    and too much would take rows from the others. None where no column does.
    """
    xp = terms.home.xp
    place = 4.0 * unit_of(terms.home) * xp.abs(g)
    coarse = (place > COARSE * terms.eps) & (columns > 1.0)
    if not bool(xp.any(coarse)):
        return None
    with quiet():
        less = g - terms.eps * xp.log(xp.where(coarse, columns, xp.ones_like(columns))) - place
    return xp.where(coarse, less, g)


def second_pass(engine: Engine, scores: Scores, first: FirstPass, thin: Any) -> tuple[Any, Any]:
    """Return row sums over a and group costs of the plan with its columns times `thin`."""
    terms = engine.terms
    sums, partials = [], 0.0
    for block in first.kept or form_rows(scores, terms, first.g, engine.parts):
        sums.append((block.kernel @ thin[:, :, None])[:, :, 0] / block.total)
        left = terms.a[:, block.part] / block.total
        partials = partials + scores.partial(block.part, block.kernel, left, thin)
    rows = terms.home.xp.concat(sums, axis=1)
    return rows, scores.total(partials, terms.a * rows, first.masses * thin)
