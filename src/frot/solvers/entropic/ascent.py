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

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from frot._base.arrays import Array, safe_log
from frot._base.stopping import check_deadline
from frot.solvers.entropic.dense import DenseEngine
from frot.solvers.entropic.engine import Closeness, Engine
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.newton import Trust, newton_path, newton_step
from frot.solvers.entropic.point import Point, distances, gaps, regrets, select, take

# What the gradient's relative error is taken to be over the mass in wrong columns and over the root
# of the regret: twice what was measured at most.
GRADIENT_FACTOR = 8.0


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
        if self.gradient is None:
            return self.gap
        return self.strictness * self.gradient / GRADIENT_FACTOR

    @property
    def proven(self) -> float:
        """The gap that has to be proven of points that are near."""
        return self.gap if self.gradient is None else max(self.gap, self.gradient)

    def near(self, problem: EntropicProblem, point: Point) -> Array:
        """Return which members are near enough to be proven, (B,)."""
        close = distances(problem, point) <= self.gap
        if self.gradient is None:
            return close
        xp = problem.home.xp
        size = xp.maximum(xp.abs(point.primal), xp.abs(point.dual))
        plan = problem.scale[:, 0] * point.error <= self.sweeps * size
        # A smaller regret is rounding in double precision.
        regret = max((self.strictness * self.gradient / GRADIENT_FACTOR) ** 2, 1e-14)
        weights = regrets(problem, point) <= regret
        return close | (plan & weights)

    @staticmethod
    def gap_for(gradient: float, groups: int) -> float:
        """Return the gap that makes a gradient as good, where nothing else can be asked for.

        Whatever the gap comes from: twice what mass in wrong columns does to the gradient, and no
        more than what was seen of the weights' regret.

        Examples
        --------
        >>> Aim.gap_for(4e-3, 1), Aim.gap_for(4e-3, 2)
        (0.00025, 1e-06)
        """
        return 0.5 * gradient / GRADIENT_FACTOR if groups == 1 else (0.25 * gradient) ** 2

    def tighter(self) -> Aim:
        """The same, for points that did not keep what they promised."""
        return replace(self, strictness=0.3 * self.strictness)


def mirror_step(problem: EntropicProblem, alpha: Array, phi: Array, step: Array) -> Array:
    """Return the weights a mirror step ahead, drawn to the prior by eta."""
    score = safe_log(alpha) + step * phi
    if problem.log_prior is not None:
        score = score + step * problem.eta * problem.log_prior
    return problem.softmax(score / (1.0 + step * problem.eta))


class Ascent:
    """Points of rising dual value, for a batch that may shrink on the way.

    Every member of a batch takes its own steps; one whose step failed stays where it was.

    Parameters
    ----------
    engine : Engine
    alpha, g : arrays of shape (B, L) and (B, m)
        Where to start; without g from nothing.
    tol : float
        The gap that is asked for.

    Attributes
    ----------
    point : Point, optional
        Where the ascent is; None before the first step.
    length : array of shape (B, 1)
        Of the mirror steps.
    closeness : array of shape (B,) or Closeness
        How closely to sweep: the error of the marginals enters the gap times the costs.
    in_newton : bool
        Whether the next step is one of Newton's.
    """

    # Mirror steps after which Newton's are due; half or twice of it, of the sweeps and of the gap
    # that make them due earlier, take up to 5 % more or 11 % less work.
    newton_after = 25

    def __init__(self, engine: Engine, alpha: Array, g: Array = None, tol: float = 1e-4) -> None:
        self.engine, self._first = engine, (alpha, g)
        self.point: Any = None
        self.single = engine.double() is not engine
        problem, xp = engine.problem, engine.problem.home.xp
        self.tighten(tol)
        # Much of eta makes the best answer to a plan nearly the last one: steps of a scale take 5 %
        # more work.
        long = xp.clip(25.0 * problem.eta / problem.scale, 1.0, 16.0)
        self.length = long / problem.scale
        # With one group there is nothing to do but to sweep.
        self.alone = alpha.shape[1] == 1
        self.closeness: Array | Closeness = 1e-2 * xp.ones_like(self.length[:, 0])
        # The gap before the last mirror step.
        self.gap: Array = None
        if self.alone:
            # Where mass may go nothing has to be moved to make columns right: only the square of
            # their error enters the gap.
            self.closeness = Closeness(0.1 * tol**0.5 if problem.unbalanced else tol, self.floor)
        # Mirror steps so far; after how many Newton's are due, and may be tried again.
        self.mirror_steps, self.newton_due, self.newton_not_before = 0, self.newton_after, 0
        # Whether the next step is one of Newton's, how often these have led nowhere, and how many
        # steps in a row have brought nothing.
        self.in_newton, self.newton_failures, self.idle = False, 0, 0
        self.trust: Trust | None = None
        # In Newton's region: the best point, and the highest dual value.
        self.best: Any = None
        self.highest: Array = None

    def climb(self, near: Callable[[Point], bool], limit: int) -> Point:
        """Advance until a point is near enough, none rises, or for so many steps."""
        for _ in range(limit):
            check_deadline()
            if not self.advance() or near(self.point):
                break
        return self.point

    def tighten(self, tol: float) -> None:
        """Sweep for another gap from now on."""
        # The goal of sweeps is not below round-off.
        self.tol = max(tol, self.engine.noise)
        self.floor = max(0.1 * tol, self.engine.noise)

    def keep(self, index: Array) -> None:
        """Go on with some members only, which do not notice."""
        xp, engine = self.engine.problem.home.xp, self.engine
        assert isinstance(engine, DenseEngine)
        self.engine, self.point = engine.members(index), take(xp, index, self.point)
        if self.trust is not None:
            self.trust = self.trust.members(xp, index)
        if self.best is not None:
            self.best = take(xp, index, self.best)
        for name in ("length", "closeness", "highest", "gap"):
            part = getattr(self, name)
            if part is not None and not isinstance(part, Closeness):
                setattr(self, name, xp.take(part, index, axis=0))

    def advance(self) -> bool:
        """Take one step; False if none raises any dual value, or single precision is at its end."""
        if self.point is None:
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
        # Of 81 hard problems 9 stall, 18 where two failures are enough.
        if self.newton_failures == 4:
            return False
        self._mirror()
        problem = self.engine.problem
        return float(problem.home.xp.max(self.length * problem.scale)) >= 1e-12

    def _begin(self) -> None:
        """Find the first potentials."""
        engine, (alpha, g), near = self.engine, self._first, self.closeness
        self.point = engine.start(alpha, near) if g is None else engine.sweep(alpha, g, near)
        if engine.problem.unbalanced:
            # Costs of groups are in proportion to the mass that moves.
            xp = engine.problem.home.xp
            mass = xp.sum(engine.problem.b * self.point.columns, axis=1)
            self.length = self.length / xp.clip(mass, 1e-3, None)[:, None]

    def _newton_is_due(self) -> bool:
        """Whether the optimum is near, or mirror steps have become slow."""
        if not self.engine.newton_pays or self.mirror_steps < self.newton_not_before:
            return False
        if self.mirror_steps >= self.newton_due or self.point.work > 300:
            return True
        xp = self.engine.problem.home.xp
        return not self.single and float(xp.max(gaps(xp, self.point))) <= 1e-4

    def _mirror(self) -> None:
        """Step on the weights, each member by its own length, and sweep there."""
        engine, problem, point = self.engine, self.engine.problem, self.point
        xp, noise = problem.home.xp, engine.noise
        gap = gaps(xp, point)
        self.mirror_steps += 1
        if self.alone:
            if point.work == 0:
                # The error met its goal without a sweep, yet the gap did not: misplaced mass of
                # far points costs more than the mean cost.
                self.floor = max(0.3 * self.floor, noise)
            self.closeness = Closeness(0.3 * self.closeness.share, self.floor)
        else:
            # What wrong columns cost is a share of the mean cost, which may be far above the value.
            share = xp.clip(xp.abs(point.dual) / problem.scale[:, 0], None, 1.0)
            aim = xp.clip(share * xp.clip(engine.patience * gap, self.floor, None), noise, None)
            closeness: Array = self.closeness
            if point.work == 0 and self.gap is not None and bool(xp.all(gap > 0.9 * self.gap)):
                # Nothing was swept, and nothing gained: mass of far points is dearer than that. Of
                # 48 problems with outliers, streamed, 6 stall without this.
                aim = xp.clip(0.3 * closeness, noise, None)
            self.closeness, self.gap = xp.minimum(closeness, aim), gap
        ahead = engine.sweep(
            mirror_step(problem, point.alpha, point.phi, self.length), point.g, self.closeness
        )
        rise, unseen = ahead.dual - point.dual, noise * xp.abs(point.dual)
        # Where round-off hides changes of the dual the gap decides, or steps would overshoot.
        closer = gaps(xp, ahead) <= gap
        rose = (rise > unseen) | ((rise >= -unseen) & closer)
        self.point = select(xp, rose, ahead, point)
        # Of 48 problems, growth by 1.15 and 1.7 takes 1 % less and 2 % more work, shortening by 0.2
        # and 0.6 takes 6 % less and 8 % more.
        length = self.length * problem.pick(rose, 1.3, 0.4)
        self.length = xp.minimum(length, 1e9 / problem.scale)

    def _enter_newton(self) -> None:
        """Begin with Newton's steps; if they have led nowhere before, at a larger eps."""
        if self.newton_failures > 0:
            assert isinstance(self.engine, DenseEngine)
            self.point = self._better(newton_path(self.engine, self.point), self.point)
            self.trust = None
        self.in_newton, self.idle = True, 0
        self.best, self.highest = self.point, self.point.dual

    def _newton(self) -> None:
        """Take one of Newton's steps, the last if some have brought no member's values closer."""
        assert isinstance(self.engine, DenseEngine)
        xp = self.engine.problem.home.xp
        trust = self.trust or Trust.begin(self.engine.problem)
        self.point, self.trust = newton_step(self.engine, self.point, trust)
        # Far from the optimum the dual value rises, and the primal says nothing yet.
        rose = self.point.dual > self.highest + self.tol * xp.abs(self.highest)
        closer = self._width(self.point) < 0.9 * self._width(self.best)
        self.idle = 0 if bool(xp.any(closer | rose)) else self.idle + 1
        self.highest = xp.maximum(self.highest, self.point.dual)
        self.best = self._better(self.point, self.best)
        # Of 81 hard problems 9 stall, 11 with half the patience.
        if self.idle == 8:
            self.point = self._better(self.best, self.point)
            self.in_newton, self.newton_failures = False, self.newton_failures + 1
            self.newton_due = self.mirror_steps + self.newton_after
            self.newton_not_before = self.mirror_steps + 1

    def _better(self, ahead: Point, here: Point) -> Point:
        """Choose, member by member, the point that is higher or, where none is, narrower."""
        xp = self.engine.problem.home.xp
        higher = ahead.dual > here.dual + self.tol * xp.abs(here.dual)
        lower = here.dual > ahead.dual + self.tol * xp.abs(here.dual)
        narrower = self._width(ahead) < self._width(here)
        return select(xp, higher | (narrower & ~lower), ahead, here)

    def _width(self, point: Point) -> Array:
        """How far apart the values of a point are, (B,), and what its wrong columns may cost."""
        return abs(point.primal - point.dual) + self.engine.problem.scale[:, 0] * point.error
