r"""Transport on a line, by sorting: plans, values and potentials in O(n log n).

For every convex cost :math:`c(x - y)` the monotone plan is optimal, and it is found by sorting.
"""

from __future__ import annotations

import numpy as np

from frot.plans.feasible import northwest
from frot.plans.plan import Arcs


def line_arcs(x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> Arcs:
    """Return the monotone plan between weighted numbers, best for every convex cost.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> line_arcs(np.array([1.0, 0.0]), np.array([2.0, 5.0]), half, half)[:2]
    (array([1, 0]), array([0, 1]))
    """
    rows, cols = np.argsort(x, kind="stable"), np.argsort(y, kind="stable")
    if len(a) == len(b) and (a == a[0]).all() and (b == a[0]).all():
        return rows, cols, a
    i, j, mass = northwest(a[rows], b[cols])
    return rows[i], cols[j], mass


def line_cost(x: np.ndarray, y: np.ndarray, arcs: Arcs, p: float = 2.0) -> float:
    r"""Return the cost :math:`\sum \pi_{ij} |x_i - y_j|^p` of a plan on the line."""
    rows, cols, mass = arcs
    return float(mass @ _power(x[rows] - y[cols], p))


def line_potential(x: np.ndarray, y: np.ndarray, arcs: Arcs, p: float = 2.0) -> np.ndarray:
    """Return the potential g that goes with a monotone plan for the cost |x - y|^p, p >= 1.

    Where the plan steps in both sides at once, an arc without mass links the two: convex costs on
    a line are such that any of them will do. Points without mass are kept out of the way. The
    middle of the mass has potential zero: steps are added up from there, so that what far points
    lose to rounding stays with them.

    Examples
    --------
    >>> x, y, half = np.array([0.0, 1.0]), np.array([1.0, 3.0]), np.array([0.5, 0.5])
    >>> line_potential(x, y, line_arcs(x, y, half, half))
    array([0., 8.])
    """
    rows, cols, mass = arcs
    # From one column to the next by way of a row that is next to both of them.
    moves = np.flatnonzero(cols[1:] != cols[:-1])
    left, right, row = cols[moves], cols[moves + 1], rows[moves]
    steps = _power(x[row] - y[right], p) - _power(x[row] - y[left], p)
    reach = float(_power(np.ptp(np.append(x, y)), p))
    weight = np.cumsum(mass)
    middle = np.searchsorted(moves, np.searchsorted(weight, 0.5 * weight[-1]))
    before, after = np.cumsum(-steps[:middle][::-1])[::-1], np.cumsum(steps[middle:])
    values = np.concatenate([before, [0.0], after])
    g = np.full(len(y), float(values.min()) - reach)
    g[np.append(cols[:1], right)] = values
    return g


def line_potentials(
    x: np.ndarray, y: np.ndarray, arcs: Arcs, p: float = 2.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return potentials f and g that go with a monotone plan for the cost |x - y|^p, p >= 1."""
    g = line_potential(x, y, arcs, p)
    rows, cols, _ = arcs
    costs = _power(x[rows] - y[cols], p)
    f = np.full(len(x), np.nan)
    # Of a row's arcs the smallest numbers are known best, and what is assigned last stays.
    order = np.argsort(-(costs + np.abs(g[cols])), kind="stable")
    f[rows[order]] = costs[order] - g[cols[order]]
    for row in np.flatnonzero(np.isnan(f)):
        f[row] = float((_power(x[row] - y, p) - g).min())
    return f, g


def _power(gaps: np.ndarray, p: float) -> np.ndarray:
    return gaps * gaps if p == 2.0 else np.abs(gaps) ** p
