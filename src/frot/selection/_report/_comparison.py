"""The part of the page on one comparison: its interval, its pictures, who corresponds to whom."""

from __future__ import annotations

from html import escape

import numpy as np

from frot._errors import MissingDependencyError
from frot.selection._report._parts import Head, image, number_cell, section, table, text_cell
from frot.selection._report._view import View

__all__ = ["comparison_panel", "comparison_sections"]

MAX_PATIENTS = 300
PARTNERS = 3


def comparison_sections(views: list[View], what: str) -> str:
    """One section; a tab for each comparison if there are several."""
    panels = [comparison_panel(view, what, number) for number, view in enumerate(views)]
    if len(views) == 1:
        return section(views[0].comparison.name, panels[0])
    tabs = "".join(
        f'<button type="button" role="tab" id="tab{number}" aria-controls="panel{number}" '
        f'aria-selected="false">{escape(view.comparison.name)}</button>'
        for number, view in enumerate(views)
    )
    parts = "\n".join(
        f'<div role="tabpanel" id="panel{number}" aria-labelledby="tab{number}">\n'
        f"<h3>{escape(view.comparison.name)}</h3>\n{panel}\n</div>"
        for number, (view, panel) in enumerate(zip(views, panels, strict=True))
    )
    # Shown by the script: without it all panels are there, and tabs would do nothing.
    return section(
        "Comparisons",
        f'<div class="tabs" role="tablist" aria-label="Comparisons" hidden>{tabs}</div>\n{parts}',
    )


def comparison_panel(view: View, what: str, number: int = 0) -> str:
    """Everything on one comparison."""
    result = view.comparison.result
    open_badge = "" if result.status.ok else " open"
    n, m = result.plan.shape
    interval = (
        f"<p>{n:,} samples of <strong>{escape(view.labels[0])}</strong> against {m:,} of "
        f"<strong>{escape(view.labels[1])}</strong>. The plan costs {result.value:.6g}; the "
        f"optimum is proven to lie in "
        f"<strong>[{result.lower:.6g},&nbsp;{result.upper:.6g}]</strong>, a relative gap of "
        f"{result.gap:.1e}. "
        f'<span class="badge{open_badge}">{escape(str(result.status))}</span> '
        f"{escape(result.status.sentence)}</p>\n"
        f"<p>η = {result.eta:.4g}; α has a perplexity of <strong>{result.perplexity:.1f}</strong> "
        f"of {len(result.alpha):,} {what}s, the number that it weighs in effect. "
        f"{result.iterations:,} transport problems in {result.time:.2g} s.</p>"
    )
    return f"{interval}\n{_pictures(view, what)}\n{_correspondents(view, number)}"


def _pictures(view: View, what: str) -> str:
    from frot.selection._report._pictures import draw_heat_map, draw_parts
    from frot.selection._report._plan_pictures import draw_barycentres, draw_correspondence

    first, second = (escape(label) for label in view.labels)
    drawn = (
        (
            f"What the best {what}s cost, and why",
            "Shift is the squared difference of the means, shape the rest of the Wasserstein "
            f"distance of the {what} alone, and misalignment what it pays because one plan serves "
            f"all {what}s.",
            draw_parts,
            f"Shift, shape and misalignment of the best {what}s as stacked bars, and their weights",
        ),
        (
            "The best features by sample",
            f"Samples of {first} are ordered by similarity, those of {second} by whom they "
            "correspond to.",
            draw_heat_map,
            "Heat map of the best features, a column a sample, by class",
        ),
        (
            "Who corresponds to whom",
            f"Each row is a sample of {first}; dark cells are the samples of {second} that the "
            "plan sends it to. Orders are as in the heat map.",
            draw_correspondence,
            "The transport plan between the samples of both classes",
        ),
        (
            "The barycentric map",
            f"Each sample of {first} has an arrow to the mean of those it corresponds to, in two "
            f"principal components of the selected {what}s.",
            draw_barycentres,
            f"Samples in two dimensions, with arrows from {view.labels[0]} to their barycentres",
        ),
    )
    parts = []
    try:
        for title, text, draw, alternative in drawn:
            parts.append(
                f'<h3>{escape(title)}</h3>\n<p class="soft">{text}</p>\n'
                + image(draw(view), alternative)
            )
    except MissingDependencyError as error:
        return f'<p class="soft">No pictures: {escape(str(error))}</p>'
    return "\n".join(parts)


def _correspondents(view: View, number: int) -> str:
    """The plan in words: the main partners of each sample."""
    plan = view.comparison.plan
    n = plan.shape[0]
    rows = []
    order = view.order[0][:MAX_PATIENTS]
    for sample in order:
        mass = np.asarray(plan.rows(np.array([sample]))).ravel()
        share = mass / max(float(mass.sum()), 1e-300)
        best = np.argsort(-share, kind="stable")[:PARTNERS]
        best = best[share[best] > 0.005]
        partners = ", ".join(f"{view.ids[1][j]} ({share[j]:.0%})" for j in best)
        rows.append(
            f"<tr>{text_cell(view.ids[0][sample])}"
            f'<td class="plain">{escape(partners)}</td>'
            f"{number_cell(float((share > 0.005).sum()), '.0f')}</tr>"
        )
    heads = [
        Head(view.labels[0], "text", "ascending"),
        Head(f"main partners in {view.labels[1]}", "text", "ascending"),
        Head("partners", first="ascending"),
    ]
    first = f", the first {MAX_PATIENTS} of {n:,}" if n > MAX_PATIENTS else ""
    made = table(heads, rows, f"partners{number}", "Samples and whom they correspond to")
    return f"<details>\n<summary>Correspondents by name{first}</summary>\n{made}\n</details>"
