"""The paper's per-class table, with figures of other papers: on a terminal and as CSV."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frot._base.errors import InputError
from frot._base.files import check_writable, replacing
from frot.correspondence.datasets.sets import SPAIR_CLASSES, SPAIR_FLAGS

if TYPE_CHECKING:
    from rich.table import Table

    from frot.correspondence.evaluation.scores import Estimate, Evaluation, Per


@dataclass(frozen=True)
class Row:
    """A line of the table, in per cent."""

    method: str
    # What is measured and how it is averaged, such as "PCK 0.1 per image".
    measure: str
    # "measured", or whose table it is from.
    source: str
    # By class; a class that is not there has no figure.
    values: Mapping[str, float]
    # Over all pairs, and its standard error.
    all: float
    error: float | None = None
    pairs: int | None = None
    # Whether it is shown unless all published rows are asked for.
    short: bool = True
    # Less the first method's, on the pairs that both matched, and its standard error.
    less_first: tuple[float, float] | None = None


@dataclass(frozen=True)
class ResultTable:
    """Rows of scores by class, with notes.

    `print` it, or `write_csv`.

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
    def _difference(self) -> list[tuple[str, list[str]]]:
        """The column of differences, where there is one: its head and cells."""
        if all(row.less_first is None for row in self.rows):
            return []
        cells = [
            "" if row.less_first is None else "{:+.1f} ± {:.1f}".format(*row.less_first)
            for row in self.rows
        ]
        return [(f"less {self.rows[0].method}", cells)]

    @property
    def csv(self) -> str:
        """As comma-separated values, every class with its full name."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        head = ["method", "measure", "source", *self.classes, "all", "standard error", "pairs"]
        writer.writerow([*head, *(name for name, _ in self._difference)])
        differences = [cells for _, cells in self._difference]
        for place, row in enumerate(self.rows):
            known = [_figure(row.values.get(name)) for name in self.classes]
            error = "" if row.error is None or math.isnan(row.error) else f"{row.error:.2f}"
            last = [_figure(row.all), error, "" if row.pairs is None else row.pairs]
            last += [cells[place] for cells in differences]
            writer.writerow([row.method, row.measure, row.source, *known, *last])
        return file.getvalue()

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
        path = Path(path)
        check_writable(path)
        with replacing(path) as draft:
            draft.write_text(self.csv, encoding="utf-8")
        return path

    def rich(self, width: int = 100, most: int = 24) -> list[Table]:
        """Return tables for a terminal, several where the classes do not fit beside one another.

        More classes than `most`, and classes of several methods, are for files, not for the eye.
        """
        from rich import box
        from rich.table import Table
        from rich.text import Text

        fixed = [("method", self._marked), ("measure", [row.measure for row in self.rows])]
        last = [("all", [_total(row) for row in self.rows]), *self._difference]
        shown = () if self._difference or len(self.classes) > most else self.classes
        columns = [
            (self.short.get(name, name), [_figure(row.values.get(name)) for row in self.rows])
            for name in shown
        ]
        room = width - 2 - sum(_width(*column) for column in fixed)
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


# What the layers or the network were chosen with, in the rows of the paper's long table.
CHOSEN = {
    "original": "trained on other data",
    "fine-tuned": "trained on SPair-71k",
    "validation": "layers chosen on SPair-71k",
    "nothing": "nothing chosen",
}
# The rows of the paper's short table.
SHORT = ("HPF", "OT-HPF", "OT", "FROT eta=0.3", "FROT eta=0.5", "FROT eta=0.7")


@cache
def published(name: str) -> tuple[Row, ...]:
    """Return what is published for a data set; nothing for splits other than the test's.

    Examples
    --------
    >>> [(row.method, row.all) for row in published("PF-WILLOW")]
    [('HPF', 74.4), ('OT-HPF', 76.2), ('CATs', 79.2), ('SCorrSAN', 80.0)]
    """
    # "As reported": whose source does not say how it is averaged.
    others = [
        Row(row["method"], row["measure"], row["source"], {}, float(row["all"]))
        for row in _read("published.csv")
        if row["data set"] == name
    ]
    return (*(_paper() if name == "SPair-71k test" else ()), *others)


def _read(name: str) -> Iterator[dict[str, str]]:
    """The rows of a file beside this one."""
    path = files("frot.correspondence.evaluation").joinpath(name)
    return csv.DictReader(path.read_text(encoding="utf-8").splitlines())


def _paper() -> Iterator[Row]:
    """The rows of the paper's long table."""
    for row in _read("published_spair.csv"):
        kind, method = row["chosen"], row["method"]
        short = kind != "original" and (method in SHORT or method.startswith("SRW k=50 T=3"))
        source = f"the FROT paper's supplement, per-class table; {CHOSEN[kind]}"
        classes = {name: float(row[name]) for name in SPAIR_CLASSES}
        yield Row(method, "PCK 0.1 per image", source, classes, float(row["all"]), short=short)


def result_table(
    evaluations: Mapping[str, Evaluation],
    thresholds: Sequence[float] = (0.05, 0.1, 0.15),
    *,
    others: bool = True,
    every: bool = False,
    named: int = 5,
) -> ResultTable:
    """Put evaluations of one data set into a table, by the names that they are given.

    Those behind the first have the difference to it, on the pairs that both matched, too.

    Parameters
    ----------
    evaluations : dict of Evaluation
    thresholds : sequence of float
        At which points are scored, per image and per point.
    others : bool
        Whether published rows are added; they are at 0.1, most of them per image.
    every : bool
        Whether all of them are, or only those of the paper's short table.
    named : int
        Failed pairs and skipped annotations that are named; all of them are counted.

    Raises
    ------
    InputError
        If they are of different data sets, or nothing was matched.
    """
    if not isinstance(evaluations, Mapping):
        raise InputError(
            f"evaluations: is a {type(evaluations).__name__}; give a dict of evaluations by name"
        )
    if not evaluations:
        raise InputError("evaluations: are none; give one or more")
    first = next(iter(evaluations.values()))
    if any(one.name != first.name or one.score != first.score for one in evaluations.values()):
        raise InputError("evaluations: are of different data sets; make a table for each")
    classes = _ordered(evaluations.values())
    rows = [
        row
        for name, one in evaluations.items()
        for row in _measured(name, one, thresholds, classes, None if one is first else first)
    ]
    if others:
        rows += [one for one in published(first.name) if one.short or every]
    notes = [first.protocol] if first.protocol else []
    notes += dict.fromkeys(
        f"The data set is {note}" for one in evaluations.values() for note in one.notes
    )
    for name, one in evaluations.items():
        notes += _notes(one, f"{name}: " if len(evaluations) > 1 else "", named)
    if first.skipped:
        more = "; ..." if len(first.skipped) > named else ""
        some = "; ".join(first.skipped[:named]) + more
        notes.append(f"{len(first.skipped)} annotations were skipped: {some}")
    short = SPAIR_CLASSES if first.name.startswith("SPair") else {}
    return ResultTable(first.name, classes, tuple(rows), tuple(notes), short)


def _measured(
    name: str, one: Evaluation, thresholds: Sequence[float], classes: Sequence[str],
    first: Evaluation | None,
) -> list[Row]:  # fmt: skip
    matched = {record.category for record in one.done}
    if not matched:
        failed = "".join(f"; the first, {id}: {why}" for id, why in list(one.failed.items())[:1])
        raise InputError(f"{name}: no pair of {one.name} was matched{failed}")
    there = [category for category in classes if category in matched]

    def row(
        measure: str, score: Any, there: Sequence[str] = there, less: Estimate | None = None
    ) -> Row:
        values = {category: 100.0 * score(category).value for category in there}
        total: Estimate = score(None)
        return Row(
            name,
            measure,
            "measured",
            values,
            100.0 * total.value,
            100.0 * total.standard_error,
            total.count,
            less_first=None if less is None else (100 * less.value, 100 * less.standard_error),
        )

    if one.score == "masks":
        return [
            row("LT-ACC", lambda category: one.mean("lt_acc", category)),
            row("IoU", lambda category: one.mean("iou", category)),
        ]
    averages: tuple[Per, ...] = ("image", "point")
    rows = [
        row(
            f"PCK {threshold:g} per {per}",
            partial(one.pck, threshold, per),
            less=None if first is None else one.difference(first, threshold, per),
        )
        for per in averages
        for threshold in thresholds
    ]
    if not one.name.startswith("SPair"):
        return rows
    if all(record.image_share is not None for record in one.done):
        score = partial(one.pck, 0.1, "image", of="image")
        rows.append(row("PCK 0.1 of the photograph per image", score))
    for tag, values in one.tags.items():
        for value in values:
            some = one.only(lambda record, tag=tag, value=value: record.tags.get(tag) == value)
            said = f"{tag.replace('_', ' ')} {SPAIR_FLAGS.get(tag, {}).get(value, value)}"
            known = {record.category for record in some.done}
            kept = [category for category in there if category in known]
            rows.append(row(f"PCK 0.1 per image, {said}", partial(some.pck, 0.1, "image"), kept))
    return rows


def _notes(one: Evaluation, name: str, named: int) -> list[str]:
    notes = [f"{name}{len(one.done)} pairs, {one.seconds:.2f} s a pair"]
    if failed := one.failed:
        some = "; ".join(f"{id} ({why})" for id, why in list(failed.items())[:named])
        more = "; ..." if len(failed) > named else ""
        notes.append(f"{name}{len(failed)} pairs failed and are left out: {some}{more}")
    if warned := one.warned:
        id, said = next(iter(warned.items()))
        notes.append(f"{name}{len(warned)} pairs were matched with a warning, {id}: {said[0]}")
    return notes


def _ordered(evaluations: Any) -> tuple[str, ...]:
    found = dict.fromkeys(name for one in evaluations for name in one.categories)
    known = [name for name in SPAIR_CLASSES if name in found]
    # The paper's order where the classes are the paper's.
    return tuple(known) if len(known) == len(found) else tuple(found)
