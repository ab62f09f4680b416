"""Layers of pure noise among the real ones, to see who falls for them."""

from __future__ import annotations

import numpy as np

from frot._base.errors import InputError
from frot._base.fingerprint import fingerprint
from frot.correspondence._backbone import Backbone, Classifying
from frot.correspondence._feature_map import FeatureMap
from frot.correspondence.backbones.arrays import extract_named, image_key
from frot.correspondence.backbones.choose import refuse_classes

__all__ = ["NoisyBackbone"]


class NoisyBackbone:
    """A backbone with layers of independent Gaussian noise behind its own.

    Each has the shape of one of the network's own maps, from places spread evenly over its depth.
    The noise depends on the image and the seed alone: the same photograph always has the same, two
    photographs have nothing in common.

    Parameters
    ----------
    backbone : Backbone
        The network.
    count : int
        Layers of noise.
    seed : int

    Examples
    --------
    >>> from frot.correspondence.backbones.arrays import ArrayBackbone
    >>> features = {"cat.jpg": {"low": np.zeros((3, 9, 9)), "high": np.zeros((5, 3, 3))}}
    >>> noisy = NoisyBackbone(ArrayBackbone(features), count=2)
    >>> noisy.layers, noisy.noise
    (('low', 'high', 'noise_0', 'noise_1'), ('noise_0', 'noise_1'))
    >>> maps = noisy.extract_named("cat.jpg", np.zeros((36, 36, 3), dtype="float32"))
    >>> [one.values.shape for one in maps]
    [(3, 9, 9), (5, 3, 3), (3, 9, 9), (5, 3, 3)]
    """

    def __init__(self, backbone: Backbone, count: int = 3, seed: int = 0) -> None:
        for value, name, least in ((count, "count", 1), (seed, "seed", 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"{name}: must be a whole number >= {least}, got {value!r}")
        self.backbone = backbone
        self.seed = seed
        self.real: tuple[str, ...] = tuple(backbone.layers)
        self.noise: tuple[str, ...] = tuple(f"noise_{k}" for k in range(count))
        if taken := set(self.real) & set(self.noise):
            raise InputError(
                f"backbone: {backbone.name} has a layer {min(taken)!r} already; is it noisy twice?"
            )

    @property
    def name(self) -> str:
        """The network's name and how much noise was added."""
        return f"{self.backbone.name} + {len(self.noise)} of noise"

    @property
    def layers(self) -> tuple[str, ...]:
        """The network's layers, and then those of noise."""
        return self.real + self.noise

    @property
    def fingerprint(self) -> str:
        """A hash of the network, the seed and the number of layers of noise."""
        return fingerprint(
            backbone=self.backbone.fingerprint, noise=len(self.noise), seed=self.seed
        )

    def extract(self, image: np.ndarray) -> list[FeatureMap]:
        """Return the maps of an image of shape (h, w, 3) in [0, 1], real ones first."""
        return self._with_noise(self.backbone.extract(image), image)

    def extract_named(self, name: str, image: np.ndarray) -> list[FeatureMap]:
        """Return the maps of an image that the network may know by name."""
        return self._with_noise(extract_named(self.backbone, name, image), image)

    def _with_noise(self, maps: list[FeatureMap], image: np.ndarray) -> list[FeatureMap]:
        rng = np.random.default_rng([self.seed, int(image_key(image), 16)])
        found = list(maps)
        for k, name in enumerate(self.noise):
            like = maps[(2 * k + 1) * len(maps) // (2 * len(self.noise))]
            values = rng.standard_normal(like.values.shape, dtype=np.float32)
            found.append(FeatureMap(name, values, like.stride, like.receptive_field))
        return found

    def class_maps(self, image: np.ndarray, classes: int = 1) -> np.ndarray:
        """Return the network's class activation maps, shape (classes, h, w)."""
        if not isinstance(self.backbone, Classifying):
            raise refuse_classes(self.name)
        return self.backbone.class_maps(image, classes)
