"""Plots for figures: volcano, strips of the best features, bars of gene sets; .svg and .pdf.

The first class of a comparison is blue in all of them, the second orange.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from frot._base.errors import InputError
from frot._base.validate import check_choice
from frot.selection._costs import one_each
from frot.selection._inputs import Prepared, prepare
from frot.selection._selector import column_names, unfitted
from frot.show.style import BLUE, GREY, INK, ORANGE, legend_above, new_figure, plain, shorten, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from frot.selection._pathway_test import PathwayTest
    from frot.selection._selector import FROTSelector

# The false discovery rate of headlines and colours.
LEVEL = 0.05
# Names on each side of a volcano, strips, and bars; more cannot be read.
NAMED, STRIPS, BARS = 10, 12, 20
# Features that may lie on the least p there can be; more are drawn by their statistic.
ON_FLOOR = 10
# Fold changes beyond 2^12 are those over a mean of zero.
FAR = 12.0
# More points than these are an image within .svg and .pdf files.
MANY = 2_000
# Points of a class in a strip, and classes that have one each.
POINTS, CLASSES = 200, 6


@dataclass(frozen=True, eq=False)
class Significant:
    """What is significant, or where nothing was tested selected; arrays of shape (L,)."""

    accepted: np.ndarray
    tested: bool
    # Where each feature, or group, stands out most, by position.
    comparison: np.ndarray
    # In which class it is higher there, as `FROTSelector.table_` says.
    up_in: np.ndarray

    @classmethod
    def of(cls, selector: FROTSelector) -> Significant:
        """Read it off the selector's tables."""
        sets, _ = selector.tests
        names = [one.name for one in selector.comparisons_]
        q = selector.p_values[1]
        tested = not bool(np.isnan(q).all())
        accepted = q <= LEVEL if tested else selector.groups_support_
        if sets is not None:
            place = np.array([names.index(name) for name in sets.contrast])
            return cls(accepted, tested, place, np.array(sets.up_in, dtype=object))
        table, order = selector.table_, np.argsort(selector.ranking_)
        place, up = np.zeros(len(order), dtype=int), np.empty(len(order), dtype=object)
        up[order] = np.asarray(table["up_in"])
        if "comparison" in table:
            place[order] = [names.index(name) for name in np.asarray(table["comparison"])]
        return cls(accepted, tested, place, up)


def plot_volcano(
    selector: FROTSelector, comparison: int | str = 0, *, against: str = "auto"
) -> Figure:
    """Draw the log2 fold change of every feature against how surely it differs.

    Blue features are higher in the first class of the comparison, orange ones in the second: those
    with q <= 0.05, or where nothing was tested those selected. With three or more classes only
    features that stand out most in this comparison have a colour. Needs ``frot[plot]``.

    Parameters
    ----------
    selector : FROTSelector
        Fitted; with a `permutation_test`, or without.
    comparison : int or str
        Position in ``selector.comparisons_``, or a name such as "a vs rest".
    against : {"auto", "p", "t"}
        The height: -log10 of the permutation p-value, or the statistic that was tested (a moderated
        t where none was, or with three or more classes, which are tested together). "auto" is p
        unless more than ten features have the least p that so many permutations can give.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from frot.selection import FROTSelector
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(20, 6)), np.repeat(["sick", "well"], 10)
    >>> selector = FROTSelector(2).fit(X, y)
    >>> plot_volcano(selector).axes[0].get_xlabel()
    'log2 fold change, sick over well'
    """
    check_is_fitted(selector)
    check_choice(against, "against", ("auto", "p", "t"))
    place = comparison_at(selector, comparison)
    one, found = selector.comparisons_[place], Significant.of(selector)
    _, test = selector.tests
    height, label = one.scores("moderated"), "moderated |t|"
    if test is not None and len(selector.comparisons_) == 1:
        floored = int((test.p <= 1.5 / (1 + len(test.null))).sum())
        if against == "p" or (against == "auto" and floored <= ON_FLOOR):
            height, label = -np.log10(test.p), "−log10 p, by permutation"
        else:
            name = "|t|, as a normal deviate" if test.statistic == "t" else test.statistic
            height, label = test.observed, name
    elif against == "p":
        why = "has no permutation test" if test is None else "tests all comparisons together"
        raise InputError(f"against: the selector {why}, so that there is no p; leave against out")
    marked = found.accepted & (found.comparison == place)
    return draw_volcano(
        one.log2_fold_change, height, one.t, marked, selector.groups_.names, one.labels, label,
        f"q ≤ {LEVEL:g}" if found.tested else "selected",
    )  # fmt: skip


def comparison_at(selector: FROTSelector, comparison: int | str) -> int:
    """Return the position of a comparison that is given by position or name."""
    names = [one.name for one in selector.comparisons_]
    if comparison in names:
        return names.index(str(comparison))
    if isinstance(comparison, int) and 0 <= comparison < len(names):
        return comparison
    raise InputError(f"comparison: {comparison!r} is none of {', '.join(map(repr, names[:10]))}")


def draw_volcano(
    change: np.ndarray,
    height: np.ndarray,
    sign: np.ndarray,
    marked: np.ndarray,
    names: Sequence[str],
    labels: tuple[str, str],
    label: str,
    meaning: str,
) -> Figure:
    """Draw points (change, height) and name the highest marked ones; `sign` tells their colour."""
    figure = new_figure(10.0, 5.4)
    axes = figure.add_subplot()
    known = np.isfinite(change)
    wide = _reach(np.abs(change[known]))
    high = max(float(np.max(height[np.isfinite(height)], initial=0.0)), 1e-3)
    x = np.clip(np.nan_to_num(change, nan=0.0), -wide, wide)
    y = np.clip(np.nan_to_num(height, nan=0.0, posinf=np.inf), 0.0, high)
    short = [plain(shorten(one, 22)) for one in labels]
    sides = (
        (known & ~marked, GREY, 0.45, 9.0, f"others ({int((known & ~marked).sum()):,})"),
        (known & marked & (sign < 0), ORANGE, 0.85, 20.0, f"{meaning}, up in {short[1]}"),
        (known & marked & (sign > 0), BLUE, 0.85, 20.0, f"{meaning}, up in {short[0]}"),
    )
    for chosen, colour, opacity, size, text in sides:
        count = "" if colour == GREY else f" ({int(chosen.sum()):,})"
        axes.scatter(
            x[chosen], y[chosen], s=size, color=colour, alpha=opacity, linewidths=0.0,
            label=text + count, rasterized=len(x) > MANY, zorder=2 if colour == GREY else 3,
        )  # fmt: skip
    axes.set_xlim(-1.12 * wide, 1.12 * wide)
    axes.set_ylim(-0.02 * high, 1.08 * high)
    axes.axvline(0.0, color=GREY, linewidth=0.8, alpha=0.5, zorder=1)
    cut = _cut(y[known], marked[known])
    if cut is not None and meaning.startswith("q"):
        axes.axhline(cut, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
        axes.annotate(
            meaning, (1.0, cut), xycoords=("axes fraction", "data"), xytext=(-2, 3),
            textcoords="offset points", ha="right", fontsize=8.5, color="#666666",
        )  # fmt: skip
    axes.set_xlabel(plain(f"log2 fold change, {shorten(labels[0])} over {shorten(labels[1])}"))
    beyond = int((np.abs(change[known]) > wide).sum())
    axes.set_ylabel(label)
    if beyond:
        axes.set_xlabel(f"{axes.get_xlabel()}   ({beyond:,} farther out, drawn at the edge)")
    tidy(axes)
    legend_above(axes, 3)
    best = np.flatnonzero(marked & known)
    best = best[np.lexsort((-np.abs(x[best]), -y[best]))]
    figure.draw_without_rendering()
    taken: list[Box] = []
    for side in (best[sign[best] > 0], best[sign[best] < 0]):
        named = [(int(one), shorten(names[int(one)], 20)) for one in side[:40]]
        _name_points(axes, x, y, named, taken)
    return figure


def _reach(changes: np.ndarray) -> float:
    """Return how far the axis goes: to the largest, unless one class has none of a feature."""
    far = float(np.max(changes, initial=0.0))
    if far > FAR:
        far = max(FAR, float(np.max(changes[changes <= FAR], initial=0.0)))
    return far if far > 0.0 else 1.0


def _cut(height: np.ndarray, marked: np.ndarray) -> float | None:
    """Return the height that parts what is marked from the rest, if one does."""
    if not marked.any() or marked.all():
        return None
    low, high = float(height[~marked].max()), float(height[marked].min())
    return 0.5 * (low + high) if low < high else None


Box = tuple[float, float, float, float]


def _name_points(
    axes: Axes, x: np.ndarray, y: np.ndarray, named: Sequence[tuple[int, str]], taken: list[Box]
) -> None:
    """Write names beside points, the first ones first, where they cover nothing; `taken` grows."""
    unit = axes.figure.dpi / 72.0
    frame = axes.get_window_extent()
    pixels = axes.transData.transform(np.column_stack([x, y]))
    written = 0
    for point, name in named:
        if written >= NAMED:
            break
        left, bottom = pixels[point]
        wide, high = (0.66 * 8.0 * len(name) + 6.0) * unit, 10.5 * unit
        for side in (1, -1) if x[point] >= 0 else (-1, 1):
            begin = left + 5.0 * unit if side > 0 else left - 5.0 * unit - wide
            box = (begin, bottom - high / 2, begin + wide, bottom + high / 2)
            inside = box[0] >= frame.x0 and box[2] <= frame.x1
            within = (pixels > box[:2]).all(axis=1) & (pixels < box[2:]).all(axis=1)
            if inside and not within.any() and not any(_touch(box, one) for one in taken):
                axes.annotate(
                    plain(name), (x[point], y[point]), xytext=(5 * side, 0),
                    textcoords="offset points", ha="left" if side > 0 else "right", va="center",
                    fontsize=8.0, color=INK, zorder=4,
                )  # fmt: skip
                taken.append(box)
                written += 1
                break


def _touch(one: Box, two: Box) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


@dataclass(frozen=True, eq=False)
class Strip:
    """One feature: a title, a note, and of each class label, values drawn, mean of all, colour."""

    title: str
    note: str
    classes: tuple[tuple[str, np.ndarray, float, str], ...]


def plot_strips(
    selector: FROTSelector,
    X: Any,
    y: Any,
    comparison: int | str = 0,
    *,
    features: Sequence[int] | None = None,
    feature_names: Sequence[str] | None = None,
) -> Figure:
    """Draw the samples of each class as points, feature by feature, with the means.

    Of more than 200 samples of a class 200 are drawn, and of more than six classes the first of the
    comparison and the rest. Needs ``frot[plot]``.

    Parameters
    ----------
    selector : FROTSelector
        Fitted on `X` and `y`.
    X : array, sparse array or DataFrame of shape (N, d)
    y : array of shape (N,)
    comparison : int or str
        Position in ``selector.comparisons_``, or a name such as "a vs rest".
    features : sequence of int, optional
        Columns of `X`; by default the twelve with the largest moderated t in the comparison.
    feature_names : sequence of str, length d, optional

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from frot.selection import FROTSelector
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(20, 6)), np.repeat(["sick", "well"], 10)
    >>> selector = FROTSelector(2).fit(X, y)
    >>> [axes.get_title("left") for axes in plot_strips(selector, X, y, features=[2, 4]).axes]
    ['x2', 'x4']
    """
    check_is_fitted(selector)
    place = comparison_at(selector, comparison)
    prepared = prepare(unfitted(selector), X, y)
    d = prepared.table.shape[1]
    strength = np.nan_to_num(np.abs(selector.comparisons_[place].effects.moderated))
    best = np.argsort(-strength, kind="stable")[:STRIPS].tolist()
    columns = best if features is None else list(features)
    if not all(0 <= column < d for column in columns):
        raise InputError(f"features: are columns of X, from 0 to {d - 1}; give such numbers")
    names = column_names(selector, d) if feature_names is None else feature_names
    return draw_strips(strips_of(selector, prepared, place, columns, names))


def strips_of(
    selector: FROTSelector,
    prepared: Prepared,
    place: int,
    columns: Sequence[int],
    names: Sequence[str],
) -> list[Strip]:
    """Put together the strips of some columns in a comparison."""
    one, codes = selector.comparisons_[place], prepared.codes
    classes = prepared.classes
    first = int(np.flatnonzero(classes == one.first)[0])
    if one.second is not None:
        sides = [[first], [int(np.flatnonzero(classes == one.second)[0])]]
    elif len(classes) <= CLASSES:
        sides = [[code] for code in range(len(classes))]
    else:
        sides = [[first], [code for code in range(len(classes)) if code != first]]
    labels = [str(classes[side[0]]) if len(side) == 1 else "rest" for side in sides]
    rows = [np.flatnonzero(np.isin(codes, side)) for side in sides]
    drawn = [_some(of_side) for of_side in rows]
    single = one_each(selector.groups_)
    q = selector.p_values[1]
    strips = []
    for column in columns:
        values = prepared.table[:, [column]]
        values = np.ravel(values.toarray() if sparse.issparse(values) else values).astype(float)
        t = float(one.effects.t[column])
        note = f"t = {t:+.1f}"
        if single and not np.isnan(q[column]):
            note += f", q = {q[column]:.2g}"
        kinds = tuple(
            (label, values[some], float(values[every].mean()), BLUE if side == [first] else ORANGE)
            for label, some, every, side in zip(labels, drawn, rows, sides, strict=True)
        )
        strips.append(Strip(str(names[column]), note, kinds))
    return strips


def _some(rows: np.ndarray) -> np.ndarray:
    """Draw rows at random, always the same ones, where they are many."""
    if len(rows) <= POINTS:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, POINTS, replace=False))


def draw_strips(strips: Sequence[Strip]) -> Figure:
    """Draw strips in rows of six, each with the mean of every class."""
    across = min(6, max(len(strips), 2))
    down = max(1, -(-len(strips) // across))
    figure = new_figure(10.0, 2.35 * down + 0.2)
    grid = np.ravel(figure.subplots(down, across, squeeze=False))
    rng = np.random.default_rng(0)
    for axes, strip in zip(grid, strips, strict=False):
        count = len(strip.classes)
        for at, (_, values, mean, colour) in enumerate(strip.classes):
            size = float(np.clip(900.0 / max(len(values), 1), 4.0, 16.0))
            spread = rng.uniform(-0.28, 0.28, size=len(values))
            axes.scatter(
                at + spread, values, s=size, color=colour, alpha=0.55, linewidths=0.0,
                rasterized=len(values) * len(strips) > MANY,
            )  # fmt: skip
            axes.plot([at - 0.36, at + 0.36], [mean, mean], color=INK, linewidth=1.8, zorder=4)
        tidy(axes)
        tilted = count > 2 or max(len(label) for label, *_ in strip.classes) > 8
        axes.set_xticks(
            range(count), [plain(shorten(label, 14)) for label, *_ in strip.classes],
            rotation=35 if tilted else 0, ha="right" if tilted else "center",
            rotation_mode="anchor", fontsize=8,
        )  # fmt: skip
        axes.set_xlim(-0.6, count - 0.4)
        axes.tick_params(axis="x", length=0)
        axes.tick_params(axis="y", labelsize=7.5)
        axes.locator_params(axis="y", nbins=5)
        axes.set_title(plain(shorten(strip.title, 18)), loc="left", fontsize=9.5, pad=14)
        axes.annotate(
            strip.note, (0, 1), xycoords="axes fraction", xytext=(0, 4),
            textcoords="offset points", fontsize=7.5, color="#666666",
        )  # fmt: skip
    for axes in grid[len(strips) :]:
        axes.remove()
    return figure


def plot_pathways(tested: PathwayTest | FROTSelector, rows: int = BARS) -> Figure:
    """Draw the best sets as bars: how far each stands out, in which class it is higher.

    Full colours have a competitive q <= 0.05. Of a selector that has no `pathway_test` the bars are
    its groups by score. Needs ``frot[plot]``.

    Parameters
    ----------
    tested : PathwayTest or FROTSelector
    rows : int
        Bars at most.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from frot.selection import pathway_test
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 90)), np.repeat(["sick", "well"], 20)
    >>> X[y == "sick", :5] += 1.5
    >>> sets = {"response": range(40), "other": range(40, 80)}
    >>> figure = plot_pathways(pathway_test(X, y, sets, n_permutations=99))
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['response', 'other']
    """
    sets: Any = getattr(tested, "pathways_", tested)
    if hasattr(sets, "q_competitive"):
        order, scores, names = sets.order[:rows], sets.score, sets.names
        q = sets.q_competitive
        # "tumor vs normal", or "a vs rest": the first class begins the name.
        first = [
            contrast.startswith(f"{up} vs ")
            for contrast, up in zip(sets.contrast, sets.up_in, strict=True)
        ]
        up_in, strong = sets.up_in, q <= LEVEL
        label = "score: standard deviations above permuted labels"
        notes = [f"q {q[one]:.2g}" for one in range(len(q))]
    else:
        check_is_fitted(sets)
        found = Significant.of(sets)
        order = np.argsort(sets.ranking_)[:rows]
        scores, names, up_in, strong = sets.scores_, sets.groups_.names, found.up_in, found.accepted
        labels = [one.labels[0] for one in sets.comparisons_]
        first = [up == labels[place] for up, place in zip(up_in, found.comparison, strict=True)]
        label, notes = "score", [""] * len(scores)
        if found.tested:
            notes = [f"q {value:.2g}" for value in sets.p_values[1]]
    figure = new_figure(10.0, 1.1 + 0.29 * max(len(order), 3))
    axes = figure.add_subplot()
    far = max(float(np.abs(scores[order]).max(initial=0.0)), 1e-300)
    for at, group in enumerate(order):
        colour = GREY if up_in[group] in ("mixed", "") else BLUE if first[group] else ORANGE
        axes.barh(at, scores[group], color=colour, alpha=1.0 if strong[group] else 0.4, height=0.72)
        where = str(up_in[group])
        where = where if where in ("mixed", "") else f"up in {shorten(where, 18)}"
        text = ", ".join(part for part in (where, notes[group]) if part)
        axes.annotate(
            plain(text), (max(float(scores[group]), 0.0), at), xytext=(5, 0),
            textcoords="offset points", va="center", fontsize=8.5, color=INK,
        )  # fmt: skip
    axes.set_yticks(
        range(len(order)), [plain(shorten(names[group], 44)) for group in order], fontsize=8.5
    )
    axes.set_ylim(max(len(order), 3) - 0.4, -0.6)
    low = min(0.0, float(scores[order].min(initial=0.0)))
    axes.set_xlim(1.05 * low, 1.32 * far)
    axes.set_xlabel(label)
    tidy(axes)
    axes.tick_params(axis="y", length=0, labelsize=8.5)
    return figure
