"""Pictures of maps over photographs (scores, masses, flow, features), and of layers' weights.

They need matplotlib, from the extra ``frot[plot]``, when they are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from frot._base.arrays import to_numpy
from frot._base.errors import InputError, require
from frot.correspondence._features import Grid
from frot.correspondence._photo import Photo
from frot.correspondence.chance import tells
from frot.correspondence.match_picture import (
    as_points,
    axes_or,
    check_match,
    draw_image,
    draw_photo,
    name_of,
    set_title,
)
from frot.show.style import BLUE, colour_bar, new_figure, plain, shorten, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from frot.correspondence.layers import PairFeatures
    from frot.correspondence.match import Match

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
    if ax is None:
        figure, (left, right) = _panels(match.source.size, match.target.size)
        draw_photo(left, match.source)
        _mark(left, chosen[0])
    else:
        figure, right = cast(Any, ax.figure), ax
    sure = f"   (confidence {float(moved.confidence[0]):.0%})" if tells(match) else ""
    title = f"{name_of(match.target)}{sure}"
    draw_photo(right, match.target, title)
    _overlay(right, match.heatmap(chosen[0]), match.target.size)
    _mark(right, moved.points[0])
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
    shown = Photo(photo, "") if isinstance(photo, np.ndarray) else photo
    if np.ndim(cam) != 2:
        raise InputError(f"cam: has {np.ndim(cam)} axes; give a map of shape (h, w)")
    h, w = shown.size
    axes = axes_or(ax, 4.2 * float(np.clip(w / h, 0.5, 2.2)) + 0.9, 4.6)
    draw_photo(axes, shown)
    image = _overlay(axes, np.asarray(cam), shown.size, cover=0.65)
    _bar(axes, image, "activation")
    return axes.figure


def plot_weights(match: Match) -> Figure:
    """Draw the weights of the cells, a of the source and b of the target.

    Both are drawn over n and m times themselves: 1 is the weight of a cell where all are alike.

    Returns
    -------
    matplotlib.figure.Figure
    """
    check_match(match)
    figure, panels = _panels(match.source.size, match.target.size, more=0.9)
    masses = [len(mass) * np.asarray(mass, dtype=float) for mass in (match.a, match.b)]
    top = max(mass.max() for mass in masses)
    image: Any = None
    for axes, photo, grid, ratio, mass in (
        (panels[0], match.source, match.source_grid, match.source_ratio, masses[0]),
        (panels[1], match.target, match.target_grid, match.target_ratio, masses[1]),
    ):
        draw_photo(axes, photo)
        cells, extent = mass.reshape(grid.h, grid.w), grid_extent(grid, ratio)
        image = _overlay(axes, cells, photo.size, top, extent, cover=0.55)
    _bar(panels, image, "weight of a cell over the mean")
    return figure


def grid_extent(grid: Grid, ratio: float) -> tuple[float, float, float, float]:
    """Return left, right, bottom and top of a grid's cells in pixels of the photograph.

    Examples
    --------
    >>> grid_extent(Grid(2, 3, 8.0, 11.0), 0.5)
    (-8.0, 40.0, 24.0, -8.0)
    """
    (top, bottom), (left, right) = (
        (float(places[0]) - 0.5 * stride, float(places[-1]) + 0.5 * stride)
        for places, stride in zip(grid.places, grid.strides, strict=True)
    )
    return left / ratio, right / ratio, bottom / ratio, top / ratio


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
    _frame(axes, size)
    return image


def _frame(axes: Any, size: tuple[int, int]) -> None:
    """Show what lies over a photograph of size (h, w), and no more."""
    h, w = size
    axes.set(xlim=(-0.5, w - 0.5), ylim=(h - 0.5, -0.5))


def _mark(axes: Any, point: np.ndarray) -> None:
    for colour, width in (("black", 4.0), (POINT, 2.0)):
        axes.plot(*point, marker="+", markersize=15, markeredgewidth=width, color=colour, zorder=5)


def _panels(*sizes: tuple[int, int], more: float = 0.0) -> tuple[Any, Any]:
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


# What is not valid.
_UNKNOWN = 0.75


def flow_colours(displacement: Any, longest: float) -> np.ndarray:
    """Return displacements as colours, (..., 3): the direction as hue, the length as saturation.

    Parameters
    ----------
    displacement : array of shape (..., 2)
    longest : float
        The length that has full colour.

    Examples
    --------
    >>> flow_colours([[0.0, 0.0], [3.0, 0.0]], 3.0).tolist()
    [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]
    """
    moves = np.asarray(displacement, dtype=float)
    lengths = np.hypot(moves[..., 0], moves[..., 1])
    hue = np.arctan2(moves[..., 1], moves[..., 0]) / (2 * np.pi) % 1.0
    wheel = np.stack([hue, np.clip(lengths / longest, 0.0, 1.0), np.ones_like(hue)], axis=-1)
    return require("matplotlib.colors", "plot").hsv_to_rgb(wheel)


def plot_flow(match: Match, cycle: float | None = None) -> Figure:
    """Draw the dense flow beside its source: hue is the direction, saturation the length.

    The wheel in the corner is the legend, its edge the 98th percentile of the lengths. Paler to
    grey is less certain; grey is not valid.

    Parameters
    ----------
    match : Match
    cycle : float, optional
        As in `Match.flow`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    check_match(match)
    flow = match.flow(cycle)
    lengths = np.hypot(flow.displacement[..., 0], flow.displacement[..., 1])
    known = lengths[flow.valid] if flow.valid.any() else lengths
    top = max(float(np.quantile(known, 0.98)), 1e-6)
    colours = flow_colours(flow.displacement, top)
    # The surest are as bright as the wheel.
    sure = np.clip(flow.certainty / max(float(np.quantile(flow.certainty, 0.95)), 1e-12), 0.0, 1.0)
    cover = (0.35 + 0.65 * sure) * flow.valid
    shown = _UNKNOWN + cover[..., None] * (colours - _UNKNOWN)
    figure, (left, right) = _panels(match.source.size, match.source.size)
    draw_photo(left, match.source)
    title = f"where it is in {name_of(match.target)}   (edge of the wheel: {top:.3g} pixels)"
    draw_image(right, shown, title, interpolation="antialiased")
    inset = right.inset_axes([0.78, 0.02, 0.2, 0.2])
    y, x = np.mgrid[-1:1:101j, -1:1:101j]
    wheel = flow_colours(np.stack([x, y], axis=-1), 1.0)
    draw_image(inset, np.dstack([wheel, np.hypot(x, y) <= 1.0]), extent=(-1, 1, 1, -1))
    return figure


def plot_warp(match: Match) -> Figure:
    """Draw three panels: A, A in the frame of B, and B; what is not known is grey.

    Returns
    -------
    matplotlib.figure.Figure
    """
    check_match(match)
    warped = match.warp(onto="target")
    figure, panels = _panels(match.source.size, match.target.size, match.target.size)
    draw_photo(panels[0], match.source)
    shown = np.where(warped.valid[..., None], np.clip(warped.pixels, 0, 1), _UNKNOWN)
    draw_image(panels[1], shown, f"{name_of(match.source)} in the frame of {name_of(match.target)}")
    draw_photo(panels[2], match.target)
    return figure


def plot_features(pair: PairFeatures, alpha: dict[str, float] | None = None) -> Figure:
    """Draw what varies most in the features of two photographs, as one colour scale for both.

    The vectors of the layers, each of unit length and weighed by the square root of its weight so
    that squared distances are the mixed costs, are projected on their three principal components,
    which are the red, green and blue of a cell: what looks alike here is alike to the network.

    Parameters
    ----------
    pair : PairFeatures
        What ``matcher.pair_features(a, b)`` returns.
    alpha : dict, optional
        Weights of the layers by name, such as ``match.alpha``; equal ones by default.

    Returns
    -------
    matplotlib.figure.Figure
    """
    if not hasattr(pair, "layers"):
        raise InputError(f"pair: is a {type(pair).__name__}; give matcher.pair_features(a, b)")
    names = pair.layers.names
    weights = dict.fromkeys(names, 1.0) if alpha is None else alpha
    if missing := [name for name in names if name not in weights]:
        raise InputError(f"alpha: has no weight for layer {missing[0]!r}; give one for each")
    channels = [layer.channels for layer in pair.layers.source]
    scale = np.repeat(np.sqrt([weights[name] for name in names]), channels)
    both = [to_numpy(side).astype(np.float32) * scale.astype(np.float32)
            for side in pair.layers.vectors()]  # fmt: skip
    cells = np.concatenate(both)
    centred = cells - cells.mean(axis=0)
    # Few cells have many channels: the components come from the smaller of the two squares.
    values, vectors = np.linalg.eigh((centred @ centred.T).astype(float))
    shares = vectors[:, ::-1][:, :3] * np.sqrt(np.maximum(values[::-1][:3], 0.0))
    low, high = np.quantile(shares, [0.01, 0.99], axis=0)
    colours = np.clip((shares - low) / np.maximum(high - low, 1e-12), 0.0, 1.0)
    grids = pair.layers.source_grid, pair.layers.target_grid
    photos = pair.source.photo, pair.target.photo
    figure, panels = _panels(photos[0].size, photos[1].size, photos[0].size, photos[1].size)
    parts = np.split(colours, [grids[0].count])
    ratios = pair.source.ratio, pair.target.ratio
    for k, (photo, grid, part, ratio) in enumerate(zip(photos, grids, parts, ratios, strict=True)):
        draw_photo(panels[k], photo)
        image, axes = part.reshape(grid.h, grid.w, 3), panels[2 + k]
        draw_image(axes, image, extent=grid_extent(grid, ratio), interpolation="nearest")
        _frame(axes, photo.size)
    shown = values[::-1][:3].sum() / max(values.sum(), 1e-12)
    set_title(panels[2], f"features, {shown:.0%} of what varies")
    return figure


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
        kind = "bars" if len(weights) <= 6 else "map"
    if kind not in ("bars", "map"):
        raise InputError(f"kind: {kind!r} is neither 'bars' nor 'map'")
    if ax is not None and kind == "bars" and len(weights) > 1:
        raise InputError("ax: is one panel, and bars of several eta need several; give kind='map'")
    width = float(np.clip(1.2 + 0.28 * len(names), 5.0, 12.0))
    if kind == "map":
        axes = axes_or(ax, width + 1.0, 1.6 + 0.3 * len(weights))
        _draw_map(axes, names, etas, weights)
        return axes.figure
    if ax is None:
        high = 1.2 + 1.2 * len(weights) + (1.0 if len(weights) == 1 else 0.0)
        figure: Any = new_figure(width, high)
        panels = figure.subplots(len(weights), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    else:
        figure, panels = ax.figure, [ax]
    for axes, eta, row in zip(panels, etas, weights, strict=True):
        axes.bar(np.arange(len(names)), row, width=0.78, color=BLUE)
        axes.set_ylim(0.0, 1.08 * max(float(weights.max()), 1e-12))
        axes.set_ylabel("weight α")
        if eta is not None:
            set_title(axes, f"η = {eta:g}")
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
    # More names touch each other.
    if len(names) <= 48:
        texts = [plain(shorten(name, 22)) for name in names]
        axes.set_xticks(np.arange(len(names)), texts, rotation=90, fontsize=8)
    else:
        axes.set_xlabel("layer, counted from 0")


def _table(alphas: Any) -> tuple[list[str], list[float | None], np.ndarray]:
    """Return the layers' names, the etas in order and the weights, shape (etas, layers)."""
    if not isinstance(alphas, Mapping):
        check_match(alphas)
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
