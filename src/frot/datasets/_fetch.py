"""A file of a set, found or downloaded, and checked."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.request import urlopen

from frot._errors import InputError
from frot._files import make_folder, replacing
from frot.datasets import _digest
from frot.datasets._catalogue import File
from frot.datasets._places import cache_folder, find, folders

__all__ = ["fetch"]

SECONDS = 30.0


def fetch(
    file: File, name: str, *, root: str | os.PathLike[str] | None = None, download: bool = False
) -> Path:
    """Return the path of a checked file, downloading it only where `download` says so.

    Parameters
    ----------
    file : File
    name : str
        The set it belongs to, for messages.
    root : path, optional
        The only folder to look in, and to download to.
    download : bool

    Raises
    ------
    InputError
        If the file is not there (the message says where to get it), cannot be downloaded, or is
        not the file that its digest stands for.

    Examples
    --------
    >>> import tempfile
    >>> fetch(File("a.mat", "https://example.org/a.mat", None), "a", root=tempfile.mkdtemp())
    Traceback (most recent call last):
    ...
    frot._errors.InputError: the data set 'a' is not there: no a.mat in ...
    """
    places = folders(root)
    path = find(file, places)
    if path is None and download and not file.converted:
        path = _download(file, make_folder(cache_folder() if root is None else places[0]))
    if path is None:
        raise InputError(_missing(file, name, places))
    # What has been converted is checked by its arrays, once they are read.
    if not file.converted:
        _check(file, path)
    return path


def _missing(file: File, name: str, places: tuple[Path, ...]) -> str:
    looked = ", ".join(str(place) for place in places)
    begin = f"the data set {name!r} is not there: no {file.name} in {looked}"
    if file.converted:
        return (
            f"{begin}; get {file.url}, which R reads, write its x as X (float32), its y as y "
            f"(strings) and the column names as genes into {file.name} with numpy.savez, and set "
            "FROT_DATA to that folder"
        )
    return (
        f"{begin}; pass download=True, or get {file.url} and set FROT_DATA to the folder it is in"
    )


def _check(file: File, path: Path) -> None:
    try:
        digest = _digest.of_file(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if file.sha256 is not None and digest != file.sha256:
        raise InputError(
            f"{path} is not the {file.name} that is meant: its SHA-256 begins {digest[:12]}, not "
            f"{file.sha256[:12]}; remove it and get {file.url}"
        )


def _download(file: File, folder: Path) -> Path:
    path = folder / file.name
    print(f"frot: downloading {file.url} to {path}", file=sys.stderr)
    with replacing(path) as draft:
        try:
            with urlopen(file.url, timeout=SECONDS) as answer:
                draft.write_bytes(answer.read())
        except OSError as error:
            reason = getattr(error, "reason", None) or error
            raise InputError(
                f"{file.url} cannot be downloaded: {reason}; get it another way and set FROT_DATA "
                "to the folder it is in"
            ) from None
        # Before it takes its name, so that a wrong file is never left behind.
        _check(file, draft)
    return path
