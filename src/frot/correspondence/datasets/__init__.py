"""Photographs with points that belong together: loaders for the public layouts of five sets."""

from __future__ import annotations

from frot.correspondence.datasets.pair_set import PairSet
from frot.correspondence.datasets.sets import PAIR_SETS, load_pairs

__all__ = ["PAIR_SETS", "PairSet", "load_pairs"]
