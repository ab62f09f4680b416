"""Plans with the right marginals: made from nothing, or from a plan that is nearly feasible."""

from __future__ import annotations

import numpy as np

from frot._plan import Arcs, Plan

__all__ = ["fill", "northwest", "round_plan"]

# Marginals are right if they are to a few units in their last place.
LAST_PLACES = 2.0 * float(np.finfo(float).eps)


def northwest(a: np.ndarray, b: np.ndarray) -> Arcs:
    """Fill a plan from its north-west corner: at most n + m - 1 arcs (rows, cols, mass).

    Fast, and right to a unit in the last place of the whole mass; see `fill` for tiny weights.

    Examples
    --------
    >>> northwest(np.array([0.5, 0.5]), np.array([0.2, 0.8]))
    (array([0, 0, 1]), array([0, 1, 1]), array([0.2, 0.3, 0.5]))
    """
    row_ends, col_ends = np.cumsum(a), np.cumsum(b)
    total = min(row_ends[-1], col_ends[-1])
    cuts = np.union1d(row_ends, col_ends)
    cuts = cuts[(cuts > 0.0) & (cuts <= total)]
    if len(cuts) == 0 or cuts[-1] < total:
        cuts = np.append(cuts, total)
    mass = np.diff(cuts, prepend=0.0)
    middle = cuts - 0.5 * mass
    rows = np.minimum(np.searchsorted(row_ends, middle, side="right"), len(a) - 1)
    cols = np.minimum(np.searchsorted(col_ends, middle, side="right"), len(b) - 1)
    return rows, cols, mass


def fill(a: np.ndarray, b: np.ndarray) -> Arcs:
    """Match the masses of two sides, light ones first: at most n + m - 1 arcs.

    What rounding leaves over is then on the heaviest points, where it is least.

    Examples
    --------
    >>> fill(np.array([1.0, 1e-20]), np.array([1e-20, 1.0]))
    (array([1, 0]), array([0, 1]), array([1.e-20, 1.e+00]))
    """
    order_a = np.argsort(a, kind="stable")
    order_b = np.argsort(b, kind="stable")
    order_a, order_b = order_a[a[order_a] > 0.0], order_b[b[order_b] > 0.0]
    left_a, left_b = a[order_a].tolist(), b[order_b].tolist()
    rows, cols, mass = [], [], []
    i = j = 0
    while i < len(left_a) and j < len(left_b):
        moved = min(left_a[i], left_b[j])
        rows.append(i)
        cols.append(j)
        mass.append(moved)
        left_a[i] -= moved
        left_b[j] -= moved
        i, j = i + (left_a[i] == 0.0), j + (left_b[j] == 0.0)
    return order_a[rows], order_b[cols], np.array(mass, dtype=float)


def round_plan(plan: Plan, a: np.ndarray, b: np.ndarray) -> Plan:
    """Move a plan to the marginals a and b: shrink what is too much, then fill what lacks.

    The filling takes at most n + m - 1 arcs, so a sparse plan stays sparse.

    Examples
    --------
    >>> rough = Plan(np.array([[0.6, 0.0], [0.0, 0.3]]))
    >>> np.asarray(round_plan(rough, np.array([0.5, 0.5]), np.array([0.5, 0.5])))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    if plan.is_sparse:
        rows, cols, mass = plan.arcs()
        mass = np.maximum(mass, 0.0)
        mass = mass * _shrink(_sums(rows, mass, len(a)), a)[rows]
        mass = mass * _shrink(_sums(cols, mass, len(b)), b)[cols]
        lack_a = _lack(_sums(rows, mass, len(a)), a)
        lack_b = _lack(_sums(cols, mass, len(b)), b)
        more = fill(lack_a, lack_b)
        joined = [np.concatenate(pair) for pair in zip((rows, cols, mass), more, strict=True)]
        return Plan.from_arcs(joined[0], joined[1], joined[2], plan.shape)
    dense = np.maximum(plan.dense(), 0.0)
    dense *= _shrink(dense.sum(axis=1), a)[:, None]
    dense *= _shrink(dense.sum(axis=0), b)
    lack_a, lack_b = _lack(dense.sum(axis=1), a), _lack(dense.sum(axis=0), b)
    rows, cols, mass = fill(lack_a, lack_b)
    np.add.at(dense, (rows, cols), mass)
    return Plan(dense, copy=False)


def _shrink(have: np.ndarray, want: np.ndarray) -> np.ndarray:
    factor = np.ones_like(have)
    np.divide(want, have, out=factor, where=have > want)
    return factor


def _lack(have: np.ndarray, want: np.ndarray) -> np.ndarray:
    """What is missing, where it is more than the rounding of a sum."""
    lack = want - have
    return np.where(lack > LAST_PLACES * want, lack, 0.0)


def _sums(ends: np.ndarray, mass: np.ndarray, size: int) -> np.ndarray:
    # Of no arcs at all, bincount makes integers.
    return np.bincount(ends, mass, size).astype(float)
