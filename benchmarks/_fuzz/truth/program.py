"""The problem that is meant, in rational numbers.

Weights are divided by their sums exactly, costs are computed from the points exactly or to 55
digits, and an arc whose cost is infinite in any group is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from .metrics import distance_power
from .numbers import STEP, exact, exactly, rounded

__all__ = ["Program"]

ZERO = Fraction(0)
Costs = tuple[tuple[tuple[Fraction, ...], ...], ...]


@dataclass(frozen=True)
class Program:
    """Costs of L groups, (L, n, m), and weights that sum to one exactly.

    Parameters
    ----------
    costs : nested tuples of Fraction
    a, b : tuples of Fraction
    forbidden : frozenset of pairs (i, j)
        Arcs that carry no mass; their costs are not read.
    doubt : Fraction
        No cost is further than this from the one that is meant.

    Examples
    --------
    >>> Program.of_stack([[[0.5, 2.0]]], None, [1.0, 3.0]).b
    (Fraction(1, 4), Fraction(3, 4))
    """

    costs: Costs
    a: tuple[Fraction, ...]
    b: tuple[Fraction, ...]
    forbidden: frozenset[tuple[int, int]] = frozenset()
    doubt: Fraction = ZERO

    @classmethod
    def of_stack(cls, stack: Any, a: Any = None, b: Any = None) -> Program:
        """Read cost matrices (L, n, m); infinite entries are forbidden arcs."""
        stack = np.asarray(stack)
        infinite = np.argwhere(np.isinf(stack).any(axis=0)).tolist()
        finite = np.where(np.isinf(stack).any(axis=0), 0.0, stack)
        costs = tuple(tuple(exactly(row) for row in group) for group in finite)
        closed = frozenset((i, j) for i, j in infinite)
        return cls(costs, weights(a, stack.shape[1]), weights(b, stack.shape[2]), closed)

    @classmethod
    def of_points(
        cls,
        X: Any,
        Y: Any,
        members: Sequence[Sequence[int]],
        metric: Any = "sqeuclidean",
        p: float = 1.0,
        a: Any = None,
        b: Any = None,
    ) -> Program:
        """Compute d(x, y)^p in each group of features, from the points."""
        left, right = ([exactly(row) for row in np.asarray(points)] for points in (X, Y))
        order = exact(p)
        costs = []
        for member in members:
            u, v = ([[row[k] for k in member] for row in rows] for rows in (left, right))
            costs.append(tuple(tuple(distance_power(metric, x, y, order) for y in v) for x in u))
        found = cls(tuple(costs), weights(a, len(left)), weights(b, len(right)))
        return replace(found, doubt=STEP * found.largest)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        return len(self.costs), len(self.a), len(self.b)

    def arcs(self) -> Iterator[tuple[int, int]]:
        """Yield the arcs that may carry mass."""
        for i in range(len(self.a)):
            for j in range(len(self.b)):
                if (i, j) not in self.forbidden:
                    yield i, j

    @property
    def largest(self) -> Fraction:
        """The largest size of a cost."""
        return max((abs(group[i][j]) for group in self.costs for i, j in self.arcs()), default=ZERO)

    def means(self, size: bool = False) -> list[Fraction]:
        """a^T C_l b of every group, or of the sizes of its costs, over the arcs there are."""
        arcs = [(i, j, self.a[i] * self.b[j]) for i, j in self.arcs()]
        return [
            sum((w * (abs(group[i][j]) if size else group[i][j]) for i, j, w in arcs), ZERO)
            for group in self.costs
        ]

    def support(self) -> Program:
        """Leave out points without weight."""
        rows = [i for i, weight in enumerate(self.a) if weight]
        cols = [j for j, weight in enumerate(self.b) if weight]
        costs = tuple(tuple(tuple(group[i][j] for j in cols) for i in rows) for group in self.costs)
        closed = {
            (x, y)
            for x, i in enumerate(rows)
            for y, j in enumerate(cols)
            if (i, j) in self.forbidden
        }
        return replace(
            self,
            costs=costs,
            a=tuple(self.a[i] for i in rows),
            b=tuple(self.b[j] for j in cols),
            forbidden=frozenset(closed),
        )

    def only(self, groups: Sequence[int]) -> Program:
        """Keep some groups."""
        return replace(self, costs=tuple(self.costs[group] for group in groups))

    def mixed(self, mixtures: Sequence[Sequence[Fraction]]) -> Program:
        """Return the problem whose costs are mixtures of these, exactly."""
        n, m = len(self.a), len(self.b)
        costs = tuple(
            tuple(
                tuple(
                    sum((w * group[i][j] for w, group in zip(mix, self.costs, strict=True)), ZERO)
                    for j in range(m)
                )
                for i in range(n)
            )
            for mix in mixtures
        )
        reach = max(sum((abs(w) for w in mix), ZERO) for mix in mixtures)
        return replace(self, costs=costs, doubt=self.doubt * reach)

    def mapped(self, scale: Sequence[Fraction], shift: Sequence[Fraction]) -> Program:
        """Return the problem with costs scale_l C_l - shift_l, cut to 55 digits."""
        costs = tuple(
            tuple(tuple(rounded(s * c - r) for c in row) for row in group)
            for group, s, r in zip(self.costs, scale, shift, strict=True)
        )
        found = replace(self, costs=costs)
        cut = STEP * (found.largest + max(map(abs, shift)))
        return replace(found, doubt=self.doubt * max(map(abs, scale)) + cut)


def weights(given: Any, size: int) -> tuple[Fraction, ...]:
    """Divide weights by their sum, exactly; None is uniform."""
    if given is None:
        return (Fraction(1, size),) * size
    parts = exactly(np.asarray(given))
    total = sum(parts, ZERO)
    return tuple(part / total for part in parts)
