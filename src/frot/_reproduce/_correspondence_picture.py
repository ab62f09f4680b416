"""The picture of the correspondence runs: a panel a network, a line a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from frot._reproduce._correspondence_choices import PROPOSED
from frot.show.style import BLUE, GREY, ORANGE, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_correspondence"]


def draw_correspondence(rows: Sequence[Mapping[str, Any]], part: str) -> Figure:
    """Draw PCK of every method with its standard error, without and with Hough matching."""
    shown = [
        row
        for row in rows
        if row["transfer"] == "median" and row["pairs_of"] == part and row["pck"] is not None
    ]
    networks = list(dict.fromkeys(row["network"] for row in shown))
    labels = list(dict.fromkeys(row["label"] for row in shown))
    figure: Any = new_figure(1.0 + 3.6 * len(networks), 1.2 + 0.36 * len(labels))
    panels = figure.subplots(1, len(networks), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, networks, strict=True):
        for hough, colour, marker in ((False, ORANGE, "o"), (True, BLUE, "s")):
            here = [row for row in shown if row["network"] == name and row["hough"] == hough]
            axes.errorbar(
                [row["pck"] for row in here],
                [labels.index(row["label"]) for row in here],
                xerr=[row["standard_error"] or 0.0 for row in here],
                fmt=marker,
                color=colour,
                label="with Hough matching" if hough else "without",
                markersize=5.5,
                capsize=2.0,
                linewidth=1.2,
            )
        for line in range(len(labels)):
            axes.axhline(line, color=GREY, alpha=0.18, linewidth=0.8, zorder=0)
        axes.set_title(name, fontsize=11)
        axes.set_xlabel("PCK at .1, percent")
        tidy(axes)
    panels[0].set_yticks(range(len(labels)), labels)
    ours = next((row["label"] for row in shown if row["choice"] == PROPOSED), None)
    for text in panels[0].get_yticklabels():
        text.set_fontweight("bold" if text.get_text() == ours else "normal")
    panels[0].invert_yaxis()
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False, fontsize=10)
    figure.suptitle(f"PF-WILLOW, {part}", fontsize=12)
    return figure
