r"""Plans with the right marginals: made from nothing, or from a plan that is nearly feasible.

Right means relative to each weight. What rounding leaves is bounded by `marginal_error`, and what
it may cost is part of the upper bound.
"""

from __future__ import annotations

from fractions import Fraction
from math import fsum
from typing import NamedTuple

import numpy as np
from scipy import sparse

from frot._base.arrays import UNIT
from frot.plans.lazy import LazyPlan
from frot.plans.plan import Arcs, Plan, is_sparse, n_entries

# Marginals are right if they are to a few units in their last place.
LAST_PLACES = 2.0 * UNIT
# Marginals of a lazy plan are proven with it, to so many units.
LAZY_MARGINALS = 16.0 * UNIT
# Up to so many arcs plans are settled; of more than some, sums are exact by cutting numbers into
# whole ones of so many bits, of which enough are taken for the smallest mass that matters.
SETTLED = 4_000_000
CUT_FROM, BITS, PIECES = 2_000, 26, 6
# How often arcs are dropped until a plan is left, at most.
DROPS = 12
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
    """Return by which share a plan's marginals may be further off than sums can tell."""
    if isinstance(plan, LazyPlan):
        return LAZY_MARGINALS
    longest = max(plan.shape)
    if is_sparse(plan):
        longest = max(int(np.bincount(ends).max(initial=0)) for ends in plan.arcs()[:2])
    # A half more for what terms of a higher order add.
    return 0.5 * (longest - 1.0) * (1.0 + UNIT * longest) * UNIT if longest > 1 else 0.0


def _share(off: np.ndarray, weights: np.ndarray) -> float:
    some = weights > 0.0
    if off[~some].any():
        return np.inf
    return float((np.abs(off[some]) / weights[some]).max(initial=0.0))


def _surplus(a: np.ndarray, b: np.ndarray) -> float:
    """By which share the sum of a is more than that of b."""
    return fsum([*a.tolist(), *(-b).tolist()]) / float(b.sum())


def _residuals(arcs: Arcs, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what lacks in rows and columns, to the last digit; b is scaled to the sum of a."""
    rows, cols, mass = arcs
    return _exact_lacks(rows, mass, a), _exact_lacks(cols, mass, b) + _surplus(a, b) * b


def _exact_lacks(ends: np.ndarray, mass: np.ndarray, want: np.ndarray) -> np.ndarray:
    if len(mass) > CUT_FROM:
        return _cut_lacks(ends, mass, want)
    parts = [[weight] for weight in want.tolist()]
    for end, moved in zip(ends.tolist(), mass.tolist(), strict=True):
        parts[end].append(-moved)
    return np.array([fsum(part) for part in parts])


def _cut_lacks(ends: np.ndarray, mass: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Return what lacks by sums of pieces of numbers, each a whole number of its own unit.

    Sums of whole numbers are exact as long as they have no more than 53 bits: of masses up to one,
    2^27 pieces of 26 bits are. What the last piece leaves is below 1e-46, and its sum exact enough.
    """
    found, rest, unit = [], mass, 1.0
    left = want
    for _ in range(PIECES):
        unit *= 2.0**-BITS
        pieces, wanted = np.rint(rest / unit), np.rint(left / unit)
        rest, left = rest - unit * pieces, left - unit * wanted
        found.append(unit * (wanted - np.bincount(ends, pieces, len(want))))
    found.append(left - np.bincount(ends, rest, len(want)))
    return np.array([fsum(each) for each in np.array(found).T.tolist()])


class Settled(NamedTuple):
    """A plan as arcs, and per arc how much more or less mass makes its marginals exact."""

    rows: np.ndarray
    cols: np.ndarray
    mass: np.ndarray
    off: np.ndarray

    @property
    def arcs(self) -> Arcs:
        """Rows, columns and mass."""
        return self.rows, self.cols, self.mass


def settle(plan: Plan, a: np.ndarray, b: np.ndarray, units: float = 0.0) -> Settled | None:
    """Make marginals exact by moving mass along the arcs that the plan has, and no others.

    The arcs of largest mass that connect the points make a forest, on which what lacks anywhere is
    moved to where it is too much: leaves first, each arc taking what its leaf lacks. Where a plan
    must not use other arcs, because they are forbidden or cost a billion, this rounds it. The
    arcs' `off` is what remains to be moved after the masses themselves were rounded: a plan with
    exact marginals exists, and differs by that.

    The weights of a tree's rows and columns may differ in sum by so many `units` in their last
    place: weights that mean the same need not add up to the same. None comes out if the arcs admit
    no plan with these marginals, or this forest none.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> settle(Plan(np.array([[0.3, 0.1], [0.0, 0.4]])), half, half).mass
    array([0.5, 0. , 0.5])
    """
    if not n_entries(plan) <= SETTLED:
        return None
    rows, cols, mass = plan.arcs()
    for _ in range(DROPS):
        move = _forest_moves((rows, cols, mass), a, b, units)
        if move is None:
            return None
        moved = mass + move
        # Arcs that have to give more than they have are none of the plan's: try without them.
        below = moved < -4.0 * UNIT * np.minimum(a[rows], b[cols])
        if not below.any():
            settled = np.maximum(moved, 0.0)
            off = _forest_moves((rows, cols, settled), a, b, units)
            if off is None:
                return None
            # A large move rounds a light arc to its own last place: what that left is moved again.
            if (np.abs(off) > 4.0 * UNIT * np.minimum(a[rows], b[cols])).any():
                again = np.maximum(settled + off, 0.0)
                less = _forest_moves((rows, cols, again), a, b, units)
                if less is not None and np.abs(less).max() <= np.abs(off).max():
                    settled, off = again, less
            below = settled + off < 0.0
            if not below.any():
                return Settled(rows, cols, settled, off)
        rows, cols, mass = rows[~below], cols[~below], mass[~below]
    return None


def _forest_moves(arcs: Arcs, a: np.ndarray, b: np.ndarray, units: float) -> np.ndarray | None:
    """Return what to add to each arc so that marginals are right; None if no forest does it."""
    # It loads all of SciPy's sparse linear algebra, which few runs need.
    from scipy.sparse import csgraph

    rows, cols, mass = arcs
    n, m = len(a), len(b)
    size = n + m
    # The heaviest arcs that connect: a minimum spanning forest by rank.
    heaviest = np.argsort(-mass, kind="stable")
    rank = np.empty(len(mass))
    rank[heaviest] = np.arange(1.0, len(mass) + 1.0)
    # SciPy 1.12 takes no wider indices here.
    ends = (rows.astype(np.int32), (n + cols).astype(np.int32))
    graph = sparse.csr_array((rank, ends), shape=(size, size))
    forest = csgraph.minimum_spanning_tree(graph).tocoo()
    count, part = csgraph.connected_components(forest, directed=False)
    if not _balanced(part, count, a, b, units):
        return None
    # One more node joins the trees at their heaviest points, so that one walk from it visits all,
    # and what rounding leaves over is where it is least.
    by_weight = np.argsort(-np.concatenate([a, b]), kind="stable")
    roots = by_weight[np.unique(part[by_weight], return_index=True)[1]]
    ends = (
        np.concatenate([forest.row, roots]),
        np.concatenate([forest.col, np.full(count, size)]),
    )
    joined = sparse.csr_array((np.ones(len(ends[0])), ends), shape=(size + 1, size + 1))
    order, parents = csgraph.breadth_first_order(joined, size, directed=False)
    parents = parents.tolist()
    lacks = np.concatenate([*_residuals(arcs, a, b), [0.0]]).tolist()
    moves = np.zeros(len(mass))
    ends_of = zip(forest.row.tolist(), forest.col.tolist(), strict=True)
    where = dict(zip(ends_of, heaviest[forest.data.astype(int) - 1].tolist(), strict=True))
    for node in reversed(order[1:].tolist()):
        parent = parents[node]
        lack = lacks[node]
        at = where.get((node, parent) if node < n else (parent, node))
        if at is not None:
            moves[at] = lack
        lacks[parent] -= lack
    return moves


def _balanced(part: np.ndarray, count: int, a: np.ndarray, b: np.ndarray, units: float) -> bool:
    """Whether every tree's points have as much mass on one side as on the other.

    Sums of rounded weights may differ where the weights they stand for do not, as in 3/6 and 1/2:
    so sums are of whole numbers, and only their ratios are compared.
    """
    mine, yours = _whole_sums(a, part[: len(a)], count), _whole_sums(b, part[len(a) :], count)
    all_mine, all_yours = sum(mine), sum(yours)
    slack = Fraction(units * UNIT)
    return all(
        abs(x * all_yours - y * all_mine) <= slack * max(x * all_yours, y * all_mine)
        for x, y in zip(mine, yours, strict=True)
    )


def _whole_sums(weights: np.ndarray, part: np.ndarray, count: int) -> list[int]:
    """Sums of the weights of each part, exactly, in units of the smallest one's last place."""
    digits, powers = np.frexp(weights)
    least = int(powers.min())
    sums = [0] * count
    whole = (digits * 2.0**53).astype(np.int64).tolist()
    for at, number, power in zip(part.tolist(), whole, (powers - least).tolist(), strict=True):
        sums[at] += number << power
    return sums
