"""A call written out, as words of a command line and in Python, so that a page can show both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frot.problem.adversary import CappedSimplex

__all__ = ["arguments", "given", "option_words"]


def given(**choices: tuple[Any, Any]) -> dict[str, Any]:
    """Return the options that differ from their defaults, so that the call stays readable.

    Examples
    --------
    >>> given(eta=(0.5, 0.0), tol=(None, None))
    {'eta': 0.5}
    """
    return {name: value for name, (value, default) in choices.items() if value != default}


def arguments(options: Mapping[str, Any]) -> list[str]:
    """Return options as arguments in Python.

    Examples
    --------
    >>> arguments({"eta": 0.5, "label": "class"})
    ['eta=0.5', "label='class'"]
    >>> arguments({"adversary": CappedSimplex(3)})
    ['adversary=frot.CappedSimplex(3)']
    """
    return [f"{name}={_code(value)}" for name, value in options.items()]


def _code(value: Any) -> str:
    return f"frot.CappedSimplex({value.k})" if isinstance(value, CappedSimplex) else repr(value)


def option_words(options: Mapping[str, Any]) -> list[str]:
    """Return options as words of a command line.

    Examples
    --------
    >>> option_words({"max_iter": 5, "hough": False, "mean": [104.0, 117.5]})
    ['--max-iter', '5', '--no-hough', '--mean', '104,117.5']
    >>> option_words({"adversary": CappedSimplex(3)})
    ['--worst', '3']
    """
    words = []
    for name, value in options.items():
        flag = name.replace("_", "-")
        if isinstance(value, CappedSimplex):
            words += ["--worst", str(value.k)]
        elif isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", _text(value)]
    return words


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return f"{value:.15g}" if isinstance(value, float) else str(value)
