"""Feature cache, on disk and in memory: a network sees every photograph once."""

from __future__ import annotations

import os
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from frot._base.arrays import Home
from frot._base.errors import InputError, require
from frot._base.files import make_folder, replacing
from frot._base.fingerprint import fingerprint
from frot.correspondence._device import working_home
from frot.correspondence._features import Backbone, FeatureMap, extract_named, knows_names
from frot.correspondence._photo import Photo, read_photo
from frot.correspondence.backbones.wrappers import Wrapper, image_key
from frot.correspondence.layer_costs import all_finite
from frot.correspondence.layers import PhotoFeatures

_OURS = re.compile(r"[0-9a-f]{64}\.npz")


@dataclass(frozen=True)
class FeatureCache:
    """A folder of named arrays that never grows beyond its size.

    Files are complete or not there, a damaged one counts as absent, and several processes may use
    one folder. When it is full, what was not used for longest goes. Files of others in the folder
    are left alone.

    Parameters
    ----------
    folder : path
        Made where it is not there.
    max_bytes : int
        The most that the files take together.

    Examples
    --------
    >>> import tempfile
    >>> cache = FeatureCache(tempfile.mkdtemp(), max_bytes=10**6)
    >>> cache.put("0" * 64, {"a": np.arange(3)})
    True
    >>> cache.get("0" * 64)["a"].tolist()
    [0, 1, 2]
    >>> cache.get("1" * 64) is None
    True
    """

    folder: str | os.PathLike[str]
    max_bytes: int = 4 * 10**9

    def __post_init__(self) -> None:
        if not isinstance(self.folder, str | os.PathLike):
            raise InputError(
                f"cache: is {self.folder!r}; give the path of a folder, or a FeatureCache"
            )
        if self.max_bytes < 1:
            raise InputError(f"max_bytes is {self.max_bytes}; give a positive number of bytes")
        make_folder(self.folder)

    def get(self, key: str) -> dict[str, np.ndarray] | None:
        """Return what was put in under a key of 64 hexadecimal digits, or None."""
        path = self._path(key)
        try:
            # NumPy leaves a file that it cannot make out open; this one is closed in any case.
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            os.utime(path)
        except MemoryError:
            raise
        except Exception:
            # Absent, removed by another process meanwhile, or damaged, which makes the decoders of
            # zip and NumPy raise almost anything.
            return None
        return arrays

    def put(self, key: str, arrays: dict[str, np.ndarray]) -> bool:
        """Store arrays, and say whether there was room."""
        path = self._path(key)
        if sum(array.nbytes for array in arrays.values()) > self.max_bytes:
            return False
        try:
            with replacing(path) as draft:
                np.savez(draft, **arrays)  # pyright: ignore[reportArgumentType]
        except (OSError, InputError):
            # A full disk must not end the work that is being cached.
            return False
        self._trim(keep=path)
        return path.exists()

    @property
    def size(self) -> int:
        """Bytes that the files take together."""
        return sum(size for _, size, _ in self._files())

    def _path(self, key: str) -> Path:
        path = Path(self.folder) / f"{key}.npz"
        if not _OURS.fullmatch(path.name):
            raise InputError(f"key is {key!r}; give 64 hexadecimal digits, as fingerprint does")
        return path

    def _trim(self, keep: Path) -> None:
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total <= self.max_bytes:
                return
            if path != keep:
                path.unlink(missing_ok=True)
                total -= size
        if total > self.max_bytes:
            keep.unlink(missing_ok=True)

    def _files(self) -> list[tuple[float, int, Path]]:
        """Return when each file was last used, its size and its path."""
        found = []
        for path in Path(self.folder).iterdir():
            # What `replacing` calls files that are not complete.
            draft = path.name.startswith(".frot-")
            if not draft and not _OURS.fullmatch(path.name):
                continue
            try:
                state = path.stat()
                if draft and time.time() - state.st_mtime > 3600.0:
                    # Whoever was writing it was killed.
                    path.unlink(missing_ok=True)
                elif not draft:
                    found.append((state.st_mtime, state.st_size, path))
            except FileNotFoundError:
                continue
        return found


class CachedBackbone(Wrapper):
    """A backbone that looks into a cache before it works.

    Maps are in half precision in the cache, and are rounded so before they are stored, too: what
    comes out does not depend on what was there before.

    Parameters
    ----------
    backbone : Backbone
        The one that works.
    cache : FeatureCache
        Keyed by the pixels of the image and the fingerprint of the backbone.

    Examples
    --------
    >>> import tempfile
    >>> from frot.correspondence.backbones.wrappers import ArrayBackbone
    >>> image = np.zeros((64, 96, 3), dtype="float32")
    >>> arrays = ArrayBackbone({image_key(image): {"patches": np.ones((5, 4, 6))}})
    >>> backbone = CachedBackbone(arrays, FeatureCache(tempfile.mkdtemp()))
    >>> [one.name for one in backbone.extract(image)], backbone.cache.size > 0
    (['patches'], True)
    """

    def __init__(self, backbone: Backbone, cache: FeatureCache) -> None:
        super().__init__(backbone, backbone.name, tuple(backbone.layers))
        self.cache = cache

    @property
    def fingerprint(self) -> str:
        """A hash of the backbone and the precision."""
        return fingerprint(backbone=self.backbone.fingerprint, precision="half")

    def extract(self, image: np.ndarray) -> list[FeatureMap]:
        """Return one map per layer for an image of shape (h, w, 3) in [0, 1]."""
        return self.extract_named(None, image)

    def extract_named(self, name: str | None, image: np.ndarray) -> list[FeatureMap]:
        """Return the maps of an image that the backbone may know by name."""
        backbone = self.backbone
        if name is None or not knows_names(backbone):
            about, work = {}, partial(backbone.extract, image)
        else:
            about, work = {"name": name}, partial(extract_named, backbone, name, image)
        return _unpack(self._remembered(lambda: _pack(work()), image, **about))

    def class_maps(self, image: np.ndarray, classes: int = 1) -> np.ndarray:
        """Return class activation maps of the most probable classes, shape (classes, h, w)."""
        work = partial(self._classifier.class_maps, image, classes)
        return self._remembered(
            lambda: {"maps": np.asarray(work(), dtype=np.float32)}, image, classes=int(classes)
        )["maps"]

    def _remembered(
        self, work: Callable[[], dict[str, np.ndarray]], image: np.ndarray, **about: Any
    ) -> dict[str, np.ndarray]:
        backbone = self.backbone.fingerprint
        key = fingerprint(backbone=backbone, image=image_key(image), **about)
        known = self.cache.get(key)
        if known is not None and _is_complete(known):
            return known
        made = work()
        self.cache.put(key, made)
        return made


def halving_power(largest: float) -> int:
    """Return the power of two to divide by, so that this comes to lie near half precision's top."""
    return int(np.frexp(largest)[1]) - 15 if largest > 0 else 0


def halved(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Return values in half precision and the power of two that they were divided by.

    The largest value comes to lie near the top of what half precision can hold, so that nothing
    overflows, and small values keep their eleven bits.

    Examples
    --------
    >>> half, power = halved(np.array([2.0**20, 1.0], dtype="float32"))
    >>> (half.astype("float32") * 2.0**power).tolist()
    [1048576.0, 1.0]
    """
    power = halving_power(float(np.abs(values).max(initial=0.0)))
    return np.ldexp(values, -power).astype(np.float16), power


def _single(values: np.ndarray, power: int) -> np.ndarray:
    """Return values of half precision times a power of two."""
    return np.ldexp(values.astype(np.float32), power)


def _pack(maps: list[FeatureMap]) -> dict[str, np.ndarray]:
    arrays: dict[str, Any] = {"names": np.array([one.name for one in maps])}
    # Strides, what cells see, and where the first one looks: not a number where that is not known.
    arrays["geometry"] = np.array(
        [[*one.grid.strides, one.receptive_field, *(one.start or (np.nan, np.nan))] for one in maps]
    )
    powers = []
    for place, one in enumerate(maps):
        arrays[f"map_{place}"], power = halved(np.asarray(one.values, dtype=np.float32))
        powers.append(power)
    arrays["powers"] = np.array(powers)
    return arrays


def _is_complete(arrays: dict[str, np.ndarray]) -> bool:
    """Whether arrays are class activation maps, or all that `_pack` makes of its maps."""
    names = range(len(arrays.get("names", ())))
    wanted = {"names", "geometry", "powers", *(f"map_{place}" for place in names)}
    if "maps" in arrays:
        return True
    return wanted <= set(arrays) and arrays["geometry"].shape[1:] == (5,)


def _unpack(arrays: dict[str, np.ndarray]) -> list[FeatureMap]:
    maps = []
    for place, name in enumerate(arrays["names"]):
        values = _single(arrays[f"map_{place}"], int(arrays["powers"][place]))
        down, across, field, y, x = arrays["geometry"][place].tolist()
        columns = None if across == down else across
        start = None if np.isnan(y) else (y, x)
        maps.append(FeatureMap(str(name), values, down, field, column_stride=columns, start=start))
    return maps


_NOTHING = Photo(np.zeros((0, 0, 3), dtype=np.float32), "")


class FeatureMemory:
    """The features of the photographs that were seen last, without their pixels.

    Threads may share it.
    They are kept in half precision; on a device, where time is dearer than room, rounded to it.
    What comes out is always what was kept, so that it does not depend on whether a photograph had
    been seen before.

    Parameters
    ----------
    device : str or torch device, optional
        Where photographs are matched.
    max_bytes : int, optional
        By default 500 MB, of twenty photographs of a ResNet-101's at a side of 300, and 4 GB on a
        device, where the features of a whole data set stay.

    Examples
    --------
    >>> from frot.correspondence._features import FeatureMap
    >>> memory = FeatureMemory()
    >>> maps = (FeatureMap("stem", np.ones((4, 6, 8), dtype="float32"), 4, 11),)
    >>> seen = PhotoFeatures(_NOTHING, (24, 32), 0.5, maps, None)
    >>> memory.get("key", _NOTHING, lambda: seen).maps[0].values.dtype, memory.size
    (dtype('float32'), 384)
    """

    def __init__(self, device: Any = None, max_bytes: int | None = None) -> None:
        home = working_home(device)
        self._home = None if home.on_host else home
        default = 500_000_000 if home.on_host else 4_000_000_000
        self.max_bytes = default if max_bytes is None else max_bytes
        # With each photograph what its layers have to be multiplied with.
        self._kept: OrderedDict[str, tuple[PhotoFeatures, tuple[int, ...]]] = OrderedDict()
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        # Locks cannot be sent to another process, which makes its own features.
        return {**self.__dict__, "_lock": None, "_kept": OrderedDict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())

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
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
        if known is None:
            known = _packed(work(), self._home)
            with self._lock:
                self._kept[key] = known
                while self.size > self.max_bytes:
                    self._kept.popitem(last=False)
        kept, powers = known
        maps = kept.maps
        if self._home is None:
            both = zip(maps, powers, strict=True)
            maps = tuple(replace(one, values=_single(one.values, power)) for one, power in both)
        return replace(kept, photo=photo, maps=maps)

    def only(self, layers: Container[str]) -> FeatureMemory:
        """Return a memory with some of the layers of everything in this one."""
        other = FeatureMemory(max_bytes=self.max_bytes)
        other._home = self._home
        with self._lock:
            mine = list(self._kept.items())
        for key, (seen, powers) in mine:
            both = zip(seen.maps, powers, strict=True)
            chosen = [(one, power) for one, power in both if one.name in layers]
            maps = tuple(one for one, _ in chosen)
            other._kept[key] = replace(seen, maps=maps), tuple(power for _, power in chosen)
        return other


class PhotoMemory:
    """The photographs that were read last from files; threads may share it.

    A file that has changed, by its size or time, is read again.
    """

    def __init__(self, max_bytes: int = 400_000_000) -> None:
        self.max_bytes = max_bytes
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
            while sum(one.pixels.nbytes for one in self._kept.values()) > self.max_bytes:
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


def _size(seen: PhotoFeatures) -> int:
    activation = 0 if seen.activation is None else seen.activation.nbytes
    return activation + sum(one.values.nbytes for one in seen.maps)
