"""The report page of a fitted selector: what differs, where it is higher, and how it was found."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from frot.selection._comparison import Comparison
from frot.selection._null import benjamini_hochberg
from frot.selection._permutation import LEVEL
from frot.selection._plots import (
    Drawn,
    Significant,
    draw_heat_map,
    draw_strips,
    plot_pathways,
    plot_volcano,
    shape_strip,
    strips_of,
)
from frot.show.page import Cell, Column, PageTable, check_page, number, picture, render, save_page
from frot.show.style import shorten

if TYPE_CHECKING:
    from frot.selection._pathway_test import PathwayTest
    from frot.selection._selector import FROTSelector
    from frot.selection._shape_test import ShapeTest

# Rows of the table, and comparisons that are drawn: a page of more would be too large to send.
MAX_ROWS, MAX_DRAWN = 100, 10
# Colours of pictures that have no colour map, so that pages stay small.
FEW = 256


def write_selection_report(
    selector: FROTSelector,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    title: str = "What differs between the classes",
    command: str = "",
    full_table: str = "",
    feature_names: Sequence[str] | None = None,
    sample_names: Sequence[str] | None = None,
) -> Path:
    """Write a fitted selector as one web page.

    The page begins with how many features differ and in which class they are higher; with gene
    sets that were tested, or else with the ranked table, which has search and sorting. For each
    comparison there are a volcano, strips of the best features and a heat map; then features whose
    form differs, where `shape_test` was run; a sentence for a methods section; and last, details of
    the plan. It holds its pictures itself and asks nothing of the network. Of more than ten
    comparisons the first ten are drawn. Needs the extra ``frot[plot]``; without matplotlib the page
    says that pictures are missing. An existing file is replaced only once the page is complete.

    Parameters
    ----------
    selector : FROTSelector
        Fitted on `X` and `y`, with whatever tests were run of it.
    X : array, sparse array or DataFrame of shape (N, d)
    y : array of shape (N,)
    path : path
        The .html file to write.
    title : str
    command : str
        A command line that gives the selection, shown as it is.
    full_table : str
        Where the table of all features is, if the page has only the best 100.
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
    drawn = Drawn.of(selector, X, y, feature_names, sample_names)
    significant = Significant.of(selector)
    sets, _ = selector.tests
    what = "feature" if selector.single else "set"
    n, d = drawn.prepared.table.shape
    sizes = np.bincount(drawn.prepared.codes)
    classes = ", ".join(
        f"{label} ({size:,})" for label, size in zip(selector.classes_, sizes, strict=True)
    )
    within = ", within blocks" if selector.block_ is not None else ""
    several = selector.comparisons_[:MAX_DRAWN]
    page = render(
        "selection.html",
        "frot.selection",
        title=title,
        subtitle=f"{n:,} samples of {d:,} features: {classes}{within}",
        command=command,
        what=what,
        count=len(selector.scores_),
        full_table=full_table,
        figures=headline(selector, significant, what),
        power=power(selector, significant),
        counts=counts(selector, significant, what),
        ranking=ranking(selector) if sets is None else pathway_table(sets),
        sets=sets,
        bars=None
        if sets is None
        else picture(lambda: plot_pathways(sets), "The best sets as bars, by score", FEW),
        panels=[_panel(drawn, place) for place in range(len(several))],
        left_out=len(selector.comparisons_) - len(several),
        shape=_shape(drawn, vars(selector).get("shape_")),
        methods=methods(selector, drawn.prepared.values),
        details=details(selector),
        plans=plan_table(selector),
    )
    return save_page(path, page)


def _panel(drawn: Drawn, place: int) -> dict[str, Any]:
    """What the page says on one comparison."""
    comparison, best = drawn.selector.comparisons_[place], drawn.best(place, 12)
    return {
        "comparison": comparison,
        "undrawn": int(np.isnan(comparison.feature_changes).sum()),
        "volcano": picture(
            partial(plot_volcano, drawn.selector, place),
            "Volcano: log2 fold change of every feature, and how surely it differs",
            FEW,
        ),
        "strips": picture(
            lambda: draw_strips(strips_of(drawn, place, best)),
            "Values of the best features by class, one point per sample",
            FEW,
        ),
        "heat_map": picture(
            partial(draw_heat_map, drawn, place),
            "Heat map of the best features, one column per sample, by class",
        ),
    }


def _shape(drawn: Drawn, test: ShapeTest | None) -> dict[str, Any] | None:
    """What the page says on differences of spread and form."""
    if test is None:
        return None
    best = [column for column in test.order[:6].tolist() if test.q_form[column] <= LEVEL]
    contrast = drawn.selector.comparisons_[0].contrast
    labels = np.where(contrast.is_first, *test.labels)
    strips = [shape_strip(test, drawn.values(0, [column])[:, 0], labels, column) for column in best]
    lines = []
    for column in best:
        rows = test.subgroups[column]
        more = f" and {len(rows) - 12} more" if len(rows) > 12 else ""
        named = ", ".join(str(drawn.samples[row]) for row in rows[:12].tolist())
        lines.append(
            f"{drawn.names[column]}: {len(rows)} of {test.subgroup_in[column]} ({named}{more})"
        )
    return {
        "test": test,
        "form": int((test.q_form <= LEVEL).sum()),
        "spread": int((test.q_spread <= LEVEL).sum()),
        "lines": lines,
        "picture": picture(
            lambda: draw_strips(strips),
            "Features whose form differs, by class; rings are the samples of the subgroup",
            FEW,
        )
        if best
        else None,
    }


# A heading, a value for each row, and how numbers are written.
PageColumn = tuple[Column, Iterable[Any], str]


def _page_table(columns: Sequence[PageColumn], caption: str, key: str, **more: Any) -> PageTable:
    cells = [
        [
            number(value, form)
            if column.kind == "number"
            else Cell(shorten(str(value), 20) if column.short else str(value))
            for value in values
        ]
        for column, values, form in columns
    ]
    heads = [column for column, _, _ in columns]
    return PageTable(heads, list(zip(*cells, strict=True)), caption, key, **more)


def headline(selector: FROTSelector, significant: Significant, what: str) -> list[tuple[str, str]]:
    """Return the numbers above all others: how many features differ, and where they are higher."""
    sets, test = selector.tests
    text = f"of {len(significant.accepted):,} {what}s "
    if not significant.tested:
        text += "selected; nothing was tested"
    elif sets is not None:
        text += f"differ more than others at FDR {LEVEL:g} (competitive q)"
    else:
        text += f"differ at FDR {LEVEL:g} (q ≤ {LEVEL:g})"
    figures = [(f"{int(significant.accepted.sum()):,}", text)]
    labels, many = np.unique(
        significant.up_in[significant.accepted].astype(str), return_counts=True
    )
    figures += [
        (f"{many[place]:,}", f"of them up in {shorten(str(labels[place]), 40)}")
        for place in np.argsort(-many)[:4]
    ]
    if test is not None:
        strict = int((test.p_max <= LEVEL).sum())
        figures.append((f"{strict:,}", f"with max-T p ≤ {LEVEL:g}, for all {what}s together"))
    if sets is not None:
        differ = int((sets.q_self_contained <= LEVEL).sum())
        figures.append((f"{differ:,}", f"differ at all at FDR {LEVEL:g} (self-contained q)"))
    return figures


def power(selector: FROTSelector, significant: Significant) -> str:
    """Return what could have been seen, where nothing was; else nothing."""
    sets, _ = selector.tests
    if sets is not None:
        return sets.power
    if not significant.tested or significant.accepted.any():
        return ""
    comparison = selector.comparisons_[0]
    effects, count = comparison.effects, int((~comparison.effects.constant).sum())
    # Where a single feature has a q of .05, by Benjamini and Hochberg.
    df = max(min(effects.df + effects.prior[0], 1e6), 1.0)
    needed = float(stats.t.isf(0.5 * LEVEL / max(count, 1), df)) / np.sqrt(effects.information)
    return (
        f"None of {count:,} features has q ≤ {LEVEL:g}: one alone that differs by {needed:.1f} "
        f"standard deviations between {' and '.join(comparison.labels)} would have in every second "
        "such study."
    )


def counts(selector: FROTSelector, significant: Significant, what: str) -> PageTable | None:
    """Return how many differ in each comparison, where there are several."""
    each = selector.comparisons_
    if len(each) == 1:
        return None
    columns: list[PageColumn] = [
        (Column("comparison", "text"), [comparison.name for comparison in each], "")
    ]
    if selector.single:
        accepted = [benjamini_hochberg(comparison.effects.p) <= LEVEL for comparison in each]
        pairs = list(zip(accepted, each, strict=True))
        higher = [int((comparison.t[some] > 0.0).sum()) for some, comparison in pairs]
        lower = [int((comparison.t[some] < 0.0).sum()) for some, comparison in pairs]
        columns.append((Column(f"{what}s up (q ≤ {LEVEL:g})"), higher, ",.0f"))
        columns.append((Column("down"), lower, ",.0f"))
    else:
        many = [
            int((significant.accepted & (significant.comparison == index)).sum())
            for index in range(len(each))
        ]
        columns.append((Column(f"{what}s"), many, ",.0f"))
    sizes = [" + ".join(f"{n:,}" for n in comparison.sizes) for comparison in each]
    columns.append((Column("samples", "text"), sizes, ""))
    return _page_table(columns, f"{what.capitalize()}s that differ in each comparison", "counts")


def ranking(selector: FROTSelector) -> PageTable:
    """Return the best features, with a box to search in them."""
    table = selector.table_[:MAX_ROWS]
    what = "feature" if selector.single else "set"
    columns: list[PageColumn] = []

    def add(title: str, name: str, form: str = "", **look: Any) -> None:
        if name in table:
            columns.append((Column(title, **look), table[name].tolist(), form))

    add("rank", "rank", ".0f", first="ascending")
    add(what, "feature", kind="text")
    add("comparison", "comparison", kind="text", short=True)
    add("up in", "up_in", kind="text", short=True)
    add("log2 FC", "log2_fold_change", "+.2f")
    add("t", "t", "+.2f")
    if not selector.single:
        add("score", "score", ".3g")
    elif vars(selector)["score"] == "alpha":
        add("α", "score", ".3g")
    add("p", "p", ".2g", first="ascending")
    add("q", "q", ".2g", first="ascending")
    add("max-T p", "p_max", ".2g", first="ascending")
    # The means of more classes would make the table wider than a screen.
    if len(selector.classes_) <= 2:
        for name in [name for name in table if name.startswith("mean_")]:
            add(f"mean {shorten(name[5:], 12)}", name, ".4g")
    add("form q", "q_form", ".2g", first="ascending")
    add("spread q", "q_spread", ".2g", first="ascending")
    order = np.argsort(selector.ranking_)[:MAX_ROWS]
    marked = set(np.flatnonzero(selector.groups_support_[order]).tolist())
    look: dict[str, Any] = {"search": f"{what} names", "marked": marked}
    return _page_table(columns, f"Ranked {what}s", "ranking", **look)


def pathway_table(test: PathwayTest) -> PageTable:
    """Return the sets by their test, with direction, leading edge and who is much the same."""
    order, like = test.order[:MAX_ROWS], test.redundancy()
    columns: list[PageColumn] = []

    def add(title: str, values: Any, form: str = "", **look: Any) -> None:
        columns.append((Column(title, **look), values, form))

    add("rank", range(1, len(order) + 1), ".0f", first="ascending")
    add("set", [test.names[group] for group in order], kind="text")
    add("score", test.score[order], ".2f")
    add("up in", [test.up_in[group] for group in order], kind="text", short=True)
    if len(set(test.contrast)) > 1:
        add("comparison", [test.contrast[group] for group in order], kind="text")
    add("size", test.groups.sizes[order], ".0f")
    add("p", test.p_competitive[order], ".2g", first="ascending")
    add("q", test.q_competitive[order], ".2g", first="ascending")
    add("q self", test.q_self_contained[order], ".2g", first="ascending")
    edges = []
    for group in order:
        genes = [test.feature_names[column] for column in test.edges[group]]
        more = f" +{len(genes) - 8}" if len(genes) > 8 else ""
        edges.append(", ".join(genes[:8]) + more if genes else f"none: {test.remarks[group]}")
    add("leading edge", edges, kind="text")
    same = [
        f"{name} ({share:.0%})" if name else "" for name, share in (like[index] for index in order)
    ]
    add("same as", same, kind="text")
    marked = set(np.flatnonzero(test.q_competitive[order] <= LEVEL).tolist())
    return _page_table(columns, "Sets by their test", "ranking", search="set names", marked=marked)


def methods(selector: FROTSelector, values: str) -> str:
    """Return a sentence for a methods section."""
    sets, test = selector.tests
    blocks = " and block" if selector.block_ is not None else ""
    logs = {"log2": " (log2 values)", "log1p": " (log(1 + x) values)", "linear": ""}[values]
    within = " within blocks" if selector.block_ is not None else ""
    names = ", ".join(comparison.name for comparison in selector.comparisons_[:3])
    names += ", ..." if len(selector.comparisons_) > 3 else ""
    parts = []
    if selector.single:
        parts.append(
            f"Features{logs} were compared ({names}) by a moderated t-test of a linear model with "
            f"class{blocks} (Smyth 2004)"
        )
        if test is None:
            parts[0] += "; q-values are by Benjamini and Hochberg (1995)"
        else:
            parts[0] += (
                f"; p- and q-values are from {test.n_permutations:,} permutations of the "
                f"labels{within} of Welch's t, q with the pooled null (Tusher et al. 2001)"
            )
    if vars(selector)["score"] == "alpha":
        parts.append("Features were ranked by their weights in feature-robust optimal transport")
    if sets is not None:
        parts.append(
            f"{len(sets.names):,} sets of genes were compared ({names}) by {sets.n_permutations:,} "
            f"permutations of the labels{within}: each set's mean excess of Welch's t, "
            "restandardised (Efron and Tibshirani 2007), against random sets (competitive) and "
            "against no difference (self-contained)"
        )
        if sets.note:
            parts.append(sets.note)
    if "shape_" in vars(selector):
        parts.append(
            "Differences of spread and form were tested by Neyman's smooth test on the ranks of "
            f"aligned classes, with {selector.shape_.n_permutations:,} permutations"
        )
    return ". ".join(parts) + f" (frot {version('frot')})."


def details(selector: FROTSelector) -> list[tuple[str, str]]:
    """Return what was ranked and how, and the optimiser's facts where there is a plan."""
    params = selector.get_params()
    picked = int(selector.groups_support_.sum())
    by = "weight α in the plan" if params["score"] == "alpha" else "moderated t"
    if params["score"] != "alpha" and not selector.single:
        by = "set score, which no size favours"
    effects = selector.comparisons_[0].effects
    told = [
        ("Ranked by", by),
        ("Selected", f"{picked:,}{'' if selector.tests[0] else ', with a blue edge in the table'}"),
        ("Degrees of freedom of t", f"{effects.df:,} and {effects.prior[0]:,.1f} of the prior"),
    ]
    solved = [comparison for comparison in selector.comparisons_ if comparison.result is not None]
    if not solved:
        return [*told, ("Plan", f"{selector.comparisons_[0].about_plan}: plan=True makes one")]
    told += [("Scaling", params["scaling"])]
    for comparison in solved[:MAX_DRAWN]:
        result = comparison.solved
        told.append(
            (
                f"Plan, {comparison.name}",
                f"{comparison.about_plan}; η {result.eta:.3g}, α weighs "
                f"{_perplexity(comparison):,.1f} in effect; optimum in [{result.lower:.6g}, "
                f"{result.upper:.6g}], gap {result.gap:.1e}, {result.status}",
            )
        )
    return told


def _perplexity(comparison: Comparison) -> float:
    alpha = comparison.alpha[comparison.alpha > 0.0]
    return float(np.exp(-alpha @ np.log(alpha)))


def plan_table(selector: FROTSelector) -> PageTable | None:
    """Return what the worst case weighs most, and what these costs are made of."""
    if np.isnan(selector.alpha_).all():
        return None
    heaviest = np.argsort(-selector.alpha_, kind="stable")[:20]
    table = selector.table_.set_index("feature")
    names = [selector.groups_.names[group] for group in heaviest]
    columns: list[PageColumn] = [
        (Column("feature" if selector.single else "set", "text"), names, ""),
        (Column("α"), selector.alpha_[heaviest], ".3g"),
    ]
    columns += [
        (Column(name), table.loc[names, name].tolist(), ".3f")
        for name in ("shift", "shape", "misalignment")
    ]
    return _page_table(columns, "The heaviest in the worst case", "weights")
