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
    """Cosines between the layers' own cells, interpolated: (L, n, m) in double precision.

    Layers finer than the cells are interpolated to these first.
    """
    sizes = [maps[grid_of].values.shape[1:] for maps in (source, target)]
    return np.stack([_plain_cost(*pair, *sizes) for pair in zip(source, target, strict=True)])


def papers_stack(source, target, grid_of=0) -> np.ndarray:
    """Cosines of vectors that are interpolated to the cells first: (L, n, m)."""
    sides = []
    for maps in (source, target):
        size = maps[grid_of].values.shape[1:]
        values = (torch.tensor(np.asarray(x.values), dtype=torch.float64)[None] for x in maps)
        sides.append([functional.normalize(resized(x, size)[0].flatten(1), dim=0) for x in values])
    return np.stack([(2.0 - 2.0 * F.T @ G).numpy() for F, G in zip(*sides, strict=True)])


def resized(values, size):
    return functional.interpolate(values, tuple(size), mode="bilinear", align_corners=True)


def _plain_cost(one, other, size, other_size) -> np.ndarray:
    def unit(layer, size):
        values = torch.tensor(np.asarray(layer.values), dtype=torch.float64)[None]
        if layer.grid.count > size[0] * size[1]:
            values = resized(values, size)
        return functional.normalize(values, dim=1)[0]

    F, G = unit(one, size), unit(other, other_size)
    cosines = torch.einsum("cyx,cvu->yxvu", F, G)
    (h, w), (tall, wide) = F.shape[1:], G.shape[1:]
    fine = resized(cosines.reshape(h * w, 1, tall, wide), other_size).flatten(1)
    fine = resized(fine.T.reshape(-1, 1, h, w), size).flatten(1)
    return (2.0 - 2.0 * fine.T).numpy()
