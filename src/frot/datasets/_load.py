"""Expression sets by name."""

from __future__ import annotations

import os

from frot._errors import InputError
from frot._names import quote_some
from frot.datasets import _digest
from frot.datasets._catalogue import CATALOGUE, Entry
from frot.datasets._expression import Expression
from frot.datasets._fetch import fetch
from frot.datasets._places import find, folders
from frot.datasets._read import Raw, read_gsea, read_mat, read_npz

__all__ = ["NAMES", "available", "load_expression"]

NAMES: tuple[str, ...] = tuple(CATALOGUE)


def load_expression(
    name: str, *, root: str | os.PathLike[str] | None = None, download: bool = False
) -> Expression:
    """Load a two-class gene expression set.

    Parameters
    ----------
    name : str
        One of `NAMES`. The paper's: ``"colon"``, ``"leukemia"``, ``"prostate_ge"``, ``"gli_85"``;
        continuous versions of the first three: ``"alon"``, ``"golub"``, ``"singh"``; further
        ``"chowdary"``, ``"gravier"``, ``"pomeroy"``, and with gene symbols ``"leukemia_gsea"``.
    root : path, optional
        The only folder to look in (itself, and ``expression`` below it). Without it: the folder
        that ``FROT_DATA`` names, ``../shared/data``, and the cache of earlier downloads.
    download : bool
        Whether a set that is not there is downloaded from its public source, into `root` or the
        cache. Said on stderr. The sets of datamicroarray are R files and cannot be.

    Returns
    -------
    Expression
        X is not scaled; fit any scaling on the training part.

    Raises
    ------
    InputError
        If the set is unknown, is not there, or is not what its SHA-256 stands for.

    Examples
    --------
    >>> import tempfile
    >>> load_expression("colon", root=tempfile.mkdtemp())
    Traceback (most recent call last):
    ...
    frot._errors.InputError: the data set 'colon' is not there: no colon.mat in ...
    """
    entry = _entry(name)
    paths = [fetch(file, name, root=root, download=download) for file in entry.files]
    values = entry.files[0]
    if len(paths) == 2:
        raw = read_gsea(paths[0], paths[1])
    elif values.converted:
        raw = read_npz(paths[0])
    else:
        raw = read_mat(paths[0])
    _check(entry, raw, str(paths[0]))
    return Expression(
        *raw,
        name=name,
        source=values.url,
        description=entry.description,
        citation=entry.citation,
        licence=entry.licence,
    )


def available(root: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """Return the names of the sets that are on disk, in the order of `NAMES`.

    Parameters
    ----------
    root : path, optional
        As for `load_expression`.

    Examples
    --------
    >>> import tempfile
    >>> available(tempfile.mkdtemp())
    ()
    """
    places = folders(root)
    return tuple(
        name
        for name, entry in CATALOGUE.items()
        if all(find(file, places) is not None for file in entry.files)
    )


def _entry(name: str) -> Entry:
    if name not in CATALOGUE:
        known = quote_some(NAMES, limit=len(NAMES))
        raise InputError(f"name={name!r} is not a data set; give one of {known}")
    return CATALOGUE[name]


def _check(entry: Entry, raw: Raw, path: str) -> None:
    if raw.X.shape != entry.shape or len(raw.y) != entry.shape[0]:
        raise InputError(
            f"{path} holds {raw.X.shape[0]} samples of {raw.X.shape[1]} features and "
            f"{len(raw.y)} labels where {entry.shape[0]} of {entry.shape[1]} belong; get "
            f"{entry.files[0].url}"
        )
    file = entry.files[0]
    if file.converted and (digest := _digest.of_arrays(raw.X, raw.y)) != file.sha256:
        raise InputError(
            f"{path} does not hold the values that are meant: the SHA-256 of its X and y begins "
            f"{digest[:12]}, not {str(file.sha256)[:12]}; convert {file.url} anew, X as float32, "
            "rows in their order"
        )
