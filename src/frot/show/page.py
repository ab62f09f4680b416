"""HTML: pages, one file each with style, script and pictures inside; tables and cards.

A page is a Jinja2 template that extends ``templates/page.html`` and is given the small things below
(tables, cells, pictures), which ``templates/parts.html`` draws. A `card` is how an answer looks in
a notebook. All text is escaped by default.
"""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from html import escape
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from frot._base.errors import InputError, MissingDependencyError, require
from frot._base.files import check_path, check_writable, replacing
from frot._base.validate import check_text
from frot.show.style import BLUE, no_windows, png

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Column:
    """Heading of a column to sort by: numbers begin with the largest, text with A."""

    text: str
    # Numbers stand to the right. A search looks in the first column of text.
    kind: Literal["number", "text"] = "number"
    # The order that the first click asks for, "descending" or "ascending".
    first: str = ""
    # Text that needs no more room than it takes.
    short: bool = False

    def __post_init__(self) -> None:
        if not self.first:
            usual = "descending" if self.kind == "number" else "ascending"
            object.__setattr__(self, "first", usual)


@dataclass(frozen=True)
class Cell:
    """What stands in a cell, and the exact number that its column is sorted by."""

    text: str
    # NaN for none, which goes last.
    value: float = math.nan
    # Small print below the text.
    note: str = ""
    # Draw the text as a badge: "" is green, "open" orange, "failed" red.
    badge: str | None = None
    # What a badge says when the pointer rests on it.
    title: str = ""
    # The key of the section that the text leads to.
    link: str = ""

    @property
    def key(self) -> str:
        """The value as the script reads it."""
        return repr(float(self.value)) if math.isfinite(self.value) else ""


def number(value: Any, form: str) -> Cell:
    """Make a cell of a number; a dash where there is none.

    Examples
    --------
    >>> number(0.125, ".2f").text, number(0.125, ".2f").key, number(math.nan, ".2f").text
    ('0.12', '0.125', '–')
    """
    value = float(value)
    return Cell("–" if math.isnan(value) else format(value, form), value)


@dataclass(frozen=True)
class PageTable:
    """A table that sorts by the heading clicked."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    caption: str
    # The table's id, its own on the page.
    key: str
    # What to write into the empty box that searches; no box where this is empty.
    search: str = ""
    # Rows with a coloured edge.
    marked: Collection[int] = ()
    # What to know about the numbers; above the table.
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """An image that is inside the page, or why there is none."""

    # What is on it, for those who cannot see it.
    text: str
    # The address that holds the image itself.
    source: str = ""
    # Pixels of the screen.
    width: int = 0
    height: int = 0
    missing: str = ""


def picture(draw: Callable[[], Figure], text: str, colours: int | None = None) -> Picture:
    """Draw a figure into the page, in so many colours, or say which library is missing for that."""
    try:
        with no_windows():
            figure = draw()
    except MissingDependencyError as error:
        return Picture(text, missing=str(error))
    width, height = (round(96 * inches) for inches in figure.get_size_inches())
    # On a clear ground, so that it suits a light page and a dark one.
    image = png(figure, clear=True, colours=colours)
    return Picture(text, data_address("image/png", image), width, height)


@dataclass(frozen=True)
class Claim:
    """A statement, and whether it was found to hold.

    Examples
    --------
    >>> Claim("FROT is at most OT", True).word, Claim("", None).word
    ('holds', 'skipped')
    """

    text: str
    # None where that was not looked at, or is true in part: the badge is orange.
    holds: bool | None
    # The numbers behind it.
    numbers: str = ""
    # The verdict; by default "holds", "fails" or "skipped".
    word: str = ""
    # The smaller statements that it was put to.
    checks: Sequence[Claim] = ()

    def __post_init__(self) -> None:
        usual = {True: "holds", False: "fails", None: "skipped"}[self.holds]
        object.__setattr__(self, "word", self.word or usual)

    @property
    def kind(self) -> str:
        """The colour of its badge."""
        return {True: "", False: "failed", None: "open"}[self.holds]


@dataclass(frozen=True)
class Section:
    """A part of a page under its heading; shown in the order of the fields."""

    title: str
    # Paragraphs.
    text: Sequence[str] = ()
    # Terms and what they are.
    facts: Sequence[tuple[str, str]] = ()
    claims: Sequence[Claim] = ()
    # Made by `picture`.
    pictures: Sequence[Picture] = ()
    tables: Sequence[PageTable] = ()
    # Paragraphs of small print.
    notes: Sequence[str] = ()
    # What links lead to it by, its own on the page.
    key: str = ""


def write_page(
    path: str | os.PathLike[str],
    title: str,
    sections: Sequence[Section],
    *,
    command: str = "",
) -> Path:
    """Write a page of sections: for experiments, and whatever has no template of its own.

    The .html file is replaced only once the page is complete. `command`, a command line that makes
    the page again, is shown as it is. Returns the path.

    Examples
    --------
    >>> import tempfile
    >>> table = PageTable([Column("method", "text"), Column("value")],
    ...               [[Cell("FROT"), number(16.0, ".3g")], [Cell("OT"), number(25.0, ".3g")]],
    ...               "Values", "values", search="methods")
    >>> section = Section("Experiment 1", ["Two points."], tables=[table],
    ...                   claims=[Claim("FROT ≤ OT", True, "16 ≤ 25")])
    >>> path = Path(tempfile.mkdtemp()) / "all.html"
    >>> text = write_page(path, "Experiments", [section]).read_text(encoding="utf-8")
    >>> "16 ≤ 25" in text
    True
    """
    path = check_page(path, title=title, command=command)
    return save_page(path, render("sections.html", title=title, sections=sections, command=command))


def render(
    template: str,
    room: str = "frot.show",
    *,
    title: str,
    subtitle: str = "",
    command: str = "",
    **values: Any,
) -> str:
    """Fill a template, which lies in the folder ``templates`` of `room`, or of this one.

    Everything is escaped, unless the template says otherwise.
    """
    jinja = require("jinja2", "plot")
    rooms = dict.fromkeys((room, "frot.show"))
    environment = jinja.Environment(
        loader=jinja.ChoiceLoader([jinja.PackageLoader(name) for name in rooms]),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def asset(name: str, room: str = "frot.show") -> Any:
        """Style sheets and scripts are ours, and go in as they are."""
        text = resources.files(room).joinpath(name).read_text(encoding="utf-8")
        return require("markupsafe", "plot").Markup(text)

    return environment.get_template(template).render(
        asset=asset,
        title=title,
        subtitle=subtitle,
        command=command,
        version=version("frot"),
        now=f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M}",
        **values,
    )


def check_page(path: Any, **texts: Any) -> Path:
    """Refuse, before any work, a path that no page can be written to, and texts that are none.

    It also says if Jinja2 is missing.

    Examples
    --------
    >>> check_page("page.html", title="A page").name
    'page.html'
    >>> check_page("page.html", title=3)
    Traceback (most recent call last):
    ...
    frot.InputError: title: is 3; use text
    """
    for name, text in texts.items():
        check_text(text, name)
    path = check_path(path)
    check_writable(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path} must end in .html or .htm")
    require("jinja2", "plot")
    return path


def save_page(path: Path, page: str) -> Path:
    """Write a page; an existing file is replaced only once it is complete."""
    with replacing(path) as draft:
        draft.write_text(page, encoding="utf-8")
    return path


def data_address(kind: str, content: bytes) -> str:
    """Return the address of an image that is inside the address."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def plural(count: int, word: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


# A card has no script, no style sheet and nothing to fetch. Colours are the notebook's own or stand
# out on light and dark alike, since a page cannot tell which theme a notebook has.
LINE = "1px solid rgba(128,128,128,.4)"
# Style sheets of notebooks draw lines and stripes of their own.
PLAIN = "border:0;background:none"
CELL = f"padding:.15em .8em .15em 0;{PLAIN};text-align:"


class Bar(float):
    """A share from 0 to 1 that is drawn as a bar beside its digits."""


def card(
    title: str,
    facts: Iterable[tuple[str, str]],
    heads: Sequence[str] = (),
    rows: Iterable[Sequence[object]] = (),
    note: str = "",
) -> str:
    """Return the HTML of a title, facts by name, a table and a note.

    Text stands to the left and all else to the right; a `Bar` is drawn.

    Examples
    --------
    >>> page = card("A < B", [("value", "4")], ["group", "alpha"], [["a&b", Bar(0.5)]])
    >>> "A &lt; B" in page, "a&amp;b" in page, "width:4.00em" in page, "<script" in page
    (True, True, True, False)
    """
    parts = [f'<div style="font-weight:600;margin-bottom:.3em">{escape(title)}</div>']
    if named := list(facts):
        parts.append(_table([], [[name, value] for name, value in named]))
    if table := list(rows):
        parts.append(_table(heads, table))
    if note:
        parts.append(f'<div style="opacity:.75">{escape(note)}</div>')
    frame = f"border:{LINE};border-radius:.4em;padding:.6em .9em;display:inline-block"
    return f'<div style="{frame};max-width:100%;overflow-x:auto">{"".join(parts)}</div>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    top = ""
    if heads:
        sides = ["left" if isinstance(cell, str | Bar) else "right" for cell in rows[0]]
        cells = (
            f'<th style="{CELL}{side};border-bottom:{LINE}">{escape(head)}</th>'
            for head, side in zip(heads, sides, strict=True)
        )
        top = f'<thead style="{PLAIN}"><tr style="{PLAIN}">{"".join(cells)}</tr></thead>'
    body = "".join(f'<tr style="{PLAIN}">{"".join(map(_cell, row))}</tr>' for row in rows)
    style = f"border-collapse:collapse;margin:.2em 0;color:inherit;{PLAIN}"
    return f'<table style="{style}">{top}<tbody>{body}</tbody></table>'


def _cell(value: object, longest: float = 8.0) -> str:
    """Return a cell of a table; bars are at most `longest` em."""
    if isinstance(value, Bar):
        width = longest * min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0
        block = "display:inline-block;height:.7em;width"
        bar = f'<span style="{block}:{width:.2f}em;background:{BLUE}"></span>'
        text = f'<span style="{block}:{longest + 0.5:.2f}em">{bar}</span>{value:.4f}'
        return f'<td style="{CELL}left;white-space:nowrap">{text}</td>'
    if isinstance(value, float):
        return f'<td style="{CELL}right">{value:.5g}</td>'
    side = "left" if isinstance(value, str) else "right"
    return f'<td style="{CELL}{side}">{escape(str(value))}</td>'
