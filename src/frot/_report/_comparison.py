"""Several methods on the same points as one web page that needs nothing but itself."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from datetime import datetime, timezone
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from frot._errors import InputError, MissingDependencyError, brief
from frot._files import check_path, replacing
from frot._report._parts import calls, definitions, image
from frot._report._shell import shell
from frot._report._template import SCRIPT, STYLE
from frot._validate import check_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from frot._compare import Comparison, Row

__all__ = ["write_comparison_report"]

_STYLE = """
#methods td, #methods th, #relations td, #relations th { text-align: right; white-space: nowrap; }
#methods .text, #relations .text { text-align: left; }
#methods td.text { white-space: normal; min-width: 7em; overflow-wrap: anywhere; }
#methods td:first-child { min-width: 13em; }
#relations th { padding: 6px 10px; font-weight: 600; }
#relations td.long { white-space: normal; }
tr.failed td { color: #a33b00; }
.badge { font-size: .75rem; padding: 0 9px; white-space: nowrap; }
.badge.failed { background: #b00020; }
tr.failed small { color: inherit !important; }
td small { display: block; color: var(--soft); font-size: .8rem; }
dl { margin-bottom: 22px;
  grid-template-columns: repeat(auto-fill, minmax(min(300px, 100%), 1fr)); }
ul { margin: 12px 0 0; padding-left: 1.2em; } li { margin-bottom: 4px; }
"""

_BODY = """<section>
<h2>Values</h2>
<p>$lead</p>
<div class="scroll" tabindex="0" role="region" aria-label="Values of the methods">
<table id="methods">
<thead><tr>$heads</tr></thead>
<tbody>
$rows
</tbody>
</table>
</div>
<ul class="soft">
$notes
</ul>
</section>
<section>
<h2>Intervals</h2>
$intervals
</section>
<section>
<h2>What each chose</h2>
<dl>
$chosen
</dl>
<p class="soft">The heaviest groups, or how much of the chosen directions falls on each feature.</p>
$choices
</section>
<section>
<h2>Plans side by side</h2>
<p class="soft">$plans_note</p>
$plans
</section>
$relations
$calls"""

PAGE = shell(STYLE + _STYLE, SCRIPT, _BODY)

HEADS = (
    ("Method", "text"), ("Value", "number"), ("Interval", "number"), ("Gap", "number"),
    ("Status", "text"), ("Seconds", "number"), ("Memory", "number"),
)  # fmt: skip
# What failed sorts as if it were beyond all numbers.
LAST = 1e300


def write_comparison_report(
    comparison: Comparison,
    path: str | os.PathLike[str],
    call: str = "",
    title: str = "Robust transports side by side",
    *,
    command: str = "",
) -> Path:
    """Write a comparison as one web page: a table, intervals, choices and plans side by side.

    The page holds its pictures and style itself and asks nothing of the network. It replaces an
    existing file only once it is complete.

    Parameters
    ----------
    comparison : Comparison
    path : path
        The .html file to write.
    call, command : str
        Python code, and a command line, that reproduce it; shown as they are.
    title : str

    Returns
    -------
    pathlib.Path
        The file written.

    Examples
    --------
    >>> import frot, tempfile
    >>> both = frot.compare([[0.0, 0.0]], [[3.0, 4.0]], ["frot", "ot"])
    >>> page = write_comparison_report(both, Path(tempfile.mkdtemp()) / "page.html")
    >>> "What each chose" in page.read_text(encoding="utf-8")
    True
    """
    from frot._compare import Comparison

    if not isinstance(comparison, Comparison):
        raise InputError(
            f"comparison: {brief(comparison)} is no Comparison; pass what frot.compare returned"
        )
    path = check_path(path)
    for name, text in (("call", call), ("title", title), ("command", command)):
        check_text(text, name)
    page = _render(comparison, call, title, command)
    with replacing(path) as draft:
        draft.write_text(page, encoding="utf-8")
    return path


def _render(comparison: Comparison, call: str, title: str, command: str) -> str:
    from frot.show.comparison import plot_choices, plot_intervals, plot_plans

    (n, d), m = comparison.points[0].shape, len(comparison.points[1])
    count = len(comparison.groups)
    done, total = len(comparison.answered), len(comparison.rows)
    lead = f"{done} of {total} methods have an answer. " if done < total else ""
    if comparison.interrupted:
        lead += "The run was interrupted. "
    lead += "The optimum of every method is proven to lie in its interval. Click a heading to sort."
    first = comparison.answered[0].title if done else ""
    plans_note = (
        "Every plan in the same two features; on the right, the mass that lies on the same arcs "
        f"as that of {first}."
    )
    return PAGE.substitute(
        title=escape(title),
        subtitle=f"{n:,} to {m:,} points of {d:,} feature{'' if d == 1 else 's'} "
        f"in {count:,} group{'' if count == 1 else 's'}",
        lead=lead,
        heads="".join(
            f'<th data-kind="{kind}" scope="col" class="{kind if kind == "text" else ""}">'
            f'<button type="button">{text}</button></th>'
            for text, kind in HEADS
        ),
        rows="\n".join(_row(row) for row in comparison.rows),
        notes="\n".join(f"<li>{escape(note)}</li>" for note in comparison.notes),
        intervals=_picture(plot_intervals, comparison, "Values and intervals of the methods"),
        chosen=definitions([(row.title, row.cells["chose"]) for row in comparison.rows]),
        choices=_picture(plot_choices, comparison, "Weights that the methods chose"),
        plans_note=escape(plans_note) if done else "",
        plans=_picture(plot_plans, comparison, "Transport plans of the methods"),
        relations=_relations(comparison),
        calls=calls(call, command),
        footer=f"frot {version('frot')} · {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC",
    )


def _picture(draw: Callable[[Comparison], Figure], comparison: Comparison, text: str) -> str:
    if not comparison.answered:
        return '<p class="soft">No method has a result to draw.</p>'
    try:
        return image(draw(comparison), text)
    except MissingDependencyError as error:
        return f'<p class="soft">No picture: {escape(str(error))}</p>'


def _row(row: Row) -> str:
    cells, result = row.cells, row.result
    below = row.counts if result is not None else row.problem
    title = f'<td class="text">{escape(row.title)}<small>{escape(below)}</small></td>'
    good = result is not None and (result.status.ok or cells["status"] == "ESTIMATE")
    kind = "" if good else " failed" if result is None else " open"
    why = "" if result is None else f' title="{escape(result.status.sentence)}"'
    badge = f'<span class="badge{kind}"{why}>{escape(cells["status"])}</span>'
    keys = [LAST] * 3 if result is None else [result.value, result.upper, result.gap]
    keys += [row.seconds, LAST if row.memory is None else row.memory]
    texts = [cells[name] for name in ("value", "interval", "gap", "seconds", "memory")]
    figures = [
        f'<td data-value="{min(float(key), LAST) if not math.isnan(key) else LAST!r}">{text}</td>'
        for key, text in zip(keys, texts, strict=True)
    ]
    status = f'<td class="text">{badge}</td>'
    line = [title, *figures[:3], status, *figures[3:]]
    return f"<tr{' class=failed' if result is None else ''}>{''.join(line)}</tr>"


def _relations(comparison: Comparison) -> str:
    found = comparison.relations
    if not found:
        return ""
    badges = {"proven": "", "consistent": "", "violated": " failed"}
    lines = "\n".join(
        f'<tr><td class="text">{escape(one.left)} ≤ {escape(one.right)}</td>'
        f'<td class="text long">{escape(one.why)}</td><td class="text">'
        f'<span class="badge{badges[one.verdict]}">{one.verdict}</span></td></tr>'
        for one in found
    )
    heads = "".join(
        f'<th class="text" scope="col">{text}</th>' for text in ("Theorem", "Because", "Here")
    )
    return (
        "<section>\n<h2>What must hold between them</h2>\n"
        '<p class="soft">Proven: the intervals do not overlap. Consistent: they do.</p>\n'
        '<div class="scroll" tabindex="0" role="region" aria-label="Relations">\n'
        f'<table id="relations">\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{lines}\n'
        "</tbody>\n</table>\n</div>\n</section>"
    )
