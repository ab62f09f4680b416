"""``frot match``: two photographs in, which point is which out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from frot._cli._console import remark, say, warn
from frot._cli._exit import exit_code

__all__ = ["match"]


def _option(panel: str, text: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(
        help=text, metavar=metavar, show_default=False, rich_help_panel=panel, **more
    )


BACKBONE = "Network: efficientnet-lite2 by default, resnet101, an .onnx file, ..."
METHOD = "frot (default), ot, uniform, nn, best-layer, hpf, scot, srw or max-min."
POINTS = "Points of A, x,y in pixels; as many as you like."
MASS = "Weights of the cells: uniform, or cam, where the network's classifier looks."
PRIOR = "Prior on the layers: coherence (default) or uniform, the paper's."


def match(
    a: Annotated[Path, typer.Argument(metavar="A", help="Photograph to take points from.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Photograph to find them in.")],
    # What follows --points without an option of its own ends up here.
    more: Annotated[list[str] | None, typer.Argument(hidden=True, metavar="X,Y")] = None,
    points: Annotated[list[str] | None, _option("Points", POINTS, "X,Y ...")] = None,
    grid: Annotated[
        int | None, _option("Points", "Points on a grid, so many along the longer side.", "COUNT")
    ] = None,
    backbone: Annotated[str | None, _option("Matching", BACKBONE, "NAME")] = None,
    weights: Annotated[
        Path | None, _option("Matching", "File of the network's weights.", "FILE")
    ] = None,
    layers: Annotated[
        str | None, _option("Matching", "Only these layers, names with commas.", "NAMES")
    ] = None,
    layer: Annotated[
        str | None, _option("Matching", "The layer of --method best-layer.", "NAME")
    ] = None,
    method: Annotated[str | None, _option("Matching", METHOD, "NAME")] = None,
    preset: Annotated[
        str | None, _option("Matching", "Settings by name: frot-paper or scot.", "NAME")
    ] = None,
    eta: Annotated[
        float | None, _option("Matching", "Entropy of the layers' weights.", "COST")
    ] = None,
    eps: Annotated[float | None, _option("Matching", "Entropy of the plan.", "COST")] = None,
    prior: Annotated[str | None, _option("Matching", PRIOR, "NAME")] = None,
    normalise: Annotated[
        str | None, _option("Matching", "Of costs: none, mean or regret.", "HOW")
    ] = None,
    mass: Annotated[str | None, _option("Matching", MASS, "HOW")] = None,
    side: Annotated[
        int | None, _option("Matching", "Pixels of the longer side, matched at.", "COUNT")
    ] = None,
    hough: Annotated[
        bool | None, _option("Matching", "Let displacements vote (regularised Hough matching).")
    ] = None,
    device: Annotated[str | None, _option("Matching", "cpu, cuda, cuda:1, ...", "NAME")] = None,
    out: Annotated[
        Path | None, _option("Output", "Write a picture: .png, .svg, .pdf, .jpg or .webp.", "FILE")
    ] = None,
    report: Annotated[
        Path | None, _option("Output", "Write a web page to click on, .html.", "FILE")
    ] = None,
    json: Annotated[Path | None, _option("Output", "Write all numbers, .json.", "FILE")] = None,
    rows: Annotated[
        int, typer.Option(min=0, help="Points to print.", rich_help_panel="Output")
    ] = 20,
    top: Annotated[int, typer.Option(min=0, help="Layers to print.", rich_help_panel="Output")] = 5,
) -> None:
    """Match two photographs of the same kind of object, by all layers of a network at once.

    Without --points and --grid some sixteen points on the object are chosen, or, where no weights
    say where it is, the surest ones.

    Exit codes: 0 solved, 2 bad input, 3 stopped before the tolerance.
    """
    from frot._cli._match_call import MatchCall
    from frot._cli._match_files import MatchFiles
    from frot._cli._match_points import check_inside, parse_points
    from frot._cli._match_show import show_match
    from frot._errors import InputError
    from frot.correspondence._pictures._points import grid_points, object_points

    files = MatchFiles((a, b), out, report, json)
    files.check()
    words = [*(points or []), *(more or [])]
    if more and not points:
        raise InputError(f"{more[0]}: a match is of two photographs; give points by --points")
    if words and grid is not None:
        raise InputError("grid: points are given already; give --points or --grid")
    given = parse_points(words) if words else None
    if grid is not None and grid < 1:
        raise InputError(f"grid: {grid} points a side are none; give one or more")
    library = _library()
    options = {
        name: value
        for name, value in {
            "backbone": backbone,
            "weights": None if weights is None else str(weights),
            "layers": None if layers is None else [_layer(name) for name in layers.split(",")],
            "layer": None if layer is None else _layer(layer),
            "method": method,
            "preset": preset,
            "eta": eta,
            "eps": eps,
            "prior": prior,
            "normalise": normalise,
            "mass": mass,
            "side": side,
            "hough": hough,
            "device": device,
        }.items()
        if value is not None
    }
    # Both are read before the network is, so that a wrong path costs nothing.
    source, target = library.read_photo(a), library.read_photo(b)
    if given is not None:
        check_inside(given, source)
    remark(f"{_size(source)} to {_size(target)} pixels")
    matched = _matching(library.Matcher, options, source, target)
    if given is None:
        given = object_points(matched) if grid is None else grid_points(source.size, grid)
    moved = matched.transfer(given)
    show_match(matched, given, moved, rows, top)
    call = MatchCall(a, b, tuple(words), grid, options)
    for path in files.write(matched, given, moved, call):
        say(f"Wrote {path}")
    raise typer.Exit(0 if matched.result is None else exit_code(matched.result.status))


def _library() -> Any:
    """The matcher and what it needs, which nobody who asks for help should wait for."""
    import frot.correspondence

    return frot.correspondence


def _matching(matcher: Any, options: dict[str, Any], source: Any, target: Any) -> Any:
    """Match, and show warnings as a line each instead of as Python does."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        matched = matcher(**options)(source, target)
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        warn(text)
    return matched


def _layer(word: str) -> str | int:
    """A layer by its name, or by its number from 0."""
    word = word.strip()
    return int(word) if word.isdigit() else word


def _size(photo: Any) -> str:
    h, w = photo.size
    return f"{w} x {h}"
