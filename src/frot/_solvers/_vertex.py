"""The paper's linear program on some arcs, by HiGHS: an exact vertex to end a run on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from frot._deadline import DeadlineError
from frot._errors import SolverError

__all__ = ["Vertex", "solve_vertex"]


class Vertex(NamedTuple):
    """Mass on the arcs, weights of the groups, and potentials of the columns."""

    mass: np.ndarray
    alpha: np.ndarray
    g: np.ndarray


def solve_vertex(
    a: np.ndarray,
    b: np.ndarray,
    rows: np.ndarray,
    cols: np.ndarray,
    costs: np.ndarray,
    *,
    method: str = "simplex",
    time_limit: float | None = None,
    presolve: bool = False,
) -> Vertex | None:
    r"""Solve the epigraph program over the given arcs.

    .. math::
        \min_{x \ge 0,\, t} t \quad \text{s.t.} \quad A x = (a, b), \quad C x \le t 1

    Parameters
    ----------
    a, b : arrays of shape (n,) and (m,)
    rows, cols : arrays of shape (K,)
        The arcs.
    costs : array of shape (G, K)
    method : {"simplex", "ipm"}
        HiGHS's algorithm.

    Returns
    -------
    Vertex or None
        None where the arcs admit no plan.

    Raises
    ------
    DeadlineError
        If the time ran out.
    """
    import highspy

    groups, count = costs.shape
    n, m = len(a), len(b)
    model = highspy.HighsLp()
    model.num_col_ = count + 1
    model.num_row_ = n + m + groups
    model.col_cost_ = np.append(np.zeros(count), 1.0)
    model.col_lower_ = np.append(np.zeros(count), -np.inf)
    model.col_upper_ = np.full(count + 1, np.inf)
    lower = np.concatenate([a, b, np.full(groups, -np.inf)])
    upper = np.concatenate([a, b, np.zeros(groups)])
    # One marginal follows from the others; asked for twice, rounding can make them disagree.
    implied = n + int(np.argmax(b))
    lower[implied], upper[implied] = -np.inf, np.inf
    model.row_lower_, model.row_upper_ = lower, upper
    column = np.empty((count, 2 + groups), dtype=np.int32)
    column[:, 0], column[:, 1] = rows, n + np.asarray(cols)
    column[:, 2:] = n + m + np.arange(groups, dtype=np.int32)
    entries = np.ones((count, 2 + groups))
    entries[:, 2:] = costs.T
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    starts = np.arange(count + 1, dtype=np.int64) * (2 + groups)
    model.a_matrix_.start_ = np.append(starts, starts[-1] + groups)
    last = n + m + np.arange(groups, dtype=np.int32)
    model.a_matrix_.index_ = np.append(column.ravel(), last)
    model.a_matrix_.value_ = np.append(entries.ravel(), -np.ones(groups))
    highs = highspy.Highs()
    for name, setting in {
        "output_flag": False,
        "threads": 1,
        "solver": method,
        "presolve": "on" if presolve else "off",
        "primal_feasibility_tolerance": 1e-10,
        "dual_feasibility_tolerance": 1e-10,
        "time_limit": float("inf") if time_limit is None else max(time_limit, 1e-3),
    }.items():
        highs.setOptionValue(name, setting)
    # A long solve runs in a thread of its own, so that Ctrl-C reaches Python.
    highs.HandleKeyboardInterrupt = count > 20_000
    highs.passModel(model)
    (highs.solve if highs.HandleKeyboardInterrupt else highs.run)()
    status = highs.getModelStatus()
    known = highspy.HighsModelStatus
    if status in (known.kInfeasible, known.kUnboundedOrInfeasible):
        return None
    if status == known.kTimeLimit:
        raise DeadlineError
    if status == known.kInterrupt:
        raise KeyboardInterrupt
    if status != known.kOptimal:
        raise SolverError(f"HiGHS stopped with {highs.modelStatusToString(status)!r}")
    solution = highs.getSolution()
    dual = np.asarray(solution.row_dual)
    alpha = np.maximum(-dual[n + m :], 0.0)
    total = alpha.sum()
    alpha = alpha / total if total > 0.0 else np.full(groups, 1.0 / groups)
    mass = np.maximum(np.asarray(solution.col_value)[:count], 0.0)
    return Vertex(mass, alpha, dual[n : n + m])
