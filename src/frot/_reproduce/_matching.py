"""How close one plan is to another, in mass and in cost."""

from __future__ import annotations

import numpy as np

from frot._plan import Plan

__all__ = ["mean_squared_error", "relative_excess", "shared_mass"]


def shared_mass(plan: Plan, reference: Plan) -> float:
    r"""Mass that two plans put on the same arcs, :math:`\sum_{ij} \min(\pi_{ij}, \rho_{ij})`.

    1 for equal plans, 0 for plans without a common arc. Of two one-to-one matchings it is the
    share of pairs they have in common.

    Examples
    --------
    >>> halves = Plan(np.full((2, 2), 0.25))
    >>> shared_mass(halves, Plan(np.eye(2) / 2))
    0.5
    """
    return float(np.minimum(plan.dense(), reference.dense()).sum())


def relative_excess(plan: Plan, reference: Plan, cost: np.ndarray) -> float:
    r"""How much of the way from `reference` to an arbitrary plan the cost of `plan` is.

    .. math::
        \frac{\langle \Pi - \Pi_{ref}, C \rangle}{\langle a b^\top - \Pi_{ref}, C \rangle},

    0 for a plan as cheap as the reference and 1 for one as dear as no matching at all.

    Examples
    --------
    >>> best = Plan(np.eye(2) / 2)
    >>> relative_excess(Plan(np.full((2, 2), 0.25)), best, np.array([[0.0, 1.0], [1.0, 0.0]]))
    1.0
    """
    independent = float(plan.sum(axis=1) @ cost @ plan.sum(axis=0))
    least = float((reference.dense() * cost).sum())
    return float(((plan.dense() * cost).sum() - least) / (independent - least))


def mean_squared_error(plan: Plan, reference: Plan) -> float:
    r"""The paper's measure, :math:`\sum_{ij} (\pi_{ij} - \rho_{ij})^2 / (n m)`.

    Examples
    --------
    >>> mean_squared_error(Plan(np.full((2, 2), 0.25)), Plan(np.eye(2) / 2))
    0.0625
    """
    return float(np.mean((plan.dense() - reference.dense()) ** 2))
