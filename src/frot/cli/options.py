"""Options that commands share, each declared once, and what they stand for."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from frot._base.errors import InputError
from frot.cli.console import voice
from frot.problem.adversary import CappedSimplex

__all__ = ["WORST", "Progress", "arguments", "bar", "capped", "given", "option", "option_words"]

WORST = "The COUNT worst groups share the weight: none has more than 1/COUNT."


def option(
    panel: str | None, text: str, metavar: str | None = None, *flags: str, **more: Any
) -> Any:
    """Return an option in a panel of the help; by default its flag is its name."""
    return typer.Option(*flags, help=text, metavar=metavar, rich_help_panel=panel, **more)


Progress = Annotated[
    bool | None, option("Output", "Show a bar, or lines in a file; by default on a terminal.")
]


def bar(progress: bool | None) -> bool:
    """Whether to show a bar: on a terminal, or by ``--verbose``, unless it was said."""
    how = voice()
    shown = how.verbose or (sys.stderr.isatty() and not how.quiet)
    return shown if progress is None else progress


def capped(worst: int | None, count: int) -> CappedSimplex | None:
    """Return the adversary that ``--worst`` asks for, of so many groups; None for the usual one.

    Examples
    --------
    >>> capped(None, 5), capped(2, 5).k
    (None, 2)
    """
    if worst is None:
        return None
    if not 1 <= worst <= count:
        raise InputError(f"worst: {worst} of {count} groups cannot share it; give 1 to {count}")
    return CappedSimplex(worst)


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
    if isinstance(value, CappedSimplex):
        return f"frot.CappedSimplex({value.k})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_code, value))})"
    return 'float("inf")' if value == float("inf") else repr(value)


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
        flag = "seed" if name == "random_state" else name.replace("_", "-")
        if isinstance(value, CappedSimplex):
            words += ["--worst", str(value.k)]
        elif isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", _text(value)]
    return words


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return f"{value:.15g}" if isinstance(value, float) else str(value)
