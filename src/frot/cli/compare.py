"""``frot compare``: robust transports of two tables, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from frot.cli.command import (
    FAILED,
    INTERRUPTED,
    NOT_CONVERGED,
    PAGES,
    PICTURES,
    Writes,
    bar,
    capped,
    check_files,
    command,
    complain,
    console,
    given,
    new_table,
    numbers,
    option,
    save_picture,
    say,
    typed,
    warnings_as_lines,
    wrote,
)
from frot.cli.solve import (
    TAU,
    First,
    GroupsOption,
    NormaliseWeights,
    Penalty,
    PictureFile,
    ReportFile,
    Second,
    TablesCall,
    Tol,
    Weights,
    Worst,
    prices,
    read_problem,
)

if TYPE_CHECKING:
    from frot.comparison import Comparison

METHODS = (
    "Some of frot, srw, max_sliced, generalised_max_sliced, sliced, max_min, ot and equitable."
)
CURVE = "Of generalised_max_sliced: circular, linear or cubic."
# Columns of a terminal below which the table has one less.
WIDE = 92
COLOURS = {"CONVERGED": "green", "FAILED": "red"}


@command(
    "frot compare a.csv b.csv --methods frot,srw,ot --groups prefix --out compare.html",
    "frot compare a.csv b.csv --json - | jq '.rows[] | {method, value}'",
    writes=[
        Writes("plot", PICTURES, "comparison.png"),
        Writes("report", PAGES, "report.html"),
    ],
)
def compare(
    a: First,
    b: Second,
    methods: Annotated[str, option("Problem", METHODS, "NAMES")] = "frot,srw,max_sliced,max_min,ot",
    groups: GroupsOption = "each",
    worst: Worst = None,
    k: Annotated[int, option("Problem", "Dimension of SRW's subspace.", "COUNT")] = 2,
    curve: Annotated[str, option("Problem", CURVE, "NAME")] = "circular",
    tau: Annotated[str | None, option("Problem", f"{TAU} For frot and ot.", "COST")] = None,
    penalty: Penalty = "kl",
    weights_a: Weights = None,
    weights_b: Weights = None,
    normalise_weights: NormaliseWeights = False,
    tol: Tol = None,
    time_limit: Annotated[
        float | None, option("Algorithm", "Seconds at most for each.", "SECONDS")
    ] = None,
    seed: Annotated[int, option("Algorithm", "Seed.", None, "--seed", "--random-state", min=0)] = 0,
    report: ReportFile = None,
    plot: PictureFile = None,
    progress: Annotated[
        bool | None, option("Output", "Say what is running; by default on a terminal.")
    ] = None,
) -> None:
    """Compare feature-robust transport with related methods, on the points of tables A and B.

    All values are squared transport costs, so that they can be compared.

    Where a method fails, the others go on. Ctrl-C keeps what is finished; files are
    still written.

    Exit codes: 0 all answered, 1 some method failed, 2 bad input, 3 some stopped before the
    tolerance, 130 interrupted.
    """
    import frot
    from frot.comparison.methods import find_methods

    check_files((report, PAGES), (plot, PICTURES))
    find_methods(methods)
    data = read_problem(a, b, groups, weights_a, weights_b)
    options = given(
        adversary=(capped(worst, len(data.groups)), None),
        k=(k, 2),
        curve=(curve, "circular"),
        tau=(None if tau is None else prices(tau), None),
        penalty=(penalty, "kl"),
        tol=(tol, None),
        normalise_weights=(normalise_weights, False),
        time_limit=(time_limit, None),
        random_state=(seed, 0),
    )
    try:
        found = frot.compare(
            *data.points,
            methods,
            data.groups,
            **options,
            **data.weights,
            feature_names=data.names,
            progress=bar(progress),
        )
    except frot.Interrupted as stop:
        found = stop.result
    _show(found)
    call = TablesCall(typed(a), typed(b), groups, weights_a, weights_b, options, methods)
    # The numbers first: they need nothing.
    numbers(found.to_dict(), call)
    if report is not None:
        title = f"{a.name} to {b.name}, by {len(found.rows)} methods"
        with warnings_as_lines():
            frot.write_comparison_report(found, report, call.python, title, command=call.command)
    drawn = plot if found.answered else None
    save_picture(found.plot, drawn)
    wrote(report, drawn)
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
    from rich.text import Text

    # What was chosen is told below: as a column it would leave no room for the numbers.
    table = new_table()
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
