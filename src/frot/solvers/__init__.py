"""Solvers of the min-max; each file is one algorithm."""

from __future__ import annotations

from frot.solvers._cutting_set import CuttingSet
from frot.solvers._linear_program import LinearProgram
from frot.solvers._start import Start
from frot.solvers.drive import Callback
from frot.solvers.entropic.entropic import Entropic
from frot.solvers.exact.exact import Exact
from frot.solvers.frank_wolfe import FrankWolfe

__all__ = [
    "Callback",
    "CuttingSet",
    "Entropic",
    "Exact",
    "FrankWolfe",
    "LinearProgram",
    "Start",
]
