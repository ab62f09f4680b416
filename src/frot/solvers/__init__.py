"""Solvers of the min-max, each a generator of offers, and the driver that stops and certifies.

A `Problem` goes in; a `Result` with status, lower and upper bound comes out. Section 3.2 of
the paper: `linear_program` and `frank_wolfe` (algorithm 2) are the paper's, `exact` and `entropic`
solve the same problems faster; `oracles` solve one ordinary transport problem, `sinkhorn` has the
kernels (algorithm 1).
"""

from __future__ import annotations

from frot.solvers._cutting_set import CuttingSet
from frot.solvers._linear_program import EpigraphProgram, LinearProgram
from frot.solvers.drive import Callback, Offer, Solver, Start
from frot.solvers.entropic.entropic import Entropic
from frot.solvers.exact.exact import Exact
from frot.solvers.frank_wolfe import FrankWolfe

# What a solver is called by name.
SOLVERS: dict[str, Solver] = {
    "exact": Exact(),
    "entropic": Entropic(),
    "frank_wolfe": FrankWolfe(),
    "linear_program": LinearProgram(),
    "cutting_set": CuttingSet(),
}

__all__ = [
    "SOLVERS",
    "Callback",
    "CuttingSet",
    "Entropic",
    "EpigraphProgram",
    "Exact",
    "FrankWolfe",
    "LinearProgram",
    "Offer",
    "Solver",
    "Start",
]
