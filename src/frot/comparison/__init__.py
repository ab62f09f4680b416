"""Feature-robust transport and its relatives on the same points, side by side.

Two sets of points and names of methods go in; a `Comparison` comes out: a row for each method with
its value, interval, time and memory, and whether the inequalities between them hold (sections 2
and 4 of the paper name the relatives).
"""

from __future__ import annotations

from frot.comparison._compare import compare
from frot.comparison._comparison import Comparison, Relation, Row
from frot.comparison.methods import METHODS
from frot.comparison.picture import plot_choices, plot_comparison, plot_intervals, plot_plans
from frot.comparison.report import write_comparison_report

__all__ = [
    "METHODS",
    "Comparison",
    "Relation",
    "Row",
    "compare",
    "plot_choices",
    "plot_comparison",
    "plot_intervals",
    "plot_plans",
    "write_comparison_report",
]
