"""The picture: where alpha goes, and what is left of the matches, a row a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frot.show.style import BLUE, GREY, INK, ORANGE, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_noise_layers"]

HEIGHT = 0.36


def draw_noise_layers(numbers: dict[str, Any]) -> Figure:
    """Draw alpha on real layers and on noise, and PCK without and with noise, for each choice."""
    made = numbers["networks"]
    rows = max(len(network["choices"]) for network in made.values())
    figure: Any = new_figure(13.0, 0.9 + len(made) * (0.8 + 0.52 * rows))
    grid = figure.subplots(len(made), 3, squeeze=False, sharey="row")
    for line, (name, network) in zip(grid, made.items(), strict=True):
        choices = list(network["choices"].values())
        _weights(line[0], choices, numbers["noise_layers"], len(network["layers"]))
        _scores(line[1], choices, "plain")
        _scores(line[2], choices, "hough")
        counts = f"{len(network['layers'])} + {numbers['noise_layers']} layers"
        line[0].set_title(f"{name}, {counts}: weights α", fontsize=10)
        line[1].set_title("PCK .1 without Hough matching", fontsize=10)
        line[2].set_title("PCK .1 with Hough matching", fontsize=10)
    handles, labels = [], []
    for axes in grid[0, :2]:
        more, names = axes.get_legend_handles_labels()
        handles, labels = handles + more, labels + names
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=10)
    return figure


def _weights(axes: Any, choices: list[dict[str, Any]], noise: int, real: int) -> None:
    at = np.arange(len(choices))
    masses = np.array([part["noise"]["value"] for part in choices])
    axes.barh(at, 1.0 - masses, 2 * HEIGHT, color=BLUE, label="real layers")
    axes.barh(at, masses, 2 * HEIGHT, left=1.0 - masses, color=ORANGE, label="layers of noise")
    for y, mass in zip(at, masses, strict=True):
        axes.text(1.02, y, f"{mass:.1%}", va="center", fontsize=9, color=INK)
    share = noise / (noise + real)
    axes.axvline(1.0 - share, color=INK, linewidth=1.0, linestyle=":", label="share by number")
    axes.set_xlim(0.0, 1.16)
    axes.set_xticks([0.0, 0.5, 1.0])
    _dress(axes, choices)


def _scores(axes: Any, choices: list[dict[str, Any]], way: str) -> None:
    at = np.arange(len(choices))
    # Solid orange is the weight on noise; scores under noise are hatched.
    looks = {
        "quiet": {"color": GREY, "edgecolor": GREY, "label": "without noise (± standard error)"},
        "noisy": {
            "color": "white", "edgecolor": ORANGE, "hatch": "////",
            "label": "with noise (± standard error)",
        },
    }  # fmt: skip
    bars = {"ecolor": INK, "elinewidth": 1.0, "capsize": 2.0}
    for side, (key, look) in zip((-0.5, 0.5), looks.items(), strict=True):
        found = [part[way][key] for part in choices]
        values = np.array([100.0 * one["value"] for one in found])
        errors = np.array([100.0 * (one["error"] or 0.0) for one in found])
        axes.barh(at + side * HEIGHT, values, HEIGHT, xerr=errors, error_kw=bars, **look)
        for y, value, error in zip(at, values, errors, strict=True):
            place = (value + error + 1.0, y + side * HEIGHT)
            axes.text(*place, f"{value:.0f}", va="center", fontsize=8, color=INK)
    axes.set_xlim(0.0, 108.0)
    axes.set_xlabel("% of points")
    _dress(axes, choices)


def _dress(axes: Any, choices: list[dict[str, Any]]) -> None:
    tidy(axes)
    axes.set_yticks(np.arange(len(choices)), [part["label"] for part in choices])
    axes.set_ylim(len(choices) - 0.5, -0.5)
