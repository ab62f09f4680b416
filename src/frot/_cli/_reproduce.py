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
    noise_layers = "noise-layers"
    all = "all"


# Which figures take an option that not all of them take.
TAKEN_BY = {
    "--splits": (Figure.selection,),
    "--sets": (Figure.selection,),
    "--workers": (Figure.selection,),
    "--data": (Figure.selection, Figure.noise_layers),
    "--pairs": (Figure.noise_layers,),
    "--networks": (Figure.noise_layers,),
    "--regret": (Figure.noise_layers,),
}
# Whose claims are not the paper's.
OTHERS_CLAIMS = ("robustness", "noise-layers")
COLOURS = {"reproduced": "green", "partly reproduced": "yellow", "not reproduced": "red"}
POINTS, SPLITS, PAIRS = 100, 50, 20
NETWORK = ("efficientnet-lite2",)


def _selection(help: str, metavar: str, **options: Any) -> Any:
    return typer.Option(
        help=help, metavar=metavar, show_default=False, rich_help_panel="Selection", **options
    )


def _noise(help: str, metavar: str | None = None, **options: Any) -> Any:
    return typer.Option(
        help=help, metavar=metavar, show_default=False, rich_help_panel="Noise layers", **options
    )


def reproduce(
    figure: Annotated[
        Figure,
        typer.Argument(
            help="Which figure of the paper; all is fig1 and fig2. Selection takes minutes and "
            "needs real data (see frot.datasets); robustness, under noise and beside other robust "
            "transports, takes minutes too. So do noise-layers, which plants layers of noise in a "
            "network that matches photographs, and needs PF-WILLOW."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for pictures and numbers.")] = Path("out"),
    seed: Annotated[int, typer.Option(help="Seed of the random points, or splits.", min=0)] = 0,
    n: Annotated[
        int | None,
        typer.Option("-n", min=2, help=f"Points in each cloud; {POINTS} by default."),
    ] = None,
    splits: Annotated[
        int | None, _selection(f"Splits into training and test; {SPLITS} by default.", "N", min=2)
    ] = None,
    sets: Annotated[
        str | None, _selection("Data sets, such as colon,leukemia; all there by default.", "NAMES")
    ] = None,
    workers: Annotated[int | None, _selection("Processes; 1 by default.", "N", min=1)] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with the data sets.", metavar="FOLDER", show_default=False),
    ] = None,
    pairs: Annotated[
        int | None, _noise(f"Pairs of photographs; {PAIRS} by default.", "N", min=1)
    ] = None,
    networks: Annotated[
        str | None,
        _noise(
            "Such as efficientnet-lite2,resnet50-thin,mobilenetv2; the first by default.", "NAMES"
        ),
    ] = None,
    regret: Annotated[
        bool | None,
        _noise("Also costs less their own optima, which takes longer than all the rest."),
    ] = None,
    progress: Annotated[
        bool | None, typer.Option(help="Show a bar; by default on a terminal.")
    ] = None,
) -> None:
    """Compute figures of the paper anew: a picture, all numbers as JSON, and a verdict each.

    Selection and noise-layers, when stopped, go on where they were when they are started again.
    """
    from frot._reproduce import FIGURES

    given = {
        "--splits": splits, "--sets": sets, "--workers": workers, "--data": data,
        "--pairs": pairs, "--networks": networks, "--regret": regret,
    }  # fmt: skip
    for option, takers in TAKEN_BY.items():
        if given[option] is not None and figure not in takers:
            those = " and ".join(taker.value for taker in takers)
            raise InputError(f"{option} is for {those}; leave it out for {figure.value}")
    shown = sys.stderr.isatty() if progress is None else progress
    if figure is Figure.noise_layers:
        if n is not None:
            raise InputError("-n is for other figures; noise-layers takes --pairs")
        from frot._reproduce._noise_layers import noise_layers

        folder = out / "noise-layers"
        try:
            made = noise_layers(
                pairs or PAIRS,
                seed,
                networks=NETWORK if networks is None else _names(networks),
                regret=bool(regret),
                root=data,
                folder=folder,
                progress=shown,
            )
        except KeyboardInterrupt:
            remark(f"finished pairs are kept in {folder}; the same command goes on from there")
            raise
        _tell(made, out)
        return
    if figure is Figure.selection:
        if n is not None:
            raise InputError("-n is for other figures; selection takes --splits and --sets")
        from frot._reproduce._selection import selection

        folder = out / "selection"
        try:
            made = selection(
                None if sets is None else _names(sets),
                splits or SPLITS,
                seed,
                root=data,
                workers=workers or 1,
                folder=folder,
                progress=shown,
            )
        except KeyboardInterrupt:
            remark(f"finished splits are kept in {folder}; the same command goes on from there")
            raise
        _tell(made, out)
        return
    if figure is Figure.robustness:
        from frot._reproduce._robustness import robustness

        remark("robustness: computing, which takes minutes ...")
        _tell(robustness(n or POINTS, seed, progress=shown), out)
        return
    for name in FIGURES if figure is Figure.all else [figure.value]:
        remark(f"{name}: computing ...")
        _tell(FIGURES[name](n or POINTS, seed), out)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _tell(made: Reproduction, out: Path) -> None:
    from rich.text import Text

    for verdict in made.verdicts:
        heading = (verdict.heading, COLOURS[verdict.outcome])
        console().print(Text.assemble(heading), soft_wrap=True)
        say(f"  {'claim' if made.name in OTHERS_CLAIMS else 'paper'}  {verdict.claim}")
        for check in verdict.checks:
            say(f"  {'yes' if check.holds else 'no':<5}  {check.figures}")
    for note in made.notes:
        say(f"  note   {note}")
    for path in made.write(out):
        say(f"  {path}")
