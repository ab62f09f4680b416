"""The referee: optima of small problems, in more digits than those it judges."""

from __future__ import annotations

from .linear import NoPlanError, normalised, transport
from .optimum import Truth, optimum
from .program import Program

__all__ = ["NoPlanError", "Program", "Truth", "normalised", "optimum", "transport"]
