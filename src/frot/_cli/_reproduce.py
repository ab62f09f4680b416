"""``frot reproduce``: the paper's figures with a verdict each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
    correspondence = "correspondence"
    all = "all"


# Which figures take an option that not all of them take.
TAKEN_BY = {
    "--splits": (Figure.selection,),
    "--sets": (Figure.selection,),
    "--workers": (Figure.selection, Figure.correspondence),
    "--data": (Figure.selection, Figure.noise_layers, Figure.correspondence),
    "--pairs": (Figure.noise_layers, Figure.correspondence),
    "--networks": (Figure.noise_layers, Figure.correspondence),
    "--regret": (Figure.noise_layers,),
}
# Which go on after having been stopped, and what sizes them.
RESUMABLE = {
    Figure.selection: "--splits and --sets",
    Figure.noise_layers: "--pairs",
    Figure.correspondence: "--pairs",
}
# Whose claims are not the paper's.
OTHERS_CLAIMS = ("robustness", "noise-layers", "correspondence")
COLOURS = {"reproduced": "green", "partly reproduced": "yellow", "not reproduced": "red"}
POINTS, SPLITS, PAIRS = 100, 50, 20
NETWORK = ("efficientnet-lite2",)


def _selection(help: str, metavar: str, **options: Any) -> Any:
    return typer.Option(
        help=help, metavar=metavar, show_default=False, rich_help_panel="Selection", **options
    )


def _noise(help: str, metavar: str | None = None, **options: Any) -> Any:
    return typer.Option(
        help=help, metavar=metavar, show_default=False, rich_help_panel="Photographs", **options
    )


def reproduce(
    figure: Annotated[
        Figure,
        typer.Argument(
            help="Which figure of the paper; all is fig1 and fig2. Selection takes minutes and "
            "needs real data (see frot.datasets); robustness, under noise and beside other robust "
            "transports, takes minutes too. Noise-layers plants layers of noise in a "
            "network that matches photographs; correspondence scores every way to match with "
            "every network, hours for all pairs. Both need PF-WILLOW."
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
        int | None, _noise(f"Pairs; {PAIRS} for noise-layers, all 900 otherwise.", "N", min=1)
    ] = None,
    networks: Annotated[
        str | None,
        _noise(
            "Such as efficientnet-lite2,resnet50-thin,mobilenetv2; the first for noise-layers, "
            "all there otherwise.",
            "NAMES",
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

    Selection, noise-layers and correspondence, when stopped, go on where they were when they are
    started again.
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
    if figure in RESUMABLE and n is not None:
        raise InputError(f"-n is for other figures; {figure.value} takes {RESUMABLE[figure]}")
    folder = out / figure.value
    if figure is Figure.noise_layers:
        from frot._reproduce._noise_layers import noise_layers

        with _kept(folder, "pairs"):
            made = noise_layers(
                pairs or PAIRS,
                seed,
                networks=NETWORK if networks is None else _names(networks),
                regret=bool(regret),
                root=data,
                folder=folder,
                progress=shown,
            )
        _tell(made, out)
        return
    if figure is Figure.correspondence:
        from frot._reproduce._correspondence import correspondence

        with _kept(folder, "pairs"):
            made = correspondence(
                None if networks is None else _names(networks),
                pairs,
                root=data,
                workers=workers or 1,
                folder=folder,
                progress=shown,
            )
        _tell(made, out)
        return
    if figure is Figure.selection:
        from frot._reproduce._selection import selection

        with _kept(folder, "splits"):
            made = selection(
                None if sets is None else _names(sets),
                splits or SPLITS,
                seed,
                root=data,
                workers=workers or 1,
                folder=folder,
                progress=shown,
            )
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


@contextmanager
def _kept(folder: Path, what: str) -> Iterator[None]:
    """Say where finished work is, if the rest is called off."""
    try:
        yield
    except KeyboardInterrupt:
        remark(f"finished {what} are kept in {folder}; the same command goes on from there")
        raise


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
