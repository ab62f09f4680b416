"""``frot couple``: the cells of two days in, where they go and which pathways decide out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from frot._base.errors import InputError
from frot._base.files import replacing
from frot._base.names import quote_some
from frot._base.stopping import Interrupted
from frot.cli.command import (
    PAGES,
    TABLES,
    Progress,
    Writes,
    arguments,
    bar,
    check_files,
    command,
    exit_code,
    given,
    numbers,
    option,
    option_words,
    say,
    show_summary,
    typed,
    warnings_as_lines,
    wrote,
)
from frot.cli.solve import TAU, prices

GROUPS = "A .gmt, .json, .csv or .tsv file of gene sets, a key of obsm, or prefix."
OBS = "Table with what is known of each cell, by name; for .csv and .tsv."
GROWTH = "Column with the descendants expected of a cell."
TYPES = "Column with the cell types, for transitions and pictures."
BASIS = "Embedding to draw, such as X_umap."
OUT = "Write the transitions (with --types) or the pathways."


@dataclass(frozen=True)
class CoupleCall:
    """What to couple and how; `options` holds only what differs from the defaults.

    Examples
    --------
    >>> call = CoupleCall(Path("a b.h5ad"), "day", "3", "4", "h.gmt", {"tau": (float("inf"), 1.0)})
    >>> print(call.command)
    frot couple 'a b.h5ad' --key day --source 3 --target 4 --groups h.gmt --tau inf,1
    >>> print(call.python)
    import frot.cells
    <BLANKLINE>
    cells = frot.cells.read_cells('a b.h5ad', columns=['day'])
    coupling = frot.cells.couple(
        cells, 'day', '3', '4', groups='h.gmt', tau=(float("inf"), 1.0)
    )
    """

    data: Path
    key: str
    source: str | None
    target: str | None
    groups: str
    options: Mapping[str, Any] = field(default_factory=dict)
    obs: Path | None = None
    columns: tuple[str, ...] = ("day",)
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """The command line."""
        words = ["frot", "couple", str(self.data), "--key", self.key]
        words += option_words(given(source=(self.source, None), target=(self.target, None)))
        words += ["--groups", self.groups, *option_words(given(obs=(self.obs, None)))]
        # Without a gate is None in Python and a switch here.
        options = {name: value is not None if name == "gate" else value
                   for name, value in self.options.items()}  # fmt: skip
        return shlex.join([*words, *option_words(options), *option_words(self.more)])

    @property
    def python(self) -> str:
        """The same in Python."""
        read = [repr(str(self.data)), *([repr(str(self.obs))] if self.obs is not None else [])]
        read.append(f"columns={list(self.columns)!r}")
        days = [repr(one) for one in (self.source, self.target) if one is not None]
        words = ["cells", repr(self.key), *days, f"groups={self.groups!r}"]
        return "\n".join([
            "import frot.cells",
            "",
            f"cells = frot.cells.read_cells({', '.join(read)})",
            "coupling = frot.cells.couple(",
            f"    {', '.join([*words, *arguments(self.options)])}",
            ")",
        ])  # fmt: skip


@command(
    "frot couple cells.h5ad --source 3 --target 4 --groups hallmark.gmt --types cell_type",
    "frot couple cells.h5ad --groups hallmark.gmt --tau inf,1 --out couple.html --out moves.tsv",
    writes=[Writes("report", PAGES, "couple.html"), Writes("table", TABLES, "transitions.tsv")],
)
def couple(
    data: Annotated[Path, typer.Argument(help="Cells: .h5ad, .csv or .tsv.", show_default=False)],
    groups: Annotated[str, option("Problem", GROUPS, "FILE")],
    key: Annotated[str, option("Problem", "Column with the days.", "NAME")] = "day",
    source: Annotated[str | None, option("Problem", "The earlier day.", "DAY")] = None,
    target: Annotated[str | None, option("Problem", "The later day.", "DAY")] = None,
    obs: Annotated[Path | None, option("Problem", OBS, "FILE")] = None,
    layer: Annotated[str | None, option("Problem", "Layer of an .h5ad file.", "NAME")] = None,
    growth: Annotated[str | None, option("Problem", GROWTH, "NAME")] = None,
    tau: Annotated[str | None, option("Problem", TAU, "COST")] = None,
    eps: Annotated[float, option("Problem", "Entropy of the plan; 0 is exact.", "COST")] = 0.02,
    eta: Annotated[float, option("Problem", "Entropy of the weights.", "COST")] = 0.05,
    gate: Annotated[bool, option("Problem", "Leave incoherent pathways out.")] = True,
    denoise: Annotated[bool, option("Problem", "Count what other pathways confirm.")] = True,
    types: Annotated[str | None, option("Output", TYPES, "NAME")] = None,
    basis: Annotated[str | None, option("Output", BASIS, "NAME")] = None,
    report: Annotated[Path | None, option("Output", "Write a web page.", "FILE")] = None,
    table: Annotated[Path | None, option("Output", OUT, "FILE")] = None,
    top: Annotated[int, option("Output", "Pathways to print.", min=0)] = 10,
    time_limit: Annotated[float | None, option("Algorithm", "Seconds at most.", "SECONDS")] = None,
    progress: Progress = None,
) -> None:
    """Couple the cells of two days: where they go, and which pathways decide.

    Ctrl-C ends the run with the best certified answer so far; files are still written.

    Exit codes: 0 solved, 2 bad input, 3 stopped before the tolerance, 130 interrupted.
    """
    import frot.cells

    check_files((report, PAGES), (table, TABLES), inputs=[data])
    options = given(
        growth=(growth, None),
        tau=(None if tau is None else prices(tau), None),
        eps=(eps, 0.02),
        eta=(eta, 0.05),
        layer=(layer, None),
        time_limit=(time_limit, None),
    )
    options |= {} if gate else {"gate": None}
    options |= {} if denoise else {"denoise": False}
    columns = tuple(name for name in (key, growth, types) if name is not None)
    cells = frot.cells.read_cells(data, obs, columns=columns)
    for name, column in (("key", key), ("growth", growth), ("types", types)):
        if column is not None and column not in cells.obs:
            known = quote_some([str(one) for one in cells.obs]) or "none"
            raise InputError(f"{name}: {data} has no column {column!r} of cells; it has {known}")
    if basis is not None and basis not in cells.obsm:
        known = quote_some([str(one) for one in cells.obsm]) or "none"
        raise InputError(f"basis: {data} has no embedding {basis!r}; it has {known}")
    with warnings_as_lines():
        try:
            found = frot.cells.couple(
                cells, key, source, target, groups=groups, **options, progress=bar(progress)
            )
        except Interrupted as stop:
            found = stop.result
    show_summary(found.summary(top), found.result.status)
    if types is not None:
        say("")
        say(f"Where each {types} goes, in shares of its mass:")
        say(found.transition_matrix(types).round(3).to_string())
    more = given(types=(types, None), basis=(basis, None), report=(report, None))
    about = None if obs is None else typed(obs)
    call = CoupleCall(typed(data), key, source, target, groups, options, about, columns, more)
    numbers(_numbers(found, types), call)
    _write_table(found, types, table)
    if report is not None:
        title = f"{data.name}: {key} {found.source.day} to {found.target.day}"
        shown = {"basis": basis, "call": call.python, "command": call.command}
        with warnings_as_lines():
            frot.cells.write_coupling_report(found, report, types, title=title, **shown)
    wrote(table, report)
    raise typer.Exit(exit_code(found.result.status))


def _numbers(found: Any, types: str | None) -> dict[str, Any]:
    """Everything but the plan as numbers and text, ready for JSON."""
    result = found.result
    about = {
        "key": found.key,
        "source": str(found.source.day),
        "target": str(found.target.day),
        "cells": [len(found.source), len(found.target)],
        "status": str(result.status),
        "value": result.value,
        "interval": [result.lower, result.upper],
        "gap": result.gap,
        "eps": result.eps,
        "eta": result.eta,
        "mass": found.mass,
        "groups": [
            {
                "name": one.name,
                "genes": one.genes,
                "components": one.components,
                "passed": one.passed,
                "weight": float(weight),
            }
            for one, weight in zip(found.about, found.alpha, strict=True)
        ],
    }
    if types is not None:
        table = found.transition_matrix(types)
        about["transitions"] = {
            str(kind): {str(name): float(value) for name, value in row.items()}
            for kind, row in table.iterrows()
        }
    return about


def _write_table(found: Any, types: str | None, path: Path | None) -> None:
    if path is None:
        return
    table = found.groups if types is None else found.transition_matrix(types).reset_index()
    with replacing(path) as draft:
        table.to_csv(draft, sep="," if path.suffix.lower() == ".csv" else "\t", index=False)
