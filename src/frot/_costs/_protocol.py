"""What the rest of the library may ask of a family of group costs."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from frot._plan import Plan

__all__ = ["BLOCK_BYTES", "Costs", "blocks"]

# Temporaries are kept near the size of a core's cache: large enough for BLAS, small in memory.
BLOCK_BYTES = 4_000_000


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

    def rounding(self, alpha: np.ndarray) -> float:
        """Return a bound on the rounding error of one entry of ``mix(alpha)``."""
        ...


def blocks(count: int, bytes_per_item: int, budget: int = BLOCK_BYTES) -> list[slice]:
    """Cut range(count) into slices whose temporaries stay within `budget` bytes.

    Examples
    --------
    >>> blocks(5, 8, budget=16)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, min(count, budget // max(1, bytes_per_item)))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]
