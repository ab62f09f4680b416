"""The ranked table of the page, and what the permutation test says."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from frot._errors import MissingDependencyError
from frot.selection._report._parts import Head, image, number_cell, section, table, text_cell

if TYPE_CHECKING:
    from frot.selection._permutation import PermutationTest
    from frot.selection._selector import FROTSelector
    from frot.selection._stability import StabilitySelection

__all__ = ["permutation_section", "ranking_section"]

MAX_ROWS = 500
MAX_SIGNIFICANT = 200


def ranking_section(
    selector: FROTSelector,
    permutation: PermutationTest | None,
    stability: StabilitySelection | None,
    full_table: str,
    what: str,
) -> str:
    """Table of the best features with a box to search in it."""
    order = np.argsort(selector.ranking_)
    shown = order[:MAX_ROWS]
    heads = [
        Head("rank", first="ascending"),
        Head(what, "text", "ascending"),
        Head("score"),
        Head("shift"),
        Head("shape"),
        Head("misalignment"),
        Head("α"),
    ]
    if permutation is not None:
        heads += [Head("p", first="ascending"), Head("q", first="ascending")]
    if stability is not None:
        heads += [Head("frequency")]
    rows = []
    for group in shown:
        cells = [
            number_cell(selector.ranking_[group], ".0f"),
            text_cell(selector.groups_.names[group]),
            number_cell(selector.scores_[group], ".4g"),
            number_cell(selector.shift_[group], ".4f"),
            number_cell(selector.shape_[group], ".4f"),
            number_cell(selector.misalignment_[group], ".4f"),
            number_cell(selector.alpha_[group], ".3g"),
        ]
        if permutation is not None:
            cells += [number_cell(permutation.p[group], ".2g")]
            cells += [number_cell(permutation.q[group], ".2g")]
        if stability is not None:
            cells += [number_cell(stability.frequency[group], ".0%")]
        kept = ' class="kept"' if selector.groups_support_[group] else ""
        rows.append(f"<tr{kept}>{''.join(cells)}</tr>")
    note = f"Selected {what}s have a blue edge. Click a heading to sort, again to turn around."
    if len(shown) < len(order):
        where = f"in {full_table}" if full_table else "the selector's table_, or frot select --out"
        note = (
            f"The best {len(shown):,} of {len(order):,} {what}s; the full table is {where}. {note}"
        )
    tools = (
        f'<div class="tools"><label>Search<input type="search" data-table="ranking" '
        f'data-count="found" placeholder="{what} names" autocomplete="off"></label>'
        '<span id="found" class="soft" role="status" aria-live="polite"></span></div>'
    )
    body = f'<p class="soft">{escape(note)}</p>\n{tools}\n' + table(
        heads, rows, "ranking", f"Ranked {what}s"
    )
    return section(f"Ranked {what}s", body)


def permutation_section(test: PermutationTest, what: str) -> str:
    """Spread of the p-values, and who is significant."""
    count, total = test.null.shape
    kept = {level: int((test.q <= level).sum()) for level in (0.05, 0.1)}
    alone = int((test.p_max <= 0.05).sum())
    figures = (
        '<div class="figures">'
        f"<div><b>{kept[0.05]:,}</b><span>{what}s with q ≤ 0.05</span></div>"
        f"<div><b>{kept[0.1]:,}</b><span>{what}s with q ≤ 0.1</span></div>"
        f"<div><b>{alone:,}</b><span>with max-T p ≤ 0.05, all {what}s together</span></div>"
        "</div>"
    )
    text = (
        f"Labels were permuted {count:,} times and the statistic, {test.statistic}, taken anew "
        f"of all {total:,} {what}s. q is by Benjamini and Hochberg; no p is below "
        f"{1 / (1 + count):.2g}."
    )
    if test.by_feature:
        text += f" The statistic is of one {what} alone, so that each p holds by itself."
    else:
        text += (
            f" The statistic comes from the plan, which serves all {what}s at once: these p-values "
            f"hold only for the hypothesis that nothing differs at all, and are too small for "
            f"single {what}s beside others that do differ. For single {what}s test shift, shape or "
            "wasserstein."
        )
    try:
        from frot.selection._report._pictures import draw_p_values

        picture = image(draw_p_values(test.p, test.statistic), "Histogram of permutation p-values")
    except MissingDependencyError:
        picture = ""
    return section(
        "Permutation test",
        f"{figures}\n<p>{escape(text)}</p>\n{picture}\n{_significant(test, what)}",
    )


def _significant(test: PermutationTest, what: str) -> str:
    order = np.lexsort((-test.observed, test.p))
    order = order[test.q[order] <= 0.1]
    if not len(order):
        return f'<p class="soft">No {what} has q ≤ 0.1.</p>'
    rows = []
    for group in order[:MAX_SIGNIFICANT]:
        cells = [
            text_cell(test.names[group]),
            number_cell(test.observed[group], ".4g"),
            number_cell(test.p[group], ".2g"),
            number_cell(test.q[group], ".2g"),
            number_cell(test.p_max[group], ".2g"),
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    heads = [
        Head(what, "text", "ascending"),
        Head(test.statistic),
        *(Head(name, first="ascending") for name in ("p", "q", "max-T p")),
    ]
    shown = f"the surest {MAX_SIGNIFICANT:,} of " if len(order) > MAX_SIGNIFICANT else ""
    made = table(heads, rows, "significant", f"Significant {what}s")
    return (
        f"<details>\n<summary>The {what}s with q ≤ 0.1 ({shown}{len(order):,})</summary>\n"
        f"{made}\n</details>"
    )
