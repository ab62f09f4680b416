"""The data sets of pairs that have one list each: SPair-71k, PF-PASCAL, Caltech-101 and birds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from frot._base.errors import InputError
from frot.correspondence.datasets.pair_set import Pair
from frot.correspondence.datasets.source import (
    BrokenAnnotationError,
    Source,
    check_points,
    extent,
    listed,
    longer_side,
    matched_points,
    missing_from,
    photo_size,
    read_mat,
)

__all__ = ["SPAIR_CLASSES", "SPAIR_FLAGS", "Birds", "Caltech", "PfPascal", "SPair"]

PASCAL_CLASSES = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa"),
    *("train", "tvmonitor"),
)
# SPair-71k has 18 of them, here with the names of their columns in the paper's tables.
_SHORT = {
    "aeroplane": "aero",
    "bicycle": "bike",
    "motorbike": "moto",
    "pottedplant": "plant",
    "tvmonitor": "tv",
}
SPAIR_CLASSES = {
    name: _SHORT.get(name, name) for name in PASCAL_CLASSES if name not in ("diningtable", "sofa")
}
# What the data set says of a pair, and what its numbers stand for.
_HARD = {"0": "easy", "1": "medium", "2": "hard"}
_CUT = {"0": "none", "1": "source", "2": "target", "3": "both"}
SPAIR_FLAGS = {
    "viewpoint_variation": _HARD,
    "scale_variation": _HARD,
    "truncation": _CUT,
    "occlusion": _CUT,
}


class SPair(Source):
    """1,800 photographs of 18 classes, 12,234 pairs to test on.

    Layout/large/<split>.txt lists pairs, a line ``id-source-target:class`` each, and
    PairAnnotation/<split>/<line>.json has their points and boxes.
    """

    name = "SPair-71k"
    folders = ("SPair-71k", "spair", "spair-71k")
    expected = (
        "Layout/large/<split>.txt, PairAnnotation/<split>/*.json and JPEGImages/<class>/*.jpg"
    )
    address = "https://cvlab.postech.ac.kr/research/SPair-71k/"
    counts = MappingProxyType({"trn": 53340, "val": 5384, "test": 12234})
    protocol = "SPair-71k: a point is right within t times the longer side of the target's box"

    def is_it(self, folder: Path) -> bool:
        """Return whether a folder looks like it, be it incomplete."""
        return (folder / "Layout").is_dir() or (folder / "PairAnnotation").is_dir()

    def parts(self, folder: Path, split: str) -> Sequence[str]:
        """The list, the annotations, the photographs."""
        return (f"Layout/large/{split}.txt", f"PairAnnotation/{split}", "JPEGImages")

    def rows(self, folder: Path, split: str) -> Iterable[tuple[str, str]]:
        """The lines of the list."""
        path = folder / "Layout" / "large" / f"{split}.txt"
        return [(line, line) for line in path.read_text().split()] if path.is_file() else []

    def files(self, folder: Path, split: str, row: str) -> Iterable[Path]:
        """The annotation and the photographs."""
        try:
            photos, _ = _spair_photos(folder, row)
        except BrokenAnnotationError:
            return ()
        return (_spair_annotation(folder, split, row), *photos)

    def pair(self, folder: Path, split: str, row: str) -> Pair:
        """Read an annotation, and compare it with its photographs."""
        photos, category = _spair_photos(folder, row)
        path = _spair_annotation(folder, split, row)
        if not path.is_file():
            raise BrokenAnnotationError(f"{path} is missing")
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise BrokenAnnotationError(f"it is no JSON: {error}") from None
        if not isinstance(known, dict):
            raise BrokenAnnotationError("it is no JSON object")
        try:
            for photo, side in zip(photos, ("src", "trg"), strict=True):
                (h, w), stated = photo_size(photo), known[f"{side}_imsize"]
                if list(stated[:2]) != [w, h]:
                    raise BrokenAnnotationError(
                        f"{photo.name} is {w} x {h}, and annotated as {stated}"
                    )
            ours, theirs = matched_points(known["src_kps"], known["trg_kps"], *photos)
            if len(known["kps_ids"]) != len(ours):
                raise BrokenAnnotationError(
                    f"it has {len(ours)} points and {len(known['kps_ids'])} names for them"
                )
            length = longer_side(known["trg_bndbox"])
        except KeyError as missing:
            raise BrokenAnnotationError(f"it has no {missing.args[0]}") from None
        except TypeError:
            raise BrokenAnnotationError("its parts are not lists where lists belong") from None
        tags = {flag: str(known[flag]) for flag in SPAIR_FLAGS if flag in known}
        return Pair(row, photos[0], photos[1], ours, theirs, category, length, tags=tags)

    def classes(self, folder: Path, split: str) -> Iterable[str]:
        """All 18."""
        return SPAIR_CLASSES


def _spair_photos(folder: Path, line: str) -> tuple[list[Path], str]:
    stem, _, category = line.partition(":")
    names = stem.split("-")
    if len(names) != 3 or not category:
        raise BrokenAnnotationError("it is no line of the form id-source-target:class")
    return [folder / "JPEGImages" / category / f"{name}.jpg" for name in names[1:]], category


def _spair_annotation(folder: Path, split: str, line: str) -> Path:
    # Archives unpacked where colons cannot be in names have something else instead.
    names = [f"{line.replace(':', mark)}.json" for mark in (":", "_", "-")]
    paths = [folder / "PairAnnotation" / split / name for name in names]
    return next((path for path in paths if path.is_file()), paths[0])


MIRRORED = "it is a mirrored copy of another pair"


class PfPascal(Source):
    """Photographs of PASCAL VOC's 20 classes with points, 299 pairs to test on.

    <split>_pairs.csv has source, target and the number of the class from 1, for training also
    whether the pair is mirrored; mirrored copies are left out and said so.
    Annotations/<class>/<image>.mat has ``kps``, where rows of NaN are points that are not seen.
    MATLAB counts from one, and one is subtracted.
    """

    name = "PF-PASCAL"
    folders = ("PF-PASCAL", "pf-pascal", "PF-dataset-PASCAL")
    expected = "<split>_pairs.csv, Annotations/<class>/*.mat and JPEGImages/*.jpg"
    address = "https://www.di.ens.fr/willow/research/proposalflow/"
    counts = MappingProxyType({"trn": 2940, "val": 308, "test": 299})
    protocol = "PF-PASCAL: a point is right within t times the longer side of the target photograph"

    def is_it(self, folder: Path) -> bool:
        """Return whether a folder looks like it, be it incomplete."""
        listed = any((folder / f"{split}_pairs.csv").is_file() for split in self.counts)
        return (listed and not (folder / "PF-dataset-WILLOW").is_dir()) or (
            (folder / "Annotations" / "aeroplane").is_dir() and (folder / "JPEGImages").is_dir()
        )

    def parts(self, folder: Path, split: str) -> Sequence[str]:
        """The list, the annotations, the photographs."""
        return (f"{split}_pairs.csv", "Annotations", "JPEGImages")

    def rows(self, folder: Path, split: str) -> Iterable[tuple[str, list[str]]]:
        """The rows of the list."""
        return listed(folder / f"{split}_pairs.csv")

    def files(self, folder: Path, split: str, row: list[str]) -> Iterable[Path]:
        """The annotations and the photographs."""
        if not (category := _pascal_class(row)):
            return ()
        photos, annotations = _pascal_files(folder, row, category)
        return (*annotations, *photos)

    def pair(self, folder: Path, split: str, row: list[str]) -> Pair:
        """Read the points that are seen in both photographs."""
        if len(row) < 3:
            raise BrokenAnnotationError(f"it has {len(row)} columns, not 3 or 4")
        if len(row) > 3 and row[3].strip() not in ("", "0"):
            raise BrokenAnnotationError(MIRRORED)
        category = _pascal_class(row)
        if not category:
            raise BrokenAnnotationError(f"its class is {row[2]!r}, not a number from 1 to 20")
        photos, annotations = _pascal_files(folder, row, category)
        one, other = (_pascal_points(path) for path in annotations)
        if len(one) != len(other):
            raise BrokenAnnotationError(
                f"it has {len(one)} source points and {len(other)} target points"
            )
        seen = ~np.isnan(one).any(axis=1) & ~np.isnan(other).any(axis=1)
        if not seen.any():
            raise BrokenAnnotationError("no point is seen in both of its photographs")
        ours, theirs = matched_points(one[seen], other[seen], *photos)
        length = float(max(photo_size(photos[1])))
        id = f"{category}/{photos[0].stem}-{photos[1].stem}"
        return Pair(id, photos[0], photos[1], ours, theirs, category, length)

    def classes(self, folder: Path, split: str) -> Iterable[str]:
        """To test on there are pairs of every class; of the others the list alone knows."""
        if split == "test":
            return PASCAL_CLASSES
        return filter(None, (_pascal_class(row) for _, row in self.rows(folder, split)))

    def is_meant(self, skipped: str) -> bool:
        """Mirrored copies are among the published pairs."""
        return MIRRORED in skipped


def _pascal_class(row: list[str]) -> str:
    """The class of a row, or nothing where it has none."""
    try:
        number = int(row[2])
        return PASCAL_CLASSES[number - 1] if number > 0 else ""
    except (ValueError, IndexError):
        return ""


def _pascal_files(folder: Path, row: list[str], category: str) -> tuple[list[Path], list[Path]]:
    """Photographs and annotations of a row."""
    photos = [folder / "JPEGImages" / Path(name.strip()).name for name in row[:2]]
    return photos, [folder / "Annotations" / category / f"{p.stem}.mat" for p in photos]


def _pascal_points(path: Path) -> np.ndarray:
    points = read_mat(path, "kps")
    if points.ndim != 2 or points.shape[1] != 2:
        raise BrokenAnnotationError(f"{path.name} has kps of shape {points.shape}, not (k, 2)")
    return points - 1.0


CALTECH_LIST = "test_pairs_caltech_with_category.csv"
CALTECH_PHOTOS = "101_ObjectCategories"
OUTLINE = 3


class Caltech(Source):
    """Outlines of objects, whose transfer is scored by the masks they enclose.

    The list has source, target, class, and as comma-separated text x and y of both outlines.
    `Pair.source_points` and `Pair.target_points` are corners of outlines: they do not belong
    together one by one, and need not be equally many.
    """

    name = "Caltech-101"
    folders = ("Caltech-101", "caltech-101", "caltech")
    expected = f"{CALTECH_LIST} and {CALTECH_PHOTOS}/<class>/*.jpg"
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
        return (folder / CALTECH_LIST).is_file() or (folder / CALTECH_PHOTOS).is_dir()

    def parts(self, folder: Path, split: str) -> Sequence[str]:
        """The list and the photographs."""
        return (CALTECH_LIST, CALTECH_PHOTOS)

    def rows(self, folder: Path, split: str) -> Iterable[tuple[str, list[str]]]:
        """The rows of the list."""
        return listed(folder / CALTECH_LIST)

    def files(self, folder: Path, split: str, row: list[str]) -> list[Path]:
        """The photographs."""
        return [folder.joinpath(CALTECH_PHOTOS, *Path(name.strip()).parts[-2:]) for name in row[:2]]

    def pair(self, folder: Path, split: str, row: list[str]) -> Pair:
        """Read both outlines."""
        if len(row) != 7:
            raise BrokenAnnotationError(f"it has {len(row)} columns, not 7")
        photos, outlines = self.files(folder, split, row), []
        for photo, x, y, what in zip(
            photos, row[3::2], row[4::2], ("source", "target"), strict=True
        ):
            xs, ys = _numbers(x), _numbers(y)
            if len(xs) != len(ys) or len(xs) < OUTLINE:
                raise BrokenAnnotationError(f"its {what} outline has {len(xs)} x and {len(ys)} y")
            # An outline that leaves the photograph is cut by it, as the mask is.
            outlines.append(check_points(np.stack([xs, ys], axis=1), photo, what, slack=np.inf))
        length, category = extent(outlines[1]), photos[0].parent.name
        id = f"{category}/{photos[0].stem}-{photos[1].stem}"
        return Pair(id, photos[0], photos[1], outlines[0], outlines[1], category, length)

    def classes(self, folder: Path, split: str) -> Iterable[str]:
        """Those of the list."""
        rows = self.rows(folder, split)
        return (self.files(folder, split, row)[0].parent.name for _, row in rows)


def _numbers(text: str) -> np.ndarray:
    try:
        return np.array([float(cell) for cell in text.split(",") if cell.strip()])
    except ValueError:
        raise BrokenAnnotationError("its outline is not of numbers") from None


BIRDS_LIST = "pairs.json"


class Birds(Source):
    """A selection of Caltech-UCSD Birds: 80 photographs of eight species, 240 pairs within these.

    pairs.json, with the photographs beside it, has ``images`` (``species``, ``box`` as x, y, w, h,
    and up to 15 ``parts``, each with x and y) and ``pairs`` of names of images. Points of a pair
    are the parts that both photographs have.
    """

    name = "Birds"
    folders = ("birds",)
    expected = f"{BIRDS_LIST} and the photographs that it names"
    address = "https://www.vision.caltech.edu/datasets/cub_200_2011/"
    counts = MappingProxyType({"test": 240})
    protocol = "Birds: a point is right within t times the longer side of the target's box"

    def is_it(self, folder: Path) -> bool:
        """Return whether a folder has the list."""
        return (folder / BIRDS_LIST).is_file()

    def parts(self, folder: Path, split: str) -> Sequence[str]:
        """The list."""
        return (BIRDS_LIST,)

    def rows(self, folder: Path, split: str) -> Iterable[tuple[str, Any]]:
        """The pairs of the list, each with all images."""
        images, pairs = _birds(folder)
        for number, pair in enumerate(pairs):
            yield f"pair {number} of {BIRDS_LIST}", (pair, images)

    def absent(self, folder: Path, split: str) -> Iterator[Path]:
        """Photographs of the list, be they in a pair or not."""
        return missing_from(folder / name for name in _birds(folder)[0])

    def pair(self, folder: Path, split: str, row: Any) -> Pair:
        """Find the parts that both photographs have."""
        try:
            (first, second), images = row
            source, target = images[first], images[second]
            common = [part for part in source["parts"] if part in target["parts"]]
            x, y, w, h = target["box"]
            ours, theirs = matched_points(
                [source["parts"][part] for part in common],
                [target["parts"][part] for part in common],
                folder / first,
                folder / second,
            )
            name = f"{Path(first).stem}-{Path(second).stem}"
            length, kind = longer_side((x, y, x + w, y + h)), _species(source)
            return Pair(name, folder / first, folder / second, ours, theirs, kind, length)
        except (KeyError, TypeError, ValueError) as error:
            raise BrokenAnnotationError(f"its annotation is incomplete: {error!r}") from None

    def classes(self, folder: Path, split: str) -> Iterable[str]:
        """All species of the list."""
        return (_species(image) for image in _birds(folder)[0].values())


def _birds(folder: Path) -> tuple[dict[str, Any], list[Any]]:
    """Images and pairs of the list."""
    path = folder / BIRDS_LIST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        images, pairs = content["images"], content["pairs"]
        if isinstance(images, dict) and isinstance(pairs, list):
            return images, pairs
    except (ValueError, KeyError, TypeError):
        pass
    raise InputError(f"{path} is no JSON object with images and pairs; get it anew")


def _species(image: Any) -> str:
    """Return "Gray Kingbird" for "078.Gray_Kingbird"."""
    return str(image["species"]).rpartition(".")[2].replace("_", " ")
