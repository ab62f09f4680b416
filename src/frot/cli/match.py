"""``frot match``: two photographs in, which point is which out.

Also the options of a matcher, which `evaluate` takes too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from frot._base.errors import InputError
from frot._base.stopping import Interrupted
from frot.cli.command import (
    TYPED,
    Json,
    Output,
    Picture,
    Quiet,
    Save,
    check_files,
    examples,
    exit_code,
    new_table,
    option,
    output,
    save_picture,
)

if TYPE_CHECKING:
    from frot.correspondence import Matcher
    from frot.correspondence.match import Match
    from frot.correspondence.transfer import Transfer

EXAMPLES = examples(
    "frot match a.jpg b.jpg --points 120,80 --report match.html",
    "frot match a.jpg b.jpg --picture matches.png --flow a_to_b.flo --save match.npz",
    "frot match a.jpg b.jpg --grid 8 --json | jq .points",
)
# Named as the arguments of `Matcher` are, so that its messages can be told as options.
Network = Annotated[
    str | None,
    option(
        "Matching",
        "torchvision:NAME, timm:NAME, transformers:FOLDER, FILE.onnx; or the default.",
        "NAME",
        "--network",
    ),
]
Weights = Annotated[
    Path | None,
    option("Matching", "File of the state_dict() of a network of torchvision or timm.", "FILE"),
]
Layers = Annotated[
    str | None, option("Matching", "Only these layers, names or numbers with commas.", "NAMES")
]
Method = Annotated[
    str | None, option("Matching", "frot (default), weighted, uniform, ot or nn.", "NAME")
]
Preset = Annotated[
    str | None, option("Matching", "Settings by name: frot-paper, scot or hpf.", "NAME")
]
Side = Annotated[int | None, option("Matching", "Pixels of the longer side, matched at.", "PIXELS")]
Device = Annotated[str | None, option("Matching", "cpu, cuda, cuda:1, ...", "NAME")]


def match(
    a: Annotated[Path, typer.Argument(metavar="A", help="Photograph to take points from.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Photograph to find them in.")],
    points: Annotated[
        list[str] | None,
        option("Points", "Points of A, x,y in pixels; repeatable, or several in quotes.", "X,Y"),
    ] = None,
    grid: Annotated[
        int | None, option("Points", "Points on a grid: number along the longer side.", "COUNT")
    ] = None,
    backbone: Network = None,
    weights: Weights = None,
    layers: Layers = None,
    method: Method = None,
    preset: Preset = None,
    side: Side = None,
    device: Device = None,
    picture: Picture = None,
    report: Annotated[Path | None, output("Write a web page to click on, .html.")] = None,
    flow: Annotated[
        Path | None, output("Write where every pixel of A is in B, .flo or .npy.")
    ] = None,
    save: Save = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Match two photographs by all layers of a network at once.

    Without --points and --grid some sixteen points are chosen where the network's classifier looks,
    or, where it has none, the surest ones.

    Exit codes: 0 solved, or the preset's steps taken, 2 bad input, 3 stopped before the tolerance.
    """
    from frot import correspondence
    from frot.correspondence.match_picture import plot_matches
    from frot.correspondence.page import write_match_page

    check_files([a, b], picture=picture, report=report, flow=flow, save=save)
    out = Output(json, quiet)
    if points and grid is not None:
        raise InputError("grid: points are given already; give --points or --grid")
    if grid is not None and grid < 1:
        raise InputError(f"grid: {grid} points a side are none; give one or more")
    asked = parse_points(points) if points else None
    # Both are read before the network is, so that a wrong path costs nothing.
    source, target = correspondence.read_photo(a), correspondence.read_photo(b)
    if asked is not None:
        check_inside(asked, source)
    elif grid is not None:
        asked = correspondence.grid_points(source.size, grid)
    sizes = [f"{photo.size[1]} x {photo.size[0]}" for photo in (source, target)]
    out.remark(f"{' to '.join(sizes)} pixels")
    matcher = make_matcher(backbone, weights, layers, method, preset, side, device)
    try:
        matched = matcher(source, target)
    except Interrupted as stop:
        matched = stop.result
    if asked is None:
        if matched.source_cam is None:
            matched = matcher.activated(matched)
        asked = correspondence.object_points(matched)
    moved = matched.transfer(asked)
    show_match(out, matched, asked, moved)
    out.numbers(match_numbers(matched, asked, moved))
    save_picture(lambda: plot_matches(matched, asked), picture)
    if report is not None:
        write_match_page(matched, report, asked, command=TYPED.get())
    if flow is not None:
        matched.flow().save(flow)
    if save is not None:
        matched.save(save)
    out.wrote(picture, report, flow, save)
    raise typer.Exit(_code(matched, matcher))


def make_matcher(
    backbone: str | None,
    weights: Path | None,
    layers: str | None,
    method: str | None,
    preset: str | None,
    side: int | None,
    device: str | None,
) -> Matcher:
    """Return the matcher that options ask for; what is not said is the matcher's affair."""
    from frot.correspondence import Matcher

    options = {
        "backbone": backbone,
        "weights": None if weights is None else str(weights),
        "layers": None if layers is None else parse_layers(layers),
        "method": method,
        "preset": preset,
        "side": side,
        "device": device,
    }
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    return Matcher(**given)


def parse_layers(text: str) -> list[str | int]:
    """Read layers, names or numbers, that have commas between them.

    Examples
    --------
    >>> parse_layers("block_3, 5")
    ['block_3', 5]
    """
    words = [word.strip() for word in text.split(",")]
    return [int(word) if word.lstrip("-").isdecimal() else word for word in words]


def parse_points(words: Sequence[str]) -> np.ndarray:
    """Read points as x,y; several in one word are set apart by spaces or semicolons.

    Examples
    --------
    >>> parse_points(["120,80", "60,200; 5.5,7"]).tolist()
    [[120.0, 80.0], [60.0, 200.0], [5.5, 7.0]]
    >>> parse_points(["120"])
    Traceback (most recent call last):
    ...
    frot.InputError: points: '120' is no point; write x,y such as 120,80
    """
    points = []
    for text in " ".join(words).replace(";", " ").split():
        try:
            x, y = (float(part) for part in text.split(","))
        except ValueError:
            x = y = math.nan
        if not (math.isfinite(x) and math.isfinite(y)):
            raise InputError(f"points: {text!r} is no point; write x,y such as 120,80")
        points.append([x, y])
    if not points:
        raise InputError("points: none are given; write x,y such as 120,80")
    return np.array(points)


def check_inside(points: np.ndarray, photo: Any) -> None:
    """Refuse points outside the photograph, before the work."""
    h, w = photo.size
    outside = ((points < -0.5) | (points > [w - 0.5, h - 0.5])).any(axis=1)
    if outside.any():
        x, y = points[outside][0]
        raise InputError(
            f"points: {x:g},{y:g} is outside {photo.name}, which is {w} x {h} pixels; "
            f"x goes from 0 to {w - 1}, y from 0 to {h - 1}"
        )


def match_numbers(match: Match, points: np.ndarray, moved: Transfer) -> dict[str, Any]:
    """Return the match and its points as JSON has them."""
    rows = zip(points.tolist(), moved.points.tolist(), moved.confidence.tolist(), strict=True)
    places = [{"source": one, "target": place, "confidence": sure} for one, place, sure in rows]
    return match.to_dict() | {"points": places}


def heaviest_layers(alpha: dict[str, float], most: int = 5) -> str:
    """Name the layers of the largest weights.

    Examples
    --------
    >>> heaviest_layers({"conv1": 0.25, "conv2": 0.75}, most=1)
    'conv2 0.750'
    """
    layers = sorted(alpha.items(), key=lambda item: -item[1])[:most]
    return ", ".join(f"{name} {weight:.3f}" for name, weight in layers)


def show_match(
    out: Output, match: Match, points: np.ndarray, moved: Transfer, most: int = 20
) -> None:
    """Print a table of at most `most` points, the heaviest layers and the interval."""
    from frot.correspondence.agreement import told
    from frot.correspondence.chance import tells

    table = new_table()
    telling = tells(match)
    headings = ("point", "x, y in A", "x, y in B", "confidence")
    for heading in headings if telling else headings[:3]:
        table.add_column(heading, justify="right", no_wrap=True)
    rows = list(zip(points, moved.points, moved.confidence, strict=True))
    for number, ((x, y), (u, v), sure) in enumerate(rows[:most], start=1):
        cells = (str(number), f"{x:.1f}, {y:.1f}", f"{u:.1f}, {v:.1f}", f"{sure:.0%}")
        table.add_row(*(cells if telling else cells[:3]))
    out.console().print(table)
    if not telling:
        out.say("Too few cells to say how sure points are; a larger --side has more")
    if len(points) > most:
        out.say(f"... and {len(points) - most:,} more points")
    if match.alpha:
        out.say(f"Heaviest of {len(match.alpha)} layers: {heaviest_layers(match.alpha)}")
    n, m = match.source_grid.count, match.target_grid.count
    out.say(f"{match.method}: {n:,} to {m:,} cells in {match.seconds:.3g} s")
    if len(match.looks) > 1:
        out.say("A was looked at mirrored, too: it was open which way it faces")
        out.say(f"For a reflection: {told(match.looks)}")
    if match.reflected:
        out.say("A and B face opposite ways: matches are read off as a reflection")
    result = match.result
    if result is not None:
        out.say(
            f"optimum in [{result.lower:.8g}, {result.upper:.8g}], gap {result.gap:.1e}, "
            f"{result.status}: {result.status.sentence}",
            style="" if result.status.ok else "yellow",
        )


def _code(match: Match, matcher: Matcher) -> int:
    """Return the exit code: whoever asks for some steps has what was asked for after them."""
    if match.result is None:
        return 0
    status = match.result.status
    # Methods other than frot solve to the tolerance whatever a preset says of steps.
    settings = matcher.settings
    if settings.method == "frot" and settings.steps and status.name == "MAX_ITER":
        return 0
    return exit_code(status)
