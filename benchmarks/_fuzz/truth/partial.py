"""The exact optimum over plans of a given mass, as that of ordinary plans with dummy points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from .numbers import exact
from .optimum import Truth, optimum
from .program import ZERO, Program

__all__ = ["partial"]


def partial(
    program: Program,
    mass: Any,
    totals: Sequence[Fraction | int] = (1, 1),
    eta: Any = 0.0,
    prior: Sequence[float] | None = None,
) -> Truth:
    """Return the optimum over plans of that mass, between weights times `totals` at most.

    The dummies' arcs cost nothing, and there is none between them.

    Examples
    --------
    >>> partial(Program.of_stack([[[1.0, 5.0], [5.0, 3.0]]]), 0.75).high
    Fraction(5, 4)
    """
    small = program.support()
    a, b = (
        [total * weight for weight in side]
        for total, side in zip(totals, (small.a, small.b), strict=True)
    )
    moved = min(exact(mass), sum(a, ZERO), sum(b, ZERO))
    rows, cols = sum(b, ZERO) - moved, sum(a, ZERO) - moved
    costs = small.costs
    if cols:
        b = [*b, cols]
        costs = tuple(tuple((*row, ZERO) for row in group) for group in costs)
    if rows:
        a = [*a, rows]
        costs = tuple((*group, (ZERO,) * len(b)) for group in costs)
    closed = {(len(a) - 1, len(b) - 1)} if rows and cols else set()
    total = sum(a, ZERO)
    whole = replace(
        small,
        costs=costs,
        a=tuple(weight / total for weight in a),
        b=tuple(weight / total for weight in b),
        forbidden=small.forbidden | frozenset(closed),
    )
    found = optimum(whole, exact(eta) / total, 0.0, prior)
    return Truth(total * found.low, total * found.high)
