"""PF-PASCAL: photographs of PASCAL VOC's 20 classes with points, 299 pairs to test on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from frot.correspondence.datasets._source import Source
from frot.correspondence.datasets.annotation import (
    BrokenAnnotationError,
    matched_points,
    photo_size,
    read_mat,
    read_rows,
)
from frot.correspondence.datasets.pair_set import Pair

__all__ = ["PfPascal"]

CLASSES = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa"),
    *("train", "tvmonitor"),
)
COUNTS = {"trn": 2940, "val": 308, "test": 299}
MIRRORED = "it is a mirrored copy of another pair"


class PfPascal(Source):
    """<split>_pairs.csv has source, target and the number of the class from 1.

    For training also whether the pair is mirrored; mirrored copies are left out and said so.
    Annotations/<class>/<image>.mat has ``kps``, where rows of NaN are points that are not seen.
    MATLAB counts from one, and one is subtracted.
    """

    name = "PF-PASCAL"
    folders = ("PF-PASCAL", "pf-pascal", "PF-dataset-PASCAL")
    expected = "<split>_pairs.csv, Annotations/<class>/*.mat and JPEGImages/*.jpg"
    address = "https://www.di.ens.fr/willow/research/proposalflow/"
    counts = COUNTS
    protocol = "PF-PASCAL: a point is right within t times the longer side of the target photograph"

    def is_it(self, folder: Path) -> bool:
        """Return whether a folder looks like it, be it incomplete."""
        listed = any((folder / f"{split}_pairs.csv").is_file() for split in COUNTS)
        return (listed and not (folder / "PF-dataset-WILLOW").is_dir()) or (
            (folder / "Annotations" / "aeroplane").is_dir() and (folder / "JPEGImages").is_dir()
        )

    def parts(self, folder: Path, split: str) -> Sequence[str]:
        """The list, the annotations, the photographs."""
        return (f"{split}_pairs.csv", "Annotations", "JPEGImages")

    def absent(self, folder: Path, split: str) -> Iterator[Path]:
        """Yield annotations and photographs of the list that are not there."""
        if not (path := folder / f"{split}_pairs.csv").is_file():
            return
        for _, row in read_rows(path):
            if category := _category(row):
                photos, annotations = _files(folder, row, category)
                yield from (path for path in (*annotations, *photos) if not path.is_file())

    def tasks(self, folder: Path, split: str) -> Iterator[tuple[str, Callable[[], Pair]]]:
        """One per row of the list."""
        name = f"{split}_pairs.csv"
        for number, row in read_rows(folder / name):
            yield f"line {number} of {name}", partial(_read, folder, row)

    def classes(self, folder: Path, split: str) -> Iterable[str]:
        """To test on there are pairs of every class; of the others the list alone knows."""
        if split == "test":
            return CLASSES
        return filter(None, (_category(row) for _, row in read_rows(folder / f"{split}_pairs.csv")))

    def is_meant(self, skipped: str) -> bool:
        """Mirrored copies are among the published pairs."""
        return MIRRORED in skipped


def _category(row: list[str]) -> str:
    """The class of a row, or nothing where it has none."""
    try:
        number = int(row[2])
        return CLASSES[number - 1] if number > 0 else ""
    except (ValueError, IndexError):
        return ""


def _files(folder: Path, row: list[str], category: str) -> tuple[list[Path], list[Path]]:
    """Photographs and annotations of a row."""
    photos = [folder / "JPEGImages" / Path(name.strip()).name for name in row[:2]]
    return photos, [folder / "Annotations" / category / f"{p.stem}.mat" for p in photos]


def _read(folder: Path, row: list[str]) -> Pair:
    if len(row) < 3:
        raise BrokenAnnotationError(f"it has {len(row)} columns, not 3 or 4")
    if len(row) > 3 and row[3].strip() not in ("", "0"):
        raise BrokenAnnotationError(MIRRORED)
    category = _category(row)
    if not category:
        raise BrokenAnnotationError(f"its class is {row[2]!r}, not a number from 1 to 20")
    photos, annotations = _files(folder, row, category)
    points = [_points(path) for path in annotations]
    if len(points[0]) != len(points[1]):
        raise BrokenAnnotationError(
            f"it has {len(points[0])} source points and {len(points[1])} target points"
        )
    seen = ~np.isnan(points[0]).any(axis=1) & ~np.isnan(points[1]).any(axis=1)
    if not seen.any():
        raise BrokenAnnotationError("no point is seen in both of its photographs")
    ours, theirs = matched_points(points[0][seen], points[1][seen], *photos)
    length = float(max(photo_size(photos[1])))
    id = f"{category}/{photos[0].stem}-{photos[1].stem}"
    return Pair(id, photos[0], photos[1], ours, theirs, category, length)


def _points(path: Path) -> np.ndarray:
    points = read_mat(path, "kps")
    if points.ndim != 2 or points.shape[1] != 2:
        raise BrokenAnnotationError(f"{path.name} has kps of shape {points.shape}, not (k, 2)")
    return points - 1.0
