"""``frot match``: two photographs in, which point is which out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from frot._cli import _matcher_options as options
from frot._cli._console import remark, say, warn
from frot._cli._exit import exit_code
from frot._cli._matcher_options import option

__all__ = ["match"]


POINTS = "Points of A, x,y in pixels; as many as you like."


def match(
    a: Annotated[Path, typer.Argument(metavar="A", help="Photograph to take points from.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Photograph to find them in.")],
    # What follows --points without an option of its own ends up here.
    more: Annotated[list[str] | None, typer.Argument(hidden=True, metavar="X,Y")] = None,
    points: Annotated[list[str] | None, option("Points", POINTS, "X,Y ...")] = None,
    grid: Annotated[
        int | None, option("Points", "Points on a grid, so many along the longer side.", "COUNT")
    ] = None,
    backbone: options.Backbone = None,
    weights: options.Weights = None,
    layers: options.Layers = None,
    layer: options.Layer = None,
    method: options.Method = None,
    preset: options.Preset = None,
    eta: options.Eta = None,
    eps: options.Eps = None,
    prior: options.Prior = None,
    normalise: options.Normalise = None,
    mass: options.Mass = None,
    side: options.Side = None,
    hough: options.Hough = None,
    device: options.Device = None,
    layout: options.Layout = None,
    colour: options.Colour = None,
    mean: options.Mean = None,
    std: options.Std = None,
    scale: options.Scale = None,
    out: Annotated[
        Path | None, option("Output", "Write a picture: .png, .svg, .pdf, .jpg or .webp.", "FILE")
    ] = None,
    report: Annotated[
        Path | None, option("Output", "Write a web page to click on, .html.", "FILE")
    ] = None,
    json: Annotated[Path | None, option("Output", "Write all numbers, .json.", "FILE")] = None,
    rows: Annotated[
        int, typer.Option(min=0, help="Points to print.", rich_help_panel="Output")
    ] = 20,
    top: Annotated[int, typer.Option(min=0, help="Layers to print.", rich_help_panel="Output")] = 5,
) -> None:
    """Match two photographs of the same kind of object, by all layers of a network at once.

    Without --points and --grid some sixteen points on the object are chosen, or, where no weights
    say where it is, the surest ones.

    Exit codes: 0 solved, or the preset's steps taken, 2 bad input, 3 stopped before the tolerance.
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
    asked = parse_points(words) if words else None
    if grid is not None and grid < 1:
        raise InputError(f"grid: {grid} points a side are none; give one or more")
    library = _library()
    settings = options.given(
        backbone=backbone,
        weights=None if weights is None else str(weights),
        layout=layout,
        colour=colour,
        mean=options.parse_numbers(mean, "mean"),
        std=options.parse_numbers(std, "std"),
        scale=scale,
        layers=options.layer_numbers(layers),
        layer=options.layer_number(layer),
        method=method,
        preset=preset,
        eta=eta,
        eps=eps,
        prior=prior,
        normalise=normalise,
        mass=mass,
        side=side,
        hough=hough,
        device=device,
    )
    options.split_options(settings)
    # Both are read before the network is, so that a wrong path costs nothing.
    source, target = library.read_photo(a), library.read_photo(b)
    if asked is not None:
        check_inside(asked, source)
    remark(f"{_size(source)} to {_size(target)} pixels")
    matched, steps = _matching(settings, source, target)
    if asked is None:
        asked = object_points(matched) if grid is None else grid_points(source.size, grid)
    moved = matched.transfer(asked)
    show_match(matched, asked, moved, rows, top)
    call = MatchCall(a, b, tuple(words), grid, settings)
    for path in files.write(matched, asked, moved, call):
        say(f"Wrote {path}")
    raise typer.Exit(_code(matched, steps))


def _library() -> Any:
    """The matcher and what it needs, which nobody who asks for help should wait for."""
    import frot.correspondence

    return frot.correspondence


def _matching(settings: dict[str, Any], source: Any, target: Any) -> tuple[Any, int]:
    """Match, and show warnings as a line each instead of as Python does.

    Returns the match, and how many steps its solver was asked for instead of a tolerance, or 0.
    """
    import frot

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = options.make_matcher(settings)
        try:
            matched = made(source, target)
        except frot.Interrupted as stop:
            matched = stop.result
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        warn(text)
    # Methods other than frot solve to the tolerance whatever a preset says of steps.
    return matched, made.settings.steps if made.settings.method == "frot" else 0


def _code(matched: Any, steps: int) -> int:
    """Return the exit code: whoever asks for some steps has what was asked for after them."""
    if matched.result is None:
        return 0
    status = matched.result.status
    return 0 if steps and status.name == "MAX_ITER" else exit_code(status)


def _size(photo: Any) -> str:
    h, w = photo.size
    return f"{w} x {h}"
