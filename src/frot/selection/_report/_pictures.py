"""Pictures of a comparison: what the best features are made of, and all patients in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frot.show.style import BLUE, GREEN, GREY, INK, ORANGE, new_figure, plain, shorten, tidy
from frot.selection._report._view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_heat_map", "draw_p_values", "draw_parts", "name_samples"]

# Values beyond this many scales are drawn in the last colour.
CLIP = 2.5
# More names than this would overlap.
MAX_NAMES = 90


def draw_parts(view: View) -> Figure:
    """Draw shift, shape and misalignment of the best features stacked, and alpha beside them."""
    parts, count = view.comparison.parts, len(view.top)
    figure = new_figure(10.0, 1.5 + 0.25 * max(count, 4))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[2.2, 1.0])
    place, start = np.arange(count), np.zeros(count)
    stack = (("shift", parts.shift, BLUE), ("shape", parts.shape, GREEN))
    for name, values, colour in (*stack, ("misalignment", parts.misalignment, "#C9CDD2")):
        left.barh(place, values[view.top], left=start, color=colour, height=0.74, label=name)
        start = start + values[view.top]
    left.set_yticks(place, [plain(shorten(name)) for name in view.top_names])
    left.set_ylim(max(count, 3) - 0.4, -0.6)
    left.set_xlabel("cost φ of the plan, in scaled units")
    where: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}
    left.legend(ncols=3, frameon=False, fontsize=9, handlelength=1.2, borderaxespad=0.2, **where)
    left.set_title("What costs are made of", loc="left", fontsize=11)
    alpha = view.comparison.alpha
    right.barh(place, alpha[view.top], color=ORANGE, height=0.74)
    uniform = 1.0 / len(alpha)
    # Of thousands of features it would lie on the axis.
    seen = uniform > 0.02 * float(alpha[view.top].max())
    if seen:
        right.axvline(uniform, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)))
    right.set_xlabel("weight α   (dashed: all alike)" if seen else "weight α")
    right.set_title("Weights of the worst case", loc="left", fontsize=11)
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
            values[:, order],
            aspect="auto",
            cmap="RdBu_r",
            vmin=-CLIP,
            vmax=CLIP,
            interpolation="nearest" if values.shape[1] <= 400 else "antialiased",
        )
        title = f"{shorten(label, 40)}  ({len(order):,})"
        axes.set_title(plain(title), loc="left", fontsize=11, color=colour, weight="bold")
        axes.spines[:].set_visible(False)
        # A line in the colour of the class ties the panel to the other pictures.
        axes.axhline(-0.5, color=colour, linewidth=5, solid_capstyle="butt")
        if named:
            name_samples(axes, "x", [ids[i] for i in order])
        else:
            axes.set_xticks([])
        axes.tick_params(length=0, colors=INK)
    both[0].set_yticks(
        np.arange(count), [plain(shorten(name)) for name in view.features], fontsize=8.5
    )
    bar = figure.colorbar(image, ax=both, shrink=0.6, extend="both", pad=0.015, aspect=24)
    bar.set_label("scaled value", fontsize=9, color=INK)
    bar.ax.tick_params(colors=INK, labelsize=8)
    outline: Any = bar.outline
    outline.set_visible(False)
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
        (1.0, expected),
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


def name_samples(axes: Axes, side: str, names: list[str]) -> None:
    """Write the samples' names along an axis, small enough not to touch."""
    texts = [plain(shorten(name, 16)) for name in names]
    size = 7.0 if len(names) <= 45 else 5.5
    place = np.arange(len(names))
    if side == "x":
        axes.set_xticks(place, texts, rotation=90, fontsize=size)
    else:
        axes.set_yticks(place, texts, fontsize=size)
