"""A set of pairs of photographs with points that belong together: in memory, and on disk.

On disk a set is found by a `Source`, read, and compared with what was published.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from frot._base.errors import InputError, require
from frot._base.fingerprint import fingerprint
from frot._base.names import quote_some
from frot._base.text import read_rows as csv_rows
from frot._base.validate import check_count
from frot.datasets.catalogue import folders


@dataclass(frozen=True, eq=False)
class Pair:
    """One pair of a data set.

    Parameters
    ----------
    id : str
        A name that is unique in the data set.
    source, target : Path
        The photographs.
    source_points, target_points : arrays of shape (k, 2)
        Points that belong together: x and y in pixels of the photographs as they are on disk,
        counted from zero.
    category : str
        Class of the object.
    length : float
        What a share is taken of in the score: the size of the object in the target, in pixels.
    source_mask, target_mask : arrays of shape (h, w), optional
        Where the object is, where that is what is scored.
    tags : dict
        What else the data set says of the pair: kinds of variation, difficulty.
    """

    id: str
    source: Path
    target: Path
    source_points: np.ndarray
    target_points: np.ndarray
    category: str
    length: float
    source_mask: np.ndarray | None = None
    target_mask: np.ndarray | None = None
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PairSet:
    """The pairs of a data set.

    Parameters
    ----------
    name : str
        The data set, with the split where it has some.
    pairs : tuple of Pair
        In the order of the data set.
    skipped : tuple of str
        One sentence for each annotation that could not be used.
    protocol : str
        What counts as a hit, in words.
    score : {"points", "masks"}
        Whether points are compared with points, or the outline of the object, transferred and
        filled, with the object in the target.
    notes : tuple of str
        Notes on every score, such as that a class is missing.

    Examples
    --------
    >>> PairSet("none", ())
    PairSet('none': 0 pairs of 0 classes, 0 skipped)
    """

    name: str
    pairs: tuple[Pair, ...]
    skipped: tuple[str, ...] = ()
    protocol: str = ""
    score: Literal["points", "masks"] = "points"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        twice = [id for id, count in Counter(pair.id for pair in self.pairs).items() if count > 1]
        if twice:
            raise InputError(f"pairs: {quote_some(twice)} occur more than once; ids are unique")

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.pairs)

    def __repr__(self) -> str:
        return (
            f"PairSet({self.name!r}: {len(self)} pairs of {len(self.categories)} classes, "
            f"{len(self.skipped)} skipped)"
        )

    @property
    def categories(self) -> tuple[str, ...]:
        """Classes, in the order in which they first occur."""
        return tuple(dict.fromkeys(pair.category for pair in self.pairs))

    @property
    def counts(self) -> dict[str, int]:
        """Pairs of each class."""
        return dict(Counter(pair.category for pair in self.pairs))

    @property
    def fingerprint(self) -> str:
        """A hash of the pairs, their points and the sizes of the photographs' files."""
        photos = dict.fromkeys(path for pair in self.pairs for path in (pair.source, pair.target))
        return fingerprint(
            kind="pairs 1",
            pairs=[
                (p.id, p.category, p.source_points, p.target_points, float(p.length))
                for p in self.pairs
            ],
            # Not where they lie: a set that was moved is the same set.
            photos=[(path.name, path.stat().st_size) for path in photos],
            score=self.score,
        )

    def only(self, categories: str | Iterable[str]) -> PairSet:
        """Return the pairs of some classes.

        Raises
        ------
        InputError
            If there is no such class.
        """
        wanted = [categories] if isinstance(categories, str) else list(categories)
        if unknown := [name for name in wanted if name not in self.categories]:
            known = quote_some(self.categories, limit=30)
            raise InputError(f"categories: no {quote_some(unknown)} in {self.name}; it has {known}")
        return replace(self, pairs=tuple(p for p in self.pairs if p.category in wanted))

    def first(self, limit: int | None) -> PairSet:
        """Return `limit` pairs spread evenly over the set, or all of them for None.

        Pairs come class by class, so that a few should be spread over all classes.
        """
        if limit is not None:
            limit = check_count(limit, "limit", least=0)
        if limit is None or limit >= len(self):
            return self
        if limit < 1:
            raise InputError(f"limit={limit} leaves no pair; give 1 or more")
        chosen = [i * len(self) // limit for i in range(limit)]
        return replace(self, pairs=tuple(self.pairs[i] for i in chosen))


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
            return (w, h) if _is_sideways(opened, path) else (h, w)
    # What Pillow raises of damaged files, and of damaged EXIF data.
    except (OSError, image.DecompressionBombError, SyntaxError, ValueError, EOFError):
        raise BrokenAnnotationError(f"{path} is not a photograph that can be read") from None


def _is_sideways(opened: Any, path: Path) -> bool:
    """Return whether an opened photograph has to be turned by a quarter to be upright."""
    # The size of a TIFF is what it is upright already.
    if opened.format == "TIFF":
        return False
    # A PNG that says nothing up to its pixels is decoded by Pillow in search of what comes behind.
    if opened.format == "PNG" and b"eXIf" not in path.read_bytes():
        exif = require("PIL.Image", "correspondence").Image.getexif(opened)
    else:
        exif = opened.getexif()
    # EXIF's number of the orientation; these stand for a quarter turn, mirrored or not.
    return exif.get(0x0112) in (5, 6, 7, 8)


def check_points(points: Any, photo: Path, what: str, slack: float = 1.0) -> np.ndarray:
    """Return points of shape (k, 2) that lie in the photograph, or refuse them.

    Points beyond a border by no more than `slack` pixels are put on it: annotators click on
    borders, and MATLAB counts from one.
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


def read_rows(path: Path) -> list[tuple[str, list[str]]]:
    """Return the rows of a list of pairs below its heading, each with what to call it."""
    if not path.is_file():
        return []
    rows = list(csv_rows(path, ",", errors="replace"))[1:]
    return [(f"line {n} of {path.name}", row) for n, row in rows if any(map(str.strip, row))]


def collect(
    tasks: Iterable[tuple[str, Callable[[], Pair]]],
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


def shortfall(
    pairs: Sequence[Pair], classes: Iterable[str], published: int, named: int = 5
) -> tuple[str, ...]:
    """Return a sentence if published pairs or whole classes are missing, and nothing otherwise.

    Examples
    --------
    >>> shortfall((), ["cat", "dog"], 12)[0]
    'incomplete: 0 of the 12 published pairs can be used, none of cat, dog'
    """
    there = {pair.category for pair in pairs}
    absent = [name for name in dict.fromkeys(classes) if name not in there]
    if not absent and len(pairs) >= published:
        return ()
    more = f" and {len(absent) - named} more classes" if len(absent) > named else ""
    none = f", none of {', '.join(absent[:named])}{more}" if absent else ""
    return (f"incomplete: {len(pairs)} of the {published} published pairs can be used{none}",)


class Source:
    """How a data set is found, checked and read; each declares its layout, and reads a pair.

    Attributes
    ----------
    name : str
        As in tables.
    folders : tuple of str
        Folders it may be unpacked as, inside a folder of data.
    marks : tuple of str
        A folder that holds one of them is it, be it incomplete.
    needs : tuple of str
        What the folder has to hold, for a ``{split}``; first of all the list of pairs.
    expected : str
        The same in words.
    address : str
        Where the public has it.
    counts : dict
        Published pairs of each split.
    protocol : str
        What counts as a hit.
    score : {"points", "masks"}
    left_out : str, optional
        Why pairs are skipped that were published to be.
    """

    name: str
    folders: tuple[str, ...]
    marks: tuple[str, ...]
    needs: tuple[str, ...]
    expected: str
    address: str
    counts: Mapping[str, int]
    protocol: str
    score: Literal["points", "masks"] = "points"
    left_out: str | None = None

    def pair(self, folder: Path, split: str, row: Any) -> Pair:
        """Read the pair of a row, or raise `BrokenAnnotationError`."""
        raise NotImplementedError

    def classes(self, folder: Path, split: str) -> Iterable[str]:
        """Return the classes of which there should be pairs."""
        raise NotImplementedError

    def is_it(self, folder: Path) -> bool:
        """Return whether a folder looks like the data set, be it incomplete."""
        return any((folder / mark).exists() for mark in self.marks)

    def layout(self, folder: Path) -> Source:
        """Return the source of the layout that a folder has, where there are several."""
        return self

    def parts(self, folder: Path, split: str) -> list[Path]:
        """Return what the folder has to hold."""
        return [folder / part.format(split=split) for part in self.needs]

    def rows(self, folder: Path, split: str) -> Iterable[tuple[str, Any]]:
        """Return the list of pairs: what to call each in a sentence, and what is said of it."""
        return read_rows(self.parts(folder, split)[0])

    def check(self, folder: Path, split: str, given: bool) -> None:
        """Refuse a folder, `given` by the user or found, that lacks a part, and say which."""
        if absent := [str(part) for part in self.parts(folder, split) if not part.exists()]:
            raise InputError(
                f"{self.name} in {folder} is incomplete: {', '.join(absent)} not there; "
                f"get it from {self.address}"
            )

    def read(self, folder: Path, split: str) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
        """Return the pairs that can be used, and a sentence for each annotation that cannot."""
        rows = self.rows(folder, split)
        return collect((name, partial(self.pair, folder, split, row)) for name, row in rows)

    def load(self, root: str | os.PathLike[str] | None, split: str) -> PairSet:
        """Load the pairs of a split; see `load_pairs`."""
        self.check_split(split)
        folder = self.locate(root)
        return self.layout(folder)._loaded(folder, split, root is not None)

    def _loaded(self, folder: Path, split: str, given: bool) -> PairSet:
        self.check(folder, split, given)
        pairs, skipped = self.read(folder, split)
        published = self.counts[split] - sum(map(self._is_left_out, skipped))
        notes = shortfall(pairs, self.classes(folder, split), published)
        name = f"{self.name} {split}" if len(self.counts) > 1 else self.name
        return PairSet(name, pairs, skipped, self.protocol, self.score, notes)

    def _is_left_out(self, skipped: str) -> bool:
        return self.left_out is not None and self.left_out in skipped

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
