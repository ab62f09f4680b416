"""Options that every command with a matcher takes, and the matcher that they ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

__all__ = [
    "ONNX",
    "Backbone",
    "Colour",
    "Device",
    "Eps",
    "Eta",
    "Hough",
    "Layer",
    "Layers",
    "Layout",
    "Mass",
    "Mean",
    "Method",
    "Normalise",
    "Preset",
    "Prior",
    "Scale",
    "Side",
    "Std",
    "Weights",
    "given",
    "layer_number",
    "layer_numbers",
    "make_matcher",
    "option",
    "parse_numbers",
    "split_options",
]

# Arguments of `OnnxBackbone`, which only an ONNX file has a use for.
ONNX = ("layout", "colour", "mean", "std", "scale")


def option(panel: str, text: str, metavar: str | None = None, **more: Any) -> Any:
    """Return an option without a default to show, in a panel of the help."""
    return typer.Option(
        help=text, metavar=metavar, show_default=False, rich_help_panel=panel, **more
    )


def _matching(text: str, metavar: str | None = None) -> Any:
    return option("Matching", text, metavar)


def _onnx(text: str, metavar: str) -> Any:
    return option("ONNX files", text, metavar)


_BACKBONE = "Network: efficientnet-lite2 by default, resnet101, an .onnx file, ..."
_METHOD = "frot (default), ot, uniform, weighted, nn, best-layer, hpf, scot, srw or max-min."
_MASS = "Weights of the cells: uniform, or cam, where the network's classifier looks."
_PRIOR = "Prior on the layers: coherence (default) or uniform, the paper's."

Backbone: TypeAlias = Annotated[str | None, _matching(_BACKBONE, "NAME")]
Weights: TypeAlias = Annotated[Path | None, _matching("File of the network's weights.", "FILE")]
Layers: TypeAlias = Annotated[
    str | None, _matching("Only these layers, names with commas.", "NAMES")
]
Layer: TypeAlias = Annotated[str | None, _matching("The layer of --method best-layer.", "NAME")]
Method: TypeAlias = Annotated[str | None, _matching(_METHOD, "NAME")]
Preset: TypeAlias = Annotated[
    str | None, _matching("Settings by name: frot-paper, scot or hpf.", "NAME")
]
Eta: TypeAlias = Annotated[float | None, _matching("Entropy of the layers' weights.", "COST")]
Eps: TypeAlias = Annotated[float | None, _matching("Entropy of the plan.", "COST")]
Prior: TypeAlias = Annotated[str | None, _matching(_PRIOR, "NAME")]
Normalise: TypeAlias = Annotated[
    str | None, _matching("Of costs: none, mean or regret; for frot.", "HOW")
]
Mass: TypeAlias = Annotated[str | None, _matching(_MASS, "HOW")]
Side: TypeAlias = Annotated[
    int | None, _matching("Pixels of the longer side, matched at.", "COUNT")
]
Hough: TypeAlias = Annotated[
    bool | None, _matching("Let displacements vote (regularised Hough matching).")
]
Device: TypeAlias = Annotated[str | None, _matching("cpu, cuda, cuda:1, ...", "NAME")]

Layout: TypeAlias = Annotated[
    str | None, _onnx("Axes of the input: NCHW (default) or NHWC.", "AXES")
]
Colour: TypeAlias = Annotated[str | None, _onnx("Colours: RGB (default) or BGR.", "ORDER")]
Mean: TypeAlias = Annotated[
    str | None, _onnx("Taken off the input; ImageNet's by default.", "NUMBERS")
]
Std: TypeAlias = Annotated[
    str | None, _onnx("The input is divided by it; ImageNet's by default.", "NUMBERS")
]
Scale: TypeAlias = Annotated[float | None, _onnx("255 where the network wants bytes.", "NUMBER")]


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given: the others are the matcher's affair.

    Examples
    --------
    >>> given(eta=None, eps=0.2)
    {'eps': 0.2}
    """
    return {name: value for name, value in options.items() if value is not None}


def layer_number(word: str | None) -> str | int | None:
    """Return a layer by its name, or by its number from 0.

    Examples
    --------
    >>> layer_number(" block_3"), layer_number("3")
    ('block_3', 3)
    """
    if word is None:
        return None
    word = word.strip()
    return int(word) if word.isdigit() else word


def layer_numbers(words: str | None) -> list[str | int | None] | None:
    """Return layers with commas between them, by name or number."""
    return None if words is None else [layer_number(word) for word in words.split(",")]


def parse_numbers(text: str | None, name: str) -> list[float] | None:
    """Return the numbers, one or three, that an option has with commas between them.

    Examples
    --------
    >>> parse_numbers("104,117,123", "mean")
    [104.0, 117.0, 123.0]
    """
    from frot._errors import InputError

    if text is None:
        return None
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 3):
        raise InputError(f"{name}: {text!r} is not one number or three; write them as 104,117,123")
    # One of them goes for all colours.
    return numbers if len(numbers) == 3 else 3 * numbers


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
    from frot._errors import InputError

    habits = {name: options[name] for name in ONNX if name in options}
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
    # Not before it is needed: it brings a network.
    import frot.correspondence as library
    from frot._errors import InputError

    network, rest = split_options(options)
    try:
        given = {"backbone": library.OnnxBackbone(**network)} if network else {}
        return library.Matcher(**given, **rest)
    except InputError as error:
        # The fix that the library names is an argument; here it is an option.
        raise InputError(re.sub(r"try layout='(\w+)'", r"try --layout \1", str(error))) from None
