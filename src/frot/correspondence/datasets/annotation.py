"""Annotations: what each must be before a pair is made of it, and what is said of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.cells import read_cells, read_text
from frot._base.errors import require
from frot.correspondence.datasets.pair_set import Pair

__all__ = [
    "BrokenAnnotationError",
    "check_points",
    "collect",
    "extent",
    "longer_side",
    "matched_points",
    "photo_size",
    "read_mat",
    "read_rows",
    "shortfall",
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


def read_rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return the rows of a list of pairs below its heading, with the numbers of their lines."""
    rows = read_cells(read_text(path, errors="replace"), ",", path)[1:]
    return [(number, row) for number, row in rows if any(cell.strip() for cell in row)]


def collect(
    tasks: Iterable[tuple[str, Callable[[], Pair] | partial[Pair]]],
) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
    """Return the pairs that could be read, and a sentence for each that could not.

    Parameters
    ----------
    tasks : iterable of (name, function)
        What to call an annotation in a sentence, and what reads it.

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
    """Return a sentence if pairs or whole classes are missing, and nothing otherwise.

    Parameters
    ----------
    pairs : sequence of Pair
        Those that can be used.
    classes : iterable of str
        Those that there should be.
    published : int
        How many pairs there should be.

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
