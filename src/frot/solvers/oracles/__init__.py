"""Oracles: one ordinary transport problem at a mixed cost.

A cost matrix and weights go in, a `Transport` comes out: plan and potentials. What Frank-Wolfe
calls in every step (algorithm 2 of the paper, line 4).
"""

from __future__ import annotations

from frot.solvers.oracles._protocol import Oracle, Transport, keeps_potentials
from frot.solvers.oracles._sinkhorn import Sinkhorn
from frot.solvers.oracles.network_simplex import NetworkSimplex

__all__ = ["NetworkSimplex", "Oracle", "Sinkhorn", "Transport", "keeps_potentials"]
