"""Plans made of others: weighted sums, and a plan among more points than it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from frot._base.arrays import Array, Home
from frot.plans.lazy import LazyPlan, PlanRows
from frot.plans.plan import Plan, is_sparse


def combine_plans(plans: Sequence[Plan], weights: Sequence[float] | np.ndarray) -> Plan:
    """Return the weighted sum of plans: lazy or sparse if all are, dense otherwise.

    Examples
    --------
    >>> plans = [Plan.from_arcs([0], [col], [1.0], (1, 2)) for col in (0, 1)]
    >>> combine_plans(plans, [0.25, 0.75]).arcs()[2]
    array([0.25, 0.75])
    """
    used = [(plan, float(w)) for plan, w in zip(plans, weights, strict=True) if w != 0.0]
    if not used:
        raise ValueError("combine_plans needs at least one plan of non-zero weight")
    shape = used[0][0].shape
    lazy = [(plan, w) for plan, w in used if isinstance(plan, LazyPlan)]
    if len(lazy) == len(used):
        return _combine_lazy(lazy)
    if all(is_sparse(plan) for plan, _ in used):
        parts = [(*plan._host_arcs(), w) for plan, w in used]
        rows, cols = (np.concatenate([part[end] for part in parts]) for end in (0, 1))
        mass = np.concatenate([w * mass for _, _, mass, w in parts])
        return Plan.from_arcs(rows, cols, mass, shape)
    total = np.zeros(shape)
    for plan, w in used:
        total += w * np.asarray(plan)
    return Plan(total, copy=False)


def _combine_lazy(plans: Sequence[tuple[LazyPlan, float]]) -> LazyPlan:
    """The weighted sum of plans, none of them transposed, each kept as it is."""
    components = [(w * weight, rows) for plan, w in plans for weight, rows in plan._components]
    rank_one = [(w * left, right) for plan, w in plans for left, right in plan._rank_one]
    return LazyPlan(components, rank_one)


def expand_plan(plan: Plan, rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int]) -> Plan:
    """Place a plan's rows and columns at the given indices of a larger plan of zeros.

    Indices ascend, and a lazy plan, which is not a transposed one, stays lazy.

    Examples
    --------
    >>> np.asarray(expand_plan(Plan([[1.0]]), np.array([1]), np.array([0]), (2, 2)))
    array([[0., 0.],
           [1., 0.]])
    """
    if isinstance(plan, LazyPlan):
        return _expand_lazy(plan, rows, cols, shape)
    if is_sparse(plan):
        i, j, mass = plan._host_arcs()
        return Plan.from_arcs(rows[i], cols[j], mass, shape)
    full = np.zeros(shape)
    full[np.ix_(rows, cols)] = np.asarray(plan)
    return Plan(full, copy=False)


def _expand_lazy(
    plan: LazyPlan, rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int]
) -> LazyPlan:
    components = [
        (weight, SpreadRows(inner, rows, cols, shape)) for weight, inner in plan._components
    ]
    work = plan._work
    rank_one = [
        (
            _spread_vector(work, left, rows, shape[0]),
            _spread_vector(work, right, cols, shape[1]),
        )
        for left, right in plan._rank_one
    ]
    return LazyPlan(components, rank_one)


class SpreadRows(PlanRows):
    """Rows of a plan among more points than it has: the others carry nothing.

    Parameters
    ----------
    inner : PlanRows
    rows, cols : arrays of int, ascending
        Where its rows and columns are among all.
    shape : pair of int
        Number of all rows and columns.
    """

    def __init__(
        self, inner: PlanRows, rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int]
    ) -> None:
        self.inner, self.rows, self._shape = inner, rows, shape
        # The column that each one has in the inner plan; those that have none get one of zeros.
        self._columns = np.full(shape[1], len(cols))
        self._columns[cols] = np.arange(len(cols))

    @property
    def home(self) -> Home:
        """Where the entries are computed."""
        return self.inner.home

    @property
    def shape(self) -> tuple[int, int]:
        """Number of all rows and columns."""
        return self._shape

    @property
    def parts(self) -> Sequence[slice]:
        """Blocks that have the rows of one block of the inner plan each.

        What rounding leaves of a row depends on the block that it is computed in.
        """
        starts = [0, *(int(self.rows[part.start]) for part in self.inner.parts[1:])]
        ends = [*starts[1:], self._shape[0]]
        return [slice(start, end) for start, end in zip(starts, ends, strict=True)]

    def blocks(self, parts: Sequence[slice]) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows, each of shape (r, m)."""
        for part in parts:
            first, last = np.searchsorted(self.rows, (part.start, part.stop)).tolist()
            within = self.rows[first:last] - part.start
            blocks = [slice(first, last)] if last > first else []
            computed = [block for _, block in self.inner.blocks(blocks)]
            yield part, self._spread(computed, within, part.stop - part.start)

    def _spread(self, blocks: list[Any], within: np.ndarray, count: int) -> Array:
        """Place rows of the inner plan, if there are any, among `count` rows of all columns."""
        home = self.home
        xp, m = home.xp, self._shape[1]
        if not blocks:
            return home.bring(np.zeros((count, m)), home.xp.float64)
        block = xp.concat([blocks[0], xp.zeros_like(blocks[0][:, :1])], axis=1)
        block = xp.take(block, home.indices(self._columns), axis=1)
        if len(within) == count:
            return block
        block = xp.concat([block, xp.zeros_like(block[:1, :])], axis=0)
        places = np.full(count, len(within))
        places[within] = np.arange(len(within))
        return xp.take(block, home.indices(places), axis=0)


def _spread_vector(home: Home, vector: Array, index: np.ndarray, size: int) -> Array:
    """Place the entries of a vector among zeros."""
    places = np.full(size, len(index))
    places[index] = np.arange(len(index))
    longer = home.xp.concat([vector, home.xp.zeros_like(vector[:1])], axis=0)
    return home.xp.take(longer, home.indices(places), axis=0)
