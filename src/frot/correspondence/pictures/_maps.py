"""Maps over photographs (scores, activations, weights of cells), and the weights of the layers."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from frot._base.errors import InputError, require
from frot.correspondence._features import Grid
from frot.correspondence.pictures._matches import as_points, draw_photo
from frot.show.style import BLUE, INK, colour_bar, new_figure, plain, shorten, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from frot.correspondence._photo import Photo
    from frot.correspondence.match import Match

__all__ = [
    "grid_extent",
    "name_of",
    "panels_for",
    "plot_cam",
    "plot_heatmap",
    "plot_layers",
    "plot_weights",
]

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
        figure, (left, right) = panels_for(match.source.size, match.target.size)
        draw_photo(left, match.source)
        _mark(left, chosen[0])
        left.set_title(name_of(match.source), loc="left", fontsize=10, color=INK)
    else:
        figure, right = cast(Any, ax.figure), ax
    draw_photo(right, match.target)
    _overlay(right, heat, match.target.size)
    _mark(right, moved.points[0])
    title = f"{name_of(match.target)}   (confidence {float(moved.confidence[0]):.0%})"
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
    axes.set_title(name_of(shown), loc="left", fontsize=10, color=INK)
    return figure


def plot_weights(match: Match) -> Figure:
    """Draw the weights of the cells, a of the source and b of the target.

    Both are drawn over n and m times themselves: 1 is the weight of a cell where all are alike.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, panels = panels_for(match.source.size, match.target.size, more=0.9)
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
        axes.set_title(name_of(photo), loc="left", fontsize=10, color=INK)
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


def panels_for(*sizes: tuple[int, int], more: float = 0.0) -> tuple[Any, Any]:
    """Make a figure with a panel for each photograph, of sizes (h, w), in one row."""
    shapes = [float(np.clip(w / h, 0.4, 2.5)) for h, w in sizes]
    # Wider than a page, titles would be too small to read on it.
    width = float(np.clip(3.9 * sum(shapes), 7.0, 14.0 if len(sizes) <= 2 else 11.0))
    figure: Any = new_figure(width + more, 0.5 + width / sum(shapes))
    return figure, figure.subplots(1, len(sizes), width_ratios=shapes)


def _bar(axes: Any, image: Any, label: str) -> None:
    # The bar would be as transparent as what it explains.
    cm = require("matplotlib.cm", "plot")
    colour_bar(cm.ScalarMappable(image.norm, image.cmap), axes, label, shrink=0.8, pad=0.02)


def name_of(photo: Photo) -> str:
    """Return what a photograph is called in a title."""
    return plain(shorten(photo.name))


# More panels than these are too many to compare.
_MAX_PANELS = 6
# More names than these touch each other.
_MAX_NAMES = 48


def plot_layers(
    alphas: Match | Mapping[str, float] | Mapping[Any, Mapping[str, float]],
    kind: Literal["bars", "map"] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the weights of the layers in the order of the network, as in the paper.

    Parameters
    ----------
    alphas : Match, or mapping
        The weights of one match; or, by eta, those of several.
    kind : {"bars", "map"}, optional
        One panel of bars for each eta, or all in one map. By default bars for up to six.
    ax : matplotlib.axes.Axes, optional
        Where to draw bars of one eta, or a map.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = plot_layers({0.1: {"stem": 0.2, "top": 0.8}, 1.0: {"stem": 0.5, "top": 0.5}})
    >>> [axes.get_title("left") for axes in figure.axes]
    ['η = 0.1', 'η = 1']
    >>> [float(bar.get_height()) for bar in figure.axes[0].patches]
    [0.2, 0.8]
    """
    names, etas, weights = _table(alphas)
    if kind is None:
        kind = "bars" if len(weights) <= _MAX_PANELS else "map"
    if kind not in ("bars", "map"):
        raise InputError(f"kind: {kind!r} is neither 'bars' nor 'map'")
    if ax is not None and kind == "bars" and len(weights) > 1:
        raise InputError("ax: is one panel, and bars of several eta need several; give kind='map'")
    width = float(np.clip(1.2 + 0.28 * len(names), 5.0, 12.0))
    if kind == "map":
        high = 1.6 + 0.3 * len(weights)
        figure: Any = new_figure(width + 1.0, high) if ax is None else ax.figure
        _draw_map(figure.add_subplot() if ax is None else ax, names, etas, weights)
        return figure
    figure = new_figure(width, 1.2 + 1.2 * len(weights) + (1.0 if len(weights) == 1 else 0.0))
    if ax is None:
        panels = figure.subplots(len(weights), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    else:
        figure, panels = ax.figure, [ax]
    for axes, eta, row in zip(panels, etas, weights, strict=True):
        axes.bar(np.arange(len(names)), row, width=0.78, color=BLUE)
        axes.set_ylim(0.0, 1.08 * max(float(weights.max()), 1e-12))
        axes.set_ylabel("weight α")
        if eta is not None:
            axes.set_title(f"η = {eta:g}", loc="left", fontsize=10, color=INK)
        tidy(axes)
        axes.locator_params(axis="y", nbins=4)
        axes.tick_params(axis="x", length=0)
    _name_layers(panels[-1], names)
    return figure


def _draw_map(axes: Any, names: list[str], etas: list[float | None], weights: np.ndarray) -> None:
    image = axes.imshow(
        weights, cmap="Blues", vmin=0.0, vmax=max(float(weights.max()), 1e-12), aspect="auto",
        interpolation="nearest",
    )  # fmt: skip
    axes.set_yticks(
        np.arange(len(etas)), ["" if eta is None else f"{eta:g}" for eta in etas], fontsize=9
    )
    axes.set_ylabel("η")
    tidy(axes)
    axes.spines[:].set_visible(False)
    _name_layers(axes, names)
    colour_bar(image, axes, "weight α", shrink=1.0)


def _name_layers(axes: Any, names: list[str]) -> None:
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.tick_params(axis="x", length=0)
    if len(names) <= _MAX_NAMES:
        texts = [plain(shorten(name, 22)) for name in names]
        axes.set_xticks(np.arange(len(names)), texts, rotation=90, fontsize=8)
    else:
        axes.set_xlabel("layer, counted from 0")


def _table(alphas: Any) -> tuple[list[str], list[float | None], np.ndarray]:
    """Return the layers' names, the etas in order and the weights, shape (etas, layers)."""
    if not isinstance(alphas, Mapping):
        alphas = alphas.alpha
    if not alphas:
        raise InputError("alphas: are of no layer; give one weight or more")
    if not isinstance(next(iter(alphas.values())), Mapping):
        return list(alphas), [None], np.array([list(alphas.values())], dtype=float)
    etas = sorted(alphas)
    names = list(alphas[etas[0]])
    for eta in etas:
        if set(alphas[eta]) != set(names):
            raise InputError(f"alphas: the layers at eta {eta:g} are not those at {etas[0]:g}")
    return names, etas, np.array([[alphas[eta][name] for name in names] for eta in etas])
