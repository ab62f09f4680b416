"""Group costs C_1 .. C_L behind one narrow protocol; the stack is formed only where it pays."""

from __future__ import annotations

from frot._costs._build import MEMORY_BUDGET, build_costs, given_costs
from frot._costs._factored import FactoredCosts
from frot._costs._forbidden import ForbiddenCosts
from frot._costs._metric import MetricCosts
from frot._costs._protocol import Costs
from frot._costs._rescaled import RescaledCosts
from frot._costs._separable import SeparableCosts
from frot._costs._stacked import StackedCosts

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
