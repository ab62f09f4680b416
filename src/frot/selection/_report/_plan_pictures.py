"""Pictures of a comparison's plan: who corresponds to whom, and where everyone is mapped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frot.show.style import BLUE, GREY, INK, ORANGE, new_figure, plain, shorten, tidy
from frot.selection._report._pictures import name_samples
from frot.selection._report._view import View

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_barycentres", "draw_correspondence"]

# A cell smaller than two pixels cannot be seen.
MAX_CELLS = 300
MAX_ARROWS = 400
MAX_NAMES = 64


def draw_correspondence(view: View) -> Figure:
    """Draw the plan as cells: what share of a patient of the first class goes where."""
    plan = view.comparison.plan
    n, m = plan.shape
    rows, cols = view.order
    where_row, where_col = np.empty(n, dtype=int), np.empty(m, dtype=int)
    where_row[rows], where_col[cols] = np.arange(n), np.arange(m)
    i, j, mass = plan.arcs()
    share = mass / np.maximum(np.asarray(plan.sum(axis=1)).ravel()[i], 1e-300)
    bins = min(n, MAX_CELLS), min(m, MAX_CELLS)
    cells = np.zeros(bins)
    np.add.at(cells, (where_row[i] * bins[0] // n, where_col[j] * bins[1] // m), share)
    cells *= bins[0] / n
    height = float(np.clip(10.0 * n / m, 3.6, 9.0)) if n <= MAX_NAMES else 6.0
    figure = new_figure(10.0, max(height, 1.6 + 0.13 * n) if n <= MAX_NAMES else height)
    axes = figure.add_subplot()
    image = axes.imshow(
        cells,
        cmap="Blues",
        vmin=0.0,
        vmax=max(float(cells.max()), 1e-12),
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, m - 0.5, n - 0.5, -0.5),
    )
    first, second = (plain(shorten(label, 40)) for label in view.labels)
    axes.set_ylabel(first, color=BLUE, weight="bold")
    axes.set_xlabel(second, color=ORANGE, weight="bold")
    for side, size, names in (
        ("y", n, [view.ids[0][k] for k in rows]),
        ("x", m, [view.ids[1][k] for k in cols]),
    ):
        if size <= MAX_NAMES:
            name_samples(axes, side, names)
        else:
            getattr(axes, f"set_{side}ticks")([])
    for spine in axes.spines.values():
        spine.set_color("#C9CDD2")
    axes.tick_params(length=0, colors=INK)
    if max(n, m) <= MAX_NAMES:
        # Faint lines, so that the eye finds its way to the names.
        axes.set_xticks(np.arange(m + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(n + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="#EEF0F3", linewidth=0.6)
        axes.tick_params(which="minor", length=0)
    bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.015, aspect=24)
    bar.set_label("share of the row's mass", fontsize=9, color=INK)
    bar.ax.tick_params(colors=INK, labelsize=8)
    outline: Any = bar.outline
    outline.set_visible(False)
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
    where: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}
    axes.legend(ncols=3, frameon=False, fontsize=9, handletextpad=0.2, borderaxespad=0.2, **where)
    return figure
