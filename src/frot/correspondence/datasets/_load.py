"""Pairs of a data set by its name, and what of it is missing."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from frot._base.errors import InputError
from frot._base.names import quote_some
from frot.correspondence.datasets._pf_willow import PF_WILLOW
from frot.correspondence.datasets.pair_set import PairSet
from frot.correspondence.datasets.sets import Birds, Caltech, PfPascal, SPair
from frot.correspondence.datasets.source import Source

__all__ = ["PAIR_SETS", "Verification", "load_pairs", "verify_pairs"]


SOURCES: dict[str, Source] = {
    "pf-willow": PF_WILLOW,
    "spair": SPair(),
    "pf-pascal": PfPascal(),
    "caltech": Caltech(),
    "birds": Birds(),
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
    if name not in SOURCES:
        raise InputError(
            f"name={name!r} is not a set of pairs; give one of {quote_some(PAIR_SETS)}"
        )
    return SOURCES[name]


@dataclass(frozen=True)
class Verification:
    """Which files of a data set are on disk, and which are missing.

    Printed, it has a line for everything that is missing.

    Parameters
    ----------
    name : str
        The data set.
    folder : Path or None
        Where it is.
    found, published : int
        Pairs that can be used, and pairs that there should be.
    missing : tuple of str
        One sentence per problem; empty where the data set is complete.

    Examples
    --------
    >>> print(Verification("PF-WILLOW", Path("data"), 900, 900, ()))
    PF-WILLOW in data: complete, 900 of 900 pairs
    """

    name: str
    folder: Path | None
    found: int
    published: int
    missing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing

    def __str__(self) -> str:
        state = "complete" if self.complete else "incomplete"
        name = self.name if self.folder is None else f"{self.name} in {self.folder}"
        head = f"{name}: {state}, {self.found} of {self.published} pairs"
        return "\n".join([head, *(f"  - {text}" for text in self.missing)])


def verify_pairs(
    name: str, root: str | os.PathLike[str] | None = None, split: str = "test"
) -> Verification:
    """Say exactly what is missing from a data set: folders, files, pairs against the published.

    Every file that a list of pairs asks for, or that belongs to another one, is looked for; one
    that is gone is named, or the folder that it was in if all of that is gone.

    Parameters
    ----------
    name, root, split :
        As for `load_pairs`.

    Examples
    --------
    >>> import tempfile
    >>> print(verify_pairs("pf-pascal", tempfile.mkdtemp()))
    PF-PASCAL: incomplete, 0 of 299 pairs
      - PF-PASCAL is not in ...: its folder holds ...; get it from https://...
    """
    source = find_source(name)
    source.check_split(split)
    published = source.counts[split]
    try:
        folder = source.locate(root)
    except InputError as error:
        return Verification(source.name, None, 0, published, (str(error),))
    gone = [folder / part for part in source.parts(folder, split)]
    gone = [path for path in gone if not path.exists()]
    missing = [f"{path} is missing; get it from {source.address}" for path in gone]
    absent = list(source.absent(folder, split))
    missing += _by_folder(absent, folder, gone)
    by_list = source.is_listed(folder)
    found = 0
    # Without one of its parts nothing can be read, but for classes, each by itself.
    if not (by_list and gone):
        pairs = source.load(folder, split)
        found = len(pairs)
        # Without a list a sentence is about a photograph, and costs 18 pairs.
        if (listed := found + by_list * len(pairs.skipped)) != published:
            missing.append(f"{listed} pairs are there where {published} were published")
        said = {f"{path} is missing" for path in absent}
        missing += [
            text for text in pairs.skipped if not source.is_meant(text) and not _is_said(text, said)
        ]
        missing += source.altered(folder)
    return Verification(source.name, folder, found, published, tuple(missing))


def _by_folder(absent: Iterable[Path], root: Path, gone: Iterable[Path]) -> list[str]:
    """A sentence for each file, or for the topmost folder that is gone with all its files."""
    known = set(gone)
    counts = Counter(_topmost(path, root) for path in absent)
    alone = set(absent)
    return [
        f"{path} is missing" if path in alone else f"{path} is missing, with {count} files in it"
        for path, count in counts.items()
        if path not in known
    ]


def _topmost(path: Path, root: Path) -> Path:
    """Return the first of a missing file's folders that is missing too, or else the file."""
    if not path.is_relative_to(root):
        return path
    above = [one for one in path.parents if one.is_relative_to(root)]
    return next((one for one in reversed(above) if not one.exists()), path)


def _is_said(text: str, said: set[str]) -> bool:
    reason = text.rpartition(" was skipped: ")[2]
    return reason.removeprefix("its annotation ").removeprefix("the photograph ") in said
