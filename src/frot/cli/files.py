"""Files that commands write: refused before the work if they cannot be, complete after it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from frot._base.errors import InputError, require
from frot._base.files import check_writable, replacing

__all__ = ["NUMBERS", "PAGES", "PICTURES", "check_files", "save_json", "save_picture"]

PICTURES = (".png", ".svg", ".pdf", ".jpg", ".webp")
PAGES = (".html", ".htm")
NUMBERS = (".json",)


def check_files(
    *wanted: tuple[Path | None, tuple[str, ...]],
    inputs: Sequence[Path] = (),
    called: str = "read from",
) -> None:
    """Refuse what could not be written, before an hour's work is lost to it.

    Parameters
    ----------
    *wanted : tuples of path and suffixes
        None is not wanted; without suffixes any will do.
    inputs : sequence of path
        Files that must not be written over.
    called : str
        What messages call them.

    Examples
    --------
    >>> check_files((Path("plan.txt"), PICTURES))
    Traceback (most recent call last):
    ...
    frot.InputError: plan.txt must end in .png or .svg or .pdf or .jpg or .webp
    """
    for path, kinds in wanted:
        if path is None:
            continue
        check_writable(path)
        if kinds and path.suffix.lower() not in kinds:
            raise InputError(f"{path} must end in {' or '.join(kinds)}")
        if path.resolve() in [one.resolve() for one in inputs]:
            raise InputError(f"{path} is {called}; give the path of another file")
        if kinds is PICTURES:
            require("matplotlib.figure", "plot")


def save_picture(draw: Callable[[], Any], path: Path | None) -> None:
    """Draw and write a picture, if one is wanted."""
    if path is not None:
        figure = draw()
        with replacing(path) as draft:
            figure.savefig(draft, dpi=150)


def save_json(content: Any, path: Path | None) -> None:
    """Write numbers, if they are wanted."""
    if path is not None:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        with replacing(path) as draft:
            draft.write_text(text + "\n", "utf-8")
