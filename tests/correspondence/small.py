"""Small networks and photographs, for what needs no trained one."""

from __future__ import annotations

import numpy as np
import torch
from skimage import data
from torch import nn

from frot.correspondence.backbones import TorchBackbone

# Sides of 8 k + 1 pixels: corners of the grids at strides 2, 4 and 8 lie on one another, so that
# interpolation between them is exact, too.
SIDE = 129


def convolutions(seed: int = 0) -> nn.Sequential:
    """Four convolutions at strides 2, 4, 4 and 8 that see 31 pixels at most."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(3, 12, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 24, 3, stride=2, padding=1),
        )


def classifier(seed: int = 0) -> nn.Sequential:
    """The same with a classifier of five classes on averaged maps."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed + 1)
        head = [nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 5)]
    return nn.Sequential(*convolutions(seed), *head)


class Counting:
    """A backbone that counts the images it saw."""

    def __init__(self, backbone: TorchBackbone | None = None) -> None:
        self.own = TorchBackbone(convolutions()) if backbone is None else backbone
        self.name, self.layers = self.own.name, self.own.layers
        self.fingerprint = self.own.fingerprint
        self.seen = 0

    def extract(self, image):
        self.seen += 1
        return self.own.extract(image)


def cat(x: int = 60, y: int = 40, h: int = SIDE, w: int = SIDE) -> np.ndarray:
    """A part of a photograph of a cat, (h, w, 3) in [0, 1]."""
    return (data.chelsea()[y : y + h, x : x + w] / 255.0).astype(np.float32)


def places(h: int = SIDE, w: int = SIDE, border: int = 40, count: int = 5) -> np.ndarray:
    """Points of a photograph away from its borders, (k, 2)."""
    x, y = np.linspace(border, w - 1 - border, count), np.linspace(border, h - 1 - border, count)
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
