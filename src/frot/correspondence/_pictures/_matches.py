"""Both photographs, and lines between the points that belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frot._errors import InputError, require
from frot.show.style import GREEN, INK, new_figure, plain, shorten
from frot.correspondence._pictures._labels import draw_labels
from frot.correspondence._pictures._matched import Matched
from frot.correspondence._pictures._points import as_points
from frot.correspondence._pictures._side_by_side import SideBySide

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_matches"]

RED = "#E02020"
# More numbers than these cover the photograph.
_MAX_NUMBERS = 20


def plot_matches(
    match: Matched,
    points: Any = None,
    ax: Axes | None = None,
    *,
    targets: Any = None,
    threshold: float | None = None,
) -> Figure:
    """Draw both photographs side by side, and where points of the first are in the second.

    A point has one colour in both; its line is the fainter the less sure it is, and its
    confidence in per cent stands beside it where there are few points, and room for it. Where the
    truth is known, a line leads from each point found to the true one: green within the
    threshold, red beyond it.

    Parameters
    ----------
    match : Match
    points : array of shape (k, 2), or int, optional
        x and y in pixels of the source; or how many to choose on the object (16).
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a figure of its own.
    targets : array of shape (k, 2), optional
        The true places in the target.
    threshold : float, optional
        Pixels of the target within which a point is right; by default a tenth of the larger
        extent of the true places.

    Returns
    -------
    matplotlib.figure.Figure
    """
    chosen = as_points(match, points)
    truth = None if targets is None else _truth(targets, len(chosen))
    moved = match.transfer(chosen)
    both = SideBySide(match.source.size, match.target.size)
    # At least as wide as it takes to read the line above.
    width = float(np.clip(both.width / both.source[0] * 4.2, 7.0, 14.0))
    figure: Any = new_figure(width, 0.35 + width * both.source[0] / both.width)
    axes: Any = figure.add_subplot() if ax is None else ax
    both.draw(axes, match.source, match.target)
    sure = np.clip(np.asarray(moved.confidence, dtype=float), 0.0, 1.0)
    found = both.place(moved.points)
    if truth is None:
        _draw_lines(axes, chosen, found, sure)
        note = "fainter lines: less sure"
    else:
        note = _draw_errors(axes, chosen, found, both, moved.points, truth, threshold)
    names = (plain(shorten(photo.name)) for photo in (match.source, match.target))
    axes.set_title(f"{' → '.join(names)}   ({note})", loc="left", fontsize=10, color=INK)
    if truth is None and len(chosen) <= _MAX_NUMBERS:
        # The surest first; with the title there, the photographs are where they will be.
        order = np.argsort(-sure, kind="stable").tolist()
        draw_labels(axes, found, [f"{share:.0%}" for share in sure], order, both.left)
    return axes.figure


def _draw_lines(axes: Any, chosen: np.ndarray, found: np.ndarray, sure: np.ndarray) -> None:
    colours = _colours(len(chosen))
    lines = np.stack([chosen, found], axis=1)
    faded = colours.copy()
    # Against the surest, since a share of many votes is a small number even where it is right.
    faded[:, 3] = 0.3 + 0.7 * sure / max(float(sure.max()), 1e-12)
    _draw_segments(axes, lines, faded, 1.4, "lines")
    _draw_points(axes, chosen, colours, "source")
    _draw_points(axes, found, colours, "found")


def _draw_errors(
    axes: Any,
    chosen: np.ndarray,
    found: np.ndarray,
    both: SideBySide,
    moved: np.ndarray,
    truth: np.ndarray,
    threshold: float | None,
) -> str:
    if threshold is None:
        threshold = 0.1 * float(np.ptp(truth, axis=0).max())
    far = np.linalg.norm(np.asarray(moved) - truth, axis=1)
    right = far <= threshold
    rgba = require("matplotlib.colors", "plot").to_rgba
    colours = np.array([rgba(GREEN if good else RED) for good in right]).reshape(-1, 4)
    faded = colours * [1.0, 1.0, 1.0, 0.45]
    places = both.place(truth)
    _draw_segments(axes, np.stack([chosen, found], axis=1), faded, 1.2, "lines")
    _draw_segments(axes, np.stack([found, places], axis=1), colours, 2.4, "errors")
    _draw_points(axes, chosen, colours, "source")
    _draw_points(axes, found, colours, "found")
    # A ring of white under the cross, or it is lost on dark fur.
    for colour, width, label in (("white", 3.0, "halo"), ("black", 1.3, "truth")):
        axes.scatter(
            *places.T, marker="x", s=28, color=colour, linewidths=width, zorder=5, gid=label
        )
    return f"crosses: the truth; {right.sum()} of {len(right)} within {threshold:.3g} pixels"


def _draw_segments(axes: Any, lines: Any, colours: Any, width: float, label: str) -> None:
    collections = require("matplotlib.collections", "plot")
    drawn = collections.LineCollection(lines, colors=colours, linewidths=width, zorder=3)
    drawn.set_gid(label)
    axes.add_collection(drawn, autolim=False)


def _draw_points(axes: Any, points: np.ndarray, colours: Any, label: str) -> None:
    axes.scatter(
        *points.T, s=44, c=colours, edgecolors="white", linewidths=1.2, zorder=4, gid=label
    )


def _colours(count: int) -> np.ndarray:
    """So many colours around the wheel, neighbours in the order told apart by lightness too."""
    hsv_to_rgb = require("matplotlib.colors", "plot").hsv_to_rgb
    hue = np.arange(count) / max(count, 1)
    value = np.where(np.arange(count) % 2, 0.75, 1.0)
    rgb = hsv_to_rgb(np.stack([hue, np.full(count, 0.85), value], axis=1))
    return np.column_stack([rgb, np.ones(count)])


def _truth(targets: Any, count: int) -> np.ndarray:
    truth = np.asarray(targets, dtype=float)
    if truth.shape != (count, 2):
        raise InputError(f"targets: shape {truth.shape} is not ({count}, 2), one a point")
    return truth
