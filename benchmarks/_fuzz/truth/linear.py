"""The optimum without entropies, exactly: the simplex finds it, weak duality proves it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from .program import ZERO, Program
from .simplex import Arc, check_optimum, minimise_worst

__all__ = ["NoPlanError", "Transport", "minimise_columns", "normalised", "transport"]

# An arc's ends, and its cost in each group.
Column = tuple[int, int, tuple[Fraction, ...]]


class NoPlanError(ValueError):
    """Forbidden arcs leave no plan; `lack` is the mass that has no arc."""

    def __init__(self, lack: Fraction) -> None:
        super().__init__(f"{float(lack):.3g} of the mass has no arc left")
        self.lack = lack


@dataclass(frozen=True)
class Transport:
    """The exact optimum of a program without points of zero weight, and its proof."""

    value: Fraction
    mass: dict[tuple[int, int], Fraction]
    alpha: tuple[Fraction, ...]
    f: tuple[Fraction, ...]
    g: tuple[Fraction, ...]
    pivots: int


def transport(program: Program) -> Transport:
    """Minimise the worst group's cost over all plans, exactly.

    Points without weight are left out: indices of the answer are those of `program.support()`.

    Raises
    ------
    NoPlanError
        If the arcs there are cannot move all the mass.

    Examples
    --------
    >>> transport(Program.of_stack([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])).value
    Fraction(1, 2)
    """
    program = program.support()
    if program.forbidden:
        check_plan_left(program)
    columns = [(i, j, tuple(group[i][j] for group in program.costs)) for i, j in program.arcs()]
    return minimise_columns(program, columns)


def minimise_columns(program: Program, columns: Sequence[Column]) -> Transport:
    """Minimise the worst of any costs of arcs (i, j, costs) over plans between the weights.

    There must be a plan on these arcs. Several may join the same points; their masses add up.
    """
    mass_unit = lcm(*(x.denominator for x in (*program.a, *program.b)))
    a, b = ([int(x * mass_unit) for x in side] for side in (program.a, program.b))
    cost_unit = lcm(*(c.denominator for _, _, costs in columns for c in costs))
    arcs = [Arc(i, j, tuple(int(c * cost_unit) for c in costs)) for i, j, costs in columns]
    every = {(i, j) for i in range(len(a)) for j in range(len(b))}
    missing = sorted(every - {(arc.row, arc.col) for arc in arcs})
    # Dearer than all that a unit of mass on it may save; raised if that was not enough.
    high = 4 * mass_unit * (1 + max(abs(c) for arc in arcs for c in arc.costs))
    while True:
        fill = [Arc(i, j, (high,) * len(arcs[0].costs)) for i, j in missing]
        found = minimise_worst(a, b, arcs + fill)
        check_optimum(a, b, arcs + fill, found)
        if all(at < len(arcs) for at in found.mass):
            break
        high *= mass_unit
    mass: dict[tuple[int, int], Fraction] = {}
    for at, moved in found.mass.items():
        ends = arcs[at].row, arcs[at].col
        mass[ends] = mass.get(ends, ZERO) + moved / mass_unit
    return Transport(
        found.value / mass_unit / cost_unit,
        mass,
        found.alpha,
        tuple(x / cost_unit for x in found.f),
        tuple(x / cost_unit for x in found.g),
        found.pivots,
    )


def check_plan_left(program: Program) -> None:
    """Raise `NoPlanError` where the arcs that are left cannot move all the mass."""
    program = program.support()
    unit = lcm(*(x.denominator for x in (*program.a, *program.b)))
    a, b = ([int(x * unit) for x in side] for side in (program.a, program.b))
    arcs = [Arc(i, j, (0,)) for i, j in program.arcs()]
    arcs += [Arc(i, j, (1,)) for i, j in sorted(program.forbidden)]
    lack = minimise_worst(a, b, arcs).value / unit
    if lack > 0:
        raise NoPlanError(lack)


def normalised(program: Program, how: str) -> Program:
    """Divide by the mean cost ("mean") or subtract the group's own optimum ("regret")."""
    one = [Fraction(1)] * len(program.costs)
    zero = [ZERO] * len(program.costs)
    if how == "none":
        return program
    if how == "mean":
        scale = [1 / mean if mean > 0 else Fraction(1) for mean in program.means()]
        return program.mapped(scale, zero)
    if how == "regret":
        best = [transport(program.only([group])).value for group in range(len(one))]
        return program.mapped(one, best)
    raise ValueError(f"no normalisation {how!r}")


def plan_costs(program: Program, mass: dict[tuple[int, int], Fraction]) -> list[Fraction]:
    """What a plan costs in each group."""
    return [
        sum((group[i][j] * moved for (i, j), moved in mass.items()), ZERO)
        for group in program.costs
    ]


def lacks(program: Program, mass: dict[tuple[int, int], Fraction]) -> list[Fraction]:
    """What each row, then each column, has too little of."""
    left = [*program.a, *program.b]
    for (i, j), moved in mass.items():
        left[i] -= moved
        left[len(program.a) + j] -= moved
    return left


def mixed_cost(program: Program, alpha: Sequence[Fraction]) -> dict[tuple[int, int], Fraction]:
    """The mixed cost on the arcs there are."""
    pairs = [(w, group) for w, group in zip(alpha, program.costs, strict=True) if w]
    return {(i, j): sum((w * group[i][j] for w, group in pairs), ZERO) for i, j in program.arcs()}


def inner(one: Iterable[Fraction], other: Iterable[Fraction]) -> Fraction:
    """Return the inner product."""
    return sum((x * y for x, y in zip(one, other, strict=True)), ZERO)
