"""The figure: accuracy against the number of features, a panel per set."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from frot._reproduce._selection_methods import METHODS
from frot.show.style import BLUE, GREEN, GREY, INK, ORANGE, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_selection"]

# colour, marker, dashes; what the paper did not compare is dotted.
LOOKS = {
    "frot_paper": (BLUE, "o", "-"),
    "frot": (ORANGE, "s", "-"),
    "wasserstein": (INK, "^", "--"),
    "linear": (GREEN, "v", "--"),
    "mmd": ("#CC79A7", "D", "--"),
    "f_classif": (GREY, "x", ":"),
    "mrmr": ("#B8860B", "+", ":"),
}


def draw_selection(numbers: dict[str, Any]) -> Figure:
    """Draw the panels from the numbers of `selection`."""
    sets = numbers["sets"]
    columns = min(4, len(sets))
    rows = math.ceil(len(sets) / columns)
    figure: Any = new_figure(4.0 * columns, 0.7 + 3.4 * rows)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, made in zip(grid.flat, sets.values(), strict=False):
        for key, (colour, marker, dashes) in LOOKS.items():
            axes.plot(
                numbers["ks"],
                made["accuracy"][key]["mean"],
                color=colour,
                marker=marker,
                linestyle=dashes,
                markersize=4.5,
                linewidth=1.3,
                label=METHODS[key].label,
            )
        tidy(axes)
        axes.grid(True, color="#DDDDDD", linewidth=0.6)
        axes.set_title(f"{made['label']}\nn = {made['n']}, d = {made['d']:,}", fontsize=10)
        axes.set_xticks(numbers["ks"])
    for axes in list(grid.flat)[len(sets) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel(f"accuracy, mean of {numbers['splits']} splits")
    for axes in list(grid.flat)[max(0, len(sets) - columns) : len(sets)]:
        axes.set_xlabel("features selected")
    handles, labels = grid.flat[0].get_legend_handles_labels()
    # A single panel is too narrow for all names side by side.
    wide = 4 if columns > 1 else 2
    size = 10 if columns > 1 else 8
    figure.legend(
        handles, labels, loc="outside lower center", ncols=wide, frameon=False, fontsize=size
    )
    return figure
