"""The registry of experiments, in the order that ``frot reproduce all`` runs them in."""

from __future__ import annotations

from frot.cli.reproduce import (
    calibration,
    cells,
    correspondence,
    fig1,
    fig2,
    noise_layers,
    poses,
    robustness,
    selection,
)
from frot.cli.reproduce.experiment import Experiment

__all__ = ["EXPERIMENTS"]

MODULES = (
    fig1,
    fig2,
    selection,
    calibration,
    cells,
    robustness,
    noise_layers,
    poses,
    correspondence,
)
EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in MODULES
}
