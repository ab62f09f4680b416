"""Numbers beside points, none over another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from frot._errors import require

__all__ = ["draw_labels", "place_labels"]

# Where a label may stand: points of print to the right of its point and above it, and by which of
# its own sides it is held.
_SPOTS = (
    (6.0, 0.0, "left", "center"),
    (-6.0, 0.0, "right", "center"),
    (0.0, 6.0, "center", "bottom"),
    (0.0, -6.0, "center", "top"),
)
# Points of print: half the width of a marker, and what is left free around a label.
_MARKER, _FREE = 4.0, 1.0
# Points of print that a label may be beyond the photograph's left, lower, right and upper edge.
_BEYOND = np.array([-1.0, -4.0, 0.0, 4.0])


def draw_labels(
    axes: Any, places: np.ndarray, words: Sequence[str], order: Sequence[int], left: float
) -> None:
    """Write a word beside each place, shape (k, 2), where it is on no other and on no marker.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    places : array of shape (k, 2)
    words : sequence of str
    order : sequence of int
        Who comes first; who finds no room goes without.
    left : float
        Where the photograph begins that they belong to: words do not go beyond it, nor by more
        than half a line above or below. To the right they may.
    """
    effects = require("matplotlib.patheffects", "plot")
    texts = []
    for word, place in zip(words, places, strict=True):
        text = axes.annotate(
            word,
            tuple(place),
            xytext=(0.0, 0.0),
            textcoords="offset points",
            fontsize=7.5,
            color="black",
            zorder=6,
            annotation_clip=False,
        )
        text.set_path_effects([effects.withStroke(linewidth=2.2, foreground="white")])
        _put(text, 0)
        texts.append(text)
    # All at the right they take most room, so that what is free now is free when drawn.
    figure = axes.figure.figure
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)
    axes.apply_aspect()
    unit = figure.dpi / 72.0
    centres = axes.transData.transform(places)
    markers = np.hstack([centres - _MARKER * unit, centres + _MARKER * unit])
    box = axes.get_window_extent()
    corner = axes.transData.transform((left, 0.0))[0]
    limit = np.array([corner, box.y0, np.inf, box.y1]) + unit * _BEYOND
    spots = np.array([[_box(text, spot, _FREE * unit) for spot in range(4)] for text in texts])
    for text, spot in zip(texts, place_labels(spots, markers, limit, order), strict=True):
        if spot is None:
            text.remove()
        else:
            _put(text, spot)


def place_labels(
    spots: np.ndarray, taken: np.ndarray, limit: np.ndarray, order: Sequence[int]
) -> list[int | None]:
    """Choose for each label in turn the first spot that is free, or None where none is.

    Boxes are (left, bottom, right, top).

    Parameters
    ----------
    spots : array of shape (k, s, 4)
        Boxes where a label may be, the best first.
    taken : array of shape (t, 4)
        Boxes that no label may be on.
    limit : array of shape (4,)
        The box that they all have to be in.
    order : sequence of int
        Labels, the first to choose first.

    Examples
    --------
    >>> here, above = [0, 0, 2, 1], [0, 2, 2, 3]
    >>> spots = np.array([[here, above], [here, above], [here, above]])
    >>> place_labels(spots, np.zeros((0, 4)), np.array([0, 0, 9, 9]), [1, 0, 2])
    [1, 0, None]
    """
    chosen: list[int | None] = [None] * len(spots)
    for label in order:
        for number, box in enumerate(spots[label]):
            inside = (box[:2] >= limit[:2]).all() and (box[2:] <= limit[2:]).all()
            over = (box[:2] < taken[:, 2:]).all(axis=1) & (box[2:] > taken[:, :2]).all(axis=1)
            if inside and not over.any():
                chosen[label] = number
                taken = np.vstack([taken, box])
                break
    return chosen


def _put(text: Any, spot: int) -> None:
    x, y, across, up = _SPOTS[spot]
    text.set_position((x, y))
    text.set(ha=across, va=up)


def _box(text: Any, spot: int, free: float) -> list[float]:
    _put(text, spot)
    x0, y0, x1, y1 = text.get_window_extent().extents
    return [x0 - free, y0 - free, x1 + free, y1 + free]
