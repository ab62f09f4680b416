"""What a network sees of one photograph, and of two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frot.correspondence._feature_map import FeatureMap
from frot.correspondence._interpolate import resize
from frot.correspondence._layers import LayerPair
from frot.correspondence._photo import Photo

__all__ = ["Seen", "Sight"]


@dataclass(frozen=True, eq=False)
class Seen:
    """A photograph as the network sees it."""

    photo: Photo
    size: tuple[int, int]
    ratio: float
    maps: tuple[FeatureMap, ...]
    activation: np.ndarray | None

    @property
    def cam(self) -> np.ndarray | None:
        """The activation over the photograph's own pixels."""
        if self.activation is None:
            return None
        return resize(self.activation, *self.photo.size, align_corners=False)


@dataclass(frozen=True, eq=False)
class Sight:
    """Two photographs as the network sees them: what every method starts from.

    Attributes
    ----------
    source, target :
        The photographs with their features.
    layers : LayerPair
        Their layers, cell against cell.
    a, b : arrays of shape (n,) and (m,)
        Weights of the cells.
    """

    source: Seen
    target: Seen
    layers: LayerPair
    a: np.ndarray
    b: np.ndarray
