"""What a matcher remembers: photographs it read, and their features, up to so many bytes."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np

from frot._base.arrays import Home
from frot._base.errors import require
from frot.correspondence._device import working_home
from frot.correspondence._features import FeatureMap
from frot.correspondence._layer_costs import all_finite
from frot.correspondence._photo import Photo, read_photo
from frot.correspondence.backbones.cache import halved, halving_power
from frot.correspondence.layers import PhotoFeatures

__all__ = ["FeatureMemory", "PhotoMemory"]

# Data sets come in runs of the same photographs; twenty of a ResNet-101's at a side of 300.
MAX_BYTES = 500_000_000
# On a device the features of a data set's photographs stay.
MAX_DEVICE_BYTES = 4_000_000_000
# Photographs of a data set, read again for every pair that they are in.
MAX_PHOTO_BYTES = 400_000_000
_NOTHING = Photo(np.zeros((0, 0, 3), dtype=np.float32), "")


class FeatureMemory:
    """The features of the photographs that were seen last, without their pixels.

    They are kept in half precision; on a device, where time is dearer than room, rounded to it.
    What comes out is always what was kept, so that it does not depend on whether a photograph had
    been seen before.

    Parameters
    ----------
    device : str or torch device, optional
        Where photographs are matched.

    Examples
    --------
    >>> from frot.correspondence._features import FeatureMap
    >>> memory = FeatureMemory()
    >>> maps = (FeatureMap("stem", np.ones((4, 6, 8), dtype="float32"), 4, 11),)
    >>> seen = PhotoFeatures(_NOTHING, (24, 32), 0.5, maps, None)
    >>> memory.get("key", _NOTHING, lambda: seen).maps[0].values.dtype, memory.size
    (dtype('float32'), 384)
    """

    def __init__(self, device: Any = None) -> None:
        home = working_home(device)
        self._home = None if home.on_host else home
        # With each photograph what its layers have to be multiplied with.
        self._kept: OrderedDict[str, tuple[PhotoFeatures, tuple[int, ...]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def on_device(self) -> bool:
        """Whether features are kept on a device."""
        return self._home is not None

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
            kept, powers = _packed(work(), self._home)
            self._kept[key] = kept, powers
            while self.size > (MAX_BYTES if self._home is None else MAX_DEVICE_BYTES):
                self._kept.popitem(last=False)
        maps = kept.maps
        if self._home is None:
            both = zip(maps, powers, strict=True)
            maps = tuple(replace(one, values=_single(one.values, power)) for one, power in both)
        return replace(kept, photo=photo, maps=maps)

    def only(self, layers: Container[str]) -> FeatureMemory:
        """Return a memory with some of the layers of everything in this one."""
        other = FeatureMemory()
        other._home = self._home
        for key, (seen, powers) in self._kept.items():
            both = zip(seen.maps, powers, strict=True)
            chosen = [(one, power) for one, power in both if one.name in layers]
            maps = tuple(one for one, _ in chosen)
            other._kept[key] = replace(seen, maps=maps), tuple(power for _, power in chosen)
        return other


class PhotoMemory:
    """The photographs that were read last from files; threads may share it.

    A file that has changed, by its size or time, is read again.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, int], Photo] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[PhotoMemory], tuple[()]]:
        # Locks cannot be sent to another process, which reads its own photographs.
        return PhotoMemory, ()

    def read(self, source: Any) -> Photo:
        """Return a photograph, from memory where its file was read lately."""
        if not isinstance(source, str | os.PathLike):
            return read_photo(source)
        path = os.path.abspath(source)
        try:
            about = os.stat(path)
        except (OSError, ValueError):
            return read_photo(source)
        key = (path, about.st_mtime_ns, about.st_size)
        with self._lock:
            if (known := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return known
        photo = read_photo(source)
        # It is handed out again and again.
        photo.pixels.flags.writeable = False
        with self._lock:
            self._kept[key] = photo
            while sum(one.pixels.nbytes for one in self._kept.values()) > MAX_PHOTO_BYTES:
                self._kept.popitem(last=False)
        return photo


def _packed(seen: PhotoFeatures, home: Home | None) -> tuple[PhotoFeatures, tuple[int, ...]]:
    """Return features in half precision, and what they have to be multiplied with."""
    if home is not None and not any(isinstance(one.values, np.ndarray) for one in seen.maps):
        return replace(seen, photo=_NOTHING, maps=_rounded(seen.maps, home)), (0,) * len(seen.maps)
    maps, powers = [], []
    for one in seen.maps:
        finite = one.finite or all_finite(one.values)
        values, power = halved(np.asarray(one.values, dtype=np.float32))
        if home is not None:
            values = home.xp.asarray(_single(values, power), device=home.device)
        maps.append(replace(one, values=values, finite=finite))
        powers.append(power)
    return replace(seen, photo=_NOTHING, maps=tuple(maps)), tuple(powers)


def _rounded(maps: Sequence[FeatureMap], home: Home) -> tuple[FeatureMap, ...]:
    """Return maps of torch rounded as `halved` does: few launches, and one wait for all of them."""
    # Operations on lists are not among the names that torch exports.
    torch: Any = require("torch", "correspondence")
    given = [torch.as_tensor(one.values, dtype=torch.float32, device=home.device) for one in maps]
    largest = torch.stack(torch._foreach_norm(given, float("inf"))).cpu().numpy()
    scales = [2.0 ** halving_power(float(top)) for top in largest]
    halves = [one.half() for one in torch._foreach_div(given, scales)]
    values = torch._foreach_mul([one.float() for one in halves], scales)
    # The largest is a number if all are.
    both = zip(maps, values, np.isfinite(largest), strict=True)
    return tuple(replace(one, values=value, finite=bool(good)) for one, value, good in both)


def _single(values: np.ndarray, power: int) -> np.ndarray:
    """Return values of half precision times a power of two."""
    return np.ldexp(values.astype(np.float32), power)


def _size(seen: PhotoFeatures) -> int:
    activation = 0 if seen.activation is None else seen.activation.nbytes
    return activation + sum(one.values.nbytes for one in seen.maps)
