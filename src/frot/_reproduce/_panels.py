"""Figure 1's picture: three plans side by side, in the two true features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from frot._reproduce._three import NAMES, Three
from frot.show.plan import draw_arcs
from frot.show.style import new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_three"]


def draw_three(rows: Sequence[tuple[str, Three]]) -> Figure:
    """Draw one row of three panels for each (label, runs)."""
    figure: Any = new_figure(12.0, 0.5 + 3.7 * len(rows))
    grid = figure.subplots(len(rows), 3, sharex=True, sharey=True, squeeze=False)
    for line, (label, three) in zip(grid, rows, strict=True):
        for axes, (name, title) in zip(line, NAMES.items(), strict=True):
            draw_arcs(axes, three.runs[name].result.plan, three.x, three.y, ("x", "y"), size=16.0)
            tidy(axes)
            note = "the reference"
            if name != "clean":
                note = f"{three.shared(name):.0%} of the mass as on clean data"
            axes.set_title(f"{title}\n{note}", fontsize=10.5)
        line[0].set_ylabel(f"{label}\n\ntrue feature 2" if label else "true feature 2")
    for axes in grid[-1]:
        axes.set_xlabel("true feature 1")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=10)
    return figure
