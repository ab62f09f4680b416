"""Cells through time: the cells of two days coupled by transport with pathways as groups.

An AnnData goes in, with a column that has the days, and sets of genes; certified couplings come
out: where cells go, where they come from, and which pathways decide. `simulate` makes cells whose
fates are known, to measure on.

`import frot` does not load it. AnnData itself is not needed: `Cells` holds plain arrays.
"""

from __future__ import annotations

from frot.cells._coupling import Coupling, couple
from frot.cells._input import Cells, read_cells
from frot.cells._report import (
    plot_flow,
    plot_push,
    plot_transitions,
    plot_weights,
    write_coupling_report,
)
from frot.cells._simulate import Simulation, simulate
from frot.cells._trajectory import Trajectory, trajectory

__all__ = [
    "Cells",
    "Coupling",
    "Simulation",
    "Trajectory",
    "couple",
    "plot_flow",
    "plot_push",
    "plot_transitions",
    "plot_weights",
    "read_cells",
    "simulate",
    "trajectory",
    "write_coupling_report",
]
