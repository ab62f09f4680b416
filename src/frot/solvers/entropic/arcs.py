r"""The interior point for problems with eps, on the arcs that carry mass.

Sinkhorn's sweeps slow down as eps falls, and so does any ascent that waits for them; the interior
point takes ten to fifteen Newton steps whatever eps, eta and the number of groups are. Its plan x
carries its own mass instead of that of potentials, so that steps are long where a Gibbs kernel
would over- or underflow. In a problem that is not small, arcs whose mass would be next to nothing,

.. math:: a_i b_j\, e^{-r_{ij} / \varepsilon}, \qquad r = M_\alpha - f \oplus g ,

are left out until the potentials call for them.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from frot._base.stopping import check_deadline
from frot.costs.protocol import UNIT
from frot.plans.feasible import marginal_error
from frot.plans.plan import Plan
from frot.problem.bounds import Upper, upper_bound
from frot.problem.problem import Problem
from frot.solvers.drive import Offer
from frot.solvers.exact.interior import Interior, inside_cap
from frot.solvers.exact.placement import Placement, place
from frot.solvers.start import Start

# There is no room for more than this.
MOST_GROUPS, MOST_COSTS, MOST_POINTS = 200, 20_000_000, 3_000
# Up to so many arcs all are in from the start.
ALL_ARCS = 3_000
# Arcs that would carry less than this share of the tolerance are left out.
LEFT_OUT = 1e-2
# How far above the group costs of the product plan the level begins, in units of cost.
FIRST_LEVEL = 0.1
# Points of less than this share of the mass, and of the costs' spread, have no part in the search.
NEGLIGIBLE = 1e-16
# Full problems are looked at first at this gap of the interior, then at these shares of their own.
FIRST_TARGET, SOLVE_TO, CLOSER = 0.05, 0.2, 0.1


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
    centre: _Centre | None = None
    kept: tuple[np.ndarray, np.ndarray] | None = None
    target: float = FIRST_TARGET
    moved: bool = True

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
        if n * m <= ALL_ARCS or problem.mean_cost == 0.0:
            return cls._whole(problem, reach, alpha)
        placed = _last(place(problem, Start(alpha)))
        found = cls(problem, placed.interior, placed.flipped, placed.unit, placed.mass_unit, reach)
        inside = found.interior
        inside.eps = problem.eps / placed.unit
        inside.log_product = found.log_product(inside.rows, inside.cols)
        inside.shares = found.shares(inside.log_product)
        return found

    @classmethod
    def _whole(cls, problem: Problem, reach: float, alpha: np.ndarray | None) -> EntropicArcs:
        """Start on all arcs, from the product plan.

        Costs are centred by rows and columns first: what a far point costs whoever it goes to would
        drown the rest. Complementarities start, and are asked to stay, in proportion to the mass
        and to the spread of the costs of their points.
        """
        count, n, m = problem.shape
        flipped = m > n
        unit, mass_unit = problem.typical_cost or 1.0, 1.0 / max(n, m)
        sides = (problem.a, problem.b)
        a, b = (side / mass_unit for side in (sides[::-1] if flipped else sides))
        rows, cols = np.repeat(np.arange(len(a)), len(b)), np.tile(np.arange(len(b)), len(a))
        costs = problem.costs.at(*((cols, rows) if flipped else (rows, cols))) / unit
        centre = _Centre.of(costs, rows, cols, a, b, whole=True)
        costs -= centre.at(rows, cols)
        log_product = np.log(a[rows]) + np.log(b[cols]) + np.log(mass_unit)
        x = np.exp(log_product)
        spread = _spreads(costs, rows, cols, x, a, b)
        offsets = centre.offsets(a, b)
        kept = _matter(x * spread, rows, cols, a, b)
        if kept is not None:
            # Points that could not matter less: their arcs are out, what they cost stays.
            on = kept[0][rows] & kept[1][cols]
            costs, x, spread, log_product = costs[:, on], x[on], spread[on], log_product[on]
            rows, cols = (
                np.cumsum(side)[at[on]] - 1 for side, at in zip(kept, (rows, cols), strict=True)
            )
            a, b = a[kept[0]], b[kept[1]]
            kept = (kept[1], kept[0]) if flipped else kept
        first = np.full(count, 1.0 / count) if alpha is None else np.maximum(alpha, 1e-3 / count)
        cap = problem.adversary.cap
        first = inside_cap(first / first.sum(), cap)
        eta = problem.adversary.eta / (unit * mass_unit)
        prior = problem.adversary.log_prior
        log_prior = np.zeros(count) if prior is None else prior
        free = offsets + costs @ x - eta * (np.log(first) - log_prior)
        t = float(free.max()) + FIRST_LEVEL / mass_unit
        inside = Interior(
            a=a, b=b, rows=rows, cols=cols, costs=costs, eta=eta, log_prior=log_prior, x=x,
            z=spread, alpha=first, s=t - free, f=np.zeros(len(a)), g=np.zeros(len(b)), t=t,
            eps=problem.eps / unit, log_product=log_product,
            shares=x * spread * (n * m * mass_unit), offsets=offsets, cap=cap,
        )  # fmt: skip
        return cls(problem, inside, flipped, unit, mass_unit, reach, centre, kept)

    @property
    def whole(self) -> bool:
        """Whether all arcs are in."""
        if self.kept is not None:
            return True
        return len(self.interior.x) == len(self.problem.a) * len(self.problem.b)

    @property
    def arcs(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the arcs, as the problem counts them."""
        rows, cols = self.interior.rows, self.interior.cols
        rows, cols = (cols, rows) if self.flipped else (rows, cols)
        if self.kept is not None:
            rows, cols = (
                np.flatnonzero(side)[at] for side, at in zip(self.kept, (rows, cols), strict=True)
            )
        return rows, cols

    def log_product(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Return log of the product of the marginals, in the interior's units and its order."""
        a, b = np.log(self.interior.a), np.log(self.interior.b)
        return a[rows] + b[cols] + np.log(self.mass_unit)

    def shares(self, log_product: np.ndarray) -> np.ndarray:
        """Return products of marginals in units of their mean over all arcs."""
        inside = self.interior
        return np.exp(log_product) * (len(inside.a) * len(inside.b) * self.mass_unit)

    def step(self) -> bool:
        """Take one Newton step; False if the interior is settled for now, or stuck."""
        check_deadline()
        self.moved = self.interior.step()
        return self.moved and self.gap() > self.target

    def aim(self, gap: float) -> bool:
        """Look for arcs in the full problem, whose gap is given; False if there is no way on."""
        entered = self.enter()
        if entered:
            self.target = SOLVE_TO * gap
        elif self.moved:
            self.target = CLOSER * min(gap, self.gap())
        return entered or self.moved

    def gap(self) -> float:
        """Relative gap of the restricted problem, as far as it is feasible."""
        inside = self.interior
        share = inside.complementarity * self.mass_unit
        return share / max(abs(inside.t) * self.mass_unit, 1e-6) + inside.infeasibility()

    def weights(self) -> np.ndarray:
        """Weights of the groups."""
        return self.problem.adversary.project(self.interior.alpha)

    def potential(self) -> np.ndarray:
        """Potentials of the rows, (n,); minus infinity where they could not matter less."""
        inside, sides = self.interior, self.kept or (slice(None), slice(None))
        found = inside.g if self.flipped else inside.f
        if self.centre is not None:
            taken = self.centre.cols if self.flipped else self.centre.rows
            found = found + self.weights() @ taken[:, sides[0]]
        whole = np.full(self.problem.shape[1], -np.inf)
        whole[sides[0]] = found * self.unit
        return whole

    def plan(self) -> Plan:
        """The plan on the arcs, nearly feasible."""
        mass = self.interior.x * self.mass_unit
        return Plan.from_arcs(*self.arcs, mass, self.problem.shape[1:])

    def enter(self) -> bool:
        """Let in the arcs that the potentials call for; True if there were any."""
        inside = self.interior
        if self.whole:
            return False
        assert self.centre is None
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
        each = barrier * self.shares(log_product)
        x = np.maximum(x, each / (over + self.reach * inside.eps))
        inside.add_arcs(rows, cols, fresh, x, each / x, log_product)
        inside.shares = self.shares(inside.log_product)


def _last(placing: Generator[Offer, None, Placement]) -> Placement:
    """Run to the end: what is offered on the way are bounds of the problem without eps."""
    while True:
        try:
            next(placing)
        except StopIteration as end:
            return end.value


def arcs_suit(problem: Problem) -> bool:
    """Whether an interior point has room for the arcs of a problem, and costs to look at."""
    count, n, m = problem.shape
    few = count <= MOST_GROUPS and count * n * m <= MOST_COSTS and n + m <= MOST_POINTS
    # Where nothing costs anything the product plan is the answer.
    return few and problem.mean_cost > 0.0


def plan_upper(problem: Problem, plan: Plan) -> Upper:
    r"""Take the objective of a plan, its entropy summed over its arcs, as an upper bound.

    .. math:: G_\eta(\phi(\Pi)) + \varepsilon \sum_{ij} \pi_{ij} \log \frac{\pi_{ij}}{a_i b_j}
    """
    plain = upper_bound(problem, plan)
    rows, cols, mass = plain.plan.arcs()
    used = mass > 0.0
    rows, cols, mass = rows[used], cols[used], mass[used]
    surprise = np.log(mass) - np.log(problem.a[rows]) - np.log(problem.b[cols])
    terms = mass * surprise
    # Logarithms are off by units of themselves; marginals that are right to a share move no more.
    sizes = mass @ (np.abs(np.log(mass)) - np.log(problem.a[rows]) - np.log(problem.b[cols]))
    share = marginal_error(plain.plan, problem.a, problem.b)
    error = (8.0 + 0.5 * len(mass)) * UNIT * float(np.abs(terms).sum())
    error += 4.0 * UNIT * float(sizes) + 9.0 * share + 8.0 * UNIT
    entropy = problem.eps * float(terms.sum())
    bound = plain.bound + entropy + problem.eps * error
    return Upper(bound, min(plain.value + entropy, bound), plain.plan, plain.phi, plain.bound)


class _Centre(NamedTuple):
    """Mean costs of rows (G, n) and of columns (G, m), which are taken off the costs."""

    rows: np.ndarray
    cols: np.ndarray

    @classmethod
    def of(
        cls, costs: np.ndarray, rows: np.ndarray, cols: np.ndarray, a: np.ndarray, b: np.ndarray,
        whole: bool,
    ) -> _Centre:  # fmt: skip
        """Take the columns' means first, and the rows' of what they leave."""
        count = len(costs)
        if not whole:
            return cls(np.zeros((count, len(a))), np.zeros((count, len(b))))
        stack = costs.reshape(count, len(a), len(b))
        by_col = np.einsum("lij,i->lj", stack, a / a.sum())
        by_row = np.einsum("lij,j->li", stack - by_col[:, None, :], b / b.sum())
        return cls(by_row, by_col)

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Return what is taken off the arcs, (G, K)."""
        return self.rows[:, rows] + self.cols[:, cols]

    def offsets(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return what it is in all, (G,)."""
        return self.rows @ a + self.cols @ b


def _matter(
    worth: np.ndarray, rows: np.ndarray, cols: np.ndarray, a: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Tell points whose weight, and weight times spread of costs, are more than rounding of all.

    None where all are.
    """
    sums = np.bincount(rows, worth, len(a)), np.bincount(cols, worth, len(b))
    kept = tuple(
        (sum_ > NEGLIGIBLE * worth.sum()) | (side > NEGLIGIBLE * side.sum())
        for sum_, side in zip(sums, (a, b), strict=True)
    )
    return None if all(side.all() for side in kept) else (kept[0], kept[1])


def _spreads(
    costs: np.ndarray, rows: np.ndarray, cols: np.ndarray, x: np.ndarray, a: np.ndarray,
    b: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Return how far apart the costs of an arc's two points are, (K,), one unit at least."""
    sizes = x * np.abs(costs).mean(axis=0)
    by_row = np.bincount(rows, sizes, len(a)) / a
    by_col = np.bincount(cols, sizes, len(b)) / b
    return np.maximum(1.0, np.maximum(by_row[rows], by_col[cols]))


# Mass of an arc, over the weights of its points, that is rounding and no more.
ROUNDING = 64.0 * UNIT
# Arcs so many eps above their potentials are empty: exp(-50) is nothing next to one.
EMPTY = 50.0
