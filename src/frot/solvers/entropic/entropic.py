"""Entropic: ascent on the weights with warm Sinkhorn sweeps in between."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from frot._base.arrays import to_numpy
from frot._base.errors import InputError, collect_warnings
from frot._base.stopping import DeadlineError, deadline, no_deadline, seconds_left
from frot.costs import StackedCosts
from frot.plans.combine import expand_plan
from frot.plans.plan import Plan
from frot.problem.adversary import SimplexFamily
from frot.problem.bounds import is_rounding
from frot.problem.problem import Problem
from frot.solvers.drive import Driven, Offer
from frot.solvers.entropic.arcs import EntropicArcs, arcs_suit, plan_upper
from frot.solvers.exact.exact import Exact
from frot.solvers.frank_wolfe import best_mixture
from frot.solvers.sinkhorn.ascent import ascend
from frot.solvers.sinkhorn.engine import Engine, Point, distances
from frot.solvers.sinkhorn.run import EntropicRun, proof_seconds
from frot.solvers.start import Start

# Points that may be within the tolerance are certified, and one in so many others.
PROVE_EVERY = 20
# A gap of this many tolerances is a step or two from the end.
NEAR = 30.0
# Certificates in a row that bring nothing before single precision is given up, and misplaced mass
# that is not more than its rounding.
SINGLE_PATIENCE = 3
SINGLE_ERROR = 3e-6
# The interior point is the shorter way where eps is less than this share of a typical cost, or
# where there are no more costs than this.
SMALL_EPS = 2e-3
FEW_COSTS = 200_000
# Steps it may go on after its plan is proven, for that of its potentials to follow.
SPARE_STEPS = 3
# Plans that are mixed where nothing else helps, and for how many arcs at most.
MIXTURES = 100
MIXED_UP_TO = 10_000
# Costs of up to so many arcs can be looked at by a run that has no time.
PASS_UP_TO = 1_000_000


@dataclass(frozen=True)
class Entropic(Driven):
    r"""Solve the problem with entropy on the plan as well.

    .. math::
        \min_{\Pi \in U(a, b)} G_\eta(\phi(\Pi)) + \varepsilon\,\mathrm{KL}(\Pi | a b^\top)

    Its dual is jointly concave in the potentials and the weights,

    .. math::
        \langle f, a \rangle + \langle g, b \rangle - \varepsilon \sum_{ij} a_i b_j
        \big( e^{(f_i + g_j - [M_\alpha]_{ij}) / \varepsilon} - 1 \big)
        - \eta \sum_l \alpha_l \log \alpha_l ,

    and its gradient in the weights is :math:`\phi - \eta (\log \alpha + 1)`. Sinkhorn sweeps keep
    the potentials optimal, and mirror steps raise the weights, with a step length that adapts:

    .. math:: \alpha \propto (\alpha\, e^{\tau \phi})^{1 / (1 + \tau \eta)}

    With few groups (at most 100) and up to 1,500 points, joint Newton steps on potentials and
    weights finish the work, so that a tolerance of 1e-9 costs little more than one of 1e-4.

    Points may be NumPy arrays or those of any library with the array API, on any device; kernels
    that do not fit the memory budget are streamed in blocks of rows, on CUDA by fused
    kernels where Triton is installed.

    ``result.lower`` and ``result.upper`` hold the optimum of this problem,
    ``result.unregularised`` that of the problem without eps.

    Parameters
    ----------
    tol : float
        Relative duality gap at which to stop.
    max_iter : int
        Steps on the weights at most.
    time_limit : float, optional
        Seconds.

    Examples
    --------
    >>> import frot
    >>> X, Y = [[0.0, 0.0], [1.0, 1.0]], [[1.0, 3.0], [0.0, 2.0]]
    >>> res = frot.solve(X, Y, eta=0.1, eps=0.1, solver=frot.Entropic())
    >>> round(res.value, 3), res.gap <= 1e-4
    (4.069, True)
    >>> res.unregularised[0] <= 4.0 <= res.unregularised[1]
    True
    """

    tol: float = 1e-4
    max_iter: int = 2_000
    time_limit: float | None = None

    def check(self, shape: tuple[int, ...], eta: float, eps: float) -> None:
        """Refuse what this solver cannot do."""
        if not eps > 0.0:
            raise InputError("eps: Entropic needs eps > 0; pass eps=... or use solver='exact'")

    @property
    def penalties(self) -> frozenset[str]:
        """Supports the penalty "kl"."""
        return frozenset({"kl"})

    @property
    def any_library(self) -> bool:
        """Arrays of other libraries are used on their device."""
        return True

    def offers(self, problem: Problem, start: Start) -> Iterator[Offer]:
        """Solve on arcs where that is faster; else ascend, and switch to arcs if it stalls.

        Where neither converges, the problem without eps may, or give a starting point.
        """
        run = EntropicRun(problem, self.tol)
        if problem.marginals.soft:
            yield from self._climbs(run, start, on_arcs=False)
            return
        on_arcs = _few_enough(problem)
        spent = on_arcs and _arcs_first(problem)
        if spent and (yield from self._squeeze(run, start.alpha)):
            return
        if (yield from self._climbs(run, start, on_arcs and not spent)):
            return
        if on_arcs:
            yield from self._without_eps(run)

    def _climbs(
        self, run: EntropicRun, start: Start, on_arcs: bool
    ) -> Generator[Offer, None, bool]:
        """Climb in the search's precision, then in double, then go `on_arcs`; True if that is it.

        It is where rounding has the last word.
        """
        engine = run.engine
        at = yield from self._climb(run, engine, *run.start(start.alpha, start.g))
        precise = engine.double()
        if at is not None and precise is not engine:
            # Single precision led as far as it could: go on from there in double.
            home = precise.terms.home
            alpha, g = home.xp.astype(at.alpha, home.dtype), home.xp.astype(at.g, home.dtype)
            if bool(home.xp.all(home.xp.isfinite(g))):
                alpha = alpha / home.xp.sum(alpha, axis=1, keepdims=True)
                at = yield from self._climb(run, precise, alpha, g)
        if at is not None and on_arcs:
            return (yield from self._squeeze(run, to_numpy(at.alpha)[0]))
        return at is None

    def _without_eps(self, run: EntropicRun) -> Iterator[Offer]:
        """Offer what the problem without eps proves about this one, and climb from there.

        Sweeps move potentials by some eps at a time. Those of far points that weigh next to nothing
        are a great many eps from where sweeps begin, but next to the ones without eps.
        """
        host, rows, cols = run.on_host()
        best = None
        for offer in without_eps(host, self.tol):
            upper, lower = offer.upper, offer.lower
            if upper is None or lower is None:
                yield Offer()
                continue
            whole = expand_plan(upper.plan, rows, cols, run.problem.shape[1:])
            upper = replace(upper, plan=whole, value=max(upper.value, lower.bound))
            best = run.spread(lower, rows, cols)
            yield Offer(upper, best)
        if best is not None:
            yield from self._climb(run, run.engine.double(), *run.restart_from(best))
            if host.shape[0] > 1 and host.shape[1] * host.shape[2] <= MIXED_UP_TO:
                yield from self._mixtures(run, best.alpha)

    def _mixtures(self, run: EntropicRun, alpha: np.ndarray) -> Iterator[Offer]:
        r"""Mix the plans that answer some weights as well as can be, and answer the next weights.

        Where points of weight 1e-10 pay costs of 1e9, the value is all but piecewise linear in the
        weights, and steps along its gradient zigzag. The entropy of a mixture is no more than the
        mean of entropies, so that mixing is a game of the costs
        :math:`\phi^{(k)} + \varepsilon \mathrm{KL}(\Pi_k)`, whose value no weights can exceed.
        """
        host, rows, cols = run.on_host()
        shape, f = run.problem.shape[1:], np.full(run.problem.shape[1], -np.inf)
        plans: list[np.ndarray] = []
        prices: list[np.ndarray] = []
        adversary = host.adversary
        assert isinstance(adversary, SimplexFamily)
        for _ in range(MIXTURES):
            alone = Problem(StackedCosts(host.costs.mix(alpha)[None]), host.a, host.b, eps=host.eps)
            with collect_warnings():
                found = Entropic(tol=0.1 * self.tol)(alone)
            f[rows] = found.potentials[0]
            _, lower = run.prove_from_rows(alpha, f)
            dense = np.asarray(found.plan)
            paid = plan_upper(host, Plan(dense, copy=False))
            entropy = paid.value - adversary.best(paid.phi)[0]
            plans.append(dense)
            prices.append(paid.phi + entropy)
            unit = float(np.abs(prices[0]).max()) or 1.0
            weights, alpha = best_mixture(np.stack(prices, axis=1), adversary, unit)
            upper = plan_upper(host, Plan(np.tensordot(weights, plans, axes=1), copy=False))
            whole = expand_plan(upper.plan, rows, cols, shape)
            yield Offer(replace(upper, plan=whole, value=max(upper.value, lower.bound)), lower)

    def before_any(self, problem: Problem) -> Offer:
        """Bounds that count the entropy: of the product plan, or of a pass over few points."""
        run = EntropicRun(problem, self.tol)
        if problem.shape[1] * problem.shape[2] > PASS_UP_TO:
            return Offer(*run.product())
        engine = run.engine.double()
        alpha = engine.terms.home.bring(np.full((1, problem.shape[0]), 1.0 / problem.shape[0]))
        g = engine.terms.home.xp.zeros_like(engine.terms.b)
        return Offer(*run.prove(alpha, g))

    def _squeeze(self, run: EntropicRun, alpha: np.ndarray | None) -> Generator[Offer, None, bool]:
        """Take the steps of an interior point, pricing all arcs whenever its own gap has shrunk.

        Its plan is good a step or two before that of its potentials is, which is handed out all
        the same if it can be had: it is full, and takes no room. Returns whether rounding has the
        last word.
        """
        host, rows, cols = run.on_host()
        state = EntropicArcs.begin(host, self.tol, alpha)
        spare, shape, f = SPARE_STEPS, run.problem.shape[1:], np.full(run.problem.shape[1], -np.inf)
        while True:
            if state.step():
                yield Offer()
                continue
            f[rows] = state.potential()
            upper, lower = run.prove_from_rows(state.weights(), f)
            plan = plan_upper(host, state.plan())
            value = max(plan.value, lower.bound)
            plan = replace(plan, plan=expand_plan(plan.plan, rows, cols, shape), value=value)
            gap = host.gap(lower.bound, plan.bound)
            late = upper is not None and host.gap(lower.bound, upper.bound) > self.tol
            best = plan if upper is None or (late and plan.bound < upper.bound) else upper
            done = is_rounding(best.bound - lower.bound, best.bound - best.value + lower.slack)
            if gap <= self.tol and late and state.moved and spare > 0 and not done:
                spare -= 1
                yield Offer(None, lower)
                continue
            yield Offer(best if best.bound < np.inf else None, lower)
            if done or not state.aim(min(gap, host.gap(lower.bound, best.bound))):
                return done

    def _climb(
        self, run: EntropicRun, engine: Engine, alpha: Any, g: Any
    ) -> Generator[Offer, None, Point | None]:
        """Climb with one engine; return where it can get no further, None if nobody can.

        The first point of a long run is certified whatever it is worth, since that may be stopped
        any time, unless the end is near; and so are the points of a run of few steps. Where time
        is limited, enough of it is kept for the last proof.
        """
        terms, single = engine.terms, engine.double() is not engine
        since, best, idle, at = 0, np.inf, 0, None
        climb, reserve = ascend(engine, alpha, g, self.tol), proof_seconds(terms.home, run.entries)
        while True:
            try:
                with deadline(seconds_left() - reserve):
                    ahead = next(climb, None)
            except DeadlineError:
                if at is not None and reserve > 0.0:
                    with no_deadline():
                        offer = Offer(*run.certify(at, engine))
                    yield offer
                raise
            if ahead is None:
                break
            first, at = at is None, ahead
            gap = float(distances(terms, at)[0])
            since += 1
            early = first and run.streams and gap > NEAR * self.tol
            due = since >= PROVE_EVERY or self.max_iter <= PROVE_EVERY
            if gap > self.tol and not (early or due):
                yield Offer()
            else:
                upper, lower = run.certify(at, engine)
                since, width = 0, upper.bound - lower.bound
                margins = upper.bound - upper.value + lower.slack
                # Single precision is left where little is left to gain by it.
                rounded = is_rounding(width, margins)
                if rounded and single and run.problem.gap(lower.bound, upper.bound) > self.tol:
                    # That may be what single precision made of potentials: it is no last word.
                    return at
                yield Offer(upper, lower)
                if rounded:
                    return None
                idle, best = (0, width) if width < 0.9 * best else (idle + 1, best)
            if single and (idle >= SINGLE_PATIENCE or float(at.error[0]) <= SINGLE_ERROR):
                # What is still missing, single precision cannot see.
                return at
        if at is not None and bool(terms.home.xp.all(terms.home.xp.isfinite(at.dual))):
            yield Offer(*run.certify(at, engine))
        return at


def _few_enough(problem: Problem) -> bool:
    """Whether an interior point has room for the arcs of a problem."""
    return arcs_suit(problem)


def _arcs_first(problem: Problem) -> bool:
    """Whether an interior point is the shorter way: with a small eps, or few points."""
    count, n, m = problem.shape
    # A typical cost is no more than the mean.
    small = problem.eps < SMALL_EPS * problem.mean_cost
    small = small and problem.eps < SMALL_EPS * problem.typical_cost
    few = count > 1 and n * m * (count + 10) <= FEW_COSTS
    return small or few


# The problem without eps is solved to this share of the tolerance.
CLOSER = 0.1


def without_eps(problem: Problem, tol: float) -> Iterator[Offer]:
    """Solve the problem without eps, and offer what its plans and potentials prove.

    Lower bounds hold as they are, for no entropy is negative; the entropy of a plan is summed, and
    is no more than eps times the logarithm of the smallest weight.

    Parameters
    ----------
    problem : Problem
        Costs on the host, weights > 0, eps > 0.
    tol : float
        The gap that is asked for.
    """
    for offer in Exact().offers(problem.having(eps=0.0), Start()):
        upper, lower = offer.upper, offer.lower
        if upper is None or lower is None:
            yield Offer()
            continue
        yield Offer(plan_upper(problem, upper.plan), lower)
        if problem.gap(lower.bound, upper.bound) <= CLOSER * tol:
            return
