r"""Weights that the three terms of a divergence share: mirror steps, none of which goes down.

Every term is ordinary Sinkhorn at given weights, done by the engines of `frot.solvers.entropic`.
The length of a step is that of Barzilai and Borwein, in logarithms z of the weights and the
direction :math:`d = \phi - \eta \log (\alpha / q)`:
:math:`s = \langle \Delta z, \Delta z \rangle_\alpha / -\langle \Delta z, \Delta d \rangle_\alpha`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from frot._base.arrays import safe_log
from frot._base.contract import GAP_SHARE
from frot.solvers.entropic.ascent import GRADIENT_FACTOR
from frot.solvers.entropic.dense import DenseEngine
from frot.solvers.entropic.engine import Engine
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.newton import weight_curvature
from frot.solvers.entropic.point import Point, select
from frot.torch._given_weights import QUICK_SWEEPS, has_double, potentials_for
from frot.torch._solved import LIFT

# What D has of x with y, x with itself and y with itself.
SHARES = (1.0, -0.5, -0.5)
# Mirror steps before Newton's, of which one takes as long as forty sweeps (300 points) to 300
# (1000): most calls end before. Over 200 problems of 4 to 70 points, 20 take 7.3 s, none 7.6 s, 50
# 10.5 s and mirror steps alone 17 s; of 1000 points in 8 groups a step of training takes .3 s, and
# 1.6 s by Newton's alone.
MIRROR_STEPS = 20
# Mass in wrong columns that the first sweeps leave.
FIRST_MISPLACED = 1e-2


@dataclass(frozen=True, eq=False)
class State:
    """Weights, (B, L), the terms there, and what follows; all but the points in double precision.

    Attributes
    ----------
    value : tensor of shape (B,)
        The debiased value less eta times the divergence from the prior.
    phi, slope : tensors of shape (B, L)
        Debiased group costs, and the direction of mirror steps in logarithms.
    regret : tensor of shape (B,)
        What the best answer to phi earns more than alpha.
    """

    alpha: Tensor
    points: tuple[Point, ...]
    value: Tensor
    phi: Tensor
    slope: Tensor
    regret: Tensor


class Start(NamedTuple):
    """Where the last call ended: weights, the length of its steps, and g of the three terms."""

    alpha: Tensor
    step: Tensor
    potentials: list[Tensor]


class SharedAscent:
    """Mirror steps on the weights of a batch, none of which goes down."""

    def __init__(self, engines: list[Engine], weights: EntropicProblem, tol: float) -> None:
        self.engines, self.weights, self.tol = engines, weights, tol
        self.closeness = torch.full_like(weights.eta[:, 0], FIRST_MISPLACED)
        self.steps = 0
        # Whether steps are Newton's by now; the length of mirror steps is kept for the next call.
        self.curved = False
        # Values are told from zero beyond a share of the mean cost, as gaps of results are.
        mean = weights.sizes.mean(1)
        self.floor = torch.where(mean > 0.0, GAP_SHARE * mean, weights.eps[:, 0])
        # Group costs are taken to be off by so many units in the last place.
        self.rounding = 64.0 * torch.finfo(torch.float64).eps
        self.state: State
        self.step: Tensor
        self.mirror_step: Tensor | None = None

    @property
    def slow(self) -> bool:
        """Whether sweeps in single precision are slow where Newton's steps are to be had."""
        works = max(point.work for point in self.state.points)
        newton = self.engines[0].newton_pays and not has_double(self.engines[0])
        return newton and works > QUICK_SWEEPS

    def start(self, before: Start | None) -> None:
        """Begin at the prior, or where the last call ended, if that is higher."""
        count = len(self.closeness)
        prior = self.weights.adversary.project(self.weights.prior.expand(count, -1))
        potentials = None if before is None else before.potentials
        self.state = self.look(prior, potentials)
        largest = self.state.slope.abs().amax(1, keepdim=True)
        self.step = self._limit(2.0 / largest.clamp(min=1e-300))
        if before is not None:
            # Where points have moved by little, the first sweeps may well be the last.
            self.closeness = torch.full_like(self.closeness, self.tol / GRADIENT_FACTOR)
            # A weight of zero would never rise again.
            last = self.look((1.0 - LIFT) * before.alpha + LIFT * prior, potentials)
            higher = last.value > self.state.value
            self.step = torch.where(higher[:, None], before.step, self.step)
            self.state = _select(higher, last, self.state)

    def look(self, alpha: Tensor, potentials: list[Tensor] | None) -> State:
        """Sweep at some weights, from some potentials g of the three terms."""
        points = []
        for number, engine in enumerate(self.engines):
            dtype = engine.problem.home.dtype
            misplaced, own = self._misplaced(engine), alpha.to(dtype)
            g = None if potentials is None else potentials[number].to(dtype)
            if g is not None and not bool(torch.isfinite(g).all()):
                g = None
            point = potentials_for(engine, own, g, misplaced)
            if not self.curved:
                # Kernels are formed anew at other weights.
                point = replace(point, kernel=None, left=None, right=None, base=None)
            points.append(point)
        weights = self.weights
        value, phi = torch.zeros_like(weights.eta[:, 0]), torch.zeros_like(alpha)
        for share, point in zip(SHARES, points, strict=True):
            value = value + share * point.dual.double()
            phi = phi + share * point.phi.double()
        reward = weights.adversary.reward(alpha)
        slope = phi - weights.eta * (safe_log(alpha) - torch.log(weights.prior))
        slope = slope - (alpha * slope).sum(1, keepdim=True)
        regret = self._regret(alpha, phi, reward)
        bonus = weights.adversary.reward(weights.prior)
        return State(
            alpha, tuple(points), value + reward - bonus, phi, slope, regret.clamp(min=0.0)
        )

    def _regret(self, alpha: Tensor, phi: Tensor, reward: Tensor) -> Tensor:
        r"""Return what the best answer to phi earns more than alpha, (B,).

        With eta it is :math:`\eta\,\mathrm{KL}(\alpha | \alpha^*)`, whose summands have no sign to
        cancel; otherwise a difference of values, known to some units of these.
        """
        weights = self.weights
        worst = weights.adversary.value(phi) - (alpha * phi).sum(1) - reward
        size = self.rounding * phi.abs().amax(1)
        plain = (worst - size).clamp(min=0.0)
        if not weights.smooth or weights.k > 1:
            return plain
        far = safe_log(weights.adversary.answer(phi)) - safe_log(alpha)
        each = torch.where(far.abs() < 1e-4, 0.5 * far**2, torch.expm1(far) - far)
        return torch.where(
            weights.eta[:, 0] > 0.0, weights.eta[:, 0] * (alpha * each).sum(1), plain
        )

    def look_again(self) -> None:
        """The same weights, by engines that have changed."""
        self.state = self.look(self.state.alpha, [point.g for point in self.state.points])

    def _misplaced(self, engine: Engine) -> Tensor:
        """Return the mass that may be in wrong columns of a term, (B,)."""
        misplaced = self.closeness
        if hasattr(self, "state"):
            size = self.state.points[0].dual.double().abs()
            misplaced = misplaced * size / engine.problem.scale[:, 0].double()
        return misplaced.clamp(min=engine.noise, max=FIRST_MISPLACED).to(engine.problem.home.dtype)

    def _limit(self, step: Tensor) -> Tensor:
        """Beyond 1 / eta a step goes further than the best answer to the costs is."""
        size = self.state.slope.abs().amax(1, keepdim=True).clamp(min=1e-300)
        return torch.minimum(torch.minimum(step, 1.0 / self.weights.eta), 1e6 / size)

    def _parts(self) -> tuple[Tensor, Tensor]:
        """Return misplaced mass times s / F, and the regret over D, (B,)."""
        size = self._size()
        errors = [
            point.error.double() * engine.problem.scale[:, 0].double() / size
            for point, engine in zip(self.state.points, self.engines, strict=True)
        ]
        # Errors of a difference count relative to its parts, where there is nothing left of it.
        least = torch.maximum(self.state.value.abs(), self.tol * size)
        return torch.stack(errors).amax(0), self.state.regret / least

    def _size(self) -> Tensor:
        """Return the cost between x and y that errors are relative to, (B,)."""
        return torch.maximum(self.state.points[0].dual.double().abs(), self.floor)

    def off(self) -> Tensor:
        """Estimate the relative error of the gradient, (B,); see `frot.solvers.entropic.ascent`."""
        error, regret = self._parts()
        return 0.5 * GRADIENT_FACTOR * error + 0.5 * GRADIENT_FACTOR * regret.sqrt()

    def run(self, limit: int) -> None:
        """Step until the gradient is as close as was asked for.

        Or until precision is at its end: twelve steps in a row that neither rise nor come closer.
        """
        idle, least, most = 0, float("inf"), (self.tol / GRADIENT_FACTOR) ** 2
        for _ in range(limit):
            error, regret = self._parts()
            if bool(((error <= self.tol / GRADIENT_FACTOR) & (regret <= most)).all()) or idle >= 12:
                return
            if self.slow:
                return
            off = float(self.off().sum())
            if off < 0.9 * least:
                idle, least = 0, off
            self.steps += 1
            if self.steps >= MIRROR_STEPS and not self.curved:
                self._curve()
            self.closeness = torch.minimum(self.closeness, self._wanted(regret))
            idle = 0 if self._advance(error) else idle + 1

    def _curve(self) -> None:
        """Go on by Newton's steps, where there are second derivatives."""
        if all(engine.newton_pays and has_double(engine) for engine in self.engines):
            self.curved, self.mirror_step = True, self.step
            # What they are made of was not kept.
            self.look_again()

    def _wanted(self, regret: Tensor) -> Tensor:
        """Return the mass that may be in wrong columns, over |value| / scale, (B,).

        Regrets are of second order in what group costs are off by where there is an eta, and of
        first order otherwise: these costs have to be as close as the regret after the next step is
        to be, a tenth of this one's. (Of 1000 points in 8 groups a step of training then takes .5
        seconds, and .7 where they are as close as this one's.)
        """
        smooth = (0.3 * regret.sqrt()).clamp(min=0.5 * self.tol / GRADIENT_FACTOR)
        size = self._size()
        least = torch.maximum(self.state.value.abs() / size, torch.full_like(size, self.tol))
        sharp = 0.3 * least * (0.1 * regret).clamp(min=(self.tol / GRADIENT_FACTOR) ** 2)
        return torch.where(self.weights.eta[:, 0] > 0.0, smooth, sharp)

    def _advance(self, error: Tensor) -> bool:
        """Take a step; return whether some member rose."""
        weights, state = self.weights, self.state
        move = self._move()
        alpha = weights.softmax(safe_log(state.alpha) + move)
        ahead = self.look(alpha, [point.g for point in state.points])
        size = state.points[0].dual.double().abs()
        noise = max(engine.noise for engine in self.engines)
        # Potentials that are not there yet miss dual values by the square of what they lack.
        unseen = (noise + error**2) * size
        rise = ahead.value - state.value
        taken = rise >= -unseen
        self.step = self._next_step(ahead, move, taken)
        self.state = _select(taken, ahead, state)
        # A direction may fail, and a rise be unseen, for what group costs are off by.
        closer = torch.minimum(self.closeness, 0.1 * error)
        self.closeness = torch.where(rise > unseen, self.closeness, closer)
        if bool((~taken & (error > self.closeness)).any()):
            # What a step is held against has to be as close as what it came to.
            self.look_again()
        return bool((rise > unseen).any())

    def _move(self) -> Tensor:
        r"""Return a step in logarithms of the weights, (B, L).

        Without curvature it is s d, a mirror step. With H, in :math:`u = \sqrt\alpha\,\Delta z`,

        .. math::
            (1 / s - \sqrt\alpha\, H^- \sqrt\alpha)\, u = \sqrt\alpha\, d

        is Newton's for a long s; the positive part of H, which no maximum has, is left out. No
        weight is multiplied by more than e^8.
        """
        state = self.state
        if not self.curved:
            return self.step * state.slope
        curvature: Any = torch.zeros_like(state.alpha)[:, :, None]
        for share, engine, point in zip(SHARES, self.engines, state.points, strict=True):
            assert isinstance(engine, DenseEngine)
            curvature = curvature + share * weight_curvature(engine, point)
        root = state.alpha.sqrt()
        curvature = root[:, :, None] * curvature * root[:, None, :]
        # Weights sum to one: along their roots nothing moves.
        inside = torch.eye(root.shape[1]).to(root) - root[:, :, None] * root[:, None, :]
        values, vectors = torch.linalg.eigh(inside @ curvature @ inside)
        along = (vectors.mT @ (root * state.slope)[:, :, None])[..., 0]
        along = along / (1.0 / self.step - values.clamp(max=0.0))
        u = (vectors @ along[:, :, None])[..., 0]
        u = u - root * (root * u).sum(1, keepdim=True)
        return (u / root.clamp(min=1e-100)).clamp(-8.0, 8.0)

    def _next_step(self, ahead: State, move: Tensor, taken: Tensor) -> Tensor:
        """Return the length of the next step, (B, 1): by Barzilai and Borwein, or of Newton's."""
        state = self.state
        if self.curved:
            sizes = [(state.alpha * z**2).sum(1, keepdim=True) for z in (move, state.slope)]
            # However long it was asked to be, this is how long it was.
            long = torch.minimum(self.step, (sizes[0] / sizes[1].clamp(min=1e-300)).sqrt())
            return self._limit(torch.where(taken[:, None], 10.0 * self.step, 0.3 * long))
        dz = safe_log(ahead.alpha) - safe_log(state.alpha)
        dz = dz - (ahead.alpha * dz).sum(1, keepdim=True)
        bend = -(ahead.alpha * dz * (ahead.slope - state.slope)).sum(1, keepdim=True)
        better = (ahead.alpha * dz**2).sum(1, keepdim=True) / bend
        longest = 10.0 * self.step
        better = torch.where(bend > 0.0, better, longest)
        better = torch.minimum(torch.maximum(better, 0.1 * self.step), longest)
        return self._limit(torch.where(taken[:, None], better, 0.3 * self.step))


def _select(chosen: Tensor, yes: State, no: State) -> State:
    """Return, member by member, the one state or the other."""
    points = tuple(
        select(torch, chosen, new, old) for new, old in zip(yes.points, no.points, strict=True)
    )
    parts = {}
    for name in ("alpha", "value", "phi", "slope", "regret"):
        new, old = getattr(yes, name), getattr(no, name)
        parts[name] = torch.where(chosen.view(-1, *[1] * (new.ndim - 1)), new, old)
    return State(points=points, **parts)
