"""What is shown of evaluated rows: tables by class with the paper's figures, and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from _pairs import THRESHOLD, Network, Row, layers_used, row_matcher, with_error
from frot.correspondence import Evaluation, PairSet, plot_matches, result_table
from frot.show.style import BLUE, GREY, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Evaluations by the name of the set and the label of the row.
Made = Mapping[str, Mapping[str, Evaluation]]


def table_by_class(some: Mapping[str, Evaluation]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of PCK by class; rows that the paper has too are followed by its."""
    table = result_table(some, (THRESHOLD,), every=True)
    # On SPair-71k only. Others than these have no figures by class.
    paper = {row.method: row for row in table.rows if row.source.startswith("the FROT paper")}
    rows = []
    for label, one in some.items():
        own = [
            f"{100 * one.pck(THRESHOLD, category=name).value:.1f}" if name in one.categories else ""
            for name in table.classes
        ]
        used = f"{layers_used(one):.1f}"
        rows.append([label, *own, with_error(one.pck(THRESHOLD)), used, f"{one.seconds:.2f}"])
        if label in paper:
            theirs = paper[label]
            own = [f"{theirs.values[name]:.1f}" for name in table.classes]
            rows.append([f"{label} (paper)", *own, f"{theirs.all:.1f}", "", ""])
    names = [table.short.get(name, name) for name in table.classes]
    return ["", *names, "all", "layers used", "s"], rows


def draw_scores(made: Made, labels: Mapping[str, str]) -> Figure:
    """Draw PCK of rows, by what they are called, with its standard error; a panel for each set."""
    figure: Any = new_figure(3.0 + 3.2 * len(made), 1.2 + 0.34 * len(labels))
    panels = figure.subplots(1, len(made), sharey=True, squeeze=False)[0]
    for axes, (name, rows) in zip(panels, made.items(), strict=True):
        scores = [rows[label].pck(THRESHOLD) for label in labels.values()]
        axes.errorbar(
            [100 * one.value for one in scores],
            range(len(labels)),
            xerr=[100 * np.nan_to_num(one.standard_error) for one in scores],
            fmt="o",
            color=BLUE,
            capsize=2.0,
        )
        axes.grid(axis="y", color=GREY, alpha=0.2)
        axes.set_title(f"{name}, {scores[0].count} pairs", fontsize=11)
        axes.set_xlabel("PCK at .1, percent")
        tidy(axes)
    panels[0].set_yticks(range(len(labels)), list(labels))
    panels[0].invert_yaxis()
    return figure


def draw_layers(made: Made, labels: Mapping[str, str]) -> Figure:
    """Draw mean weights of the layers, a panel for each set and a line for each eta."""
    from matplotlib import colormaps

    figure: Any = new_figure(1.6 + 4.4 * len(made), 4.2)
    panels = figure.subplots(1, len(made), squeeze=False)[0]
    colours = colormaps["viridis"](np.linspace(0.0, 0.92, len(labels)))
    for axes, (name, rows) in zip(panels, made.items(), strict=True):
        for (eta, label), colour in zip(labels.items(), colours, strict=True):
            alpha = list(rows[label].alpha.values())
            axes.plot(range(1, len(alpha) + 1), alpha, color=colour, label=eta)
        axes.set_title(name, fontsize=11)
        axes.set_xlabel("layer")
        axes.set_ylabel("mean weight")
        axes.set_ylim(bottom=0.0)
        axes.xaxis.get_major_locator().set_params(integer=True)
        tidy(axes)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, title="eta", loc="outside right center", frameon=False)
    return figure


def draw_matches(sets: Sequence[tuple[PairSet, Network, Row]]) -> Figure:
    """Draw the annotated points of the first pair of each set, right and wrong."""
    figure: Any = new_figure(9.0, 3.7 * len(sets))
    panels = figure.subplots(len(sets), 1, squeeze=False)[:, 0]
    for axes, (pairs, network, row) in zip(panels, sets, strict=True):
        pair = pairs.pairs[0]
        match = row_matcher(network, row)(pair.source, pair.target)
        size = THRESHOLD * pair.length
        plot_matches(match, pair.source_points, axes, targets=pair.target_points, threshold=size)
    return figure
