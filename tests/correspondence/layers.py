"""Small maps of several layers, and the stack of their costs by the plain way."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from frot.correspondence._features import FeatureMap

SOURCE = ((9, 7), (9, 7), (5, 4), (5, 4), (3, 2), (1, 1), (18, 14))
TARGET = ((8, 11), (8, 11), (4, 6), (4, 6), (2, 3), (1, 2), (16, 22))
CHANNELS = (8, 130, 16, 16, 32, 8, 8)


def random_maps(grids=SOURCE, channels=CHANNELS, seed=0) -> list[FeatureMap]:
    """Maps that lean to one side, as activations do."""
    rng = np.random.default_rng(seed)
    return [
        FeatureMap(f"layer{k}", rng.normal(0.3, 1.0, (c, h, w)).astype("float32"), 36.0 / h, 11.0)
        for k, ((h, w), c) in enumerate(zip(grids, channels, strict=True))
    ]


def plain_stack(source, target, grid_of=0) -> np.ndarray:
    """Interpolate every channel, normalise, multiply: (L, n, m) in double precision."""

    def vectors(maps):
        size = maps[grid_of].values.shape[1:]
        for one in maps:
            values = torch.tensor(np.asarray(one.values), dtype=torch.float64)[None]
            fine = functional.interpolate(values, size, mode="bilinear", align_corners=True)
            yield functional.normalize(fine[0].flatten(1), dim=0)

    pairs = zip(vectors(source), vectors(target), strict=True)
    return torch.stack([2.0 - 2.0 * x.T @ y for x, y in pairs]).numpy()
