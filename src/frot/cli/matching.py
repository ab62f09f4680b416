"""Options that every command with a matcher takes, and the matcher that they ask for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Annotated, Any

from frot._base.errors import InputError
from frot._base.spelling import SECOND_NAMES
from frot.cli import options
from frot.correspondence.settings import ONNX_OPTIONS, matcher_options

__all__ = ["make_matcher", "option", "split_options", "takes_matcher"]

PANELS = {"Matching": matcher_options(), "ONNX files": ONNX_OPTIONS}


# An option whose default is not shown.
option = partial(options.option, show_default=False)


def takes_matcher(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command every option of a matcher, in the place of its parameter `matching`.

    The command gets the options that were given, as `Matcher` and `OnnxBackbone` take them, by
    name; the others are the matcher's affair.
    """
    own = _parameters()
    parameters = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        parameters += own if parameter.name == "matching" else [parameter]

    @wraps(command)
    def run(**given: Any) -> None:
        words = {one.name: given.pop(one.name) for one in own}
        matching = {
            name: READERS[name](word) if name in READERS else word
            for name, word in words.items()
            if word is not None
        }
        command(**given, matching=matching)

    # Typer reads both.
    vars(run)["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _parameters() -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                one.kind | None, option(panel, one.text, one.metavar, *_flags(name))
            ],
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
    try:
        given = {"backbone": library.OnnxBackbone(**network)} if network else {}
        return library.Matcher(**given, **rest)
    except InputError as error:
        # The fix that the library names is an argument; here it is an option.
        raise InputError(re.sub(r"try layout='(\w+)'", r"try --layout \1", str(error))) from None
