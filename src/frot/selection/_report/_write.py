"""Fill the page from a fitted selector and write it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timezone
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from frot._errors import InputError
from frot._files import replacing
from frot._report._parts import definitions
from frot.selection._prepared import Prepared, prepare
from frot.selection._report._comparison import comparison_sections
from frot.selection._report._page import PAGE
from frot.selection._report._parts import section
from frot.selection._report._ranking import permutation_section, ranking_section
from frot.selection._report._view import view_of
from frot.selection._selector import unfitted

if TYPE_CHECKING:
    from frot.selection._permutation import PermutationTest
    from frot.selection._selector import FROTSelector
    from frot.selection._stability import StabilitySelection

__all__ = ["write_selection_report"]


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
    its pictures itself and asks nothing of the network. Pictures need matplotlib; without it the
    page says so. An existing file is replaced only once the page is complete.

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
    path = Path(path)
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
    body = [
        _summary(selector, classes, n, d, what),
        ranking_section(selector, permutation, stability, full_table, what),
        comparison_sections(views, what),
        "" if permutation is None else permutation_section(permutation, what),
        _notes(what, permutation is not None, len(views)),
        _calls(call, command),
    ]
    page = PAGE.substitute(
        title=escape(title),
        subtitle=escape(f"{n:,} samples of {d:,} features: {classes}"),
        body="\n".join(part for part in body if part),
        footer=f"frot {version('frot')} · {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC",
    )
    with replacing(path) as draft:
        draft.write_text(page, encoding="utf-8")
    return path


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


def _summary(selector: FROTSelector, classes: str, n: int, d: int, what: str) -> str:
    params = selector.get_params()
    results = [one.result for one in selector.comparisons_]
    worst = max(results, key=lambda result: result.gap)
    count, total = int(selector.groups_support_.sum()), len(selector.scores_)
    perplexity = np.mean([result.perplexity for result in results])
    several = len(results) > 1
    figures = (
        '<div class="figures">'
        f"<div><b>{count:,}</b><span>of {total:,} {what}s selected</span></div>"
        f"<div><b>{perplexity:,.1f}</b><span>perplexity of α{', on average' if several else ''}"
        f"</span></div>"
        f"<div><b>{worst.gap:.1e}</b><span>{'largest ' if several else ''}relative gap of the "
        "proven interval</span></div></div>"
    )
    etas = sorted(result.eta for result in results)
    eta = f"{etas[0]:.4g}" if len(etas) == 1 else f"{etas[0]:.4g} to {etas[-1]:.4g}"
    how = ", chosen by the perplexity of α" if params["eta"] == "auto" else ""
    open_count = sum(not result.status.ok for result in results)
    facts = [
        ("Samples", f"{n:,}: {classes}"),
        ("Features", f"{d:,}" + ("" if what == "feature" else f" in {total:,} groups")),
        ("Ranked by", params["score"]),
        ("Scaling", params["scaling"]),
        ("Entropy of α, η", f"{eta}{how}"),
        ("Comparisons", ", ".join(one.name for one in selector.comparisons_)),
    ]
    if not several:
        facts.append(("Optimum proven in", f"[{worst.lower:.8g}, {worst.upper:.8g}]"))
        facts.append(("Status", f"{worst.status}: {worst.status.sentence}"))
    else:
        ended = "all within the tolerance" if not open_count else f"{open_count} not converged"
        facts.append(("Status", f"{len(results)} comparisons, {ended}"))
    return section("Summary", f"{figures}\n<dl>\n{definitions(facts)}\n</dl>")


def _notes(what: str, tested: bool, comparisons: int) -> str:
    notes = [
        "For prediction this ranking is about as accurate as that of the mean difference (an F "
        "test), not more. What it adds is the plan between samples, the parts of each cost, and "
        "groups.",
        f"Scores, α and φ describe these samples; they are no p-values. α weighs {what}s so that "
        "transport is as dear as it can be, and η decides how many share the weight: a small α is "
        "no proof that nothing differs.",
        "Who corresponds to whom is a property of the two sets of samples and of the scaling, not "
        "a claim about any two patients.",
        f"An accuracy measured on samples that also chose the {what}s is too good. Put the "
        "selector into a pipeline, and cross-validate that.",
    ]
    if what == "group":
        notes.append(
            "Groups that overlap, or are large, take weight from each other; costs are means over "
            "the features of a group unless sums were asked for. A group's shift with a "
            "permutation test is the safer evidence: its φ is held up by whichever other features "
            "the plan follows."
        )
    if comparisons > 1:
        notes.append("Scores in the ranked table are means over the comparisons.")
    if not tested:
        notes.append("No permutation test was run, so that nothing here has a p-value.")
    items = "\n".join(f"<li>{escape(note)}</li>" for note in notes)
    return section("How to read this", f"<ul>\n{items}\n</ul>")


def _calls(call: str, command: str) -> str:
    blocks = [
        f'<p>{label}</p>\n<pre tabindex="0"><code>{escape(text)}</code></pre>'
        for label, text in (("In Python", call), ("On the command line", command))
        if text
    ]
    return section("To get this again", "\n".join(blocks)) if blocks else ""
