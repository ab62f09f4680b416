"""Both photographs side by side, and lines between the points that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import InputError, brief, require
from frot._base.validate import check_count
from frot.correspondence._photo import as_bytes
from frot.correspondence.chance import tells
from frot.show.style import GREEN, INK, new_figure, plain, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from frot.correspondence._photo import Photo
    from frot.correspondence.match import Match


def grid_points(size: tuple[int, int], count: int, box: Any = None) -> np.ndarray:
    """Return points evenly over a photograph of size (h, w), row by row.

    Parameters
    ----------
    size : pair of int
    count : int
        Points along the longer side.
    box : (left, top, right, bottom), optional
        The part to cover, in pixels; by default all of it.

    Returns
    -------
    array of shape (k, 2)
        x and y, each in the middle of its share.

    Examples
    --------
    >>> grid_points((20, 40), 4).tolist()[:4]
    [[4.5, 4.5], [14.5, 4.5], [24.5, 4.5], [34.5, 4.5]]
    """
    check_count(count, "count")
    try:
        h, w = (check_count(side, "size") for side in size)
    except (TypeError, ValueError):
        raise InputError(f"size: {size!r} is not a height and a width in pixels") from None
    left, top, right, bottom = (-0.5, -0.5, w - 0.5, h - 0.5) if box is None else box
    wide, high = right - left, bottom - top
    step = max(wide, high) / count
    across, down = (max(1, round(length / step)) for length in (wide, high))
    x = left + (np.arange(across) + 0.5) * wide / across
    y = top + (np.arange(down) + 0.5) * high / down
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    return np.clip(points, 0.0, [w - 1, h - 1])


def object_points(match: Match, count: int = 16) -> np.ndarray:
    """Return about so many points of the source's object, evenly spread, from top to bottom.

    The object is where the cells have most weight, or, where all weigh the same, where the match
    knows that the network's classifier looks. Where neither is known these are the surest of eight
    times as many points away from the edges, kept apart from each other. No two points are at the
    same height, so that lines from one photograph to the other do not lie on each other.
    """
    check_match(match)
    check_count(count, "points")
    h, w = match.source.size
    mass = np.asarray(match.a, dtype=float)
    centres = match.source_grid.centres / match.source_ratio
    heavy = mass >= 0.75 * mass.max()
    if heavy.all() and match.source_cam is not None:
        x, y = np.clip(centres.round().astype(int), 0, [w - 1, h - 1]).T
        looked = match.source_cam[y, x]
        # Of cells whose weights are class activation those above .4 are as heavy.
        heavy = looked > 0.4 * looked.max()
    if heavy.all():
        box = 0.1 * np.array([w, h, -w, -h]) + [0, 0, w - 1, h - 1]
        return _surest(match, _spread(box, 8 * count), count, box)
    reach = 0.5 * match.source_grid.spacing / match.source_ratio
    ends = centres[heavy].min(axis=0) - reach, centres[heavy].max(axis=0) + reach
    box = np.clip(np.concatenate(ends), 0.0, [w - 1, h - 1, w - 1, h - 1])
    # The object fills only a part of its box.
    area = np.prod(np.maximum(box[2:] - box[:2], 1.0))
    share = np.clip(heavy.sum() * (2 * reach) ** 2 / area, 0.05, 1.0)
    points = _spread(box, int(np.ceil(count / share)))
    nearest = ((points[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    on = points[heavy[nearest]]
    return on if len(on) else np.clip(centres[heavy][:count], 0.0, [w - 1, h - 1])


def as_points(match: Match, points: Any) -> np.ndarray:
    """Return the points asked for: some, so many on the object, or a default."""
    check_match(match)
    if points is None:
        return object_points(match)
    if isinstance(points, int | np.integer):
        return object_points(match, int(points))
    given = as_places(points, "points")
    if given.shape == (2,):
        given = given[None]
    if given.ndim != 2 or given.shape[1] != 2 or not len(given):
        raise InputError(f"points: shape {given.shape} is not (k, 2); give x and y of each")
    return given


def as_places(values: Any, name: str) -> np.ndarray:
    """Return values as an array of floats, or say that they are none."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name}: {brief(values)} are no numbers; give x and y of each") from None


def check_match(match: Any) -> None:
    """Refuse what is no match."""
    if not hasattr(match, "transfer"):
        raise InputError(
            f"match: is a {type(match).__name__}; give what matcher(a, b) or load_match returns"
        )


def _surest(match: Match, points: np.ndarray, count: int, box: np.ndarray) -> np.ndarray:
    """Return the surest points that are half as far from each other as evenly spread ones."""
    apart = 0.5 * float(np.sqrt(np.prod(box[2:] - box[:2]) / count))
    sure = np.asarray(match.transfer(points).confidence)
    kept: list[int] = []
    for one in np.argsort(-sure, kind="stable").tolist():
        if len(kept) < count and all(np.linalg.norm(points[kept] - points[one], axis=1) >= apart):
            kept.append(one)
    return points[sorted(kept)]


def _spread(box: np.ndarray, count: int) -> np.ndarray:
    """Return points of a box that fill it evenly and share no row: a lattice of Fibonacci's."""
    order = np.arange(count) + 0.5
    share = np.stack([order * (5**0.5 - 1) / 2 % 1.0, order / count], axis=1)
    return box[:2] + share * (box[2:] - box[:2])


RED = "#E02020"
# Where a label may stand: points of print to the right of its point and above it, and by which of
# its own sides it is held.
_SPOTS = (
    (6.0, 0.0, "left", "center"),
    (-6.0, 0.0, "right", "center"),
    (0.0, 6.0, "center", "bottom"),
    (0.0, -6.0, "center", "top"),
)


def plot_matches(
    match: Match,
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
    truth = None if targets is None else as_places(targets, "targets")
    if truth is not None and truth.shape != chosen.shape:
        raise InputError(f"targets: shape {truth.shape} is not {chosen.shape}, one per point")
    moved = match.transfer(chosen)
    both = SideBySide(match.source.size, match.target.size)
    # At least as wide as it takes to read the line above.
    width = float(np.clip(both.width / both.source[0] * 4.2, 7.0, 14.0))
    axes = axes_or(ax, width, 0.35 + width * both.source[0] / both.width)
    both.draw(axes, match.source, match.target)
    sure = np.clip(np.asarray(moved.confidence, dtype=float), 0.0, 1.0)
    if not (telling := tells(match)):
        sure = np.ones_like(sure)
    found = both.place(moved.points)
    if truth is None:
        _draw_lines(axes, chosen, found, sure)
        note = "fainter lines: less sure" if telling else "too few cells to say how sure"
    else:
        note = _draw_errors(axes, chosen, found, both, moved.points, truth, threshold)
    names = [name_of(photo) for photo in (match.source, match.target)]
    set_title(axes, f"{' → '.join(names)}   ({note})")
    if truth is None and telling and len(chosen) <= 20:
        # More cover the photograph. The surest first; with the title there, the photographs are
        # where they will be.
        order = np.argsort(-sure, kind="stable").tolist()
        _draw_labels(axes, found, [f"{share:.0%}" for share in sure], order, both.left)
    return axes.figure


def _draw_lines(axes: Any, chosen: np.ndarray, found: np.ndarray, sure: np.ndarray) -> None:
    colours = _colours(len(chosen))
    faded = colours.copy()
    # Against the surest, since a share of many votes is a small number even where it is right.
    faded[:, 3] = 0.3 + 0.7 * sure / max(float(sure.max()), 1e-12)
    _draw_segments(axes, chosen, found, faded, 1.4, "lines")
    _draw_ends(axes, chosen, found, colours)


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
    _draw_segments(axes, chosen, found, faded, 1.2, "lines")
    _draw_segments(axes, found, places, colours, 2.4, "errors")
    _draw_ends(axes, chosen, found, colours)
    # A ring of white under the cross, or it is lost on dark fur.
    for colour, width, label in (("white", 3.0, "halo"), ("black", 1.3, "truth")):
        axes.scatter(
            *places.T, marker="x", s=28, color=colour, linewidths=width, zorder=5, gid=label
        )
    return f"crosses: the truth; {right.sum()} of {len(right)} within {threshold:.3g} pixels"


def _draw_segments(
    axes: Any, starts: np.ndarray, ends: np.ndarray, colours: Any, width: float, label: str
) -> None:
    collections = require("matplotlib.collections", "plot")
    lines = np.stack([starts, ends], axis=1)
    drawn = collections.LineCollection(lines, colors=colours, linewidths=width, zorder=3)
    drawn.set_gid(label)
    axes.add_collection(drawn, autolim=False)


def _draw_ends(axes: Any, chosen: np.ndarray, found: np.ndarray, colours: Any) -> None:
    for points, label in ((chosen, "source"), (found, "found")):
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


@dataclass(frozen=True)
class SideBySide:
    """Where the pixels of both photographs are in the axes.

    The first keeps its pixels as coordinates; the second stands to its right, scaled to the same
    height. Sizes are heights and widths.

    Examples
    --------
    >>> both = SideBySide((100, 200), (50, 50))
    >>> both.scale, both.place([[0.0, 0.0]]).tolist()
    (2.0, [[208.0, 0.5]])
    """

    source: tuple[int, int]
    target: tuple[int, int]

    @property
    def scale(self) -> float:
        """Units of the axes that a pixel of the target is wide."""
        return self.source[0] / self.target[0]

    @property
    def left(self) -> float:
        """Where the target's left edge is."""
        wide = self.source[1] + self.scale * self.target[1]
        return self.source[1] + 0.025 * wide - 0.5

    @property
    def width(self) -> float:
        """Of all, in units of the axes."""
        return self.left + 0.5 + self.scale * self.target[1]

    def place(self, points: object) -> np.ndarray:
        """Return where points of the target, shape (k, 2), are in the axes."""
        corner = np.array([self.left, -0.5])
        return corner + self.scale * (np.asarray(points, dtype=float) + 0.5)

    def draw(self, axes: Axes, source: Photo, target: Photo) -> None:
        """Draw both photographs, and nothing else around them."""
        h = self.source[0]
        draw_photo(axes, source, "")
        end = self.left + self.scale * self.target[1]
        draw_photo(axes, target, "", extent=(self.left, end, h - 0.5, -0.5))
        axes.set(xlim=(-0.5, end), ylim=(h - 0.5, -0.5))


def axes_or(ax: Axes | None, width: float, height: float) -> Any:
    """Return the axes that were given, or those of a figure of their own."""
    return new_figure(width, height).add_subplot() if ax is None else ax


def name_of(photo: Photo) -> str:
    """Return what a photograph is called in a title."""
    return plain(shorten(photo.name))


def set_title(axes: Axes, text: str) -> None:
    """Write a title as all pictures have it."""
    axes.set_title(text, loc="left", fontsize=10, color=INK)


def draw_photo(axes: Axes, photo: Photo, title: str | None = None, **more: Any) -> None:
    """Draw a photograph under its name, or another title."""
    title = name_of(photo) if title is None else title
    draw_image(axes, as_bytes(photo.pixels), title, interpolation="antialiased", **more)


def draw_image(axes: Axes, pixels: np.ndarray, title: str = "", **more: Any) -> None:
    """Draw an image into axes without ticks and frame, under a title."""
    axes.imshow(pixels, **more)
    axes.set_axis_off()
    set_title(axes, title)


def _draw_labels(
    axes: Any, places: np.ndarray, words: Sequence[str], order: Sequence[int], left: float
) -> None:
    """Write a word beside each place, shape (k, 2), where it is on no other and on no marker.

    By `order`; who finds no room goes without. Words do not go beyond the `left` edge of their
    photograph, nor by more than half a line above or below it. To the right they may.
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
    # In points of print: half the width of a marker, and what is left free around a label.
    half, free = 4.0 * unit, 1.0 * unit
    markers = np.hstack([centres - half, centres + half])
    box = axes.get_window_extent()
    corner = axes.transData.transform((left, 0.0))[0]
    beyond = unit * np.array([-1.0, -4.0, 0.0, 4.0])
    limit = np.array([corner, box.y0, np.inf, box.y1]) + beyond
    spots = np.array([[_box(text, spot, free) for spot in range(4)] for text in texts])
    for text, spot in zip(texts, place_labels(spots, markers, limit, order), strict=True):
        if spot is None:
            text.remove()
        else:
            _put(text, spot)


def place_labels(
    spots: np.ndarray, taken: np.ndarray, limit: np.ndarray, order: Sequence[int]
) -> list[int | None]:
    """Choose for each label in turn the first spot that is free, or None where none is.

    Boxes are (left, bottom, right, top): where labels may be, `spots`, (k, s, 4), those that are
    `taken`, (t, 4), and the one that all have to be in, `limit`.

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
