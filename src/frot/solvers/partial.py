r"""Partial transport as ordinary transport: mass that is left out goes to a dummy point.

.. math::
    \min_{\Pi 1 \le a,\; \Pi^\top 1 \le b} \max_\alpha \sum_l \alpha_l \langle \Pi, C_l \rangle
    - \eta\,\mathrm{KL}(\alpha | q) + \tau_a (|a| - |\Pi|) + \tau_b (|b| - |\Pi|)

is the problem between (a, \|b\|) and (b, \|a\|) with the costs :math:`\begin{pmatrix} C_l & \tau_a
\\ \tau_b & 0 \end{pmatrix}` in every group, since weights of groups sum to one. A side that is kept
has no dummy to go to, and the other's weighs what is left. Masses are divided by their sum s, and
eta with them: :math:`G_\eta(s \phi) = s\, G_{\eta / s}(\phi)`. Whatever is proven of that problem
is proven of this one, but for the rounding of the weights' quotients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum, inf

import numpy as np

from frot.costs.protocol import UNIT
from frot.costs.wrapped import PartialCosts
from frot.plans.feasible import round_plan
from frot.plans.plan import Plan
from frot.problem.adversary import SimplexFamily
from frot.problem.problem import Problem
from frot.problem.result import Progress, Result
from frot.solvers.start import Start

# Units in the last place of what is owed that quotients of weights may be off by.
UNITS = 16.0


@dataclass(frozen=True, eq=False)
class Partial:
    """A problem of partial transport, and the ordinary one it comes to.

    Examples
    --------
    >>> from frot.costs import StackedCosts
    >>> from frot.problem.marginals import Marginals
    >>> costs = StackedCosts(np.array([[[5.0]]]))
    >>> problem = Problem(costs, np.ones(1), np.full(1, 3.0), marginals=Marginals(1.0, 1.0, "tv"))
    >>> whole = Partial.of(problem).whole
    >>> whole.a, whole.b
    (array([0.25, 0.75]), array([0.75, 0.25]))
    """

    problem: Problem
    whole: Problem
    total: float

    @classmethod
    def of(cls, problem: Problem) -> Partial:
        """Add the dummy points."""
        terms, adversary = problem.marginals, problem.adversary
        masses = fsum(problem.a.tolist()), fsum(problem.b.tolist())
        kept_a, kept_b = terms.tau_a == inf, terms.tau_b == inf
        # What a dummy weighs: all that may come to it, or what is left where the other is kept.
        row = max(masses[1] - masses[0], 0.0) if kept_a else masses[1]
        col = max(masses[0] - masses[1], 0.0) if kept_b else masses[0]
        tau_a = None if kept_a or col == 0.0 else terms.tau_a
        tau_b = None if kept_b or row == 0.0 else terms.tau_b
        a = problem.a if tau_b is None else np.append(problem.a, row)
        b = problem.b if tau_a is None else np.append(problem.b, col)
        total = fsum(a.tolist())
        if isinstance(adversary, SimplexFamily):
            adversary = adversary.having(adversary.eta / total, adversary.log_prior)
        whole = Problem(
            PartialCosts(problem.costs, tau_a, tau_b),
            a / total,
            b / fsum(b.tolist()),
            adversary=adversary,
            names=problem.names,
            memory_budget=problem.memory_budget,
        )
        # Units are those of the costs: a price may be anything.
        whole.__dict__["mean_cost"] = problem.mean_cost
        whole.__dict__["typical_cost"] = problem.typical_cost
        return cls(problem, whole, total)

    @property
    def _costs(self) -> PartialCosts:
        costs = self.whole.costs
        assert isinstance(costs, PartialCosts)
        return costs

    def start(self, start: Start) -> Start:
        """Send what a plan leaves out to the dummies."""
        if start.plan is None:
            return Start(start.alpha)
        _, n, m = self.problem.shape
        rows, cols, mass = start.plan.arcs()
        ends = [(rows, cols, mass)]
        left = np.maximum(self.problem.a - np.bincount(rows, mass, n), 0.0)
        lack = np.maximum(self.problem.b - np.bincount(cols, mass, m), 0.0)
        if self._costs.tau_a is not None:
            ends.append((np.arange(n), np.full(n, m), left))
        if self._costs.tau_b is not None:
            ends.append((np.full(m, n), np.arange(m), lack))
        if len(ends) == 3:
            ends.append((np.array([n]), np.array([m]), mass.sum(keepdims=True)))
        rows, cols, mass = (np.concatenate(part) for part in zip(*ends, strict=True))
        plan = Plan.from_arcs(rows, cols, mass / self.total, self.whole.shape[1:])
        return Start(start.alpha, round_plan(plan, self.whole.a, self.whole.b))

    def tell(self, progress: Progress) -> Progress:
        """Bounds in the units of the problem that was asked for."""
        lower, upper = progress.lower * self.total, progress.upper * self.total
        return replace(progress, lower=lower, upper=upper, gap=self.problem.gap(lower, upper))

    def result(self, found: Result) -> Result:
        """Take the dummies off an answer."""
        problem, s = self.problem, self.total
        _, n, m = problem.shape
        inside = self._costs.crop(found.plan)
        rows, cols, mass = inside.arcs()
        plan = Plan.from_arcs(rows, cols, s * mass, (n, m))
        f, g = self._potentials(*found.potentials)
        # Quotients of weights are right to units of themselves: what these may move is paid for.
        owed = UNITS * UNIT * (problem.a.sum() + problem.b.sum())
        prices = [tau for tau in (self._costs.tau_a, self._costs.tau_b) if tau is not None]
        if len(prices) < 2 or not problem.costs.nonnegative:
            prices.append(float(self._costs.peaks.max()))
        moved = owed * sum(prices)
        size = float(problem.a @ np.abs(f) + problem.b @ np.abs(g))
        lower = float(s * found.lower - UNITS * UNIT * (size + abs(s * found.lower)))
        upper = float(s * found.upper + UNITS * UNIT * abs(s * found.upper) + moved)
        return replace(
            found,
            value=min(max(s * found.value, lower), upper),
            lower=lower,
            upper=upper,
            phi=problem.costs.inner(plan),
            plan=plan,
            potentials=(f, g),
            mean_cost=problem.mean_cost,
            eta=problem.adversary.eta,
            points=problem.points,
            groups=problem.groups,
            **problem.owed,
        )

    def _potentials(self, f: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Shift potentials to where those of the dummies are zero."""
        _, n, m = self.problem.shape
        made = float(f[n]) if len(f) > n else None
        out = float(g[m]) if len(g) > m else None
        to_f = out if out is not None else -made if made is not None else 0.0
        to_g = made if made is not None else -to_f
        return f[:n] + to_f, g[:m] + to_g
