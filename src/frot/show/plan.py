"""Pictures of a plan: lines between points, or a heat map where there are only costs.

Points of many features are drawn in two of them, or in two principal components.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from frot._base.arrays import TINY
from frot._base.errors import InputError, require
from frot.show.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    colour_bar,
    legend_above,
    new_figure,
    plain,
    shorten,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

    from frot.groups.groups import Groups
    from frot.plans.plan import Plan
    from frot.problem.result import Result


def plot_plan(
    result: Result,
    features: tuple[int, int] | None = None,
    *,
    groups: Groups | None = None,
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
    groups: Groups | None = None,
    feature_names: Sequence[str] | None = None,
) -> None:
    """Draw the plan into a figure or a part of one."""
    axes = figure.add_subplot()
    if result.points is None and features is None:
        image = draw_cells(axes, result.plan)
        axes.locator_params(integer=True)
        axes.set_xlabel("column j")
        axes.set_ylabel("row i")
        axes.set_title(f"Transport plan{_kept(result, 'rows', 'columns')}", loc="left", fontsize=11)
        colour_bar(image, axes, "mass", shrink=0.85)
        return
    shown = project(result, features, groups, feature_names)
    share = draw_arcs(axes, result.plan, shown.x, shown.y)
    tidy(axes)
    axes.set_xlabel(plain(shown.labels[0]))
    axes.set_ylabel(plain(shown.labels[1]))
    if not shown.labels[1]:
        axes.set_yticks([])
    part = "" if share > 0.9995 else f" ({share:.0%} of the mass)"
    kept = _kept(result, "X", "Y; hollow points keep nothing")
    axes.set_title(f"Transport plan{part}{kept}", loc="left", fontsize=11)
    legend_above(axes, 2)


def _kept(result: Result, a: str, b: str) -> str:
    """What moves of both masses, where that need not be all: a line more in a title."""
    if result.keeps_all:
        return ""
    of_a, of_b = (result.mass / total for total in result.totals)
    return f"\nkeeps {of_a:.0%} of {a}, {of_b:.0%} of {b}"


def draw_arcs(
    axes: Axes,
    plan: Plan,
    x: np.ndarray,
    y: np.ndarray,
    names: tuple[str, str] = ("X", "Y"),
    size: float = 22.0,
    most: int = 4_000,
) -> float:
    """Draw points of shapes (n, 2) and (m, 2) and the plan's arcs between them.

    Points are as large as what they keep, and hollow where that is less than a hundredth of the
    mean. Returns the share of the mass that the drawn arcs, at most `most`, carry.
    """
    collections = require("matplotlib.collections", "plot")
    rows, cols, mass = plan.arcs()
    total = float(mass.sum())
    if len(mass) > most:
        keep = np.argpartition(mass, -most)[-most:]
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
        relative = weights / max(float(np.mean(weights)), 1e-300)
        gone, sizes = relative < 0.01, size * np.clip(relative, 0.2, 5.0)
        axes.scatter(
            *points[~gone].T, s=sizes[~gone], color=colour, marker=marker, label=name, **style
        )
        if gone.any():
            hollow = {"facecolors": "none", "edgecolors": colour, "linewidths": 0.8, "zorder": 3}
            axes.scatter(*points[gone].T, s=0.7 * size, marker=marker, **hollow)
    axes.margins(0.05)
    return float(mass.sum()) / total if total > 0.0 else 1.0


def draw_cells(
    axes: Axes,
    plan: Plan,
    order: tuple[np.ndarray, np.ndarray] | None = None,
    share: bool = False,
    most: int = 200,
) -> Any:
    """Draw a plan as a heat map of at most `most` cells a side; returns the image.

    Points are in an `order`, of lengths n and m; `share` draws shares of a row's mass, not mass.
    """
    n, m = plan.shape
    rows, cols, mass = plan.arcs()
    if share:
        mass = mass / np.maximum(np.asarray(plan.sum(axis=1)).ravel()[rows], 1e-300)
    if order is not None:
        # The inverse of an order is where each point stands in it.
        rows, cols = np.argsort(order[0])[rows], np.argsort(order[1])[cols]
    bins = min(n, most), min(m, most)
    cells = np.zeros(bins)
    np.add.at(cells, (rows * bins[0] // n, cols * bins[1] // m), mass)
    if share:
        cells *= bins[0] / n
    # One clear colour for mass and none for its absence reads better than a rainbow here.
    image = axes.imshow(
        cells,
        cmap="Blues",
        vmin=0.0,
        vmax=max(float(cells.max()), 1e-300),
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, m - 0.5, n - 0.5, -0.5),
    )
    for spine in axes.spines.values():
        spine.set_color(GREY)
    axes.tick_params(colors=INK, labelsize=9)
    return image


class Projection(NamedTuple):
    """Two coordinates of both point clouds, and what to write on the axes."""

    x: np.ndarray
    y: np.ndarray
    labels: tuple[str, str]


def project(
    result: Result,
    features: tuple[int, int] | None = None,
    groups: Groups | None = None,
    feature_names: Sequence[str] | None = None,
) -> Projection:
    """Choose two coordinates of the points of `result`: shapes (n, 2) and (m, 2).

    The two `features` asked for; else those of the heaviest group: its two features, its two
    principal components if it has more, its feature and the next heaviest group's if it has one.
    Points of two features are shown as they are.

    Examples
    --------
    >>> import frot
    >>> res = frot.solve([[0.0, 0.0, 0.0]], [[1.0, 9.0, 2.0]], groups="each")
    >>> project(res).labels
    ('x1', 'x2')
    """
    if result.points is None:
        raise InputError("features: the result has no points, only costs; leave features out")
    X, Y = result.points
    names = feature_names or _names(result, X.shape[1])
    chosen = checked_features(features, X.shape[1]) if features is not None else None
    title = ""
    if chosen is None:
        chosen, title = _heaviest(result, X.shape[1], groups)
    if len(chosen) == 1:
        # Points on a line are drawn on two parallel ones, or all arcs would lie on each other.
        return Projection(
            np.hstack([X[:, chosen], np.ones((len(X), 1))]),
            np.hstack([Y[:, chosen], np.zeros((len(Y), 1))]),
            (shorten(names[chosen[0]]), ""),
        )
    if len(chosen) == 2:
        first, second = (shorten(names[feature]) for feature in chosen)
        return Projection(X[:, chosen], Y[:, chosen], (first, second))
    return _components(X[:, chosen], Y[:, chosen], title)


def checked_features(features: tuple[int, int], d: int) -> list[int]:
    """Return two features of d, each of which there is."""
    chosen = [int(feature) for feature in features]
    if len(chosen) != 2:
        raise InputError(f"features: {len(chosen)} given; a picture has two axes, give two")
    for feature in chosen:
        if not 0 <= feature < d:
            raise InputError(f"features: {feature} is none of the {d} features 0 to {d - 1}")
    return chosen


def _names(result: Result, d: int) -> Sequence[str]:
    # With as many groups as features, each feature most likely is a group and lends its name.
    if len(result.names) == d:
        return result.names
    return [f"feature {feature}" for feature in range(d)]


def _heaviest(result: Result, d: int, groups: Groups | None) -> tuple[list[int], str]:
    """Return the features of the heaviest group, or of the heaviest two, and what to call them."""
    if d <= 2:
        return list(range(d)), ""
    ranking = result.ranking()
    if groups is None:
        groups = result.groups
    if groups is not None:
        members = [int(feature) for feature in groups.indices[ranking[0]]]
        for follower in ranking[1:]:
            if len(members) != 1:
                break
            more = [int(f) for f in groups.indices[follower] if f not in members]
            members += more[:1]
        return members, f"{shorten(result.names[ranking[0]], 20)}: "
    if len(result.names) == d:
        return [int(feature) for feature in ranking[:2]], ""
    return list(range(d)), ""


def _components(X: np.ndarray, Y: np.ndarray, title: str) -> Projection:
    both = np.vstack([X, Y])
    centre = both.mean(axis=0)
    _, scales, right = np.linalg.svd(both - centre, full_matrices=False)
    variance = scales**2
    share = variance / max(variance.sum(), TINY)
    axes = right[:2].T
    # A component's sign is arbitrary; the larger entries shall point to the right and up.
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] < 0.0, -1.0, 1.0)
    first, second = (f"{title}component {k + 1} ({share[k]:.0%})" for k in range(2))
    return Projection((X - centre) @ axes, (Y - centre) @ axes, (first, second))
