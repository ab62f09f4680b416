"""A data set of photographs on disk: where it lies, whether it is whole, and its pairs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from frot._base.errors import InputError
from frot._base.names import quote_some
from frot.correspondence.datasets.annotation import collect, shortfall
from frot.correspondence.datasets.pair_set import Pair, PairSet
from frot.datasets.catalogue import folders

__all__ = ["Source"]


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

    def absent(self, folder: Path, split: str) -> Iterable[Path]:
        """Yield files that are not there, where lists or other files say that they should be."""
        raise NotImplementedError

    def tasks(self, folder: Path, split: str) -> Iterable[tuple[str, Callable[[], Pair]]]:
        """Yield what to call each annotation in a sentence, and what reads it."""
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

    def read(self, folder: Path, split: str) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
        """Return the pairs that can be used, and a sentence for each annotation that cannot."""
        return collect(self.tasks(folder, split))

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
