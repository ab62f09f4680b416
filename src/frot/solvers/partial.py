r"""Partial transport as ordinary transport: mass that is left out goes to a dummy point.

The dummy is that of Caffarelli and McCann 2010; for plans of a given mass, of Chapel et al. 2020.

.. math::
    \min_{\Pi 1 \le a,\; \Pi^\top 1 \le b} \max_\alpha \sum_l \alpha_l \langle \Pi, C_l \rangle
    - \eta\,\mathrm{KL}(\alpha | q) + \tau_a (|a| - |\Pi|) + \tau_b (|b| - |\Pi|)

is the problem between (a, \|b\|) and (b, \|a\|) with the costs :math:`\begin{pmatrix} C_l & \tau_a
\\ \tau_b & 0 \end{pmatrix}` in every group, since weights of groups sum to one. A side that is kept
has no dummy to go to, and the other's weighs what is left. Masses are divided by their sum s, and
eta with them: :math:`G_\eta(s \phi) = s\, G_{\eta / s}(\phi)`. Whatever is proven of that problem
is proven of this one, but for the rounding of the weights' quotients.

Plans of a given mass m,

.. math::
    \min_{\Pi 1 \le a,\; \Pi^\top 1 \le b,\; |\Pi| = m} \max_\alpha
    \sum_l \alpha_l \langle \Pi, C_l \rangle - \eta\,\mathrm{KL}(\alpha | q),

are those between (a, \|b\| - m) and (b, \|a\| - m), with nothing to pay at the dummies, that have
no mass from one dummy to the other. Each unit there comes with one more between true points: where
no cost is negative that saves nothing even if it is free, and where costs are at least -c a price
of c is enough. What an optimal plan has there is taken off its dearest arcs, at no cost, so that no
large number stands for a forbidden arc. As no point sends more than m, weights are at most m.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum, inf
from typing import TYPE_CHECKING

import numpy as np

from frot._base.arrays import UNIT, blocks
from frot.costs.protocol import Costs, Rounding
from frot.plans.feasible import MarginalError, marginal_error, round_plan
from frot.plans.plan import Plan
from frot.problem.adversary import SimplexFamily
from frot.problem.bounds import Lower, Upper, cost_doubt
from frot.problem.problem import Problem
from frot.problem.result import Progress, Result

if TYPE_CHECKING:
    from frot.solvers.drive import Start


@dataclass(frozen=True, eq=False)
class WithDummies(Costs):
    r"""Costs :math:`\begin{pmatrix} C_l & \tau_a \\ \tau_b & c \end{pmatrix}` in every group.

    Weights of groups sum to one, so that a price that is the same in all groups is paid once.

    Parameters
    ----------
    base : Costs
        Between n and m points.
    tau_a, tau_b : float, optional
        Price of a unit of mass of the rows that goes to the dummy column, which is the last one,
        and of the columns that comes from the dummy row; None has no such point.
    corner : float
        What mass from one dummy to the other costs; at least zero.

    Examples
    --------
    >>> from frot.costs import Stack
    >>> WithDummies(Stack(np.array([[[5.0]]])), 1.0, 2.0).mix(np.ones(1))
    array([[5., 1.],
           [2., 0.]])
    """

    base: Costs
    tau_a: float | None
    tau_b: float | None
    corner: float = 0.0

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n + 1, m + 1), or one less where a side has no dummy."""
        count, n, m = self.base.shape
        return (count, n + (self.tau_b is not None), m + (self.tau_a is not None))

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        """Whether no cost is known to be negative."""
        return self.base.nonnegative

    @cached_property
    def peaks(self) -> np.ndarray:
        """The largest of the base's and of the prices."""
        return np.maximum(self.base.peaks, self._prices.max())

    @property
    def _prices(self) -> np.ndarray:
        """What arcs from and to true points and dummies cost besides, (2, 2)."""
        return np.array([[0.0, self.tau_a or 0.0], [self.tau_b or 0.0, self.corner]])

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the base's mix, with prices around it."""
        _, n, m = self.base.shape
        mixed, prices = np.empty(self.shape[1:]), float(alpha.sum()) * self._prices
        mixed[:n, :m] = self.base.mix(alpha)
        mixed[:n, m:], mixed[n:, :m], mixed[n:, m:] = prices[0, 1], prices[1, 0], prices[1, 1]
        return mixed

    def true(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Whether arcs are between true points, (K,)."""
        _, n, m = self.base.shape
        return (rows < n) & (cols < m)

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Return the costs at the arcs."""
        count, n, m = self.base.shape
        paid = self._prices[(rows >= n).astype(int), (cols >= m).astype(int)]
        result, true = np.tile(paid, (count, 1)), self.true(rows, cols)
        result[:, true] = self.base.at(rows[true], cols[true])
        return result

    def _prices_of(self, u: np.ndarray, v: np.ndarray) -> float:
        """What the product of two weights pays for arcs from or to dummies."""
        _, n, m = self.base.shape
        left, right = (np.array([w[:k].sum(), w[k:].sum()]) for w, k in ((u, n), (v, m)))
        return float(left @ self._prices @ right)

    def product(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return phi of u v^T."""
        _, n, m = self.base.shape
        return self.base.product(u[:n], v[:m]) + self._prices_of(u, v)

    def sizes(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the mean size of every group's costs."""
        _, n, m = self.base.shape
        return self.base.sizes(u[:n], v[:m]) + self._prices_of(u, v)

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Bound the base's error, and that of a product with the sum of the weights."""
        base, (_, n, m) = self.base.rounding(alpha), self.base.shape
        unit = (len(alpha) + 2) * UNIT
        rows, cols = np.zeros(self.shape[1]), np.zeros(self.shape[2])
        rows[:n], cols[:m] = base.rows, base.cols
        if self.nonnegative:
            return Rounding(max(base.relative, unit), rows, cols)
        rows[n:] = unit * (self.tau_b or 0.0)
        cols[m:] = unit * max(self.tau_a or 0.0, self.corner)
        return Rounding(base.relative, rows, cols)

    def doubt(
        self, phi: np.ndarray, u: np.ndarray, v: np.ndarray, entries: int | None = None
    ) -> np.ndarray:
        """Bound the base's error, and that of sums over arcs from or to dummies."""
        _, n, m = self.base.shape
        inside = self.base.doubt(np.abs(phi), u[:n], v[:m], entries)
        return inside + super().doubt(phi, u, v, entries)


@dataclass(frozen=True, eq=False)
class Partial:
    """A problem of partial transport, and the ordinary one it comes to.

    Examples
    --------
    >>> from frot.costs import Stack
    >>> from frot.problem.problem import Marginals
    >>> costs = Stack(np.array([[[5.0]]]))
    >>> problem = Problem(costs, np.ones(1), np.full(1, 3.0), marginals=Marginals(1.0, 1.0, "tv"))
    >>> whole = Partial.of(problem).whole
    >>> whole.a, whole.b
    (array([0.25, 0.75]), array([0.75, 0.25]))
    """

    problem: Problem
    whole: Problem
    total: float
    # The weights of `whole` in extended precision, where there is one.
    exact: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, problem: Problem) -> Partial:
        """Add the dummy points."""
        if problem.marginals.mass is not None:
            return cls._of_mass(problem, problem.marginals.mass)
        marginals, a, b = problem.marginals, problem.a.tolist(), problem.b.tolist()
        kept_a, kept_b = marginals.tau_a == inf, marginals.tau_b == inf
        # Weight of a dummy: the mass of the other side, or what that side leaves if it is kept.
        row = [*b, *(-x for x in a)] if kept_a else b
        col = [*a, *(-x for x in b)] if kept_b else a
        tau_a = None if kept_a or fsum(col) <= 0.0 else marginals.tau_a
        tau_b = None if kept_b or fsum(row) <= 0.0 else marginals.tau_b
        costs = WithDummies(problem.costs, tau_a, tau_b)
        return cls._between(problem, costs, (problem.a, row), (problem.b, col))

    @classmethod
    def _of_mass(cls, problem: Problem, mass: float) -> Partial:
        """Add dummies that take what is beyond the mass."""
        a, b = np.minimum(problem.a, mass), np.minimum(problem.b, mass)
        row, col = [*b.tolist(), -mass], [*a.tolist(), -mass]
        # The difference of a side's sum and the mass may be round-off.
        tau_a = 0.0 if fsum(col) > 8.0 * UNIT * mass else None
        tau_b = 0.0 if fsum(row) > 8.0 * UNIT * mass else None
        corner = 0.0 if problem.costs.nonnegative else float(problem.costs.peaks.max())
        costs = WithDummies(problem.costs, tau_a, tau_b, corner)
        return cls._between(problem, costs, (a, row), (b, col))

    @classmethod
    def _between(
        cls,
        problem: Problem,
        costs: WithDummies,
        rows: tuple[np.ndarray, list[float]],
        cols: tuple[np.ndarray, list[float]],
    ) -> Partial:
        """Make the problem between weights and those of dummies, given as sums, where there are."""
        adversary = problem.adversary
        a, exact_a, total = _shares(rows[0], None if costs.tau_b is None else rows[1])
        b, exact_b, _ = _shares(cols[0], None if costs.tau_a is None else cols[1])
        if isinstance(adversary, SimplexFamily):
            adversary = adversary.having(adversary.eta / total, adversary.log_prior)
        whole = Problem(
            costs,
            a,
            b,
            adversary=adversary,
            names=problem.names,
            memory_budget=problem.memory_budget,
        )
        # Units are those of the costs: a price may be anything, and arcs of dummies may be most.
        whole.__dict__["mean_cost"] = problem.mean_cost
        whole.__dict__["typical_cost"] = problem.typical_cost
        return cls(problem, whole, total, (exact_a, exact_b))

    @property
    def _costs(self) -> WithDummies:
        costs = self.whole.costs
        assert isinstance(costs, WithDummies)
        return costs

    @cached_property
    def _mass_error(self) -> float:
        """By how much sides without a dummy miss the given mass, as a share of all."""
        mass, missed = self.problem.marginals.mass, 0.0
        if mass is not None:
            if self._costs.tau_b is None:
                missed += abs(fsum([*np.minimum(self.problem.b, mass).tolist(), -mass]))
            if self._costs.tau_a is None:
                missed += abs(fsum([*np.minimum(self.problem.a, mass).tolist(), -mass]))
        return missed / self.total

    def start(self, start: Start) -> Start:
        """Send what a plan leaves out to the dummies."""
        if start.plan is None:
            return replace(start, g=None)
        _, n, m = self.problem.shape
        rows, cols, mass = start.plan.arcs()
        given = self.problem.marginals.mass
        if given is not None:
            mass = mass * (given / mass.sum())
        ends = [(rows, cols, mass)]
        a, b = self.total * self.whole.a[:n], self.total * self.whole.b[:m]
        left = np.maximum(a - np.bincount(rows, mass, n), 0.0)
        lack = np.maximum(b - np.bincount(cols, mass, m), 0.0)
        if self._costs.tau_a is not None:
            ends.append((np.arange(n), np.full(n, m), left))
        if self._costs.tau_b is not None:
            ends.append((np.full(m, n), np.arange(m), lack))
        if len(ends) == 3 and given is None:
            ends.append((np.array([n]), np.array([m]), mass.sum(keepdims=True)))
        rows, cols, mass = (np.concatenate(part) for part in zip(*ends, strict=True))
        plan = Plan.from_arcs(rows, cols, mass / self.total, self.whole.shape[1:])
        return replace(start, plan=round_plan(plan, self.whole.a, self.whole.b), g=None)

    def proven(self, upper: Upper | None, lower: Lower | None) -> tuple[Upper | None, Lower | None]:
        """Widen bounds of `whole` so that they hold, times `total`, of the problem asked for.

        Quotients of weights are right to sixteen units of themselves: potentials prove as much
        less, and plans are compared with what the weights stand for. Round-off of a mass that has
        no dummy may have been left out where it is dearest.
        """
        if upper is not None:
            unit = float(np.finfo(self.exact[0].dtype).eps)
            error = marginal_error(upper.plan, *self.exact)
            error = MarginalError(error.spread + 8.0 * unit, error.level + 4.0 * unit)
            doubt = cost_doubt(self.whole, upper.plan, upper.phi, error)
            bound = float(self.whole.adversary.upper(upper.phi, doubt))
            # A mass equal to a side's sum up to round-off was set to it.
            scaled = 16.0 * UNIT * max(abs(bound), float(np.abs(upper.phi).max()))
            upper = replace(upper, bound=bound + scaled)
        if lower is not None:
            _, n, m = self.problem.shape
            size = float(self.whole.a @ np.abs(lower.f) + self.whole.b @ np.abs(lower.g))
            dearest = float(lower.f[:n].max() + lower.g[:m].max())
            moved = 16.0 * UNIT * (size + abs(lower.bound)) + self._mass_error * max(dearest, 0.0)
            lower = replace(lower, bound=lower.bound - moved, slack=lower.slack + moved)
        return upper, lower

    def tell(self, progress: Progress) -> Progress:
        """Bounds in the units of the problem that was asked for."""
        lower, upper = progress.lower * self.total, progress.upper * self.total
        return replace(progress, lower=lower, upper=upper, gap=self.problem.gap(lower, upper))

    def result(self, result: Result) -> Result:
        """Take the dummies off an answer."""
        problem = self.problem
        plan, excess = self._true_plan(result)
        phi = problem.costs.inner(plan)
        value = problem.adversary.best(phi)[0] if excess else self.total * result.value
        lower, upper = self.total * result.lower, self.total * result.upper
        return replace(
            result,
            value=min(max(value, lower), upper),
            lower=lower,
            upper=upper,
            phi=phi,
            plan=plan,
            potentials=self._potentials(*result.potentials),
            mean_cost=problem.mean_cost,
            eta=problem.adversary.eta,
            points=problem.points,
            weights=(problem.a, problem.b),
            groups=problem.groups,
            **problem.owed,
        )

    def _true_plan(self, result: Result) -> tuple[Plan, float]:
        """Return the plan between true points, and what was too much of it and is taken off."""
        _, n, m = self.problem.shape
        given, s = self.problem.marginals.mass, self.total
        rows, cols, mass = result.plan.arcs()
        true = self._costs.true(rows, cols)
        excess = 0.0
        if given is not None:
            excess = s * float(mass[(rows == n) & (cols == m)].sum())
        rows, cols, mass = rows[true], cols[true], s * mass[true]
        if excess > 0.0:
            alpha, costs = result.alpha, self.problem.costs
            dear = [
                alpha @ costs.at(rows[part], cols[part])
                for part in blocks(len(rows), 16 * len(alpha))
            ]
            order = np.argsort(-np.concatenate(dear), kind="stable")
            before = np.cumsum(mass[order]) - mass[order]
            mass[order] -= np.clip(excess - before, 0.0, mass[order])
            rows, cols, mass = rows[mass > 0.0], cols[mass > 0.0], mass[mass > 0.0]
        return Plan.from_arcs(rows, cols, mass, (n, m)), excess

    def _potentials(self, f: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Shift potentials to where those of the dummies are zero, or equal for a given mass."""
        _, n, m = self.problem.shape
        made = float(f[n]) if len(f) > n else None
        out = float(g[m]) if len(g) > m else None
        if self.problem.marginals.mass is not None and made is not None and out is not None:
            by = 0.5 * (out - made)
            return f[:n] + by, g[:m] - by
        to_f = out if out is not None else -made if made is not None else 0.0
        to_g = made if made is not None else -to_f
        return f[:n] + to_f, g[:m] + to_g


def _shares(weights: np.ndarray, dummy: list[float] | None) -> tuple[np.ndarray, np.ndarray, float]:
    """Return weights, and that of a dummy if there is one, a sum, as shares of all, and their sum.

    The shares are in double precision, and in extended precision where there is one.
    """
    left = 0.0
    if dummy is not None:
        last = fsum(dummy)
        weights, left = np.append(weights, last), fsum([*dummy, -last])
    total = fsum(weights.tolist())
    exact = weights.astype(np.longdouble)
    exact[-1] += left
    return weights / total, exact / exact.sum(), total
