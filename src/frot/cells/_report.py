"""The page of a coupling: pathways, where types go, drivers, and how sure the answer is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from frot.cells._coupling import Coupling
from frot.cells._plots import embedding_of, plot_flow, plot_push, plot_transitions, plot_weights
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

__all__ = ["write_coupling_report"]

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
        Column of ``adata.obs`` with the cell types; without it nothing is said of types.
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
        embedding_of(coupling, basis)
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
        ("Pathways", f"{len(coupling.blocks)} of {len(coupling.about)} passed the gate, "
         f"{result.perplexity:.3g} in effect (exp of the entropy of α)"),
        ("Entropies", f"ε {result.eps:.3g} of the plan, η {result.eta:.3g} of α"),
        ("Run", f"{result.solver}, {result.time:.3g} s"),
    ]  # fmt: skip
    return Section("Answer", facts=facts)


def _pathways(coupling: Coupling) -> Section:
    columns = [
        Column("Pathway", "text"), Column("Weight α"), Column("Cost φ"), Column("Genes"),
        Column("Components"), Column("Variance"), Column("Coherence z"), Column("Gate", "text"),
    ]  # fmt: skip
    rows = []
    table = {name: np.asarray(values) for name, values in coupling.groups.items()}
    for at in range(len(coupling.about)):
        passed = bool(table["passed"][at])
        rows.append([
            Cell(str(table["group"][at])), number(table["weight"][at], ".4f"),
            number(table["cost"][at], ".4f"), number(table["genes"][at], ".0f"),
            number(table["components"][at], ".0f"), number(table["share"][at], ".0%"),
            number(table["z"][at], ".1f"),
            Cell("passed" if passed else "left out", badge="" if passed else "open"),
        ])  # fmt: skip
    return Section(
        "Pathways",
        ["α says which pathways decide the coupling: those in which cells of the two days differ "
         "most under the best plan. Costs are in units of what coupling at random costs. Pathways "
         "that tell nothing that another one confirms do not pass the gate."],
        pictures=[picture(lambda: plot_weights(coupling), "Weights of the heaviest pathways")],
        tables=[PageTable(columns, rows, "Pathways", "pathways", search="pathways")],
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
    values = {name: np.asarray(table[name]) for name in table}
    count = min(len(values["gene"]), MAX_GENES)
    columns = [
        Column("Gene", "text"), Column("Pathway", "text"), Column("Pathway's share"),
        Column("Share in pathway"), Column("Change"),
    ]  # fmt: skip
    rows = [
        [
            Cell(str(values["gene"][at])), Cell(str(values["group"][at])),
            number(values["group_share"][at], ".1%"), number(values["gene_share"][at], ".1%"),
            number(values["change"][at], "+.3g"),
        ]
        for at in range(count)
    ]  # fmt: skip
    return Section(
        "Genes that change",
        ["What coupled cells differ in: each pathway's share of the weighted cost, each gene's "
         "share of its pathway, and the mean change from source to target. It describes the "
         "coupling; it is no test."],
        tables=[PageTable(columns, rows, "Genes", "genes", search="genes")],
    )  # fmt: skip
