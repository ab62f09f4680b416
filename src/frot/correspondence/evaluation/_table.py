"""Figures by class: on a terminal, as CSV, as LaTeX."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frot._base.files import check_writable, replacing

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["ResultTable", "Row", "latex_table"]

# More classes than this are for files, not for the eye.
SHOWN_CLASSES = 24
EDGES = 2


@dataclass(frozen=True)
class Row:
    """A line of the table, in per cent.

    Parameters
    ----------
    method : str
    measure : str
        What is measured and how it is averaged, such as "PCK 0.1 per image".
    source : str
        "measured", or whose table it is from.
    values : dict
        By class; a class that is not there has no figure.
    all : float
        Over all pairs.
    error : float or None
        Standard error of `all`.
    pairs : int or None
    """

    method: str
    measure: str
    source: str
    values: Mapping[str, float]
    all: float
    error: float | None = None
    pairs: int | None = None


@dataclass(frozen=True)
class ResultTable:
    """Rows of figures by class, with what has to be said about them.

    `print` it, or `write_csv` and `write_latex`.

    Examples
    --------
    >>> row = Row("frot", "PCK 0.1 per image", "measured", {"cat": 62.0}, 62.0, 1.5, 90)
    >>> print(ResultTable("Made", ("cat",), (row,)).csv, end="")
    method,measure,source,cat,all,standard error,pairs
    frot,PCK 0.1 per image,measured,62.0,62.0,1.50,90
    """

    title: str
    classes: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    short: Mapping[str, str] = field(default_factory=dict)

    @property
    def csv(self) -> str:
        """As comma-separated values, every class with its full name."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        head = ["method", "measure", "source", *self.classes, "all", "standard error", "pairs"]
        writer.writerow(head)
        for row in self.rows:
            known = [_figure(row.values.get(name)) for name in self.classes]
            error = "" if row.error is None or math.isnan(row.error) else f"{row.error:.2f}"
            last = [_figure(row.all), error, "" if row.pairs is None else row.pairs]
            writer.writerow([row.method, row.measure, row.source, *known, *last])
        return file.getvalue()

    @property
    def latex(self) -> str:
        """As a table of LaTeX's, with booktabs: totals with their standard errors, and pairs."""
        shown = [self.short.get(name, name) for name in self.classes]
        heads = ["Method", "Measure", *shown, "all", "pairs"]
        lines = []
        for row, method in zip(self.rows, self._marked, strict=True):
            known = [_figure(row.values.get(name)) for name in self.classes]
            count = "" if row.pairs is None else str(row.pairs)
            lines.append([method, row.measure, *known, _total(row), count])
        if any(cells[-2].count("±") for cells in lines):
            heads[-2] = "all ± s.e."
        return latex_table(heads, lines, self._caption)

    @property
    def _caption(self) -> str:
        """Title, notes and sources as sentences; a note on the title's own set goes on from it."""
        said = [self.title, *self.notes, *self.sources]
        name, colon, rest = "".join(self.notes[:1]).partition(": ")
        if colon and self.title.startswith(name):
            said[:2] = [f"{self.title}: {rest}"]
        return " ".join(f"{text}." for text in said)

    @property
    def sources(self) -> tuple[str, ...]:
        """Where the rows are from that were not measured, by the numbers they carry."""
        return tuple(f"[{number}] {source}" for source, number in self._numbers.items())

    @property
    def _numbers(self) -> dict[str, int]:
        named = dict.fromkeys(row.source for row in self.rows if row.source != "measured")
        return {source: number for number, source in enumerate(named, 1)}

    @property
    def _marked(self) -> list[str]:
        numbers = self._numbers
        return [
            f"{row.method} [{numbers[row.source]}]" if row.source in numbers else row.method
            for row in self.rows
        ]

    def write_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write a file of comma-separated values."""
        return _write(path, self.csv)

    def write_latex(self, path: str | os.PathLike[str]) -> Path:
        """Write a file to be included in a document."""
        return _write(path, self.latex)

    def rich(self, width: int = 100) -> list[Table]:
        """Return tables for a terminal, several where the classes do not fit beside one another."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        fixed = [("method", self._marked), ("measure", [row.measure for row in self.rows])]
        last = [("all", [_total(row) for row in self.rows])]
        shown = self.classes if len(self.classes) <= SHOWN_CLASSES else ()
        columns = [
            (self.short.get(name, name), [_figure(row.values.get(name)) for row in self.rows])
            for name in shown
        ]
        room = width - EDGES - sum(_width(*column) for column in fixed)
        made = []
        for number, block in enumerate(_blocks([*columns, *last], room)):
            title = self.title if number == 0 else None
            table = Table(box=box.SIMPLE_HEAVY, title=title, title_justify="left")
            for head, _ in fixed:
                table.add_column(head, no_wrap=True)
            for head, _ in block:
                table.add_column(head, justify="right", no_wrap=True)
            for cells in zip(*(cells for _, cells in [*fixed, *block]), strict=True):
                # Brackets are no markup here.
                table.add_row(*map(Text, cells))
            made.append(table)
        return made

    def __str__(self) -> str:
        from rich.console import Console

        # Wide enough for everything: whoever prints to a file wants one table.
        console = Console(width=400, file=io.StringIO(), color_system=None)
        for table in self.rich(400):
            console.print(table)
        file: Any = console.file
        lines = [line.rstrip() for line in file.getvalue().splitlines()]
        return "\n".join([*lines, *self.notes, *self.sources])


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _total(row: Row) -> str:
    if row.error is None or math.isnan(row.error):
        return _figure(row.all)
    return f"{row.all:.1f} ± {row.error:.1f}"


def _width(head: str, cells: Sequence[str]) -> int:
    return max(map(len, [head, *cells])) + 3


def _blocks(
    columns: Sequence[tuple[str, list[str]]], room: int
) -> list[list[tuple[str, list[str]]]]:
    blocks: list[list[tuple[str, list[str]]]] = [[]]
    left = room
    for column in columns:
        if blocks[-1] and _width(*column) > left:
            blocks.append([])
            left = room
        blocks[-1].append(column)
        left -= _width(*column)
    return blocks


def _write(path: str | os.PathLike[str], text: str) -> Path:
    path = Path(path)
    check_writable(path)
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")
    return path


SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
}


def latex_table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    r"""Return a table with booktabs' rules; the first two columns are text, the others figures.

    Examples
    --------
    >>> print(latex_table(["Method", "Measure", "cat"], [["a_b", "PCK", "1.0"]], "5 %."))
    % needs \usepackage{booktabs,graphicx}
    \begin{table}
    \centering
    \caption{5 \%.}
    \resizebox{\textwidth}{!}{%
    \begin{tabular}{llr}
    \toprule
    Method & Measure & cat \\
    \midrule
    a\_b & PCK & 1.0 \\
    \bottomrule
    \end{tabular}}
    \end{table}
    <BLANKLINE>
    """
    lines = [
        r"% needs \usepackage{booktabs,graphicx}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_escaped(caption)}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{ll{'r' * (len(heads) - 2)}}}",
        r"\toprule",
        _latex_line(heads),
        r"\midrule",
        *(_latex_line(row) for row in rows),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(map(_escaped, cells)) + r" \\"


def _escaped(text: str) -> str:
    # Two hyphens in a row would be a dash, where they begin an option.
    return "".join(SPECIAL.get(letter, letter) for letter in text).replace("--", "-{}-")
