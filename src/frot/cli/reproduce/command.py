"""``frot reproduce``: the paper's figures and our own claims, with a verdict each.

All experiments of a run end on one web page: every claim with its verdict, then what was found.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from frot._base.errors import InputError, MissingDependencyError, SolverError
from frot.cli.command import (
    FAILED,
    CommandWithJson,
    Progress,
    bar,
    command,
    complain,
    console,
    new_table,
    numbers,
    option,
    option_words,
    parameter,
    remark,
    say,
    take,
    wrote,
)
from frot.cli.reproduce.experiment import (
    Experiment,
    ExperimentTable,
    Reproduction,
    RunOptions,
    Verdict,
)
from frot.show.page import Cell, Claim, Column, PageTable, Section, picture, write_page

COLOURS = {"reproduced": "green", "partly reproduced": "yellow", "not reproduced": "red"}
PAGE = "reproduction.html"
ALL = "all of them that there is data for, on one web page"
NETWORKS = (
    "Such as efficientnet-lite2,resnet50-thin,mobilenetv2; the first for noise-layers, all there "
    "otherwise."
)
REGRET = "Also costs less their own optima, which takes longer than all the rest."

# Fields of `RunOptions` as options; an experiment has those that it `takes`.
OPTIONS: dict[str, Any] = {
    "n": Annotated[
        int | None,
        typer.Option(
            "-n",
            min=2,
            help="Points in each cloud, 100 by default; or tables, 200.",
        ),
    ],
    "splits": Annotated[
        int | None, option(None, "Splits into training and test; 50 by default.", "N", min=2)
    ],
    "sets": Annotated[
        str | None,
        option(
            None,
            "Data sets, such as colon,leukemia, or pf-willow,birds for correspondence; all there "
            "by default.",
            "NAMES",
        ),
    ],
    "workers": Annotated[int | None, option(None, "Processes; 1 by default.", "N", min=1)],
    "data": Annotated[Path | None, option(None, "Folder with the data sets.", "FOLDER")],
    "pairs": Annotated[
        int | None, option(None, "Pairs; 20 for noise-layers, all 900 otherwise.", "N", min=1)
    ],
    "networks": Annotated[str | None, option(None, NETWORKS, "NAMES")],
    "regret": Annotated[bool | None, option(None, REGRET)],
}
# Options that say how large a run is; an experiment has one of them.
SIZES = {"n": "-n", "splits": "--splits", "pairs": "--pairs"}
# Options that are lists of names.
LISTS = ("sets", "networks")
COMMON: dict[str, tuple[Any, Any]] = {
    "out": (
        Annotated[Path, option("Output", "Folder for pictures and numbers.", "FOLDER")],
        Path("out"),
    ),
    "seed": (
        Annotated[
            int,
            option(
                None, "Seed of points, splits or noise.", None, "--seed", "--random-state", min=0
            ),
        ],
        0,
    ),
    "progress": (Progress, None),
}


# Modules of this folder, in the order that ``frot reproduce all`` runs them in.
MODULES = (
    "fig1", "fig2", "selection", "calibration", "robustness", "noise_layers", "correspondence",
)  # fmt: skip


@cache
def experiments() -> dict[str, Experiment]:
    """Return the experiments by name; they are loaded when one is asked for."""
    found = [import_module(f"frot.cli.reproduce.{name}").EXPERIMENT for name in MODULES]
    return {one.name: one for one in found}


class Experiments(TyperGroup):
    """A command for each experiment of the registry, which is loaded when one is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the registry, and ``all``."""
        return [*experiments(), "all"]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Make the command of an experiment, with the options that it takes."""
        if cmd_name not in self.list_commands(ctx):
            return None
        made = _command(experiments().get(cmd_name))
        one = typer.Typer(add_completion=False)
        one.command(cmd_name, cls=CommandWithJson, epilog=vars(made)["epilog"])(made)
        return typer.main.get_command(one)


reproduce = typer.Typer(
    no_args_is_help=True,
    help="Compute figures of the paper and our own claims again: a picture, all numbers as JSON, "
    "and a verdict each.",
    epilog="Examples:\n\nfrot reproduce fig1\n\nfrot reproduce all --out results",
)


def _command(experiment: Experiment | None) -> Callable[..., None]:
    """Return the command of an experiment, or of all for None."""
    takes = [name for name in OPTIONS if experiment is None or name in experiment.takes]

    def run(**given: Any) -> None:
        out, seed, progress = (given.pop(name) for name in COMMON)
        asked_for: dict[str, Any] = {
            name: [word.strip() for word in value.split(",")] if name in LISTS else value
            for name, value in given.items()
            if value is not None
        }
        options = RunOptions(seed=seed, progress=bar(progress), **asked_for)
        if experiment is None:
            words = option_words({"seed": seed, "out": out} | asked_for)
            line = shlex.join(["frot", "reproduce", "all", *words]).replace("--n ", "-n ")
            raise typer.Exit(_run_all(options, out, line))
        made = _run(experiment, options, out)
        _show(experiment, made, out)
        numbers(made.content)

    parameters = [parameter(name, OPTIONS[name]) for name in takes]
    take(run, parameters + [parameter(name, *common) for name, common in COMMON.items()])
    run.__doc__ = _help(experiment)
    name = "all" if experiment is None else experiment.name
    examples = [f"frot reproduce {name}"]
    if experiment is not None:
        sizes = [flag for name, flag in SIZES.items() if name in takes]
        examples += [f"{examples[0]} {flag} 20 --out made" for flag in sizes]
    return command(*examples)(run)


def _help(experiment: Experiment | None) -> str:
    about = ALL if experiment is None else experiment.about
    lines = [f"{about[0].upper()}{about[1:].rstrip('.')}."]
    if experiment is not None and experiment.needs:
        lines.append(f"Needs {experiment.needs}.")
    if experiment is None or experiment.pieces:
        lines.append("What takes minutes or hours goes on where it was, when started again.")
    codes = "0 computed, whatever the verdicts, 1 some experiment failed, 2 bad input, 130"
    return "\n\n".join([*lines, f"Exit codes: {codes} interrupted."])


def _run(experiment: Experiment, options: RunOptions, out: Path) -> Reproduction:
    remark(f"{experiment.name}: computing ...")
    pieces = experiment.pieces
    folder = out / experiment.name if pieces else None
    try:
        return experiment(replace(options, folder=folder))
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
    wrote(*made.write(out))


def _run_all(options: RunOptions, out: Path, line: str) -> int:
    """Run every experiment that there is data for; one that fails costs no other."""
    from frot._base.files import make_folder
    from frot.show.page import check_page

    page = check_page(make_folder(out) / PAGE)
    entries = []
    for experiment in experiments().values():
        made, skipped, failed = None, "", ""
        try:
            experiment.check(options)
        except (InputError, MissingDependencyError) as error:
            skipped = str(error)
            remark(f"{experiment.name}: skipped: {skipped}")
        else:
            try:
                made = _run(experiment, options, out)
                _show(experiment, made, out)
            except (InputError, MissingDependencyError, SolverError) as error:
                failed = str(error)
                complain(f"{experiment.name}: {failed}")
        entries.append(ReportEntry(experiment, made, skipped, failed))
    _summarise(entries)
    numbers({entry.experiment.name: entry.content for entry in entries})
    wrote(write_experiments(entries, page, line))
    return FAILED if any(entry.failed for entry in entries) else 0


def _summarise(entries: list[Any]) -> None:
    from rich.text import Text

    table = new_table()
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
class ReportEntry:
    """What became of an experiment: what it found, or why it was skipped or failed."""

    experiment: Experiment
    made: Reproduction | None = None
    skipped: str = ""
    failed: str = ""

    @property
    def content(self) -> dict[str, Any]:
        """Everything, for JSON."""
        if self.made is not None:
            return self.made.content
        return {"skipped": self.skipped} if self.skipped else {"failed": self.failed}

    @property
    def claims(self) -> list[Claim]:
        """Every claim with its verdict."""
        if self.made is not None:
            return [_claim(verdict) for verdict in self.made.verdicts]
        if self.skipped:
            return [Claim(self.experiment.about, None, self.skipped)]
        return [Claim(self.experiment.about, False, self.failed, "failed")]


def write_experiments(entries: Sequence[ReportEntry], path: Path, command: str = "") -> Path:
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


def _section(entry: ReportEntry) -> Section:
    name, about, made = entry.experiment.name, entry.experiment.about, entry.made
    if made is None:
        return Section(name, claims=entry.claims, key=name)
    claims = entry.claims
    return Section(
        name,
        [about] if about not in [claim.text for claim in claims] else [],
        claims=claims,
        pictures=[
            picture(made.draw, about),
            *(picture(draw, f"{name}: {word}") for word, draw in made.more.items()),
        ],
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


def _table(table: ExperimentTable, key: str) -> PageTable:
    name, *heads = table.header
    columns = [Column(name, "text"), *map(Column, heads)]
    rows = [[Cell(text, _leading_number(text)) for text in row] for row in table.rows]
    return PageTable(columns, rows, table.title, key, note=table.note)


def _leading_number(text: str) -> float:
    """What a cell such as "0.875 ± 0.01" is sorted by."""
    found = re.match(r"[-+]?[\d,]*\.?\d+(e[-+]?\d+)?", text.replace("−", "-"))
    return float(found[0].replace(",", "")) if found else math.nan
