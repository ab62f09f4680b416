"""Arguments with a second name: American spellings, and `seed` for `random_state`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from frot._base.errors import InputError

__all__ = ["SECOND_NAMES", "second_names"]

SECOND_NAMES = {
    "normalise": "normalize",
    "normalise_weights": "normalize_weights",
    "colour": "color",
    "random_state": "seed",
}

Call = TypeVar("Call", bound=Callable[..., Any])


def second_names(call: Call) -> Call:
    """Let a function take its arguments by their second names too, silently.

    Only those that its signature has, or all of them where it passes keywords on. The signature
    that `inspect` and type checkers see keeps the first names.

    Examples
    --------
    >>> @second_names
    ... def draw(n, random_state=0, colour="red"):
    ...     return n, random_state, colour
    >>> draw(3, seed=7, color="blue")
    (3, 7, 'blue')
    >>> draw(3, seed=7, random_state=8)
    Traceback (most recent call last):
    ...
    frot.InputError: seed: is random_state by another name; give one of them
    """
    parameters = inspect.signature(call).parameters
    passes_on = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    second = {
        name: first for first, name in SECOND_NAMES.items() if passes_on or first in parameters
    }

    @wraps(call)
    def run(*args: Any, **given: Any) -> Any:
        for name in second.keys() & given.keys():
            if second[name] in given:
                raise InputError(f"{name}: is {second[name]} by another name; give one of them")
            given[second[name]] = given.pop(name)
        return call(*args, **given)

    return run  # pyright: ignore[reportReturnType]
