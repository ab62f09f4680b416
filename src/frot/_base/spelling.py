"""American spellings of arguments that are spelt the British way."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

SECOND_NAMES = {
    "normalise": "normalize",
    "normalise_weights": "normalize_weights",
    "colour": "color",
}

Call = TypeVar("Call", bound=Callable[..., Any])


def second_names(call: Call) -> Call:
    """Let a function take its arguments by their American spelling too.

    The signature that `inspect` and type checkers see keeps the first names.

    Examples
    --------
    >>> @second_names
    ... def draw(n, colour="red"):
    ...     return n, colour
    >>> draw(3, color="blue")
    (3, 'blue')
    >>> draw(3, colour="red", color="blue")
    Traceback (most recent call last):
    ...
    TypeError: draw() got colour and color, which are one argument
    """
    parameters = inspect.signature(call).parameters
    passes_on = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    second = {new: old for old, new in SECOND_NAMES.items() if passes_on or old in parameters}

    @wraps(call)
    def run(*args: Any, **given: Any) -> Any:
        for name in second.keys() & given.keys():
            if second[name] in given:
                raise TypeError(
                    f"{call.__name__}() got {second[name]} and {name}, which are one argument"
                )
            given[second[name]] = given.pop(name)
        return call(*args, **given)

    return run  # pyright: ignore[reportReturnType]
