"""The report page of a fitted selector: what differs, where it is higher, tests, the plan."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from frot._base.errors import InputError
from frot._base.files import check_path
from frot.selection._pictures import (
    SelectorPictures,
    View,
    draw_barycentres,
    draw_correspondence,
    draw_heat_map,
    draw_p_values,
    draw_parts,
)
from frot.selection._plots import LEVEL, Significant, plot_pathways
from frot.show.page import Cell, Column, PageTable, check_page, number, picture, render, save_page
from frot.show.style import shorten

if TYPE_CHECKING:
    from frot.selection._pathway_test import PathwayTest
    from frot.selection._permutation import PermutationTest
    from frot.selection._selector import FROTSelector

# Rows of the tables, at most.
MAX_ROWS = 500
MAX_SIGNIFICANT = 200
# Classes whose means are columns; of more the selector's table_ has them.
MAX_MEANS = 4
# Genes of a leading edge by name.
GENES = 10
# Rows of tables of correspondents, over all comparisons, and the fewest in one.
MAX_SAMPLES, FEWEST_SAMPLES = 300, 30
# Samples named beside one that they correspond to.
PARTNERS = 3
# Colours of pictures that have no colour map, so that pages stay small.
FEW = 256


def write_selection_report(
    selector: FROTSelector,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    permutation: PermutationTest | None = None,
    pictures: str | os.PathLike[str] | None = None,
    title: str = "Feature selection by robust optimal transport",
    command: str = "",
    full_table: str = "",
    feature_names: Sequence[str] | None = None,
    sample_names: Sequence[str] | None = None,
) -> Path:
    """Write a fitted selector as one web page.

    The page begins with how many features differ and in which class they are higher. It has the
    ranked table with fold changes, class means and q-values, with search and sorting; gene sets as
    bars, with their leading edges; for each comparison a volcano, strips of the best features and
    a heat map, and where there is a plan what costs are made of, who corresponds to whom and the
    barycentric map; the permutation test in words; and how to get it all again. Of more than ten
    comparisons the first ten are drawn. It holds its pictures itself and asks nothing of the
    network. Needs the extra ``frot[plot]``; without matplotlib the page says that pictures are
    missing. An existing file is replaced only once the page is complete.

    Parameters
    ----------
    selector : FROTSelector
        Fitted on `X` and `y`, with a plan or without.
    X : array, sparse array or DataFrame of shape (N, d)
    y : array of shape (N,)
    path : path
        The .html file to write.
    permutation : PermutationTest, optional
        By default the selector's own, if it has one.
    pictures : path, optional
        A folder for the pictures as .svg and .pdf too, as `write_selection_pictures` names them.
    title : str
    command : str
        A command line that gives the selection, shown as it is.
    full_table : str
        Where the table of all features is, if the page has only the best 500.
    feature_names : sequence of str, length d, optional
        By default those of the fit.
    sample_names : sequence of str, length N, optional
        By default numbers, from 1.

    Returns
    -------
    pathlib.Path
        The file written.

    Examples
    --------
    >>> import tempfile
    >>> from frot.selection import FROTSelector
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(20, 6)), np.repeat(["sick", "well"], 10)
    >>> selector = FROTSelector(2).fit(X, y)
    >>> page = write_selection_report(selector, X, y, Path(tempfile.mkdtemp()) / "page.html")
    >>> "sick vs well" in page.read_text(encoding="utf-8")
    True
    """
    check_is_fitted(selector)
    path = check_page(path, title=title, command=command)
    folder = None if pictures is None else check_path(pictures, "pictures")
    if permutation is not None and permutation.names != selector.groups_.names:
        raise InputError("permutation: is of other features than the selector; run it again")
    drawn = SelectorPictures.of(selector, X, y, feature_names, sample_names, permutation)
    selector, prepared = drawn.selector, drawn.prepared
    sets, test = selector.tests
    n, d = prepared.table.shape
    what = "feature" if drawn.single else "group"
    sizes = np.bincount(prepared.codes, minlength=len(selector.classes_))
    classes = ", ".join(
        f"{label} ({size:,})" for label, size in zip(selector.classes_, sizes, strict=True)
    )
    samples, accepted = f"{n:,}: {classes}", Significant.of(selector)
    page = render(
        "selection.html",
        "frot.selection",
        title=title,
        subtitle=f"{n:,} samples of {d:,} features: {classes}",
        command=command,
        what=what,
        count=len(selector.scores_),
        full_table=full_table,
        figures=headline(selector, accepted, samples, what),
        counts=counts(selector, accepted, what),
        facts=facts(selector, prepared.score, samples, d, what),
        tested=accepted.tested,
        ranking=ranking(selector, test, what)
        if sets is None
        else pathway_table(sets, selector.groups_support_),
        sets=sets,
        bars=None
        if drawn.single
        else picture(lambda: plot_pathways(selector), "The best groups as bars, by score", FEW),
        panels=[_panel(drawn, place, what) for place in range(len(drawn.views))],
        left_out=len(selector.comparisons_) - len(drawn.views),
        test=None if test is None else permutation_words(test, what),
    )
    if folder is not None:
        drawn.write(folder)
    return save_page(path, page)


def _panel(drawn: SelectorPictures, place: int, what: str) -> dict[str, Any]:
    """What the page says on one comparison: what differs, and the plan if there is one."""
    view, many = drawn.views[place], len(drawn.views)
    pictures = {
        "volcano": (partial(drawn.volcano, place), FEW,
                    "Volcano: log2 fold change of every feature, and how surely it differs"),
        "strips": (partial(drawn.strips, place), FEW,
                   "Values of the best features by class, one point per sample"),
        "heat_map": (partial(draw_heat_map, view), None,
                     "Heat map of the best features, one column per sample, by class"),
    }  # fmt: skip
    return {
        "view": view,
        "undrawn": int(np.isnan(view.comparison.log2_fold_change).sum()) * (what == "feature"),
        **{name: picture(draw, text, few) for name, (draw, few, text) in pictures.items()},
        "plan": None if view.comparison.result is None else _plan(view, what, place, many),
    }


def _plan(view: View, what: str, place: int, many: int) -> dict[str, Any]:
    """What the page says on a plan, and its pictures."""
    first, second = view.labels
    pictures = {
        "parts": (draw_parts, FEW, f"Shift, shape and misalignment of the best {what}s as stacked "
                  "bars, and their weights"),
        "correspondence": (draw_correspondence, None,
                           "The transport plan between the samples of both classes"),
        "barycentres": (draw_barycentres, FEW,
                        f"Samples in two dimensions, with arrows from {first} to their "
                        "barycentres"),
    }  # fmt: skip
    samples = view.order[0][: max(MAX_SAMPLES // many, FEWEST_SAMPLES)]
    named, counts = zip(*(_partners(view, sample) for sample in samples), strict=True)
    columns: list[PageColumn] = [
        (Column(first, "text"), [view.ids[0][sample] for sample in samples], ""),
        (Column(f"main partners in {second}", "text"), named, ""),
        (Column("partners", first="ascending"), counts, ".0f"),
    ]
    caption = "Samples and whom they correspond to"
    return {
        **{key: picture(partial(draw, view), text, few)
           for key, (draw, few, text) in pictures.items()},
        "partners": _page_table(columns, caption, f"partners{place}"),
    }  # fmt: skip


def _partners(view: View, sample: int) -> tuple[str, int]:
    """The main partners of a sample of the first class by name and share, and how many it has."""
    mass = np.asarray(view.comparison.plan.rows(np.array([sample]))).ravel()
    share = mass / max(float(mass.sum()), 1e-300)
    best = np.argsort(-share, kind="stable")[:PARTNERS]
    named = (f"{view.ids[1][j]} ({share[j]:.0%})" for j in best if share[j] > 0.005)
    return ", ".join(named), int((share > 0.005).sum())


# A heading, a value for each row, and how numbers are written.
PageColumn = tuple[Column, Iterable[Any], str]


def _page_table(columns: Sequence[PageColumn], caption: str, key: str, **more: Any) -> PageTable:
    cells = [
        [
            number(value, form)
            if column.kind == "number"
            else Cell(shorten(value) if column.short else value)
            for value in values
        ]
        for column, values, form in columns
    ]
    heads = [column for column, _, _ in columns]
    return PageTable(heads, list(zip(*cells, strict=True)), caption, key, **more)


def headline(selector: FROTSelector, found: Significant, samples: str, what: str) -> list[Any]:
    """Return the numbers above all others: how many features differ, and where they are higher."""
    sets, _ = selector.tests
    total = len(found.accepted)
    text = f"of {total:,} {what}s "
    if not found.tested:
        text += "selected; nothing was tested"
    elif sets is not None:
        text += f"differ more than others at FDR {LEVEL:g} (competitive q)"
    else:
        text += f"differ at FDR {LEVEL:g} (q ≤ {LEVEL:g})"
    figures = [(f"{int(found.accepted.sum()):,}", text)]
    if len(selector.comparisons_) == 1:
        (one,) = selector.comparisons_
        up = found.up_in[found.accepted]
        figures += [
            (f"{int((up == label).sum()):,}", f"of them up in {shorten(label, 40)}")
            for label in one.labels
        ]
        neither = int((~np.isin(up.astype(str), one.labels)).sum())
        if neither:
            figures.append((f"{neither:,}", "in neither direction, or in both"))
    else:
        figures.append((f"{len(selector.classes_):,}", "classes"))
    if sets is not None:
        differ = int((sets.q_self_contained <= LEVEL).sum())
        figures.append((f"{differ:,}", f"differ at all at FDR {LEVEL:g} (self-contained q)"))
    count, _, classes = samples.partition(": ")
    several = len(selector.classes_) > MAX_MEANS
    figures.append((count, "samples" if several else f"samples: {classes}"))
    return figures


def counts(selector: FROTSelector, found: Significant, what: str) -> PageTable | None:
    """Return how many stand out in each comparison, where there are several."""
    if len(selector.comparisons_) == 1:
        return None
    each = selector.comparisons_
    ups = [found.up_in[found.accepted & (found.comparison == at)] for at in range(len(each))]
    neither = [(one.labels[0], "mixed", "") for one in each]
    of = f"q ≤ {LEVEL:g}" if found.tested else "selected"
    columns: list[PageColumn] = [
        (Column("comparison", "text"), [one.name for one in each], ""),
        (Column(f"{what}s ({of})"), map(len, ups), ",.0f"),
        (Column("up in the first"),
         [(up == one.labels[0]).sum() for up, one in zip(ups, each, strict=True)], ",.0f"),
        (Column("down"),
         [(~np.isin(up.astype(str), no)).sum() for up, no in zip(ups, neither, strict=True)],
         ",.0f"),
        (Column("samples", "text"),
         [" + ".join(f"{size:,}" for size in one.sizes) for one in each], ""),
    ]  # fmt: skip
    caption = f"{what.capitalize()}s that stand out in each comparison"
    return _page_table(columns, caption, "counts")


def facts(
    selector: FROTSelector, score: str, samples: str, d: int, what: str
) -> list[tuple[str, str]]:
    """Return what was ranked and how, and the optimiser's facts where there is a plan."""
    params = selector.get_params()
    groups = "" if what == "feature" else f" in {len(selector.scores_):,} groups"
    picked = int(selector.groups_support_.sum())
    told = [
        ("Samples", samples),
        ("Features", f"{d:,}{groups}"),
        ("Selected", f"{picked:,} {what}{'' if picked == 1 else 's'}"),
        ("Ranked by", SCORE_NAMES.get(score, score)),
        ("Scaling", params["scaling"]),
        ("Comparisons", ", ".join(one.name for one in selector.comparisons_)),
    ]
    results = [one.result for one in selector.comparisons_ if one.result is not None]
    if not results:
        return [*told, ("Plan", f"{selector.comparisons_[0].about_plan}: plan=True makes one")]
    etas = sorted(result.eta for result in results)
    eta = f"{etas[0]:.4g}" if len(etas) == 1 else f"{etas[0]:.4g} to {etas[-1]:.4g}"
    how = ", chosen by the perplexity of α" if params["eta"] == "auto" else ""
    mean = np.mean([result.perplexity for result in results])
    several = len(results) > 1
    told += [
        ("Entropy of α, η", f"{eta}{how}"),
        (f"Perplexity of α{', on average' if several else ''}", f"{mean:,.1f}"),
        (
            f"{'Largest relative' if several else 'Relative'} gap of the proven interval",
            f"{max(result.gap for result in results):.1e}",
        ),
    ]
    if len(selector.comparisons_) == 1:
        (one,) = results
        told.append(("Optimum proven in", f"[{one.lower:.8g}, {one.upper:.8g}]"))
        told.append(("Status", f"{one.status}: {one.status.sentence}"))
    else:
        left = sum(not result.status.ok for result in results)
        ended = "all within the tolerance" if not left else f"{left} not converged"
        told.append(("Status", f"{len(results)} plans, {ended}"))
    return told


SCORE_NAMES = {
    "moderated": "moderated |t|",
    "t": "Welch's |t|",
    "set": "set score, which no size favours",
    "alpha": "weight α in the plan",
    "phi": "cost φ of the plan",
}


def ranking(
    selector: FROTSelector,
    permutation: PermutationTest | None,
    what: str,
) -> PageTable:
    """Return the best features, with a box to search in them."""
    order = np.argsort(selector.ranking_)[:MAX_ROWS]
    table = selector.table_
    columns: list[PageColumn] = []

    def add(title: str, values: Any, form: str = "", **look: Any) -> None:
        columns.append((Column(title, **look), np.asarray(values)[:MAX_ROWS].tolist(), form))

    add("rank", np.arange(1, len(order) + 1), ".0f", first="ascending")
    add(what, [selector.groups_.names[group] for group in order], kind="text")
    if "comparison" in table:
        add("comparison", table["comparison"], kind="text", short=True)
    add("up in", table["up_in"], kind="text", short=True)
    add("log2 FC", table["log2_fold_change"], "+.2f")
    add("t", table["t"], "+.2f")
    if len(selector.classes_) <= MAX_MEANS:
        for name in table:
            if str(name).startswith("mean_"):
                add(f"mean {shorten(str(name)[5:], 20)}", table[name], ".4g")
    if permutation is not None:
        titles = {"p": "p", "q": "q", "q_bh": "q BH", "p_max": "max-T p"}
        for name, title in titles.items():
            add(title, getattr(permutation, name)[order], ".2g", first="ascending")
    add("score", table["score"], ".4g")
    if any(one.result is not None for one in selector.comparisons_):
        for name in ("shift", "shape", "misalignment"):
            add(name, table[name], ".4f")
        add("α", table["alpha"], ".3g")
    marked = set(np.flatnonzero(selector.groups_support_[order]).tolist())
    more = {"search": f"{what} names", "marked": marked}
    return _page_table(columns, f"Ranked {what}s", "ranking", **more)


def pathway_table(test: PathwayTest, marked: np.ndarray) -> PageTable:
    """Return the sets by their test, with direction, leading edge and who is much the same."""
    order, like = test.order[:MAX_ROWS], test.redundancy()
    edges = [[test.feature_names[column] for column in test.edges[group]] for group in order]
    columns: list[PageColumn] = []

    def add(title: str, values: Any, form: str = "", **look: Any) -> None:
        columns.append((Column(title, **look), values, form))

    add("rank", range(1, len(order) + 1), ".0f", first="ascending")
    add("set", [test.names[group] for group in order], kind="text")
    add("score", test.score[order], ".2f")
    add("up in", [test.up_in[group] for group in order], kind="text", short=True)
    if len(set(test.contrast)) > 1:
        add("comparison", [test.contrast[group] for group in order], kind="text", short=True)
    add("direction", test.direction[order], "+.2f")
    add("size", test.groups.sizes[order], ".0f")
    add("coverage", test.groups.coverage[order], ".0%")
    tested = {
        "p competitive": test.p_competitive,
        "q competitive": test.q_competitive,
        "p self-cont.": test.p_self_contained,
        "q self-cont.": test.q_self_contained,
    }
    for title, values in tested.items():
        add(title, values[order], ".2g", first="ascending")
    more = [f" +{len(edge) - GENES}" if len(edge) > GENES else "" for edge in edges]
    shown = [", ".join(edge[:GENES]) + rest for edge, rest in zip(edges, more, strict=True)]
    add("leading edge", shown, kind="text")
    same = [f"{name} ({share:.0%})" if name else "" for name, share in (like[at] for at in order)]
    add("redundant with", same, kind="text")
    edge = set(np.flatnonzero(marked[order]).tolist())
    look = {"search": "set names", "marked": edge}
    return _page_table(columns, "Sets by their test", "ranking", **look)


def permutation_words(test: PermutationTest, what: str) -> dict[str, Any]:
    """Return what the page says on the permutation test, and who is significant."""
    count, total = test.null.shape
    text = [
        f"Labels were permuted {count:,} times and the statistic, {test.statistic}, taken anew "
        f"of all {total:,} {what}s. No p is below {1 / (1 + count):.2g}."
    ]
    if test.q_method == "pooled":
        text.append(
            f"q is from the permutations of all {what}s together (a pooled null), of which a share "
            f"of {test.pi0:.2f} at most is estimated not to differ; q BH is by Benjamini and "
            "Hochberg."
        )
    else:
        text.append("q is by Benjamini and Hochberg.")
    if test.needed > count:
        text.append(
            f"{count:,} permutations are too few: {int(test.outstanding.sum()):,} {what}s stand "
            f"out against all of them, but no q can be below {test.q.min():.2g}; {test.needed:,} "
            f"would allow {LEVEL:g}."
        )
    elif (test.q <= LEVEL).any():
        text.append(f"So many permutations are enough for a q of {LEVEL:g}.")
    else:
        text.append(f"More permutations would hardly help: no {what} has q ≤ {LEVEL:g}.")
    if test.by_feature:
        text.append(f"The statistic is of one {what} alone, so that each p holds by itself.")
    else:
        text.append(
            f"The statistic comes from the plan, which serves all {what}s at once: these p-values "
            f"hold only for the hypothesis that nothing differs at all, and are too small for "
            f"single {what}s beside others that do differ. For single {what}s test t, shape or "
            "wasserstein."
        )
    order = test.order[test.q[test.order] <= 0.1]
    shown = order[:MAX_SIGNIFICANT]
    tested = {"p": test.p, "q": test.q, "q BH": test.q_bh, "max-T p": test.p_max}
    columns: list[PageColumn] = [
        (Column(what, "text"), [test.names[group] for group in shown], ""),
        (Column(test.statistic), test.observed[shown], ".4g"),
        *((Column(name, first="ascending"), p[shown], ".2g") for name, p in tested.items()),
    ]
    return {
        "figures": [
            (f"{(test.q <= LEVEL).sum():,}", f"{what}s with q ≤ {LEVEL:g}"),
            (f"{len(order):,}", f"{what}s with q ≤ 0.1"),
            (f"{(test.q_bh <= LEVEL).sum():,}", f"with Benjamini-Hochberg q ≤ {LEVEL:g}"),
            (f"{(test.p_max <= LEVEL).sum():,}", f"with max-T p ≤ {LEVEL:g}, all {what}s together"),
        ],
        "text": " ".join(text),
        "picture": picture(
            lambda: draw_p_values(test.p, test.statistic), "Histogram of permutation p-values"
        ),
        "table": _page_table(columns, f"Significant {what}s", "significant"),
        "significant": len(order),
    }
