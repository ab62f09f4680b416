"""Where a data set of photographs lies."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from frot._base.errors import InputError
from frot._base.names import quote_some
from frot.datasets.catalogue import folders

__all__ = ["Origin", "check_parts", "check_split", "locate"]


@dataclass(frozen=True)
class Origin:
    """A data set's names on disk, what a folder of it must hold, and where the public has it.

    Parameters
    ----------
    name : str
        As in tables.
    folders : tuple of str
        Folders it may be unpacked as, inside a folder of data.
    expected : str
        What its folder holds, in words.
    source : str
        Its public address.
    """

    name: str
    folders: tuple[str, ...]
    expected: str
    source: str


def locate(
    origin: Origin, root: str | os.PathLike[str] | None, is_it: Callable[[Path], bool]
) -> Path:
    """Return the folder of a data set: `root`, or a folder of its usual names below.

    Without `root`: below the folder that ``FROT_DATA`` names, ``../shared/data``, or the cache.

    Raises
    ------
    InputError
        If no folder is it; the message says which were looked at, what it should hold, and where
        to get it.
    """
    places = folders(root)
    for place in places:
        for folder in _candidates(place, origin.folders):
            if folder.is_dir() and is_it(folder):
                return folder
    if root is not None and not places[0].is_dir():
        raise InputError(
            f"root: {places[0]} is not a folder; give the one that holds {origin.name}"
        )
    where = ", ".join(str(place) for place in places)
    fix = "" if root is not None else " and pass root, or set FROT_DATA"
    raise InputError(
        f"{origin.name} is not in {where}: its folder holds {origin.expected}; "
        f"get it from {origin.source}{fix}"
    )


def check_parts(folder: Path, parts: Sequence[str], origin: Origin) -> None:
    """Refuse a folder that lacks a part, and say which."""
    if absent := [str(folder / part) for part in parts if not (folder / part).exists()]:
        raise InputError(
            f"{origin.name} in {folder} is incomplete: {', '.join(absent)} not there; "
            f"get it from {origin.source}"
        )


def check_split(split: str, splits: Sequence[str], name: str) -> None:
    """Refuse a split that a data set does not have."""
    if split not in splits:
        raise InputError(f"split={split!r} is not one of {name}; give {quote_some(splits)}")


def _candidates(place: Path, names: Sequence[str]) -> list[Path]:
    return [place, *(place / name for name in names)]
