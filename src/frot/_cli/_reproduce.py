"""``frot reproduce``: the paper's figures with a verdict each."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frot._cli._console import console, remark, say
from frot._errors import InputError

if TYPE_CHECKING:
    from frot._reproduce import Reproduction

__all__ = ["reproduce"]


class Figure(str, Enum):
    """What can be reproduced."""

    fig1 = "fig1"
    fig2 = "fig2"
    selection = "selection"
    robustness = "robustness"
    all = "all"


COLOURS = {"reproduced": "green", "partly reproduced": "yellow", "not reproduced": "red"}
POINTS, SPLITS = 100, 50


def _selection(help: str, metavar: str, **options: Any) -> Any:
    return typer.Option(
        help=help, metavar=metavar, show_default=False, rich_help_panel="Selection", **options
    )


def reproduce(
    figure: Annotated[
        Figure,
        typer.Argument(
            help="Which figure of the paper; all is fig1 and fig2. Selection takes minutes and "
            "needs real data (see frot.datasets); robustness, under noise and beside other robust "
            "transports, takes minutes too."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for pictures and numbers.")] = Path("out"),
    seed: Annotated[int, typer.Option(help="Seed of the random points, or splits.", min=0)] = 0,
    n: Annotated[
        int | None,
        typer.Option("-n", min=2, help=f"Points in each cloud [default: {POINTS}]."),
    ] = None,
    splits: Annotated[
        int | None, _selection(f"Splits into training and test [default: {SPLITS}].", "N", min=2)
    ] = None,
    sets: Annotated[
        str | None, _selection("Data sets, such as colon,leukemia [default: all there].", "NAMES")
    ] = None,
    workers: Annotated[int | None, _selection("Processes [default: 1].", "N", min=1)] = None,
    data: Annotated[Path | None, _selection("Folder with the data sets.", "FOLDER")] = None,
    progress: Annotated[
        bool | None,
        typer.Option(help="Show a bar; by default on a terminal.", rich_help_panel="Selection"),
    ] = None,
) -> None:
    """Compute figures of the paper anew: a picture, all numbers as JSON, and a verdict each.

    A selection that was stopped goes on where it was when it is started again.
    """
    from frot._reproduce import FIGURES

    chosen = {"--splits": splits, "--sets": sets, "--workers": workers, "--data": data}
    if figure is Figure.selection:
        if n is not None:
            raise InputError("-n is for other figures; selection takes --splits and --sets")
        from frot._reproduce._selection import selection

        folder = out / "selection"
        try:
            made = selection(
                None if sets is None else [name.strip() for name in sets.split(",")],
                splits or SPLITS,
                seed,
                root=data,
                workers=workers or 1,
                folder=folder,
                progress=sys.stderr.isatty() if progress is None else progress,
            )
        except KeyboardInterrupt:
            remark(f"finished splits are kept in {folder}; the same command goes on from there")
            raise
        _tell(made, out)
        return
    for option, value in chosen.items():
        if value is not None:
            raise InputError(f"{option} is for selection; leave it out for {figure.value}")
    if figure is Figure.robustness:
        from frot._reproduce._robustness import robustness

        shown = sys.stderr.isatty() if progress is None else progress
        remark("robustness: computing, which takes minutes ...")
        _tell(robustness(n or POINTS, seed, progress=shown), out)
        return
    for name in FIGURES if figure is Figure.all else [figure.value]:
        remark(f"{name}: computing ...")
        _tell(FIGURES[name](n or POINTS, seed), out)


def _tell(made: Reproduction, out: Path) -> None:
    from rich.text import Text

    for verdict in made.verdicts:
        heading = (verdict.heading, COLOURS[verdict.outcome])
        console().print(Text.assemble(heading), soft_wrap=True)
        # The claims about noise are those of other papers.
        say(f"  {'claim' if made.name == 'robustness' else 'paper'}  {verdict.claim}")
        for check in verdict.checks:
            say(f"  {'yes' if check.holds else 'no':<5}  {check.figures}")
    for note in made.notes:
        say(f"  note   {note}")
    for path in made.write(out):
        say(f"  {path}")
