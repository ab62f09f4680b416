"""A data set of pairs on disk: where it lies, whether it is whole, and what annotations must be."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from frot._base.errors import InputError, require
from frot._base.names import quote_some
from frot._base.tables import read_cells, read_text
from frot.correspondence.datasets.pair_set import Pair, PairSet
from frot.datasets.catalogue import folders

__all__ = [
    "BrokenAnnotationError",
    "Source",
    "check_points",
    "collect",
    "extent",
    "listed",
    "longer_side",
    "matched_points",
    "missing_from",
    "photo_size",
    "read_mat",
]

# Annotators click on borders, and MATLAB counts from one.
SLACK = 1.0
# EXIF's number of it, and the values that stand for a quarter turn, mirrored or not.
ORIENTATION, LYING = 0x0112, (5, 6, 7, 8)


class BrokenAnnotationError(Exception):
    """An annotation that cannot be used; the message says why, without the pair's name."""


def photo_size(path: Path) -> tuple[int, int]:
    """Return height and width of a photograph turned upright, read off its header and EXIF data.

    Its pixels are not decoded.

    Raises
    ------
    BrokenAnnotationError
        If there is none, or it cannot be read.
    """
    try:
        known = path.stat()
    except OSError:
        raise BrokenAnnotationError(f"the photograph {path} is missing") from None
    return _size(path, known.st_mtime_ns, known.st_size)


# A photograph is in many pairs; one that was replaced is another.
@lru_cache(maxsize=4096)
def _size(path: Path, changed: int, size: int) -> tuple[int, int]:
    image: Any = require("PIL.Image", "correspondence")
    try:
        with image.open(path) as opened:
            w, h = opened.size
            return (w, h) if _lies(opened, path) else (h, w)
    # What Pillow raises of damaged files, and of damaged EXIF data.
    except (OSError, image.DecompressionBombError, SyntaxError, ValueError, EOFError):
        raise BrokenAnnotationError(f"{path} is not a photograph that can be read") from None


def _lies(opened: Any, path: Path) -> bool:
    """Return whether an opened photograph has to be turned by a quarter to be upright."""
    # The size of a TIFF is what it is upright already.
    if opened.format == "TIFF":
        return False
    # A PNG that says nothing up to its pixels is decoded by Pillow in search of what comes behind.
    if opened.format == "PNG" and b"eXIf" not in path.read_bytes():
        exif = require("PIL.Image", "correspondence").Image.getexif(opened)
    else:
        exif = opened.getexif()
    return exif.get(ORIENTATION) in LYING


def check_points(points: Any, photo: Path, what: str, slack: float = SLACK) -> np.ndarray:
    """Return points of shape (k, 2) that lie in the photograph, or refuse them.

    Points beyond a border by no more than `slack` pixels are put on it.
    """
    try:
        points = np.asarray(points, dtype=float)
    except (TypeError, ValueError):
        raise BrokenAnnotationError(f"its {what} points are not numbers") from None
    if points.ndim != 2 or points.shape[1] != 2 or not len(points):
        raise BrokenAnnotationError(f"its {what} points are not pairs of x and y")
    if not np.isfinite(points).all():
        raise BrokenAnnotationError(f"its {what} points are not all finite")
    h, w = photo_size(photo)
    last = np.array([w - 1.0, h - 1.0])
    inside = np.clip(points, 0.0, last)
    if (far := np.abs(points - inside).max()) > slack:
        raise BrokenAnnotationError(
            f"a {what} point is {far:.1f} pixels outside of {photo.name}, {w} x {h}"
        )
    return inside


def matched_points(
    source: Any, target: Any, source_photo: Path, target_photo: Path
) -> tuple[np.ndarray, np.ndarray]:
    """Return checked points of both photographs, as many in one as in the other."""
    first = check_points(source, source_photo, "source")
    second = check_points(target, target_photo, "target")
    if len(first) != len(second):
        raise BrokenAnnotationError(
            f"it has {len(first)} source points and {len(second)} target points"
        )
    return first, second


def extent(points: np.ndarray) -> float:
    """Return the larger of width and height of the points' box.

    Examples
    --------
    >>> extent(np.array([[0.0, 0.0], [3.0, 8.0]]))
    8.0
    """
    length = float((points.max(axis=0) - points.min(axis=0)).max())
    if length <= 0.0:
        raise BrokenAnnotationError("its target points are all one, so that nothing has a size")
    return length


def longer_side(box: Any) -> float:
    """Return the longer side of a box (left, top, right, bottom).

    Examples
    --------
    >>> longer_side([10, 20, 40, 25])
    30.0
    """
    try:
        left, top, right, bottom = (float(side) for side in box)
    except (TypeError, ValueError):
        raise BrokenAnnotationError(f"its box is {box}, not four numbers") from None
    length = max(right - left, bottom - top)
    if not np.isfinite(length) or length <= 0.0:
        raise BrokenAnnotationError(f"its box {box} is empty")
    return length


def read_mat(path: Path, name: str) -> np.ndarray:
    """Return one array of a file of MATLAB's, as floats."""
    from scipy.io import loadmat

    if not path.is_file():
        raise BrokenAnnotationError(f"{path} is missing")
    try:
        content = loadmat(path)
    # SciPy has no error of its own for files that are none.
    except Exception as error:
        raise BrokenAnnotationError(f"{path.name} cannot be read: {error}") from None
    if name not in content:
        raise BrokenAnnotationError(f"{path.name} has no {name}")
    try:
        return np.asarray(content[name], dtype=float)
    except (TypeError, ValueError):
        raise BrokenAnnotationError(f"{name} of {path.name} is not numbers") from None


def listed(path: Path) -> list[tuple[str, list[str]]]:
    """Return the rows of a list of pairs below its heading, each with what to call it."""
    if not path.is_file():
        return []
    rows = list(read_cells(read_text(path, errors="replace"), ",", path))[1:]
    return [(f"line {n} of {path.name}", row) for n, row in rows if any(map(str.strip, row))]


def missing_from(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files that are not there, each once."""
    return (path for path in dict.fromkeys(paths) if not path.is_file())


def collect(
    tasks: Iterable[tuple[str, Callable[[], Pair] | partial[Pair]]],
) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
    """Return the pairs that could be read, and a sentence for each that could not.

    Tasks are what to call an annotation in a sentence, and what reads it.

    Examples
    --------
    >>> def read():
    ...     raise BrokenAnnotationError("it has no points")
    >>> collect([("cat-12", read)])
    ((), ('cat-12 was skipped: it has no points',))
    """
    pairs: dict[str, Pair] = {}
    skipped = []
    for name, read in tasks:
        try:
            pair = read()
            if pair.id in pairs:
                raise BrokenAnnotationError(f"{pair.id} was there before")
            pairs[pair.id] = pair
        except BrokenAnnotationError as broken:
            skipped.append(f"{name} was skipped: {broken}")
    return tuple(pairs.values()), tuple(skipped)


# Classes that are named; `verify_pairs` names everything.
NAMED = 5


def shortfall(pairs: Sequence[Pair], classes: Iterable[str], published: int) -> tuple[str, ...]:
    """Return a sentence if published pairs or whole classes are missing, and nothing otherwise.

    Examples
    --------
    >>> shortfall((), ["cat", "dog"], 12)[0]
    'incomplete: 0 of the 12 published pairs can be used, none of cat, dog; --verify names all ...'
    """
    there = {pair.category for pair in pairs}
    absent = [name for name in dict.fromkeys(classes) if name not in there]
    if not absent and len(pairs) >= published:
        return ()
    more = f" and {len(absent) - NAMED} more classes" if len(absent) > NAMED else ""
    none = f", none of {', '.join(absent[:NAMED])}{more}" if absent else ""
    return (
        f"incomplete: {len(pairs)} of the {published} published pairs can be used{none}; "
        "--verify names all that is missing",
    )


class Source:
    """How a data set is found, checked and read; each has a class that says so of its layout.

    Attributes
    ----------
    name : str
        As in tables.
    folders : tuple of str
        Folders it may be unpacked as, inside a folder of data.
    expected : str
        What its folder holds, in words.
    address : str
        Where the public has it.
    counts : dict
        Published pairs of each split.
    protocol : str
        What counts as a hit.
    score : {"points", "masks"}
    """

    name: str
    folders: tuple[str, ...]
    expected: str
    address: str
    counts: Mapping[str, int]
    protocol: str
    score: Literal["points", "masks"] = "points"

    def is_it(self, folder: Path) -> bool:
        """Return whether a folder looks like it, be it incomplete."""
        raise NotImplementedError

    def parts(self, folder: Path, split: str) -> Sequence[str]:
        """Return what the folder has to hold."""
        raise NotImplementedError

    def rows(self, folder: Path, split: str) -> Iterable[tuple[str, Any]]:
        """Return the list of pairs: what to call each in a sentence, and what is said of it."""
        raise NotImplementedError

    def files(self, folder: Path, split: str, row: Any) -> Iterable[Path]:
        """Return the files that a row of the list asks for."""
        raise NotImplementedError

    def pair(self, folder: Path, split: str, row: Any) -> Pair:
        """Read the pair of a row, or raise `BrokenAnnotationError`."""
        raise NotImplementedError

    def classes(self, folder: Path, split: str) -> Iterable[str]:
        """Return the classes of which there should be pairs."""
        raise NotImplementedError

    def is_listed(self, folder: Path) -> bool:
        """Whether the pairs are in a list, without which, or without a part, none can be read."""
        return True

    def is_meant(self, skipped: str) -> bool:
        """Whether what was skipped was published to be."""
        return False

    def altered(self, folder: Path) -> list[str]:
        """Say if the files are not those of the release, where that can be told."""
        return []

    def check(self, folder: Path, split: str, given: bool) -> None:
        """Refuse a folder, `given` by the user or found, that lacks a part, and say which."""
        parts = [folder / part for part in self.parts(folder, split)]
        if absent := [str(part) for part in parts if not part.exists()]:
            raise InputError(
                f"{self.name} in {folder} is incomplete: {', '.join(absent)} not there; "
                f"get it from {self.address}"
            )

    def absent(self, folder: Path, split: str) -> Iterable[Path]:
        """Yield files that are not there, where lists or other files say that they should be."""
        rows = self.rows(folder, split)
        return missing_from(path for _, row in rows for path in self.files(folder, split, row))

    def read(self, folder: Path, split: str) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
        """Return the pairs that can be used, and a sentence for each annotation that cannot."""
        rows = self.rows(folder, split)
        return collect((name, partial(self.pair, folder, split, row)) for name, row in rows)

    def load(self, root: str | os.PathLike[str] | None, split: str) -> PairSet:
        """Load the pairs of a split; see `load_pairs`."""
        self.check_split(split)
        folder = self.locate(root)
        self.check(folder, split, root is not None)
        pairs, skipped = self.read(folder, split)
        published = self.counts[split] - sum(map(self.is_meant, skipped))
        notes = shortfall(pairs, self.classes(folder, split), published)
        name = f"{self.name} {split}" if len(self.counts) > 1 else self.name
        return PairSet(name, pairs, skipped, self.protocol, self.score, notes)

    def locate(self, root: str | os.PathLike[str] | None) -> Path:
        """Return the folder of the data set: `root`, or a folder of its usual names below.

        Without `root`: below the folder that ``FROT_DATA`` names, beside a checkout, or the cache.

        Raises
        ------
        InputError
            If no folder is it; the message says which were looked at, what it should hold, and
            where to get it.
        """
        places = folders(root)
        for place in places:
            for folder in (place, *(place / name for name in self.folders)):
                if folder.is_dir() and self.is_it(folder):
                    return folder
        if root is not None and not places[0].is_dir():
            raise InputError(
                f"root: {places[0]} is not a folder; give the one that holds {self.name}"
            )
        where = ", ".join(str(place) for place in places)
        fix = "" if root is not None else " and pass root, or set FROT_DATA"
        raise InputError(
            f"{self.name} is not in {where}: its folder holds {self.expected}; "
            f"get it from {self.address}{fix}"
        )

    def check_split(self, split: str) -> None:
        """Refuse a split that the data set does not have."""
        if split not in self.counts:
            known = quote_some(tuple(self.counts))
            raise InputError(f"split={split!r} is not one of {self.name}; give {known}")
