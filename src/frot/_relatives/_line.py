"""Transport on a line, by sorting: what slices need, plans and values in O(n log n)."""

from __future__ import annotations

import numpy as np

from frot._feasible import northwest
from frot._plan import Arcs

__all__ = ["line_arcs", "line_cost"]


def line_arcs(x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> Arcs:
    """Return the monotone plan between weighted numbers, best for every convex cost.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> line_arcs(np.array([1.0, 0.0]), np.array([2.0, 5.0]), half, half)[:2]
    (array([1, 0]), array([0, 1]))
    """
    rows, cols = np.argsort(x, kind="stable"), np.argsort(y, kind="stable")
    i, j, mass = northwest(a[rows], b[cols])
    return rows[i], cols[j], mass


def line_cost(x: np.ndarray, y: np.ndarray, arcs: Arcs) -> float:
    """Return the squared cost of a plan on the line.

    Examples
    --------
    >>> line_cost(np.zeros(1), np.ones(1), (np.array([0]), np.array([0]), np.ones(1)))
    1.0
    """
    rows, cols, mass = arcs
    return float(mass @ (x[rows] - y[cols]) ** 2)
