"""Where data sets may lie."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from frot.datasets._catalogue import File

__all__ = ["cache_folder", "find", "folders"]


def folders(root: str | os.PathLike[str] | None = None) -> tuple[Path, ...]:
    """Return the folders to look in, first choice first.

    A `root` that was given is the only one: data from elsewhere would come as a surprise.

    Examples
    --------
    >>> [folder.name for folder in folders("my/data")]
    ['data']
    """
    if root is not None:
        return (Path(root).expanduser(),)
    named = os.environ.get("FROT_DATA")
    found = [Path(named).expanduser()] if named else []
    # src/frot/datasets/_places.py; an installed package has no pyproject.toml above it.
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "pyproject.toml").is_file():
        found.append(checkout.parent / "shared" / "data")
    found.append(Path.cwd().parent / "shared" / "data")
    found.append(cache_folder())
    return tuple(dict.fromkeys(found))


def cache_folder() -> Path:
    """Return the folder of downloads, where the system keeps what can be fetched again.

    Examples
    --------
    >>> cache_folder().parts[-2:]
    ('frot', 'data')
    """
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "frot" / "data"


def find(file: File, places: Sequence[Path]) -> Path | None:
    """Return the first path at which a file is, in a folder or in ``expression`` below it.

    Examples
    --------
    >>> find(File("no_such.mat", "https://example.org/no_such.mat", None), folders()) is None
    True
    """
    for folder in places:
        for name in file.names:
            for path in (folder / "expression" / name, folder / name):
                if path.is_file():
                    return path
    return None
