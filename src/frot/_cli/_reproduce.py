"""``frot reproduce``: the paper's figures with a verdict each."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from frot._cli._console import console, remark, say

__all__ = ["reproduce"]


class Figure(str, Enum):
    """What can be reproduced."""

    fig1 = "fig1"
    fig2 = "fig2"
    all = "all"


COLOURS = {"reproduced": "green", "partly reproduced": "yellow", "not reproduced": "red"}


def reproduce(
    figure: Annotated[Figure, typer.Argument(help="Which figure of the paper.")],
    out: Annotated[Path, typer.Option(help="Folder for pictures and numbers.")] = Path("out"),
    seed: Annotated[int, typer.Option(help="Seed of the random points.")] = 0,
    n: Annotated[int, typer.Option("-n", min=2, help="Points in each cloud.")] = 100,
) -> None:
    """Compute figures of the paper anew: a picture, all numbers as JSON, and a verdict each."""
    from rich.text import Text

    from frot._reproduce import FIGURES

    for name in FIGURES if figure is Figure.all else [figure.value]:
        remark(f"{name}: computing ...")
        made = FIGURES[name](n, seed)
        for verdict in made.verdicts:
            heading = (f"Figure {verdict.figure}: {verdict.outcome}", COLOURS[verdict.outcome])
            console().print(Text.assemble(heading), soft_wrap=True)
            say(f"  paper  {verdict.claim}")
            for check in verdict.checks:
                say(f"  {'yes' if check.holds else 'no':<5}  {check.figures}")
        for note in made.notes:
            say(f"  note   {note}")
        for path in made.write(out):
            say(f"  {path}")
