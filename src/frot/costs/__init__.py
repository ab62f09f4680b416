"""Group costs C_1 .. C_L behind one narrow protocol; the stack is formed only where it pays.

Points, groups and a metric go in, or a stack (L, n, m); out come `mix(alpha)`, the one matrix that
a transport problem sees, and `inner(plan)`, the L numbers that the objective sees (section 3.1 of
the paper).

`Costs` is what a `frot.Problem` asks of them, one problem on the host; a class of your own derives
from it and says three things. `Geometry` is the same for a batch of problems in NumPy or PyTorch,
which sweeps work on. `build_costs` makes costs from points, groups and a metric, `StackedCosts` are
given as a stack; `METRICS` has the metrics whose costs factor over features, and takes more.

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
from frot.costs._metric import MetricCosts, SeparableCosts
from frot.costs.build import MEMORY_BUDGET, build_costs, device_points, device_stack
from frot.costs.geometry import CostsGeometry, DeviceCosts, Geometry
from frot.costs.metrics import METRICS, Columns, FactoredMetric
from frot.costs.points import FactoredCosts, PointGeometry
from frot.costs.protocol import Costs, Rounding
from frot.costs.stack import StackedCosts, StackGeometry
from frot.costs.wrapped import PartialCosts, RescaledCosts

__all__ = [
    "MEMORY_BUDGET",
    "METRICS",
    "Columns",
    "Costs",
    "CostsGeometry",
    "DeviceCosts",
    "FactoredCosts",
    "FactoredMetric",
    "Geometry",
    "MetricCosts",
    "PartialCosts",
    "PointGeometry",
    "RescaledCosts",
    "Rounding",
    "SeparableCosts",
    "StackGeometry",
    "StackedCosts",
    "build_costs",
    "device_points",
    "device_stack",
    "namespace",
]
