"""The problem behind an answer in arrays, and what its own numbers come to, in long doubles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .case import CostProblem, Problem
from .truth import Truth, optimum
from .truth.numbers import to_long

__all__ = ["Evidence"]

UNIT = float(np.finfo(float).eps)
# Larger problems, in arcs and in arcs times groups, are not solved again: without entropies, and
# with them. All else is checked there, too.
LARGEST_LINEAR = 900, 9_000
LARGEST_SMOOTH = 400, 6_000


@dataclass(frozen=True, eq=False)
class Evidence:
    """A problem with its entropies, and its truth, computed once each."""

    problem: Problem
    eta: float = 0.0
    prior: Any = None

    def is_small(self, eps: float) -> bool:
        """Whether it is small enough to be solved again."""
        count, n, m = self.problem.shape
        most = LARGEST_SMOOTH if self.eta or eps else LARGEST_LINEAR
        return n * m <= most[0] and count * n * m <= most[1]

    def truth(self, eps: float) -> Truth | None:
        """The optimum with that eps, or None where the problem is too large."""
        if not self.is_small(eps):
            return None
        known: dict[float, Truth] = self.__dict__.setdefault("_truths", {})
        if eps not in known:
            known[eps] = optimum(self.problem.program, self.eta, eps, self.prior)
        return known[eps]

    @cached_property
    def costs(self) -> np.ndarray:
        """Costs, (L, n, m)."""
        return np.array(
            [[[to_long(c) for c in row] for row in group] for group in self.problem.program.costs],
            dtype=np.longdouble,
        )

    @cached_property
    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights that sum to one."""
        program = self.problem.program
        a, b = (
            np.array([to_long(w) for w in side], dtype=np.longdouble)
            for side in (program.a, program.b)
        )
        return a, b

    @cached_property
    def log_prior(self) -> np.ndarray:
        """log q: zero in the paper."""
        if self.prior is None:
            return np.zeros(self.problem.shape[0], dtype=np.longdouble)
        prior = np.asarray(self.prior, dtype=np.longdouble)
        return np.log(prior / prior.sum())

    @cached_property
    def mean_cost(self) -> float:
        """Mean size of the costs over points and groups."""
        means = self.problem.program.means(size=True)
        return float(sum(means) / len(means))

    @cached_property
    def tiny_square(self) -> float:
        """The squared distance of points that differ by the rounding of their coordinates."""
        if isinstance(self.problem, CostProblem):
            return 0.0
        largest = max(float(np.abs(points).max()) for points in (self.problem.X, self.problem.Y))
        return self.problem.X.shape[1] * (4.0 * UNIT * largest) ** 2

    def phi(self, plan: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Costs of a plan in each group, and the sizes of what was summed."""
        on = plan > 0.0
        costs, mass = self.costs[:, on], plan[on].astype(np.longdouble)
        return costs @ mass, np.abs(costs) @ mass

    def objective(self, plan: np.ndarray, phi: np.ndarray, eps: float) -> float:
        """The objective of a plan with these group costs."""
        worst = phi.max()
        if self.eta > 0.0:
            scores = (phi - worst) / self.eta + self.log_prior
            top = scores.max()
            worst = worst + self.eta * (top + np.log(np.exp(scores - top).sum()))
        if eps > 0.0:
            on = plan > 0.0
            a, b = self.weights
            mass = plan[on].astype(np.longdouble)
            worst = worst + eps * (mass * np.log(mass / np.outer(a, b)[on])).sum()
        return float(worst)

    def mixed(self, alpha: np.ndarray) -> np.ndarray:
        """The mixed cost, (n, m)."""
        on = np.flatnonzero(alpha)
        return np.einsum("l,lij->ij", alpha[on].astype(np.longdouble), self.costs[on])

    def reward(self, alpha: np.ndarray) -> float:
        """The entropy of the weights, times eta."""
        if self.eta == 0.0:
            return 0.0
        on = alpha > 0.0
        wide = alpha[on].astype(np.longdouble)
        return float(-self.eta * (wide * (np.log(wide) - self.log_prior[on])).sum())

    def proven(self, alpha: np.ndarray, f: np.ndarray, g: np.ndarray, eps: float) -> float:
        """What weights and potentials prove; without eps, f is lowered where it is too high."""
        a, b = self.weights
        mixed, f, g = self.mixed(alpha), f.astype(np.longdouble), g.astype(np.longdouble)
        if eps > 0.0:
            mass = np.outer(a, b)
            scores = (f[:, None] + g - mixed)[mass > 0.0] / eps
            total = (mass[mass > 0.0] * np.exp(scores)).sum()
            return float(f @ a + g @ b - eps * (total - 1.0)) + self.reward(alpha)
        # Points without weight prove nothing.
        over = np.where(np.outer(a, b) > 0.0, f[:, None] + g - mixed, 0.0)
        # Where rounding put a pair above its cost, the lighter of the two gives way.
        for i, j in zip(*np.nonzero(over > 0.0), strict=True):
            excess = max(f[i] + g[j] - mixed[i, j], 0.0)
            if a[i] <= b[j]:
                f[i] -= excess
            else:
                g[j] -= excess
        return float(f @ a + g @ b) + self.reward(alpha)

    def size(self, f: np.ndarray, g: np.ndarray) -> float:
        """How much potentials add up, which bounds what rounding does to their sum.

        A constant may be moved from one side to the other: the one that makes it least is.
        """
        a, b = self.weights
        sides = np.concatenate([f, -g]).astype(np.longdouble)
        order = np.argsort(sides)
        mass = np.cumsum(np.concatenate([a, b])[order])
        middle = sides[order][min(np.searchsorted(mass, 1.0), len(order) - 1)]
        return float(np.abs(f - middle) @ a + np.abs(g + middle) @ b)

    @cached_property
    def subtracted(self) -> float:
        """The size of what costs are small differences of, by their definition; zero if of none.

        Cosines are taken from one, and regrets from the costs before.
        """
        if self.problem.normalise == "regret":
            return Evidence(replace(self.problem, normalise="none")).mean_cost
        return 1.0 if getattr(self.problem, "metric", "") == "cosine" else 0.0
