"""What commands say, answers to stdout and remarks to stderr, and what their exit codes mean."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from frot.problem.status import Status

__all__ = [
    "BAD_INPUT",
    "FAILED",
    "INTERRUPTED",
    "NOT_CONVERGED",
    "complain",
    "console",
    "exit_code",
    "remark",
    "say",
    "warn",
    "warnings_as_lines",
]


def console(*, stderr: bool = False) -> Console:
    """Make a console for wherever the stream goes now, which tests redirect."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def say(text: str, style: str = "") -> None:
    """Print a line of the answer, as it is: no markup, no wrapping of paths."""
    console().print(text, style=style, markup=False, soft_wrap=True)


def remark(text: str) -> None:
    """Print a line that is not part of the answer."""
    console(stderr=True).print(text, style="dim", markup=False, soft_wrap=True)


def warn(text: str) -> None:
    """Print a warning."""
    _tell("warning", "yellow", text)


def complain(text: str) -> None:
    """Print an error as one red sentence."""
    _tell("error", "red", text)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Show each warning as a line, once, instead of as Python does."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        warn(text)


def _tell(kind: str, colour: str, text: str) -> None:
    from rich.text import Text

    line = Text.assemble((f"{kind}: ", f"bold {colour}"), (" ".join(text.split()), colour))
    console(stderr=True).print(line, soft_wrap=True)


FAILED = 1
BAD_INPUT = 2
NOT_CONVERGED = 3
# What shells report for a process that Ctrl-C ended.
INTERRUPTED = 130


def exit_code(status: Status) -> int:
    """Return 0 for an answer as good as asked for, and otherwise why it is not.

    Examples
    --------
    >>> import frot
    >>> [exit_code(status) for status in (frot.Status.CONVERGED, frot.Status.TIME_LIMIT)]
    [0, 3]
    """
    if status.ok:
        return 0
    return INTERRUPTED if status.name == "INTERRUPTED" else NOT_CONVERGED
