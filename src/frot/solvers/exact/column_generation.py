r"""Column generation: the linear program over mixtures of plans, for few points and few groups.

Every plan is a mixture of vertices of the transport polytope, and the objective sees a vertex only
through its L group costs, so that eta = 0 is the small linear program

.. math:: \min_{w \ge 0,\, t} t \quad \text{s.t.} \quad
    \textstyle\sum_k w_k \phi_l^{(k)} \le t, \quad \sum_k w_k = 1

with a column a vertex. Where no group may weigh more than a cap, the mean of the worst ones takes
the place of the largest: groups may cost more than t, at the price of the cap for each unit,

.. math:: \min_{w, v \ge 0,\, t} t + c \textstyle\sum_l v_l \quad \text{s.t.} \quad
    \textstyle\sum_k w_k \phi_l^{(k)} - v_l \le t, \quad \sum_k w_k = 1 .

The simplex method on it needs the column of least reduced cost, and that is
an ordinary transport problem at the current duals alpha, which few points solve in microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from frot.costs.protocol import UNIT
from frot.plans.combine import combine_plans
from frot.problem.adversary import simplex_of
from frot.problem.bounds import (
    Lower,
    Upper,
    cost_doubt,
    lower_bound,
    upper_bound,
)
from frot.problem.problem import Problem
from frot.solvers.drive import Offer
from frot.solvers.oracles import NetworkSimplex, Transport

# Up to so many arcs and groups it is ahead of the interior point.
MOST_ARCS = 2_500
MOST_GROUPS = 8
MOST_PIVOTS = 150
# Reduced costs below this share of the value are zero but for rounding, and so are moves below it.
ZERO = 1e-13
# What sums over the arcs of several plans are off by, over those of one, at most.
MIXED_DOUBT = 4.0
# Where potentials are what keeps the bounds apart, costs are cut at so many times the value.
CUTS = (1e1, 1e3, 1e5)
# Plans that are added at the end to a program solved exactly, and exact pivots of one at most.
EXACT_PLANS, EXACT_STEPS = 12, 200
# Plans of these in a row that bring nothing, before it is given up.
EXACT_IDLE = 4


def column_generation_suits(problem: Problem) -> bool:
    """Whether a problem is small enough, and linear."""
    groups, n, m = problem.shape
    linear = problem.adversary.eta == 0.0
    return linear and n * m <= MOST_ARCS and groups <= MOST_GROUPS


def column_generation(
    problem: Problem,
    alpha: np.ndarray | None,
    tol: float,
    most_pivots: int = MOST_PIVOTS,
    pricing: Pricing | None = None,
    unit: float = 0.0,
) -> Iterator[Offer]:
    """Pivot until no plan has a negative reduced cost, and offer both bounds.

    Where rounding has kept them apart, the last basis is solved again in rational numbers, and
    potentials are sought that do not cancel. `pricing` is another way than transport at the mixed
    cost to answer weights with a plan, and `unit` about the value, where the first plan may be far
    from it.
    """
    groups = problem.shape[0]
    pricing = pricing or _TransportPricing(problem)
    first = pricing(np.full(groups, 1.0 / groups) if alpha is None else alpha)
    game = Game(first.phi, unit, problem.adversary.k)
    # The plans that are columns of the game, and the one whose weights prove most.
    entered, best, repairs = [first], first, 0
    for _ in range(most_pivots):
        game.settle()
        found = pricing(game.alpha())
        best = _better(best, found)
        if game.value - found.value <= ZERO * abs(game.value) + _noise(problem, found.alpha):
            break
        if game.has(found.phi):
            # A plan of the basis pays no less than the level, unless the basis was badly inverted.
            repairs += 1
            if repairs > EXACT_PLANS:
                break
            game.solve_exactly()
            found = pricing(game.alpha())
            best = _better(best, found)
            if game.has(found.phi):
                break
        entered.append(found)
        if not game.enter(found.phi):
            break
        yield Offer()
    upper, lower = _bounds(pricing, game, entered, best)
    yield Offer(upper, lower)
    gap, idle = problem.gap(lower.bound, upper.bound), 0
    for _ in range(EXACT_PLANS):
        if gap <= tol:
            return
        game.solve_exactly()
        found = pricing(game.alpha())
        best = _better(best, found)
        upper, lower = _bounds(pricing, game, entered, found)
        yield Offer(upper, lower)
        now = problem.gap(lower.bound, upper.bound)
        idle, gap = (0, now) if now < gap else (idle + 1, gap)
        if idle == EXACT_IDLE or game.has(found.phi):
            break
        entered.append(found)
        game.enter(found.phi)
    if gap > tol:
        yield from clipped_offers(problem, best.mixed, upper.value, partial(pricing.lower, best))


def _noise(problem: Problem, alpha: np.ndarray) -> float:
    """What rounding leaves of costs of both signs that cancel in a plan, or in a mixture."""
    if problem.costs.nonnegative:
        return 0.0
    return UNIT * float(np.abs(alpha) @ problem.sizes)


def _better(best: Priced, found: Priced) -> Priced:
    return found if found.value > best.value else best


def _bounds(pricing: Pricing, game: Game, entered: list[Priced], at: Priced) -> tuple[Upper, Lower]:
    """Bounds of the game's mixture of plans, and of the weights of a plan."""
    used, weights = game.mixture()
    upper = pricing.upper([entered[one] for one in used], weights)
    return upper, pricing.lower(at, at.transport.g)


class Pricing(Protocol):
    """Answers weights with the plan that is best at them."""

    def __call__(self, alpha: np.ndarray) -> Priced:
        """Return a plan that is best at these weights, and what it costs."""
        ...

    def upper(self, plans: list[Priced], weights: np.ndarray) -> Upper:
        """The objective of a mixture of plans."""
        ...

    def lower(self, at: Priced, g: np.ndarray) -> Lower:
        """What a potential proves at the weights of a plan."""
        ...


class Priced(NamedTuple):
    """A plan that is best at some weights, its group costs, and what proves that it is."""

    alpha: np.ndarray
    mixed: np.ndarray
    transport: Transport
    phi: np.ndarray
    value: float
    parts: np.ndarray | None = None


class _TransportPricing:
    """Ordinary transport at changing weights."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.oracle = problem, NetworkSimplex()

    def __call__(self, alpha: np.ndarray) -> Priced:
        problem = self.problem
        mixed = problem.costs.mix(alpha)
        transport = self.oracle(mixed, problem.a, problem.b)
        phi = problem.costs.inner(transport.plan)
        if not problem.costs.nonnegative:
            # Costs that cancel are known no better than this, and a mixture pays for it: one that
            # is best but for rounding may be nowhere near with it.
            phi = phi + MIXED_DOUBT * cost_doubt(problem, transport.plan, phi)
        return Priced(alpha, mixed, transport, phi, float(alpha @ phi))

    def upper(self, plans: list[Priced], weights: np.ndarray) -> Upper:
        """The objective of a mixture of plans."""
        return upper_bound(
            self.problem, combine_plans([one.transport.plan for one in plans], weights)
        )

    def lower(self, at: Priced, g: np.ndarray) -> Lower:
        """What a potential proves at the weights of a plan."""
        return lower_bound(self.problem, at.alpha, g, at.mixed)


def last_lower(problem: Problem, upper: Upper) -> Iterator[Offer]:
    """Offer lower bounds at the weights that answer the best plan there is.

    Between points that only dear arcs connect, potentials may be rounded to more than the value.
    """
    _, alpha = problem.adversary.best(upper.phi)
    mixed = problem.costs.mix(alpha)
    yield from clipped_offers(
        problem, mixed, upper.value, lambda g: lower_bound(problem, alpha, g, mixed)
    )


def clipped_offers(
    problem: Problem, mixed: np.ndarray, value: float, prove: Callable[[np.ndarray], Lower]
) -> Iterator[Offer]:
    """Offer lower bounds from potentials of costs cut at multiples of the value."""
    for cut in CUTS:
        g = clipped_potentials(mixed, problem.a, problem.b, cut * abs(value))
        yield Offer(None, prove(g))


def clipped_potentials(mixed: np.ndarray, a: np.ndarray, b: np.ndarray, cut: float) -> np.ndarray:
    """Return the potential g of costs cut at some level.

    Potentials of parts that only dear arcs connect may be as large as these, and cancel badly.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> g = clipped_potentials(np.array([[1.0, 1e15], [1e15, 2.0]]), half, half, 10.0)
    >>> bool(np.ptp(g) <= 10.0)
    True
    """
    return NetworkSimplex()(np.minimum(mixed, cut), a, b).g


class Game:
    """The simplex method's basis: L + 1 of the level t, the plans' weights and the slacks.

    Columns of the basis matrix are, in this order of variables, t: (-1, 0), a plan: (phi, 1), the
    slack of group l: (e_l, 0), what it is over the level: (-e_l, 0); the right-hand side is (0, 1).
    The first costs one and the last 1/k, the others nothing.
    """

    def __init__(self, phi: np.ndarray, unit: float = 0.0, k: int = 1) -> None:
        groups = len(phi)
        self.k, self.weights = k, simplex_of(k, 0.0, None)
        # In units of the first plan's costs: costs and weights share the basis matrix.
        self.unit = unit or float(np.abs(phi).max()) or 1.0
        self.columns = [phi / self.unit]
        self.scale = 1.0
        # At first the level is the largest cost of the one plan there is.
        top = int(np.argmax(phi))
        self.basis = [("level", 0), ("plan", 0)]
        self.basis += [("slack", group) for group in range(groups) if group != top]
        self._fill()
        self._solve()

    def _column(self, kind: str, at: int) -> np.ndarray:
        groups = len(self.columns[0])
        column = np.zeros(groups + 1)
        if kind == "level":
            column[:groups] = -1.0
        elif kind == "slack":
            column[at] = 1.0
        elif kind == "over":
            column[at] = -1.0
        else:
            column[:groups], column[groups] = self.columns[at], 1.0
        return column

    def _fill(self) -> None:
        """Write the basis as a matrix."""
        self._matrix = np.empty((len(self.basis), len(self.basis)))
        for at, one in enumerate(self.basis):
            self._matrix[:, at] = self._column(*one)

    def _solve(self) -> None:
        self.inverse = np.linalg.inv(self._matrix)
        self.values = self.inverse[:, -1]

    @property
    def _duals(self) -> np.ndarray:
        """Duals of the groups, negative, and of the sum of the weights."""
        duals = self.inverse[0]
        if self.k == 1:
            return duals
        over = [at for at, (kind, _) in enumerate(self.basis) if kind == "over"]
        return duals + self.inverse[over].sum(axis=0) / self.k if over else duals

    def solve_exactly(self) -> None:
        """Solve the program of all columns so far in rational numbers.

        Weights of 1e-13 on costs of 1e12 need it.
        """
        self.basis, inverse = exact_simplex(self.columns, self.k)
        self._fill()
        self.inverse = np.array([[float(entry) for entry in row] for row in inverse])
        self.values = self.inverse[:, -1]

    @property
    def value(self) -> float:
        """The level, and what the worst groups are over it."""
        return float(self._duals[-1]) * self.unit

    def alpha(self) -> np.ndarray:
        """The duals of the groups."""
        return self.weights.project(-self._duals[:-1])

    def enter(self, phi: np.ndarray) -> bool:
        """Let a plan into the basis; False if nothing can leave for it."""
        phi = phi / self.unit
        self.columns.append(phi)
        self.scale = max(self.scale, float(np.abs(phi).max()))
        return self._pivot(("plan", len(self.columns) - 1))

    def settle(self) -> None:
        """Let slacks in while a group would have a negative weight, or one above the cap."""
        for _ in range(2 * len(self.basis)):
            alpha = -self._duals[:-1]
            least = int(alpha.argmin())
            entering, price = ("slack", least), float(alpha[least])
            if self.k > 1 and 1.0 / self.k - float(alpha.max()) < price:
                entering = ("over", int(np.argmax(alpha)))
                price = 1.0 / self.k - float(alpha.max())
            if price >= -ZERO or not self._pivot(entering):
                return

    def _pivot(self, entering: tuple[str, int]) -> bool:
        column = self._column(*entering)
        direction = self.inverse @ column
        # The level is free; all other variables stay positive. Slacks are costs, weights are not.
        units = [1.0 if kind == "plan" else self.scale for kind, _ in self.basis[1:]]
        falls = direction[1:] > ZERO * np.array(units)
        if not falls.any():
            return False
        ratios = np.full(len(falls), np.inf)
        ratios[falls] = np.maximum(self.values[1:][falls], 0.0) / direction[1:][falls]
        leaving = 1 + int(ratios.argmin())
        before = self._matrix[:, leaving].copy()
        self._matrix[:, leaving] = column
        try:
            self._solve()
        except np.linalg.LinAlgError:
            self._matrix[:, leaving] = before
            self._solve()
            return False
        self.basis[leaving] = entering
        return True

    def has(self, phi: np.ndarray) -> bool:
        """Whether a plan of these costs is in the basis."""
        phi = phi / self.unit
        return any(
            kind == "plan" and np.array_equal(self.columns[at], phi) for kind, at in self.basis
        )

    def mixture(self) -> tuple[list[int], np.ndarray]:
        """The plans in the basis and their weights."""
        used = [
            (at, value)
            for (kind, at), value in zip(self.basis, self.values.tolist(), strict=True)
            if kind == "plan" and value > 0.0
        ]
        weights = np.array([value for _, value in used])
        return [at for at, _ in used], weights / weights.sum()


def exact_simplex(
    columns: list[np.ndarray], k: int = 1
) -> tuple[list[tuple[str, int]], list[list[Fraction]]]:
    """Find the best mixture of columns in rational numbers; return a basis and its inverse.

    Columns are group costs of the plans, (L,) each, and no group weighs more than 1/k.

    Examples
    --------
    >>> basis, inverse = exact_simplex([np.array([3.0, 0.0]), np.array([0.0, 1.0])])
    >>> [(kind, at, str(row[-1])) for (kind, at), row in zip(basis, inverse)]
    [('level', 0, '3/4'), ('plan', 1, '3/4'), ('plan', 0, '1/4')]
    """
    plans = [[Fraction(cost) for cost in phi.tolist()] for phi in columns]
    groups = len(plans[0])
    first = min(range(len(plans)), key=lambda at: max(plans[at]))
    top = max(range(groups), key=lambda group: plans[first][group])
    # The level is the largest cost of the best plan: the inverse of that basis is known.
    basis = [("level", 0), ("plan", first)]
    inverse = [[Fraction(0)] * (groups + 1) for _ in range(2)]
    inverse[0][top], inverse[0][groups] = Fraction(-1), plans[first][top]
    inverse[1][groups] = Fraction(1)
    for group in range(groups):
        if group != top:
            row = [Fraction(0)] * (groups + 1)
            row[group], row[top] = Fraction(1), Fraction(-1)
            row[groups] = plans[first][top] - plans[first][group]
            basis.append(("slack", group))
            inverse.append(row)
    for _ in range(EXACT_STEPS):
        level = inverse[0]
        over = [row for (kind, _), row in zip(basis, inverse, strict=True) if kind == "over"]
        if over:
            sums = [sum(entries, Fraction(0)) for entries in zip(*over, strict=True)]
            level = [one + extra / k for one, extra in zip(level, sums, strict=True)]
        prices = [(-level[group], ("slack", group)) for group in range(groups)]
        if k > 1:
            prices += [(Fraction(1, k) + level[group], ("over", group)) for group in range(groups)]
        prices += [
            (-level[groups] - _inner(level, phi), ("plan", at)) for at, phi in enumerate(plans)
        ]
        price, entering = min(prices)
        if price >= 0:
            break
        _pivot_exactly(basis, inverse, entering, plans)
    return basis, inverse


def _inner(row: list[Fraction], phi: list[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(row, phi, strict=False) if x), Fraction(0))


def _pivot_exactly(
    basis: list[tuple[str, int]],
    inverse: list[list[Fraction]],
    entering: tuple[str, int],
    plans: list[list[Fraction]],
) -> None:
    """Let a column in for the one that reaches zero first; the level never leaves."""
    kind, at = entering
    if kind != "plan":
        direction = [row[at] if kind == "slack" else -row[at] for row in inverse]
    else:
        direction = [_inner(row, plans[at]) + row[-1] for row in inverse]
    falling = [index for index in range(1, len(basis)) if direction[index] > 0]
    leaving = min(falling, key=lambda index: (inverse[index][-1] / direction[index], basis[index]))
    head = direction[leaving]
    inverse[leaving] = [entry / head for entry in inverse[leaving]]
    basis[leaving] = entering
    for index, factor in enumerate(direction):
        if index != leaving and factor:
            inverse[index] = [
                x - factor * y for x, y in zip(inverse[index], inverse[leaving], strict=True)
            ]
