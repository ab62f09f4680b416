r"""The worst of several costs, minimised over plans, in exact arithmetic.

.. math:: \min_x \; \max_l \sum_e c_{le} x_e

over x >= 0 on arcs e that move the masses a of the rows to the masses b of the columns.

A primal simplex on whole numbers. A basis is a set of *binding* costs (those that attain the
maximum), and of arcs: a spanning tree, and one arc more for each binding cost but the first. Flows
and potentials on the tree are sums of whole numbers; only a system of as many equations as there
are binding costs has to be solved, without fractions. Nothing is rounded anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

__all__ = ["Arc", "Optimum", "check_optimum", "minimise_worst"]

# After so many steps in a row that did not move, the rule that cannot cycle takes over.
PATIENCE = 12


class Arc(NamedTuple):
    """An arc from a row to a column, and what a unit of mass on it costs in each group."""

    row: int
    col: int
    costs: tuple[int, ...]


@dataclass(frozen=True)
class Optimum:
    """An optimal basis: `value` is exact, and `mass`, `alpha`, `f` and `g` prove it.

    `mass` maps arcs, by their position, to what they carry.
    """

    value: Fraction
    mass: dict[int, Fraction]
    alpha: tuple[Fraction, ...]
    f: tuple[Fraction, ...]
    g: tuple[Fraction, ...]
    pivots: int


def minimise_worst(a: Sequence[int], b: Sequence[int], arcs: Sequence[Arc]) -> Optimum:
    """Return an optimal plan and what proves it.

    Parameters
    ----------
    a, b : sequences of int
        Masses > 0 of rows and columns, of equal sums.
    arcs : sequence of Arc
        There must be one between every row and every column; several are fine.

    Examples
    --------
    >>> arcs = [Arc(i, j, (abs(i - j), 1 - abs(i - j))) for i in (0, 1) for j in (0, 1)]
    >>> found = minimise_worst([1, 1], [1, 1], arcs)
    >>> found.value, found.alpha
    (Fraction(1, 1), (Fraction(1, 2), Fraction(1, 2)))
    """
    if sum(a) != sum(b) or min(*a, *b) <= 0:
        raise ValueError("masses must be positive whole numbers of equal sums")
    return _Simplex(list(a), list(b), list(arcs)).run()


def check_optimum(a: Sequence[int], b: Sequence[int], arcs: Sequence[Arc], found: Optimum) -> None:
    """Check an optimum by weak duality, trusting nothing that the simplex did.

    Raises
    ------
    AssertionError
        If the plan is none, the weights or potentials are not feasible, or values differ.
    """
    left: list[Fraction] = [Fraction(x) for x in (*a, *b)]
    phi = [Fraction(0)] * len(found.alpha)
    for at, moved in found.mass.items():
        left[arcs[at].row] -= moved
        left[len(a) + arcs[at].col] -= moved
        phi = [cost + moved * c for cost, c in zip(phi, arcs[at].costs, strict=True)]
    assert not any(left), "marginals that are not right"
    assert min(found.mass.values()) >= 0, "masses below zero"
    assert min(found.alpha) >= 0, "weights below zero"
    assert sum(found.alpha) == 1, "weights that do not sum to one"
    for arc in arcs:
        mixed = sum(w * c for w, c in zip(found.alpha, arc.costs, strict=True) if w)
        assert found.f[arc.row] + found.g[arc.col] <= mixed, "potentials above a cost"
    proven = sum(f * x for f, x in zip(found.f, a, strict=True))
    proven += sum(g * x for g, x in zip(found.g, b, strict=True))
    assert max(phi) == proven == found.value, "a gap between plan and potentials"


class _Basis(NamedTuple):
    """What a basis determines; numbers are over the common denominator `scale`."""

    scale: int
    mass: dict[int, int]
    slack: dict[int, int]
    alpha: dict[int, int]
    tree: _Tree
    reduced: list[list[int]]
    extra: list[int]
    matrix: list[list[int]]


class _Simplex:
    """Arcs in the basis, binding groups, and the pivots between them."""

    def __init__(self, a: list[int], b: list[int], arcs: list[Arc]) -> None:
        self.n, self.m, self.arcs = len(a), len(b), arcs
        self.need = [*a, *b]
        self.groups = range(len(arcs[0].costs))
        self.basic = _greedy_tree(a, b, arcs)
        tree = _Tree(self, self.basic)
        phi = self._phi(tree.flow(self.need))
        self.binding = [max(self.groups, key=lambda group: phi[group])]

    def run(self) -> Optimum:
        """Pivot until no arc and no group pays."""
        pivots = still = 0
        while True:
            basis = self._basis()
            entering = self._entering(basis, careful=still > PATIENCE)
            if entering is None:
                return self._optimum(basis, pivots)
            moved = self._pivot(basis, entering)
            still = 0 if moved else still + 1
            pivots += 1

    def _phi(self, mass: dict[int, int]) -> list[int]:
        return [
            sum(flow * self.arcs[arc].costs[group] for arc, flow in mass.items())
            for group in self.groups
        ]

    def _basis(self) -> _Basis:
        """Solve for the masses and the weights that the basis stands for."""
        tree = _Tree(self, self.basic)
        extra = [arc for arc in self.basic if arc not in tree.inside]
        rest = [tree.reduced(arc) for arc in extra]
        # Unknown: the masses on extra arcs, and the common cost of all binding groups.
        matrix = [[*(part[group] for part in rest), -1] for group in self.binding]
        flow = tree.flow(self.need)
        phi = self._phi(flow)
        (solved,), scale = _solve(matrix, [[-phi[group] for group in self.binding]])
        mass = {arc: scale * moved for arc, moved in flow.items()}
        phi = [scale * cost for cost in phi]
        for arc, part, moved in zip(extra, rest, solved, strict=False):
            mass[arc] = moved
            tree.shift(mass, arc, moved)
            phi = [cost + moved * part[group] for group, cost in enumerate(phi)]
        slack = {
            group: solved[-1] - phi[group] for group in self.groups if group not in self.binding
        }
        flipped = [[row[at] for row in matrix] for at in range(len(matrix))]
        # The transpose has the same determinant, so that all is over the same denominator.
        (weights,), _ = _solve(flipped, [[*([0] * len(rest)), -1]])
        alpha = dict(zip(self.binding, weights, strict=True))
        return _Basis(scale, mass, slack, alpha, tree, rest, extra, matrix)

    def _potentials(self, basis: _Basis) -> list[int]:
        nodes = range(self.n + self.m)
        height = basis.tree.height
        return [sum(w * height[node][group] for group, w in basis.alpha.items()) for node in nodes]

    def _entering(self, basis: _Basis, careful: bool) -> tuple[str, int] | None:
        """Return the arc or the binding group that pays most; careful: the first that pays."""
        potential = self._potentials(basis)
        weights = list(basis.alpha.items())
        best, found = 0, None
        for at, arc in enumerate(self.arcs):
            costs = arc.costs
            price = sum([w * costs[group] for group, w in weights])
            price -= potential[arc.row] + potential[self.n + arc.col]
            if price < best:
                best, found = price, ("arc", at)
                if careful:
                    return found
        if found is None:
            paying = [(w, group) for group, w in weights if w < 0]
            if paying:
                found = ("group", min(paying, key=lambda pair: pair[careful])[1])
        return found

    def _pivot(self, basis: _Basis, entering: tuple[str, int]) -> bool:
        """Let something in, and out what first comes to zero; return whether anything moved."""
        what, which = entering
        if what == "arc":
            reduced = basis.tree.reduced(which)
            right = [-reduced[group] for group in self.binding]
        else:
            reduced = [0 for _ in self.groups]
            right = [-int(group == which) for group in self.binding]
        (solved,), scale = _solve(basis.matrix, [right])
        change: dict[int, int] = {}
        if what == "arc":
            basis.tree.shift(change, which, scale)
        rise = [scale * cost for cost in reduced]
        for arc, part, moved in zip(basis.extra, basis.reduced, solved, strict=False):
            change[arc] = change.get(arc, 0) + moved
            basis.tree.shift(change, arc, moved)
            rise = [cost + moved * part[group] for group, cost in enumerate(rise)]
        # Arcs come first in ties, each in its order: the rule that cannot cycle.
        limits = [
            (Fraction(basis.mass[arc], -drop), 0, arc) for arc, drop in change.items() if drop < 0
        ]
        limits += [
            (Fraction(room, rise[group] - solved[-1]), 1, group)
            for group, room in basis.slack.items()
            if rise[group] > solved[-1]
        ]
        step, is_group, leaving = min(limits)
        if what == "arc":
            self.basic.append(which)
        else:
            self.binding.remove(which)
        if is_group:
            self.binding.append(leaving)
        else:
            self.basic.remove(leaving)
        return step > 0

    def _optimum(self, basis: _Basis, pivots: int) -> Optimum:
        potential = [Fraction(part, basis.scale) for part in self._potentials(basis)]
        mass = {arc: Fraction(moved, basis.scale) for arc, moved in basis.mass.items() if moved}
        alpha = tuple(Fraction(basis.alpha.get(group, 0), basis.scale) for group in self.groups)
        group = self.binding[0]
        value = sum(
            (moved * self.arcs[arc].costs[group] for arc, moved in mass.items()), Fraction()
        )
        return Optimum(
            value, mass, alpha, tuple(potential[: self.n]), tuple(potential[self.n :]), pivots
        )


class _Tree:
    """A spanning tree of some of the basic arcs: flows, potentials, cycles."""

    def __init__(self, simplex: _Simplex, basic: list[int]) -> None:
        self.simplex = simplex
        n, arcs = simplex.n, simplex.arcs
        near: list[list[tuple[int, int]]] = [[] for _ in simplex.need]
        for at in basic:
            row, col = arcs[at].row, n + arcs[at].col
            near[row].append((col, at))
            near[col].append((row, at))
        self.parent: list[tuple[int, int]] = [(-1, -1)] * len(near)
        self.depth = [0] * len(near)
        # What potentials of each group are at a node, so that they add up to costs on the tree.
        self.height = [[0 for _ in simplex.groups] for _ in near]
        self.order, seen = [0], {0}
        for node in self.order:
            for other, at in near[node]:
                if other not in seen:
                    seen.add(other)
                    self.order.append(other)
                    self.parent[other] = (node, at)
                    self.depth[other] = self.depth[node] + 1
                    pairs = zip(arcs[at].costs, self.height[node], strict=True)
                    self.height[other] = [cost - high for cost, high in pairs]
        self.inside = {at for _, at in self.parent[1:]}

    def flow(self, need: list[int]) -> dict[int, int]:
        """The only masses on the tree that move what is needed."""
        left, mass = list(need), {}
        for node in reversed(self.order[1:]):
            above, at = self.parent[node]
            mass[at] = left[node]
            left[above] -= left[node]
        return mass

    def reduced(self, at: int) -> list[int]:
        """What a unit around the cycle that an arc closes costs in each group."""
        arc = self.simplex.arcs[at]
        ends = self.height[arc.row], self.height[self.simplex.n + arc.col]
        return [cost - x - y for cost, x, y in zip(arc.costs, *ends, strict=True)]

    def shift(self, mass: dict[int, int], at: int, amount: int) -> None:
        """Take an amount that an arc of its own carries off the tree: around its cycle."""
        arc = self.simplex.arcs[at]
        left, right = arc.row, self.simplex.n + arc.col
        mass.setdefault(at, amount)
        if not amount:
            return
        # Going up from either end, signs alternate.
        signs = [-amount, -amount]
        ends = [left, right]
        while ends[0] != ends[1]:
            side = 0 if self.depth[ends[0]] >= self.depth[ends[1]] else 1
            ends[side], on = self.parent[ends[side]]
            mass[on] = mass.get(on, 0) + signs[side]
            signs[side] = -signs[side]


def _greedy_tree(a: list[int], b: list[int], arcs: list[Arc]) -> list[int]:
    """Fill the arcs that are cheapest on average first, and join what is left apart."""
    left_a, left_b = list(a), list(b)
    component = list(range(len(a) + len(b)))

    def find(node: int) -> int:
        while component[node] != node:
            component[node] = component[component[node]]
            node = component[node]
        return node

    order = sorted(range(len(arcs)), key=lambda at: sum(arcs[at].costs))
    chosen = []
    for at in order:
        row, col = arcs[at].row, arcs[at].col
        if left_a[row] > 0 and left_b[col] > 0:
            moved = min(left_a[row], left_b[col])
            left_a[row] -= moved
            left_b[col] -= moved
            chosen.append(at)
            component[find(row)] = find(len(a) + col)
    for at in order:
        one, other = find(arcs[at].row), find(len(a) + arcs[at].col)
        if one != other:
            component[one] = other
            chosen.append(at)
    return chosen


def _solve(matrix: list[list[int]], rights: list[list[int]]) -> tuple[list[list[int]], int]:
    """Solve whole-number equations: numerators for each right side, and one denominator > 0."""
    size = len(matrix)
    work = [[*row, *(right[at] for right in rights)] for at, row in enumerate(matrix)]
    before = 1
    for step in range(size):
        pick = next(row for row in range(step, size) if work[row][step])
        if pick != step:
            # A change of sign instead of a swapped sign of the determinant.
            work[step], work[pick] = work[pick], [-x for x in work[step]]
        pivot = work[step][step]
        lead = work[step]
        for row in range(size):
            if row != step:
                factor, line = work[row][step], work[row]
                work[row] = [
                    (pivot * x - factor * y) // before for x, y in zip(line, lead, strict=True)
                ]
        before = pivot
    sign = 1 if before > 0 else -1
    found = [[sign * work[at][size + side] for at in range(size)] for side in range(len(rights))]
    return found, sign * before
