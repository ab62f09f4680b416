"""The page of a comparison of methods."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from frot._base.errors import InputError, brief
from frot.comparison._comparison import Comparison, Row
from frot.comparison.picture import plot_choices, plot_intervals, plot_plans
from frot.show.page import Cell, Column, PageTable, check_page, picture, plural, render, save_page


def write_comparison_report(
    comparison: Comparison,
    path: str | os.PathLike[str],
    title: str = "Robust transports side by side",
    *,
    command: str = "",
) -> Path:
    """Write a comparison as one web page: a table, intervals, choices and plans side by side.

    The page holds its pictures and style itself and asks nothing of the network. It replaces an
    existing file only once it is complete. Needs the extra ``frot[plot]``.

    Parameters
    ----------
    comparison : Comparison
    path : path
        The .html file to write.
    command : str
        A command line that gives it, shown as it is.
    title : str

    Returns
    -------
    pathlib.Path
        The file written.

    Examples
    --------
    >>> import frot, tempfile
    >>> both = frot.compare([[0.0, 0.0]], [[3.0, 4.0]], ["frot", "ot"])
    >>> page = write_comparison_report(both, Path(tempfile.mkdtemp()) / "page.html")
    >>> "What each chose" in page.read_text(encoding="utf-8")
    True
    """
    if not isinstance(comparison, Comparison):
        raise InputError(
            f"comparison: {brief(comparison)} is not a Comparison; pass what frot.compare returned"
        )
    path = check_page(path, title=title, command=command)
    (n, d), m = comparison.points[0].shape, len(comparison.points[1])
    drawn: dict[str, Any] = {}
    if comparison.answered:
        drawn = {
            "intervals": picture(
                lambda: plot_intervals(comparison), "Values and intervals of the methods"
            ),
            "choices": picture(lambda: plot_choices(comparison), "Weights that the methods chose"),
            "plans": picture(lambda: plot_plans(comparison), "Transport plans of the methods"),
        }
    page = render(
        "comparison.html",
        "frot.comparison",
        title=title,
        subtitle=f"{n:,} to {m:,} points of {plural(d, 'feature')} "
        f"in {plural(len(comparison.groups), 'group')}",
        command=command,
        comparison=comparison,
        methods=_method_table(comparison),
        chosen=[(row.title, row.cells["chose"]) for row in comparison.rows],
        relations=_relation_table(comparison),
        **drawn,
    )
    return save_page(path, page)


def _method_table(comparison: Comparison) -> PageTable:
    columns = [
        Column("Method", "text"), Column("Value"), Column("Interval"), Column("Gap"),
        Column("Status", "text"), Column("Seconds"), Column("Memory"),
    ]  # fmt: skip
    rows = [_method_row(row) for row in comparison.rows]
    return PageTable(columns, rows, "Values of the methods", "methods")


def _method_row(row: Row) -> list[Cell]:
    cells, result = row.cells, row.result
    if result is None:
        found = (math.nan, math.nan, math.nan)
        badge = Cell(cells["status"], badge="failed")
    else:
        found = (result.value, result.upper, result.gap)
        good = result.status.ok or cells["status"] == "ESTIMATE"
        kind = "" if good else "open"
        badge = Cell(cells["status"], badge=kind, title=result.status.sentence)
    return [
        Cell(row.title, note=row.counts if result is not None else row.problem),
        *(
            Cell(cells[name], value)
            for name, value in zip(("value", "interval", "gap"), found, strict=True)
        ),
        badge,
        Cell(cells["seconds"], row.seconds),
        Cell(cells["memory"], math.nan if row.memory is None else row.memory),
    ]


def _relation_table(comparison: Comparison) -> PageTable:
    columns = [Column("Theorem", "text"), Column("Because", "text"), Column("Here", "text")]
    rows = [
        [
            Cell(f"{one.left} ≤ {one.right}"),
            Cell(one.why),
            Cell(one.verdict, badge="failed" if one.verdict == "violated" else ""),
        ]
        for one in comparison.relations
    ]
    return PageTable(columns, rows, "Relations", "relations")
