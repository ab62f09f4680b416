"""``frot compare``: robust transports of two tables, side by side."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frot.cli.calls import TablesCall, given
from frot.cli.console import FAILED, INTERRUPTED, NOT_CONVERGED, complain, console, say
from frot.cli.files import NUMBERS, PICTURES, check_files, save_json, save_picture
from frot.cli.solve import (
    GROUPS,
    NormaliseWeights,
    Weights,
    algorithm_option,
    output_option,
    problem_option,
    read_problem,
)

if TYPE_CHECKING:
    from frot.comparison import Comparison

__all__ = ["compare"]

METHODS = (
    "Some of frot, srw, max_sliced, generalised_max_sliced, sliced, max_min, ot and equitable."
)
CURVE = "Of generalised_max_sliced: circular, linear or cubic."
# Columns of a terminal below which the table has one less.
WIDE = 92
COLOURS = {"CONVERGED": "green", "FAILED": "red"}


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="Table of points, a row each.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The other table, of the same features.")],
    methods: Annotated[str, problem_option(METHODS, "NAMES")] = "frot,srw,max_sliced,max_min,ot",
    groups: Annotated[str, problem_option(GROUPS, "GROUPS")] = "each",
    k: Annotated[int, problem_option("Dimension of SRW's subspace.", "COUNT")] = 2,
    curve: Annotated[str, problem_option(CURVE, "NAME")] = "circular",
    weights_a: Weights = None,
    weights_b: Weights = None,
    normalise_weights: NormaliseWeights = False,
    tol: Annotated[float | None, algorithm_option("Relative gap to stop at.", "GAP")] = None,
    time_limit: Annotated[
        float | None, algorithm_option("Seconds at most for each.", "SECONDS")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed.", rich_help_panel="Algorithm")] = 0,
    report: Annotated[Path | None, output_option("Write a web page, .html.")] = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write all numbers.", rich_help_panel="Output"),
    ] = None,
    out: Annotated[
        Path | None, output_option("Write a picture: .png, .svg, .pdf, .jpg or .webp.")
    ] = None,
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
    from frot.comparison.methods import find_methods

    outputs = CompareFiles(report, json_file, out)
    outputs.check()
    find_methods(methods)
    data = read_problem(a, b, groups, weights_a, weights_b)
    options = given(
        k=(k, 2), curve=(curve, "circular"), tol=(tol, None),
        normalise_weights=(normalise_weights, False), time_limit=(time_limit, None), seed=(seed, 0),
    )  # fmt: skip
    try:
        found = frot.compare(
            data.first.values,
            data.second.values,
            methods,
            data.groups,
            **options,
            **data.weights,
            feature_names=data.names,
            progress=sys.stderr.isatty() if progress is None else progress,
        )
    except frot.Interrupted as stop:
        found = stop.result
    _show(found)
    call = TablesCall(a, b, groups, weights_a, weights_b, options, methods)
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
class CompareFiles:
    """Where the page, the numbers and the picture go; None for those not wanted."""

    report: Path | None
    numbers: Path | None
    picture: Path | None

    def check(self) -> None:
        """Refuse what could not be written, before any work."""
        wanted = (self.report, (".html",)), (self.numbers, NUMBERS), (self.picture, PICTURES)
        check_files(*wanted)

    def write(self, found: Comparison, call: TablesCall) -> list[Path]:
        """Write all that is wanted; returns the paths. The numbers first: they need nothing."""
        from frot.comparison import write_comparison_report

        written = []
        save_json({**found.to_dict(), "command": call.command}, self.numbers)
        written += [self.numbers] if self.numbers is not None else []
        if self.report is not None:
            title = f"{call.a.name} to {call.b.name}, by {len(found.rows)} methods"
            write_comparison_report(found, self.report, call.python, title, command=call.command)
            written.append(self.report)
        if self.picture is not None and found.answered:
            save_picture(found.plot, self.picture)
            written.append(self.picture)
        return written
