"""Forbidden arcs: whether any plan is left without them, and which one."""

from __future__ import annotations

import numpy as np

from frot._base.errors import InputError
from frot.plans.feasible import UNIT, Settled, settle
from frot.plans.plan import Plan
from frot.solvers.oracles.pot import network_simplex

__all__ = ["allowed_plan", "check_allowed"]

# Mass on forbidden arcs that is rounding and no more.
ROUNDING = 1e-13
UNITS = 64.0


def allowed_plan(forbidden: np.ndarray, a: np.ndarray, b: np.ndarray) -> Plan:
    """Return a plan that uses no forbidden arc.

    Parameters
    ----------
    forbidden : array of shape (n, m), bool
    a, b : arrays of shape (n,) and (m,)

    Raises
    ------
    InputError
        If there is none.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> np.asarray(allowed_plan(np.array([[True, False], [False, True]]), half, half))
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    rows, cols = np.flatnonzero(a), np.flatnonzero(b)
    shut = forbidden[np.ix_(rows, cols)]
    flow = network_simplex(shut.astype(float), a[rows], b[cols], 1_000_000 + 500 * sum(shut.shape))
    plan = np.where(shut, 0.0, flow.plan)
    if float(flow.plan[shut].sum()) > ROUNDING:
        raise InputError(_sentence(shut, flow.f, a[rows], b[cols], rows))
    found = _settled(plan, a[rows], b[cols])
    if found is None:
        raise InputError(_sentence(shut, flow.f, a[rows], b[cols], rows))
    i, j, mass = found.arcs
    return Plan.from_arcs(rows[i], cols[j], mass, forbidden.shape)


def _settled(plan: np.ndarray, a: np.ndarray, b: np.ndarray) -> Settled | None:
    """Settle a plan; an arc that has a mass of rounding may join what does not belong together."""
    firm = plan > UNITS * UNIT * np.minimum(a[:, None], b)
    for some in (plan, np.where(firm, plan, 0.0)):
        found = settle(Plan.from_arcs(*Plan(some).arcs(), plan.shape), a, b, UNITS)
        if found is not None:
            return found
    return None


def check_allowed(forbidden: np.ndarray | None, a: np.ndarray, b: np.ndarray) -> None:
    """Refuse costs that leave no plan."""
    if forbidden is not None:
        allowed_plan(forbidden, a, b)


def _sentence(
    shut: np.ndarray, f: np.ndarray, a: np.ndarray, b: np.ndarray, rows: np.ndarray
) -> str:
    """Name rows that weigh more than the columns they may go to (Hall's condition)."""
    # Potentials of a cost that is 0 or 1 are whole numbers apart; rows of a high one are shut in.
    levels = np.unique(np.round(f - f.min()))
    sets = [np.round(f - f.min()) >= level for level in levels]
    weights = [(float(a[some].sum()), float(b[~shut[some].all(axis=0)].sum())) for some in sets]
    worst = max(range(len(sets)), key=lambda at: weights[at][0] - weights[at][1])
    (mine, theirs), some = weights[worst], sets[worst]
    named = rows[some].tolist()
    shown = ", ".join(map(str, named[:5])) + (", ..." if len(named) > 5 else "")
    return (
        f"C: infinite costs leave no plan: rows {shown} weigh {mine:.6g}, and the columns that "
        f"they may go to {theirs:.6g}; allow more arcs or change the weights"
    )
