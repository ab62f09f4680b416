"""Features that were made elsewhere, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from frot._base.errors import InputError
from frot._base.fingerprint import fingerprint
from frot.correspondence._features import FeatureMap
from frot.correspondence.backbones._preprocess import check_image

__all__ = ["ArrayBackbone", "image_key"]


def image_key(image: np.ndarray) -> str:
    """Return 64 hexadecimal digits that stand for an image of shape (h, w, 3) in [0, 1].

    Examples
    --------
    >>> image_key(np.zeros((40, 40, 3))) == image_key(np.zeros((40, 40, 3), dtype="float32"))
    True
    """
    return fingerprint(image=check_image(image))


class ArrayBackbone:
    """Features of known images, from whatever made them.

    Parameters
    ----------
    features : mapping of str
        For each image its maps: a sequence of FeatureMap, or a mapping of layers to arrays of
        shape (channels, h, w), whose stride is then the height of the image over h. An image goes
        by the name of its photograph, or by the `image_key` of its pixels. Every image has the
        same layers with the same channels.
    name : str
        For tables and pictures.

    Examples
    --------
    >>> image = np.zeros((64, 96, 3), dtype="float32")
    >>> backbone = ArrayBackbone({image_key(image): {"patches": np.ones((5, 4, 6))}})
    >>> [(one.name, one.stride) for one in backbone.extract(image)]
    [('patches', 16.0)]
    """

    def __init__(
        self,
        features: Mapping[str, Sequence[FeatureMap] | Mapping[str, np.ndarray]],
        name: str = "arrays",
    ) -> None:
        if not features:
            raise InputError("features is empty; give the maps of at least one image")
        self.name = name
        self._maps = {str(key): _maps(str(key), value) for key, value in features.items()}
        first = next(iter(self._maps))
        kinds = {key: [(n, v.shape[0]) for n, v, _, _ in maps] for key, maps in self._maps.items()}
        for key, kind in kinds.items():
            if kind != kinds[first]:
                raise InputError(
                    f"features of {key} have other layers or channels than those of {first}"
                )
        self.layers: tuple[str, ...] = tuple(layer for layer, _ in kinds[first])

    @property
    def fingerprint(self) -> str:
        """A hash of all features."""
        return fingerprint(maps=self._maps)

    def extract(self, image: np.ndarray) -> list[FeatureMap]:
        """Return the maps of an image that was put in by its `image_key`."""
        return self.extract_named(image_key(image), image)

    def extract_named(self, name: str, image: np.ndarray) -> list[FeatureMap]:
        """Return the maps that were put in under a name, for an image of shape (h, w, 3)."""
        known = name if name in self._maps else image_key(image)
        if known not in self._maps:
            raise InputError(
                f"features has no maps of {name}; it has those of {', '.join(list(self._maps)[:3])}"
            )
        maps = []
        for layer, values, stride, field in self._maps[known]:
            stride = image.shape[0] / values.shape[1] if stride is None else stride
            maps.append(FeatureMap(layer, values, stride, stride if field is None else field))
        return maps


def _maps(
    key: str, given: Sequence[FeatureMap] | Mapping[str, np.ndarray]
) -> list[tuple[str, np.ndarray, float | None, float | None]]:
    if isinstance(given, Mapping):
        found = [(str(layer), values, None, None) for layer, values in given.items()]
    elif all(isinstance(one, FeatureMap) for one in given):
        found = [(one.name, one.values, one.stride, one.receptive_field) for one in given]
    else:
        raise InputError(f"features of {key} are no maps; give FeatureMap or arrays by layer")
    if not found:
        raise InputError(f"features of {key} are empty; give at least one map")
    checked = []
    for layer, values, stride, field in found:
        values = np.asarray(values)
        if values.ndim != 3 or values.size == 0 or values.dtype.kind != "f":
            raise InputError(
                f"features of {key}, layer {layer}, have shape {values.shape} and type "
                f"{values.dtype}; give floats of shape (channels, h, w)"
            )
        if not np.isfinite(values).all():
            raise InputError(f"features of {key}, layer {layer}, hold values that are not finite")
        checked.append((layer, np.ascontiguousarray(values, dtype=np.float32), stride, field))
    return checked
