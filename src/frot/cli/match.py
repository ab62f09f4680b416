"""``frot match``: two photographs in, which point is which out.

Also the options that every command with a matcher takes, and the matcher that they ask for.
"""

from __future__ import annotations

import inspect
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from frot._base.errors import InputError
from frot._base.spelling import SECOND_NAMES
from frot._base.stopping import Interrupted
from frot.cli.command import (
    PAGES,
    PICTURES,
    Writes,
    arguments,
    check_files,
    command,
    console,
    exit_code,
    new_table,
    numbers,
    option_words,
    parameter,
    remark,
    save_picture,
    say,
    take,
    typed,
    warnings_as_lines,
    wrote,
)
from frot.cli.command import option as any_option
from frot.correspondence.agreement import told
from frot.correspondence.settings import ONNX_OPTIONS, matcher_options

if TYPE_CHECKING:
    from frot.correspondence.match import Match as Matched
    from frot.correspondence.transfer import Transfer as Moved

PANELS = {"Matching": matcher_options(), "ONNX files": ONNX_OPTIONS}


# An option whose default is not shown.
option = partial(any_option, show_default=False)


def takes_matcher(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command every option of a matcher, in the place of its parameter `matching`.

    The command gets the options that were given, as `Matcher` and `OnnxBackbone` take them, by
    name; the others are the matcher's affair.
    """
    own = _parameters()
    parameters = []
    for given in inspect.signature(command, eval_str=True).parameters.values():
        parameters += own if given.name == "matching" else [given]

    @wraps(command)
    def run(**given: Any) -> None:
        words = {one.name: given.pop(one.name) for one in own}
        matching = {
            name: READERS[name](word) if name in READERS else word
            for name, word in words.items()
            if word is not None
        }
        command(**given, matching=matching)

    take(run, parameters)
    return run


def _parameters() -> list[inspect.Parameter]:
    return [
        parameter(
            name,
            Annotated[one.kind | None, option(panel, one.text, one.metavar, *_flags(name))],
        )
        for panel, shown in PANELS.items()
        for name, one in shown.items()
    ]


def _flags(name: str) -> list[str]:
    """Both spellings of an option that has two."""
    second = SECOND_NAMES.get(name)
    return [] if second is None else [f"--{name}", f"--{second}"]


def number_or_name(word: str, kind: type = int) -> Any:
    """Return a number, or the word itself.

    Examples
    --------
    >>> number_or_name(" block_3"), number_or_name("3"), number_or_name("4.5", float)
    ('block_3', 3, 4.5)
    """
    word = word.strip()
    try:
        return kind(word)
    except ValueError:
        return word


def three_numbers(text: str, name: str) -> list[float]:
    """Return the numbers, one or three, that an option has with commas between them.

    Examples
    --------
    >>> three_numbers("104,117,123", "mean")
    [104.0, 117.0, 123.0]
    """
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 3):
        raise InputError(f"{name}: {text!r} is not one number or three; write them as 104,117,123")
    # One of them goes for all colours.
    return numbers if len(numbers) == 3 else 3 * numbers


# Words that are not what they stand for.
READERS: dict[str, Callable[[Any], Any]] = {
    "weights": str,
    "layers": lambda text: [number_or_name(word) for word in text.split(",")],
    "layer": number_or_name,
    "agreement": lambda word: number_or_name(word, float),
    "stride": lambda word: number_or_name(word, float),
    "mean": lambda text: three_numbers(text, "mean"),
    "std": lambda text: three_numbers(text, "std"),
}


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of `OnnxBackbone`, and those that are left for `Matcher`.

    The former are empty where the matcher can do with the path alone.

    Examples
    --------
    >>> split_options({"backbone": "a.onnx", "colour": "BGR", "layers": [3], "eta": 0.5})
    ({'path': 'a.onnx', 'colour': 'BGR', 'layers': [3]}, {'eta': 0.5})
    >>> split_options({"backbone": "a.onnx", "layers": [3]})
    ({}, {'backbone': 'a.onnx', 'layers': [3]})
    """
    habits = {name: options[name] for name in ONNX_OPTIONS if name in options}
    if not habits:
        return {}, dict(options)
    backbone = str(options.get("backbone", ""))
    if not backbone.lower().endswith(".onnx"):
        first = next(iter(habits))
        raise InputError(
            f"{first}: is for ONNX files alone; give --backbone FILE.onnx, or leave out --{first}"
        )
    if "weights" in options:
        raise InputError("weights is in the ONNX file already; leave it out")
    network = {"path": backbone, **habits}
    network.update({"layers": options["layers"]} if "layers" in options else {})
    return network, {k: v for k, v in options.items() if k not in ("backbone", *network)}


def make_matcher(options: Mapping[str, Any]) -> Any:
    """Return the matcher that options ask for."""
    # By its name, when it is needed: it brings a network.
    import frot.correspondence as library

    network, rest = split_options(options)
    given = {"backbone": library.OnnxBackbone(**network)} if network else {}
    return library.Matcher(**given, **rest)


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
    out = ((points < -0.5) | (points > [w - 0.5, h - 0.5])).any(axis=1)
    if out.any():
        x, y = points[out][0]
        raise InputError(
            f"points: {x:g},{y:g} is outside {photo.name}, which is {w} x {h} pixels; "
            f"x goes from 0 to {w - 1}, y from 0 to {h - 1}"
        )


@dataclass(frozen=True)
class MatchCall:
    """What to match and how; `options` are the arguments of `Matcher` that were given.

    Examples
    --------
    >>> call = MatchCall(Path("a.jpg"), Path("my b.jpg"), ("12,8",), options={"hough": False})
    >>> print(call.command)
    frot match a.jpg 'my b.jpg' --points 12,8 --no-hough
    >>> print(call.python)
    from frot.correspondence import Matcher
    <BLANKLINE>
    match = Matcher(hough=False)('a.jpg', 'my b.jpg')
    moved = match.transfer([[12.0, 8.0]])
    """

    a: Path
    b: Path
    points: tuple[str, ...] = ()
    grid: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """The command line."""
        words = ["frot", "match", str(self.a), str(self.b)]
        for point in self.points:
            words += ["--points", point]
        if self.grid is not None:
            words += ["--grid", str(self.grid)]
        return shlex.join([*words, *option_words(self.options)])

    @property
    def python(self) -> str:
        """The same in Python."""
        network, rest = split_options(self.options)
        given = ", ".join(arguments(rest))
        if network:
            given = ", ".join(
                filter(None, [f"OnnxBackbone({', '.join(arguments(network))})", given])
            )
        lines = [
            f"from frot.correspondence import Matcher{', OnnxBackbone' if network else ''}",
            "",
            f"match = Matcher({given})({str(self.a)!r}, {str(self.b)!r})",
        ]
        if self.points:
            lines.append(f"moved = match.transfer({parse_points(self.points).tolist()})")
        return "\n".join(lines)


@dataclass(frozen=True)
class MatchFiles:
    """Where pictures, the page, numbers and dense answers go; None for those not wanted."""

    photos: tuple[Path, Path]
    picture: Path | None = None
    page: Path | None = None
    flow: Path | None = None
    warp: Path | None = None
    save: Path | None = None

    def check(self) -> None:
        """Refuse what could not be written, before the work."""
        from frot.correspondence.flow import FLOWS, IMAGES

        wanted = (self.picture, PICTURES), (self.page, PAGES)
        dense = (self.flow, FLOWS), (self.warp, IMAGES), (self.save, (".npz",))
        check_files(*wanted, *dense, inputs=self.photos, called="one of the photographs")
        paths = [path.resolve() for path, _ in (*wanted, *dense) if path is not None]
        if len(set(paths)) < len(paths):
            raise InputError("output: two of the files have one path; give each its own")

    def write(self, match: Matched, points: np.ndarray, call: MatchCall) -> list[Path]:
        """Write all that is wanted; returns the paths."""
        if self.picture is not None:
            from frot.correspondence.match_picture import plot_matches

            save_picture(lambda: plot_matches(match, points), self.picture)
        if self.page is not None:
            from frot.correspondence.page import write_match_page

            write_match_page(match, self.page, points, call=call.python, command=call.command)
        if self.flow is not None:
            match.flow().save(self.flow)
        if self.warp is not None:
            match.warp(onto="target").save(self.warp)
        if self.save is not None:
            match.save(self.save)
        written = self.picture, self.page, self.flow, self.warp, self.save
        return [path for path in written if path is not None]


def match_numbers(match: Matched, points: np.ndarray, moved: Moved) -> dict[str, Any]:
    """Return what was found, as JSON has it."""
    rows = zip(points.tolist(), moved.points.tolist(), moved.confidence.tolist(), strict=True)
    places = [{"source": one, "target": place, "confidence": sure} for one, place, sure in rows]
    return match.to_dict() | {"points": places}


def show_match(match: Matched, points: np.ndarray, moved: Moved, rows: int, top: int) -> None:
    """Print a table of points, the heaviest layers and the interval."""
    table = new_table()
    for heading in ("point", "x, y in A", "x, y in B", "confidence"):
        table.add_column(heading, justify="right", no_wrap=True)
    shown = list(zip(points, moved.points, moved.confidence, strict=True))[:rows]
    for number, ((x, y), (u, v), sure) in enumerate(shown, start=1):
        table.add_row(str(number), f"{x:.1f}, {y:.1f}", f"{u:.1f}, {v:.1f}", f"{sure:.0%}")
    if shown:
        console().print(table)
    if len(shown) < len(points):
        say(f"... and {len(points) - len(shown):,} more points")
    layers = sorted(match.alpha.items(), key=lambda item: -item[1])[:top]
    if layers:
        text = ", ".join(f"{name} {weight:.3f}" for name, weight in layers)
        say(f"Heaviest of {len(match.alpha)} layers: {text}")
    n, m = match.source_grid.count, match.target_grid.count
    say(f"{match.method}: {n:,} to {m:,} cells in {match.seconds:.3g} s")
    if len(match.looks) > 1:
        say("A was looked at mirrored, too: it was open which way it faces")
        say(f"For a reflection: {told(match.looks)}")
    if match.reflected:
        say("A and B face opposite ways: matches are read off as a reflection")
    result = match.result
    if result is not None:
        say(
            f"optimum in [{result.lower:.8g}, {result.upper:.8g}], gap {result.gap:.1e}, "
            f"{result.status}: {result.status.sentence}",
            style="" if result.status.ok else "yellow",
        )


POINTS = "Points of A, x,y in pixels; one or more."


@command(
    "frot match a.jpg b.jpg --points 120,80 --out match.html",
    "frot match a.jpg b.jpg --flow a_to_b.flo --warp a_on_b.png --save match.npz",
    "frot match a.jpg b.jpg --grid 8 --json - | jq .points",
    writes=[
        Writes("plot", PICTURES, "matches.png"),
        Writes("report", PAGES, "report.html"),
        Writes("save", (".npz",), "match.npz"),
        Writes("flow", (".flo", ".npy"), "flow.flo"),
    ],
    options={"layout": "--layout"},
)
@takes_matcher
def match(
    a: Annotated[Path, typer.Argument(metavar="A", help="Photograph to take points from.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Photograph to find them in.")],
    # What follows --points without an option of its own ends up here.
    more: Annotated[list[str] | None, typer.Argument(hidden=True, metavar="X,Y")] = None,
    points: Annotated[list[str] | None, option("Points", POINTS, "X,Y ...")] = None,
    grid: Annotated[
        int | None, option("Points", "Points on a grid: number along the longer side.", "COUNT")
    ] = None,
    *,
    matching: dict[str, Any],
    plot: Annotated[
        Path | None, option("Output", "Write a picture: .png, .svg, .pdf, .jpg or .webp.", "FILE")
    ] = None,
    report: Annotated[
        Path | None, option("Output", "Write a web page to click on, .html.", "FILE")
    ] = None,
    flow: Annotated[
        Path | None,
        option("Output", "Write where every pixel of A is in B: .flo, .npy or .npz.", "FILE"),
    ] = None,
    warp: Annotated[
        Path | None, option("Output", "Write A in the frame of B, .png or .webp.", "FILE")
    ] = None,
    save: Annotated[
        Path | None,
        option("Output", "Write the match, .npz, for frot.load.", "FILE"),
    ] = None,
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
    from frot import correspondence

    files = MatchFiles((a, b), plot, report, flow, warp, save)
    files.check()
    words = [*(points or []), *(more or [])]
    if more and not points:
        raise InputError(f"{more[0]}: a match is of two photographs; give points by --points")
    if words and grid is not None:
        raise InputError("grid: points are given already; give --points or --grid")
    asked = parse_points(words) if words else None
    if grid is not None and grid < 1:
        raise InputError(f"grid: {grid} points a side are none; give one or more")
    split_options(matching)
    # Both are read before the network is, so that a wrong path costs nothing.
    source, target = correspondence.read_photo(a), correspondence.read_photo(b)
    if asked is not None:
        check_inside(asked, source)
    remark(f"{_size(source)} to {_size(target)} pixels")
    matched, steps = _matching(matching, source, target)
    if asked is None:
        asked = (
            correspondence.object_points(matched)
            if grid is None
            else correspondence.grid_points(source.size, grid)
        )
    moved = matched.transfer(asked)
    show_match(matched, asked, moved, rows, top)
    call = MatchCall(typed(a), typed(b), tuple(words), grid, matching)
    numbers(match_numbers(matched, asked, moved), call)
    wrote(*files.write(matched, asked, call))
    raise typer.Exit(_code(matched, steps))


def _matching(settings: dict[str, Any], source: Any, target: Any) -> tuple[Any, int]:
    """Match, and show warnings as a line each instead of as Python does.

    Returns the match, and how many steps its solver was asked for instead of a tolerance, or 0.
    """
    with warnings_as_lines():
        made = make_matcher(settings)
        try:
            matched = made(source, target)
        except Interrupted as stop:
            matched = stop.result
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
