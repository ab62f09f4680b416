"""What the rest of the library may ask of a family of group costs."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from frot.plans.plan import Plan

__all__ = [
    "BLOCK_BYTES",
    "UNIT",
    "Costs",
    "Line",
    "Rounding",
    "blocks",
    "constant_potentials",
    "summation",
]

# One unit in the last place of a number near one.
UNIT = float(np.finfo(float).eps)

# Temporaries are kept near the size of a core's cache: large enough for BLAS, small in memory.
BLOCK_BYTES = 4_000_000


class Rounding(NamedTuple):
    """Entry (i, j) is right to `relative` times itself plus ``rows[i] + cols[j]``.

    What a point adds goes with it: far points of little weight then cost a bound next to nothing.
    """

    relative: float
    rows: np.ndarray | float = 0.0
    cols: np.ndarray | float = 0.0

    @property
    def absolute(self) -> float:
        """The largest ``rows[i] + cols[j]``."""
        return float(np.max(self.rows) + np.max(self.cols))


class Line(NamedTuple):
    """Points on a line, whose cost is |x - y|^p with p >= 1: transport is sorting."""

    x: np.ndarray
    y: np.ndarray
    p: float


def summation(plan: Plan) -> float:
    """Bound the relative error of a sum over a plan's entries, in whatever order it is taken.

    A sum of k terms of one sign errs by k - 1 times half a unit; some more cover several products
    a term.

    Examples
    --------
    >>> summation(Plan(np.full((2, 2), 0.25))) < 1e-14
    True
    """
    return (8.0 + 0.5 * plan.count) * UNIT


class Costs(Protocol):
    """L cost matrices of shape (n, m), seen only through sums over groups or over entries.

    The objective depends on a plan through the L numbers ``inner(plan)`` and on the weights
    through the one matrix ``mix(alpha)``; nothing else has to know how costs are stored.
    """

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        ...

    @property
    def nonnegative(self) -> bool:
        """Whether every entry of every cost is known to be >= 0."""
        ...

    @property
    def on_host(self) -> bool:
        """Whether they are NumPy's, whose points without weight are cheap to leave out.

        Others look at the weights themselves in `independent` and `magnitudes`.
        """
        ...

    @property
    def line(self) -> Line | None:
        """The points on a line whose convex cost this is, where it is."""
        ...

    @property
    def forbidden(self) -> np.ndarray | None:
        """Arcs that no plan may use, (n, m); None where there are none."""
        ...

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return sum_l alpha_l C_l, shape (n, m), for any weights alpha >= 0."""
        ...

    def inner(self, plan: Plan) -> np.ndarray:
        """Return phi_l = <plan, C_l>, shape (L,); a sparse plan costs its arcs only."""
        ...

    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        """Return C_l at the arcs (rows[k], cols[k]), shape (number of groups, K)."""
        ...

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return phi of the product plan a b^T, shape (L,)."""
        ...

    def magnitudes(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the size of the costs of each group, (L,): their unit, zero if all are zero."""
        ...

    def take(self, rows: np.ndarray, cols: np.ndarray) -> Costs:
        """Return the costs between some of the points."""
        ...

    def least(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return what every plan pays at least in each group, (L,), from the points alone.

        Rough, but without a pass over n m entries: what is known when there is no time for one.
        """
        ...

    def least_potentials(
        self, alpha: np.ndarray, a: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return f and g, (n,) and (m,), that prove ``alpha @ least(a, b)``."""
        ...

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Return bounds on the rounding errors of the entries of ``mix(alpha)``."""
        ...

    def sharp(self, alpha: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray | None:
        """Return lower bounds of ``mix(alpha)`` at the arcs, closer than `rounding`; or None."""
        ...

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Return bounds, (L,), on the rounding errors of ``phi = inner(plan)`` of a unit mass."""
        ...


def constant_potentials(
    costs: Costs, alpha: np.ndarray, a: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``alpha @ least(a, b)`` for the rows, and nothing for the columns."""
    return np.full(len(a), float(alpha @ costs.least(a, b))), np.zeros(len(b))


def blocks(count: int, bytes_per_item: int, budget: int = BLOCK_BYTES) -> list[slice]:
    """Cut range(count) into slices whose temporaries stay within `budget` bytes.

    Examples
    --------
    >>> blocks(5, 8, budget=16)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, min(count, budget // max(1, bytes_per_item)))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]
