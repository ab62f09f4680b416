"""The page of a fitted selector: what differs and where it is higher, the tests, the plan."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from frot._base.errors import InputError, require
from frot._base.files import check_path, make_folder
from frot.selection._effects import fold_change
from frot.selection._inputs import Prepared, prepare
from frot.selection._page_tables import (
    counts,
    facts,
    headline,
    pathway_table,
    permutation_words,
    ranking,
)
from frot.selection._pictures import (
    View,
    draw_barycentres,
    draw_correspondence,
    draw_heat_map,
    draw_parts,
    view_of,
)
from frot.selection._plots import (
    STRIPS,
    Found,
    draw_strips,
    draw_volcano,
    plot_pathways,
    plot_volcano,
    strips_of,
)
from frot.selection._selector import unfitted
from frot.show.page import Cell, Column, PageTable, check_page, number, picture, render, save_page
from frot.show.style import no_windows, save_vector

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from frot.selection._permutation import PermutationTest
    from frot.selection._selector import FROTSelector
    from frot.selection._stability import StabilitySelection

__all__ = ["write_selection_pictures", "write_selection_report"]

# Rows of tables of correspondents, over all comparisons, and the fewest in one.
MAX_SAMPLES, FEWEST_SAMPLES = 300, 30
# Samples named beside one that they correspond to.
PARTNERS = 3
# Comparisons that are drawn: a page of more would be too large to send.
MAX_DRAWN = 10
# Colours of pictures that have no colour map, so that pages stay small.
FEW = 256


def write_selection_report(
    selector: FROTSelector,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    permutation: PermutationTest | None = None,
    stability: StabilitySelection | None = None,
    pictures: str | os.PathLike[str] | None = None,
    title: str = "Feature selection by robust optimal transport",
    call: str = "",
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
    stability : StabilitySelection, optional
    pictures : path, optional
        A folder for the pictures as .svg and .pdf too, as `write_selection_pictures` names them.
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
    path = check_page(path, title=title, call=call, command=command)
    folder = None if pictures is None else check_path(pictures, "pictures")
    for name, found in (("permutation", permutation), ("stability", stability)):
        if found is not None and found.names != selector.groups_.names:
            raise InputError(f"{name}: is of other features than the selector; run it again")
    drawn = Drawn.of(selector, X, y, feature_names, sample_names, permutation)
    selector, prepared = drawn.selector, drawn.prepared
    test, sets = (getattr(selector, name, None) for name in ("permutation_", "pathways_"))
    n, d = prepared.table.shape
    what = "feature" if drawn.single else "group"
    sizes = np.bincount(prepared.codes, minlength=len(selector.classes_))
    classes = ", ".join(
        f"{label} ({size:,})" for label, size in zip(selector.classes_, sizes, strict=True)
    )
    samples, accepted = f"{n:,}: {classes}", Found.of(selector)
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
        figures=headline(selector, accepted, samples, what),
        counts=counts(selector, accepted, what),
        facts=facts(selector, prepared.score, samples, d, what),
        tested=accepted.tested,
        ranking=ranking(selector, test, stability, what)
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


def write_selection_pictures(
    selector: FROTSelector,
    X: Any,
    y: Any,
    folder: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
    sample_names: Sequence[str] | None = None,
) -> list[Path]:
    """Write the pictures of a fitted selector for a paper, each as .svg and .pdf.

    They are ``volcano``, ``strips`` and ``heat_map``, and for groups ``pathways``. With three or
    more classes the first three are there for each comparison, with its number and name behind:
    ``volcano-1-a-vs-rest.svg``, up to the tenth. Text stays text. A file is replaced only once it
    is complete. Needs the extra ``frot[plot]``.

    Parameters
    ----------
    selector : FROTSelector
        Fitted on `X` and `y`.
    X : array, sparse array or DataFrame of shape (N, d)
    y : array of shape (N,)
    folder : path
        Made where it is not there.
    feature_names, sample_names : sequences of str, optional
        As in `write_selection_report`.

    Returns
    -------
    list of pathlib.Path
        The files written.

    Examples
    --------
    >>> import tempfile
    >>> from frot.selection import FROTSelector
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(20, 6)), np.repeat(["sick", "well"], 10)
    >>> selector = FROTSelector(2).fit(X, y)
    >>> files = write_selection_pictures(selector, X, y, tempfile.mkdtemp())
    >>> [file.name for file in files if file.suffix == ".svg"]
    ['volcano.svg', 'strips.svg', 'heat_map.svg']
    """
    check_is_fitted(selector)
    folder = check_path(folder, "folder")
    return Drawn.of(selector, X, y, feature_names, sample_names).write(folder)


@dataclass(frozen=True, eq=False)
class Drawn:
    """A selector and its data, ready to be drawn: `views` are of its comparisons."""

    selector: FROTSelector
    prepared: Prepared
    single: bool
    names: Sequence[str]
    views: list[View]

    @classmethod
    def of(
        cls,
        selector: FROTSelector,
        X: Any,
        y: Any,
        feature_names: Sequence[str] | None,
        sample_names: Sequence[str] | None,
        permutation: PermutationTest | None = None,
    ) -> Drawn:
        """Check the data; another `permutation` than the selector's goes into a copy of it."""
        prepared = _same(selector, X, y)
        if permutation is not None:
            selector = copy(selector)
            selector.permutation_ = permutation
        n, d = prepared.table.shape
        single = len(selector.groups_) == d and selector.groups_.in_order
        names = _names(feature_names, d, "feature_names", _default_names(selector, single))
        ids = _names(sample_names, n, "sample_names", [str(i) for i in range(1, n + 1)])
        picks = int(selector.groups_support_.sum())
        # The score of a set is of all comparisons together.
        scores = [
            selector.scores_ if prepared.score == "set" else one.scores(prepared.score)
            for one in selector.comparisons_
        ]
        views = [
            view_of(one, prepared.table, selector.groups_, score, picks, names, ids)
            for one, score in zip(selector.comparisons_[:MAX_DRAWN], scores, strict=False)
        ]
        return cls(selector, prepared, single, names, views)

    def volcano(self, place: int) -> Figure:
        """Draw the features; those within groups by their moderated t."""
        if self.single:
            return plot_volcano(self.selector, place)
        one = self.selector.comparisons_[place]
        strength = np.abs(one.effects.moderated)
        change = fold_change(one.effects, self.prepared.values)
        edges = np.zeros(len(strength), dtype=bool)
        edges[self.views[place].columns] = True
        return draw_volcano(
            change, strength, one.effects.difference, edges, self.names, one.labels,
            "moderated |t|", "of the best groups",
        )  # fmt: skip

    def strips(self, place: int) -> Figure:
        """Draw the best features by class."""
        columns = self.views[place].columns[:STRIPS].tolist()
        return draw_strips(strips_of(self.selector, self.prepared, place, columns, self.names))

    def write(self, folder: Path) -> list[Path]:
        """Write all pictures for a paper into a folder."""
        require("matplotlib.figure", "plot")
        folder, written = make_folder(folder), []
        figures: list[tuple[str, Callable[[], Figure]]] = []
        for place, view in enumerate(self.views):
            # What is no letter or digit may mean something in a path.
            words = re.sub(r"[^\w.]+", "-", view.comparison.name)[:60].strip("-.")
            end = "" if len(self.views) == 1 else f"-{place + 1}-{words}"
            figures += [
                (f"volcano{end}", partial(self.volcano, place)),
                (f"strips{end}", partial(self.strips, place)),
                (f"heat_map{end}", partial(draw_heat_map, view)),
            ]
        if not self.single:
            figures.append(("pathways", partial(plot_pathways, self.selector)))
        for name, draw in figures:
            with no_windows():
                figure = draw()
            # Laid out once for both files.
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
            for kind in (".svg", ".pdf"):
                written.append(folder / f"{name}{kind}")
                save_vector(figure, written[-1])
        return written


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


def _panel(drawn: Drawn, place: int, what: str) -> dict[str, Any]:
    """What the page says on one comparison: what differs, and the plan if there is one."""
    view, many = drawn.views[place], len(drawn.views)
    return {
        "view": view,
        "undrawn": int(np.isnan(view.comparison.log2_fold_change).sum()) * (what == "feature"),
        "volcano": picture(
            lambda: drawn.volcano(place),
            "Volcano: log2 fold change of every feature, and how surely it differs",
            FEW,
        ),
        "strips": picture(
            lambda: drawn.strips(place),
            "Values of the best features by class, one point per sample",
            FEW,
        ),
        "heat_map": picture(
            lambda: draw_heat_map(view),
            "Heat map of the best features, one column per sample, by class",
        ),
        "plan": None if view.comparison.result is None else _plan(view, what, place, many),
    }


def _plan(view: View, what: str, place: int, many: int) -> dict[str, Any]:
    """What the page says on a plan, and its pictures."""
    first, second = view.labels
    most = max(MAX_SAMPLES // many, FEWEST_SAMPLES)
    return {
        "parts": picture(
            lambda: draw_parts(view),
            f"Shift, shape and misalignment of the best {what}s as stacked bars, and their weights",
            FEW,
        ),
        "correspondence": picture(
            lambda: draw_correspondence(view),
            "The transport plan between the samples of both classes",
        ),
        "barycentres": picture(
            lambda: draw_barycentres(view),
            f"Samples in two dimensions, with arrows from {first} to their barycentres",
            FEW,
        ),
        "partners": PageTable(
            [
                Column(first, "text"),
                Column(f"main partners in {second}", "text"),
                Column("partners", first="ascending"),
            ],
            [_partners(view, sample) for sample in view.order[0][:most]],
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
