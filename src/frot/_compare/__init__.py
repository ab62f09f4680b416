"""Feature-robust transport and its relatives on the same points, side by side."""

from __future__ import annotations

from frot._compare._compare import compare
from frot._compare._comparison import Comparison
from frot._compare._methods import METHODS
from frot._compare._relations import Relation
from frot._compare._row import Row

__all__ = ["METHODS", "Comparison", "Relation", "Row", "compare"]
