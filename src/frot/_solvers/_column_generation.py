r"""Column generation: the linear program over mixtures of plans, for few points and few groups.

Every plan is a mixture of vertices of the transport polytope, and the objective sees a vertex only
through its L group costs, so that eta = 0 is the small linear program

.. math:: \min_{w \ge 0,\, t} t \quad \text{s.t.} \quad
    \textstyle\sum_k w_k \phi_l^{(k)} \le t, \quad \sum_k w_k = 1

with a column a vertex. The simplex method on it needs the column of least reduced cost, and that is
an ordinary transport problem at the current duals alpha, which few points solve in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from frot._bounds import Lower, Upper, lower_bound, relative_gap, upper_bound
from frot._oracles import NetworkSimplex, Transport
from frot._plan import Plan
from frot._problem import Problem
from frot._solvers._offer import Offer

__all__ = ["column_generation", "column_generation_suits"]

# Up to so many arcs and groups it is ahead of the interior point.
MOST_ARCS = 2_500
MOST_GROUPS = 8
MOST_PIVOTS = 150
# Reduced costs below this share of the value are zero but for rounding, and so are moves below it.
ZERO = 1e-13
# Where potentials are what keeps the bounds apart, costs are cut at so many times the value.
CUTS = (1e1, 1e3, 1e5)
# Exact pivots at most, at the end.
EXACT_PIVOTS = 8


def column_generation_suits(problem: Problem) -> bool:
    """Whether a problem is small enough, and linear."""
    groups, n, m = problem.shape
    linear = problem.adversary.eta == 0.0
    return linear and n * m <= MOST_ARCS and groups <= MOST_GROUPS


def column_generation(
    problem: Problem, alpha: np.ndarray | None, tol: float, most_pivots: int = MOST_PIVOTS
) -> Iterator[Offer]:
    """Pivot until no plan has a negative reduced cost, and offer both bounds.

    Where rounding has kept them apart, the last basis is solved again in rational numbers, and
    potentials are sought that do not cancel.
    """
    groups = problem.shape[0]
    pricing = _Pricing(problem)
    first = pricing(np.full(groups, 1.0 / groups) if alpha is None else alpha)
    game = _Game(first.phi)
    for _ in range(most_pivots):
        found = pricing(game.alpha())
        if game.value - found.value <= ZERO * abs(game.value) or not game.enter(found.phi):
            break
        yield Offer()
    upper, lower = pricing.bounds(game)
    yield Offer(upper, lower)
    gap = relative_gap(lower.bound, upper.bound)
    for _ in range(EXACT_PIVOTS):
        if gap <= tol:
            return
        game.solve_exactly()
        found = pricing(game.alpha())
        upper, lower = pricing.bounds(game, found)
        yield Offer(upper, lower)
        gap = min(gap, relative_gap(lower.bound, upper.bound))
        if not game.enter(found.phi):
            break
    if gap > tol:
        for cut in CUTS:
            yield Offer(None, pricing.tamed(cut * abs(upper.value)))


class _Priced(NamedTuple):
    """A plan that is best at some weights, its group costs, and what proves that it is."""

    alpha: np.ndarray
    mixed: np.ndarray
    transport: Transport
    phi: np.ndarray
    value: float


class _Pricing:
    """Ordinary transport at changing weights, with all plans found and the best lower bound."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.oracle = problem, NetworkSimplex()
        self.plans: list[Plan] = []
        self.best: _Priced | None = None

    def __call__(self, alpha: np.ndarray) -> _Priced:
        problem = self.problem
        mixed = problem.costs.mix(alpha)
        transport = self.oracle(mixed, problem.a, problem.b)
        self.plans.append(transport.plan)
        phi = problem.costs.inner(transport.plan)
        found = _Priced(alpha, mixed, transport, phi, float(alpha @ phi))
        if self.best is None or found.value > self.best.value:
            self.best = found
        return found

    def bounds(self, game: _Game, at: _Priced | None = None) -> tuple[Upper, Lower]:
        """Bounds of the game's mixture of plans, and of the best weights or the given ones."""
        used, weights = game.mixture()
        plan = Plan.combine([self.plans[at] for at in used], weights)
        at = at or self.best
        assert at is not None
        lower = lower_bound(self.problem, at.alpha, at.transport.g, at.mixed)
        return upper_bound(self.problem, plan), lower

    def tamed(self, cut: float) -> Lower:
        """A lower bound from potentials of costs cut at some level.

        Potentials of parts that only dear arcs connect may be as large as these, and cancel badly.
        """
        problem, at = self.problem, self.best
        assert at is not None
        transport = self.oracle(np.minimum(at.mixed, cut), problem.a, problem.b)
        return lower_bound(problem, at.alpha, transport.g, at.mixed)


class _Game:
    """The simplex method's basis: L + 1 of the level t, the plans' weights and the slacks.

    Columns of the basis matrix are, in this order of variables, t: (-1, 0), a plan: (phi, 1), the
    slack of group l: (e_l, 0); the right-hand side is (0, 1).
    """

    def __init__(self, phi: np.ndarray) -> None:
        groups = len(phi)
        self.columns = [phi]
        self.scale = float(np.abs(phi).max())
        # At first the level is the largest cost of the one plan there is.
        top = int(np.argmax(phi))
        self.basis = [("level", 0), ("plan", 0)]
        self.basis += [("slack", group) for group in range(groups) if group != top]
        self._solve()

    def _column(self, kind: str, at: int) -> np.ndarray:
        groups = len(self.columns[0])
        column = np.zeros(groups + 1)
        if kind == "level":
            column[:groups] = -1.0
        elif kind == "slack":
            column[at] = 1.0
        else:
            column[:groups], column[groups] = self.columns[at], 1.0
        return column

    def _solve(self) -> None:
        self.inverse = np.linalg.inv(np.column_stack([self._column(*one) for one in self.basis]))
        self.values = self.inverse[:, -1]

    def solve_exactly(self) -> None:
        """Invert the basis in rational numbers: weights of 1e-13 on costs of 1e12 need it."""
        columns = [self._column(*one).tolist() for one in self.basis]
        self.inverse = _exact_inverse(columns)
        self.values = self.inverse[:, -1]

    @property
    def value(self) -> float:
        """The level."""
        return float(self.values[0])

    def alpha(self) -> np.ndarray:
        """The duals of the groups."""
        alpha = np.maximum(-self.inverse[0, :-1], 0.0)
        return alpha / alpha.sum()

    def enter(self, phi: np.ndarray) -> bool:
        """Let a plan into the basis; False if nothing can leave for it."""
        self.columns.append(phi)
        self.scale = max(self.scale, float(np.abs(phi).max()))
        entering = ("plan", len(self.columns) - 1)
        direction = self.inverse @ self._column(*entering)
        # The level is free; all other variables stay positive. Slacks are costs, weights are not.
        units = [self.scale if kind == "slack" else 1.0 for kind, _ in self.basis[1:]]
        falls = direction[1:] > ZERO * np.array(units)
        if not falls.any():
            return False
        ratios = np.full(len(falls), np.inf)
        ratios[falls] = np.maximum(self.values[1:][falls], 0.0) / direction[1:][falls]
        before = list(self.basis)
        self.basis[1 + int(np.argmin(ratios))] = entering
        try:
            self._solve()
        except np.linalg.LinAlgError:
            self.basis = before
            self._solve()
            return False
        return True

    def mixture(self) -> tuple[list[int], np.ndarray]:
        """The plans in the basis and their weights."""
        used = [
            (at, value)
            for (kind, at), value in zip(self.basis, self.values.tolist(), strict=True)
            if kind == "plan" and value > 0.0
        ]
        weights = np.array([value for _, value in used])
        return [at for at, _ in used], weights / weights.sum()


def _exact_inverse(columns: list[list[float]]) -> np.ndarray:
    """Invert a small matrix given by its columns, rounding only what comes out.

    Examples
    --------
    >>> _exact_inverse([[2.0, 0.0], [0.0, 4.0]])
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    size = len(columns)
    rows = [
        [Fraction(column[i]) for column in columns] + [Fraction(int(i == j)) for j in range(size)]
        for i in range(size)
    ]
    for at in range(size):
        pivot = next(i for i in range(at, size) if rows[i][at] != 0)
        rows[at], rows[pivot] = rows[pivot], rows[at]
        head = rows[at][at]
        rows[at] = [entry / head for entry in rows[at]]
        for i in range(size):
            factor = rows[i][at]
            if i != at and factor != 0:
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[at], strict=True)]
    return np.array([[float(entry) for entry in row[size:]] for row in rows])
