"""Parts of the page that repeat: facts, pictures, rows of the table."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from frot._errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from frot._group_arrays import GroupArrays
    from frot._result import Result

__all__ = ["calls", "definitions", "group_heads", "group_rows", "image", "images"]


def definitions(facts: Sequence[tuple[str, str]], wide: Sequence[str] = ()) -> str:
    """Terms and what they are; those in `wide` get a line of their own.

    Examples
    --------
    >>> definitions([("Points", "2 < 3")])
    '<div><dt>Points</dt><dd>2 &lt; 3</dd></div>'
    """
    lines = []
    for term, text in facts:
        kind = ' class="wide"' if term in wide else ""
        lines.append(f"<div{kind}><dt>{escape(term)}</dt><dd>{escape(text)}</dd></div>")
    return "\n".join(lines)


def images(result: Result, groups: GroupArrays | None, feature_names: Sequence[str] | None) -> str:
    """Draw the three pictures into the page, or say what is missing to draw them."""
    from frot.show import plot_alpha, plot_convergence, plot_plan

    try:
        plan = plot_plan(result, groups=groups, feature_names=feature_names)
    except MissingDependencyError as error:
        return f'<p class="soft">No pictures: {escape(str(error))}</p>'
    return "\n".join(
        [
            image(plan, "The transport plan"),
            image(plot_alpha(result), "Weights and costs of the heaviest groups"),
            image(plot_convergence(result), "Bounds and gap over the iterations"),
        ]
    )


def image(figure: Figure, text: str) -> str:
    """Draw a figure into the page; `text` says what is on it to who cannot see it."""
    from frot.show.style import png

    width, height = (round(96 * inches) for inches in figure.get_size_inches())
    data = base64.b64encode(png(figure, dpi=144)).decode("ascii")
    source = f"data:image/png;base64,{data}"
    size = f'width="{width}" height="{height}"'
    return f'<figure><img alt="{escape(text)}" {size} src="{source}"></figure>'


def group_heads(groups: GroupArrays | None) -> str:
    """Headings of the table, which are buttons that sort it."""
    heads = [("Rank", "number"), ("Group", "text"), ("α", "number"), ("φ", "number")]
    if groups is not None:
        heads.insert(2, ("Features", "number"))
    return "".join(
        f'<th data-kind="{kind}" scope="col"><button type="button">{text}</button></th>'
        for text, kind in heads
    )


def group_rows(result: Result, groups: GroupArrays | None, count: int) -> str:
    """Rows of the table, heaviest group first; exact numbers go into data-value to sort by."""
    rows = []
    for rank, group in enumerate(result.ranking()[:count], start=1):
        size = "" if groups is None else f"<td>{int(groups.sizes[group])}</td>"
        alpha, phi = float(result.alpha[group]), float(result.phi[group])
        rows.append(
            f"<tr><td>{rank}</td><td>{escape(result.names[group])}</td>{size}"
            f'<td data-value="{alpha!r}">{alpha:.6f}</td>'
            f'<td data-value="{phi!r}">{phi:.6g}</td></tr>'
        )
    return "\n".join(rows)


def calls(call: str, command: str) -> str:
    """Show how to get the page again, in Python and on the command line."""
    blocks = [
        f"<p>{label}</p>\n<pre><code>{escape(text)}</code></pre>"
        for label, text in (("In Python", call), ("On the command line", command))
        if text
    ]
    if not blocks:
        return ""
    return "<section>\n<h2>To get this again</h2>\n" + "\n".join(blocks) + "\n</section>"
