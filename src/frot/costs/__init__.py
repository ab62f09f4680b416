"""Group costs C_1 .. C_L behind one narrow protocol; the stack is formed only where it pays.

Points, groups and a metric go in, or a stack (L, n, m); out come `mix(alpha)`, the one matrix that
a transport problem sees, and `inner(plan)`, the L numbers that the objective sees (section 3.1 of
the paper).
"""

from __future__ import annotations

from frot.costs._factored import FactoredCosts
from frot.costs._forbidden import ForbiddenCosts
from frot.costs._metric import MetricCosts
from frot.costs._rescaled import RescaledCosts
from frot.costs._separable import SeparableCosts
from frot.costs._stacked import StackedCosts
from frot.costs.build import MEMORY_BUDGET, build_costs, given_costs
from frot.costs.protocol import Costs

__all__ = [
    "MEMORY_BUDGET",
    "Costs",
    "FactoredCosts",
    "ForbiddenCosts",
    "MetricCosts",
    "RescaledCosts",
    "SeparableCosts",
    "StackedCosts",
    "build_costs",
    "given_costs",
]
