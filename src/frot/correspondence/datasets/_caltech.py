"""Caltech-101: outlines of objects, whose transfer is scored by the masks they enclose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np

from frot.correspondence.datasets._source import Source
from frot.correspondence.datasets.annotation import (
    BrokenAnnotationError,
    check_points,
    extent,
    read_rows,
)
from frot.correspondence.datasets.pair_set import Pair

__all__ = ["Caltech"]

LIST = "test_pairs_caltech_with_category.csv"
PHOTOS = "101_ObjectCategories"
OUTLINE = 3


class Caltech(Source):
    """The list has source, target, class, and as comma-separated text x and y of both outlines.

    `Pair.source_points` and `Pair.target_points` are corners of outlines: they do not belong
    together one by one, and need not be equally many.
    """

    name = "Caltech-101"
    folders = ("Caltech-101", "caltech-101", "caltech")
    expected = f"{LIST} and {PHOTOS}/<class>/*.jpg"
    address = (
        "https://data.caltech.edu/records/mzrjq-6wc02 (photographs) and "
        "https://www.di.ens.fr/willow/research/cnngeometric/ (the list of pairs)"
    )
    counts = MappingProxyType({"test": 1515})
    protocol = (
        "Caltech-101: the source's outline is transferred and filled; LT-ACC is the share of the "
        "target's pixels with the right label, IoU that of the object's"
    )
    score = "masks"

    def is_it(self, folder: Path) -> bool:
        """Return whether a folder looks like it, be it incomplete."""
        return (folder / LIST).is_file() or (folder / PHOTOS).is_dir()

    def parts(self, folder: Path, split: str) -> Sequence[str]:
        """The list and the photographs."""
        return (LIST, PHOTOS)

    def absent(self, folder: Path, split: str) -> Iterator[Path]:
        """Yield photographs of the list that are not there."""
        if (folder / LIST).is_file():
            for _, row in read_rows(folder / LIST):
                yield from (photo for photo in _photos(folder, row) if not photo.is_file())

    def tasks(self, folder: Path, split: str) -> Iterator[tuple[str, Callable[[], Pair]]]:
        """One per row of the list."""
        for number, row in read_rows(folder / LIST):
            yield f"line {number} of {LIST}", partial(_read, folder, row)

    def classes(self, folder: Path, split: str) -> Iterable[str]:
        """Those of the list."""
        return (_photos(folder, row)[0].parent.name for _, row in read_rows(folder / LIST))


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
