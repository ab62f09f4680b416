"""Parts of the page that repeat: tables, pictures, sections."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Head", "image", "number_cell", "section", "table", "text_cell"]


class Head(NamedTuple):
    """Heading of a column that can be sorted by; `first` is the way of the first click."""

    text: str
    kind: str = "number"
    first: str = "descending"


def section(title: str, body: str) -> str:
    """Put a part of the page under its heading.

    Examples
    --------
    >>> print(section("A & B", "<p>text</p>"))
    <section>
    <h2>A &amp; B</h2>
    <p>text</p>
    </section>
    """
    return f"<section>\n<h2>{escape(title)}</h2>\n{body}\n</section>"


def image(figure: Figure, text: str) -> str:
    """Draw a figure into the page; `text` says what is on it to who cannot see it."""
    from frot.show.style import png

    width, height = (round(96 * inches) for inches in figure.get_size_inches())
    data = base64.b64encode(png(figure, dpi=144)).decode("ascii")
    size = f'width="{width}" height="{height}"'
    return f'<figure><img alt="{escape(text)}" {size} src="data:image/png;base64,{data}"></figure>'


def text_cell(text: str) -> str:
    """Make a cell of text."""
    return f'<td class="text">{escape(text)}</td>'


def number_cell(value: Any, form: str) -> str:
    """Make a cell of a number, which sorts by its exact value; a dash where there is none.

    Examples
    --------
    >>> number_cell(0.125, ".2f")
    '<td data-value="0.125">0.12</td>'
    """
    value = float(value)
    if math.isnan(value):
        return '<td data-value="">–</td>'
    return f'<td data-value="{value!r}">{value:{form}}</td>'


def table(heads: Sequence[Head], rows: Iterable[str], identity: str, caption: str) -> str:
    """Make a table that sorts by the column whose heading is clicked."""
    cells = "".join(
        f'<th scope="col" class="{"text" if head.kind == "text" else "figure"}" '
        f'data-kind="{head.kind}" data-first="{head.first}">'
        f'<button type="button">{escape(head.text)}</button></th>'
        for head in heads
    )
    # Who uses the keyboard scrolls a box only if it can have the focus.
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">\n'
        f'<table class="sortable" id="{identity}">\n<thead><tr>{cells}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody>\n</table>\n</div>"
    )
