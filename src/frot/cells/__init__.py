"""Cells through time: the cells of two days coupled by transport with pathways as groups.

Expression, days and sets of genes go in; couplings come out: where cells go, where they come from,
and which pathways decide. `simulate` draws cells whose fates are known.
"""

from __future__ import annotations

from frot.cells._simulate import Simulation, simulate

__all__ = ["Simulation", "simulate"]
