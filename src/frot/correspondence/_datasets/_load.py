"""Data sets of pairs by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from frot._errors import InputError
from frot._names import quote_some
from frot.correspondence._datasets import _caltech, _pf_pascal, _pf_willow, _spair
from frot.correspondence._datasets._locate import Origin
from frot.correspondence._datasets._pair_set import PairSet

__all__ = ["PAIR_SETS", "Source", "find_source", "load_pairs"]


@dataclass(frozen=True)
class Source:
    """How a data set is found, checked and read.

    `absent` yields files that are not there, where lists or other files say that they should be.
    """

    origin: Origin
    counts: Mapping[str, int]
    is_it: Callable[[Path], bool]
    parts: Callable[[Path, str], tuple[str, ...]]
    absent: Callable[[Path, str], Iterable[Path]]
    load: Callable[[str | os.PathLike[str] | None, str], PairSet]


SOURCES = {
    "pf-willow": Source(
        _pf_willow.ORIGIN,
        {"test": _pf_willow.PAIRS},
        _pf_willow.is_pf_willow,
        _pf_willow.parts,
        _pf_willow.absent,
        _pf_willow.pf_willow,
    ),
    "spair": Source(
        _spair.ORIGIN, _spair.COUNTS, _spair.is_spair, _spair.parts, _spair.absent, _spair.spair
    ),
    "pf-pascal": Source(
        _pf_pascal.ORIGIN,
        _pf_pascal.COUNTS,
        _pf_pascal.is_pf_pascal,
        _pf_pascal.parts,
        _pf_pascal.absent,
        _pf_pascal.pf_pascal,
    ),
    "caltech": Source(
        _caltech.ORIGIN,
        _caltech.COUNTS,
        _caltech.is_caltech,
        _caltech.parts,
        _caltech.absent,
        _caltech.caltech,
    ),
}
PAIR_SETS: tuple[str, ...] = tuple(SOURCES)


def load_pairs(
    name: str, root: str | os.PathLike[str] | None = None, split: str = "test"
) -> PairSet:
    """Load a data set of pairs of photographs.

    Parameters
    ----------
    name : {"pf-willow", "spair", "pf-pascal", "caltech"}
    root : path, optional
        The data set's folder, or one above it. Without it: the folder that ``FROT_DATA`` names,
        ``../shared/data``, and the cache. Nothing is downloaded.
    split : {"test", "val", "trn"}
        PF-WILLOW and Caltech-101 have "test" alone.

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
    frot._errors.InputError: SPair-71k is not in ...
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
