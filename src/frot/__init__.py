"""Feature-robust optimal transport: certified, exact and entropic, on named groups of features.

>>> import frot
>>> frot.solve([[0.0, 0.0]], [[1.0, 2.0]], groups="each").value
4.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frot import costs, datasets
from frot._base.errors import (
    ConvergenceWarning,
    DataWarning,
    InputError,
    MissingDependencyError,
    SolverError,
)
from frot._base.files import load
from frot._base.stopping import Interrupted
from frot._base.tables import Table, read_pair, read_table
from frot.api.batch import solve_batch
from frot.api.batch_result import BatchResult
from frot.api.distance import distance
from frot.api.pairwise import pairwise
from frot.api.solve import solve, solve_costs
from frot.api.two_sample import two_sample_test
from frot.api.two_sample_result import TwoSampleTest
from frot.datasets import toy
from frot.groups.groups import Groups
from frot.plans.lazy import LazyPlan
from frot.plans.plan import Plan
from frot.problem.adversary import CappedSimplex, Simplex
from frot.problem.adversary_sets import Ellipsoid, Polytope
from frot.problem.options import relative
from frot.problem.problem import Problem
from frot.problem.result import Chosen, Progress, Result, Status
from frot.relatives import (
    Comparison,
    compare,
    equitable,
    max_min,
    max_sliced,
    sliced,
    srw,
    wasserstein,
)
from frot.show import write_report
from frot.solvers import CuttingSet, Entropic, Exact, FrankWolfe, LinearProgram
from frot.solvers.oracles import NetworkSimplex, Oracle, Sinkhorn, Transport

if TYPE_CHECKING:
    from frot import correspondence as correspondence
    from frot import selection as selection
    from frot import torch as torch

__version__ = "0.2.0"

__all__ = [
    "BatchResult",
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
    "TwoSampleTest",
    "compare",
    "costs",
    "datasets",
    "distance",
    "equitable",
    "load",
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
    "two_sample_test",
    "wasserstein",
    "write_report",
]


# Rooms that are loaded when they are first used: scikit-learn, PyTorch and networks take seconds.
_LAZY = ("correspondence", "selection", "torch")


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'frot' has no attribute {name!r}")
    import importlib

    if name == "torch":
        from frot._base.errors import require

        require("torch", "torch")
    return importlib.import_module(f"frot.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
