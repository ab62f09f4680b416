r"""Plans with the right marginals: made from nothing, or from a plan that is nearly feasible.

Right means relative to each weight. What rounding leaves is bounded by `marginal_error`, and what
it may cost is part of the upper bound.
"""

from __future__ import annotations

from math import fsum

import numpy as np

from frot._base.arrays import UNIT
from frot.plans.lazy import LazyPlan
from frot.plans.plan import Arcs, Plan, is_sparse, n_entries

# Marginals are right if they are to a few units in their last place.
LAST_PLACES = 2.0 * UNIT
# Marginals of a lazy plan are proven with it, to so many units.
LAZY_MARGINALS = 16.0 * UNIT
# Of up to so many arcs marginals are summed exactly: 30 ms.
EXACT_SUMS = 100_000
# Cumulated masses that differ by less are the same: 32 digits after the first.
EMPTY = 1e-30


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
    some = (mass > EMPTY) & (rows < len(a)) & (cols < len(b))
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

    The filling takes at most n + m + 1 arcs, so a sparse plan stays sparse. Every row and column
    is right to a few units in the last place of its own weight.

    Examples
    --------
    >>> rough = Plan(np.array([[0.6, 0.0], [0.0, 0.3]]))
    >>> np.asarray(round_plan(rough, np.array([0.5, 0.5]), np.array([0.5, 0.5])))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    if is_sparse(plan):
        rows, cols, mass = plan.arcs()
        mass = mass * _shrink(_sums(rows, mass, len(a)), a)[rows]
        mass = mass * _shrink(_sums(cols, mass, len(b)), b)[cols]
        lack_a = _lack(_sums(rows, mass, len(a)), a)
        lack_b = _lack(_sums(cols, mass, len(b)), b)
        more = _fill_lacks(lack_a, lack_b, a, b)
        joined = [np.concatenate(pair) for pair in zip((rows, cols, mass), more, strict=True)]
        return Plan.from_arcs(joined[0], joined[1], joined[2], plan.shape)
    dense = np.maximum(np.asarray(plan), 0.0)
    dense *= _shrink(dense.sum(axis=1), a)[:, None]
    dense *= _shrink(dense.sum(axis=0), b)
    lack_a, lack_b = _lack(dense.sum(axis=1), a), _lack(dense.sum(axis=0), b)
    rows, cols, mass = _fill_lacks(lack_a, lack_b, a, b)
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


def marginal_error(plan: Plan, a: np.ndarray, b: np.ndarray) -> float:
    r"""Return an r for which all marginals are between 1 - r and 1 + r times what they should be.

    Weights stand for :math:`a / \sum a` and :math:`b / \sum b`, so that the sums need not agree to
    the last bit. Then a feasible plan is near: shrink the plan to a share 1 - 3 r, and what lacks
    in rows and columns is at most 4 r a and 4 r b and at least 2 r in all, so that filling it by
    the product of the two costs at most :math:`8 r \langle a b^\top, C \rangle` where no cost is
    negative. Shrinking costs up to 3 r of the plan's own cost where one is.

    Of few arcs the sums are exact, so that a plan between a set and itself is seen to be feasible.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> marginal_error(Plan(np.eye(2) / 2), half, half)
    6.661338147750939e-16
    >>> marginal_error(Plan.from_arcs([0, 1], [0, 1], half, (2, 2)), half, half)
    0.0
    """
    if isinstance(plan, LazyPlan):
        return LAZY_MARGINALS
    more = surplus(a, b)
    if is_sparse(plan) and n_entries(plan) <= EXACT_SUMS:
        rows, cols, mass = plan.arcs()
        seen = max(_share(_lacks(rows, mass, a), a), _share(_lacks(cols, mass, b), b))
        return seen * (1.0 + 4.0 * UNIT) + more
    return apparent_error(plan, a, b) + sum_error(plan) + more


def _lacks(ends: np.ndarray, mass: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Return what rows or columns lack, to the last digit."""
    parts = [[weight] for weight in want.tolist()]
    for end, moved in zip(ends.tolist(), mass.tolist(), strict=True):
        parts[end].append(-moved)
    return np.array([fsum(part) for part in parts])


def surplus(a: np.ndarray, b: np.ndarray) -> float:
    """Return the share by which the sums of a and b differ."""
    return abs(fsum([*a.tolist(), *(-b).tolist()])) / float(b.sum())


def apparent_error(plan: Plan, a: np.ndarray, b: np.ndarray) -> float:
    """Return the share by which marginals look wrong, as far as ordinary sums tell."""
    if isinstance(plan, LazyPlan):
        return 0.0
    return max(_share(a - plan.sum(axis=1), a), _share(b - plan.sum(axis=0), b))


def sum_error(plan: Plan) -> float:
    """Return by which share a plan's marginals may be further off than sums can tell.

    The sum of k entries is off by at most k - 1 half units of itself, in whatever order it is
    taken; its difference from the weight, and their quotient, by a few more.
    """
    if isinstance(plan, LazyPlan):
        return LAZY_MARGINALS
    longest = max(plan.shape)
    if is_sparse(plan):
        longest = max(int(np.bincount(ends).max(initial=0)) for ends in plan.arcs()[:2])
    return 0.5 * (longest + 4.0) * UNIT


def _share(off: np.ndarray, weights: np.ndarray) -> float:
    some = weights > 0.0
    if off[~some].any():
        return np.inf
    return float((np.abs(off[some]) / weights[some]).max(initial=0.0))
