"""The data sets of pairs, each by its layout on disk: PF-WILLOW, SPair-71k, PF-PASCAL, ..."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import permutations
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from frot._base.errors import InputError
from frot._base.names import quote_some
from frot.correspondence.datasets.pair_set import (
    BrokenAnnotationError,
    Pair,
    PairSet,
    Source,
    check_points,
    collect,
    extent,
    longer_side,
    matched_points,
    photo_size,
    read_mat,
)
from frot.datasets.catalogue import digest_of_file

PASCAL_CLASSES = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa"),
    *("train", "tvmonitor"),
)
# SPair-71k has 18 of them, here with the names of their columns in the paper's tables.
SPAIR_CLASSES = {name: name for name in PASCAL_CLASSES if name not in ("diningtable", "sofa")} | {
    "aeroplane": "aero", "bicycle": "bike", "motorbike": "moto", "pottedplant": "plant",
    "tvmonitor": "tv",
}  # fmt: skip
# What the data set says of a pair, and what its numbers stand for.
SPAIR_FLAGS = {
    "viewpoint_variation": {"0": "easy", "1": "medium", "2": "hard"},
    "scale_variation": {"0": "easy", "1": "medium", "2": "hard"},
    "truncation": {"0": "none", "1": "source", "2": "target", "3": "both"},
    "occlusion": {"0": "none", "1": "source", "2": "target", "3": "both"},
}


class _SPair(Source):
    """1,800 photographs of 18 classes, 12,234 pairs to test on (Min et al. 2019b).

    Layout/large/<split>.txt lists pairs, a line ``id-source-target:class`` each, and
    PairAnnotation/<split>/<line>.json has their points and boxes.
    """

    name = "SPair-71k"
    folders = ("SPair-71k", "spair", "spair-71k")
    marks = ("Layout", "PairAnnotation")
    needs = ("Layout/large/{split}.txt", "PairAnnotation/{split}", "JPEGImages")
    expected = (
        "Layout/large/<split>.txt, PairAnnotation/<split>/*.json and JPEGImages/<class>/*.jpg"
    )
    address = "https://cvlab.postech.ac.kr/research/SPair-71k/"
    counts = MappingProxyType({"trn": 53340, "val": 5384, "test": 12234})
    protocol = "SPair-71k: a point is right within t times the longer side of the target's box"

    def rows(self, folder: Path, split: str) -> Iterable[tuple[str, str]]:
        path = self.parts(folder, split)[0]
        return [(line, line) for line in path.read_text().split()] if path.is_file() else []

    def pair(self, folder: Path, split: str, row: str) -> Pair:
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


class _PfPascal(Source):
    """Photographs of PASCAL VOC's 20 classes with points, 299 test pairs (Ham et al. 2018).

    <split>_pairs.csv has source, target and the number of the class from 1, for training also
    whether the pair is mirrored; mirrored copies are left out and said so.
    Annotations/<class>/<image>.mat has ``kps``, where rows of NaN are points that are not seen.
    MATLAB counts from one, and one is subtracted.
    """

    name = "PF-PASCAL"
    folders = ("PF-PASCAL", "pf-pascal", "PF-dataset-PASCAL")
    needs = ("{split}_pairs.csv", "Annotations", "JPEGImages")
    expected = "<split>_pairs.csv, Annotations/<class>/*.mat and JPEGImages/*.jpg"
    address = "https://www.di.ens.fr/willow/research/proposalflow/"
    counts = MappingProxyType({"trn": 2940, "val": 308, "test": 299})
    protocol = "PF-PASCAL: a point is right within t times the longer side of the target photograph"
    left_out = "it is a mirrored copy of another pair"

    def is_it(self, folder: Path) -> bool:
        listed = any((folder / f"{split}_pairs.csv").is_file() for split in self.counts)
        return (listed and not (folder / "PF-dataset-WILLOW").is_dir()) or (
            (folder / "Annotations" / "aeroplane").is_dir() and (folder / "JPEGImages").is_dir()
        )

    def pair(self, folder: Path, split: str, row: list[str]) -> Pair:
        if len(row) < 3:
            raise BrokenAnnotationError(f"it has {len(row)} columns, not 3 or 4")
        if len(row) > 3 and row[3].strip() not in ("", "0"):
            raise BrokenAnnotationError(self.left_out)
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
        points = matched_points(one[seen], other[seen], *photos)
        return _pair(photos, points, category, float(max(photo_size(photos[1]))))

    def classes(self, folder: Path, split: str) -> Iterable[str]:
        # To test on there are pairs of every class; of the others the list alone knows.
        if split == "test":
            return PASCAL_CLASSES
        return filter(None, (_pascal_class(row) for _, row in self.rows(folder, split)))


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


class _Caltech(Source):
    """Outlines of objects, whose transfer is scored by the masks they enclose.

    The list has source, target, class, and as comma-separated text x and y of both outlines.
    `Pair.source_points` and `Pair.target_points` are corners of outlines: they do not belong
    together one by one, and need not be equally many.
    """

    name = "Caltech-101"
    folders = ("Caltech-101", "caltech-101", "caltech")
    marks = needs = ("test_pairs_caltech_with_category.csv", "101_ObjectCategories")
    expected = "test_pairs_caltech_with_category.csv and 101_ObjectCategories/<class>/*.jpg"
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

    def files(self, folder: Path, split: str, row: list[str]) -> list[Path]:
        return [folder.joinpath(self.needs[1], *Path(name.strip()).parts[-2:]) for name in row[:2]]

    def pair(self, folder: Path, split: str, row: list[str]) -> Pair:
        if len(row) != 7:
            raise BrokenAnnotationError(f"it has {len(row)} columns, not 7")
        photos, outlines = self.files(folder, split, row), []
        for photo, x, y, what in zip(
            photos, row[3::2], row[4::2], ("source", "target"), strict=True
        ):
            xs, ys = _numbers(x), _numbers(y)
            if len(xs) != len(ys) or len(xs) < 3:
                raise BrokenAnnotationError(f"its {what} outline has {len(xs)} x and {len(ys)} y")
            # An outline that leaves the photograph is cut by it, as the mask is.
            outlines.append(check_points(np.stack([xs, ys], axis=1), photo, what, slack=np.inf))
        return _pair(photos, outlines, photos[0].parent.name, extent(outlines[1]))

    def classes(self, folder: Path, split: str) -> Iterable[str]:
        rows = self.rows(folder, split)
        return (self.files(folder, split, row)[0].parent.name for _, row in rows)


def _numbers(text: str) -> np.ndarray:
    try:
        return np.array([float(cell) for cell in text.split(",") if cell.strip()])
    except ValueError:
        raise BrokenAnnotationError("its outline is not of numbers") from None


BIRDS_LIST = "pairs.json"


class _Birds(Source):
    """A selection of Caltech-UCSD _Birds: 80 photographs of eight species, 240 pairs within these.

    The photographs are of Wah et al. 2011.

    pairs.json, with the photographs beside it, has ``images`` (``species``, ``box`` as x, y, w, h,
    and up to 15 ``parts``, each with x and y) and ``pairs`` of names of images. Points of a pair
    are the parts that both photographs have.
    """

    name = "Birds"
    folders = ("birds",)
    marks = needs = (BIRDS_LIST,)
    expected = f"{BIRDS_LIST} and the photographs that it names"
    address = "https://www.vision.caltech.edu/datasets/cub_200_2011/"
    counts = MappingProxyType({"test": 240})
    protocol = "Birds: a point is right within t times the longer side of the target's box"

    def rows(self, folder: Path, split: str) -> Iterable[tuple[str, Any]]:
        images, pairs = _birds(folder)
        for number, pair in enumerate(pairs):
            yield f"pair {number} of {BIRDS_LIST}", (pair, images)

    def pair(self, folder: Path, split: str, row: Any) -> Pair:
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


WILLOW_CLASSES = (
    *("car(G)", "car(M)", "car(S)", "duck(S)", "motorbike(G)", "motorbike(M)", "motorbike(S)"),
    *("winebottle(M)", "winebottle(wC)", "winebottle(woC)"),
)
WILLOW_POINTS = 10
WILLOW_LIST = "test_pairs.csv"


class _PfWillow(Source):
    """Ten points on each of two photographs (Ham et al. 2018).

    A list of pairs, ten x and ten y of both in a row. Pixels are counted from one, as MATLAB does;
    one is subtracted. Classes are named after their folders; the three of cars share photographs.
    """

    name = "PF-WILLOW"
    folders = ("pf-willow", "PF-WILLOW", "PF-dataset-WILLOW", "pf-willow/PF-dataset-WILLOW")
    marks = (WILLOW_LIST, *WILLOW_CLASSES)
    needs = (WILLOW_LIST,)
    expected = (
        f"{WILLOW_LIST} with the photographs, or folders such as car(G) with .png and .mat files"
    )
    address = "https://www.di.ens.fr/willow/research/proposalflow/"
    counts = MappingProxyType({"test": 900})
    protocol = (
        "PF-WILLOW: a point is right within t times the larger side of the target points' box"
    )

    def layout(self, folder: Path) -> Source:
        return self if (folder / WILLOW_LIST).is_file() else _RawPfWillow()

    def files(self, folder: Path, split: str, row: list[str]) -> list[Path]:
        return [_willow_photo(folder, name) for name in row[:2]]

    def pair(self, folder: Path, split: str, row: list[str]) -> Pair:
        if len(row) < 2 + 4 * WILLOW_POINTS:
            raise BrokenAnnotationError(f"it has {len(row)} columns, not {2 + 4 * WILLOW_POINTS}")
        try:
            numbers = np.array([float(cell) for cell in row[2 : 2 + 4 * WILLOW_POINTS]])
        except ValueError:
            raise BrokenAnnotationError("its points are not numbers") from None
        ours, theirs = numbers.reshape(2, 2, WILLOW_POINTS).transpose(0, 2, 1) - 1.0
        return _willow_pair(self.files(folder, split, row), ours, theirs)

    def classes(self, folder: Path, split: str) -> Iterable[str]:
        return WILLOW_CLASSES


class _RawPfWillow(_PfWillow):
    """The same as it was released: a folder of annotations for each class, read by itself."""

    needs = WILLOW_CLASSES
    # Of the names and digests of the release's 100 photographs and 100 annotations.
    digest = "35ef3b1d25c067b4748134b67722e4e8065eb105c399fec530e0fada6258ed24"

    def check(self, folder: Path, split: str, given: bool) -> None:
        # What is not the release is taken where the user says so.
        if not given and (found := _digest(folder)) != self.digest:
            raise InputError(
                f"{folder} is not PF-WILLOW as it was released: the SHA-256 of its files begins "
                f"{found[:12]}, not {self.digest[:12]}; pass root to use it all the same, or get "
                f"it anew from {self.address}"
            )

    def read(self, folder: Path, split: str) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
        points: dict[str, dict[Path, np.ndarray]] = {name: {} for name in WILLOW_CLASSES}
        broken_files = []
        for name in WILLOW_CLASSES:
            for stem in sorted(_stems(folder / name)):
                path, photo = (folder / name / f"{stem}{end}" for end in (".mat", ".png"))
                if not path.is_file():
                    broken_files.append(
                        f"{name}/{photo.name} was skipped: its annotation {path} is missing"
                    )
                    continue
                try:
                    points[name][photo] = check_points(_willow_points(path), photo, "annotated")
                except BrokenAnnotationError as broken:
                    broken_files.append(f"{name}/{path.name} was skipped: {broken}")
        pairs, skipped = collect(
            (f"{name}/{one.stem}-{other.stem}", partial(_willow_pair, (one, other), ours, theirs))
            for name, those in points.items()
            for (one, ours), (other, theirs) in permutations(those.items(), 2)
        )
        return pairs, (*broken_files, *skipped)


def _digest(folder: Path) -> str:
    """The SHA-256 of the files of the raw release, whatever folder they are in."""
    lines = [
        f"{digest_of_file(path)}  {path.parent.name}/{path.name}\n"
        for name in WILLOW_CLASSES
        for path in sorted((folder / name).glob("*.*"))
        if path.suffix in (".png", ".mat")
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _stems(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.*") if path.suffix in (".png", ".mat")}


def _willow_pair(photos: Sequence[Path], ours: np.ndarray, theirs: np.ndarray) -> Pair:
    points = matched_points(ours, theirs, *photos)
    return _pair(photos, points, photos[0].parent.name, extent(points[1]))


def _pair(
    photos: Sequence[Path], points: Sequence[np.ndarray], category: str, length: float
) -> Pair:
    """The pair that is called after its class and photographs."""
    id = f"{category}/{photos[0].stem}-{photos[1].stem}"
    return Pair(id, photos[0], photos[1], points[0], points[1], category, length)


def _willow_photo(folder: Path, name: str) -> Path:
    """Find a listed photograph; lists begin with a folder that may be called otherwise."""
    parts = Path(name.strip()).parts
    tails = [folder.joinpath(*parts), folder.joinpath(*parts[1:])]
    tails.append(folder.joinpath("PF-dataset-WILLOW", *parts[1:]))
    if found := next((path for path in tails if path.is_file()), None):
        return found
    # One that is gone was where its neighbours are, or where other classes are.
    near = [path for path in tails if path.parent.is_dir()]
    return [*near, *(path for path in reversed(tails) if path.parent.parent.is_dir()), tails[0]][0]


def _willow_points(path: Path) -> np.ndarray:
    points = read_mat(path, "pts_coord")
    if points.shape != (2, WILLOW_POINTS):
        raise BrokenAnnotationError(
            f"its pts_coord is of shape {points.shape}, not (2, {WILLOW_POINTS})"
        )
    return points.T - 1.0


SOURCES: dict[str, Source] = {
    "pf-willow": _PfWillow(),
    "spair": _SPair(),
    "pf-pascal": _PfPascal(),
    "caltech": _Caltech(),
    "birds": _Birds(),
}
PAIR_SETS: tuple[str, ...] = tuple(SOURCES)


def load_pairs(
    name: str, root: str | os.PathLike[str] | None = None, split: str = "test"
) -> PairSet:
    """Load a data set of pairs of photographs.

    Parameters
    ----------
    name : {"pf-willow", "spair", "pf-pascal", "caltech", "birds"}
    root : path, optional
        The data set's folder, or one above it. Without it: the folder that ``FROT_DATA`` names,
        folders beside a checkout, and the cache. Nothing is downloaded.
    split : {"test", "val", "trn"}
        PF-WILLOW, Caltech-101 and birds have "test" alone.

    Returns
    -------
    PairSet
        Annotations that cannot be used are left out and named in `PairSet.skipped`.

    Raises
    ------
    InputError
        If it is not there, or no pair of it can be used.

    Examples
    --------
    >>> import tempfile
    >>> load_pairs("spair", tempfile.mkdtemp())
    Traceback (most recent call last):
    ...
    frot.InputError: SPair-71k is not in ...
    """
    pairs = find_source(name).load(root, split)
    if not pairs.pairs:
        why = f"; the first: {pairs.skipped[0]}" if pairs.skipped else ""
        raise InputError(f"{pairs.name} has no pair that can be used{why}")
    return pairs


def find_source(name: str) -> Source:
    """Return the data set of that name, or refuse it."""
    if not isinstance(name, str) or name not in SOURCES:
        raise InputError(
            f"name={name!r} is not a set of pairs; give one of {quote_some(PAIR_SETS)}"
        )
    return SOURCES[name]
