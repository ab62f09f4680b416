"""Options that commands share, each declared once, and what they stand for."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from frot._base.errors import InputError
from frot.problem.adversary import CappedSimplex

__all__ = ["WORST", "Progress", "bar", "capped", "option"]

WORST = "The COUNT worst groups share the weight: none has more than 1/COUNT."


def option(
    panel: str | None, text: str, metavar: str | None = None, *flags: str, **more: Any
) -> Any:
    """Return an option in a panel of the help; by default its flag is its name."""
    return typer.Option(*flags, help=text, metavar=metavar, rich_help_panel=panel, **more)


Progress = Annotated[bool | None, option("Output", "Show a bar; by default on a terminal.")]


def bar(progress: bool | None) -> bool:
    """Whether to show a bar: on a terminal, unless it was said."""
    return sys.stderr.isatty() if progress is None else progress


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
