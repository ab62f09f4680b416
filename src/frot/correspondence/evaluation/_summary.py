"""The paper's per-class table: ours, and beside it what others report."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from frot._base.errors import InputError
from frot.correspondence._score import Estimate, Per
from frot.correspondence.datasets.spair import CLASSES
from frot.correspondence.evaluation._table import ResultTable, Row

if TYPE_CHECKING:
    from frot.correspondence.evaluation._result import Evaluation

__all__ = ["PAIRS_PER_CLASS", "THRESHOLDS", "Published", "published", "result_table"]

PAPER = "the FROT paper's supplement, per-class table"
HPF, SCOT = "HPF (ICCV 2019)", "SCOT (CVPR 2020)"
# Test pairs of each class of SPair-71k, in the order of the columns.
PAIRS_PER_CLASS = (
    *(690, 650, 702, 702, 870, 644, 564, 600, 646),
    *(640, 600, 600, 702, 650, 862, 664, 756, 692),
)
# What the layers or the network were chosen with.
CHOSEN = {
    "original": "trained on other data",
    "fine-tuned": "trained on SPair-71k",
    "validation": "layers chosen on SPair-71k",
    "nothing": "nothing chosen",
}
# The rows of the paper's short table.
SHORT = ("HPF", "OT-HPF", "OT", "FROT eta=0.3", "FROT eta=0.5", "FROT eta=0.7")


@dataclass(frozen=True)
class Published:
    """A row of somebody's table: PCK at 0.1 per image, in per cent.

    Parameters
    ----------
    method : str
    source : str
        Where the figures are from.
    all : float
        Over all pairs.
    classes : dict
        By class; empty where only the total is known.
    note : str
        What was chosen or trained on what.
    short : bool
        Whether it is among the few that are shown unless all are asked for.
    """

    method: str
    source: str
    all: float
    classes: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    short: bool = True


def published(name: str) -> tuple[Published, ...]:
    """Return what is published for a data set; nothing for splits other than the test's.

    Examples
    --------
    >>> [(row.method, row.all) for row in published("PF-WILLOW")]
    [('HPF', 74.4), ('OT-HPF', 76.2)]
    """
    return ROWS.get(name, ())


def _paper() -> Iterator[Published]:
    """Read the rows of the paper's long table, a copy of which is beside this file."""
    text = (
        files("frot.correspondence.evaluation")
        .joinpath("published_spair.csv")
        .read_text(encoding="utf-8")
    )
    for row in csv.DictReader(text.splitlines()):
        kind, method = row["chosen"], row["method"]
        short = kind != "original" and (method in SHORT or method.startswith("SRW k=50 T=3"))
        classes = {name: float(row[name]) for name in CLASSES}
        yield Published(method, PAPER, float(row["all"]), classes, CHOSEN[kind], short)


ROWS: dict[str, tuple[Published, ...]] = {
    "SPair-71k test": (
        *_paper(),
        Published("OT-HPF", SCOT, 35.4, note="its own release"),
        Published("OT-HPF without CAM", SCOT, 34.8, note="its own release"),
    ),
    "PF-PASCAL test": (
        Published("HPF", HPF, 84.8, note="ResNet-101, layers chosen"),
        Published("OT-HPF", SCOT, 85.4, note="ResNet-101, layers chosen"),
    ),
    "PF-WILLOW": (
        Published("HPF", HPF, 74.4, note="ResNet-101, layers chosen on PF-PASCAL"),
        Published("OT-HPF", SCOT, 76.2, note="ResNet-101, layers chosen on PF-PASCAL"),
    ),
}


THRESHOLDS = (0.05, 0.1, 0.15)
AVERAGES: tuple[Per, ...] = ("image", "point")
# Failed pairs and skipped annotations that are named; all of them are counted.
NAMED = 5


def result_table(
    evaluations: Mapping[str, Evaluation],
    thresholds: Sequence[float] = THRESHOLDS,
    *,
    others: bool = True,
    every: bool = False,
) -> ResultTable:
    """Put evaluations of one data set into a table, by the names that they are given.

    Parameters
    ----------
    evaluations : dict of Evaluation
    thresholds : sequence of float
        At which points are scored, per image and per point.
    others : bool
        Whether published rows are added; they are at 0.1 per image.
    every : bool
        Whether all of them are, or only those of the paper's short table.

    Raises
    ------
    InputError
        If they are of different data sets, or nothing was matched.
    """
    if not evaluations:
        raise InputError("evaluations: are none; give one or more")
    first = next(iter(evaluations.values()))
    if any(one.name != first.name or one.score != first.score for one in evaluations.values()):
        raise InputError("evaluations: are of different data sets; make a table for each")
    classes = _ordered(evaluations.values())
    rows = [
        row
        for name, one in evaluations.items()
        for row in _measured(name, one, thresholds, classes)
    ]
    if others:
        rows += [_theirs(one) for one in published(first.name) if one.short or every]
    notes = [first.protocol] if first.protocol else []
    notes += dict.fromkeys(
        f"The data set is {note}" for one in evaluations.values() for note in one.notes
    )
    for name, one in evaluations.items():
        notes += _said_of(one, f"{name}: " if len(evaluations) > 1 else "")
    if first.skipped:
        more = "; --verify names all" if len(first.skipped) > NAMED else ""
        some = "; ".join(first.skipped[:NAMED]) + more
        notes.append(f"{len(first.skipped)} annotations were skipped: {some}")
    short = CLASSES if first.name.startswith("SPair") else {}
    return ResultTable(first.name, classes, tuple(rows), tuple(notes), short)


def _measured(
    name: str, one: Evaluation, thresholds: Sequence[float], classes: Sequence[str]
) -> list[Row]:
    matched = {record.category for record in one.done}
    if not matched:
        raise InputError(f"{name}: no pair of {one.name} was matched{_first_failure(one)}")
    there = [category for category in classes if category in matched]

    def row(measure: str, score: Any) -> Row:
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
        )

    if one.score == "masks":
        return [
            row("LT-ACC", lambda category: one.mean("lt_acc", category)),
            row("IoU", lambda category: one.mean("iou", category)),
        ]
    return [
        row(f"PCK {threshold:g} per {per}", partial(_pck, one, threshold, per))
        for per in AVERAGES
        for threshold in thresholds
    ]


def _pck(one: Evaluation, threshold: float, per: Per, category: str | None) -> Estimate:
    return one.pck(threshold, per, category)


def _theirs(one: Published) -> Row:
    source = f"{one.source}; {one.note}" if one.note else one.source
    return Row(one.method, "PCK 0.1 per image", source, one.classes, one.all)


def _said_of(one: Evaluation, name: str) -> list[str]:
    notes = [f"{name}{len(one.done)} pairs, {one.seconds:.2f} s a pair"]
    if failed := one.failed:
        some = "; ".join(f"{id} ({why})" for id, why in list(failed.items())[:NAMED])
        more = "; ..." if len(failed) > NAMED else ""
        notes.append(f"{name}{len(failed)} pairs failed and are left out: {some}{more}")
    if warned := one.warned:
        id, said = next(iter(warned.items()))
        notes.append(f"{name}{len(warned)} pairs were matched with a warning, {id}: {said[0]}")
    return notes


def _first_failure(one: Evaluation) -> str:
    return "".join(f"; the first, {id}: {why}" for id, why in list(one.failed.items())[:1])


def _ordered(evaluations: Any) -> tuple[str, ...]:
    found = dict.fromkeys(name for one in evaluations for name in one.categories)
    known = [name for name in CLASSES if name in found]
    # The paper's order where the classes are the paper's.
    return tuple(known) if len(known) == len(found) else tuple(found)
