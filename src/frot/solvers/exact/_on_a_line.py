r"""One convex cost on a line: the monotone plan is optimal, and nothing else has to be shown.

Masses and distances are all positive and each right to some units in its last place, and so is the
sum: the interval is that wide, without a pass over n m costs.
"""

from __future__ import annotations

import numpy as np

from frot.costs.protocol import UNIT, Line
from frot.plans.line import line_arcs, line_cost, line_potentials
from frot.plans.plan import Plan
from frot.problem.bounds import UNDERFLOW, Lower, Upper
from frot.problem.problem import Problem
from frot.solvers.offer import Offer

__all__ = ["on_a_line"]


def on_a_line(problem: Problem, line: Line) -> Offer:
    r"""Sort, and take the optimum :math:`\sum \pi_{ij} |x_i - y_j|^p` for both bounds.

    With one group the adversary has no choice: its entropy is that of alpha = 1, which is zero, or
    what its prior says.
    """
    x, y, p = line
    arcs = line_arcs(x, y, problem.a, problem.b)
    rows, cols, mass = arcs
    cost = line_cost(x, y, arcs, p)
    error = (0.5 * len(mass) + 8.0 * p + 8.0) * UNIT * cost
    if (x[rows] != y[cols]).any():
        # Powers of small distances, and what little they weigh, may have been lost to underflow.
        error += (2.0 * len(mass) + 16.0) * UNDERFLOW
    phi = np.array([cost])
    value, alpha = problem.adversary.best(phi)
    plan = Plan.from_arcs(rows, cols, mass, problem.shape[1:])
    return Offer(
        Upper(value + error, value, plan, phi),
        Lower(value - error, alpha, *line_potentials(x, y, arcs, p), error),
    )
