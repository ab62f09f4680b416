"""Pictures of a fitted selector: the best features, the samples in them, and the plan.

Of each comparison of classes, for the web page, and as .svg and .pdf files for a paper.
"""

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
from scipy import sparse
from scipy.cluster.hierarchy import leaves_list, linkage
from sklearn.utils.validation import check_is_fitted

from frot._base.errors import InputError, require
from frot._base.files import check_path, make_folder
from frot.groups.groups import Groups
from frot.selection._comparison import Comparison
from frot.selection._costs import one_each
from frot.selection._effects import fold_change
from frot.selection._inputs import Prepared, prepare
from frot.selection._plots import (
    STRIPS,
    draw_strips,
    draw_volcano,
    plot_pathways,
    plot_volcano,
    strips_of,
)
from frot.selection._selector import column_names, unfitted
from frot.show.plan import draw_cells
from frot.show.style import (
    BLUE,
    FAINT,
    GREEN,
    GREY,
    INK,
    ORANGE,
    colour_bar,
    legend_above,
    new_figure,
    no_windows,
    plain,
    save_vector,
    shorten,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from frot.selection._permutation import PermutationTest
    from frot.selection._selector import FROTSelector

# Bars and lines of the pictures; more cannot be read.
TOP = 30
# Features behind the projection, at most.
PROJECTED = 500
# Trees of more samples take too long; these are ordered along their main axis instead.
MAX_TREE = 2_000
# Values beyond this many scales are drawn in the last colour.
CLIP = 2.5
# More names than these would overlap: along a heat map, and along a plan.
MAX_NAMES, MAX_PLAN_NAMES = 90, 64
# A cell smaller than two pixels cannot be seen.
MAX_CELLS = 300
MAX_ARROWS = 400
# Samples of a class in a heat map; of more, evenly over their order.
MAX_COLUMNS = 400
# Comparisons that are drawn: a page of more would be too large to send.
MAX_DRAWN = 10


@dataclass(frozen=True, eq=False)
class View:
    """One comparison of classes of n and m samples, ready to be drawn."""

    comparison: Comparison
    # Names of the samples of both classes.
    ids: tuple[tuple[str, ...], tuple[str, ...]]
    # The best groups, best first, and their names.
    top: np.ndarray
    top_names: tuple[str, ...]
    # Scaled values of features of the best groups, (f, n) and (f, m), their columns and names.
    values: tuple[np.ndarray, np.ndarray]
    columns: np.ndarray
    features: tuple[str, ...]
    # Similar samples of the first class next to each other, and those of the second next to whom
    # they correspond to; by similarity too where there is no plan.
    order: tuple[np.ndarray, np.ndarray]
    # Principal components of the selected features, (n, 2) and (m, 2), and their shares of the
    # variance; empty where there is no plan.
    coordinates: tuple[np.ndarray, np.ndarray]
    explained: tuple[float, float]

    @property
    def labels(self) -> tuple[str, str]:
        """Of the two classes."""
        return self.comparison.labels

    @property
    def destinations(self) -> np.ndarray:
        """Where each sample of the first class is mapped: the mean of its partners, (n, 2)."""
        plan = self.comparison.plan
        mass = np.maximum(np.asarray(plan.sum(axis=1)).ravel(), 1e-300)
        return np.asarray(plan @ self.coordinates[1]) / mass[:, None]


def view_of(
    comparison: Comparison,
    table: Any,
    groups: Groups,
    scores: np.ndarray,
    picks: int,
    names: Sequence[str],
    ids: Sequence[str],
) -> View:
    """Put together what is drawn of a comparison.

    `scores`, of shape (L,), are what is ranked by, and `picks` how many groups are selected, which
    the projection shows; `names` are those of the d features, `ids` those of the N samples.
    """
    best = np.lexsort((-comparison.shift, -scores))
    best = best[~comparison.constant[best]]
    top = best[:TOP]
    shown = _members(groups, comparison, top, TOP)
    wide = _members(groups, comparison, best[: max(picks, 2)], PROJECTED)
    values = _scaled(comparison, table, shown)
    coordinates, explained = (np.empty((0, 2)), np.empty((0, 2))), (0.0, 0.0)
    if comparison.result is not None:
        coordinates, explained = _components(comparison, _scaled(comparison, table, wide))
    rows, cols = comparison.rows
    return View(
        comparison=comparison,
        ids=(tuple(ids[int(i)] for i in rows), tuple(ids[int(j)] for j in cols)),
        top=top,
        top_names=tuple(groups.names[group] for group in top),
        values=values,
        columns=shown,
        features=tuple(names[int(feature)] for feature in shown),
        order=_orders(comparison, values),
        coordinates=coordinates,
        explained=explained,
    )


def _members(groups: Groups, comparison: Comparison, chosen: np.ndarray, limit: int) -> np.ndarray:
    """Return the features of the chosen groups that vary, those that differ most first in each."""
    found: dict[int, None] = {}
    strength = np.abs(comparison.effects.moderated)
    varying = np.maximum(*comparison.effects.variances) + strength > 0.0
    for group in chosen:
        members = groups.indices[group]
        members = members[varying[members]]
        for feature in members[np.argsort(-strength[members], kind="stable")]:
            found[int(feature)] = None
        if len(found) >= limit:
            break
    return np.array(list(found)[:limit], dtype=int)


def _scaled(
    comparison: Comparison, table: Any, features: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    block = table[:, features]
    dense = np.asarray(block.toarray() if sparse.issparse(block) else block, dtype=float)
    dense = (dense - comparison.centre[features]) / comparison.scale[features]
    rows, cols = comparison.rows
    return dense[rows].T, dense[cols].T


def _orders(
    comparison: Comparison, values: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Order the first class by similarity, and the second by whom its samples correspond to."""
    order = _similar(values[0].T)
    if comparison.result is None:
        return order, _similar(values[1].T)
    place = np.empty(len(order))
    place[order] = np.arange(len(order))
    plan = comparison.plan
    mass = np.maximum(np.asarray(plan.sum(axis=0)).ravel(), 1e-300)
    partners = np.asarray(plan.T @ place) / mass
    return order, np.argsort(partners, kind="stable")


def _similar(points: np.ndarray) -> np.ndarray:
    """Return an order in which neighbours are alike."""
    count = len(points)
    if count < 3:
        return np.arange(count)
    if count <= MAX_TREE:
        return leaves_list(linkage(points, "average", optimal_ordering=count <= 400))
    axis = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][0]
    return np.argsort(points @ axis, kind="stable")


def _components(
    comparison: Comparison, values: tuple[np.ndarray, np.ndarray]
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[float, float]]:
    """Project both classes, counted alike, on their two main axes."""
    both = np.hstack(values).T
    plan = comparison.plan
    weight = np.concatenate(
        [np.asarray(plan.sum(axis=1)).ravel(), np.asarray(plan.sum(axis=0)).ravel()]
    )
    weight = weight / weight.sum()
    both = both - weight @ both
    _, size, axes = np.linalg.svd(np.sqrt(weight)[:, None] * both, full_matrices=False)
    # Signs of axes mean nothing; a fixed choice makes the same data give the same picture.
    sign = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    found = np.zeros((len(both), 2))
    kept = min(2, len(axes))
    found[:, :kept] = both @ (axes[:kept] * sign[:kept, None]).T
    share = np.zeros(2)
    share[:kept] = size[:kept] ** 2 / max(float((size**2).sum()), 1e-300)
    n = values[0].shape[1]
    return (found[:n], found[n:]), (float(share[0]), float(share[1]))


def draw_parts(view: View) -> Figure:
    """Draw shift, shape and misalignment of the best features stacked, and alpha beside them."""
    parts, count = view.comparison.parts, len(view.top)
    figure = new_figure(10.0, 1.7 + 0.25 * max(count, 4))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[2.2, 1.0])
    place, start = np.arange(count), np.zeros(count)
    # The last is clear enough to step back on a light page and on a dark one.
    for name, values, colour, opacity in (
        ("shift", parts.shift, BLUE, 1.0),
        ("shape", parts.shape, GREEN, 1.0),
        ("misalignment", parts.misalignment, GREY, 0.5),
    ):
        bars = {"color": colour, "alpha": opacity, "height": 0.74, "label": name}
        left.barh(place, values[view.top], left=start, **bars)
        start = start + values[view.top]
    left.set_yticks(place, [plain(shorten(name)) for name in view.top_names])
    left.set_ylim(max(count, 3) - 0.4, -0.6)
    left.set_xlabel("cost φ of the plan, in scaled units")
    legend_above(left, 3)
    left.set_title("What costs are made of", loc="left", fontsize=11, pad=22)
    alpha = view.comparison.alpha
    right.barh(place, alpha[view.top], color=ORANGE, height=0.74)
    uniform = 1.0 / len(alpha)
    # Of thousands of features it would lie on the axis.
    seen = uniform > 0.02 * float(alpha[view.top].max())
    if seen:
        right.axvline(uniform, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)))
    right.set_xlabel("weight α   (dashed: all alike)" if seen else "weight α")
    right.set_title("Weights of the worst case", loc="left", fontsize=11, pad=22)
    for axes in (left, right):
        tidy(axes)
        axes.tick_params(axis="y", length=0)
    right.tick_params(labelleft=False)
    right.locator_params(axis="x", nbins=4)
    return figure


def draw_heat_map(view: View) -> Figure:
    """Draw the best features of every patient, classes side by side."""
    (first, second), (rows, cols) = view.values, view.order
    count, sizes = len(view.features), (first.shape[1], second.shape[1])
    named = sum(sizes) <= MAX_NAMES
    figure = new_figure(10.0, 1.6 + 0.24 * max(count, 4) + (0.7 if named else 0.0))
    # Each class gets room by its size, but never less than a sixth.
    share = np.clip(sizes[0] / sum(sizes), 1 / 6, 5 / 6)
    both = figure.subplots(1, 2, sharey=True, width_ratios=[share, 1.0 - share])
    image: Any = None
    for axes, values, order, label, ids, colour in zip(
        both, (first, second), (rows, cols), view.labels, view.ids, (BLUE, ORANGE), strict=True
    ):
        image = axes.imshow(
            values[:, order[:: -(-len(order) // MAX_COLUMNS)]],
            aspect="auto",
            cmap="RdBu_r",
            vmin=-CLIP,
            vmax=CLIP,
            interpolation="nearest",
        )
        # A narrow panel has room for a short name only.
        wide, count_text = share if axes is both[0] else 1.0 - share, f"  ({len(order):,})"
        title = shorten(label, max(4, int(95 * wide) - len(count_text))) + count_text
        axes.set_title(plain(title), loc="left", fontsize=10, color=colour, weight="bold")
        axes.spines[:].set_visible(False)
        # A line in the colour of the class ties the panel to the other pictures.
        axes.axhline(-0.5, color=colour, linewidth=5, solid_capstyle="butt")
        if named:
            _name_samples(axes, "x", [ids[i] for i in order])
        else:
            axes.set_xticks([])
        axes.tick_params(length=0, colors=INK)
    both[0].set_yticks(
        np.arange(count), [plain(shorten(name)) for name in view.features], fontsize=8.5
    )
    colour_bar(image, both, "scaled value", shrink=0.6, extend="both")
    return figure


def draw_p_values(p: np.ndarray, statistic: str) -> Figure:
    """Draw how p-values are spread, with what chance alone would give."""
    figure = new_figure(10.0, 2.9)
    axes = figure.add_subplot()
    bins = 40
    axes.hist(p, bins=bins, range=(0.0, 1.0), color=BLUE, rwidth=0.92)
    expected = len(p) / bins
    axes.axhline(expected, color=ORANGE, linewidth=1.3, linestyle=(0, (4, 3)))
    axes.annotate(
        "if nothing differed",
        (0.7, expected),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        fontsize=9,
        color="#A84A00",
    )
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel(f"permutation p-value of {statistic}")
    axes.set_ylabel("how many")
    tidy(axes)
    return figure


def draw_correspondence(view: View) -> Figure:
    """Draw the plan as cells: what share of a patient of the first class goes where."""
    plan = view.comparison.plan
    n, m = plan.shape
    rows, cols = view.order
    height = float(np.clip(10.0 * n / m, 3.6, 9.0)) if n <= MAX_PLAN_NAMES else 6.0
    figure = new_figure(10.0, max(height, 1.6 + 0.13 * n) if n <= MAX_PLAN_NAMES else height)
    axes = figure.add_subplot()
    image = draw_cells(axes, plan, view.order, share=True, most=MAX_CELLS)
    first, second = (plain(shorten(label, 40)) for label in view.labels)
    axes.set_ylabel(first, color=BLUE, weight="bold")
    axes.set_xlabel(second, color=ORANGE, weight="bold")
    for side, size, names in (
        ("y", n, [view.ids[0][k] for k in rows]),
        ("x", m, [view.ids[1][k] for k in cols]),
    ):
        if size <= MAX_PLAN_NAMES:
            _name_samples(axes, side, names)
        else:
            getattr(axes, f"set_{side}ticks")([])
    for spine in axes.spines.values():
        spine.set_color(FAINT)
    axes.tick_params(length=0, colors=INK)
    if max(n, m) <= MAX_PLAN_NAMES:
        # Faint lines, so that the eye finds its way to the names.
        axes.set_xticks(np.arange(m + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(n + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="#EEF0F3", linewidth=0.6)
        axes.tick_params(which="minor", length=0)
    colour_bar(image, axes, "share of the row's mass", shrink=0.6)
    return figure


def draw_barycentres(view: View) -> Figure:
    """Draw both classes in two dimensions, with an arrow from each patient to its barycentre."""
    (x, y), targets = view.coordinates, view.destinations
    figure = new_figure(10.0, 5.6)
    axes = figure.add_subplot()
    # Evenly over the order of similarity, so that no kind of patient goes without an arrow.
    step = max(1, -(-len(x) // MAX_ARROWS))
    drawn = view.order[0][::step]
    moves = targets[drawn] - x[drawn]
    axes.quiver(
        *x[drawn].T,
        *moves.T,
        angles="xy",
        scale_units="xy",
        scale=1.0,
        color=GREY,
        alpha=0.75 if len(drawn) <= 120 else 0.4,
        width=0.0016,
        headwidth=6.0,
        headlength=7.0,
        zorder=2,
    )
    size = float(np.clip(3000.0 / (len(x) + len(y)), 6.0, 44.0))
    edge: dict[str, Any] = {"edgecolors": "white", "linewidths": 0.5}
    for points, colour, marker, label in ((y, ORANGE, "s", 1), (x, BLUE, "o", 0)):
        name = plain(shorten(view.labels[label], 40))
        axes.scatter(*points.T, s=size, color=colour, marker=marker, label=name, zorder=3, **edge)
    axes.scatter(
        *targets[drawn].T,
        s=size,
        marker="x",
        color=INK,
        linewidths=1.0,
        zorder=4,
        label="mapped to",
    )
    axes.margins(0.06)
    tidy(axes)
    for axis, share, number in zip("xy", view.explained, (1, 2), strict=True):
        text = f"principal component {number} ({share:.0%} of the variance)"
        getattr(axes, f"set_{axis}label")(text)
    legend_above(axes, 3)
    return figure


def _name_samples(axes: Axes, side: str, names: list[str]) -> None:
    """Write the samples' names along an axis, small enough not to touch."""
    texts = [plain(shorten(name, 16)) for name in names]
    size = 7.0 if len(names) <= 45 else 5.5
    place = np.arange(len(names))
    if side == "x":
        axes.set_xticks(place, texts, rotation=90, fontsize=size)
    else:
        axes.set_yticks(place, texts, fontsize=size)


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
    return SelectorPictures.of(selector, X, y, feature_names, sample_names).write(folder)


@dataclass(frozen=True, eq=False)
class SelectorPictures:
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
    ) -> SelectorPictures:
        """Check the data; another `permutation` than the selector's goes into a copy of it."""
        prepared = _same(selector, X, y)
        if permutation is not None:
            selector = copy(selector)
            selector.permutation_ = permutation
        n, d = prepared.table.shape
        single = one_each(selector.groups_)
        default = selector.groups_.names if single else column_names(selector, d)
        names = _names(feature_names, d, "feature_names", default)
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


def _names(
    given: Sequence[str] | None, count: int, argument: str, default: Sequence[str]
) -> Sequence[str]:
    if given is None:
        return default
    if len(given) != count:
        raise InputError(f"{argument}: has {len(given)} names for {count}; give one for each")
    return [str(name) for name in given]
