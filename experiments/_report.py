"""The report of many experiments: one table of claims and verdicts, in Markdown and as a page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from _runner import WORDS, Claim, Experiment, Run, Table, markdown_table, write_text
from frot.show import page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADER = ("experiment", "claim", "verdict", "what was found")
# Characters that a cell of the table has for all checks; of more it tells how many hold.
MOST = 200
HOLDS = {"holds": True, "does not hold": False, "failed": False}


@dataclass(frozen=True, eq=False)
class Entry:
    """What became of an experiment: its run, or why it was skipped or failed."""

    experiment: Experiment
    run: Run | None = None
    skipped: str = ""
    failed: str = ""

    def verdicts(self) -> Iterator[tuple[Claim, str, str]]:
        """Yield every claim with its verdict and what was found, in words."""
        if self.run is None:
            claim = Claim(self.experiment.about, {})
            yield claim, "failed" if self.failed else "not checked", self.failed or self.skipped
            return
        for claim in self.run.claims:
            yield claim, claim.verdict, summary(claim)


def summary(claim: Claim) -> str:
    """Tell the checks of a claim in a line: all of few, or how many hold."""
    checks = claim.checks
    if not checks:
        return claim.reason
    text = "; ".join(filter(None, checks))
    if claim.verdict == "in part":
        text = "; ".join(f"{WORDS[holds]}: {check}" for check, holds in checks.items())
    if len(text) <= MOST:
        return text
    values = list(checks.values())
    more = f", {values.count(None)} undecided" if None in values else ""
    return f"{values.count(True)} of {len(values)} hold{more}"


def write_markdown(entries: Sequence[Entry], path: Path, command: str) -> None:
    """Write the table of verdicts, with the command that makes it.

    Why an experiment was skipped names a folder of this machine: that is on the page only.
    """
    rows = [
        [entry.experiment.name, claim.text, f"**{verdict}**", "" if entry.skipped else text]
        for entry in entries
        for claim, verdict, text in entry.verdicts()
    ]
    write_text(path, f"Made by `{command}`.\n\n{markdown_table(HEADER, rows)}\n")


def write_page(entries: Sequence[Entry], path: Path, command: str) -> None:
    """Write the table, then what every experiment found, with its figures inside the page."""
    rows = [
        [
            page.Cell(entry.experiment.name, link=entry.experiment.name),
            page.Cell(claim.text, note=text),
            page.Cell(verdict, badge=page.Claim("", HOLDS.get(verdict)).kind),
        ]
        for entry in entries
        for claim, verdict, text in entry.verdicts()
    ]
    columns = [page.Column(head, "text") for head in HEADER[:3]]
    table = page.PageTable(columns, rows, "Every claim", "claims")
    sections = [page.Section("Verdicts", tables=[table]), *map(section, entries)]
    page.write_page(
        path, "Feature-robust optimal transport: experiments", sections, command=command
    )


def section(entry: Entry) -> page.Section:
    """Return an experiment's part of the page."""
    claims = []
    for claim, verdict, text in entry.verdicts():
        checks = [
            page.Claim(check, holds, word=WORDS[holds]) for check, holds in claim.checks.items()
        ]
        if len(checks) > 1:
            claims.append(page.Claim(claim.text, HOLDS.get(verdict), "", verdict, checks))
        else:
            claims.append(page.Claim(claim.text, HOLDS.get(verdict), text, verdict))
    name, run = entry.experiment.name, entry.run
    if run is None:
        return page.Section(name, claims=claims, key=name)
    return page.Section(
        name,
        [entry.experiment.about],
        claims=claims,
        pictures=[page.picture(partial(same, drawn.figure), drawn.text) for drawn in run.pictures],
        tables=[page_table(table, f"{name}-{index}") for index, table in enumerate(run.tables)],
        notes=run.notes,
        key=name,
    )


def same(figure: Figure) -> Figure:
    """The page draws figures when it wants them; these are there already."""
    return figure


def page_table(table: Table, key: str) -> page.PageTable:
    name, *heads = table.header
    columns = [page.Column(name, "text"), *map(page.Column, heads)]
    rows = [[page.Cell(text, leading_number(text)) for text in row] for row in table.rows]
    return page.PageTable(columns, rows, table.title, key, note=table.note)


def leading_number(text: str) -> float:
    """Return what a cell such as "0.875 ± 0.01" is sorted by."""
    number = re.match(r"[-+]?[\d,]*\.?\d+(e[-+]?\d+)?", text.replace("−", "-").lstrip("≤ "))
    return float(number[0].replace(",", "")) if number else math.nan
