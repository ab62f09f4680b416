"""Relatives of feature-robust transport, all behind the same result.

Two sets of points go in, a `Result` comes out: subspace-robust, max-sliced, sliced, max-min,
equitable and ordinary transport (sections 2 and 4 of the paper); `compare` puts them side by side.
"""

from __future__ import annotations

from frot.relatives.compare import Comparison, compare
from frot.relatives.equitable import equitable
from frot.relatives.max_min import max_min
from frot.relatives.max_sliced import max_sliced
from frot.relatives.sliced import sliced
from frot.relatives.srw import srw
from frot.relatives.wasserstein import wasserstein

__all__ = [
    "Comparison",
    "compare",
    "equitable",
    "max_min",
    "max_sliced",
    "sliced",
    "srw",
    "wasserstein",
]
