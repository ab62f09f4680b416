r"""Plans with the right marginals: made from nothing, or from a plan that is nearly feasible.

Right means relative to each weight. What rounding leaves is bounded by `marginal_error`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from frot._base.arrays import UNIT
from frot.plans.lazy import LazyPlan
from frot.plans.plan import Arcs, Plan, is_sparse

# Marginals of a lazy plan are proven with it, to so many units.
LAZY_MARGINALS = 16.0 * UNIT
# Marginals are right if they are to a few units in their last place.
LAST_PLACES = 2.0 * UNIT


def northwest(a: np.ndarray, b: np.ndarray) -> Arcs:
    r"""Fill a plan from its north-west corner: at most n + m - 1 arcs (rows, cols, mass).

    Weights stand for :math:`a / \sum a` and :math:`b / \sum b`. They are cumulated in twice double
    precision, so that the mass of every arc is right to its own last places.

    Examples
    --------
    >>> northwest(np.array([0.5, 0.5]), np.array([0.25, 0.75]))
    (array([0, 0, 1]), array([0, 1, 1]), array([0.25, 0.25, 0.5 ]))
    """
    (row_ends, row_rest), (col_ends, col_rest) = _cumulated(a), _cumulated(b)
    ends = np.concatenate([row_ends, col_ends])
    rest = np.concatenate([row_rest, col_rest])
    order = np.lexsort((rest, ends))
    is_row = order < len(a)
    mass = np.diff(ends[order], prepend=0.0) + np.diff(rest[order], prepend=0.0)
    # Before each cut so many rows and columns have ended.
    rows = np.cumsum(is_row) - is_row
    cols = np.cumsum(~is_row) - ~is_row
    # Cumulated masses that differ by less are the same: 32 digits after the first.
    some = (mass > 1e-30) & (rows < len(a)) & (cols < len(b))
    return rows[some], cols[some], mass[some]


def _cumulated(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return cumulated shares of a sum as pairs of numbers whose sum they are."""
    ends = np.cumsum(weights)
    before = ends - weights
    before[1:] = ends[:-1]
    before[0] = 0.0
    # What each addition has rounded off, exactly (Knuth's two-sum).
    back = ends - before
    lost = (before - (ends - back)) + (weights - back)
    rest = np.cumsum(lost)
    surplus = (float(ends[-1]) - 1.0) + float(rest[-1])
    rest = rest - surplus * ends
    # The first of a pair is its sum, rounded: pairs are then in the order of their sums.
    whole = ends + rest
    return whole, rest - (whole - ends)


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

    As algorithm 2 of Altschuler et al. 2017 does.
    A plan whose marginals are right to the last places is returned as it is, and so is a lazy one,
    whose marginals are proven with it. Of a sparse plan that is nearly feasible the arcs that it
    has are tried first (`settle`). The filling takes at most n + m + 1 arcs, so a sparse plan stays
    sparse. Every row and column is right to a few units in the last place of its own weight.

    Examples
    --------
    >>> rough = Plan(np.array([[0.6, 0.0], [0.0, 0.3]]))
    >>> np.asarray(round_plan(rough, np.array([0.5, 0.5]), np.array([0.5, 0.5])))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    if isinstance(plan, LazyPlan):
        return plan
    if is_sparse(plan):
        rows, cols, mass = plan.arcs()
        off_a, off_b = _sums(rows, mass, len(a)) - a, _sums(cols, mass, len(b)) - b
        if _is_right(off_a, a) and _is_right(off_b, b):
            return plan
        # Solvers leave some 1e-10.
        if np.abs(off_a).sum() + np.abs(off_b).sum() <= 1e-6:
            rows, cols, mass = settle(plan, a, b).arcs()
        mass = mass * _shrink(_sums(rows, mass, len(a)), a)[rows]
        mass = mass * _shrink(_sums(cols, mass, len(b)), b)[cols]
        lack_a = _lack(_sums(rows, mass, len(a)), a)
        lack_b = _lack(_sums(cols, mass, len(b)), b)
        more = _fill_lacks(lack_a, lack_b, a, b)
        joined = [np.concatenate(pair) for pair in zip((rows, cols, mass), more, strict=True)]
        return Plan.from_arcs(joined[0], joined[1], joined[2], plan.shape)
    dense = np.maximum(np.asarray(plan), 0.0)
    if not (_is_right(dense.sum(axis=1) - a, a) and _is_right(dense.sum(axis=0) - b, b)):
        dense *= _shrink(dense.sum(axis=1), a)[:, None]
        dense *= _shrink(dense.sum(axis=0), b)
        lack_a, lack_b = _lack(dense.sum(axis=1), a), _lack(dense.sum(axis=0), b)
        rows, cols, mass = _fill_lacks(lack_a, lack_b, a, b)
        np.add.at(dense, (rows, cols), mass)
    return Plan(dense, copy=False)


def _is_right(off: np.ndarray, weights: np.ndarray) -> bool:
    """Whether sums that are so far off are right to the last places of every weight."""
    return bool((np.abs(off) <= LAST_PLACES * weights).all())


def settle(plan: Plan, a: np.ndarray, b: np.ndarray) -> Plan:
    """Make the marginals of a sparse plan right to rounding without an arc that it does not have.

    Solvers leave marginals off by some 1e-10. Filled by the product of what lacks, that costs as
    much of the mean cost, which is more than the optimum where pairs that must not be matched have
    a cost of 1e9. On a forest the marginals determine all masses: those of the heaviest arcs that
    make one are found from its leaves on, and all other arcs keep theirs. Returned as it is where
    a mass would be negative.
    """
    # Some ten modules that nothing else needs.
    from scipy.sparse import csgraph

    rows, cols, mass = (np.asarray(part) for part in plan.arcs())
    n, size = len(a), len(a) + len(b)
    if len(mass) == 0:
        return plan
    by_mass = np.argsort(-mass, kind="stable")
    rank = np.empty(len(mass))
    rank[by_mass] = np.arange(1.0, len(mass) + 1.0)
    graph = sparse.coo_matrix((rank, (rows, n + cols)), shape=(size + 1, size + 1))
    forest = csgraph.minimum_spanning_tree(graph.tocsr()).tocoo()
    kept = by_mass[forest.data.astype(np.intp) - 1]
    # One more node beside a point of each tree, so that one search orders all of them.
    _, tree = csgraph.connected_components(forest, directed=False)
    _, roots = np.unique(tree[:size], return_index=True)
    ends = (
        np.concatenate([forest.row, np.full(len(roots), size)]),
        np.concatenate([forest.col, roots]),
    )
    linked = sparse.coo_matrix((np.ones(len(ends[0])), ends), shape=graph.shape).tocsr()
    order, parent = csgraph.breadth_first_order(linked, size, directed=False)
    upward = parent[cols[kept] + n] == rows[kept]
    arc_of = np.full(size, -1)
    arc_of[np.where(upward, cols[kept] + n, rows[kept])] = kept
    free = np.ones(len(mass), dtype=bool)
    free[kept] = False
    left = np.concatenate([a, b])
    left[:n] -= _sums(rows[free], mass[free], n)
    left[n:] -= _sums(cols[free], mass[free], size - n)
    settled = mass.copy()
    for node in order[:0:-1]:
        if arc_of[node] >= 0:
            settled[arc_of[node]] = left[node]
            left[parent[node]] -= left[node]
    if settled.min() < 0.0:
        return plan
    return Plan.from_arcs(rows, cols, settled, plan.shape)


def _shrink(have: np.ndarray, want: np.ndarray) -> np.ndarray:
    factor = np.ones_like(have)
    np.divide(want, have, out=factor, where=have > want)
    return factor


def _lack(have: np.ndarray, want: np.ndarray) -> np.ndarray:
    """What is missing, where it is more than the rounding of a sum."""
    lack = want - have
    return np.where(lack > LAST_PLACES * want, lack, 0.0)


def _fill_lacks(lack_a: np.ndarray, lack_b: np.ndarray, a: np.ndarray, b: np.ndarray) -> Arcs:
    """Fill what lacks on either side, to the last light point.

    The lacks of heavy points are known to a unit of their weight only, which may be all that a
    light one weighs. What is left on one side therefore goes to the heaviest point of the other,
    where a unit is nothing. Sums of lacks differ by the units of many points, which all of them
    share rather than the last one to be filled.
    """
    more = float(lack_a.sum() - lack_b.sum())
    if more > 0.0:
        lack_b = _shared(lack_b, b, more)
    elif more < 0.0:
        lack_a = _shared(lack_a, a, -more)
    rows, cols, mass = fill(lack_a, lack_b)
    left_a = lack_a - _sums(rows, mass, len(a))
    left_b = lack_b - _sums(cols, mass, len(b))
    # A few units of the lack itself are what its own subtraction leaves.
    i = np.flatnonzero(left_a > LAST_PLACES * lack_a)
    j = np.flatnonzero(left_b > LAST_PLACES * lack_b)
    if len(i) == len(j) == 0:
        return rows, cols, mass
    return (
        np.concatenate([rows, i, np.full(len(j), int(np.argmax(a)))]),
        np.concatenate([cols, np.full(len(i), int(np.argmax(b))), j]),
        np.concatenate([mass, left_a[i], left_b[j]]),
    )


def _shared(lack: np.ndarray, weights: np.ndarray, more: float) -> np.ndarray:
    """Let points that lack something take more by their weights, if that is next to nothing."""
    takers = np.where(lack > 0.0, weights, 0.0)
    share = more / max(float(takers.sum()), more)
    return lack + share * takers if share <= 16.0 * UNIT else lack


def _sums(ends: np.ndarray, mass: np.ndarray, size: int) -> np.ndarray:
    # Of no arcs at all, bincount makes integers.
    return np.bincount(ends, mass, size).astype(float)


class MarginalError(NamedTuple):
    """How far a plan's marginals are from what they should be, as shares of the weights.

    `level` bounds the deviation of any row or column, and `spread` by how much the deviations of
    rows, and those of columns, differ from each other.
    """

    spread: float
    level: float


def marginal_error(plan: Plan, a: np.ndarray, b: np.ndarray) -> MarginalError:
    r"""Bound the error of a plan's marginals, and with it what making them right costs.

    Let rows be 1 + l to 1 + h times what they should be. Divided by that, they are right, and
    columns change by a factor within the same range. Shrunk until no column is too large, the plan
    lacks the same share of every row, and of a column at most the `spread`, the sum over both sides
    of (h - l) / (1 + h). Filling it by the product of what lacks costs at most `spread` times
    :math:`\langle a b^\top, |C| \rangle`; dividing changes what the plan itself costs by a share
    of at most `level`. Weights stand for :math:`a / \sum a` and :math:`b / \sum b`: a factor that
    all columns share is no part of the spread.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> marginal_error(Plan.from_arcs([0, 1], [0, 1], half, (2, 2)), half, half)
    MarginalError(spread=0.0, level=0.0)
    """
    if isinstance(plan, LazyPlan):
        return MarginalError(4.0 * LAZY_MARGINALS, LAZY_MARGINALS)
    spread = level = 0.0
    for axis, weights in ((0, a), (1, b)):
        low, high = _deviations(plan, axis, weights)
        if not low > -1.0:
            return MarginalError(np.inf, np.inf)
        spread += (high - low) / (1.0 + high) * (1.0 + 8.0 * UNIT)
        level = max(level, high, -low / (1.0 + low))
    return MarginalError(spread, level)


def _deviations(plan: Plan, axis: int, weights: np.ndarray) -> tuple[float, float]:
    """Bound the deviations of rows (0) or columns (1) from below and from above.

    A sum of k terms of one sign is off by k - 1 roundings. Those of arcs are taken in extended
    precision, where there is one.
    """
    if is_sparse(plan):
        arcs = plan.arcs()
        ends, mass = arcs[axis], arcs[2]
        counts = np.bincount(ends, minlength=len(weights))
        error = np.maximum(counts - 1.0, 0.0)
        if counts.max() <= 1:
            # Nothing is added, as between equally many points that weigh the same.
            sums = _sums(ends, mass, len(weights))
        else:
            some = np.flatnonzero(counts)
            mass = mass[np.argsort(ends, kind="stable")].astype(np.longdouble)
            sums = np.zeros(len(weights), dtype=np.longdouble)
            sums[some] = np.add.reduceat(mass, (np.cumsum(counts) - counts)[some])
    else:
        sums = plan.sum(axis=1 - axis)
        error = plan.shape[1 - axis] - 1.0
    some = weights > 0.0
    if not some.all():
        if sums[~some].any():
            return -np.inf, np.inf
        sums, weights = sums[some], weights[some]
        error = error[some] if isinstance(error, np.ndarray) else error
    off = ((sums - weights) / weights).astype(float)
    error = 0.5 * float(np.finfo(sums.dtype).eps) * error
    return float((off - error).min()), float((off + error).max())
