"""What a matcher remembers of the photographs that it saw: their features, up to so many bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container
from dataclasses import replace

import numpy as np

from frot.correspondence._features import FeatureMap
from frot.correspondence._photo import Photo
from frot.correspondence.backbones.cache import halved
from frot.correspondence.layers import PhotoFeatures

__all__ = ["FeatureMemory"]

# Data sets come in runs of the same photographs; twenty of a ResNet-101's at a side of 300.
MAX_BYTES = 500_000_000
_NOTHING = Photo(np.zeros((0, 0, 3), dtype=np.float32), "")


class FeatureMemory:
    """The features of the photographs that were seen last, without their pixels.

    They are kept in half precision. What comes out is always what was kept, so that it does not
    depend on whether a photograph had been seen before.

    Examples
    --------
    >>> memory = FeatureMemory()
    >>> maps = (FeatureMap("stem", np.ones((4, 6, 8), dtype="float32"), 4, 11),)
    >>> seen = PhotoFeatures(_NOTHING, (24, 32), 0.5, maps, None)
    >>> memory.get("key", _NOTHING, lambda: seen).maps[0].values.dtype, memory.size
    (dtype('float32'), 384)
    """

    def __init__(self) -> None:
        # With each photograph what its layers have to be multiplied with.
        self._kept: OrderedDict[str, tuple[PhotoFeatures, tuple[int, ...]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """Bytes that the features take."""
        return sum(_size(seen) for seen, _ in self._kept.values())

    def get(self, key: str, photo: Photo, work: Callable[[], PhotoFeatures]) -> PhotoFeatures:
        """Return a photograph's features, which `work` finds if they are not there."""
        if key in self._kept:
            self._kept.move_to_end(key)
            kept, powers = self._kept[key]
        else:
            kept, powers = _packed(work())
            self._kept[key] = kept, powers
            while self.size > MAX_BYTES:
                self._kept.popitem(last=False)
        maps = (
            _with(one, np.ldexp(one.values.astype(np.float32), power))
            for one, power in zip(kept.maps, powers, strict=True)
        )
        return replace(kept, photo=photo, maps=tuple(maps))

    def only(self, layers: Container[str]) -> FeatureMemory:
        """Return a memory with some of the layers of everything in this one."""
        other = FeatureMemory()
        for key, (seen, powers) in self._kept.items():
            both = zip(seen.maps, powers, strict=True)
            chosen = [(one, power) for one, power in both if one.name in layers]
            maps = tuple(one for one, _ in chosen)
            other._kept[key] = replace(seen, maps=maps), tuple(power for _, power in chosen)
        return other


def _packed(seen: PhotoFeatures) -> tuple[PhotoFeatures, tuple[int, ...]]:
    packed = [halved(np.asarray(one.values, dtype=np.float32)) for one in seen.maps]
    maps = tuple(_with(one, values) for one, (values, _) in zip(seen.maps, packed, strict=True))
    return replace(seen, photo=_NOTHING, maps=maps), tuple(power for _, power in packed)


def _with(layer: FeatureMap, values: np.ndarray) -> FeatureMap:
    return FeatureMap(layer.name, values, layer.stride, layer.receptive_field)


def _size(seen: PhotoFeatures) -> int:
    activation = 0 if seen.activation is None else seen.activation.nbytes
    return activation + sum(one.values.nbytes for one in seen.maps)
