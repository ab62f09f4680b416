"""The paper's algorithms, and how plans are held against each other."""

from __future__ import annotations

import numpy as np

from frot import Plan
from frot.solvers import FrankWolfe
from frot.solvers.oracles import NetworkSimplex, Sinkhorn

# Algorithm 2 with T = 10, by network simplex and by Sinkhorn's algorithm; the tolerance of zero
# keeps it from stopping before.
ITERATIONS = 10
FW_EMD = FrankWolfe(oracle=NetworkSimplex(), step="paper", max_iter=ITERATIONS, tol=0.0)


def fw_sinkhorn(eps: float) -> FrankWolfe:
    """Algorithm 2 with Sinkhorn's plans; eps is the oracle's, and no part of the problem."""
    return FrankWolfe(oracle=Sinkhorn(eps=eps), step="paper", max_iter=ITERATIONS, tol=0.0)


def shared_mass(plan: Plan, reference: Plan) -> float:
    r"""Mass on the same arcs, :math:`\sum_{ij} \min(\pi_{ij}, \rho_{ij})`, from 0 to 1.

    Of two one-to-one matchings it is the share of pairs that they have in common.
    """
    return float(np.minimum(plan.dense(), reference.dense()).sum())


def mean_squared_error(plan: Plan, reference: Plan) -> float:
    r"""The paper's :math:`\sum_{ij} (\pi_{ij} - \rho_{ij})^2 / (n m)`."""
    return float(np.mean((plan.dense() - reference.dense()) ** 2))


def relative_excess(plan: Plan, reference: Plan, cost: np.ndarray) -> float:
    r"""The cost of a plan, 0 as cheap as the reference and 1 as dear as no matching, :math:`ab^T`.

    .. math:: \frac{\langle \Pi - \Pi_{ref}, C \rangle}{\langle a b^\top - \Pi_{ref}, C \rangle}
    """
    independent = float(plan.sum(axis=1) @ cost @ plan.sum(axis=0))
    least = float((reference.dense() * cost).sum())
    return float(((plan.dense() * cost).sum() - least) / (independent - least))
