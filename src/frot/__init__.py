"""Feature-robust optimal transport: certified, exact and entropic, on named groups of features.

>>> import frot
>>> frot.solve([[0.0, 0.0]], [[1.0, 2.0]], groups="each").value
4.0
"""

from __future__ import annotations

from frot._adversary import Simplex
from frot._errors import ConvergenceWarning, InputError, MissingDependencyError, SolverError
from frot._groups import Groups
from frot._oracles import NetworkSimplex, Sinkhorn
from frot._plan import Plan
from frot._problem import Problem
from frot._result import Progress, Result
from frot._solve import distance, solve, solve_costs
from frot._solvers import Exact, FrankWolfe, LinearProgram
from frot._status import Status

__version__ = "0.1.0"

__all__ = [
    "ConvergenceWarning",
    "Exact",
    "FrankWolfe",
    "Groups",
    "InputError",
    "LinearProgram",
    "MissingDependencyError",
    "NetworkSimplex",
    "Plan",
    "Problem",
    "Progress",
    "Result",
    "Simplex",
    "Sinkhorn",
    "SolverError",
    "Status",
    "distance",
    "solve",
    "solve_costs",
]
