"""Exact optima of the relatives of feature-robust transport, by the same simplex."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from .linear import minimise_columns, transport
from .optimum import Truth
from .program import ZERO, Program

__all__ = ["capped", "equitable", "max_min", "polytope"]


def max_min(program: Program) -> Truth:
    """The largest of the groups' own transport costs.

    Examples
    --------
    >>> max_min(Program.of_stack([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])).high
    Fraction(0, 1)
    """
    best = max(transport(program.only([group])).value for group in range(len(program.costs)))
    return Truth(best - program.doubt, best + program.doubt)


def equitable(program: Program) -> Truth:
    """Mass is split among costs, and the one that pays most counts.

    Examples
    --------
    >>> equitable(Program.of_stack([[[1.0]], [[3.0]]])).high
    Fraction(3, 4)
    """
    small = program.support()
    count = len(small.costs)
    columns = [
        (i, j, tuple(small.costs[group][i][j] if at == group else ZERO for at in range(count)))
        for group in range(count)
        for i, j in small.arcs()
    ]
    best = minimise_columns(small, columns).value
    return Truth(best - program.doubt, best + program.doubt)


def polytope(program: Program, vertices: Sequence[Sequence[Fraction]]) -> Truth:
    """Weights anywhere between given ones.

    Examples
    --------
    >>> polytope(Program.of_stack([[[1.0]], [[3.0]]]), capped(2, 2)).high
    Fraction(2, 1)
    """
    mixed = program.mixed(vertices)
    best = transport(mixed).value
    return Truth(best - mixed.doubt, best + mixed.doubt)


def capped(count: int, k: int) -> list[list[Fraction]]:
    """Vertices of the simplex with no weight above 1/k."""
    return [
        [Fraction(int(at in chosen), k) for at in range(count)]
        for chosen in combinations(range(count), k)
    ]
