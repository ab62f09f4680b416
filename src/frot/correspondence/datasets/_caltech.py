"""Caltech-101: outlines of objects, whose transfer is scored by the masks they enclose."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from frot.correspondence.datasets._locate import Origin, check_parts, check_split, locate
from frot.correspondence.datasets.annotation import (
    BrokenAnnotationError,
    check_points,
    collect,
    extent,
    read_rows,
    shortfall,
)
from frot.correspondence.datasets.pair_set import Pair, PairSet

__all__ = ["COUNTS", "ORIGIN", "absent", "caltech", "is_caltech", "parts"]

LIST = "test_pairs_caltech_with_category.csv"
PHOTOS = "101_ObjectCategories"
COUNTS = {"test": 1515}
ORIGIN = Origin(
    "Caltech-101",
    ("Caltech-101", "caltech-101", "caltech"),
    f"{LIST} and {PHOTOS}/<class>/*.jpg",
    "https://data.caltech.edu/records/mzrjq-6wc02 (photographs) and "
    "https://www.di.ens.fr/willow/research/cnngeometric/ (the list of pairs)",
)
PROTOCOL = (
    "Caltech-101: the source's outline is transferred and filled; LT-ACC is the share of the "
    "target's pixels with the right label, IoU that of the object's"
)
OUTLINE = 3


def caltech(root: str | os.PathLike[str] | None = None, split: str = "test") -> PairSet:
    """Load the 1,515 pairs of Caltech-101.

    The list has source, target, class, and as comma-separated text x and y of both outlines.
    `Pair.source_points` and `Pair.target_points` are corners of outlines: they do not belong
    together one by one, and need not be equally many.

    Parameters
    ----------
    root : path, optional
        The data set's folder, or one above it; as for `load_pairs`.
    split : {"test"}

    Examples
    --------
    >>> import tempfile
    >>> caltech(tempfile.mkdtemp())
    Traceback (most recent call last):
    ...
    frot.InputError: Caltech-101 is not in ...: its folder holds test_pairs_caltech_...
    """
    check_split(split, tuple(COUNTS), ORIGIN.name)
    folder = locate(ORIGIN, root, is_caltech)
    check_parts(folder, parts(folder, split), ORIGIN)
    pairs, skipped = collect(
        (f"line {number} of {LIST}", partial(_read, folder, row))
        for number, row in read_rows(folder / LIST)
    )
    classes = (_photos(folder, row)[0].parent.name for _, row in read_rows(folder / LIST))
    notes = shortfall(pairs, classes, COUNTS[split])
    return PairSet(ORIGIN.name, pairs, skipped, PROTOCOL, "masks", notes)


def is_caltech(folder: Path) -> bool:
    """Return whether a folder looks like it, be it incomplete."""
    return (folder / LIST).is_file() or (folder / PHOTOS).is_dir()


def parts(folder: Path, split: str) -> tuple[str, ...]:
    """Return what the folder has to hold."""
    return (LIST, PHOTOS)


def absent(folder: Path, split: str) -> Iterator[Path]:
    """Yield photographs of the list that are not there."""
    if (folder / LIST).is_file():
        for _, row in read_rows(folder / LIST):
            yield from (photo for photo in _photos(folder, row) if not photo.is_file())


def _photos(folder: Path, row: list[str]) -> list[Path]:
    return [folder.joinpath(PHOTOS, *Path(name.strip()).parts[-2:]) for name in row[:2]]


def _read(folder: Path, row: list[str]) -> Pair:
    if len(row) != 7:
        raise BrokenAnnotationError(f"it has {len(row)} columns, not 7")
    photos = _photos(folder, row)
    outlines = []
    for photo, x, y, what in ((photos[0], *row[3:5], "source"), (photos[1], *row[5:7], "target")):
        xs, ys = _numbers(x), _numbers(y)
        if len(xs) != len(ys) or len(xs) < OUTLINE:
            raise BrokenAnnotationError(f"its {what} outline has {len(xs)} x and {len(ys)} y")
        # An outline that leaves the photograph is cut by it, as the mask is.
        outlines.append(check_points(np.stack([xs, ys], axis=1), photo, what, slack=np.inf))
    length = extent(outlines[1])
    category = photos[0].parent.name
    id = f"{category}/{photos[0].stem}-{photos[1].stem}"
    return Pair(id, photos[0], photos[1], outlines[0], outlines[1], category, length)


def _numbers(text: str) -> np.ndarray:
    try:
        return np.array([float(cell) for cell in text.split(",") if cell.strip()])
    except ValueError:
        raise BrokenAnnotationError("its outline is not of numbers") from None
