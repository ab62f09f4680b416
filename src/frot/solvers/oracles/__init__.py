"""Oracles: one ordinary transport problem at a mixed cost."""

from __future__ import annotations

from frot.solvers.oracles._network_simplex import NetworkSimplex
from frot.solvers.oracles._protocol import Oracle, Transport, keeps_potentials
from frot.solvers.oracles._sinkhorn import Sinkhorn

__all__ = ["NetworkSimplex", "Oracle", "Sinkhorn", "Transport", "keeps_potentials"]
