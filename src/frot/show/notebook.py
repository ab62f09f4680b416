"""How answers look in a notebook: a few facts and a short table, as one piece of HTML.

No script, no style sheet and nothing to fetch. Colours are the notebook's own or stand out on light
and dark alike, since a page cannot tell which theme a notebook has. All text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from frot.show.style import BLUE

__all__ = ["Bar", "card"]

LINE = "1px solid rgba(128,128,128,.4)"
# Style sheets of notebooks draw lines and stripes of their own.
PLAIN = "border:0;background:none"
CELL = f"padding:.15em .8em .15em 0;{PLAIN};text-align:"
# The longest bar.
WIDTH = 8.0


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
    if told := list(facts):
        parts.append(_table([], [[name, value] for name, value in told]))
    if found := list(rows):
        parts.append(_table(heads, found))
    if note:
        parts.append(f'<div style="opacity:.75">{escape(note)}</div>')
    frame = f"border:{LINE};border-radius:.4em;padding:.6em .9em;display:inline-block"
    return f'<div style="{frame};max-width:100%;overflow-x:auto">{"".join(parts)}</div>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    top = ""
    if heads:
        sides = ["left" if isinstance(one, str | Bar) else "right" for one in rows[0]]
        cells = (
            f'<th style="{CELL}{side};border-bottom:{LINE}">{escape(head)}</th>'
            for head, side in zip(heads, sides, strict=True)
        )
        top = f'<thead style="{PLAIN}"><tr style="{PLAIN}">{"".join(cells)}</tr></thead>'
    body = "".join(f'<tr style="{PLAIN}">{"".join(map(_cell, row))}</tr>' for row in rows)
    style = f"border-collapse:collapse;margin:.2em 0;color:inherit;{PLAIN}"
    return f'<table style="{style}">{top}<tbody>{body}</tbody></table>'


def _cell(value: object) -> str:
    if isinstance(value, Bar):
        width = WIDTH * min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0
        block = "display:inline-block;height:.7em;width"
        bar = f'<span style="{block}:{width:.2f}em;background:{BLUE}"></span>'
        text = f'<span style="{block}:{WIDTH + 0.5:.2f}em">{bar}</span>{value:.4f}'
        return f'<td style="{CELL}left;white-space:nowrap">{text}</td>'
    if isinstance(value, float):
        return f'<td style="{CELL}right">{value:.5g}</td>'
    side = "left" if isinstance(value, str) else "right"
    return f'<td style="{CELL}{side}">{escape(str(value))}</td>'
