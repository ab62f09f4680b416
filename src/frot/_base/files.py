"""Files that are either complete or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from frot._base.errors import InputError, brief

__all__ = ["check_path", "check_writable", "make_folder", "replacing"]


def check_path(value: Any, name: str = "path") -> Path:
    """Return the path of a file.

    Examples
    --------
    >>> check_path("page.html").suffix
    '.html'
    """
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name}: {brief(value)} is not a path of a file; pass a string or a Path")
    return Path(value)


def check_writable(path: Path) -> None:
    """Refuse a path that no file can be written to.

    Examples
    --------
    >>> check_writable(Path(tempfile.mkdtemp()) / "a.txt")
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the path of a file")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} does not exist; make that folder first")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to, in the same folder, which takes the place of `path` at the end.

    If the body fails, what was at `path` before is still there, untouched.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "a.txt") as draft:
    ...     _ = draft.write_text("complete")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    path = Path(path)
    try:
        # The suffix stays, because writers choose the format by it.
        handle, name = tempfile.mkstemp(suffix=path.suffix, prefix=".frot-", dir=path.parent)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        # mkstemp makes files private; the finished one gets what the user's umask allows.
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o666 & ~mask)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder, and those above it, where they are not there yet.

    Examples
    --------
    >>> make_folder(Path(tempfile.mkdtemp()) / "a" / "b").is_dir()
    True
    """
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be made a folder: {error.strerror}") from None
    return path
