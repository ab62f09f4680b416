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
from frot.solvers.sinkhorn.newton import newton_step
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
# Steps without progress before it is left for mirror steps, and how often it is tried.
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


def ascend(engine: Search, alpha: Any, g: Any = None, tol: float = 1e-4) -> Iterator[Point]:
    """Yield points of rising dual value, each with the best potentials so far."""
    return iter(Ascent(engine, alpha, g, tol))


class Ascent:
    """Points of rising dual value, for a batch that may shrink on the way.

    Every member of a batch takes its own steps; one whose step failed stays where it was. The
    iterator ends when no step raises any dual value.

    Parameters
    ----------
    engine : Search
    alpha, g : arrays of shape (B, L) and (B, m)
        Where to start; without g from nothing.
    tol : float
        The gap that is asked for.
    """

    def __init__(self, engine: Search, alpha: Any, g: Any = None, tol: float = 1e-4) -> None:
        self.engine, self.floor = engine, 0.0
        self.tighten(tol)
        self.single = engine.double() is not engine
        self._first = (alpha, g)
        terms = engine.terms
        # Much of eta makes the best answer to a plan nearly the last one.
        long = terms.home.xp.clip(ETA_STEP * terms.eta / terms.scale, 1.0, FIRST_STEP)
        self.step = long / terms.scale
        # How closely to sweep: the error of the marginals enters the gap times the costs. With one
        # group there is nothing to do besides.
        self.alone = alpha.shape[1] == 1
        self.closeness: Any = 1e-2 * engine.terms.home.xp.ones_like(self.step[:, 0])
        if self.alone:
            # Where mass may go nothing has to be moved to make columns right: only the square of
            # their error enters the gap.
            share = 0.1 * tol**0.5 if engine.terms.soft else tol
            self.closeness = Near(share, self.floor)
        self.at: Any = None
        self.damping: Any = None
        self.best: Any = None

    def tighten(self, tol: float) -> None:
        """Sweep for another gap from now on."""
        # Sweeps that get closer than rounding does are for nothing.
        self.floor = max(0.1 * tol, self.engine.noise)

    def keep(self, index: Any) -> None:
        """Go on with some members only, which do not notice."""
        xp, engine = self.engine.terms.home.xp, self.engine
        assert isinstance(engine, DenseEngine)
        self.engine, self.at = engine.members(index), take(xp, index, self.at)
        for name in ("step", "closeness", "damping", "best"):
            part = getattr(self, name)
            if part is not None and not isinstance(part, Near):
                setattr(self, name, xp.take(part, index, axis=0))

    def __iter__(self) -> Iterator[Point]:
        alpha, g = self._first
        engine, near = self.engine, self.closeness
        self.at = engine.start(alpha, near) if g is None else engine.sweep(alpha, g, near)
        if engine.terms.soft:
            # Costs of groups are in proportion to the mass that moves.
            mass = engine.terms.home.xp.sum(engine.terms.b * self.at.columns, axis=1)
            self.step = self.step / engine.terms.home.xp.clip(mass, LEAST_MASS, None)[:, None]
        due, tries = NEWTON_AFTER, 0
        for count in range(1_000_000):
            yield self.at
            terms = self.engine.terms
            gap = gaps(terms.home.xp, self.at)
            slow = count >= due or self.at.work > SLOW_SWEEPS
            if slow and self.single and self.engine.newton_pays:
                # Second derivatives are for double precision.
                return
            near = float(terms.home.xp.max(gap)) <= NEWTON_GAP
            if (slow or near) and not self.single and self.engine.newton_pays:
                yield from self._newton()
                tries += 1
                if tries == NEWTON_TRIES:
                    return
                due, terms = count + NEWTON_AFTER, self.engine.terms
                gap = gaps(terms.home.xp, self.at)
            self._mirror(gap)
            if float(terms.home.xp.max(self.step * self.engine.terms.scale)) < SMALLEST_STEP:
                return

    def _mirror(self, gap: Any) -> None:
        """Step on the weights, each member by its own length, and sweep there."""
        engine, terms, at = self.engine, self.engine.terms, self.at
        xp = terms.home.xp
        noise = engine.noise
        if self.alone:
            if at.work == 0:
                # Nothing was swept, and all the same it is not close enough: points that are far
                # off pay more for their mass than others.
                self.floor = max(0.3 * self.floor, noise)
            self.closeness = Near(0.3 * self.closeness.share, self.floor)
        else:
            aim = xp.clip(engine.patience * gap, self.floor, None)
            self.closeness = xp.minimum(self.closeness, aim)
        ahead = engine.sweep(mirror_step(terms, at.alpha, at.phi, self.step), at.g, self.closeness)
        rise, unseen = ahead.dual - at.dual, noise * xp.abs(at.dual)
        # What the dual cannot tell for rounding the gap does, or steps grow until they overshoot.
        closer = gaps(xp, ahead) <= gap
        rose = (rise > unseen) | ((rise >= -unseen) & closer)
        self.at = select(xp, rose, ahead, at)
        step = self.step * terms.pick(rose, GROW, SHRINK)
        self.step = xp.minimum(step, LARGEST_STEP / terms.scale)

    def _newton(self) -> Iterator[Point]:
        """Newton steps, until a number of them brings no member's values closer together."""
        xp, idle = self.engine.terms.home.xp, 0
        self.best = self._width()
        while idle < NEWTON_PATIENCE:
            assert isinstance(self.engine, DenseEngine)
            self.at, self.damping = newton_step(self.engine, self.at, self.damping)
            yield self.at
            width = self._width()
            idle = 0 if bool(xp.any(width < 0.9 * self.best)) else idle + 1
            self.best = xp.minimum(self.best, width)

    def _width(self) -> Any:
        at = self.at
        return abs(at.primal - at.dual) + self.engine.terms.scale[:, 0] * at.error
