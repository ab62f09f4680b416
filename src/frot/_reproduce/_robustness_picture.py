"""The picture of the robustness experiments: a row a measure, a column a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frot._reproduce._robustness_data import CLOUDS
from frot._reproduce._robustness_runs import METHODS, PROVEN
from frot.show.style import BLUE, GREEN, GREY, INK, ORANGE, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_robustness"]

STYLES = {
    "frot": (BLUE, "o", "-"),
    "srw": (GREEN, "s", "-"),
    "max_sliced": (ORANGE, "^", "-"),
    "ot": (GREY, "D", "--"),
}
SWEEPS = {
    "level": ("over_level", "standard deviation of the noise"),
    "noise_features": ("over_features", "features of noise"),
    "n": ("over_n", "points in each cloud"),
}


def draw_robustness(numbers: dict[str, Any]) -> Figure:
    """Draw value and choice over noise, features of noise and points, for both clouds."""
    figure: Any = new_figure(12.5, 13.0)
    parts = figure.subfigures(2, 1)
    for part, (cloud, what) in zip(parts, CLOUDS.items(), strict=True):
        part.suptitle(what.name[0].upper() + what.name[1:], fontsize=13, x=0.01, ha="left")
        grid = part.subplots(2, 3, sharex="col")
        for column, (key, (sweep, label)) in enumerate(SWEEPS.items()):
            points = numbers[sweep][cloud]
            measured = "error" if key == "n" else "ratio"
            _lines(grid[0, column], points, key, measured)
            _lines(grid[1, column], points, key, "recovered")
            grid[1, column].set_xlabel(label)
        _dress(grid)
    handles, labels = parts[0].axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=11)
    return figure


def _lines(axes: Any, points: list[dict[str, Any]], key: str, measured: str) -> None:
    at = [point[key] for point in points]
    # Methods that agree lie on each other; the later ones are drawn smaller to show both.
    for size, (method, name) in zip((9.0, 7.0, 5.5, 4.5), METHODS.items(), strict=True):
        colour, marker, dashes = STYLES[method]
        values = [point[method][measured] for point in points]
        style = {"color": colour, "marker": marker, "linestyle": dashes, "markersize": size}
        axes.plot(at, values, label=name, linewidth=1.8, markeredgecolor="white", **style)
        if method != "srw":
            continue
        # Hollow where only bounds are known.
        open_at = [k for k, point in enumerate(points) if point[method]["gap"] > PROVEN]
        hollow = {**style, "linestyle": "none", "markerfacecolor": "white", "zorder": 5}
        if open_at:
            axes.plot([at[k] for k in open_at], [values[k] for k in open_at], **hollow)


def _dress(grid: Any) -> None:
    for axes in grid.ravel():
        tidy(axes)
        axes.grid(True, color="#E3E3E3", linewidth=0.6)
    for axes in grid[0]:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    for axes in grid[0, :2]:
        axes.axhline(1.0, color=INK, linewidth=0.8)
        axes.set_yticks([1, 2, 5, 10, 20], minor=False)
        axes.yaxis.set_minor_formatter(lambda value, _: "")
    for axes in grid[1]:
        axes.set_ylim(-0.04, 1.06)
    for axes in grid[:, 2]:
        axes.set_xscale("log")
    lines = grid[0, 2].lines
    ticks = [float(value) for value in lines[0].get_xdata()]
    grid[1, 2].set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    grid[1, 2].set_xticks([], minor=True)
    grid[0, 0].set_ylabel("value / noiseless value")
    grid[0, 2].set_ylabel("relative error of the value")
    grid[1, 0].set_ylabel("choice on the true features")
