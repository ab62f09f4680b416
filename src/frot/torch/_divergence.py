r"""The debiased loss with several groups: a divergence whose three terms share their weights.

.. math::
    D(x, y) = \max_\alpha\; S_\alpha(x, y) - \eta\,\mathrm{KL}(\alpha | q), \qquad
    S_\alpha(x, y) = W_\alpha(x, y) - \tfrac12 W_\alpha(x, x) - \tfrac12 W_\alpha(y, y) ,

with :math:`W_\alpha` the entropic cost of the mixed cost :math:`\sum_l \alpha_l C_l`. The gradient
in the weights is that of the debiased group costs,
:math:`\phi = \phi^{xy} - \tfrac12 \phi^{xx} - \tfrac12 \phi^{yy}`. The objective is not concave:
mirror steps go up from q, or from the last call's weights if these are better, and never down, so
that :math:`D \ge S_q \ge 0`. Every term is ordinary Sinkhorn at given weights, done by the engines
of `frot.solvers.sinkhorn`.

The length of a step is that of Barzilai and Borwein, in logarithms z of the weights and the
direction :math:`d = \phi - \eta \log (\alpha / q)`:
:math:`s = \langle \Delta z, \Delta z \rangle_\alpha / -\langle \Delta z, \Delta d \rangle_\alpha`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from frot._base.errors import collect_warnings, warn_caller
from frot._base.validate import check_prior
from frot.costs import MEMORY_BUDGET
from frot.costs.geometry import Geometry
from frot.groups.groups import Groups
from frot.problem.adversary import simplex_of
from frot.solvers.sinkhorn.absent import potentials_at
from frot.solvers.sinkhorn.ascent import PLAN, WEIGHTS
from frot.solvers.sinkhorn.dense import DenseEngine, dense_bytes
from frot.solvers.sinkhorn.engine import Engine, Point, select
from frot.solvers.sinkhorn.kernel import Gibbs
from frot.solvers.sinkhorn.run import SINGLE_TO
from frot.solvers.sinkhorn.stream import StreamEngine
from frot.solvers.sinkhorn.terms import BatchTerms
from frot.torch._solved import (
    LIFT,
    BatchProblem,
    Images,
    Results,
    Solved,
    batch_costs,
    feature_weights,
    solve_members,
)

# What D has of x with y, x with itself and y with itself.
SHARES = (1.0, -0.5, -0.5)
# Mass in wrong columns that the first sweeps leave, and as a share of the root of the regret.
FIRST_NEAR, NEAR = 1e-2, 0.3
# A step that fails is shortened by the first; one that succeeds is made no longer than the second.
SHRINK, GROW = 0.3, 10.0
# Steps in a row that neither rise nor come closer by a share before precision is at its end.
PATIENCE, CLOSER = 12, 0.9
# Units in the last place of group costs that a regret of zero is off by.
REGRET_UNITS = 64.0


@dataclass(frozen=True, eq=False)
class SolvedAt(Solved):
    """One of the three terms at the shared weights; `gibbs` is its plan."""

    gibbs: Gibbs | None = None

    def products(self, x: Tensor | None, y: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """Return the products of the plans and y, (B, n, d), and of x and the plans, (B, m, d)."""
        assert self.gibbs is not None
        ahead: list[Tensor] = []
        back: Tensor | None = None
        for part, block in self.gibbs.batches(self.gibbs.parts):
            if y is not None:
                ahead.append(block @ y)
            if x is not None:
                found = block.mT @ x[:, part]
                back = found if back is None else back + found
        return torch.cat(ahead, dim=1) if ahead else None, back


@dataclass(frozen=True, eq=False)
class Divergence:
    """What was found for a batch.

    Attributes
    ----------
    alpha : tensor of shape (B, L)
        The shared weights.
    kl : tensor of shape (B,)
        Their divergence from the prior.
    terms : tuple of three SolvedAt
    step : tensor of shape (B, 1)
        Length of the last step on the weights.
    off : tensor of shape (B,)
        Relative error of the gradient by the points, estimated.
    steps : int
    """

    alpha: Tensor
    kl: Tensor
    terms: tuple[SolvedAt, SolvedAt, SolvedAt]
    step: Tensor
    off: Tensor
    steps: int


def solve_divergence(
    asked: BatchProblem, before: tuple[BatchProblem, Divergence] | None = None
) -> Divergence:
    """Find the weights that the three terms share, and what these cost there.

    Parameters
    ----------
    asked : BatchProblem
        Of x and y, with eps > 0.
    before : pair, optional
        What was asked for and found last, to start from where it is near.
    """
    if before is not None and asked.same(before[0]):
        found = before[1]
    else:
        near = before is not None and asked.near(before[0])
        with collect_warnings():
            found = _solve(asked, before[1] if near and before is not None else None)
    worst = int(found.off.argmax())
    if float(found.off[worst]) > asked.tol:
        which = f" of member {worst}" if len(found.off) > 1 else ""
        warn_caller(
            f"FRWDLoss: the gradient{which} is off by about {float(found.off[worst]):.1e} where "
            f"{asked.tol:.1e} was asked for. Raise eps or max_iter.",
            str(Path(torch.__file__).parent),
        )
    return found


def certified_at(asked: BatchProblem, alpha: Tensor) -> Results:
    """Prove intervals of the costs between x and y at weights (B, L), mixed into one group."""
    (x, y, a, b), (_, eps, level) = asked.points, asked.amounts
    root = feature_weights(alpha, asked.groups).sqrt()[:, None, :]
    count = asked.groups.n_features
    points = (x.double() * root, y.double() * root, a, b)
    # The root, and the product with it.
    metric = Images(asked.metric.units(count) + 2.0)
    mixed = replace(
        asked, points=points, amounts=(torch.zeros_like(eps), eps, level), prior=None, k=1,
        groups=Groups.parse({"mixed": list(range(count))}, count, None), metric=metric,
    )  # fmt: skip
    return solve_members(mixed).results


def _solve(asked: BatchProblem, before: Divergence | None) -> Divergence:
    x, y, a, b = asked.points
    pairs = ((x, y, a, b), (x, x, a, a), (y, y, b, b))
    same = torch.equal(x, y) and torch.equal(a, b)
    costs = [
        batch_costs(replace(asked, points=pair, symmetric=same or at > 0))
        for at, pair in enumerate(pairs)
    ]
    first = costs[0]
    weights = BatchTerms.of(
        first.geometry.home.double(), *first.weights,
        simplex_of(asked.k, 0.0, check_prior(asked.prior, len(asked.groups))),
        first.eps, first.means, first.eta,
    )  # fmt: skip
    single = x.dtype == torch.float32 or asked.tol / PLAN >= SINGLE_TO
    engines = []
    for cost in costs:
        # Weights are given: what they earn besides costs is added once, and not by the terms.
        terms = BatchTerms.of(
            cost.geometry.home.double(), *cost.weights, simplex_of(asked.k, 0.0, None), cost.eps,
            cost.means, symmetric=cost.symmetric, tau=cost.prices,
        )  # fmt: skip
        search = cost.geometry.single() if single and terms.single_safe else cost.geometry
        fits = dense_bytes(*cost.geometry.shape[2:]) <= MEMORY_BUDGET
        kind = DenseEngine if fits else StreamEngine
        engines.append(kind(search, terms.at(search.home), cost.geometry))
    ascent = SharedAscent(engines, weights, asked.tol)
    ascent.start(before)
    ascent.run(asked.max_iter)
    ascent.engines = [engine.double() for engine in engines]
    ascent.look_again()
    ascent.run(asked.max_iter - ascent.steps)
    state = ascent.state
    prior = weights.prior
    solved = [
        _term(engine, cost.true, point, asked.tau is not None)
        for engine, cost, point in zip(ascent.engines, costs, state.points, strict=True)
    ]
    kl = torch.special.xlogy(state.alpha, state.alpha / prior).sum(1)
    return Divergence(
        state.alpha, kl, (solved[0], solved[1], solved[2]), ascent.step, ascent.off(), ascent.steps
    )


def _term(engine: Engine, true: Geometry, point: Point, soft: bool) -> SolvedAt:
    """Collect what gradients need of one term, in double precision."""
    f, g = point.f, point.g
    if true is not engine.geometry:
        f, g = potentials_at(true, engine.terms, point.alpha, f, g)
    crowd = engine.geometry.shape[0]
    gibbs = Gibbs(
        engine.geometry, engine.terms, point.alpha, point.g, torch.ones_like(point.g), crowd
    )
    nothing = torch.zeros_like(point.dual)
    return SolvedAt((), point.dual, nothing, point.alpha, point.phi, f, g, soft, gibbs)


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


class SharedAscent:
    """Mirror steps on the weights of a batch, none of which goes down."""

    def __init__(self, engines: list[Engine], weights: BatchTerms, tol: float) -> None:
        self.engines, self.weights, self.tol = engines, weights, tol
        self.closeness = torch.full_like(weights.eta[:, 0], FIRST_NEAR)
        self.steps = 0
        self.rounding = REGRET_UNITS * torch.finfo(torch.float64).eps
        self.state: State
        self.step: Tensor

    def start(self, before: Divergence | None) -> None:
        """Begin at the prior, or where the last call ended, if that is higher."""
        count = len(self.closeness)
        prior = self.weights.project(self.weights.prior.expand(count, -1))
        potentials = None if before is None else [term.gibbs.g for term in before.terms]  # type: ignore[union-attr]
        self.state = self.look(prior, potentials)
        largest = self.state.slope.abs().amax(1, keepdim=True)
        self.step = self._limit(2.0 / largest.clamp(min=1e-300))
        if before is not None:
            # Where points have moved by little, the first sweeps may well be the last.
            self.closeness = torch.full_like(self.closeness, self.tol / PLAN)
            # A weight of zero would never rise again.
            last = self.look((1.0 - LIFT) * before.alpha + LIFT * prior, potentials)
            higher = last.value > self.state.value
            self.step = torch.where(higher[:, None], before.step, self.step)
            self.state = _select(higher, last, self.state)

    def look(self, alpha: Tensor, potentials: list[Tensor] | None) -> State:
        """Sweep at some weights, from some potentials g of the three terms."""
        points = []
        for at, engine in enumerate(self.engines):
            dtype = engine.terms.home.dtype
            near, mine = self._near(engine), alpha.to(dtype)
            if potentials is None or not bool(torch.isfinite(potentials[at]).all()):
                point = engine.start(mine, near)
            else:
                point = engine.sweep(mine, potentials[at].to(dtype), near)
            # Kernels are formed anew at other weights.
            points.append(replace(point, kernel=None, left=None, right=None, base=None))
        weights = self.weights
        value, phi = torch.zeros_like(weights.eta[:, 0]), torch.zeros_like(alpha)
        for share, point in zip(SHARES, points, strict=True):
            value = value + share * point.dual.double()
            phi = phi + share * point.phi.double()
        reward = weights.reward(alpha)
        slope = phi - weights.eta * (weights.log(alpha) - torch.log(weights.prior))
        slope = slope - (alpha * slope).sum(1, keepdim=True)
        regret = self._regret(alpha, phi, reward)
        bonus = weights.reward(weights.prior)
        return State(
            alpha, tuple(points), value + reward - bonus, phi, slope, regret.clamp(min=0.0)
        )

    def _regret(self, alpha: Tensor, phi: Tensor, reward: Tensor) -> Tensor:
        r"""Return what the best answer to phi earns more than alpha, (B,).

        With eta it is :math:`\eta\,\mathrm{KL}(\alpha | \alpha^*)`, whose summands have no sign to
        cancel; otherwise a difference of values, known to some units of these.
        """
        weights = self.weights
        worst = weights.worst(phi) - (alpha * phi).sum(1) - reward
        size = self.rounding * phi.abs().amax(1)
        plain = (worst - size).clamp(min=0.0)
        if not weights.smooth or weights.k > 1:
            return plain
        far = weights.log(weights.answer(phi)) - weights.log(alpha)
        each = torch.where(far.abs() < 1e-4, 0.5 * far**2, torch.expm1(far) - far)
        return torch.where(
            weights.eta[:, 0] > 0.0, weights.eta[:, 0] * (alpha * each).sum(1), plain
        )

    def look_again(self) -> None:
        """The same weights, by engines that have changed."""
        self.state = self.look(self.state.alpha, [point.g for point in self.state.points])

    def _near(self, engine: Engine) -> Tensor:
        """Return the mass that may be in wrong columns of a term, (B,)."""
        near = self.closeness
        if hasattr(self, "state"):
            size = self.state.points[0].dual.double().abs()
            near = near * size / engine.terms.scale[:, 0].double()
        return near.clamp(min=engine.noise, max=FIRST_NEAR).to(engine.terms.home.dtype)

    def _limit(self, step: Tensor) -> Tensor:
        """Beyond 1 / eta a step goes further than the best answer to the costs is."""
        return torch.minimum(step, 1.0 / self.weights.eta)

    def _parts(self) -> tuple[Tensor, Tensor]:
        """Return misplaced mass times s / F, and the regret over D, (B,)."""
        size = self.state.points[0].dual.double().abs().clamp(min=1e-300)
        errors = [
            point.error.double() * engine.terms.scale[:, 0].double() / size
            for point, engine in zip(self.state.points, self.engines, strict=True)
        ]
        # Errors of a difference count relative to its parts, where there is nothing left of it.
        least = torch.maximum(self.state.value.abs(), self.tol * size)
        return torch.stack(errors).amax(0), self.state.regret / least

    def off(self) -> Tensor:
        """Estimate the relative error of the gradient, (B,); see `frot.solvers.sinkhorn.ascent`."""
        error, regret = self._parts()
        return 0.5 * PLAN * error + 0.5 * WEIGHTS * regret.sqrt()

    def run(self, limit: int) -> None:
        """Step until the gradient is as close as was asked for, or nothing rises any more."""
        idle, least, most = 0, float("inf"), (self.tol / WEIGHTS) ** 2
        for _ in range(limit):
            error, regret = self._parts()
            if bool(((error <= self.tol / PLAN) & (regret <= most)).all()) or idle >= PATIENCE:
                return
            off = float(self.off().sum())
            if off < CLOSER * least:
                idle, least = 0, off
            self.steps += 1
            wanted = (NEAR * regret.sqrt()).clamp(min=0.5 * self.tol / PLAN)
            self.closeness = torch.minimum(self.closeness, wanted)
            idle = 0 if self._advance(error) else idle + 1

    def _advance(self, error: Tensor) -> bool:
        """Take a step; return whether some member rose."""
        weights, state = self.weights, self.state
        alpha = weights.softmax(weights.log(state.alpha) + self.step * state.slope)
        ahead = self.look(alpha, [point.g for point in state.points])
        size = state.points[0].dual.double().abs()
        noise = max(engine.noise for engine in self.engines)
        # Potentials that are not there yet miss dual values by the square of what they lack.
        unseen = (noise + error**2) * size
        rise = ahead.value - state.value
        taken = rise >= -unseen
        dz = weights.log(alpha) - weights.log(state.alpha)
        dz = dz - (alpha * dz).sum(1, keepdim=True)
        bend = -(alpha * dz * (ahead.slope - state.slope)).sum(1, keepdim=True)
        better = (alpha * dz**2).sum(1, keepdim=True) / bend
        longest = GROW * self.step
        better = torch.where(bend > 0.0, better, longest)
        better = torch.minimum(torch.maximum(better, self.step / GROW), longest)
        self.step = self._limit(torch.where(taken[:, None], better, SHRINK * self.step))
        self.state = _select(taken, ahead, state)
        if bool((~taken & (error > self.closeness)).any()):
            # What a step is held against has to be as close as what it came to.
            self.look_again()
        return bool((rise > unseen).any())


def _select(chosen: Tensor, yes: State, no: State) -> State:
    """Return, member by member, the one state or the other."""
    points = tuple(
        select(torch, chosen, one, other) for one, other in zip(yes.points, no.points, strict=True)
    )
    parts = {}
    for name in ("alpha", "value", "phi", "slope", "regret"):
        one, other = getattr(yes, name), getattr(no, name)
        parts[name] = torch.where(chosen.view(-1, *[1] * (one.ndim - 1)), one, other)
    return State(points=points, **parts)
