"""The transport plan: lines between points, or a heat map where there are only costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._errors import require
from frot.show.projection import project
from frot.show.style import BLUE, GREY, INK, ORANGE, new_figure, plain, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

    from frot._group_arrays import GroupArrays
    from frot._plan import Plan
    from frot._result import Result

__all__ = ["draw_arcs", "draw_plan", "plot_plan"]

MAX_ARCS = 4_000
# A cell smaller than two pixels cannot be seen.
MAX_CELLS = 200


def plot_plan(
    result: Result,
    features: tuple[int, int] | None = None,
    *,
    groups: GroupArrays | None = None,
    feature_names: Sequence[str] | None = None,
) -> Figure:
    """Draw the plan as lines between the points, darker where more mass moves.

    Parameters
    ----------
    result : Result
    features : pair of int, optional
        The two features to show. By default those of the heaviest group, or its first two
        principal components if it has more than two.
    groups : Groups, optional
        Which features are in which group, where the result does not know.
    feature_names : sequence of str, length d, optional
        For the axes.

    Returns
    -------
    matplotlib.figure.Figure
        A heat map of the plan if the result has no points.

    Examples
    --------
    >>> import frot
    >>> res = frot.solve([[0.0, 0.0], [1.0, 1.0]], [[1.0, 3.0], [0.0, 2.0]])
    >>> plot_plan(res).axes[0].get_title("left")
    'Transport plan'
    """
    figure = new_figure(6.0, 5.0)
    draw_plan(figure, result, features, groups=groups, feature_names=feature_names)
    return figure


def draw_plan(
    figure: FigureBase,
    result: Result,
    features: tuple[int, int] | None = None,
    *,
    groups: GroupArrays | None = None,
    feature_names: Sequence[str] | None = None,
) -> None:
    """Draw the plan into a figure or a part of one."""
    axes = figure.add_subplot()
    if result.points is None and features is None:
        _draw_cells(axes, result.plan)
        return
    shown = project(result, features, groups, feature_names)
    share = draw_arcs(axes, result.plan, shown.x, shown.y)
    tidy(axes)
    axes.set_xlabel(plain(shown.labels[0]))
    axes.set_ylabel(plain(shown.labels[1]))
    if not shown.labels[1]:
        axes.set_yticks([])
    part = "" if share > 0.9995 else f" ({share:.0%} of the mass)"
    axes.set_title(f"Transport plan{part}", loc="left", fontsize=11)
    # Above the axes no point can be behind the legend.
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}
    axes.legend(ncols=2, frameon=False, fontsize=9, handletextpad=0.1, borderaxespad=0.2, **place)


def draw_arcs(
    axes: Axes,
    plan: Plan,
    x: np.ndarray,
    y: np.ndarray,
    names: tuple[str, str] = ("X", "Y"),
    size: float = 22.0,
) -> float:
    """Draw points of shapes (n, 2) and (m, 2) and the plan's arcs between them.

    Returns the share of the mass that the drawn arcs carry: all of it unless they are too many.
    """
    collections = require("matplotlib.collections", "plot")
    rows, cols, mass = plan.arcs()
    total = float(mass.sum())
    if len(mass) > MAX_ARCS:
        keep = np.argpartition(mass, -MAX_ARCS)[-MAX_ARCS:]
        rows, cols, mass = rows[keep], cols[keep], mass[keep]
    order = np.argsort(mass)
    rows, cols, mass = rows[order], cols[order], mass[order]
    strength = mass / mass.max() if len(mass) else mass
    # Fainter than this is invisible anyway, and thousands of such lines only grey the picture.
    seen = strength > 0.01
    rows, cols, mass, strength = rows[seen], cols[seen], mass[seen], strength[seen]
    colours = np.zeros((len(mass), 4))
    colours[:, :3] = 0.35
    # The more lines there are, the fainter each, or the picture is black.
    colours[:, 3] = (0.15 + 0.55 * strength) * np.clip(np.sqrt(500 / max(1, len(mass))), 0.2, 1.0)
    segments: Any = np.stack([x[rows], y[cols]], axis=1)
    axes.add_collection(
        collections.LineCollection(segments, colors=colours, linewidths=0.3 + 0.9 * strength),
        autolim=False,
    )
    style = {"linewidths": 0.5, "edgecolors": "white", "zorder": 3}
    for points, weights, colour, marker, name in (
        (x, plan.sum(axis=1), BLUE, "o", names[0]),
        (y, plan.sum(axis=0), ORANGE, "s", names[1]),
    ):
        sizes = size * np.clip(weights / max(float(np.mean(weights)), 1e-300), 0.2, 5.0)
        axes.scatter(*points.T, s=sizes, color=colour, marker=marker, label=name, **style)
    axes.margins(0.05)
    return float(mass.sum()) / total if total > 0.0 else 1.0


def _draw_cells(axes: Axes, plan: Plan) -> None:
    n, m = plan.shape
    rows, cols, mass = plan.arcs()
    bins = min(n, MAX_CELLS), min(m, MAX_CELLS)
    cells = np.zeros(bins)
    np.add.at(cells, (rows * bins[0] // n, cols * bins[1] // m), mass)
    # One clear colour for mass and none for its absence reads better than a rainbow here.
    image = axes.imshow(
        cells,
        cmap="Blues",
        vmin=0.0,
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, m - 0.5, n - 0.5, -0.5),
    )
    for spine in axes.spines.values():
        spine.set_color(GREY)
    axes.tick_params(colors=INK, labelsize=9)
    axes.locator_params(integer=True)
    axes.set_xlabel("column j")
    axes.set_ylabel("row i")
    axes.set_title("Transport plan", loc="left", fontsize=11)
    bar = axes.figure.colorbar(image, ax=axes, label="mass", shrink=0.85)
    # Typed as what it is not in older matplotlib.
    outline: Any = bar.outline
    outline.set_visible(False)
    bar.ax.tick_params(colors=INK, labelsize=9)
