"""Dense answers in colour: the flow on a wheel, the warp beside its target, features by PCA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.arrays import to_numpy
from frot._base.errors import InputError, require
from frot.correspondence.pictures._maps import grid_extent, name_of, panels_for
from frot.correspondence.pictures._matches import draw_photo
from frot.show.style import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from frot.correspondence.layers import PairFeatures
    from frot.correspondence.match import Match

__all__ = ["flow_colours", "plot_features", "plot_flow", "plot_warp"]

# What is not valid, and the wheel's share of the panel.
_UNKNOWN, _WHEEL = 0.75, 0.2


def flow_colours(displacement: Any, longest: float | None = None) -> np.ndarray:
    """Return displacements as colours, (..., 3): the direction as hue, the length as saturation.

    Parameters
    ----------
    displacement : array of shape (..., 2)
    longest : float, optional
        The length that has full colour; the longest there is by default.

    Examples
    --------
    >>> flow_colours([[0.0, 0.0], [3.0, 0.0]]).tolist()
    [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]
    """
    moves = np.asarray(displacement, dtype=float)
    lengths = np.hypot(moves[..., 0], moves[..., 1])
    top = max(float(lengths.max(initial=0.0)) if longest is None else longest, 1e-12)
    hue = np.arctan2(moves[..., 1], moves[..., 0]) / (2 * np.pi) % 1.0
    wheel = np.stack([hue, np.clip(lengths / top, 0.0, 1.0), np.ones_like(hue)], axis=-1)
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
    flow = match.flow(cycle)
    lengths = np.hypot(flow.displacement[..., 0], flow.displacement[..., 1])
    known = lengths[flow.valid] if flow.valid.any() else lengths
    top = max(float(np.quantile(known, 0.98)), 1e-6)
    colours = flow_colours(flow.displacement, top)
    # The surest are as bright as the wheel.
    sure = np.clip(flow.certainty / max(float(np.quantile(flow.certainty, 0.95)), 1e-12), 0.0, 1.0)
    cover = (0.35 + 0.65 * sure) * flow.valid
    shown = _UNKNOWN + cover[..., None] * (colours - _UNKNOWN)
    figure, (left, right) = panels_for(match.source.size, match.source.size)
    draw_photo(left, match.source)
    left.set_title(name_of(match.source), loc="left", fontsize=10, color=INK)
    right.imshow(shown, interpolation="antialiased")
    right.set_axis_off()
    title = f"where it is in {name_of(match.target)}   (edge of the wheel: {top:.3g} pixels)"
    right.set_title(title, loc="left", fontsize=10, color=INK)
    inset = right.inset_axes([1.0 - _WHEEL - 0.02, 0.02, _WHEEL, _WHEEL])
    y, x = np.mgrid[-1:1:101j, -1:1:101j]
    wheel = flow_colours(np.stack([x, y], axis=-1), 1.0)
    inset.imshow(np.dstack([wheel, np.hypot(x, y) <= 1.0]), extent=(-1, 1, 1, -1))
    inset.set_axis_off()
    return figure


def plot_warp(match: Match) -> Figure:
    """Draw three panels: A, A in the frame of B, and B; what is not known is grey.

    Returns
    -------
    matplotlib.figure.Figure
    """
    warped = match.warp(onto="target")
    sizes = [match.source.size, match.target.size, match.target.size]
    figure, panels = panels_for(*sizes)
    draw_photo(panels[0], match.source)
    panels[1].imshow(np.where(warped.valid[..., None], np.clip(warped.pixels, 0, 1), _UNKNOWN))
    panels[1].set_axis_off()
    draw_photo(panels[2], match.target)
    one, other = name_of(match.source), name_of(match.target)
    titles = (one, f"{one} in the frame of {other}", other)
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, loc="left", fontsize=10, color=INK)
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
    figure, panels = panels_for(photos[0].size, photos[1].size, photos[0].size, photos[1].size)
    parts = np.split(colours, [grids[0].count])
    ratios = pair.source.ratio, pair.target.ratio
    for k, (photo, grid, part, ratio) in enumerate(zip(photos, grids, parts, ratios, strict=True)):
        draw_photo(panels[k], photo)
        panels[k].set_title(name_of(photo), loc="left", fontsize=10, color=INK)
        axes, (h, w) = panels[2 + k], photo.size
        image = part.reshape(grid.h, grid.w, 3)
        axes.imshow(image, extent=grid_extent(grid, ratio), interpolation="nearest")
        axes.set_xlim(-0.5, w - 0.5)
        axes.set_ylim(h - 0.5, -0.5)
        axes.set_axis_off()
    told = values[::-1][:3].sum() / max(values.sum(), 1e-12)
    panels[2].set_title(f"features, {told:.0%} of what varies", loc="left", fontsize=10, color=INK)
    return figure
