"""Maps over photographs: where a point may go, where a network looked, where the mass is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from frot._base.errors import InputError, require
from frot.correspondence._feature_map import Grid
from frot.correspondence.pictures._matches import draw_photo
from frot.correspondence.pictures._points import as_points
from frot.show.style import INK, colour_bar, new_figure, plain, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from frot.correspondence._photo import Photo
    from frot.correspondence.match import Match

__all__ = ["grid_extent", "plot_cam", "plot_heatmap", "plot_weights"]

POINT = "#00D5FF"


def plot_heatmap(match: Match, point: Any, ax: Axes | None = None) -> Figure:
    """Draw where a point of the source may be in the target, and where it is put.

    Parameters
    ----------
    match : Match
    point : pair of float
        x and y in pixels of the source.
    ax : matplotlib.axes.Axes, optional
        Where to draw the target; by default a figure of its own, with the source beside it.

    Returns
    -------
    matplotlib.figure.Figure
    """
    chosen = as_points(match, point)
    if len(chosen) != 1:
        raise InputError(f"point: {len(chosen)} given; a heat map is of one, give its x and y")
    moved = match.transfer(chosen)
    heat = match.heatmap(chosen[0])
    if ax is None:
        figure, (left, right) = _two(match.source.size, match.target.size)
        draw_photo(left, match.source)
        _mark(left, chosen[0])
        left.set_title(_name(match.source), loc="left", fontsize=10, color=INK)
    else:
        figure, right = cast(Any, ax.figure), ax
    draw_photo(right, match.target)
    _overlay(right, heat, match.target.size)
    _mark(right, moved.points[0])
    title = f"{_name(match.target)}   (confidence {float(moved.confidence[0]):.0%})"
    right.set_title(title, loc="left", fontsize=10, color=INK)
    return figure


def plot_cam(photo: Photo | np.ndarray, cam: np.ndarray, ax: Axes | None = None) -> Figure:
    """Draw a class activation map over its photograph.

    Parameters
    ----------
    photo : Photo, or array of shape (h, w, 3) in [0, 1]
    cam : array of shape (h, w)
        In [0, 1], of any size; it is stretched over the photograph.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = plot_cam(np.zeros((40, 60, 3)), np.eye(4))
    >>> [image.get_extent() for image in figure.axes[0].images]
    [[-0.5, 59.5, 39.5, -0.5], [-0.5, 59.5, 39.5, -0.5]]
    """
    bare = isinstance(photo, np.ndarray)
    shown: Any = SimpleNamespace(pixels=photo, name="", size=photo.shape[:2]) if bare else photo
    if np.ndim(cam) != 2:
        raise InputError(f"cam: has {np.ndim(cam)} axes; give a map of shape (h, w)")
    h, w = shown.size
    width = 4.2 * float(np.clip(w / h, 0.5, 2.2)) + 0.9
    figure: Any = new_figure(width, 4.6) if ax is None else ax.figure
    axes: Any = figure.add_subplot() if ax is None else ax
    draw_photo(axes, shown)
    image = _overlay(axes, np.asarray(cam), shown.size, cover=0.65)
    _bar(axes, image, "activation")
    axes.set_title(_name(shown), loc="left", fontsize=10, color=INK)
    return figure


def plot_weights(match: Match) -> Figure:
    """Draw the weights of the cells, a of the source and b of the target.

    Both are drawn over n and m times themselves: 1 is the weight of a cell where all are alike.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, panels = _two(match.source.size, match.target.size, 0.9)
    masses = [np.asarray(mass, dtype=float) for mass in (match.a, match.b)]
    top = max(len(mass) * mass.max() for mass in masses)
    image: Any = None
    for axes, photo, grid, ratio, mass in (
        (panels[0], match.source, match.source_grid, match.source_ratio, masses[0]),
        (panels[1], match.target, match.target_grid, match.target_ratio, masses[1]),
    ):
        draw_photo(axes, photo)
        cells = (len(mass) * mass).reshape(grid.h, grid.w)
        image = _overlay(
            axes, cells, photo.size, top=top, extent=grid_extent(grid, ratio), cover=0.55
        )
        axes.set_title(_name(photo), loc="left", fontsize=10, color=INK)
    _bar(panels, image, "weight of a cell over the mean")
    return figure


def grid_extent(grid: Grid, ratio: float) -> tuple[float, float, float, float]:
    """Return left, right, bottom and top of a grid's cells in pixels of the photograph.

    Examples
    --------
    >>> grid_extent(Grid(2, 3, 8.0, 11.0), 0.5)
    (-8.0, 40.0, 24.0, -8.0)
    """
    half = 0.5 * grid.stride
    right, bottom = (grid.stride * count - half for count in (grid.w, grid.h))
    return -half / ratio, right / ratio, bottom / ratio, -half / ratio


def _overlay(
    axes: Any,
    values: np.ndarray,
    size: tuple[int, int],
    top: float = 1.0,
    extent: Any = None,
    cover: float = 0.8,
) -> Any:
    """Draw values over the photograph: the hotter the denser."""
    h, w = size
    strength = np.clip(values / top, 0.0, 1.0)
    image = axes.imshow(
        values,
        cmap="inferno",
        vmin=0.0,
        vmax=top,
        # What is nearly nothing must not darken the photograph.
        alpha=cover * strength**0.5,
        extent=(-0.5, w - 0.5, h - 0.5, -0.5) if extent is None else extent,
        interpolation="bilinear",
    )
    axes.set_xlim(-0.5, w - 0.5)
    axes.set_ylim(h - 0.5, -0.5)
    return image


def _mark(axes: Any, point: np.ndarray) -> None:
    for colour, width in (("black", 4.0), (POINT, 2.0)):
        axes.plot(*point, marker="+", markersize=15, markeredgewidth=width, color=colour, zorder=5)


def _two(one: tuple[int, int], other: tuple[int, int], more: float = 0.0) -> tuple[Any, Any]:
    shapes = [float(np.clip(w / h, 0.4, 2.5)) for h, w in (one, other)]
    width = float(np.clip(3.9 * sum(shapes), 7.0, 14.0))
    figure: Any = new_figure(width + more, 0.5 + width / sum(shapes))
    return figure, figure.subplots(1, 2, width_ratios=shapes)


def _bar(axes: Any, image: Any, label: str) -> None:
    # The bar would be as transparent as what it explains.
    cm = require("matplotlib.cm", "plot")
    colour_bar(cm.ScalarMappable(image.norm, image.cmap), axes, label, shrink=0.8, pad=0.02)


def _name(photo: Photo) -> str:
    return plain(shorten(photo.name))
