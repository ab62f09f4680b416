"""Subspace-robust transport (Paty & Cuturi 2019), with bounds from both sides."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from scipy.linalg import eigh, qr

from frot._base.spelling import second_names
from frot._base.stopping import StoppingLimits, check_limits, finish
from frot._base.validate import check_callable, check_count, check_flag
from frot.costs import FactoredCosts
from frot.costs.protocol import UNIT
from frot.groups.groups import Groups
from frot.plans.feasible import round_plan
from frot.plans.plan import Plan
from frot.problem.bounds import Lower, Upper
from frot.problem.problem import Problem
from frot.problem.result import Chosen, Result
from frot.relatives._displacement import Displacements, reduce_points
from frot.relatives._fantope import best_planes, top_sum
from frot.relatives._smoothed import Smoothed
from frot.relatives.pair import PointPair, ProvenPlan, check_pair, displacement_doubt, transport_at
from frot.solvers.drive import Callback, Offer, drive

# Directions beyond k that the adversary may mix in.
EXTRA = 20
# Directions of an answer enter the basis where this much of them is not in it yet.
NEW = 0.03
# Up to this many features they are all in the basis.
WHOLE = 64
# How far back towards the best answer so far the next one is tried, once one was no better, and
# what is left of that after one that was: steadier, and so faster.
BACK = 0.6
SHORTER = 0.9
# Share of the gap to which mixtures of known plans are solved.
SOLVE_TO = 0.3
# Plans kept; beyond it those without weight go.
PLANS_KEPT = 150
# Rounds without any progress after which nothing more is to be expected.
IDLE = 40
# From this many pairs of points on, smoothed steps come first.
SMOOTH_FROM = 10_000
# Products with V before the first step, where eigenvectors would take too long.
REFINED = 10
# Smoothed steps a round at most.
STEPS = 5
# Bounds are proven on the way whenever they should have come this much closer.
CLOSER = 0.3
# So many rounds are proven in any case.
PROVEN_EVERY = 10
# Share of the gap, or of the tolerance, that a proof may give away.
ROOM = 0.05


@second_names
def srw(
    X: Any,
    Y: Any,
    k: int,
    *,
    a: Any = None,
    b: Any = None,
    normalise_weights: bool = False,
    tol: float = 1e-3,
    max_iter: int = 300,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Result:
    r"""Subspace-robust transport: the plan that is best where the worst k directions count.

    .. math::
        \mathrm{SRW}_k^2 = \min_{\Pi \in U(a, b)} \;
        \max_{0 \preceq \Omega \preceq I,\; \mathrm{tr}\, \Omega = k} \langle \Omega, V_\Pi \rangle,
        \qquad V_\Pi = \sum_{ij} \pi_{ij} (x_i - y_j)(x_i - y_j)^\top

    `value` is this squared cost, as everywhere in frot; its root is the distance. The upper bound
    is the sum of the k largest eigenvalues of :math:`V_\Pi` at a feasible plan, the lower bound an
    exact transport at a feasible :math:`\Omega`. k = d is :math:`W_2^2`; k = 1 bounds `max_sliced`.

    First both sides are smoothed, and entropic plans averaged; every round is a few sweeps and
    products with about k directions. Bounds are proven only once they should have become much
    closer. Then each round finds the best mixture of all plans known so far against the smoothed
    Fantope (Newton steps in a basis of about 2 k directions), and transports exactly at the
    answer. Memory is O((n + m) d + n m): features beyond the number of points are turned away, so
    a matrix of their size squared is no more than that, and it is formed for proofs only.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d), or DataFrames
    k : int
        Dimension of the subspace, from 1 to d.
    a, b : arrays of shape (n,) and (m,), optional
        Weights that sum to one; uniform if left out.
    normalise_weights : bool
        Divide a and b by their sums.
    tol : float
        Relative gap at which to stop.
    max_iter : int
        Rounds at most, each with one transport.
    time_limit : float, optional
        Seconds.
    callback, progress :
        As in `solve`.

    Returns
    -------
    Result
        ``chosen.array`` holds the directions of :math:`\Omega`, shape (d, s), and
        ``chosen.weights`` its eigenvalues. ``alpha`` are these divided by k, and ``phi`` is k
        times the cost of the plan along each direction, so that their product is what
        :math:`\Omega` makes of the plan.

    Examples
    --------
    >>> import frot
    >>> res = frot.srw([[0.0, 0.0]], [[3.0, 4.0]], k=1)
    >>> round(res.value, 9), abs(res.chosen.array[:, 0]).round(3)
    (25.0, array([0.6, 0.8]))
    """
    pair = check_pair(X, Y, a, b, normalise_weights)
    k = check_count(k, "k", most=pair.X.shape[1], of=" (the number of features)")
    limits = check_limits(tol, max_iter, time_limit)
    check_callable(callback, "callback")
    check_flag(progress, "progress")
    begin = time.perf_counter()
    rounds = _Rounds.begin(pair, k, limits)
    first = rounds.first()
    return finish(
        lambda: drive(
            chain([first], rounds.offers()),
            pair.problem,
            solver=f"srw(k={k})",
            tol=limits.tol,
            max_iter=limits.max_iter,
            time_limit=limits.time_limit,
            callback=callback,
            progress=progress,
        ),
        lambda result: rounds.finish(result, time.perf_counter() - begin).at(pair.home),
    )


@dataclass(eq=False)
class _Rounds:
    """Plans known so far, the basis the adversary mixes in, and the best answers of both."""

    pair: PointPair
    k: int
    at: Displacements
    turned: np.ndarray | None
    limits: StoppingLimits
    plans: list[Plan] = field(default_factory=list)
    weights: np.ndarray = field(default_factory=lambda: np.ones(1))
    basis: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    factor: np.ndarray | None = None
    lower: float = -np.inf
    upper: float = np.inf
    back: float = 0.0

    @classmethod
    def begin(cls, pair: PointPair, k: int, limits: StoppingLimits) -> _Rounds:
        """Centre the points, and turn them where they are fewer than their features."""
        X, Y, turned = reduce_points(pair.costs.X, pair.costs.Y)
        # In fewer coordinates than k the subspace holds them all.
        return cls(pair, min(k, X.shape[1]), Displacements(X, Y, pair.a, pair.b), turned, limits)

    @property
    def whole(self) -> bool:
        """Whether the basis is all there is."""
        size = self.at.features
        return size <= max(WHOLE, self.k + EXTRA)

    def first(self) -> Offer:
        """Plain transport, which answers Omega = (k / d) I."""
        plan, plain = transport_at(self.pair.problem)
        share = self.k / self.at.features
        self.plans = [round_plan(plan, self.pair.a, self.pair.b)]
        upper = self._trace(self.plans[0])
        if self.at.dense:
            judged, self.basis = self._judge(plan)
            upper = judged or upper
        else:
            # Any directions will do where it would take long to find the best.
            draw = np.random.default_rng(0).normal(size=(self.at.features, self.k + EXTRA))
            self.basis = np.linalg.qr(self.at.apply(plan, draw))[0]
        self.upper = min(self.upper, upper.bound)
        self.lower = share * plain.bound
        if self.whole:
            # What proves the bound so far is where answers are held back to.
            self.factor = np.sqrt(share) * np.eye(self.at.features)
        lower = replace(plain, bound=self.lower, slack=share * plain.slack)
        return Offer(upper, lower)

    def offers(self) -> Iterator[Offer]:
        """Average smoothed plans as long as that helps, then mix exact ones."""
        if len(self.at.X) * len(self.at.Y) >= SMOOTH_FROM and self.upper > 1e-9 * self.at.squares:
            yield from self._smoothed()
        elif self.whole:
            self.basis = np.eye(self.at.features)
        yield from self._mixtures()

    def _smoothed(self) -> Iterator[Offer]:
        """Average entropic plans, and prove bounds whenever they should be much closer."""
        tol, most = self.limits.tol, self.limits.max_iter
        plane = self.at.moments(self.plans[0], self.basis)
        values, turn = eigh(plane)
        smooth = Smoothed.begin(self.at, self.k, self.plans[0], values, self.basis @ turn)
        if not self.at.dense:
            # Answers along wrong directions would do more harm than these products cost.
            for _ in range(REFINED):
                smooth.refine()
        number = 1
        while not smooth.over:
            factor, wanted = smooth.vectors, 0.0
            for _ in range(STEPS):
                factor = smooth.step()
                # Bounds that are wanted now: within the tolerance, or much closer if that is cheap.
                much = CLOSER * (self.upper - self.lower) if self.at.dense else 0.0
                wanted = max(0.93 * tol * smooth.upper, much)
                if smooth.done or smooth.upper - max(self.lower, smooth.lower) <= wanted:
                    break
            number += 1
            due = number >= most or number % PROVEN_EVERY == 0
            lower = upper = None
            if due or smooth.upper - max(self.lower, smooth.lower) <= wanted:
                _, lower = self._exact(factor)
                smooth.learn(lower.bound)
                if lower.bound > self.lower:
                    self.lower, self.factor = lower.bound, factor
            if due or smooth.upper - self.lower <= wanted:
                smooth.refine()
                upper = self._prove(smooth.plan, smooth.values, smooth.vectors)
            yield Offer(upper, lower)
        self.plans = [round_plan(smooth.plan, self.pair.a, self.pair.b), *self.plans]
        self.weights = np.array([0.9, 0.1])
        self.basis = np.eye(self.at.features) if self.whole else smooth.vectors

    def _mixtures(self) -> Iterator[Offer]:
        """Mix the known plans, transport at the adversary's answer, and widen the basis."""
        idle = 0
        while idle < IDLE:
            before = (self.lower, self.upper)
            omega = self._mix()
            upper, vectors = self._judge(Plan.combine(self.plans, self.weights))
            if not self.whole:
                # The leading directions have moved with the mixture: answer in those of today.
                values, turn = eigh(omega, subset_by_index=self._heaviest())
                own = (self.basis @ turn) * np.sqrt(values.clip(0.0, 1.0))
                self.basis = _widened(vectors, own)
                omega = self._mix()
            values, turn = eigh(omega)
            factor = (self.basis @ turn) * np.sqrt(values.clip(0.0, 1.0))
            yield Offer(upper, self._answer(factor))
            idle = 0 if (self.lower, self.upper) != before else idle + 1

    def _heaviest(self) -> list[int]:
        size = self.basis.shape[1]
        return [max(0, size - self.k - EXTRA), size - 1]

    def _mix(self) -> np.ndarray:
        """Weigh the plans, and return the adversary's answer in the basis."""
        projected = self.at.projected(self.basis)
        planes = np.stack([projected.of(plan) for plan in self.plans])
        # Bounds that cross by rounding must not turn the barrier negative.
        width = max(self.upper - self.lower, 1e-14 * abs(self.upper), 1e-300)
        size = 2 * self.basis.shape[1] + len(self.plans)
        found = best_planes(planes, self.k, self.weights, width / size, SOLVE_TO * width)
        self.weights = found.weights
        size = self.basis.shape[1]
        # A point of the space of symmetric matrices is a mixture of few of any set of them.
        if len(self.plans) > min(PLANS_KEPT, 10 + size * (size + 1) // 2):
            kept = np.flatnonzero(self.weights > 1e-6 * self.weights.max())
            self.plans = [self.plans[index] for index in kept]
            self.weights = self.weights[kept] / self.weights[kept].sum()
        return found.omega

    def _trace(self, plan: Plan) -> Upper:
        """All eigenvalues bound the k largest: what needs no eigenvectors."""
        costs = self.pair.costs
        phi = costs.inner(plan)
        bound = float((phi + costs.doubt(phi, plan))[0]) + self._marginals(plan)
        return Upper(bound, float(phi[0]), plan, phi)

    def _judge(self, plan: Plan) -> tuple[Upper | None, np.ndarray]:
        """Return the objective of a plan, if it is worth a proof, and its leading directions."""
        plan = round_plan(plan, self.pair.a, self.pair.b)
        start = self.factor if self.factor is not None and not self.whole else None
        values, vectors, doubt = self.at.top(plan, self.k + EXTRA, start)
        if not np.isfinite(doubt):
            near = top_sum(values, self.k) - self.lower <= CLOSER * (self.upper - self.lower)
            return (self._prove(plan, values, vectors) if near else None), vectors
        value = max(top_sum(values, self.k), 0.0)
        bound = value + doubt + self._marginals(plan)
        self.upper = min(self.upper, bound)
        return Upper(bound, value, plan, np.array([value])), vectors

    def _prove(self, plan: Plan, values: np.ndarray, vectors: np.ndarray) -> Upper:
        """Return the objective of a plan whose leading eigenvectors are about known."""
        plan = round_plan(plan, self.pair.a, self.pair.b)
        value = max(top_sum(values, self.k), 0.0)
        room = ROOM * max(self.limits.tol * value, value - self.lower)
        bound = self.at.proven(plan, values, vectors, self.k, room) + self._marginals(plan)
        self.upper = min(self.upper, bound)
        return Upper(bound, value, plan, np.array([value]))

    def _marginals(self, plan: Plan) -> float:
        """All directions together bound what any k of them add."""
        return displacement_doubt(self.pair.problem, plan, self.at.features)

    def _exact(self, factor: np.ndarray) -> ProvenPlan:
        """Transport exactly at Omega = factor factor^T."""
        values = np.linalg.eigvalsh(factor.T @ factor)
        # What exceeds the Fantope is rounding; a little less costs next to nothing.
        excess = max(1.0, float(values[-1]), float(values.sum()) / self.k)
        factor = factor * ((1.0 - 8.0 * UNIT) / np.sqrt(excess))
        X, Y = self.at.X @ factor, self.at.Y @ factor
        costs = FactoredCosts.of(X, Y, Groups.parse("all", X.shape[1], None))
        plan, lower = transport_at(Problem(costs, self.pair.a, self.pair.b))
        slack = 8.0 * UNIT * float(np.sqrt(self.at.features)) * self.at.squares
        bound = max(lower.bound - slack, 0.0)
        return ProvenPlan(plan, replace(lower, bound=bound, slack=lower.slack + slack))

    def _answer(self, factor: np.ndarray) -> Lower:
        """Transport at Omega = factor factor^T, a way back towards the best one so far."""
        if self.factor is not None and self.back > 0.01:
            parts = (np.sqrt(1.0 - self.back) * factor, np.sqrt(self.back) * self.factor)
            factor = np.hstack(parts)
        plan, lower = self._exact(factor)
        better = lower.bound > self.lower or self.factor is None
        self.back = SHORTER * self.back if better else BACK + SHORTER * (1.0 - BACK) * self.back
        if better:
            self.lower = max(lower.bound, self.lower)
            most = self.at.features if self.whole else 2 * (self.k + EXTRA)
            self.factor = _thin(factor, most)
        if not any(_same(plan, known) for known in self.plans):
            self.plans.append(plan)
            self.weights = np.append(0.9 * self.weights, 0.1)
        return lower

    def finish(self, result: Result, seconds: float) -> Result:
        """Say which directions were chosen, in the features that came in."""
        if self.factor is None:
            share = self.k / self.at.features
            directions, omega = np.eye(self.at.features), np.full(self.at.features, share)
        else:
            directions, sizes, _ = np.linalg.svd(self.factor, full_matrices=False)
            omega = np.minimum(sizes, 1.0) ** 2
            directions, omega = directions[:, omega > 1e-9], omega[omega > 1e-9]
        moments = self.at.moments(result.plan, directions)
        chosen = directions if self.turned is None else self.turned @ directions
        return replace(
            result,
            alpha=omega / omega.sum(),
            phi=omega.sum() * np.diagonal(moments),
            names=tuple(f"direction {number + 1}" for number in range(len(omega))),
            time=seconds,
            chosen=Chosen("subspace", chosen, self.pair.names, omega),
        )


def _widened(vectors: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of both spans, without what they share."""
    rest = own - vectors @ (vectors.T @ own)
    rest -= vectors @ (vectors.T @ rest)
    factors: Any = qr(rest, mode="economic", pivoting=True)
    basis, triangle, _ = factors
    new = basis[:, np.abs(np.diagonal(triangle)) > NEW]
    # What is nearly nothing has lost its right angles to the rest.
    new -= vectors @ (vectors.T @ new)
    return np.hstack([vectors, np.linalg.qr(new)[0]])


def _same(plan: Plan, other: Plan) -> bool:
    mine, yours = plan.arcs(), other.arcs()
    return len(mine[0]) == len(yours[0]) and all(map(np.array_equal, mine[:2], yours[:2]))


def _thin(factor: np.ndarray, most: int) -> np.ndarray:
    """Write factor factor^T with orthogonal columns, and none that are next to nothing."""
    values, turn = eigh(factor.T @ factor)
    kept = np.flatnonzero(values > 1e-10)[-most:]
    return factor @ turn[:, kept]
