"""PF-WILLOW: ten points on each of two photographs, ten folders of classes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import permutations
from pathlib import Path
from types import MappingProxyType

import numpy as np

from frot._base.errors import InputError
from frot.correspondence.datasets.pair_set import Pair, PairSet
from frot.correspondence.datasets.source import (
    BrokenAnnotationError,
    Source,
    check_points,
    collect,
    extent,
    listed,
    matched_points,
    missing_from,
    read_mat,
)
from frot.datasets.catalogue import digest_of_file

__all__ = ["PF_WILLOW", "pf_willow"]

# Of each class, what its photographs' names begin with, and how the ten go on.
_NAMED = {
    "car(G)": ("Cars_", "006a 007a 008b 009b 013b 017a 017b 019a 019b 022a"),
    "car(M)": ("Cars_", "000a 004b 006a 008a 013b 014b 015a 017a 017b 022a"),
    "car(S)": ("Cars_", "000a 001b 004b 008a 014a 014b 015a 028a 028b 031"),
    "duck(S)": ("060_", "0000 0002 0005 0010 0013 0026 0030 0036 0044 0071"),
    "motorbike(G)": ("Motorbikes_", "001a 002a 003b 011a 015a 020 023 038 039 040"),
    "motorbike(M)": ("Motorbikes_", "003b 007a 010b 015a 020 024 030 032 038 039"),
    "motorbike(S)": ("Motorbikes_", "004b 007a 010a 010b 022 024 028 030 032 035"),
    "winebottle(M)": ("246_", "0001 0002 0003 0019 0021 0038 0090 0091 0099 0100"),
    "winebottle(wC)": ("246_", "0018 0019 0021 0029 0038 0042 0052 0061 0090 0091"),
    "winebottle(woC)": ("246_", "0001 0002 0003 0006 0010 0032 0056 0080 0099 0100"),
}
CLASSES = tuple(_NAMED)
RELEASED = {
    name: tuple(f"{start}{end}" for end in ends.split()) for name, (start, ends) in _NAMED.items()
}


POINTS = 10
LIST = "test_pairs.csv"
# Of the names and digests of the release's 100 photographs and 100 annotations.
DIGEST = "35ef3b1d25c067b4748134b67722e4e8065eb105c399fec530e0fada6258ed24"


class PfWillow(Source):
    """Either of two public layouts: a list of pairs, or a folder of annotations for each class."""

    name = "PF-WILLOW"
    folders = ("pf-willow", "PF-WILLOW", "PF-dataset-WILLOW", "pf-willow/PF-dataset-WILLOW")
    expected = f"{LIST} with the photographs, or folders such as car(G) with .png and .mat files"
    address = "https://www.di.ens.fr/willow/research/proposalflow/"
    counts = MappingProxyType({"test": 900})
    protocol = (
        "PF-WILLOW: a point is right within t times the larger side of the target points' box"
    )

    def is_it(self, folder: Path) -> bool:
        """Return whether a folder is in one of the two layouts."""
        return self.is_listed(folder) or any((folder / name).is_dir() for name in CLASSES)

    def is_listed(self, folder: Path) -> bool:
        """Not in the raw layout, of which every class can be read by itself."""
        return (folder / LIST).is_file()

    def parts(self, folder: Path, split: str) -> Sequence[str]:
        """Return what the folder has to hold: of the raw layout, every class."""
        return (LIST,) if self.is_listed(folder) else CLASSES

    def absent(self, folder: Path, split: str) -> Iterator[Path]:
        """Yield files that are not there: of the list, or else of each class that is."""
        if self.is_listed(folder):
            yield from super().absent(folder, split)
            return
        for name in CLASSES:
            here = folder / name
            stems = _stems(here)
            # Where none has a name of the release's it is something else, and the digest says so.
            if here.is_dir() and (not stems or not stems.isdisjoint(RELEASED[name])):
                stems |= set(RELEASED[name])
            files = (here / f"{stem}{end}" for stem in sorted(stems) for end in (".png", ".mat"))
            yield from missing_from(files)

    def altered(self, folder: Path) -> list[str]:
        """Say if the files of the raw layout are not those of the release."""
        if self.is_listed(folder) or digest(folder) == DIGEST:
            return []
        return [f"the files in {folder} are not those of the release, by their SHA-256"]

    def check(self, folder: Path, split: str, given: bool) -> None:
        """Refuse what is not the release, unless the user says that it is to be taken."""
        if not given and not self.is_listed(folder) and (found := digest(folder)) != DIGEST:
            raise InputError(
                f"{folder} is not PF-WILLOW as it was released: the SHA-256 of its files begins "
                f"{found[:12]}, not {DIGEST[:12]}; pass root to use it all the same, or get it "
                f"anew from {self.address}"
            )

    def rows(self, folder: Path, split: str) -> Iterable[tuple[str, list[str]]]:
        """The rows of the list."""
        return listed(folder / LIST)

    def files(self, folder: Path, split: str, row: list[str]) -> list[Path]:
        """The photographs."""
        return [_photo(folder, name) for name in row[:2]]

    def pair(self, folder: Path, split: str, row: list[str]) -> Pair:
        """Read ten x and ten y of the source, and of the target."""
        if len(row) < 2 + 4 * POINTS:
            raise BrokenAnnotationError(f"it has {len(row)} columns, not {2 + 4 * POINTS}")
        try:
            numbers = np.array([float(cell) for cell in row[2 : 2 + 4 * POINTS]])
        except ValueError:
            raise BrokenAnnotationError("its points are not numbers") from None
        ours, theirs = numbers.reshape(2, 2, POINTS).transpose(0, 2, 1) - 1.0
        source, target = self.files(folder, split, row)
        return _pair(source, target, ours, theirs)

    def read(self, folder: Path, split: str) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
        """Read the list, or else every class by itself."""
        return super().read(folder, split) if self.is_listed(folder) else _raw(folder)

    def classes(self, folder: Path, split: str) -> Iterable[str]:
        """All ten."""
        return CLASSES


PF_WILLOW = PfWillow()


def pf_willow(root: str | os.PathLike[str] | None = None, split: str = "test") -> PairSet:
    """Load the 900 ordered pairs of PF-WILLOW, from either of its public layouts.

    The raw release has a folder for each class, with ``<image>.png`` and ``<image>.mat``
    (``pts_coord``, 2 x 10). The other layout adds ``test_pairs.csv``: two paths, then ten x and
    ten y of the source and of the target. Both count pixels from one, as MATLAB does; one is
    subtracted. Classes are named after their folders, of which the three of cars share photographs.

    Parameters
    ----------
    root : path, optional
        The data set's folder, or one above it. Without it: the folder that ``FROT_DATA`` names,
        folders beside a checkout and the cache; it has to be the release, by its SHA-256.
    split : {"test"}

    Raises
    ------
    InputError
        If it is not there; the message says what was looked for, and where to get it.

    Examples
    --------
    >>> import tempfile
    >>> pf_willow(tempfile.mkdtemp())
    Traceback (most recent call last):
    ...
    frot.InputError: PF-WILLOW is not in ...: its folder holds test_pairs.csv with ...
    """
    return PF_WILLOW.load(root, split)


def digest(folder: Path) -> str:
    """Return the SHA-256 of the files of the raw release, whatever folder they are in."""
    lines = [
        f"{digest_of_file(path)}  {path.parent.name}/{path.name}\n"
        for name in CLASSES
        for path in sorted((folder / name).glob("*.*"))
        if path.suffix in (".png", ".mat")
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _stems(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.*") if path.suffix in (".png", ".mat")}


def _raw(folder: Path) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
    points: dict[str, dict[Path, np.ndarray]] = {name: {} for name in CLASSES}
    broken_files = []
    for name in CLASSES:
        for stem in sorted(_stems(folder / name)):
            path, photo = (folder / name / f"{stem}{end}" for end in (".mat", ".png"))
            if not path.is_file():
                broken_files.append(
                    f"{name}/{photo.name} was skipped: its annotation {path} is missing"
                )
                continue
            try:
                points[name][photo] = check_points(_read_points(path), photo, "annotated")
            except BrokenAnnotationError as broken:
                broken_files.append(f"{name}/{path.name} was skipped: {broken}")
    pairs, skipped = collect(
        (f"{name}/{source.stem}-{target.stem}", partial(_pair, source, target, ours, theirs))
        for name, those in points.items()
        for (source, ours), (target, theirs) in permutations(those.items(), 2)
    )
    return pairs, (*broken_files, *skipped)


def _pair(source: Path, target: Path, ours: np.ndarray, theirs: np.ndarray) -> Pair:
    ours, theirs = matched_points(ours, theirs, source, target)
    id = f"{source.parent.name}/{source.stem}-{target.stem}"
    return Pair(id, source, target, ours, theirs, source.parent.name, extent(theirs))


def _photo(folder: Path, name: str) -> Path:
    """Find a listed photograph; lists begin with a folder that may be called otherwise."""
    parts = Path(name.strip()).parts
    tails = [folder.joinpath(*parts), folder.joinpath(*parts[1:])]
    tails.append(folder.joinpath("PF-dataset-WILLOW", *parts[1:]))
    if found := next((path for path in tails if path.is_file()), None):
        return found
    # One that is gone was where its neighbours are, or where other classes are.
    near = [path for path in tails if path.parent.is_dir()]
    return [*near, *(path for path in reversed(tails) if path.parent.parent.is_dir()), tails[0]][0]


def _read_points(path: Path) -> np.ndarray:
    points = read_mat(path, "pts_coord")
    if points.shape != (2, POINTS):
        raise BrokenAnnotationError(f"its pts_coord is of shape {points.shape}, not (2, {POINTS})")
    return points.T - 1.0
