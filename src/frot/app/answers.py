"""What tabs answer with: pictures inside a page, and sentences for what cannot be answered."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from frot._base.errors import InputError, MissingDependencyError, SolverError
from frot.show.page import data_address
from frot.show.style import png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["file_html", "image_html", "problem_html", "sentence_of"]

MIME = {".png": "image/png", ".svg": "image/svg+xml"}


def image_html(figure: Figure, text: str) -> str:
    """Return a figure as HTML, its bytes inside."""
    return _image(png(figure, dpi=110), ".png", text)


def file_html(path: Path, text: str) -> str:
    """Return a picture in a file as HTML; nothing if it is not there."""
    return _image(path.read_bytes(), path.suffix, text) if path.is_file() else ""


def _image(content: bytes, ending: str, text: str) -> str:
    style = "max-width:100%;height:auto;background:#fff;border-radius:.4em"
    source = data_address(MIME[ending], content)
    return f'<img alt="{escape(text)}" style="{style}" src="{source}">'


def problem_html(text: str) -> str:
    """Return a sentence that says why there is no answer.

    Examples
    --------
    >>> problem_html("a < b")
    '<p role="alert" style="color:#D55E00;font-weight:600">a &lt; b</p>'
    """
    style = "color:#D55E00;font-weight:600"
    return f'<p role="alert" style="{style}">{escape(text)}</p>' if text else ""


def sentence_of(error: Exception, folder: str = "") -> str:
    """Return what an error says to whoever uses the app, without the server's paths.

    Examples
    --------
    >>> sentence_of(InputError("/tmp/x/1f/a.csv has no rows"), "/tmp/x")
    'a.csv has no rows'
    >>> sentence_of(KeyError("z"))
    "Something went wrong on our side: KeyError: 'z'"
    """
    text = str(error)
    if not isinstance(error, InputError | MissingDependencyError | SolverError):
        text = f"Something went wrong on our side: {type(error).__name__}: {text}"
    if folder:
        text = re.sub(re.escape(folder) + r"/(?:[^\s/]+/)*", "", text)
    return text
