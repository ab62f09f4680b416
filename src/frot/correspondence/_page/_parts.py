"""Parts of the page: the points, the layers, the answer and what is approximated."""

from __future__ import annotations

from html import escape

import numpy as np

from frot._report._parts import definitions
from frot.correspondence._page._heat_rows import HeatRows
from frot.correspondence._page._sampled import Sampled
from frot.correspondence._pictures._matched import Matched, Moved

__all__ = ["answer_section", "layers_section", "points_section"]


def points_section(points: np.ndarray, moved: Moved) -> str:
    """Table of chosen points; its buttons show them."""
    rows = [
        f'<tr data-x="{x!r}" data-y="{y!r}" data-u="{u!r}" data-v="{v!r}" '
        f'data-sure="{sure!r}"><td class="text"><button type="button" '
        f'aria-label="Show point {number}">{number}</button></td><td>{x:.1f}, {y:.1f}</td>'
        f"<td>{u:.1f}, {v:.1f}</td><td>{sure:.0%}</td></tr>"
        for number, ((x, y), (u, v), sure) in enumerate(
            zip(points.tolist(), moved.points.tolist(), moved.confidence.tolist(), strict=True), 1
        )
    ]
    return (
        "<section>\n<h2>Points</h2>\n"
        '<div class="scroll" tabindex="0" role="region" aria-label="Points">'
        '<table id="points">\n<thead><tr><th scope="col" class="text">point</th>'
        '<th scope="col">x, y in A</th><th scope="col">x, y in B</th>'
        '<th scope="col">sure</th></tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody>\n</table></div>\n</section>"
    )


def layers_section(match: Matched) -> str:
    """Bars of the weights of the layers, in the order of the network."""
    if not match.alpha:
        return ""
    top = max(max(match.alpha.values()), 1e-12)
    rows = []
    for name, weight in match.alpha.items():
        cost = f"{match.phi[name]:.4g}" if name in (match.phi or {}) else "–"
        rows.append(
            f'<tr><td class="name">{escape(name)}</td><td class="bar"><div '
            f'style="width: {100.0 * weight / top:.2f}%"></div></td>'
            f'<td data-value="{float(weight)!r}">{weight:.3f}</td><td>{cost}</td></tr>'
        )
    return (
        "<section>\n<h2>Layers</h2>\n"
        '<div class="scroll" tabindex="0" role="region" aria-label="Layers">'
        '<table id="layers">\n<thead><tr><th scope="col" class="text">layer</th>'
        '<th aria-hidden="true"></th><th scope="col">weight α</th>'
        '<th scope="col">cost φ</th></tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody>\n</table></div>\n</section>"
    )


def answer_section(match: Matched, sampled: Sampled, heat: HeatRows) -> str:
    """The interval and its status, what was matched, and what the page rounds."""
    n, m = len(match.a), len(match.b)
    facts = [
        ("Method", match.method),
        ("Cells", f"{n:,} of A to {m:,} of B"),
        ("Time", f"{match.seconds:.3g} s"),
    ]
    result = match.result
    if result is None:
        head = "<p>This method solves no transport problem, so there is no interval.</p>"
    else:
        open_badge = "" if result.status.ok else " open"
        head = (
            f'<div class="value">{result.value:.6g}</div>\n<p>is what the plan costs; the optimum '
            f"is proven to lie in <strong>[{result.lower:.8g},&nbsp;{result.upper:.8g}]</strong>, "
            f'a relative gap of <span class="number">{result.gap:.1e}</span>.</p>\n'
            f'<p><span class="badge{open_badge}">'
            f"{escape(str(result.status))}</span> {escape(result.status.sentence)}</p>"
        )
        facts += [
            ("Entropy of α, η", f"{result.eta:g}"),
            ("Entropy of the plan, ε", f"{result.eps:g}"),
            ("Solver", result.solver),
        ]
    note = _approximated(match, sampled, heat)
    return (
        f'<section id="answer">\n<h2>Transport</h2>\n{head}\n<dl>\n{definitions(facts)}\n</dl>\n'
        f'<p class="soft" style="margin: 16px 0 0">{escape(note)}</p>\n</section>'
    )


def _approximated(match: Matched, sampled: Sampled, heat: HeatRows) -> str:
    unit = float(((sampled.high - sampled.low) / 65_535).max()) / 2
    where = "every pixel of A" if sampled.step == 1 else f"every {sampled.step} pixels of A"
    snap = "" if sampled.step == 1 else ", and a click goes to the nearest of these"
    m = len(match.b)
    kept = heat.cells.shape[1]
    rest = (
        f"the {kept:,} best of {m:,} cells to 1/255, the others as means over blocks of "
        f"{heat.block} × {heat.block}"
        if kept < m
        else "all cells to 1/255"
    )
    return (
        f"What is rounded: points were moved beforehand at {where}{snap}; their places in B are "
        f"stored to {max(unit, 0.001):.1g} pixels. The heat map is the mean over the cells of A "
        f"close to the point, over its maximum: of each, {rest}; drawn smoothly between the cells."
    )
