"""A network whose layers are known: two that each know one coordinate, the others noise."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from frot.correspondence import FeatureMap, PairSet, load_pairs
from tests.correspondence import generated

STRIDE = 4


class Planted:
    """Knows where cells of the drawn photographs belong: "x" and "y" by name, "noise" not at all.

    Its layers can be finer than, equal to or coarser than the grid that is matched.
    """

    name = "planted"
    fingerprint = "planted"

    def __init__(self, layers: tuple[str, ...] = ("noise_a", "x", "noise_b", "y", "noise_c")):
        self.layers = layers
        self.extracted: list[str] = []

    def extract(self, image: np.ndarray) -> list[FeatureMap]:
        raise AssertionError("photographs go by name")

    def extract_named(self, name: str, image: np.ndarray) -> list[FeatureMap]:
        self.extracted.append(name)
        return [self._layer(layer, name, image) for layer in self.layers]

    def _layer(self, layer: str, name: str, image: np.ndarray) -> FeatureMap:
        stride = 2 * STRIDE if layer.endswith("coarse") else STRIDE
        h, w = image.shape[0] // stride, image.shape[1] // stride
        if layer.startswith("noise"):
            rng = np.random.default_rng(zlib.crc32(f"{layer} {name}".encode()))
            values = rng.normal(size=(16, h, w))
        else:
            y, x = np.mgrid[:h, :w] * float(stride)
            places = np.stack([x.ravel(), y.ravel()], axis=1) * generated.WIDTH / image.shape[1]
            for _ in range(int(Path(name).stem[-1])):
                places = (places - generated.SHIFT) @ np.linalg.inv(generated.MATRIX).T
            known = places[:, "xy".index(layer[0])]
            waves = known[None, :] * np.linspace(0.02, 0.4, 8)[:, None]
            values = np.concatenate([np.cos(waves), np.sin(waves)]).reshape(16, h, w)
        return FeatureMap(layer, values.astype(np.float32), stride, stride)


def pairs(root: Path) -> PairSet:
    """Six pairs of three photographs."""
    return load_pairs("pf-willow", generated.pf_willow(root, ("car(G)",)))
