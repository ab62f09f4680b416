"""``frot compare``: robust transports of two tables, side by side."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frot._cli._console import complain, console, remark, say, warn
from frot._cli._exit import FAILED, INTERRUPTED, NOT_CONVERGED
from frot._cli._solve import GROUPS, Weights, _file, _problem, _run

if TYPE_CHECKING:
    from frot._compare import Comparison

__all__ = ["compare"]

METHODS = (
    "Some of frot, srw, max_sliced, generalised_max_sliced, sliced, max_min, ot and equitable."
)
CURVE = "Of generalised_max_sliced: circular, linear or cubic."
PICTURES = (".png", ".svg", ".pdf", ".jpg", ".webp")
# Columns of a terminal below which the table has one less.
WIDE = 92
COLOURS = {"CONVERGED": "green", "FAILED": "red"}


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="Table of points, a row each.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The other table, of the same features.")],
    methods: Annotated[str, _problem(METHODS, "NAMES")] = "frot,srw,max_sliced,max_min,ot",
    groups: Annotated[str, _problem(GROUPS, "GROUPS")] = "each",
    k: Annotated[int, _problem("Dimension of SRW's subspace.", "COUNT")] = 2,
    curve: Annotated[str, _problem(CURVE, "NAME")] = "circular",
    weights_a: Weights = None,
    weights_b: Weights = None,
    normalise_weights: Annotated[
        bool,
        typer.Option(
            "--normalise-weights", help="Divide weights by their sum.", rich_help_panel="Problem"
        ),
    ] = False,
    tol: Annotated[float | None, _run("Relative gap to stop at.", "GAP")] = None,
    time_limit: Annotated[float | None, _run("Seconds at most for each.", "SECONDS")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed.", rich_help_panel="Algorithm")] = 0,
    report: Annotated[Path | None, _file("Write a web page, .html.")] = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write all numbers.", rich_help_panel="Output"),
    ] = None,
    out: Annotated[Path | None, _file("Write a picture: .png, .svg, .pdf, .jpg or .webp.")] = None,
    progress: Annotated[
        bool | None,
        typer.Option(help="Say what is running; by default on a terminal.",
                     rich_help_panel="Output"),
    ] = None,
) -> None:  # fmt: skip
    """Hold feature-robust transport against its relatives, on the points of tables A and B.

    All values are squared transport costs, so that they can be compared.

    A method that fails says why and loses no other. Ctrl-C keeps what is finished; files are
    still written.

    Exit codes: 0 all answered, 1 some method failed, 2 bad input, 3 some stopped before the
    tolerance, 130 interrupted.
    """
    import frot
    from frot._cli._weights import read_weights
    from frot._compare._methods import find_methods
    from frot._tables import read_pair

    outputs = _Outputs(report, json_file, out)
    outputs.check()
    find_methods(methods)
    first, second = read_pair(a, b)
    names = first.columns or second.columns
    parsed = frot.Groups.parse(groups, first.shape[1], names)
    if parsed.dropped:
        warn(f"{len(parsed.dropped)} sets have no feature in the data and were left out")
    given = {"k": (k, 2), "curve": (curve, "circular"), "tol": (tol, None),
             "normalise_weights": (normalise_weights, False),
             "time_limit": (time_limit, None), "seed": (seed, 0)}  # fmt: skip
    options = {name: value for name, (value, default) in given.items() if value != default}
    files = {"a": weights_a, "b": weights_b}
    weights: dict[str, Any] = {
        side: read_weights(path) for side, path in files.items() if path is not None
    }
    remark(f"{first.shape[0]} and {second.shape[0]} points, {repr(parsed)[len('Groups(') : -1]}")
    try:
        found = frot.compare(
            first.values,
            second.values,
            methods,
            parsed,
            **options,
            **weights,
            feature_names=names,
            progress=sys.stderr.isatty() if progress is None else progress,
        )
    except frot.Interrupted as stop:
        found = stop.result
    _show(found)
    call = _Call(a, b, methods, groups, options, {s: p for s, p in files.items() if p})
    for path in outputs.write(found, call):
        say(f"Wrote {path}")
    raise typer.Exit(_code(found))


def _code(found: Comparison) -> int:
    if found.interrupted:
        complain(f"interrupted; without an answer: {', '.join(found.missing) or 'none'}")
        return INTERRUPTED
    if found.missing:
        complain(f"without an answer: {', '.join(found.missing)}")
        return FAILED
    # What is no more than a lower bound or an estimate by its nature is as good as it gets.
    fine = ("CONVERGED", "LOWER_BOUND", "ESTIMATE")
    return 0 if all(row.status in fine for row in found.rows) else NOT_CONVERGED


def _show(found: Comparison) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    # What was chosen is told below: as a column it would leave no room for the numbers.
    table = Table(box=box.SIMPLE_HEAVY, pad_edge=False, collapse_padding=True)
    table.add_column("method", overflow="fold", min_width=10)
    heads = ["value", "interval", "gap", "status", "seconds", "memory"]
    if console().width < WIDE:
        # The interval tells the gap too; what is cut off tells nothing.
        heads.remove("gap")
    for head in heads:
        kind: dict[str, Any] = {"justify": "left" if head == "status" else "right"}
        short = "s" if head == "seconds" else head
        table.add_column(short, **kind, overflow="fold", no_wrap=head in ("interval", "status"))
    for row in found.rows:
        cells = {name: Text(text) for name, text in row.cells.items()}
        cells["status"].stylize(COLOURS.get(row.status, "yellow"))
        table.add_row(Text(row.title, "bold"), *(cells[head] for head in heads))
    console().print(table)
    for row in found.rows:
        verb, colour = ("failed:", "red") if row.result is None else ("chose", "")
        parts = ("  ", (row.title, "bold"), f" {verb} ", (row.cells["chose"], colour))
        console().print(Text.assemble(*parts), soft_wrap=True)
    say("")
    for note in found.notes:
        say(f"  {note}")
    for relation in found.relations:
        say(f"  {relation.left} <= {relation.right}: {relation.verdict}")


@dataclass(frozen=True)
class _Call:
    """The call, as a command line and in Python."""

    a: Path
    b: Path
    methods: str
    groups: str
    options: Mapping[str, Any]
    weights: Mapping[str, Path]

    @property
    def command(self) -> str:
        words = ["frot", "compare", str(self.a), str(self.b)]
        words += ["--methods", self.methods, "--groups", self.groups]
        for side, path in self.weights.items():
            words += [f"--weights-{side}", str(path)]
        for name, value in self.options.items():
            flag = f"--{name.replace('_', '-')}"
            words += [flag] if value is True else [flag, str(value)]
        return shlex.join(words)

    @property
    def python(self) -> str:
        from frot._cli._weights import weights_call

        given = [f"{side}={weights_call(path)}" for side, path in self.weights.items()]
        given += [f"{name}={value!r}" for name, value in self.options.items()]
        numpy = ["import numpy"] if "numpy.load" in " ".join(given) else []
        arguments = ", ".join([repr(self.methods), "groups", *given, "feature_names=names"])
        return "\n".join(
            [
                *numpy,
                "import frot",
                "",
                f"A, B = frot.read_pair({str(self.a)!r}, {str(self.b)!r})",
                "names = A.columns or B.columns",
                f"groups = frot.Groups.parse({self.groups!r}, A.shape[1], names)",
                f"found = frot.compare(A.values, B.values, {arguments})",
            ]
        )


@dataclass(frozen=True)
class _Outputs:
    """Where the page, the numbers and the picture go; None for those not wanted."""

    report: Path | None
    numbers: Path | None
    picture: Path | None

    def check(self) -> None:
        """Refuse what could not be written, before any work."""
        from frot._errors import InputError, require
        from frot._files import check_writable

        for path, kinds in ((self.report, (".html",)), (self.numbers, (".json",)),
                            (self.picture, PICTURES)):  # fmt: skip
            if path is None:
                continue
            check_writable(path)
            if path.suffix.lower() not in kinds:
                raise InputError(f"{path} must end in {', '.join(kinds)}")
        if self.picture is not None:
            require("matplotlib.figure", "plot")

    def write(self, found: Comparison, call: _Call) -> list[Path]:
        """Write all that is wanted; returns the paths. The numbers first: they need nothing."""
        from frot._files import replacing
        from frot.show import write_comparison_report

        written = []
        if self.numbers is not None:
            content = {**found.to_dict(), "command": call.command}
            with replacing(self.numbers) as draft:
                draft.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", "utf-8")
            written.append(self.numbers)
        if self.report is not None:
            title = f"{call.a.name} to {call.b.name}, by {len(found.rows)} methods"
            write_comparison_report(found, self.report, call.python, title, command=call.command)
            written.append(self.report)
        if self.picture is not None and found.answered:
            with replacing(self.picture) as draft:
                found.plot().savefig(draft, dpi=150)
            written.append(self.picture)
        return written
