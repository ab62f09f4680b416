"""Ways to match the cells of two images, one a file, behind one call."""

from __future__ import annotations

from collections.abc import Callable

from frot.correspondence.methods._cosine import hyperpixel, nearest
from frot.correspondence.methods._frot import feature_robust
from frot.correspondence.methods._max_min import worst_layer
from frot.correspondence.methods._one_cost import (
    concatenated,
    most_coherent,
    scot,
    uniform,
    weighted,
)
from frot.correspondence.methods._outcome import (
    Outcome,
    Setting,
    votes_between,
)
from frot.correspondence.methods._srw import subspace_robust

__all__ = ["METHODS", "Outcome", "Setting", "votes_between"]

METHODS: dict[str, Callable[[Setting], Outcome]] = {
    "frot": feature_robust,
    "ot": concatenated,
    "uniform": uniform,
    "weighted": weighted,
    "nn": nearest,
    "best-layer": most_coherent,
    "hpf": hyperpixel,
    "scot": scot,
    "srw": subspace_robust,
    "max-min": worst_layer,
}
