"""Pictures of several methods: intervals on one axis, what each chose, plans side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from frot._base.errors import InputError
from frot.show.plan import checked_features, draw_arcs, draw_cells
from frot.show.style import BLUE, FAINT, INK, ORANGE, legend_above, new_figure, plain, shorten, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure, FigureBase

    from frot.comparison import Comparison, Row
    from frot.plans.plan import Plan

# More points than this are drawn as a heat map: their arcs would hide each other.
MAX_POINTS = 400
ACROSS = 3
BARS = 8


def plot_comparison(comparison: Comparison, features: tuple[int, int] | None = None) -> Figure:
    """Draw the intervals above and the plans below.

    Examples
    --------
    >>> import frot
    >>> both = frot.compare([[0.0, 0.0]], [[3.0, 4.0]], ["frot", "ot"])
    >>> len(plot_comparison(both).axes)
    3
    """
    _need_answers(comparison)
    top, below = _intervals_height(comparison), _plans_height(comparison)
    figure: Any = new_figure(11.0, top + below)
    upper, lower = figure.subfigures(2, 1, height_ratios=[top, below])
    _draw_intervals(upper, comparison)
    _draw_plans(lower, comparison, features)
    return figure


def plot_intervals(comparison: Comparison) -> Figure:
    """Draw the values and the intervals that hold the truth, all on one axis."""
    _need_answers(comparison)
    figure = new_figure(10.4, _intervals_height(comparison))
    _draw_intervals(figure, comparison)
    return figure


def plot_plans(comparison: Comparison, features: tuple[int, int] | None = None) -> Figure:
    """Draw every plan in the same two features, or as heat maps where points are many."""
    _need_answers(comparison)
    figure = new_figure(10.4, _plans_height(comparison))
    _draw_plans(figure, comparison, features)
    return figure


def plot_choices(comparison: Comparison) -> Figure:
    """Draw what each adversary chose: the heaviest groups, or features of its directions."""
    _need_answers(comparison)
    # Methods whose adversary has no choice have nothing to show, unless there is no other.
    free = [row for row in comparison.answered if row.method not in ("ot", "sliced")]
    rows = free or list(comparison.answered)
    parts = [shares_of(row) for row in rows]
    across = _across(len(rows))
    lines = math.ceil(len(rows) / across)
    tall = max(min(BARS, len(part.values)) for part in parts)
    figure: Any = new_figure(10.4, lines * (0.9 + 0.24 * max(tall, 3)))
    grid = figure.subplots(lines, across, squeeze=False).ravel()
    for axes, row, part in zip(grid, rows, parts, strict=False):
        order = np.argsort(-part.values, kind="stable")[:BARS]
        place = np.arange(len(order))
        axes.barh(place, part.values[order], color=BLUE, height=0.72)
        axes.set_yticks(place, [plain(shorten(part.names[int(at)], 18)) for at in order])
        axes.set_ylim(max(len(order), 3) - 0.4, -0.6)
        axes.set_xlim(0.0, max(1.0, 1.05 * float(part.values.max())))
        tidy(axes)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(part.label)
        axes.set_title(row.title, loc="left", fontsize=11)
        left = len(part.values) - len(order)
        if left:
            rest = float(part.values.sum() - part.values[order].sum())
            text = f"and {left} more: {rest:.2g}"
            axes.text(0.98, 0.04, text, transform=axes.transAxes, ha="right", fontsize=9, color=INK)
    for axes in grid[len(rows) :]:
        axes.set_visible(False)
    return figure


class Shares(NamedTuple):
    """How much of a choice falls on each name."""

    values: np.ndarray
    names: Sequence[str]
    label: str


def shares_of(row: Row) -> Shares:
    """Return a method's choice as non-negative shares of groups or features.

    Examples
    --------
    >>> import frot
    >>> both = frot.compare([[0.0, 0.0]], [[3.0, 4.0]], ["srw", "frot"], k=1)
    >>> [shares_of(row).values.round(2).tolist() for row in both.rows]
    [[0.36, 0.64], [0.0, 1.0]]
    """
    chosen = row.chosen
    assert chosen is not None
    if chosen.kind == "subspace":
        counts = np.ones(chosen.array.shape[1]) if chosen.weights is None else chosen.weights
        return Shares(chosen.array**2 @ counts, chosen.names, "share in Ω (sums to k)")
    if chosen.kind == "direction":
        what = "direction" if row.method == "max_sliced" else "parameters"
        return Shares(np.ravel(chosen.array) ** 2, chosen.names, f"squared entry of the {what}")
    label = "share of the mass" if chosen.kind == "costs" else "weight α"
    if row.method == "sliced":
        label = "all the same"
    return Shares(np.ravel(chosen.array), chosen.names, label)


def _need_answers(comparison: Comparison) -> None:
    if not comparison.answered:
        raise InputError("plot: no method has a result; the table says why")


def _intervals_height(comparison: Comparison) -> float:
    return 1.1 + 0.36 * max(2, sum(row.comparable for row in comparison.rows))


def _draw_intervals(figure: FigureBase, comparison: Comparison) -> None:
    axes: Any = figure.add_subplot()
    rows = [row for row in comparison.rows if row.comparable]
    known = [row.result for row in rows if row.result is not None]
    ends = [result.upper for result in known if math.isfinite(result.upper)]
    far = 1.06 * max([*ends, *(result.value for result in known)], default=1.0) or 1.0
    band = {"color": BLUE, "linewidth": 6, "alpha": 0.3, "solid_capstyle": "butt"}
    mark = {"color": ORANGE, "marker": "|", "markersize": 15, "markeredgewidth": 2.5}
    mark["linestyle"] = "none"
    names = ("interval that holds the truth", "value")
    for place, result in enumerate(known):
        upper = result.upper if math.isfinite(result.upper) else far
        axes.plot([result.lower, upper], [place, place], label=names[0], **band)
        if not math.isfinite(result.upper):
            axes.plot(upper, place, marker=">", color=BLUE, alpha=0.5, markersize=8, clip_on=False)
        axes.plot(result.value, place, label=names[1], **mark)
        names = ("", "")
    axes.set_yticks(range(len(known)), [row.title for row in rows])
    axes.set_ylim(max(len(known), 2) - 0.4, -0.6)
    axes.set_xlim(0.0 if min((r.lower for r in known), default=0.0) >= 0.0 else None, far)
    tidy(axes)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("squared transport cost")
    axes.set_title("Values and proven intervals", loc="left", fontsize=11)
    if known:
        legend_above(axes, 2)


def _plans_height(comparison: Comparison) -> float:
    count = len(comparison.answered)
    return 0.5 + 3.2 * math.ceil(count / _across(count))


def _across(count: int) -> int:
    """Return the columns of the grid; two by two looks better than three and one."""
    return 2 if count == 4 else min(ACROSS, count)


def _draw_plans(
    figure: FigureBase, comparison: Comparison, features: tuple[int, int] | None
) -> None:
    rows = list(comparison.answered)
    X, Y = comparison.points
    shown = _shown_features(comparison, features)
    across = _across(len(rows))
    many = max(len(X), len(Y)) > MAX_POINTS
    grid: Any = figure.subplots(
        math.ceil(len(rows) / across), across, squeeze=False, sharex=True, sharey=True
    ).ravel()
    x, y = _flat(X, shown, 1.0), _flat(Y, shown, 0.0)
    first = rows[0].result
    assert first is not None
    for place, (axes, row) in enumerate(zip(grid, rows, strict=False)):
        assert row.result is not None
        if many:
            # In the order of one feature, so that a plan that keeps order is a diagonal.
            draw_cells(axes, row.result.plan, (np.argsort(x[:, 0]), np.argsort(y[:, 0])))
        else:
            draw_arcs(axes, row.result.plan, x, y, size=14.0)
            tidy(axes)
        axes.set_title(row.title, loc="left", fontsize=11)
        if place:
            shared = _shared(row.result.plan, first.plan)
            note = f"{shared:.0%} as {rows[0].title}"
            axes.set_title(note, loc="right", fontsize=9, color=INK)
    for axes in grid[len(rows) :]:
        axes.set_visible(False)
    names = [plain(shorten(comparison.feature_names[feature], 24)) for feature in shown]
    if many:
        names = [f"Y, sorted by {names[0]}", f"X, sorted by {names[0]}"]
    for place, axes in enumerate(grid[: len(rows)]):
        if place + across >= len(rows):
            axes.set_xlabel(names[0])
            axes.tick_params(labelbottom=True)
        if place % across == 0 and len(names) > 1:
            axes.set_ylabel(names[1])
        if len(shown) == 1 and not many:
            axes.set_yticks([])
    if not many:
        grid[0].figure.legend(
            *grid[0].get_legend_handles_labels(), loc="outside lower right", ncols=2,
            frameon=False, fontsize=9, handletextpad=0.1,
        )  # fmt: skip


def _flat(points: np.ndarray, shown: list[int], height: float) -> np.ndarray:
    """Return two coordinates; points on a line go on two parallel ones."""
    if len(shown) == 2:
        return points[:, shown]
    return np.column_stack([points[:, shown[0]], np.full(len(points), height)])


def _shown_features(comparison: Comparison, features: tuple[int, int] | None) -> list[int]:
    """Return the features asked for, or the two on which most of all the choices falls."""
    d = comparison.points[0].shape[1]
    if features is not None:
        return checked_features(features, d)
    if d <= 2:
        return list(range(d))
    total = np.zeros(d)
    groups = comparison.groups
    for row in comparison.answered:
        if row.method not in ("frot", "max_min", "srw", "max_sliced"):
            continue
        values = shares_of(row).values
        if row.method in ("frot", "max_min"):
            values = np.bincount(groups.flat, np.repeat(values / groups.sizes, groups.sizes), d)
        total += values / max(float(values.sum()), 1e-300)
    return sorted(int(feature) for feature in np.argsort(-total, kind="stable")[:2])


def _shared(plan: Plan, other: Plan) -> float:
    """Return the mass that two plans put on the same arcs, without forming them."""
    width = plan.shape[1]
    (rows, cols, mass), (rows2, cols2, mass2) = plan.arcs(), other.arcs()
    keys, keys2 = rows.astype(np.int64) * width + cols, rows2.astype(np.int64) * width + cols2
    _, at, at2 = np.intersect1d(keys, keys2, return_indices=True)
    return float(np.minimum(mass[at], mass2[at2]).sum())
