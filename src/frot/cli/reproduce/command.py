"""``frot reproduce``: the paper's figures and our own claims, with a verdict each.

All experiments of a run end on one web page: every claim with its verdict, then what was found.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frot._base.errors import InputError, MissingDependencyError, SolverError
from frot.cli.console import FAILED, complain, console, remark, say
from frot.cli.options import Progress, bar, option, option_words
from frot.cli.reproduce.experiment import Experiment, Reproduction, Table, Verdict
from frot.show import Cell, Claim, Column, PageTable, Section, picture, write_page

if TYPE_CHECKING:
    from frot.cli.reproduce.experiment import Asked, Experiment, Reproduction

__all__ = ["Entry", "reproduce", "write_experiments"]


class Name(str, Enum):
    """What can be reproduced: the names of the registry, which is loaded when one is run."""

    fig1 = "fig1"
    fig2 = "fig2"
    selection = "selection"
    calibration = "calibration"
    cells = "cells"
    robustness = "robustness"
    noise_layers = "noise-layers"
    correspondence = "correspondence"
    all = "all"


COLOURS = {"reproduced": "green", "partly reproduced": "yellow", "not reproduced": "red"}
PAGE = "reproduction.html"


def reproduce(
    figure: Annotated[
        Name,
        typer.Argument(
            help="Which figure of the paper, or all that there is data for. Selection takes "
            "minutes and needs real data (see frot.datasets); calibration, of permutation tests on "
            "simulated tables, cells, coupled by every method, and robustness, under noise and "
            "beside other robust transports, take minutes too. Noise-layers plants layers of noise "
            "in a network that matches photographs; correspondence scores every way to match with "
            "every network, hours for all pairs. Both need PF-WILLOW."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for pictures and numbers.")] = Path("out"),
    seed: Annotated[int, typer.Option(help="Seed of the random points, or splits.", min=0)] = 0,
    n: Annotated[
        int | None,
        typer.Option(
            "-n",
            min=2,
            help="Points in each cloud, 100 by default; or tables, 200; or draws of cells, 20.",
        ),
    ] = None,
    splits: Annotated[
        int | None,
        option("Selection", "Splits into training and test; 50 by default.", "N", min=2),
    ] = None,
    sets: Annotated[
        str | None,
        option("Selection", "Data sets, such as colon,leukemia; all there by default.", "NAMES"),
    ] = None,
    workers: Annotated[
        int | None, option("Selection", "Processes; 1 by default.", "N", min=1)
    ] = None,
    data: Annotated[Path | None, option(None, "Folder with the data sets.", "FOLDER")] = None,
    pairs: Annotated[
        int | None,
        option("Photographs", "Pairs; 20 for noise-layers, all 900 otherwise.", "N", min=1),
    ] = None,
    networks: Annotated[
        str | None,
        option(
            "Photographs",
            "Such as efficientnet-lite2,resnet50-thin,mobilenetv2; the first for noise-layers, "
            "all there otherwise.",
            "NAMES",
        ),
    ] = None,
    regret: Annotated[
        bool | None,
        option(
            "Photographs",
            "Also costs less their own optima, which takes longer than all the rest.",
        ),
    ] = None,
    progress: Progress = None,
) -> None:
    """Compute figures of the paper anew: a picture, all numbers as JSON, and a verdict each.

    What takes minutes or hours goes on where it was, when stopped and started again. All ends with
    a table of the claims and one web page; what lacks its data is skipped, and it says why.

    Exit codes: 0 computed, whatever the verdicts, 1 some experiment failed, 2 bad input, 130
    interrupted.
    """
    from frot.cli.reproduce.experiment import Asked
    from frot.cli.reproduce.registry import EXPERIMENTS

    given = {
        "n": n, "splits": splits, "sets": _names(sets), "workers": workers, "data": data,
        "pairs": pairs, "networks": _names(networks), "regret": regret,
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value is not None}
    asked = Asked(seed=seed, progress=bar(progress), **given)
    if figure is Name.all:
        words = option_words({"seed": seed, "out": out} | given)
        command = shlex.join(["frot", "reproduce", "all", *words]).replace("--n ", "-n ")
        raise typer.Exit(_run_all(EXPERIMENTS, asked, out, command))
    experiment = EXPERIMENTS[figure.value]
    _check_options(experiment, given, EXPERIMENTS)
    _show(experiment, _run(experiment, asked, out), out)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _check_options(
    experiment: Experiment, given: dict[str, Any], experiments: dict[str, Experiment]
) -> None:
    """Refuse options that an experiment has no use for, and say which ones have."""
    for name in given:
        if name in experiment.takes:
            continue
        if name == "n":
            sizes = " and ".join(f"--{one}" for one in experiment.sized_by)
            raise InputError(f"-n is for other figures; {experiment.name} takes {sizes}")
        takers = " and ".join(one.name for one in experiments.values() if name in one.takes)
        raise InputError(f"--{name} is for {takers}; leave it out for {experiment.name}")


def _run(experiment: Experiment, asked: Asked, out: Path) -> Reproduction:
    remark(f"{experiment.name}: computing ...")
    folder = out / experiment.name if experiment.pieces else None
    with _kept(folder, experiment.pieces):
        return experiment.run(replace(asked, folder=folder))


@contextmanager
def _kept(folder: Path | None, pieces: str) -> Iterator[None]:
    """Say where finished work is, if the rest is called off."""
    try:
        yield
    except KeyboardInterrupt:
        if folder is not None:
            remark(f"finished {pieces} are kept in {folder}; the same command goes on from there")
        raise


def _show(experiment: Experiment, made: Reproduction, out: Path) -> None:
    from rich.text import Text

    for verdict in made.verdicts:
        heading = (verdict.heading, COLOURS[verdict.outcome])
        console().print(Text.assemble(heading), soft_wrap=True)
        say(f"  {'paper' if experiment.papers else 'claim'}  {verdict.claim}")
        for check in verdict.checks:
            say(f"  {'yes' if check.holds else 'no':<5}  {check.figures}")
    for note in made.notes:
        say(f"  note   {note}")
    for path in made.write(out):
        say(f"  {path}")


def _run_all(experiments: dict[str, Experiment], asked: Asked, out: Path, command: str) -> int:
    """Run every experiment that there is data for; one that fails costs no other."""
    from frot._base.files import make_folder
    from frot.cli.reproduce.command import Entry, write_experiments
    from frot.show.page import check_page

    page = check_page(make_folder(out) / PAGE)
    entries = []
    for experiment in experiments.values():
        made, skipped, failed = None, "", ""
        try:
            experiment.check(asked)
        except (InputError, MissingDependencyError) as error:
            skipped = str(error)
            remark(f"{experiment.name}: skipped: {skipped}")
        else:
            try:
                made = _run(experiment, asked, out)
                _show(experiment, made, out)
            except (InputError, MissingDependencyError, SolverError) as error:
                failed = str(error)
                complain(f"{experiment.name}: {failed}")
        entries.append(Entry(experiment, made, skipped, failed))
    _summarise(entries)
    say(f"Wrote {write_experiments(entries, page, command)}")
    return FAILED if any(entry.failed for entry in entries) else 0


def _summarise(entries: list[Any]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAVY, pad_edge=False, collapse_padding=True)
    table.add_column("experiment", no_wrap=True)
    table.add_column("claim", overflow="fold")
    table.add_column("verdict", overflow="fold")
    for entry in entries:
        for claim in entry.claims:
            verdict = claim.word if claim.checks else f"{claim.word}: {claim.found}"
            cells = Text(claim.text), Text(verdict, COLOURS.get(claim.word, "dim"))
            table.add_row(entry.experiment.name, *cells)
    console().print(table)


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
