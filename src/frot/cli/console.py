"""What commands say and write.

Answers go to stdout and remarks to stderr; exit codes; files that are refused before the work if
they cannot be written, and complete after it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frot._base.errors import InputError, require
from frot._base.files import check_writable, replacing

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from frot.problem.result import Status

__all__ = [
    "BAD_INPUT",
    "FAILED",
    "INTERRUPTED",
    "NOT_CONVERGED",
    "NUMBERS",
    "PAGES",
    "PICTURES",
    "STREAM",
    "Voice",
    "check_files",
    "complain",
    "console",
    "exit_code",
    "new_table",
    "numbers",
    "remark",
    "save_json",
    "save_picture",
    "say",
    "show_summary",
    "speaking",
    "voice",
    "warn",
    "warnings_as_lines",
    "wrote",
]


# A path that is stdin or stdout.
STREAM = "-"


@dataclass(frozen=True)
class Voice:
    """How a command speaks: where numbers go, and how much it says.

    With numbers on stdout nothing else is: what people read goes to stderr.
    """

    numbers: Path | None = None
    quiet: bool = False
    verbose: bool = False

    @property
    def streams(self) -> bool:
        """Whether stdout is for numbers."""
        return self.numbers is not None and str(self.numbers) == STREAM


_VOICE: ContextVar[Voice | None] = ContextVar("voice", default=None)


def voice() -> Voice:
    """Return how the command that runs now speaks."""
    return _VOICE.get() or Voice()


@contextmanager
def speaking(how: Voice) -> Iterator[None]:
    """Let a command speak so."""
    token = _VOICE.set(how)
    try:
        yield
    finally:
        _VOICE.reset(token)


def console(*, stderr: bool = False) -> Console:
    """Make a console for wherever the stream goes now, which tests redirect."""
    from rich.console import Console

    how = voice()
    return Console(stderr=stderr or how.streams, highlight=False, quiet=how.quiet)


def new_table(**look: Any) -> Table:
    """Make an empty table for `console`."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAVY, pad_edge=False, collapse_padding=True, **look)


def say(text: str, style: str = "") -> None:
    """Print a line of the answer, as it is: no markup, no wrapping of paths."""
    console().print(text, style=style, markup=False, soft_wrap=True)


def remark(text: str) -> None:
    """Print a line that is not part of the answer."""
    console(stderr=True).print(text, style="dim", markup=False, soft_wrap=True)


def wrote(*paths: Path | None) -> None:
    """Say which files were written, on stderr; None was not wanted."""
    for path in paths:
        if path is not None:
            remark(f"Wrote {path}")


def numbers(content: dict[str, Any], call: Any = None) -> None:
    """Hand over all numbers: they go where ``--json`` says.

    With the `command` and the `python` of a call that gives them, shown to whoever is verbose.
    """
    if call is not None:
        content = {**content, "command": call.command, "python": call.python}
    to = voice().numbers
    if voice().streams:
        print(_json(content))
    else:
        save_json(content, to)
        wrote(to)
    if call is not None and voice().verbose:
        remark(f"In Python:\n\n{call.python}\n")


def show_summary(text: str, status: Status) -> None:
    """Print the summary of a result: its heading bold, its status in colour."""
    from rich.text import Text

    lines = Text(text)
    lines.highlight_regex(r"^\S.*", "bold")
    lines.highlight_words([f"{status}:"], f"bold {'green' if status.ok else 'yellow'}")
    lines.highlight_regex(r"(?m)^  (value|interval|status|solver|plan|kept|groups)\b", "dim")
    console().print(lines, soft_wrap=True)


def warn(text: str) -> None:
    """Print a warning."""
    _tell("warning", "yellow", text)


def complain(text: str) -> None:
    """Print an error as one red sentence."""
    _tell("error", "red", text)


@contextmanager
def warnings_as_lines(write: Callable[[str], str] = str) -> Iterator[None]:
    """Show each warning as a line, once, instead of as Python does; `write` may reword it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for text in dict.fromkeys(str(warning.message) for warning in caught):
                warn(write(text))


def _tell(kind: str, colour: str, text: str) -> None:
    from rich.console import Console
    from rich.text import Text

    line = Text.assemble((f"{kind}: ", f"bold {colour}"), (" ".join(text.split()), colour))
    # However quiet the command is.
    Console(stderr=True, highlight=False).print(line, soft_wrap=True)


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


PICTURES = (".png", ".svg", ".pdf", ".jpg", ".webp")
PAGES = (".html", ".htm")
NUMBERS = (".json",)


def check_files(
    *wanted: tuple[Path | None, tuple[str, ...]],
    inputs: Sequence[Path] = (),
    called: str = "read from",
) -> None:
    """Refuse what could not be written, before an hour's work is lost to it.

    `wanted` are paths, or None, with the suffixes they may have; without suffixes any will do.
    `inputs`, in messages `called` so, must not be written over.

    Examples
    --------
    >>> check_files((Path("plan.txt"), PICTURES))
    Traceback (most recent call last):
    ...
    frot.InputError: plan.txt must end in .png or .svg or .pdf or .jpg or .webp
    """
    for path, kinds in wanted:
        if path is None:
            continue
        check_writable(path)
        if kinds and path.suffix.lower() not in kinds:
            raise InputError(f"{path} must end in {' or '.join(kinds)}")
        if path.resolve() in [one.resolve() for one in inputs]:
            raise InputError(f"{path} is {called}; give the path of another file")
        if kinds is PICTURES:
            require("matplotlib.figure", "plot")


def save_picture(draw: Callable[[], Any], path: Path | None) -> None:
    """Draw and write a picture, if one is wanted."""
    if path is not None:
        figure = draw()
        with replacing(path) as draft:
            figure.savefig(draft, dpi=150)


def save_json(content: Any, path: Path | None) -> None:
    """Write numbers, if they are wanted."""
    if path is not None:
        with replacing(path) as draft:
            draft.write_text(_json(content) + "\n", "utf-8")


def _json(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
