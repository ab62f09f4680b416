"""Photographs with points that belong together: loaders for the public layouts of four sets."""

from __future__ import annotations

from frot.correspondence.datasets._load import PAIR_SETS, Verification, load_pairs, verify_pairs
from frot.correspondence.datasets._pf_willow import pf_willow
from frot.correspondence.datasets.pair_set import PairSet

__all__ = ["PAIR_SETS", "PairSet", "Verification", "load_pairs", "pf_willow", "verify_pairs"]
