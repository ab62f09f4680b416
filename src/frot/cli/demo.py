"""``frot demo``: the paper's first figure in a second."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from frot._base.errors import MissingDependencyError
from frot._base.files import make_folder
from frot.cli.command import (
    Json,
    Output,
    Quiet,
    check_files,
    examples,
    option,
    save_picture,
    warn,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from frot import Result

EXAMPLES = examples("frot demo", "frot demo -n 200 --seed 1 --picture demo.svg")
PICTURE = Path("out/demo.png")
TITLES = {
    "clean": "OT on clean data",
    "noisy": "OT on noisy data",
    "frot": "FROT on noisy data, η = 1",
}


def demo(
    n: Annotated[int, typer.Option("-n", min=2, help="Points in each cloud.")] = 100,
    seed: Annotated[int, option(None, "Seed of the random points.")] = 0,
    picture: Annotated[Path, option("Output", "Write the picture here.", "FILE")] = PICTURE,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what FROT does on toy data: a table and a picture."""
    # The folder of the default is made; any other has to be there.
    if picture == PICTURE:
        make_folder(picture.parent)
    wanted: Path | None = picture
    try:
        check_files(picture=picture)
    except MissingDependencyError as error:
        warn(f"no picture: {error}")
        wanted = None
    x, y, results = solve_three(n, seed)
    shared = {name: shared_mass(result, results["clean"]) for name, result in results.items()}
    out = Output(json, quiet)
    out.console().print(_table(results, shared))
    out.say(
        f"Among the noise FROT finds {shared['frot']:.1%} of the matching of the true features, "
        f"ordinary transport {shared['noisy']:.1%}."
    )
    out.numbers({name: result.to_dict() for name, result in results.items()})
    save_picture(lambda: draw(x, y, results, shared), wanted)
    out.wrote(wanted)


def solve_three(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, Result]]:
    """Return the two true features of the points, and the results by name."""
    import frot

    X, Y, groups = frot.toy(n, seed)
    true = groups.indices[0]
    x, y = X[:, true], Y[:, true]
    results = {
        "clean": frot.solve(x, y, "all"),
        "noisy": frot.solve(X, Y, "all"),
        "frot": frot.solve(X, Y, groups, eta=1.0),
    }
    return x, y, results


def shared_mass(result: Result, reference: Result) -> float:
    r"""Mass that two plans put on the same arcs, :math:`\sum_{ij} \min(\pi_{ij}, \rho_{ij})`.

    Examples
    --------
    >>> import frot
    >>> crossed, straight = (frot.solve_costs([c]) for c in ([[1, 0], [0, 1]], [[0, 1], [1, 0]]))
    >>> shared_mass(crossed, straight), shared_mass(straight, straight)
    (0.0, 1.0)
    """
    return float(np.minimum(result.plan.dense(), reference.plan.dense()).sum())


def _table(results: dict[str, Result], shared: dict[str, float]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAVY, title="The paper's toy data, solved exactly")
    table.add_column("")
    for title in TITLES.values():
        table.add_column(title.replace(" on ", " on\n"), justify="right")

    def row(label: str, form: str, numbers: list[float]) -> None:
        table.add_row(label, *(form.format(number) for number in numbers))

    frot = results["frot"]
    row("value", "{:.9g}", [result.value for result in results.values()])
    row("proven lower bound", "{:.9g}", [result.lower for result in results.values()])
    row("proven upper bound", "{:.9g}", [result.upper for result in results.values()])
    row("relative gap", "{:.1e}", [result.gap for result in results.values()])
    row("mass as on clean data", "{:.1%}", list(shared.values()))
    table.add_row("α of the true features", "", "", f"{frot.alpha[0]:.9f}")
    table.add_row("α of the noise", "", "", f"{frot.alpha[1]:.1e}")
    return table


def draw(
    x: np.ndarray, y: np.ndarray, results: dict[str, Result], shared: dict[str, float]
) -> Figure:
    """Draw the three plans as arcs between the points, on the two true features."""
    from frot.show.plan import draw_arcs
    from frot.show.style import legend_below, new_figure, tidy

    figure: Any = new_figure(12.0, 4.2)
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    for axes, (name, title) in zip(panels, TITLES.items(), strict=True):
        draw_arcs(axes, results[name].plan, x, y, ("x", "y"), size=16.0)
        tidy(axes)
        note = f"{shared[name]:.0%} of the mass as on clean data"
        axes.set_title(f"{title}\n{'the reference' if name == 'clean' else note}", fontsize=10.5)
        axes.set_xlabel("true feature 1")
    panels[0].set_ylabel("true feature 2")
    legend_below(figure, panels[0], columns=2)
    return figure
