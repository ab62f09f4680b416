"""Plots for figures: volcano, strips of features, heat map, bars of gene sets, subgroups.

The first class of a comparison is blue in all of them, the second orange. Values are shown without
the effects of blocks. ``figure.savefig("volcano.svg")`` keeps text as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from frot._base.errors import InputError
from frot._base.names import did_you_mean
from frot.selection._inputs import Prepared, prepare
from frot.selection._null import benjamini_hochberg
from frot.selection._permutation import LEVEL
from frot.selection._selector import FROTSelector, column_names, unfitted
from frot.selection._shape_test import ShapeTest
from frot.show.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    colour_bar,
    legend_above,
    new_figure,
    plain,
    shorten,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from frot.selection._pathway_test import PathwayTest

# More points than these are an image within .svg and .pdf files.
MANY = 2_000


@dataclass(frozen=True, eq=False)
class Drawn:
    """A fitted selector and its data, ready to be drawn."""

    selector: FROTSelector
    prepared: Prepared
    # Of the d features and the N samples.
    names: Sequence[str]
    samples: Sequence[str]

    @classmethod
    def of(
        cls,
        selector: FROTSelector,
        X: Any,
        y: Any,
        feature_names: Sequence[str] | None = None,
        sample_names: Sequence[str] | None = None,
    ) -> Drawn:
        """Check that the data is what the selector was fitted on, as far as can be told."""
        check_is_fitted(selector)
        prepared = prepare(unfitted(selector), X, y, selector.block_, doubts=False)
        rows = max(int(comparison.contrast.rows.max()) for comparison in selector.comparisons_)
        n, d = prepared.table.shape
        if (
            d != selector.n_features_in_
            or rows >= n
            or prepared.classes.tolist() != selector.classes_.tolist()
        ):
            raise InputError("X, y: are not what the selector was fitted on; fit it again")
        default = selector.groups_.names if selector.single else column_names(selector, d)
        names = _names(feature_names, d, "feature_names", default)
        numbers = [str(row) for row in range(1, n + 1)]
        return cls(selector, prepared, names, _names(sample_names, n, "sample_names", numbers))

    def best(self, comparison: int, count: int) -> list[int]:
        """Return the columns of the best features, or of the best groups' best features."""
        selector, compared = self.selector, self.selector.comparisons_[comparison]
        strength = np.abs(compared.effects.t)
        if selector.single and len(selector.comparisons_) == 1:
            order = np.argsort(selector.ranking_)
        elif selector.single:
            order = np.argsort(-compared.t if compared.second is None else -strength, kind="stable")
        else:
            columns: dict[int, None] = {}
            for group in np.argsort(selector.ranking_):
                members = selector.groups_.indices[group]
                columns |= dict.fromkeys(members[np.argsort(-strength[members])].tolist())
                if len(columns) >= 2 * count:
                    break
            order = np.array(list(columns), dtype=int)
        return order[~compared.effects.constant[order]][:count].tolist()

    def values(self, comparison: int, columns: Sequence[int]) -> np.ndarray:
        """Return values (n, k) of the samples of a comparison, without the effects of blocks."""
        contrast = self.selector.comparisons_[comparison].contrast
        return self.prepared.dense(contrast.rows, list(columns), contrast)


def _names(
    given: Sequence[str] | None, count: int, argument: str, default: Sequence[str]
) -> Sequence[str]:
    if given is None:
        return default
    if len(given) != count:
        raise InputError(f"{argument}: has {len(given)} names for {count}; give one for each")
    return [str(name) for name in given]


@dataclass(frozen=True, eq=False)
class Significant:
    """What has q <= 0.05, or without any q what is selected; arrays of shape (L,)."""

    accepted: np.ndarray
    tested: bool
    # The comparison that says what each feature, or group, marks, by position.
    comparison: np.ndarray
    # In which class it is higher there, as `FROTSelector.table_` says.
    up_in: np.ndarray

    @classmethod
    def of(cls, selector: FROTSelector) -> Significant:
        """Read it off the selector's tables."""
        sets, _ = selector.tests
        names = [comparison.name for comparison in selector.comparisons_]
        q = selector.p_values[1]
        tested = not bool(np.isnan(q).all())
        accepted = q <= LEVEL if tested else selector.groups_support_
        if sets is not None:
            place = np.array([names.index(name) for name in sets.contrast])
            return cls(accepted, tested, place, np.array(sets.up_in, dtype=object))
        place = selector.standing_out
        up = np.array([comparison.up_in for comparison in selector.comparisons_])[
            place, np.arange(len(place))
        ]
        return cls(accepted, tested, place, up)


def plot_volcano(selector: FROTSelector, comparison: int | str = 0) -> Figure:
    """Draw the log2 fold change of every feature against -log10 p of its moderated t.

    Blue features are higher in the first class of the comparison, orange ones in the second: those
    with q <= 0.05, by permutations where a `permutation_test` was run; of several comparisons q is
    that of this one's t. Of groups the members of the best three have a colour. Needs
    ``frot[plot]``.

    Parameters
    ----------
    selector : FROTSelector
        Fitted.
    comparison : int or str
        Position in ``selector.comparisons_``, or a name such as "a vs rest".

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
    place = comparison_at(selector, comparison)
    compared, significant = selector.comparisons_[place], Significant.of(selector)
    if selector.single:
        names, marked = selector.groups_.names, significant.accepted
        if len(selector.comparisons_) > 1:
            marked = benjamini_hochberg(compared.effects.p) <= LEVEL
        meaning, change = f"q ≤ {LEVEL:g}", compared.log2_fold_change
    else:
        marked = np.zeros(selector.n_features_in_, dtype=bool)
        for group in np.argsort(selector.ranking_)[:3]:
            marked[selector.groups_.indices[group]] = True
        names, meaning = column_names(selector, selector.n_features_in_), "of the best three groups"
        change = compared.feature_changes
    with np.errstate(divide="ignore"):
        height = -np.log10(compared.effects.p)
    return draw_volcano(change, height, compared.effects.t, marked, names, compared.labels, meaning)


def comparison_at(selector: FROTSelector, comparison: int | str) -> int:
    """Return the position of a comparison that is given by position or name."""
    names = [compared.name for compared in selector.comparisons_]
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
    short = [plain(shorten(label, 22)) for label in labels]
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
    axes.set_ylabel("−log10 p of the moderated t")
    if beyond:
        axes.set_xlabel(f"{axes.get_xlabel()}   ({beyond:,} farther out, drawn at the edge)")
    tidy(axes)
    legend_above(axes, 3)
    best = np.flatnonzero(marked & known)
    best = best[np.lexsort((-np.abs(x[best]), -y[best]))]
    figure.draw_without_rendering()
    taken: list[Box] = []
    for side in (best[sign[best] > 0], best[sign[best] < 0]):
        named = [(int(label), shorten(names[int(label)], 20)) for label in side[:40]]
        _name_points(axes, x, y, named, taken)
    return figure


def _reach(changes: np.ndarray) -> float:
    """Return how far the axis goes: to the largest, unless one class has none of a feature."""
    far = float(np.max(changes, initial=0.0))
    # Beyond 2^12 they are those over a mean of zero.
    if far > 12.0:
        far = max(12.0, float(np.max(changes[changes <= 12.0], initial=0.0)))
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
        if written >= 10:
            break
        left, bottom = pixels[point]
        wide, high = (0.66 * 8.0 * len(name) + 6.0) * unit, 10.5 * unit
        for side in (1, -1) if x[point] >= 0 else (-1, 1):
            begin = left + 5.0 * unit if side > 0 else left - 5.0 * unit - wide
            box = (begin, bottom - high / 2, begin + wide, bottom + high / 2)
            inside = box[0] >= frame.x0 and box[2] <= frame.x1
            within = (pixels > box[:2]).all(axis=1) & (pixels < box[2:]).all(axis=1)
            if inside and not within.any() and not any(_touch(box, other) for other in taken):
                axes.annotate(
                    plain(name), (x[point], y[point]), xytext=(5 * side, 0),
                    textcoords="offset points", ha="left" if side > 0 else "right", va="center",
                    fontsize=8.0, color=INK, zorder=4,
                )  # fmt: skip
                taken.append(box)
                written += 1
                break


def _touch(first: Box, second: Box) -> bool:
    return (
        first[0] < second[2]
        and second[0] < first[2]
        and first[1] < second[3]
        and second[1] < first[3]
    )


@dataclass(frozen=True, eq=False)
class Strip:
    """One feature: a title, a note, and of each class label, values drawn, mean of all, colour.

    `marked` says which of the values drawn have a ring.
    """

    title: str
    note: str
    classes: tuple[tuple[str, np.ndarray, float, str], ...]
    marked: tuple[np.ndarray, ...] = field(default=())


def plot_strips(
    selector: FROTSelector,
    X: Any,
    y: Any,
    comparison: int | str = 0,
    *,
    features: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
) -> Figure:
    """Draw the values of features by class, one point per sample; a line is the mean.

    Of a class of more than 200 samples so many are drawn, at random. Needs ``frot[plot]``.

    Parameters
    ----------
    selector : FROTSelector
        Fitted on `X` and `y`.
    X : array, sparse array or DataFrame of shape (N, d)
    y : array of shape (N,)
    comparison : int or str
        As in `plot_volcano`.
    features : sequence of str, optional
        Names; by default the best twelve.
    feature_names : sequence of str, length d, optional
        By default those of the fit.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from frot.selection import FROTSelector
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(20, 6)), np.repeat(["sick", "well"], 10)
    >>> selector = FROTSelector(2).fit(X, y)
    >>> len(plot_strips(selector, X, y, features=["x1", "x4"]).axes)
    2
    """
    drawn = Drawn.of(selector, X, y, feature_names)
    place = comparison_at(selector, comparison)
    if features is None:
        return draw_strips(strips_of(drawn, place, drawn.best(place, 12)))
    where = {str(name): column for column, name in enumerate(drawn.names)}
    for name in features:
        if name not in where:
            raise InputError(
                f"features: {name!r} is not a feature{did_you_mean(name, list(drawn.names))}"
            )
    return draw_strips(strips_of(drawn, place, [where[name] for name in features]))


def strips_of(drawn: Drawn, place: int, columns: Sequence[int]) -> list[Strip]:
    """Put together the strips of some columns in a comparison, a class each where they are few."""
    compared, prepared = drawn.selector.comparisons_[place], drawn.prepared
    rows, values = compared.contrast.rows, drawn.values(place, columns)
    kinds = [(compared.labels[0], compared.contrast.is_first, BLUE)]
    if compared.second is None and len(prepared.classes) <= 6:
        others = [code for code, name in enumerate(prepared.classes) if name != compared.first]
        kinds += [(str(prepared.classes[code]), prepared.codes[rows] == code, ORANGE)
                  for code in others]  # fmt: skip
    else:
        kinds.append((compared.labels[1], ~compared.contrast.is_first, ORANGE))
    q = drawn.selector.p_values[1]
    strips = []
    for column, of_feature in zip(columns, values.T, strict=True):
        note = f"t = {compared.effects.t[column]:+.1f}"
        if drawn.selector.single:
            note += f", q = {q[column]:.2g}"
        classes = tuple(
            (label, of_feature[_some(inside)], float(of_feature[inside].mean()), colour)
            for label, inside, colour in kinds
        )
        strips.append(Strip(str(drawn.names[column]), note, classes))
    return strips


def _some(inside: np.ndarray, most: int = 200) -> np.ndarray:
    """Draw samples at random, always the same ones, where they are many."""
    rows = np.flatnonzero(inside)
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def draw_strips(strips: Sequence[Strip]) -> Figure:
    """Draw strips in rows of six, each with the mean of every class."""
    across = min(6, max(len(strips), 2))
    down = max(1, -(-len(strips) // across))
    figure = new_figure(10.0, 2.35 * down + 0.2)
    grid = np.ravel(figure.subplots(down, across, squeeze=False))
    rng = np.random.default_rng(0)
    for axes, strip in zip(grid, strips, strict=False):
        count = len(strip.classes)
        marked = strip.marked or (np.zeros(0, dtype=bool),) * count
        for position, (_, values, mean, colour) in enumerate(strip.classes):
            size = float(np.clip(900.0 / max(len(values), 1), 4.0, 16.0))
            spread = rng.uniform(-0.28, 0.28, size=len(values))
            axes.scatter(
                position + spread, values, s=size, color=colour, alpha=0.55, linewidths=0.0,
                rasterized=len(values) * len(strips) > MANY,
            )  # fmt: skip
            if marked[position].any():
                axes.scatter(
                    (position + spread)[marked[position]], values[marked[position]],
                    s=3.0 * size, linewidths=1.1, facecolors="none", edgecolors=INK,
                )  # fmt: skip
            axes.plot(
                [position - 0.36, position + 0.36], [mean, mean], color=INK, linewidth=1.8, zorder=4
            )
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
        axes.set_title(plain(shorten(strip.title, 16)), loc="left", fontsize=9.5, pad=14)
        axes.annotate(
            strip.note, (0, 1), xycoords="axes fraction", xytext=(0, 4),
            textcoords="offset points", fontsize=7.5, color="#666666",
        )  # fmt: skip
    for axes in grid[len(strips) :]:
        axes.remove()
    return figure


def plot_shapes(
    test: ShapeTest,
    X: Any,
    y: Any,
    features: Sequence[str] | None = None,
    *,
    block: Any = None,
) -> Figure:
    """Draw features whose form differs, with a ring around each sample of the subgroup.

    Values are centred by class: a difference of means is none of shape. Needs ``frot[plot]``.

    Parameters
    ----------
    test : ShapeTest
        Of `X` and `y`.
    X : array or DataFrame of shape (N, d)
    y : array of shape (N,)
    features : sequence of str, optional
        By default the surest six.
    block : array of shape (N,), optional
        Whose effects are taken out.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from frot.selection import shape_test
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 6)), np.repeat(["sick", "well"], 20)
    >>> len(plot_shapes(shape_test(X, y, n_permutations=99), X, y, ["x0"]).axes)
    1
    """
    prepared = prepare(FROTSelector(missing="impute"), X, y, block, doubts=False)
    labels = prepared.classes[prepared.codes].astype(str)
    if prepared.table.shape != (len(test.sample_names), len(test.names)) or {*labels} != {
        *test.labels
    }:
        raise InputError("X, y: are not what was tested")
    if features is None:
        chosen = test.order[:6].tolist()
    else:
        unknown = [name for name in features if name not in test.names]
        if unknown:
            raise InputError(
                f"features: {unknown[0]!r} is not a feature{did_you_mean(unknown[0], test.names)}"
            )
        chosen = [test.names.index(name) for name in features]
    values = prepared.dense(np.arange(len(labels)), chosen, prepared.contrasts[0]).T
    return draw_strips(
        [
            shape_strip(test, of_feature, labels, column)
            for of_feature, column in zip(values, chosen, strict=True)
        ]
    )


def shape_strip(test: ShapeTest, values: np.ndarray, labels: np.ndarray, column: int) -> Strip:
    """Put together the strip of one tested feature."""
    inside = np.zeros(len(values), dtype=bool)
    inside[test.subgroups[column]] = True
    classes, marked = [], []
    for label, colour in zip(test.labels, (BLUE, ORANGE), strict=True):
        of_class = labels == label
        own = values[of_class] - values[of_class].mean()
        classes.append((label, own, 0.0, colour))
        marked.append(inside[of_class])
    note = f"form q = {test.q_form[column]:.2g}"
    return Strip(test.names[column], note, tuple(classes), tuple(marked))


def plot_heat_map(
    selector: FROTSelector,
    X: Any,
    y: Any,
    comparison: int | str = 0,
    *,
    feature_names: Sequence[str] | None = None,
    sample_names: Sequence[str] | None = None,
) -> Figure:
    """Draw the best thirty features of every sample, classes side by side, similar samples near.

    Values are standardised feature by feature. Of more than 400 samples of a class every second,
    third, ... is drawn. Needs ``frot[plot]``.

    Parameters
    ----------
    selector, X, y, comparison, feature_names :
        As in `plot_strips`.
    sample_names : sequence of str, length N, optional
        By default numbers, from 1.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from frot.selection import FROTSelector
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(20, 6)), np.repeat(["sick", "well"], 10)
    >>> figure = plot_heat_map(FROTSelector(2).fit(X, y), X, y)
    >>> [axes.get_title("left") for axes in figure.axes[:2]]
    ['sick  (10)', 'well  (10)']
    """
    drawn = Drawn.of(selector, X, y, feature_names, sample_names)
    return draw_heat_map(drawn, comparison_at(selector, comparison))


def draw_heat_map(drawn: Drawn, place: int) -> Figure:
    """Draw the heat map of a comparison."""
    compared = drawn.selector.comparisons_[place]
    columns = drawn.best(place, 30)
    values = drawn.values(place, columns)
    values = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-300)
    named = len(values) <= 90
    figure = new_figure(10.0, 1.6 + 0.24 * max(len(columns), 4) + (0.7 if named else 0.0))
    # Each class gets room by its size, but never less than a sixth.
    share = float(np.clip(compared.sizes[0] / sum(compared.sizes), 1 / 6, 5 / 6))
    both = figure.subplots(1, 2, sharey=True, width_ratios=[share, 1.0 - share])
    image: Any = None
    sides = (compared.contrast.is_first, ~compared.contrast.is_first)
    for axes, inside, label, colour, wide in zip(
        both, sides, compared.labels, (BLUE, ORANGE), (share, 1.0 - share), strict=True
    ):
        some = np.flatnonzero(inside)
        some = some[:: -(-len(some) // 400)]
        order = some[_similar(values[some])]
        look = {"aspect": "auto", "cmap": "RdBu_r", "vmin": -2.5, "vmax": 2.5}
        image = axes.imshow(values[order].T, interpolation="nearest", **look)
        # A narrow panel has room for a short name only.
        count = f"  ({int(inside.sum()):,})"
        title = shorten(label, max(4, int(95 * wide) - len(count))) + count
        axes.set_title(plain(title), loc="left", fontsize=10, color=colour, weight="bold")
        axes.spines[:].set_visible(False)
        # A line in the colour of the class ties the panel to the other pictures.
        axes.axhline(-0.5, color=colour, linewidth=5, solid_capstyle="butt")
        axes.set_xticks([])
        if named:
            shown = compared.contrast.rows[order].tolist()
            texts = [plain(shorten(str(drawn.samples[row]), 16)) for row in shown]
            axes.set_xticks(
                np.arange(len(order)), texts, rotation=90, fontsize=7.0 if len(order) <= 45 else 5.5
            )
        axes.tick_params(length=0, colors=INK)
    names = [plain(shorten(str(drawn.names[column]))) for column in columns]
    both[0].set_yticks(np.arange(len(columns)), names, fontsize=8.5)
    colour_bar(image, both, "standardised value", shrink=0.6, extend="both")
    return figure


def _similar(points: np.ndarray) -> np.ndarray:
    """Return an order in which neighbours are alike."""
    from scipy.cluster.hierarchy import leaves_list, linkage

    if len(points) < 3:
        return np.arange(len(points))
    return leaves_list(linkage(points, "average", optimal_ordering=True))


def plot_pathways(test: PathwayTest, rows: int = 20) -> Figure:
    """Draw the best sets as bars: how far each stands out, in which class it is higher.

    Full colours have a competitive q <= 0.05. Needs ``frot[plot]``.

    Parameters
    ----------
    test : PathwayTest
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
    order, scores = test.order[:rows], test.score
    figure = new_figure(10.0, 1.1 + 0.29 * max(len(order), 3))
    axes = figure.add_subplot()
    far = max(float(np.abs(scores[order]).max(initial=0.0)), 1e-300)
    for position, group in enumerate(order):
        up, q = test.up_in[group], test.q_competitive[group]
        # "tumor vs normal", or "a vs rest": the first class begins the name.
        first = test.contrast[group].startswith(f"{up} vs ")
        colour = GREY if up == "mixed" else BLUE if first else ORANGE
        axes.barh(
            position, scores[group], color=colour, alpha=1.0 if q <= LEVEL else 0.4, height=0.72
        )
        where = "both ways" if up == "mixed" else f"up in {shorten(up, 18)}"
        axes.annotate(
            plain(f"{where}, q {q:.2g}"), (max(float(scores[group]), 0.0), position), xytext=(5, 0),
            textcoords="offset points", va="center", fontsize=8.5, color=INK,
        )  # fmt: skip
    names = [plain(shorten(test.names[group], 44)) for group in order]
    axes.set_yticks(range(len(order)), names, fontsize=8.5)
    axes.set_ylim(max(len(order), 3) - 0.4, -0.6)
    axes.set_xlim(1.05 * min(0.0, float(scores[order].min(initial=0.0))), 1.42 * far)
    axes.set_xlabel("score: standard deviations above permuted labels")
    tidy(axes)
    axes.tick_params(axis="y", length=0, labelsize=8.5)
    return figure
