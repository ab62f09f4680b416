r"""The interior point for problems with eps, on the arcs that carry mass.

Sinkhorn's sweeps slow down as eps falls, and so does any ascent that waits for them; the interior
point takes ten to fifteen Newton steps whatever eps, eta and the number of groups are. Its plan x
carries its own mass instead of that of potentials, so that steps are long where a Gibbs kernel
would over- or underflow. In a problem that is not small, arcs whose mass would be next to nothing,

.. math:: a_i b_j\, e^{-r_{ij} / \varepsilon}, \qquad r = M_\alpha - f \oplus g ,

are left out until the potentials call for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frot._costs import StackedCosts
from frot._feasible import round_plan
from frot._plan import Plan
from frot._problem import Problem
from frot._solvers._interior import Interior
from frot._solvers._placement import place
from frot._solvers._start import Start

__all__ = ["EntropicArcs"]

# Up to so many arcs all are in from the start.
ALL_ARCS = 12_000
# Arcs that would carry less than this share of the tolerance are left out.
LEFT_OUT = 1e-2
# Complementarity to begin with, in units of cost and of a point's mass.
FIRST_SLACK = 1.0
FIRST_LEVEL = 0.1
# This many steps in a row shorter than that go nowhere: the point is moved inside again.
SHORT_STEPS = 3
SHORT_STEP = 0.1
# The interior point takes no weight for less than this share of the mean.
LEAST_WEIGHT = 1e-11


@dataclass(eq=False)
class EntropicArcs:
    """The interior point on some arcs of one problem with eps, in its own units.

    Its rows are the larger side of the problem (`flipped` if these are the columns), since it
    eliminates them.
    """

    problem: Problem
    interior: Interior
    flipped: bool
    unit: float
    mass_unit: float
    reach: float
    short_steps: int = 0

    @classmethod
    def begin(cls, problem: Problem, tol: float, alpha: np.ndarray | None = None) -> EntropicArcs:
        """Start on all arcs from the product plan, or on those that a rough plan uses.

        Parameters
        ----------
        problem : Problem
            Costs on the host, weights > 0, eps > 0.
        tol : float
            The gap that is asked for.
        alpha : array of shape (L,), optional
            Weights to begin with.
        """
        _, n, m = problem.shape
        # So many eps above the best arcs of its points an arc carries next to nothing.
        reach = float(np.log(1.0 / (LEFT_OUT * min(max(tol, 1e-14), 1e-2))))
        if n * m <= ALL_ARCS:
            return cls._whole(problem, reach, alpha)
        placed = place(problem, Start(alpha))
        found = cls(problem, placed.interior, placed.flipped, placed.unit, placed.mass_unit, reach)
        inside = found.interior
        inside.eps = problem.eps / placed.unit
        inside.log_product = found.log_product(inside.rows, inside.cols)
        return found

    @classmethod
    def _whole(cls, problem: Problem, reach: float, alpha: np.ndarray | None) -> EntropicArcs:
        count, n, m = problem.shape
        flipped = m > n
        unit, mass_unit = problem.typical_cost or 1.0, 1.0 / max(n, m)
        stack, sides = problem.costs.mix, (problem.a, problem.b)
        a, b = (_firm(side) / mass_unit for side in (sides[::-1] if flipped else sides))
        rows, cols = np.repeat(np.arange(len(a)), len(b)), np.tile(np.arange(len(b)), len(a))
        ends = (cols, rows) if flipped else (rows, cols)
        costs = problem.costs.at(*ends) / unit
        log_product = np.log(a[rows]) + np.log(b[cols]) + np.log(mass_unit)
        x = np.exp(log_product)
        alpha = np.full(count, 1.0 / count) if alpha is None else np.maximum(alpha, 1e-3 / count)
        alpha = alpha / alpha.sum()
        eta = problem.adversary.eta / (unit * mass_unit)
        prior = problem.adversary.log_prior
        log_prior = np.zeros(count) if prior is None else prior
        free = costs @ x - eta * (np.log(alpha) - log_prior)
        t = float(free.max()) + FIRST_LEVEL / mass_unit
        inside = Interior(
            a=a, b=b, rows=rows, cols=cols, costs=costs, eta=eta, log_prior=log_prior, x=x,
            z=np.full(n * m, FIRST_SLACK), alpha=alpha, s=t - free, f=np.zeros(len(a)),
            g=np.zeros(len(b)), t=t, eps=problem.eps / unit, log_product=log_product,
        )  # fmt: skip
        return cls(problem, inside, flipped, unit, mass_unit, reach)

    @property
    def whole(self) -> bool:
        """Whether all arcs are in."""
        return len(self.interior.x) == len(self.problem.a) * len(self.problem.b)

    @property
    def arcs(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the arcs, as the problem counts them."""
        rows, cols = self.interior.rows, self.interior.cols
        return (cols, rows) if self.flipped else (rows, cols)

    def log_product(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Return log of the product of the marginals, in the interior's units and its order."""
        a, b = np.log(self.interior.a), np.log(self.interior.b)
        return a[rows] + b[cols] + np.log(self.mass_unit)

    def step(self) -> bool:
        """Take one Newton step; False if none can be taken."""
        inside = self.interior
        moved = inside.step()
        short = moved and max(inside.lengths) < SHORT_STEP
        self.short_steps = self.short_steps + 1 if short else 0
        if self.short_steps >= SHORT_STEPS:
            inside.recentre(10.0 * inside.mu)
            self.short_steps = 0
        return moved

    def gap(self) -> float:
        """Relative gap of the restricted problem, as far as it is feasible."""
        inside = self.interior
        level = max(abs(inside.t), abs(float(inside.alpha @ (inside.costs @ inside.x))))
        return inside.complementarity / max(level, 1e-6 / self.mass_unit) + inside.infeasibility()

    def weights(self) -> np.ndarray:
        """Weights of the groups."""
        alpha = np.maximum(self.interior.alpha, 0.0)
        return alpha / alpha.sum()

    def potential(self) -> np.ndarray:
        """Potential of the problem's columns, (m,)."""
        inside = self.interior
        return (inside.f if self.flipped else inside.g) * self.unit

    def plan(self) -> Plan:
        """The plan on the arcs, moved to the marginals."""
        rough = Plan.from_arcs(*self.arcs, self.interior.x * self.mass_unit, self.problem.shape[1:])
        return round_plan(rough, self.problem.a, self.problem.b)

    def enter(self) -> bool:
        """Let in the arcs that the potentials call for; True if there were any."""
        inside = self.interior
        if self.whole:
            return False
        f, g = (inside.g, inside.f) if self.flipped else (inside.f, inside.g)
        reduced = self.problem.costs.mix(self.weights()) / self.unit
        reduced -= f[:, None]
        reduced -= g
        m = self.problem.shape[2]
        rows, cols = self.arcs
        closed = np.ones(reduced.shape, dtype=bool)
        closed[rows, cols] = False
        found = np.flatnonzero((reduced < self.reach * inside.eps) & closed)
        if len(found) == 0:
            return False
        self._add(found // m, found % m, reduced.ravel()[found])
        return True

    def _add(self, rows: np.ndarray, cols: np.ndarray, reduced: np.ndarray) -> None:
        inside = self.interior
        barrier = inside.mu
        fresh = self.problem.costs.at(rows, cols) / self.unit
        rows, cols = (cols, rows) if self.flipped else (rows, cols)
        log_product = self.log_product(rows, cols)
        over = np.maximum(reduced, 0.0)
        # The mass that the potentials give it, or that of the barrier where this is more.
        x = np.exp(log_product - over / inside.eps)
        x = np.maximum(x, barrier / (over + self.reach * inside.eps))
        all_rows = np.concatenate([inside.rows, rows])
        all_cols = np.concatenate([inside.cols, cols])
        order = np.lexsort((all_cols, all_rows))
        inside.rows, inside.cols = all_rows[order], all_cols[order]
        inside.costs = np.concatenate([inside.costs, fresh], axis=1)[:, order]
        inside.x = np.concatenate([inside.x, x])[order]
        inside.z = np.concatenate([inside.z, barrier / x])[order]
        inside.log_product = np.concatenate([inside.log_product, log_product])[order]
        inside.index()


def host_problem(stack: np.ndarray, problem: Problem) -> Problem:
    """The problem with its costs as a stack on the host."""
    return Problem(StackedCosts(stack), problem.a, problem.b, problem.adversary, problem.eps)


def _firm(weights: np.ndarray) -> np.ndarray:
    """Lift weights that are next to nothing: the interior point cannot see them.

    Bounds are taken for the weights as they are, so this costs accuracy at most.
    """
    lifted = np.maximum(weights, LEAST_WEIGHT / len(weights))
    return lifted / lifted.sum()
