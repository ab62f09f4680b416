"""How much each layer of the network counts, for one eta or over several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from frot._base.errors import InputError
from frot.show.style import BLUE, INK, colour_bar, new_figure, plain, shorten, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from frot.correspondence.match import Match

__all__ = ["plot_layers"]

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
