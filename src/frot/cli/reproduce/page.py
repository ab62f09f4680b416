"""All experiments of a run on one web page: every claim with its verdict, then what was found."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from frot.cli.reproduce.experiment import Experiment, Reproduction, Table, Verdict
from frot.show import Cell, Claim, Column, PageTable, Section, picture, write_page

__all__ = ["Entry", "write_experiments"]

# What the verdicts are as claims: true, false, or true in part.
HOLDS = {"reproduced": True, "partly reproduced": None, "not reproduced": False}


@dataclass(frozen=True, eq=False)
class Entry:
    """What became of an experiment: what it found, or why it was skipped or failed."""

    experiment: Experiment
    made: Reproduction | None = None
    skipped: str = ""
    failed: str = ""

    @property
    def claims(self) -> list[Claim]:
        """Every claim with its verdict."""
        if self.made is not None:
            return [_claim(verdict) for verdict in self.made.verdicts]
        if self.skipped:
            return [Claim(self.experiment.about, None, self.skipped)]
        return [Claim(self.experiment.about, False, self.failed, "failed")]


def write_experiments(entries: Sequence[Entry], path: Path, command: str = "") -> Path:
    """Write one page, complete or not at all, with the pictures inside; returns the path."""
    rows = [
        [
            Cell(entry.experiment.name, link=entry.experiment.name),
            Cell(claim.text, note=claim.found),
            Cell(claim.word, badge=claim.kind),
        ]
        for entry in entries
        for claim in entry.claims
    ]
    columns = [Column(head, "text") for head in ("experiment", "claim", "verdict")]
    verdicts = PageTable(columns, rows, "Every claim", "claims")
    return write_page(
        path,
        "Feature-robust optimal transport, computed anew",
        [Section("Verdicts", tables=[verdicts]), *map(_section, entries)],
        command=command,
    )


def _section(entry: Entry) -> Section:
    name, about, made = entry.experiment.name, entry.experiment.about, entry.made
    if made is None:
        return Section(name, claims=entry.claims, key=name)
    claims = entry.claims
    return Section(
        name,
        [about] if about not in [claim.text for claim in claims] else [],
        claims=claims,
        pictures=[picture(made.draw, about)],
        tables=[_table(table, f"{name}-{i}") for i, table in enumerate(made.tables)],
        notes=made.notes,
        key=name,
    )


def _claim(verdict: Verdict) -> Claim:
    checks = [
        Claim(check.figures, check.holds, word="yes" if check.holds else "no")
        for check in verdict.checks
    ]
    about = f"{verdict.kind}\N{NO-BREAK SPACE}{verdict.figure}"
    return Claim(verdict.claim, HOLDS[verdict.outcome], about, verdict.outcome, checks)


def _table(table: Table, key: str) -> PageTable:
    name, *heads = table.header
    columns = [Column(name, "text"), *map(Column, heads)]
    rows = [[Cell(text, _leading_number(text)) for text in row] for row in table.rows]
    return PageTable(columns, rows, table.title, key, note=table.note)


def _leading_number(text: str) -> float:
    """What a cell such as "0.875 ± 0.01" is sorted by."""
    found = re.match(r"[-+]?[\d,]*\.?\d+(e[-+]?\d+)?", text.replace("−", "-"))
    return float(found[0].replace(",", "")) if found else math.nan
