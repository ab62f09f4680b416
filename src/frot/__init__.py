"""Feature-robust optimal transport: certified, exact and entropic, on named groups of features.

>>> import frot
>>> frot.solve([[0.0, 0.0]], [[1.0, 2.0]], groups="each").value
4.0
"""

from __future__ import annotations

from frot import costs
from frot._base.errors import (
    ConvergenceWarning,
    DataWarning,
    InputError,
    MissingDependencyError,
    SolverError,
)
from frot._base.stopping import Interrupted
from frot._base.tables import Table, read_pair, read_table
from frot.api.batch import solve_batch
from frot.api.batch_result import BatchResult
from frot.api.pairwise import pairwise
from frot.api.solve import distance, solve, solve_costs
from frot.comparison import Comparison, compare, write_comparison_report
from frot.datasets import toy
from frot.groups.groups import Groups
from frot.plans.lazy import LazyPlan
from frot.plans.plan import Plan, PlanLike
from frot.problem.adversary import CappedSimplex, Simplex
from frot.problem.adversary_sets import Box, Ellipsoid, Polyhedron, Polytope
from frot.problem.amounts import relative
from frot.problem.problem import Problem
from frot.problem.result import Chosen, Progress, Result
from frot.problem.status import Status
from frot.relatives import (
    cutting_set,
    equitable,
    generalised_max_sliced,
    max_min,
    max_sliced,
    sliced,
    srw,
    wasserstein,
)
from frot.show import write_report
from frot.solvers import CuttingSet, Entropic, Exact, FrankWolfe, LinearProgram
from frot.solvers.oracles import NetworkSimplex, Oracle, Sinkhorn, Transport

__version__ = "0.1.0"

__all__ = [
    "BatchResult",
    "Box",
    "CappedSimplex",
    "Chosen",
    "Comparison",
    "ConvergenceWarning",
    "CuttingSet",
    "DataWarning",
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
    "costs",
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
    """Import `frot.cells` and `frot.torch` when they are first used, so that nobody else waits."""
    if name in ("cells", "torch"):
        import importlib

        from frot._base.errors import require

        if name == "torch":
            require("torch", "torch")
        return importlib.import_module(f"frot.{name}")
    raise AttributeError(f"module 'frot' has no attribute {name!r}")
