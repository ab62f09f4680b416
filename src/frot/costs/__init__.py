"""Group costs C_1 .. C_L behind one narrow protocol; the stack is formed only where it pays.

Points, groups and a metric go in, or a stack (L, n, m); out come `mix(alpha)`, the one matrix that
a transport problem sees, and `inner(plan)`, the L numbers that the objective sees (section 3.1 of
the paper).

`Costs` is the protocol, of one problem or of a batch, in NumPy or PyTorch; a class of your own
derives from it and says three things. `Points` factor over features by a metric of the registry,
`METRICS`, which takes more; `Stack` is given as an array; `Distances` and `Powers` are those of all
other metrics, in chunks. `build_costs` chooses among them.

Examples
--------
>>> import numpy as np, frot
>>> X, Y = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 2.0]])
>>> costs = frot.costs.build_costs(X, Y, frot.Groups.each(2))
>>> half = np.full(2, 0.5)
>>> round(frot.Exact()(frot.Problem(costs, half, half)).value, 6)
0.833333
"""

from __future__ import annotations

from frot._base.arrays import namespace
from frot.costs.build import MEMORY_BUDGET, build_costs, points_costs
from frot.costs.distances import Distances, Powers
from frot.costs.metrics import METRICS, Columns, FactoredMetric
from frot.costs.points import Points
from frot.costs.protocol import Batch, Costs, Rounding
from frot.costs.stack import Stack

__all__ = [
    "MEMORY_BUDGET",
    "METRICS",
    "Batch",
    "Columns",
    "Costs",
    "Distances",
    "FactoredMetric",
    "Points",
    "Powers",
    "Rounding",
    "Stack",
    "build_costs",
    "namespace",
    "points_costs",
]
