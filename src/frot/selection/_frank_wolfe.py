r"""Frank-Wolfe for one comparison of two classes, eta by perplexity, with a proven interval.

Frank-Wolfe with a line search, on few features at a time. Of thousands of groups alpha uses tens,
so that the plan is found on the groups that carry its weight, and all of them are looked at only
between rounds: groups that grew heavy enter, and both bounds of the whole problem are taken. With
``eta="auto"`` eta follows the costs, so that the perplexity of the weights that answer the final
plan is the target exactly, and the bounds are those of the problem at that eta.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from frot.groups.groups import Groups
from frot.plans.combine import combine_plans
from frot.plans.feasible import fill
from frot.plans.plan import Plan
from frot.problem.adversary import Simplex, SimplexFamily
from frot.problem.bounds import Lower, Upper, cheap_lower_bound, lower_bound, upper_bound
from frot.problem.problem import Problem
from frot.problem.result import Result
from frot.selection._costs import ActiveCosts, BlockedCosts, heaviest
from frot.solvers.drive import Callback, Offer, drive
from frot.solvers.frank_wolfe import line_search
from frot.solvers.oracles import NetworkSimplex

# Groups that alpha uses for each one to be selected.
GROUPS_PER_PICK = 3.0
# Newton steps on log eta, of which four or five are taken.
STEPS = 60


def target_perplexity(count: int, groups: int) -> float:
    """Return three times the number of picks, and at most half of the groups.

    More than that and the weights would be near uniform, which tells nothing apart.

    Examples
    --------
    >>> target_perplexity(10, 2000), target_perplexity(5, 9)
    (30.0, 5.0)
    """
    return min(GROUPS_PER_PICK * count, 0.5 * (1.0 + groups))


def eta_for_perplexity(phi: np.ndarray, target: float, start: float | None = None) -> float:
    r"""Find eta such that :math:`\exp H(\mathrm{softmax}(\phi / \eta))` is `target`.

    The perplexity rises with eta from the number of groups that tie for the largest cost to the
    number of groups, L. Where even the smallest eta is above the target, that smallest is
    returned. `phi`, of shape (L,), are the costs of the groups; `start` is a guess.

    Examples
    --------
    >>> phi = np.array([3.0, 2.0, 1.0, 0.0])
    >>> eta = eta_for_perplexity(phi, 2.0)
    >>> alpha = np.exp(phi / eta) / np.exp(phi / eta).sum()
    >>> round(float(np.exp(-alpha @ np.log(alpha))), 6)
    2.0
    """
    below = phi - phi.max()
    spread = -float(below.min())
    if spread == 0.0:
        return max(float(phi.max()), 1.0)
    low, high = np.log(1e-6 * spread), np.log(1e6 * spread)
    wanted = np.log(target)
    at = float(np.clip(np.log(start if start else 0.1 * spread), low, high))
    for _ in range(STEPS):
        eta = float(np.exp(at))
        with np.errstate(under="ignore"):
            weight = np.exp(below / eta)
        total = float(weight.sum())
        mean = float(weight @ below) / total
        entropy = np.log(total) - mean / eta
        if abs(entropy - wanted) <= 1e-9:
            break
        if entropy > wanted:
            high = at
        else:
            low = at
        # The entropy's slope in log eta is the variance of phi / eta.
        slope = (float(weight @ np.square(below)) / total - mean**2) / eta**2
        newton = at - (entropy - wanted) / slope if slope > 1e-12 else np.inf
        at = float(newton) if low < newton < high else 0.5 * (low + high)
        if high - low < 1e-12:
            break
    return float(np.exp(at))


def capped_eta(
    phi: np.ndarray, target: float, adversary: SimplexFamily, start: float | None = None
) -> float:
    """Find eta such that the perplexity of the best answer to `phi` is `target`, with a cap.

    It rises with eta, from k at least; where the smallest eta is above the target, that is
    returned. `start` is a guess.

    Examples
    --------
    >>> from frot import CappedSimplex
    >>> phi = np.array([3.0, 2.0, 1.0, 0.0])
    >>> eta = capped_eta(phi, 3.0, CappedSimplex(2))
    >>> alpha = CappedSimplex(2, eta).best(phi)[1]
    >>> round(float(np.exp(-alpha @ np.log(alpha))), 6)
    3.0
    """
    from scipy.optimize import brentq

    spread = float(phi.max() - phi.min())
    if spread == 0.0:
        return max(float(phi.max()), 1.0)

    def over(at: float) -> float:
        _, alpha = adversary.having(float(np.exp(at)), None).best(phi)
        on = alpha[alpha > 0.0]
        return -float(on @ np.log(on)) - float(np.log(target))

    least, most = float(np.log(1e-6 * spread)), float(np.log(1e6 * spread))
    at = float(np.clip(np.log(start), least, most)) if start else float(np.log(0.1 * spread))
    low = high = at
    width = 0.05
    while over(low) > 0.0:
        if low == least:
            return float(np.exp(least))
        high, low, width = low, max(low - width, least), 4.0 * width
    while high == low or over(high) <= 0.0:
        if high == most:
            return float(np.exp(most))
        low, high, width = high, min(high + width, most), 4.0 * width
    found: Any = brentq(over, low, high, xtol=1e-12)
    return float(np.exp(found))


SOLVER = "FrankWolfe(line_search, active groups)"
TOL, MAX_ITER = 1e-2, 500
# Weight of the features that a bound leaves out, as a share of the tolerance: it costs as much.
LEFT_OUT = 0.1
# Weight of the groups that the first rounds leave out; each later one leaves out a fourth of it,
# for what is left out keeps the interval open.
ROUND_LEFT_OUT = 0.02
# Costs of the product plan tell groups apart less than those of a good plan, so that more seem to
# matter; the first round takes so many times the perplexity at most.
FIRST_GROUPS = 5.0
# Steps of a round: few at first, while the groups that matter are still being found.
ROUND_STEPS = (3, 8, 16, 50)
# A round ends before that when the gap on its groups is this share of the tolerance.
ROUND_GAP = 0.8
# Up to so many pairs of samples a run that was stopped has a transport problem solved for its
# bounds, in a fraction of a second.
ONE_CALL_UP_TO = 250_000
# Exchanges between known plans after each new one.
CORRECTIONS = 2
# How closely steps are searched for where there is a cap.
STEP_ACCURACY = 1e-3


@dataclass(frozen=True)
class Eta:
    """How eta is set: a number, or by the perplexity of alpha, but never below `least`.

    `least` is a share of the mean cost. Where classes hardly differ, the optimal plan makes the
    costs of many groups equal, and then no eta but zero gives a small perplexity.
    """

    value: float | None = None
    perplexity: float = 1.0
    least: float = 0.015


@dataclass(frozen=True)
class Watch:
    """Who watches a run, and how many seconds it has."""

    time_limit: float | None = None
    callback: Callback | None = None
    progress: bool = False


UNWATCHED = Watch()


def solve_classes(
    costs: BlockedCosts,
    groups: Groups,
    eta: Eta,
    watch: Watch = UNWATCHED,
    adversary: SimplexFamily | None = None,
    *,
    tol: float = TOL,
    max_iter: int = MAX_ITER,
) -> Result:
    """Solve the problem of two classes; the weights are those that answer the plan found.

    It stops at the relative gap `tol`, or after `max_iter` oracle calls. `groups` gives the names.
    `adversary` says which weights groups may have, and `eta` the entropy of these, whatever the
    adversary says.

    Examples
    --------
    >>> from frot.selection._scaling import Sides
    >>> from frot.selection._scaling import scale_sides
    >>> table = np.random.default_rng(0).normal(size=(20, 30))
    >>> table[10:, 0] += 3.0
    >>> scaled = scale_sides(Sides.of(table, np.arange(10), np.arange(10, 20)))
    >>> res = solve_classes(BlockedCosts(scaled), Groups.each(30), Eta(perplexity=3.0))
    >>> int(res.alpha.argmax()), round(res.perplexity, 6), res.gap <= 1e-2
    (0, 3.0, True)
    """
    run = _Run(costs, groups, eta, adversary or Simplex(), tol, max_iter)
    return drive(
        run.offers(),
        run.problem,
        solver=SOLVER,
        tol=tol,
        max_iter=run.most_calls,
        time_limit=watch.time_limit,
        callback=watch.callback,
        progress=watch.progress,
        before_any=run.last_bounds,
    )


class _Mixture:
    """Plans with their costs in the active groups, and how much of each is in the current one."""

    def __init__(self, plan: Plan, phi: np.ndarray) -> None:
        self.plans, self.phis = [plan], phi[None]
        self.weights, self.phi = np.ones(1), phi

    def move(self, plan: Plan, phi: np.ndarray, gamma: float) -> None:
        """Go a share gamma of the way to a new plan."""
        self.plans.append(plan)
        self.phis = np.vstack([self.phis, phi])
        self.weights = np.append((1.0 - gamma) * self.weights, gamma)
        self.phi = self.phi + gamma * (phi - self.phi)

    def correct(self, adversary: SimplexFamily) -> None:
        """Move weight from the plan that now costs most to the one that costs least."""
        _, alpha = adversary.best(self.phi)
        costs = self.phis @ alpha
        least = int(costs.argmin())
        most = int(np.where(self.weights > 0.0, costs, -np.inf).argmax())
        if least == most:
            return
        full = self.weights[most] * (self.phis[least] - self.phis[most])
        gamma = _step_length(self.phi, self.phi + full, adversary)
        self.phi = self.phi + gamma * full
        moved = gamma * self.weights[most]
        self.weights[least] += moved
        self.weights[most] = 0.0 if gamma == 1.0 else self.weights[most] - moved

    @property
    def combined(self) -> Plan:
        """The current plan; what rounding took from the weights is put back."""
        weights = np.maximum(self.weights, 0.0)
        return combine_plans(self.plans, weights / weights.sum())


class _Run:
    """Frank-Wolfe on one problem, whose eta may follow its costs."""

    def __init__(
        self,
        costs: BlockedCosts,
        groups: Groups,
        eta: Eta,
        weights: SimplexFamily,
        tol: float,
        max_iter: int,
    ) -> None:
        self.costs, self.rule, self.weights, self.tol = costs, eta, weights, tol
        self.a, self.b = costs.scaled.sides.weights
        self.problem = Problem(costs, self.a, self.b, names=groups.names, groups=groups)
        self.oracle = NetworkSimplex()
        self.first = self.problem.independent
        self.eta = 0.0
        self.least = self.rule.least * float(self.first.mean())
        # A first plan takes one call, and its lower bound another.
        self.most_calls = max(max_iter, 2)
        self.calls = self.rounds = 0
        self.seen = np.zeros(len(groups), dtype=bool)
        self.plan: Plan | None = None

    def _eta_at(self, phi: np.ndarray) -> float:
        if self.rule.value is not None:
            return self.rule.value
        if self.weights.k > 1:
            return max(capped_eta(phi, self.rule.perplexity, self.weights, self.eta), self.least)
        return max(eta_for_perplexity(phi, self.rule.perplexity, self.eta), self.least)

    @property
    def adversary(self) -> SimplexFamily:
        """The adversary at the eta of now."""
        return self.weights.having(self.eta, None)

    @property
    def _last_call(self) -> bool:
        """Whether there is but one call left, for the bounds."""
        return self.calls >= self.most_calls - 1

    def offers(self) -> Iterator[Offer]:
        """Alternate between rounds on few groups and bounds on all; an offer for every call."""
        upper, vertex = None, None
        while True:
            near, moved = yield from self._round(upper, vertex)
            assert self.plan is not None
            upper, vertex = self._judge(self.plan), None
            if near or not moved or self._last_call:
                vertex, lower = self._oracle(upper.phi)
                yield Offer(upper, lower, self.problem)
                if not moved:
                    return

    def last_bounds(self, problem: Problem) -> Offer:
        """Bounds of the last plan, or of a first one, for a run that was stopped before its own."""
        n, m = problem.shape[1:]
        plan = self.plan
        if plan is None:
            plan = Plan.from_arcs(*fill(self.a, self.b), (n, m))
        upper = self._judge(plan)
        if n * m <= ONE_CALL_UP_TO:
            return Offer(upper, self._oracle(upper.phi)[1], self.problem)
        return Offer(upper, cheap_lower_bound(self.problem), self.problem)

    def _judge(self, plan: Plan) -> Upper:
        """The plan's upper bound at the eta that its costs call for, which is the problem's now."""
        phi = self.costs.inner(plan)
        self.eta = self._eta_at(phi)
        self.problem = self.problem.having(adversary=self.adversary)
        return upper_bound(self.problem, plan, phi, rounded=True)

    def _oracle(self, phi: np.ndarray) -> tuple[Plan, Lower]:
        """Answer the costs `phi`, transport at that answer, and prove what it proves.

        Leaving light features out of the mixed cost only makes it smaller, costs being >= 0, so
        that potentials that are feasible for the rest are feasible for all.
        """
        _, alpha = self.problem.adversary.best(phi)
        weights = self.costs.feature_weights(alpha)
        kept = np.zeros_like(weights)
        heavy = heaviest(weights, LEFT_OUT * self.tol)
        kept[heavy] = weights[heavy]
        mixed = self.costs.mix_features(kept)
        self.calls += 1
        transport = self.oracle(mixed, self.a, self.b)
        return transport.plan, lower_bound(self.problem, alpha, transport.g, mixed)

    def _round(
        self, at: Upper | None, vertex: Plan | None
    ) -> Generator[Offer, None, tuple[bool, bool]]:
        """Step on the groups that carry the weight, and leave the plan in `plan`.

        Returns whether it is near the optimum of these groups, and whether it is new.
        """
        phi = self.first if at is None else at.phi
        if at is None:
            self.eta = self._eta_at(phi)
        active = self._active(phi)
        costs = ActiveCosts(self.costs, active)
        mixture = None if at is None else _Mixture(at.plan, phi[active])
        steps = ROUND_STEPS[min(self.rounds, len(ROUND_STEPS) - 1)]
        self.rounds += 1
        near = moved = False
        for _ in range(steps):
            here = phi[active] if mixture is None else mixture.phi
            called = vertex is None
            if vertex is None:
                self.eta = self._eta_at(here)
                value, alpha = self.adversary.best(here)
                vertex = self.oracle(costs.mix(alpha), self.a, self.b).plan
                self.calls += 1
                there = costs.inner(vertex)
                near = float(alpha @ (here - there)) <= ROUND_GAP * self.tol * value
            else:
                there = costs.inner(vertex)
            if mixture is None:
                # A first step of length one: the product plan never has to be formed.
                mixture, moved, near = _Mixture(vertex, there), True, False
            elif (gamma := _step_length(here, there, self.adversary)) > 0.0:
                moved = True
                mixture.move(vertex, there, gamma)
                for _ in range(CORRECTIONS):
                    mixture.correct(self.adversary)
            if called:
                if self.plan is None:
                    self.plan = vertex
                yield Offer()
            vertex = None
            if near or self._last_call:
                break
        assert mixture is not None
        self.plan = mixture.combined
        # The groups of the first round are a guess, and bounds after it would be a waste.
        return near and (at is not None or len(active) == len(phi)), moved

    def _active(self, phi: np.ndarray) -> np.ndarray:
        """Return the groups that a round looks at: the heavy ones, and those of earlier rounds.

        A group that was left out again would grow heavy again. Where k groups share the weight at
        least, they have to have a choice.
        """
        _, alpha = self.adversary.best(phi)
        least = 1 if self.weights.k == 1 else 2 * self.weights.k
        if least > 1:
            self.seen[np.argsort(-phi, kind="stable")[:least]] = True
        if self.rounds == 0:
            most = max(int(FIRST_GROUPS * self.rule.perplexity), least)
            heavy = heaviest(alpha, ROUND_LEFT_OUT, most)
        else:
            share = ROUND_LEFT_OUT * 0.25 ** max(self.rounds - len(ROUND_STEPS) + 1, 0)
            heavy = heaviest(alpha, max(share, LEFT_OUT * self.tol))
        self.seen[heavy] = True
        return np.flatnonzero(self.seen)


def _step_length(here: np.ndarray, there: np.ndarray, adversary: SimplexFamily) -> float:
    """Minimise the smoothed maximum between two vectors of costs, to a hundredth.

    Newton on the slope, which rises along the way, kept inside what is known to hold its zero.
    With a cap the slope has kinks, and is bisected.
    """
    if adversary.k > 1:
        return line_search(adversary, here, there, STEP_ACCURACY)
    eta = adversary.eta
    direction = there - here
    low, high, gamma = 0.0, 1.0, 0.0
    for _ in range(20):
        score = (here + gamma * direction) / eta
        weight = np.exp(score - score.max())
        weight /= weight.sum()
        slope = float(weight @ direction)
        if gamma == 0.0 and slope >= 0.0:
            return 0.0
        if slope < 0.0:
            low = gamma
        else:
            high = gamma
        curve = (float(weight @ np.square(direction)) - slope**2) / eta
        newton = gamma - slope / curve if curve > 0.0 else 1.0
        at = newton if low < newton < high else 0.5 * (low + high)
        if newton >= 1.0 and high == 1.0:
            at = 0.5 * (low + 1.0) if low > 0.9 else min(1.0, max(0.5, 2.0 * low))
        if abs(at - gamma) <= 1e-2 * at:
            return at
        gamma = at
    return gamma
