r"""Ascent on the weights of the groups, with Sinkhorn keeping the potentials optimal.

The dual is jointly concave, and its gradient in the weights is
:math:`\phi - \eta (\log \alpha + 1)`. A mirror step raises it,

.. math:: \alpha \propto (\alpha\, e^{\tau \phi})^{1 / (1 + \tau \eta)},

with a step length that adapts; near the optimum, and where there are few groups, joint Newton steps
on potentials and weights take over.

When points are near enough to be proven is told by the gap, or by the gradient (`Aim`). A plan with
a mass e in wrong columns and weights with a regret r (what the best answer to the plan's costs
earns more, over the value F) have a gap of about :math:`r + \tfrac12 e s / F`, with s the mean
cost. The gradient by the points, which plan and weights make, is off by about as much as e
but by the root of r: over problems of all kinds (`docs/entropic.md`) by

.. math:: \frac{\|\delta\|}{\|\nabla\|} \le 4\, e\, \frac{s}{F} + 4 \sqrt{r}

at most. So a gradient is asked for by both, and twice as close as that, for losses that are
differences; a gap of its square would sweep for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from frot.solvers.sinkhorn._scaling import Near
from frot.solvers.sinkhorn.dense import DenseEngine
from frot.solvers.sinkhorn.engine import Point, Search, distances, gaps, regrets, select, take
from frot.solvers.sinkhorn.newton import Trust, newton_path, newton_step
from frot.solvers.sinkhorn.terms import BatchTerms

# The step grows when the dual rose and shrinks when it fell.
GROW, SHRINK = 1.3, 0.4
SMALLEST_STEP, LARGEST_STEP = 1e-12, 1e9
# The first step, over the scale of the costs: so many times eta, between one and this.
ETA_STEP, FIRST_STEP = 25.0, 16.0
# The first step is no longer than for so much mass.
LEAST_MASS = 1e-3
# Newton's region is entered once the gap is this small, after so many mirror steps, or when
# Sinkhorn has become slow.
NEWTON_GAP = 1e-4
NEWTON_AFTER = 25
SLOW_SWEEPS = 300
# Steps without progress before it is left for mirror steps, and how often it is tried: of 81 hard
# problems 9 stall, 11 with half the patience, 18 with half the tries.
NEWTON_PATIENCE = 8
NEWTON_TRIES = 4

# What the gradient's relative error is taken to be over the mass in wrong columns and over the root
# of the regret: twice what was measured at most.
PLAN, WEIGHTS = 8.0, 8.0
# The same of a single gap, whatever it comes from: twice the plan's, and no more than what was seen
# of the weights'.
PLAN_GAP, WEIGHTS_GAP = 2.0 * PLAN, 4.0
# A smaller regret is rounding in double precision.
LEAST_REGRET = 1e-14
# Points that were near enough but could not be proven to be are asked for so much more.
TIGHTER = 0.3


@dataclass(frozen=True)
class Aim:
    """What is asked for.

    Parameters
    ----------
    gap : float
        A proven relative gap that is enough whatever made it.
    gradient : float, optional
        The relative error of gradients that is enough, estimated, with a proven gap of no more.

    Examples
    --------
    >>> Aim(1e-4).sweeps, Aim(1e-4, 1e-2).sweeps
    (0.0001, 0.00125)
    """

    gap: float
    gradient: float | None = None
    strictness: float = 1.0

    @property
    def sweeps(self) -> float:
        """Mass that may be in wrong columns, over |value| / scale."""
        return self.gap if self.gradient is None else self.strictness * self.gradient / PLAN

    @property
    def proven(self) -> float:
        """The gap that has to be proven of points that are near."""
        return self.gap if self.gradient is None else max(self.gap, self.gradient)

    def near(self, terms: BatchTerms, at: Point) -> Any:
        """Return which members are near enough to be proven, (B,)."""
        close = distances(terms, at) <= self.gap
        if self.gradient is None:
            return close
        xp = terms.home.xp
        size = xp.maximum(xp.abs(at.primal), xp.abs(at.dual))
        plan = terms.scale[:, 0] * at.error <= self.sweeps * size
        regret = max((self.strictness * self.gradient / WEIGHTS) ** 2, LEAST_REGRET)
        weights = regrets(terms, at) <= regret
        return close | (plan & weights)

    @staticmethod
    def gap_for(gradient: float, groups: int) -> float:
        """Return the gap that makes a gradient as good, where nothing else can be asked for.

        Examples
        --------
        >>> Aim.gap_for(4e-3, 1), Aim.gap_for(4e-3, 2)
        (0.00025, 1e-06)
        """
        return gradient / PLAN_GAP if groups == 1 else (gradient / WEIGHTS_GAP) ** 2

    def tighter(self) -> Aim:
        """The same, for points that did not keep what they promised."""
        return replace(self, strictness=TIGHTER * self.strictness)


def mirror_step(terms: BatchTerms, alpha: Any, phi: Any, step: Any) -> Any:
    """Return the weights a mirror step ahead, drawn to the prior by eta."""
    score = terms.log(alpha) + step * phi
    if terms.log_prior is not None:
        score = score + step * terms.eta * terms.log_prior
    return terms.softmax(score / (1.0 + step * terms.eta))


class Ascent:
    """Points of rising dual value, for a batch that may shrink on the way.

    Every member of a batch takes its own steps; one whose step failed stays where it was. Iterating
    yields the points until no step raises any dual value.

    Parameters
    ----------
    engine : Search
    alpha, g : arrays of shape (B, L) and (B, m)
        Where to start; without g from nothing.
    tol : float
        The gap that is asked for.

    Attributes
    ----------
    at : Point, optional
        Where the ascent is; None before the first step.
    length : array of shape (B, 1)
        Of the mirror steps.
    closeness : array of shape (B,) or Near
        How closely to sweep: the error of the marginals enters the gap times the costs.
    in_newton : bool
        Whether the next step is one of Newton's.
    """

    def __init__(self, engine: Search, alpha: Any, g: Any = None, tol: float = 1e-4) -> None:
        self.engine, self._first = engine, (alpha, g)
        self.at: Any = None
        self.single = engine.double() is not engine
        terms, xp = engine.terms, engine.terms.home.xp
        self.tighten(tol)
        # Much of eta makes the best answer to a plan nearly the last one.
        long = xp.clip(ETA_STEP * terms.eta / terms.scale, 1.0, FIRST_STEP)
        self.length = long / terms.scale
        # With one group there is nothing to do but to sweep.
        self.alone = alpha.shape[1] == 1
        self.closeness: Any = 1e-2 * xp.ones_like(self.length[:, 0])
        if self.alone:
            # Where mass may go nothing has to be moved to make columns right: only the square of
            # their error enters the gap.
            self.closeness = Near(0.1 * tol**0.5 if terms.soft else tol, self.floor)
        # Mirror steps so far, when Newton's are due, how often these were tried and from which
        # mirror step on they may be again.
        self.count, self.due, self.tries, self.again = 0, NEWTON_AFTER, 0, 0
        self.in_newton, self.idle = False, 0
        self.trust: Trust | None = None
        # In Newton's region: the best point, and the highest dual value.
        self.best: Any = None
        self.highest: Any = None

    def __iter__(self) -> Iterator[Point]:
        while self.advance():
            yield self.at

    def tighten(self, tol: float) -> None:
        """Sweep for another gap from now on."""
        # Sweeps that get closer than rounding does are for nothing.
        self.tol = max(tol, self.engine.noise)
        self.floor = max(0.1 * tol, self.engine.noise)

    def keep(self, index: Any) -> None:
        """Go on with some members only, which do not notice."""
        xp, engine = self.engine.terms.home.xp, self.engine
        assert isinstance(engine, DenseEngine)
        self.engine, self.at = engine.members(index), take(xp, index, self.at)
        if self.trust is not None:
            self.trust = self.trust.members(xp, index)
        if self.best is not None:
            self.best = take(xp, index, self.best)
        for name in ("length", "closeness", "highest"):
            part = getattr(self, name)
            if part is not None and not isinstance(part, Near):
                setattr(self, name, xp.take(part, index, axis=0))

    def advance(self) -> bool:
        """Take one step; False if none raises any dual value, or single precision is at its end."""
        if self.at is None:
            self._begin()
            return True
        if not self.in_newton and self._newton_is_due():
            if self.single:
                # Second derivatives are for double precision.
                return False
            self._enter_newton()
        if self.in_newton:
            self._newton()
            return True
        if self.tries == NEWTON_TRIES:
            return False
        self._mirror()
        terms = self.engine.terms
        return float(terms.home.xp.max(self.length * terms.scale)) >= SMALLEST_STEP

    def _begin(self) -> None:
        """Find the first potentials."""
        engine, (alpha, g), near = self.engine, self._first, self.closeness
        self.at = engine.start(alpha, near) if g is None else engine.sweep(alpha, g, near)
        if engine.terms.soft:
            # Costs of groups are in proportion to the mass that moves.
            xp = engine.terms.home.xp
            mass = xp.sum(engine.terms.b * self.at.columns, axis=1)
            self.length = self.length / xp.clip(mass, LEAST_MASS, None)[:, None]

    def _newton_is_due(self) -> bool:
        """Whether the optimum is near, or mirror steps have become slow."""
        if not self.engine.newton_pays or self.count < self.again:
            return False
        if self.count >= self.due or self.at.work > SLOW_SWEEPS:
            return True
        xp = self.engine.terms.home.xp
        return not self.single and float(xp.max(gaps(xp, self.at))) <= NEWTON_GAP

    def _mirror(self) -> None:
        """Step on the weights, each member by its own length, and sweep there."""
        engine, terms, at = self.engine, self.engine.terms, self.at
        xp, noise = terms.home.xp, engine.noise
        gap = gaps(xp, at)
        self.count += 1
        if self.alone:
            if at.work == 0:
                # Nothing was swept, and all the same it is not close enough: points that are far
                # off pay more for their mass than others.
                self.floor = max(0.3 * self.floor, noise)
            self.closeness = Near(0.3 * self.closeness.share, self.floor)
        else:
            # What wrong columns cost is a share of the mean cost, which may be far above the value.
            share = xp.clip(xp.abs(at.dual) / terms.scale[:, 0], None, 1.0)
            aim = xp.clip(share * xp.clip(engine.patience * gap, self.floor, None), noise, None)
            self.closeness = xp.minimum(self.closeness, aim)
        ahead = engine.sweep(
            mirror_step(terms, at.alpha, at.phi, self.length), at.g, self.closeness
        )
        rise, unseen = ahead.dual - at.dual, noise * xp.abs(at.dual)
        # What the dual cannot tell for rounding the gap does, or steps grow until they overshoot.
        closer = gaps(xp, ahead) <= gap
        rose = (rise > unseen) | ((rise >= -unseen) & closer)
        self.at = select(xp, rose, ahead, at)
        length = self.length * terms.pick(rose, GROW, SHRINK)
        self.length = xp.minimum(length, LARGEST_STEP / terms.scale)

    def _enter_newton(self) -> None:
        """Begin with Newton's steps; if they have led nowhere before, at a larger eps."""
        if self.tries > 0:
            assert isinstance(self.engine, DenseEngine)
            self.at = self._better(newton_path(self.engine, self.at), self.at)
            self.trust = None
        self.in_newton, self.idle = True, 0
        self.best, self.highest = self.at, self.at.dual

    def _newton(self) -> None:
        """Take one of Newton's steps, the last if some have brought no member's values closer."""
        assert isinstance(self.engine, DenseEngine)
        xp = self.engine.terms.home.xp
        trust = self.trust or Trust.begin(self.engine.terms)
        self.at, self.trust = newton_step(self.engine, self.at, trust)
        # Far from the optimum the dual value rises, and the primal says nothing yet.
        rose = self.at.dual > self.highest + self.tol * xp.abs(self.highest)
        closer = self._width(self.at) < 0.9 * self._width(self.best)
        self.idle = 0 if bool(xp.any(closer | rose)) else self.idle + 1
        self.highest = xp.maximum(self.highest, self.at.dual)
        self.best = self._better(self.at, self.best)
        if self.idle == NEWTON_PATIENCE:
            self.at = self._better(self.best, self.at)
            self.in_newton, self.tries = False, self.tries + 1
            self.due, self.again = self.count + NEWTON_AFTER, self.count + 1

    def _better(self, ahead: Point, here: Point) -> Point:
        """Choose, member by member, the point that is higher or, where none is, narrower."""
        xp = self.engine.terms.home.xp
        higher = ahead.dual > here.dual + self.tol * xp.abs(here.dual)
        lower = here.dual > ahead.dual + self.tol * xp.abs(here.dual)
        narrower = self._width(ahead) < self._width(here)
        return select(xp, higher | (narrower & ~lower), ahead, here)

    def _width(self, at: Point) -> Any:
        """How far apart the values of a point are, (B,), and what its wrong columns may cost."""
        return abs(at.primal - at.dual) + self.engine.terms.scale[:, 0] * at.error
