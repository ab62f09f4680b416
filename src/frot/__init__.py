"""Feature-robust optimal transport: certified, exact and entropic, on named groups of features.

>>> import frot
>>> frot.solve([[0.0, 0.0]], [[1.0, 2.0]], groups="each").value
4.0
"""

from __future__ import annotations

from frot._adversary import CappedSimplex, Simplex
from frot._adversary_sets import Box, Ellipsoid, Polyhedron, Polytope
from frot._base.tables import Table, read_pair, read_table
from frot._batch import solve_batch
from frot._batch_result import BatchResult
from frot._chosen import Chosen
from frot._compare import Comparison, compare
from frot._errors import ConvergenceWarning, InputError, MissingDependencyError, SolverError
from frot._groups import Groups
from frot._interrupted import Interrupted
from frot._lazy_plan import LazyPlan
from frot._oracles import NetworkSimplex, Oracle, Sinkhorn, Transport
from frot._pairwise import pairwise
from frot._plan import Plan
from frot._plan_protocol import PlanLike
from frot._problem import Problem
from frot._relative import relative
from frot._relatives import (
    cutting_set,
    equitable,
    generalised_max_sliced,
    max_min,
    max_sliced,
    sliced,
    srw,
    wasserstein,
)
from frot._result import Progress, Result
from frot._solve import distance, solve, solve_costs
from frot._solvers import CuttingSet, Entropic, Exact, FrankWolfe, LinearProgram
from frot._status import Status
from frot._toy import toy
from frot.show import write_comparison_report, write_report

__version__ = "0.1.0"

__all__ = [
    "BatchResult",
    "Box",
    "CappedSimplex",
    "Chosen",
    "Comparison",
    "ConvergenceWarning",
    "CuttingSet",
    "Ellipsoid",
    "Entropic",
    "Exact",
    "FrankWolfe",
    "Groups",
    "InputError",
    "Interrupted",
    "LazyPlan",
    "LinearProgram",
    "MissingDependencyError",
    "NetworkSimplex",
    "Oracle",
    "Plan",
    "PlanLike",
    "Polyhedron",
    "Polytope",
    "Problem",
    "Progress",
    "Result",
    "Simplex",
    "Sinkhorn",
    "SolverError",
    "Status",
    "Table",
    "Transport",
    "compare",
    "cutting_set",
    "distance",
    "equitable",
    "generalised_max_sliced",
    "max_min",
    "max_sliced",
    "pairwise",
    "read_pair",
    "read_table",
    "relative",
    "sliced",
    "solve",
    "solve_batch",
    "solve_costs",
    "srw",
    "toy",
    "wasserstein",
    "write_comparison_report",
    "write_report",
]


def __getattr__(name: str) -> object:
    """Import `frot.torch` when it is first used, so that nobody else waits for PyTorch."""
    if name == "torch":
        from frot._errors import require

        require("torch", "torch")
        import importlib

        return importlib.import_module("frot.torch")
    raise AttributeError(f"module 'frot' has no attribute {name!r}")
