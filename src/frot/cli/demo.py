"""``frot demo``: the paper's first figure in a second."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from frot.cli.command import (
    PICTURES,
    Writes,
    command,
    console,
    numbers,
    option,
    save_picture,
    say,
    warn,
    wrote,
)

if TYPE_CHECKING:
    from rich.table import Table

    from frot.cli.reproduce.fig1 import ToyRuns


@command(
    "frot demo",
    "frot demo -n 200 --seed 1 --out demo.svg",
    writes=[Writes("plot", PICTURES, "demo.png")],
    folder="out",
)
def demo(
    plot: Annotated[
        Path | None, option("Output", "Write the picture; out/demo.png by default.", "FILE")
    ] = None,
    seed: Annotated[
        int, option(None, "Seed of the random points.", None, "--seed", "--random-state")
    ] = 0,
    n: Annotated[int, typer.Option("-n", min=2, help="Points in each cloud.")] = 100,
) -> None:
    """Show what FROT does: two clouds that differ in two features, hidden among eight of noise."""
    from frot._base.errors import MissingDependencyError
    from frot.cli.reproduce.fig1 import draw_toy_runs, solve_exactly

    # The first solve of a process also imports the solvers; their time is not the problem's.
    solve_exactly(2, seed)
    three = solve_exactly(n, seed)
    console().print(_table(three))
    found, missed = three.shared("frot"), three.shared("noisy")
    say(
        f"Among the noise FROT finds {found:.1%} of the matching of the true features, "
        f"ordinary transport {missed:.1%}."
    )
    numbers({name: made.result.to_dict() for name, made in three.runs.items()})
    try:
        save_picture(lambda: draw_toy_runs([("", three)]), plot)
    except MissingDependencyError as error:
        warn(f"no picture: {error}")
    else:
        wrote(plot)


def _table(three: ToyRuns) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAVY, title="The paper's toy data, solved exactly")
    table.add_column("")
    for heading in ("OT on\nclean data", "OT on\nnoisy data", "FROT on\nnoisy data, η = 1"):
        table.add_column(heading, justify="right")
    results = {name: made.result for name, made in three.runs.items()}
    frot = results["frot"]

    def row(label: str, form: str, numbers: list[float]) -> None:
        table.add_row(label, *(form.format(number) for number in numbers))

    row("value", "{:.9g}", [r.value for r in results.values()])
    row("proven lower bound", "{:.9g}", [r.lower for r in results.values()])
    row("proven upper bound", "{:.9g}", [r.upper for r in results.values()])
    row("relative gap", "{:.1e}", [r.gap for r in results.values()])
    row("mass as on clean data", "{:.1%}", [three.shared(name) for name in results])
    table.add_row("α of the true features", "", "", f"{frot.alpha[0]:.9f}")
    table.add_row("α of the noise", "", "", f"{frot.alpha[1]:.1e}")
    row("seconds", "{:.2f}", [r.time for r in results.values()])
    return table
