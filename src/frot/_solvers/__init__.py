"""Solvers of the min-max; each file is one algorithm."""

from __future__ import annotations

from frot._solvers._cutting_set import CuttingSet
from frot._solvers._drive import Callback
from frot._solvers._entropic import Entropic
from frot._solvers._exact import Exact
from frot._solvers._frank_wolfe import FrankWolfe
from frot._solvers._linear_program import LinearProgram
from frot._solvers._start import Start

__all__ = [
    "Callback",
    "CuttingSet",
    "Entropic",
    "Exact",
    "FrankWolfe",
    "LinearProgram",
    "Start",
]
