r"""Ascent on the weights of the groups, with Sinkhorn keeping the potentials optimal.

The dual is jointly concave, and its gradient in the weights is
:math:`\phi - \eta (\log \alpha + 1)`. A mirror step raises it,

.. math:: \alpha \propto (\alpha\, e^{\tau \phi})^{1 / (1 + \tau \eta)},

with a step length that adapts; near the optimum, and where there are few groups, joint Newton steps
on potentials and weights take over.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from frot._entropic._dense import DenseEngine
from frot._entropic._engine import Engine, Point, gap_of, select
from frot._entropic._newton import newton_pays, newton_step
from frot._entropic._terms import Terms

__all__ = ["ascend", "mirror_step"]

# The step grows when the dual rose and shrinks when it fell.
GROW, SHRINK = 1.3, 0.4
SMALLEST_STEP, LARGEST_STEP = 1e-12, 1e9
# Newton's region is entered once the gap is this small, after so many mirror steps, or when
# Sinkhorn has become slow.
NEWTON_GAP = 1e-4
NEWTON_AFTER = 25
SLOW_SWEEPS = 300
# Steps without progress before it is left for mirror steps, and how often it is tried.
NEWTON_PATIENCE = 8
NEWTON_TRIES = 4


def mirror_step(terms: Terms, alpha: Any, phi: Any, step: Any) -> Any:
    """Return the weights a mirror step ahead, drawn to the prior by eta."""
    score = terms.log(alpha) + step * phi
    if terms.log_prior is not None:
        score = score + step * terms.eta * terms.log_prior
    return terms.softmax(score / (1.0 + step * terms.eta))


def ascend(engine: Engine, alpha: Any, g: Any = None, tol: float = 1e-4) -> Iterator[Point]:
    """Yield points of rising dual value, each with the best potentials so far.

    Every member of a batch takes its own steps; one whose step failed stays where it was. The
    iterator ends when no step raises any dual value.
    """
    terms = engine.terms
    xp = terms.home.xp
    at = engine.start(alpha) if g is None else engine.sweep(alpha, g, 1e-2)
    step = 1.0 / terms.scale
    # How closely to sweep: the error of the marginals enters the gap times the costs.
    closeness = 1e-2 * xp.ones_like(at.dual)
    newton = engine if isinstance(engine, DenseEngine) and newton_pays(engine) else None
    patience, floor = engine.patience, max(0.1 * tol, 1e-12)
    noise = 8.0 * float(xp.finfo(terms.home.dtype).eps)
    due, tries = NEWTON_AFTER, 0
    for count in range(1_000_000):
        yield at
        gap = gap_of(xp, at)
        worst = float(xp.max(gap))
        if newton and (worst <= NEWTON_GAP or count >= due or at.work > SLOW_SWEEPS):
            at = yield from _newton(newton, at)
            tries += 1
            if tries == NEWTON_TRIES:
                return
            due = count + NEWTON_AFTER
        closeness = xp.minimum(closeness, xp.clip(patience * gap, floor, None))
        ahead = engine.sweep(mirror_step(terms, at.alpha, at.phi, step), at.g, closeness)
        rose = ahead.dual >= at.dual - noise * xp.abs(at.dual)
        at = select(xp, rose, ahead, at)
        step = xp.minimum(step * terms.pick(rose, GROW, SHRINK), LARGEST_STEP / terms.scale)
        if float(xp.max(step * terms.scale)) < SMALLEST_STEP:
            return


def _newton(engine: DenseEngine, at: Point) -> Generator[Point, None, Point]:
    """Newton steps, until a number of them brings no member's values closer together."""
    xp, damping = engine.terms.home.xp, None
    best, idle = xp.abs(at.primal - at.dual) + engine.terms.scale[:, 0] * at.error, 0
    while idle < NEWTON_PATIENCE:
        at, damping = newton_step(engine, at, damping)
        yield at
        width = xp.abs(at.primal - at.dual) + engine.terms.scale[:, 0] * at.error
        idle = 0 if bool(xp.any(width < 0.9 * best)) else idle + 1
        best = xp.minimum(best, width)
    return at
