"""SPair-71k: 1,800 photographs of 18 classes, 12,234 pairs to test on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from frot.correspondence.datasets._source import Source
from frot.correspondence.datasets.annotation import (
    BrokenAnnotationError,
    longer_side,
    matched_points,
    photo_size,
)
from frot.correspondence.datasets.pair_set import Pair

__all__ = ["CLASSES", "COUNTS", "FLAGS", "SPair"]

# With the names of their columns in the paper's tables.
CLASSES = {
    "aeroplane": "aero",
    "bicycle": "bike",
    "bird": "bird",
    "boat": "boat",
    "bottle": "bottle",
    "bus": "bus",
    "car": "car",
    "cat": "cat",
    "chair": "chair",
    "cow": "cow",
    "dog": "dog",
    "horse": "horse",
    "motorbike": "moto",
    "person": "person",
    "pottedplant": "plant",
    "sheep": "sheep",
    "train": "train",
    "tvmonitor": "tv",
}
COUNTS = {"trn": 53340, "val": 5384, "test": 12234}
# What the data set says of a pair, and what its numbers stand for.
_HARD = {"0": "easy", "1": "medium", "2": "hard"}
_CUT = {"0": "none", "1": "source", "2": "target", "3": "both"}
FLAGS = {
    "viewpoint_variation": _HARD,
    "scale_variation": _HARD,
    "truncation": _CUT,
    "occlusion": _CUT,
}


class SPair(Source):
    """Layout/large/<split>.txt lists pairs, a line ``id-source-target:class`` each.

    PairAnnotation/<split>/<line>.json has their points and boxes.
    """

    name = "SPair-71k"
    folders = ("SPair-71k", "spair", "spair-71k")
    expected = (
        "Layout/large/<split>.txt, PairAnnotation/<split>/*.json and JPEGImages/<class>/*.jpg"
    )
    address = "https://cvlab.postech.ac.kr/research/SPair-71k/"
    counts = COUNTS
    protocol = "SPair-71k: a point is right within t times the longer side of the target's box"

    def is_it(self, folder: Path) -> bool:
        """Return whether a folder looks like it, be it incomplete."""
        return (folder / "Layout").is_dir() or (folder / "PairAnnotation").is_dir()

    def parts(self, folder: Path, split: str) -> Sequence[str]:
        """The list, the annotations, the photographs."""
        return (f"Layout/large/{split}.txt", f"PairAnnotation/{split}", "JPEGImages")

    def absent(self, folder: Path, split: str) -> Iterator[Path]:
        """Yield annotations and photographs of the list that are not there."""
        annotations = folder / "PairAnnotation" / split
        known: set[Path] = set()
        for line in _lines(folder, split):
            try:
                photos, _ = _photos(folder, line)
            except BrokenAnnotationError:
                continue
            if not (path := _find(annotations, line)).is_file():
                yield path
            yield from (photo for photo in photos if photo not in known and not photo.is_file())
            known |= set(photos)

    def tasks(self, folder: Path, split: str) -> Iterator[tuple[str, Callable[[], Pair]]]:
        """One per line of the list."""
        return ((line, partial(_read, folder, split, line)) for line in _lines(folder, split))

    def classes(self, folder: Path, split: str) -> Iterable[str]:
        """All 18."""
        return CLASSES


def _lines(folder: Path, split: str) -> list[str]:
    path = folder / "Layout" / "large" / f"{split}.txt"
    return path.read_text().split() if path.is_file() else []


def _photos(folder: Path, line: str) -> tuple[list[Path], str]:
    stem, _, category = line.partition(":")
    names = stem.split("-")
    if len(names) != 3 or not category:
        raise BrokenAnnotationError("it is no line of the form id-source-target:class")
    return [folder / "JPEGImages" / category / f"{name}.jpg" for name in names[1:]], category


def _read(folder: Path, split: str, line: str) -> Pair:
    photos, category = _photos(folder, line)
    annotation = _annotation(folder / "PairAnnotation" / split, line)
    try:
        for photo, side in zip(photos, ("src", "trg"), strict=True):
            _check_size(photo, annotation[f"{side}_imsize"])
        ours, theirs = matched_points(annotation["src_kps"], annotation["trg_kps"], *photos)
        if len(annotation["kps_ids"]) != len(ours):
            raise BrokenAnnotationError(
                f"it has {len(ours)} points and {len(annotation['kps_ids'])} names for them"
            )
        length = longer_side(annotation["trg_bndbox"])
    except KeyError as missing:
        raise BrokenAnnotationError(f"it has no {missing.args[0]}") from None
    except TypeError:
        raise BrokenAnnotationError("its parts are not lists where lists belong") from None
    tags = {flag: str(annotation[flag]) for flag in FLAGS if flag in annotation}
    return Pair(line, photos[0], photos[1], ours, theirs, category, length, tags=tags)


def _find(folder: Path, line: str) -> Path:
    # Archives unpacked where colons cannot be in names have something else instead.
    paths = [folder / f"{line.replace(':', mark)}.json" for mark in (":", "_", "-")]
    return next((path for path in paths if path.is_file()), paths[0])


def _annotation(folder: Path, line: str) -> dict[str, Any]:
    path = _find(folder, line)
    if not path.is_file():
        raise BrokenAnnotationError(f"{path} is missing")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BrokenAnnotationError(f"it is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise BrokenAnnotationError("it is no JSON object")
    return content


def _check_size(photo: Path, stated: Any) -> None:
    h, w = photo_size(photo)
    if list(stated[:2]) != [w, h]:
        raise BrokenAnnotationError(f"{photo.name} is {w} x {h}, and annotated as {stated}")
