"""Entropic: mirror ascent on the weights with warm Sinkhorn sweeps in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from frot._adversary import Simplex
from frot._bounds import (
    Lower,
    Upper,
    lower_bound,
    relative_gap,
    upper_bound,
)
from frot._costs._protocol import UNIT
from frot._errors import InputError
from frot._feasible import round_plan
from frot._oracles import Sinkhorn
from frot._oracles._sweeps import Scaling, sweep_to
from frot._plan import Plan
from frot._problem import Problem
from frot._solvers._drive import Driven, Offer
from frot._solvers._start import Start

__all__ = ["Entropic"]

# The step grows when the dual rose and shrinks when it fell.
GROW, SHRINK = 1.3, 0.4
# Sweeps between two steps at most, and the primal is rounded at least this often.
SWEEPS = 2_000
ROUND_EVERY = 20


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

    def offers(self, problem: Problem, start: Start) -> Iterator[Offer]:
        """Step on the weights, sweeping in between."""
        ascent = _Ascent(problem)
        groups = problem.shape[0]
        alpha = np.full(groups, 1.0 / groups) if start.alpha is None else start.alpha
        at = ascent.first(alpha, start.g)
        step = 1.0 / problem.scale
        # How closely to sweep: the error of the marginals enters the gap times the costs.
        closeness = 1e-2
        since_rounded = 0
        while True:
            gap = relative_gap(at.dual, at.primal)
            since_rounded += 1
            upper = None
            if gap <= self.tol or since_rounded >= ROUND_EVERY:
                upper, since_rounded = ascent.upper(at), 0
            lower = ascent.lower(at, full=upper is not None)
            yield Offer(upper, lower)
            if upper is not None:
                rounding = upper.bound - upper.value + lower.slack
                if upper.bound - lower.bound <= 4.0 * rounding:
                    return
            closeness = min(closeness, max(0.1 * gap, 0.1 * self.tol, 1e-12))
            while True:
                ahead = ascent.sweep(at.stepped(problem.adversary, step), at.scaling.g, closeness)
                if ahead.dual >= at.dual - 8.0 * UNIT * abs(at.dual):
                    step, at = GROW * step, ahead
                    break
                step *= SHRINK
                if step * problem.scale < 1e-12:
                    yield Offer(ascent.upper(at), ascent.lower(at, full=True))
                    return
                yield Offer()


class _Point(NamedTuple):
    """Weights, potentials and plan, their group costs, and the two values they give."""

    alpha: np.ndarray
    mixed: np.ndarray
    scaling: Scaling
    phi: np.ndarray
    dual: float
    primal: float

    def stepped(self, adversary: Simplex, step: float) -> np.ndarray:
        """Return the weights a mirror step ahead, drawn to the prior by eta."""
        with np.errstate(divide="ignore"):
            score = np.log(self.alpha) + step * self.phi
        if adversary.log_prior is not None:
            score = score + step * adversary.eta * adversary.log_prior
        score = score / (1.0 + step * adversary.eta)
        with np.errstate(under="ignore"):
            weight = np.exp(score - score.max())
        return weight / weight.sum()


class _Ascent:
    """The dual's parts that need the problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def first(self, alpha: np.ndarray, g: np.ndarray | None) -> _Point:
        """Start roughly, from a large eps unless a potential is known."""
        problem = self.problem
        if g is None:
            mixed = problem.costs.mix(alpha)
            g = Sinkhorn(tol=1e-2, max_iter=200)(mixed, problem.a, problem.b, problem.eps).g
        return self.sweep(alpha, g, 1e-2)

    def sweep(self, alpha: np.ndarray, g: np.ndarray, closeness: float) -> _Point:
        """Bring the potentials to the weights, and look at what plan they make."""
        problem = self.problem
        mixed = problem.costs.mix(alpha)
        scaling = sweep_to(mixed, problem.a, problem.b, problem.eps, g, closeness, SWEEPS)
        phi = problem.costs.inner(Plan(scaling.plan))
        value, _ = problem.adversary.best(phi)
        linear = float(problem.a @ scaling.f)
        columns = scaling.plan.sum(axis=0)
        # KL of the plan itself: <plan, f + g - M> / eps, with rows exact and columns nearly so.
        entropy = linear + float(columns @ scaling.g) - float(alpha @ phi)
        dual = linear + float(problem.b @ scaling.g) + problem.adversary.reward(alpha)
        dual -= problem.eps * (float(columns.sum()) - 1.0)
        return _Point(alpha, mixed, scaling, phi, dual, value + entropy)

    def upper(self, at: _Point) -> Upper:
        """Round the plan and take its entropic objective, and its plain one beside it."""
        problem = self.problem
        plan = round_plan(Plan(at.scaling.plan), problem.a, problem.b)
        plain = upper_bound(problem, plan, rounded=True)
        dense = plan.dense()
        ratio = np.divide(dense, problem.a[:, None] * problem.b, out=np.ones_like(dense),
                          where=dense > 0.0)  # fmt: skip
        entropy = problem.eps * float(np.vdot(dense, np.log(ratio)))
        slack = plain.bound - plain.value + 64.0 * UNIT * (abs(entropy) + problem.eps)
        value = plain.value + entropy
        return Upper(value + slack, value, plan, plain.phi, plain=plain.bound)

    def lower(self, at: _Point, full: bool) -> Lower:
        """Take the dual value; `full` adds what the potentials prove without eps."""
        problem = self.problem
        f, g = at.scaling.f, at.scaling.g
        relative, absolute = problem.costs.rounding(at.alpha)
        # Where costs are off the plan of the potentials is, too, by as much over eps.
        slack = absolute + relative * float(np.abs(at.mixed).max())
        reach = float(np.abs(f).max()) + float(np.abs(g).max()) + abs(at.dual) + problem.eps
        slack += 16.0 * UNIT * reach
        plain = None
        if full:
            plain = lower_bound(problem, at.alpha, g, at.mixed).bound
        return Lower(at.dual - slack, at.alpha, f, g, slack, plain)
