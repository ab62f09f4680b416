"""Relatives of feature-robust transport, all behind the same result."""

from __future__ import annotations

from frot._relatives._cutting_set import cutting_set
from frot._relatives._equitable import equitable
from frot._relatives._max_min import max_min
from frot._relatives._max_sliced import generalised_max_sliced, max_sliced
from frot._relatives._sliced import sliced
from frot._relatives._srw import srw
from frot._relatives._wasserstein import wasserstein

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
