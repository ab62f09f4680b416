"""Pictures of couplings: transitions between types, their flow, pathway weights, pushed mass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import InputError, brief, require
from frot._base.names import quote_some
from frot._base.validate import check_count
from frot.cells._coupling import Coupling
from frot.show.style import (
    BLUE,
    FAINT,
    GREEN,
    GREY,
    INK,
    ORANGE,
    colour_bar,
    new_figure,
    plain,
    shorten,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["embedding_of", "plot_flow", "plot_push", "plot_transitions", "plot_weights"]

# The rest of Okabe and Ito's palette follows the house's own colours.
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", GREY)
# Of the mass; thinner bands are not seen.
THINNEST = 0.002
# Embeddings that are drawn where nobody says which.
EMBEDDINGS = ("X_umap", "X_tsne", "X_draw_graph_fa", "X_diffmap", "X_pca")


def plot_transitions(coupling: Coupling, column: str, target_column: str | None = None) -> Figure:
    """Draw where each type goes as a heat map: rows sum to one.

    Parameters
    ----------
    coupling : Coupling
    column, target_column : str
        As in `Coupling.transition_matrix`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    table = coupling.transition_matrix(column, target_column)
    values = table.to_numpy()
    rows, cols = ([_short(name) for name in names] for names in (table.index, table.columns))
    figure = new_figure(2.6 + 0.62 * max(len(cols), 3), 1.6 + 0.48 * max(len(rows), 2))
    axes = figure.add_subplot()
    image = _heat_map(axes, values, rows, cols, 1.0)
    if values.size <= 400:
        for i, j in np.ndindex(values.shape):
            colour = "white" if values[i, j] > 0.55 else INK
            text = f"{values[i, j]:.2f}" if values[i, j] >= 0.005 else ""
            axes.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)
    axes.set_xlabel(_day(coupling, coupling.target.day))
    axes.set_ylabel(_day(coupling, coupling.source.day))
    axes.set_title("Where each type goes", loc="left", fontsize=11)
    colour_bar(image, axes, "share of the type's mass", shrink=0.9)
    return figure


def plot_flow(
    couplings: Coupling | Sequence[Coupling], column: str, target_column: str | None = None
) -> Figure:
    """Draw the mass that flows between types as bands from day to day (a Sankey diagram).

    Parameters
    ----------
    couplings : Coupling, or sequence of Coupling
        Of consecutive days, as a trajectory has them.
    column, target_column : str
        As in `Coupling.transition_matrix`; `target_column` for a single coupling.

    Returns
    -------
    matplotlib.figure.Figure
    """
    chain = _chain(couplings)
    tables = [one.transition_matrix(column, target_column, share="none") for one in chain]
    # What was kept is drawn as shares of it, so that every day is as high.
    masses = [table.to_numpy() / max(float(table.to_numpy().sum()), 1e-300) for table in tables]
    names = list(dict.fromkeys(name for t in tables for name in (*t.index, *t.columns)))
    colour = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(names)}
    figure = new_figure(3.0 + 3.0 * len(chain), 4.6)
    axes = figure.add_subplot()
    bar, room = 0.05, 0.02
    for at, (table, mass) in enumerate(zip(tables, masses, strict=True)):
        left = _places(mass.sum(axis=1), room)
        right = _places(mass.sum(axis=0), room)
        leaving, coming = left.copy(), right.copy()
        for i, j in np.ndindex(mass.shape):
            height = mass[i, j]
            if height >= THINNEST:
                # Bars of later days stand at the end of the step that leads there.
                x0, x1 = at + (bar if at == 0 else 0.0), at + 1 - bar
                _band(axes, (x0, leaving[i]), (x1, coming[j]), height, colour[table.index[i]])
            leaving[i] += height
            coming[j] += height
        ends = [(at + 1 - bar, table.columns, mass.sum(axis=0), right)]
        if at == 0:
            ends.insert(0, (at, table.index, mass.sum(axis=1), left))
        for x, kinds, heights, below in ends:
            for kind, height, low in zip(kinds, heights, below, strict=True):
                axes.bar(x, height, bar, low, align="edge", color=colour[kind], linewidth=0)
                first = at == 0 and x == 0
                axes.text(
                    x - 0.02 if first else x + bar + 0.02, low + height / 2,
                    f"{plain(_short(kind))} {height:.0%}", fontsize=9, color=INK, va="center",
                    ha="right" if first else "left",
                    bbox={"facecolor": "white", "alpha": 0.6, "linewidth": 0, "pad": 1.0},
                )  # fmt: skip
    axes.set_xlim(-0.35, len(chain) + 0.35)
    axes.set_xticks(
        [bar / 2, *(at + 1 - bar / 2 for at in range(len(chain)))],
        [_day(chain[0], chain[0].source.day), *(_day(one, one.target.day) for one in chain)],
    )
    axes.set_yticks([])
    axes.tick_params(colors=INK, labelsize=10, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title("Flow between types, in shares of the coupled mass", loc="left", fontsize=11)
    return figure


def plot_weights(couplings: Coupling | Sequence[Coupling], top: int = 12) -> Figure:
    """Draw the weights of pathways: as bars, or over time where there are several couplings.

    Parameters
    ----------
    couplings : Coupling, or sequence of Coupling
        Of consecutive days.
    top : int
        How many pathways to draw, the heaviest first.

    Returns
    -------
    matplotlib.figure.Figure
    """
    chain, top = _chain(couplings), check_count(top, "top")
    weights: dict[str, np.ndarray] = {}
    for at, one in enumerate(chain):
        for name, weight in zip(one.names, one.alpha, strict=True):
            weights.setdefault(name, np.zeros(len(chain)))[at] = weight
    heaviest = sorted(weights, key=lambda name: -weights[name].max())[:top]
    values = np.array([weights[name] for name in heaviest])
    names = [plain(_short(name, 34)) for name in heaviest]
    if len(chain) == 1:
        figure = new_figure(7.0, 1.2 + 0.3 * len(heaviest))
        axes = tidy(figure.add_subplot())
        axes.barh(range(len(names)), values[:, 0], color=BLUE, height=0.66)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_xlabel("weight α")
    else:
        figure = new_figure(3.4 + 0.9 * len(chain), 1.6 + 0.34 * len(heaviest))
        axes = figure.add_subplot()
        steps = [f"{one.source.day} → {one.target.day}" for one in chain]
        image = _heat_map(axes, values, names, steps, max(values.max(), 1e-9))
        axes.set_xlabel(chain[0].key)
        colour_bar(image, axes, "weight α", shrink=0.9)
    left_out = len(weights) - len(heaviest)
    more = f" (the heaviest {len(heaviest)} of {len(weights)})" if left_out else ""
    axes.set_title(f"Weights of pathways{more}", loc="left", fontsize=11)
    return figure


def plot_push(
    coupling: Coupling,
    cells: Any = None,
    column: str | None = None,
    basis: str | None = None,
    *,
    pull: bool = False,
) -> Figure:
    """Draw cells on their embedding: those chosen, and where their descendants are.

    Parameters
    ----------
    coupling : Coupling
    cells, column :
        Which cells, as in `Coupling.push`.
    basis : str, optional
        A key of ``adata.obsm``; by default "X_umap" or another that is there. Two coordinates are
        drawn.
    pull : bool
        Choose target cells, and draw where their ancestors are.

    Returns
    -------
    matplotlib.figure.Figure
        Colours are shares of the mass over what a cell has if all are alike.
    """
    points = embedding_of(coupling, basis)
    ends = (coupling.source, coupling.target)
    chosen, found = ends[::-1] if pull else ends
    shares = (coupling.pull if pull else coupling.push)(cells, column)
    marked = coupling.weights(chosen, cells, column) > 0.0
    figure = new_figure(6.6, 4.8)
    axes = tidy(figure.add_subplot())
    axes.scatter(*points.T, s=5, color=FAINT, linewidths=0, label="other cells")
    here = points[chosen.rows][marked]
    axes.scatter(
        *here.T, s=12, color=ORANGE, linewidths=0, label=f"chosen ({_day(coupling, chosen.day)})"
    )
    relative, order = shares * len(found), np.argsort(shares)
    colours = require("matplotlib", "plot").colormaps["Blues"]
    top = max(float(np.quantile(relative, 0.99)), 1e-9)
    there = points[found.rows][order]
    image = axes.scatter(
        *there.T, c=relative[order], s=12, cmap=colours, vmin=0.0, vmax=top, linewidths=0
    )
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel(f"{_basis(coupling, basis).removeprefix('X_')} 1")
    axes.set_ylabel(f"{_basis(coupling, basis).removeprefix('X_')} 2")
    what = "ancestors" if pull else "descendants"
    name = "all cells" if cells is None else "chosen cells" if column is None else _short(cells)
    axes.set_title(f"Where the {what} of {plain(name)} are", loc="left", fontsize=11)
    axes.legend(frameon=False, fontsize=8, loc="best", markerscale=1.4)
    colour_bar(image, axes, f"share of {what}, in units of an even share", shrink=0.9)
    return figure


def embedding_of(coupling: Coupling, basis: str | None = None) -> np.ndarray:
    """Return two coordinates of all cells, shape (N, 2)."""
    return np.asarray(coupling.data.obsm[_basis(coupling, basis)], dtype=float)[:, :2]


def _basis(coupling: Coupling, basis: str | None) -> str:
    known = [str(one) for one in coupling.data.obsm]
    if basis is None:
        found = [one for one in (*EMBEDDINGS, *known) if one in known]
        if not found:
            raise InputError("basis: adata.obsm has no embedding; compute a UMAP, or give one")
        return found[0]
    if basis not in known:
        raise InputError(
            f"basis: adata.obsm has no {brief(basis)}; it has {quote_some(known) or 'none'}"
        )
    return basis


def _chain(couplings: Coupling | Sequence[Coupling]) -> list[Coupling]:
    chain = [couplings] if isinstance(couplings, Coupling) else list(couplings)
    if not chain:
        raise InputError("couplings: there are none to draw")
    return chain


def _short(name: Any, length: int = 24) -> str:
    return shorten(str(name), length)


def _day(coupling: Coupling, day: Any) -> str:
    return plain(f"{coupling.key} {day}")


def _heat_map(
    axes: Axes, values: np.ndarray, rows: Sequence[str], cols: Sequence[str], top: float
) -> Any:
    """Draw values from 0 to `top` with a name for each row and column; returns the image."""
    image = axes.imshow(values, cmap="Blues", vmin=0.0, vmax=top, aspect="auto")
    axes.set_xticks(range(len(cols)), cols, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(colors=INK, labelsize=9, length=0)
    for spine in axes.spines.values():
        spine.set_color(GREY)
    return image


def _places(heights: np.ndarray, room: float) -> np.ndarray:
    """Return where bars of these heights stand, with some room between them."""
    return np.concatenate([[0.0], np.cumsum(heights + room)[:-1]])


def _band(
    axes: Axes, left: tuple[float, float], right: tuple[float, float], height: float, colour: str
) -> None:
    """Draw a band that leaves and arrives level."""
    steps = np.linspace(0.0, 1.0, 60)
    ease = steps * steps * (3.0 - 2.0 * steps)
    x = left[0] + (right[0] - left[0]) * steps
    low = left[1] + (right[1] - left[1]) * ease
    axes.fill_between(x, low, low + height, color=colour, alpha=0.4, linewidth=0)
