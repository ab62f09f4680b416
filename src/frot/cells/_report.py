"""Pictures of couplings (transitions, flow, weights, pushed mass), and a page of them all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import InputError, require
from frot._base.validate import check_count
from frot.cells._coupling import Coupling
from frot.show.page import (
    Cell,
    Column,
    PageTable,
    Section,
    check_page,
    number,
    picture,
    plural,
    write_page,
)
from frot.show.result import kept_mass
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

# The rest of Okabe and Ito's palette follows the house's own colours.
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", GREY)
# Bands of a smaller share of the mass would not be visible.
THINNEST = 0.002
# Embeddings to draw by default, in this order.
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
    # Shares of the mass that was kept, so that every day has the same height.
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
        Colours are shares of the mass, in units of an even share.
    """
    basis = _basis(coupling, basis)
    points = coupling.embedding(basis)[:, :2]
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
    axes.set_xlabel(f"{basis.removeprefix('X_')} 1")
    axes.set_ylabel(f"{basis.removeprefix('X_')} 2")
    what = "ancestors" if pull else "descendants"
    name = "all cells" if cells is None else "chosen cells" if column is None else _short(cells)
    axes.set_title(f"Where the {what} of {plain(name)} are", loc="left", fontsize=11)
    axes.legend(frameon=False, fontsize=8, loc="best", markerscale=1.4)
    colour_bar(image, axes, f"share of {what}, in units of an even share", shrink=0.9)
    return figure


def _basis(coupling: Coupling, basis: str | None) -> str:
    """Return the embedding to draw: the one asked for, or the first that is there."""
    if basis is not None:
        return basis
    known = [str(one) for one in coupling.data.obsm]
    found = [one for one in (*EMBEDDINGS, *known) if one in known]
    if not found:
        raise InputError("basis: adata.obsm has no embedding; compute a UMAP, or give one")
    return found[0]


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


# Types whose descendants are drawn, and rows of the table of genes.
MAX_PUSHED, MAX_GENES = 6, 300


def write_coupling_report(
    coupling: Coupling,
    path: str | os.PathLike[str],
    column: str | None = None,
    *,
    basis: str | None = None,
    title: str = "",
    call: str = "",
    command: str = "",
) -> Path:
    """Write a coupling as one web page.

    The pathways with their weights and whether each passed the gate, where each cell type goes (a
    heat map and a flow), descendants on the embedding, the genes that change, and the certified
    interval. The page holds its pictures itself. Needs the extra ``frot[plot]``.

    Parameters
    ----------
    coupling : Coupling
    path : path
        The .html file to write; it is replaced only once the page is complete.
    column : str, optional
        Column of ``adata.obs`` with the cell types; without it the page has no types.
    basis : str, optional
        A key of ``adata.obsm``; by default "X_umap" or another that is there.
    title : str
    call, command : str
        Python code, and a command line, that make the page again; shown as they are.

    Returns
    -------
    pathlib.Path
        The file written.

    Examples
    --------
    >>> import tempfile
    >>> from frot.cells import couple, simulate
    >>> cells = simulate(40, n_groups=4, seed=0)
    >>> found = couple(cells.cells, groups=cells.groups)
    >>> page = write_coupling_report(found, Path(tempfile.mkdtemp()) / "page.html", "fate")
    >>> "Where each type goes" in page.read_text(encoding="utf-8")
    True
    """
    path = check_page(path)
    if basis is not None:
        coupling.embedding(basis)
    first, second = coupling.source, coupling.target
    sections = [_answer(coupling), _pathways(coupling)]
    if column is not None:
        sections.append(_types(coupling, column))
        if basis is not None or len(coupling.data.obsm):
            sections.append(_descendants(coupling, column, basis))
    sections.append(_genes(coupling))
    return write_page(
        path,
        title or f"{coupling.key} {first.day} to {second.day}",
        sections,
        subtitle=f"{len(first):,} to {len(second):,} cells in "
        f"{plural(len(coupling.about), 'pathway')}",
        call=call,
        command=command,
    )


def _answer(coupling: Coupling) -> Section:
    result = coupling.result
    facts = [
        ("Optimum", f"in [{result.lower:.8g}, {result.upper:.8g}], gap {result.gap:.1e}"),
        ("Status", f"{result.status}: {result.status.sentence}"),
        ("Cells", f"{len(coupling.source):,} to {len(coupling.target):,}"),
        *kept_mass(result, ("the source", "the target")),
        ("Pathways", f"{len(coupling.blocks)} of {len(coupling.about)} taken, "
         f"{result.perplexity:.3g} in effect (exp of the entropy of α)"),
        ("Entropies", f"ε {result.eps:.3g} of the plan, η {result.eta:.3g} of α"),
        ("Run", f"{result.solver}, {result.time:.3g} s"),
    ]  # fmt: skip
    return Section("Answer", facts=facts)


def _page_table(
    title: str, key: str, columns: dict[str, tuple[Any, str]], **more: Any
) -> PageTable:
    """Make a table of columns: headings with values and their format, which is empty for text."""
    cells = [
        [number(value, form) if form else Cell(str(value)) for value in values]
        for values, form in columns.values()
    ]
    heads = [Column(head, "number" if form else "text") for head, (_, form) in columns.items()]
    return PageTable(heads, [list(row) for row in zip(*cells, strict=True)], title, key, **more)


def _pathways(coupling: Coupling) -> Section:
    table = coupling.groups
    shown = _page_table(
        "Pathways",
        "pathways",
        {
            "Pathway": (table["group"], ""),
            "Weight α": (table["weight"], ".4f"),
            "Cost φ": (table["cost"], ".4f"),
            "Genes": (table["genes"], ".0f"),
            "Components": (table["components"], ".0f"),
            "Variance": (table["share"], ".0%"),
            "Coherence z": (table["z"], ".1f"),
        },
        search="pathways",
    )
    gate = [
        Cell("taken", badge="") if yes else Cell("left out", badge="open")
        for yes in table["passed"]
    ]
    shown = replace(
        shown,
        columns=[*shown.columns, Column("Gate", "text")],
        rows=[[*row, cell] for row, cell in zip(shown.rows, gate, strict=True)],
    )
    return Section(
        "Pathways",
        ["α says which pathways decide the coupling: those in which cells of the two days differ "
         "most under the best plan. Costs are in units of what coupling at random costs. Pathways "
         "without information that another one confirms do not pass the gate."],
        pictures=[picture(lambda: plot_weights(coupling), "Weights of the heaviest pathways")],
        tables=[shown],
    )  # fmt: skip


def _types(coupling: Coupling, column: str) -> Section:
    matrix = coupling.transition_matrix(column)
    names = [str(name) for name in matrix.columns]
    columns = [Column("From", "text"), *(Column(name) for name in names)]
    rows = [
        [Cell(str(kind)), *(number(value, ".3f") for value in row)]
        for kind, row in zip(matrix.index, matrix.to_numpy(), strict=True)
    ]
    return Section(
        "Cell types",
        ["The share of each type's mass that goes to each type."],
        pictures=[
            picture(lambda: plot_transitions(coupling, column), "Where each type goes"),
            picture(lambda: plot_flow(coupling, column), "Flow between cell types"),
        ],
        tables=[PageTable(columns, rows, "Transitions", "transitions")],
    )


def _descendants(coupling: Coupling, column: str, basis: str | None) -> Section:
    kinds, codes = coupling.categories(coupling.source, column)
    counts = np.bincount(codes[codes >= 0], minlength=len(kinds))
    drawn = [kinds[at] for at in np.argsort(-counts, kind="stable")[:MAX_PUSHED]]
    note = f"The {len(drawn)} largest of {len(kinds)} types." if len(drawn) < len(kinds) else ""
    return Section(
        "Descendants",
        [f"Cells on their embedding, coloured by the mass pushed there. {note}".strip()],
        pictures=[
            picture(lambda kind=kind: plot_push(coupling, kind, column, basis), f"From {kind}")
            for kind in drawn
        ],
    )


def _genes(coupling: Coupling) -> Section:
    table: Any = coupling.drivers()
    columns = {
        "Gene": ("gene", ""),
        "Pathway": ("group", ""),
        "Pathway's share": ("group_share", ".1%"),
        "Share in pathway": ("gene_share", ".1%"),
        "Change": ("change", "+.3g"),
    }
    shown = {head: (table[name][:MAX_GENES], form) for head, (name, form) in columns.items()}
    return Section(
        "Genes that change",
        ["What coupled cells differ in: each pathway's share of the weighted cost, each gene's "
         "share of its pathway, and the mean change from source to target. It describes the "
         "coupling; it is not a test."],
        tables=[_page_table("Genes", "genes", shown, search="genes")],
    )  # fmt: skip
