"""Features on disk, so that a network sees every image once."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.errors import InputError
from frot._base.files import make_folder, replacing
from frot._base.fingerprint import fingerprint
from frot.correspondence._features import Backbone, FeatureMap, extract_named, knows_names
from frot.correspondence.backbones.arrays import image_key
from frot.correspondence.backbones.wrappers import Wrapper

__all__ = ["CachedBackbone", "FeatureCache", "halved", "halving_power"]

_OURS = re.compile(r"[0-9a-f]{64}\.npz")
_DRAFT = ".frot-"  # what `replacing` calls files that are not complete
_DRAFT_AGE = 3600.0


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
            draft = path.name.startswith(_DRAFT)
            if not draft and not _OURS.fullmatch(path.name):
                continue
            try:
                state = path.stat()
                if draft and time.time() - state.st_mtime > _DRAFT_AGE:
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
    >>> from frot.correspondence.backbones.arrays import ArrayBackbone
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
            key = fingerprint(backbone=backbone.fingerprint, image=image_key(image))
            work = partial(backbone.extract, image)
        else:
            key = fingerprint(backbone=backbone.fingerprint, image=image_key(image), name=name)
            work = partial(extract_named, backbone, name, image)
        return _unpack(self._remembered(key, lambda: _pack(work()), _complete))

    def class_maps(self, image: np.ndarray, classes: int = 1) -> np.ndarray:
        """Return class activation maps of the most probable classes, shape (classes, h, w)."""
        classifier = self._classifier
        key = fingerprint(
            backbone=self.backbone.fingerprint, image=image_key(image), classes=int(classes)
        )
        kept = self._remembered(
            key,
            lambda: {"maps": np.asarray(classifier.class_maps(image, classes), dtype=np.float32)},
            lambda arrays: "maps" in arrays,
        )
        return kept["maps"]

    def _remembered(
        self,
        key: str,
        work: Callable[[], dict[str, np.ndarray]],
        complete: Callable[[dict[str, np.ndarray]], bool],
    ) -> dict[str, np.ndarray]:
        known = self.cache.get(key)
        if known is not None and complete(known):
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


def _pack(maps: list[FeatureMap]) -> dict[str, np.ndarray]:
    arrays: dict[str, Any] = {"names": np.array([one.name for one in maps])}
    arrays["geometry"] = np.array([[one.stride, one.receptive_field] for one in maps], dtype=float)
    powers = []
    for place, one in enumerate(maps):
        arrays[f"map_{place}"], power = halved(np.asarray(one.values, dtype=np.float32))
        powers.append(power)
    arrays["powers"] = np.array(powers)
    return arrays


def _complete(arrays: dict[str, np.ndarray]) -> bool:
    return {"names", "geometry", "powers"} <= set(arrays) and all(
        f"map_{place}" in arrays for place in range(len(arrays["names"]))
    )


def _unpack(arrays: dict[str, np.ndarray]) -> list[FeatureMap]:
    return [
        FeatureMap(
            str(name),
            np.ldexp(arrays[f"map_{place}"].astype(np.float32), int(arrays["powers"][place])),
            float(arrays["geometry"][place][0]),
            float(arrays["geometry"][place][1]),
        )
        for place, name in enumerate(arrays["names"])
    ]
