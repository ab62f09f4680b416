"""Relatives of feature-robust transport, all behind the same result.

Two sets of points go in, a `Result` with a proven interval comes out: subspace-robust, max-sliced,
sliced, max-min, equitable transport, and transport against any set of weights (sections 2 and 4 of
the paper).
"""

from __future__ import annotations

from frot.relatives._equitable import equitable
from frot.relatives._max_min import max_min
from frot.relatives._sliced import generalised_max_sliced, max_sliced, sliced
from frot.relatives._special_cases import cutting_set, wasserstein
from frot.relatives._srw import srw

__all__ = [
    "cutting_set",
    "equitable",
    "generalised_max_sliced",
    "max_min",
    "max_sliced",
    "sliced",
    "srw",
    "wasserstein",
]
