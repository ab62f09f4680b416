"""The page of a fitted selector: the ranked table, each comparison, the permutation test."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from frot._base.errors import InputError
from frot.selection._inputs import Prepared, prepare
from frot.selection._pictures import (
    View,
    draw_barycentres,
    draw_correspondence,
    draw_heat_map,
    draw_p_values,
    draw_parts,
    view_of,
)
from frot.selection._selector import unfitted
from frot.show.page import Cell, Column, PageTable, check_page, number, picture, render, save_page

if TYPE_CHECKING:
    from frot.selection._permutation import PermutationTest
    from frot.selection._selector import FROTSelector
    from frot.selection._stability import StabilitySelection

__all__ = ["write_selection_report"]

# Rows of the tables, at most.
MAX_ROWS = 500
MAX_SIGNIFICANT = 200
MAX_SAMPLES = 300
# Samples named beside one that they correspond to.
PARTNERS = 3


def write_selection_report(
    selector: FROTSelector,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    permutation: PermutationTest | None = None,
    stability: StabilitySelection | None = None,
    title: str = "Feature selection by robust optimal transport",
    call: str = "",
    command: str = "",
    full_table: str = "",
    feature_names: Sequence[str] | None = None,
    sample_names: Sequence[str] | None = None,
) -> Path:
    """Write a fitted selector as one web page.

    The page has the ranked table, with search and sorting; for each comparison the interval of
    the solve, what the best features' costs are made of, the samples in these, who corresponds
    to whom and the barycentric map; the permutation test; and how to get it all again. It holds
    its pictures itself and asks nothing of the network. Needs the extra ``frot[plot]``; without
    matplotlib the page says that pictures are missing. An existing file is replaced only once the
    page is complete.

    Parameters
    ----------
    selector : FROTSelector
        Fitted on `X` and `y`.
    X : array, sparse array or DataFrame of shape (N, d)
    y : array of shape (N,)
    path : path
        The .html file to write.
    permutation : PermutationTest, optional
        By default the selector's own, if it has one.
    stability : StabilitySelection, optional
    title : str
    call, command : str
        Python code, and a command line, that reproduce the selection; shown as they are.
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
    path = check_page(path)
    if any(one.result is None for one in selector.comparisons_):
        raise InputError("selector: has no plan, which the page shows; fit it with plan=True")
    prepared = _same(selector, X, y)
    if permutation is None:
        permutation = getattr(selector, "permutation_", None)
    for name, found in (("permutation", permutation), ("stability", stability)):
        if found is not None and found.names != selector.groups_.names:
            raise InputError(f"{name}: is of other features than the selector; run it again")
    n, d = prepared.table.shape
    single = len(selector.groups_) == d and selector.groups_.in_order
    what = "feature" if single else "group"
    features = _names(feature_names, d, "feature_names", _default_names(selector, single))
    samples = _names(sample_names, n, "sample_names", [str(i) for i in range(1, n + 1)])
    score = selector.get_params()["score"]
    picks = int(selector.groups_support_.sum())
    views = [
        view_of(one, prepared.table, selector.groups_, score, picks, features, samples)
        for one in selector.comparisons_
    ]
    sizes = np.bincount(prepared.codes)
    classes = ", ".join(
        f"{label} ({size:,})" for label, size in zip(selector.classes_, sizes, strict=True)
    )
    page = render(
        "selection.html",
        "frot.selection",
        title=title,
        subtitle=f"{n:,} samples of {d:,} features: {classes}",
        call=call,
        command=command,
        what=what,
        count=len(selector.scores_),
        full_table=full_table,
        figures=_figures(selector, what),
        facts=_facts(selector, f"{n:,}: {classes}", d, what),
        ranking=_ranking(selector, permutation, stability, what),
        panels=[_panel(view, what, place) for place, view in enumerate(views)],
        test=None if permutation is None else _test(permutation, what),
    )
    return save_page(path, page)


def _same(selector: FROTSelector, X: Any, y: Any) -> Prepared:
    """Check that the data is what the selector was fitted on, as far as can be told."""
    prepared = prepare(unfitted(selector), X, y)
    rows = max(int(part.max()) for one in selector.comparisons_ for part in one.rows)
    if (
        prepared.table.shape[1] != selector.n_features_in_
        or rows >= prepared.table.shape[0]
        or prepared.classes.tolist() != selector.classes_.tolist()
    ):
        raise InputError("X, y: are not what the selector was fitted on; fit it again")
    return prepared


def _default_names(selector: FROTSelector, single: bool) -> Sequence[str]:
    if single:
        return selector.groups_.names
    given = getattr(selector, "feature_names_in_", None)
    if given is not None:
        return [str(name) for name in given]
    return [f"x{column}" for column in range(selector.n_features_in_)]


def _names(
    given: Sequence[str] | None, count: int, argument: str, default: Sequence[str]
) -> Sequence[str]:
    if given is None:
        return default
    if len(given) != count:
        raise InputError(f"{argument}: has {len(given)} names for {count}; give one for each")
    return [str(name) for name in given]


def _figures(selector: FROTSelector, what: str) -> list[tuple[str, str]]:
    """The three numbers above all others."""
    results = [one.solved for one in selector.comparisons_]
    several = len(results) > 1
    perplexity = np.mean([result.perplexity for result in results])
    return [
        (
            f"{int(selector.groups_support_.sum()):,}",
            f"of {len(selector.scores_):,} {what}s selected",
        ),
        (f"{perplexity:,.1f}", f"perplexity of α{', on average' if several else ''}"),
        (
            f"{max(result.gap for result in results):.1e}",
            f"{'largest ' if several else ''}relative gap of the proven interval",
        ),
    ]


def _facts(selector: FROTSelector, samples: str, d: int, what: str) -> list[tuple[str, str]]:
    params = selector.get_params()
    results = [one.solved for one in selector.comparisons_]
    etas = sorted(result.eta for result in results)
    eta = f"{etas[0]:.4g}" if len(etas) == 1 else f"{etas[0]:.4g} to {etas[-1]:.4g}"
    how = ", chosen by the perplexity of α" if params["eta"] == "auto" else ""
    groups = "" if what == "feature" else f" in {len(selector.scores_):,} groups"
    facts = [
        ("Samples", samples),
        ("Features", f"{d:,}{groups}"),
        ("Ranked by", params["score"]),
        ("Scaling", params["scaling"]),
        ("Entropy of α, η", f"{eta}{how}"),
        ("Comparisons", ", ".join(one.name for one in selector.comparisons_)),
    ]
    if len(results) == 1:
        (one,) = results
        facts.append(("Optimum proven in", f"[{one.lower:.8g}, {one.upper:.8g}]"))
        facts.append(("Status", f"{one.status}: {one.status.sentence}"))
    else:
        left = sum(not result.status.ok for result in results)
        ended = "all within the tolerance" if not left else f"{left} not converged"
        facts.append(("Status", f"{len(results)} comparisons, {ended}"))
    return facts


def _ranking(
    selector: FROTSelector,
    permutation: PermutationTest | None,
    stability: StabilitySelection | None,
    what: str,
) -> PageTable:
    """The best features, with a box to search in them."""
    shown = np.argsort(selector.ranking_)[:MAX_ROWS]
    parts = [
        (Column("score"), selector.scores_, ".4g"),
        (Column("shift"), selector.shift_, ".4f"),
        (Column("shape"), selector.shape_, ".4f"),
        (Column("misalignment"), selector.misalignment_, ".4f"),
        (Column("α"), selector.alpha_, ".3g"),
    ]
    if permutation is not None:
        parts.append((Column("p", first="ascending"), permutation.p, ".2g"))
        parts.append((Column("q", first="ascending"), permutation.q, ".2g"))
    if stability is not None:
        parts.append((Column("frequency"), stability.frequency, ".0%"))
    rows = [
        [
            number(selector.ranking_[group], ".0f"),
            Cell(selector.groups_.names[group]),
            *(number(values[group], form) for _, values, form in parts),
        ]
        for group in shown
    ]
    return PageTable(
        [Column("rank", first="ascending"), Column(what, "text"), *(part[0] for part in parts)],
        rows,
        f"Ranked {what}s",
        "ranking",
        search=f"{what} names",
        marked=set(np.flatnonzero(selector.groups_support_[shown]).tolist()),
    )


def _panel(view: View, what: str, place: int) -> dict[str, Any]:
    """What the page says on one comparison: its four pictures, and the plan in words."""
    first, second = view.labels
    return {
        "view": view,
        "parts": picture(
            lambda: draw_parts(view),
            f"Shift, shape and misalignment of the best {what}s as stacked bars, and their weights",
        ),
        "heat_map": picture(
            lambda: draw_heat_map(view),
            "Heat map of the best features, a column a sample, by class",
        ),
        "correspondence": picture(
            lambda: draw_correspondence(view),
            "The transport plan between the samples of both classes",
        ),
        "barycentres": picture(
            lambda: draw_barycentres(view),
            f"Samples in two dimensions, with arrows from {first} to their barycentres",
        ),
        "partners": PageTable(
            [
                Column(first, "text"),
                Column(f"main partners in {second}", "text"),
                Column("partners", first="ascending"),
            ],
            [_partners(view, sample) for sample in view.order[0][:MAX_SAMPLES]],
            "Samples and whom they correspond to",
            f"partners{place}",
        ),
    }


def _partners(view: View, sample: int) -> list[Cell]:
    """The main partners of a sample of the first class, by name and share."""
    mass = np.asarray(view.comparison.plan.rows(np.array([sample]))).ravel()
    share = mass / max(float(mass.sum()), 1e-300)
    best = np.argsort(-share, kind="stable")[:PARTNERS]
    named = (f"{view.ids[1][j]} ({share[j]:.0%})" for j in best if share[j] > 0.005)
    return [
        Cell(view.ids[0][sample]),
        Cell(", ".join(named)),
        number((share > 0.005).sum(), ".0f"),
    ]


def _test(test: PermutationTest, what: str) -> dict[str, Any]:
    """What the page says on the permutation test, and who is significant."""
    count, total = test.null.shape
    text = (
        f"Labels were permuted {count:,} times and the statistic, {test.statistic}, taken anew "
        f"of all {total:,} {what}s. No p is below {1 / (1 + count):.2g}. "
    )
    if test.q_method == "pooled":
        text += (
            f"q is from the permutations of all {what}s together (a pooled null), of which a share "
            f"of {test.pi0:.2f} at most is estimated not to differ; q BH is by Benjamini and "
            "Hochberg."
        )
    else:
        text += "q is by Benjamini and Hochberg."
    if test.by_feature:
        text += f" The statistic is of one {what} alone, so that each p holds by itself."
    else:
        text += (
            f" The statistic comes from the plan, which serves all {what}s at once: these p-values "
            f"hold only for the hypothesis that nothing differs at all, and are too small for "
            f"single {what}s beside others that do differ. For single {what}s test shift, shape or "
            "wasserstein."
        )
    order = test.order[test.q[test.order] <= 0.1]
    columns = [Column(what, "text"), Column(test.statistic)]
    columns += [Column(name, first="ascending") for name in ("p", "q", "q BH", "max-T p")]
    rows = [
        [
            Cell(test.names[group]),
            number(test.observed[group], ".4g"),
            *(number(values[group], ".2g") for values in (test.p, test.q, test.q_bh, test.p_max)),
        ]
        for group in order[:MAX_SIGNIFICANT]
    ]
    return {
        "figures": [
            (f"{(test.q <= 0.05).sum():,}", f"{what}s with q ≤ 0.05"),
            (f"{len(order):,}", f"{what}s with q ≤ 0.1"),
            (f"{(test.p_max <= 0.05).sum():,}", f"with max-T p ≤ 0.05, all {what}s together"),
        ],
        "text": text,
        "picture": picture(
            lambda: draw_p_values(test.p, test.statistic), "Histogram of permutation p-values"
        ),
        "table": PageTable(columns, rows, f"Significant {what}s", "significant"),
        "significant": len(order),
    }
