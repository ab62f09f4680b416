"""What all commands share: options, printing, files, warnings, errors and exit codes.

Answers go to stdout and remarks to stderr. Files are refused before the work if they cannot be
written, and are whole or not there after it.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from frot._base.errors import InputError, MissingDependencyError, SolverError, require
from frot._base.files import FLOWS, check_writable, replacing

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from frot.problem.result import Status


class Exit(IntEnum):
    """Exit codes; an answer as good as asked for is 0."""

    FAILED = 1
    BAD_INPUT = 2
    NOT_CONVERGED = 3
    # What shells report for a process that Ctrl-C ended.
    INTERRUPTED = 130


# What files may end in, by what they hold.
ENDINGS = {
    "picture": (".png", ".svg", ".pdf", ".jpg", ".webp"),
    "report": (".html", ".htm"),
    "table": (".tsv", ".csv"),
    "save": (".npz",),
    "flow": FLOWS,
    "csv": (".csv",),
}


def option(panel: str | None, text: str, metavar: str | None = None, *flags: str) -> Any:
    """Return an option in a panel of the help; by default its flag is its name."""
    return typer.Option(*flags, help=text, metavar=metavar, rich_help_panel=panel)


def output(text: str) -> Any:
    """Return an option that names a file to write."""
    return option("Output", text, "FILE")


Picture = Annotated[Path | None, output("Write a picture: .png, .svg, .pdf, .jpg or .webp.")]
Report = Annotated[Path | None, output("Write a web page, .html.")]
TableFile = Annotated[Path | None, output("Write all rows, .tsv or .csv.")]
Save = Annotated[Path | None, output("Write the answer, .npz, for frot.load.")]
Json = Annotated[
    bool,
    option("Output", "Print all numbers as JSON, all else to stderr.", None, "--json"),
]
Quiet = Annotated[bool, option("Output", "Print warnings and errors only.", None, "--quiet", "-q")]


def examples(*lines: str) -> str:
    """Return what stands at the end of a command's help."""
    return "\n\n".join(["Examples:" if len(lines) > 1 else "Example:", *lines])


# The command that runs, as it was typed, and its options by the arguments of the library.
TYPED: ContextVar[str] = ContextVar("typed", default="")
OPTIONS: ContextVar[dict[str, str]] = ContextVar("options")


class Command(TyperCommand):
    """A command whose errors are one sentence and an exit code instead of a traceback.

    Warnings are a line each.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep what was typed."""
        TYPED.set(shlex.join([*ctx.command_path.split(), *args]))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        OPTIONS.set({part.name: part.opts[0] for part in self.params if part.opts[0][:1] == "-"})
        try:
            with warnings_as_lines():
                return super().invoke(ctx)
        except (InputError, MissingDependencyError) as error:
            complain(as_options(str(error)))
            raise typer.Exit(Exit.BAD_INPUT) from None
        except SolverError as error:
            complain(str(error))
            raise typer.Exit(Exit.FAILED) from None
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(Exit.INTERRUPTED) from None


# Arguments of Python in messages: keep='age', transpose=True, ids=
ARGUMENT = re.compile(r"\b(\w+)=('[^']*'|True|(?=[\s;,)]|$))")


def as_options(text: str) -> str:
    """Return a message of the library with its arguments as options of the command that runs.

    Examples
    --------
    >>> token = OPTIONS.set({"keep": "--keep", "ids": "--id", "transpose": "--transpose"})
    >>> as_options("ids: keep='age at birth' ranks it; eta=True; give transpose=True or ids=")
    "id: --keep 'age at birth' ranks it; eta=True; give --transpose or --id"
    >>> OPTIONS.reset(token)
    """
    options = OPTIONS.get({})
    head, colon, rest = text.partition(":")
    if colon and head in options:
        text = f"{options[head].lstrip('-')}:{rest}"

    def option_of(match: re.Match[str]) -> str:
        name, value = match.groups()
        if name not in options:
            return match[0]
        return options[name] if value in ("", "True") else shlex.join([options[name], value[1:-1]])

    return ARGUMENT.sub(option_of, text)


@dataclass(frozen=True)
class Output:
    """Where a command prints: its answer, its numbers and its remarks.

    With numbers on stdout nothing else is: what people read goes to stderr.

    Attributes
    ----------
    json : bool
        Whether stdout is for numbers.
    quiet : bool
        Whether only warnings, errors and those numbers are printed.
    """

    json: bool = False
    quiet: bool = False

    @property
    def bar(self) -> bool:
        """Whether to show how far a solver is."""
        return sys.stderr.isatty() and not self.quiet

    def console(self, *, stderr: bool = False) -> Console:
        """Make a console for wherever the stream goes now, which tests redirect."""
        from rich.console import Console

        return Console(stderr=stderr or self.json, highlight=False, quiet=self.quiet)

    def say(self, text: str, style: str = "") -> None:
        """Print a line of the answer, as it is: no markup, no wrapping of paths."""
        self.console().print(text, style=style, markup=False, soft_wrap=True)

    def remark(self, text: str) -> None:
        """Print a line that is not part of the answer."""
        self.console(stderr=True).print(text, style="dim", markup=False, soft_wrap=True)

    def wrote(self, *paths: Path | None) -> None:
        """Say which files were written, on stderr; None was not wanted."""
        for path in paths:
            if path is not None:
                self.remark(f"Wrote {path}")

    def numbers(self, content: dict[str, Any]) -> None:
        """Print all numbers, with the command that gave them, if anybody asked for them."""
        if self.json:
            content = {**_finite(content), "command": TYPED.get()}
            print(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))


def new_table() -> Table:
    """Make an empty table for a console."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAVY, pad_edge=False, collapse_padding=True)


def _finite(content: Any) -> Any:
    """Return content with null for NaN and infinity, which JSON does not have."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    unknown = isinstance(content, float) and not math.isfinite(content)
    return None if unknown else content


def warn(text: str) -> None:
    """Print a warning."""
    _tell("warning", "yellow", text)


def complain(text: str) -> None:
    """Print an error as one red sentence."""
    _tell("error", "red", text)


def _tell(kind: str, colour: str, text: str) -> None:
    from rich.console import Console
    from rich.text import Text

    line = Text.assemble((f"{kind}: ", f"bold {colour}"), (" ".join(text.split()), colour))
    # However quiet the command is.
    Console(stderr=True, highlight=False).print(line, soft_wrap=True)


# Warnings to developers, which Python does not show users either.
NOT_FOR_USERS = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Show each warning as a line, once, instead of as Python does."""
    shown = set()

    def show(message: Warning | str, *place: Any, **more: Any) -> None:
        text = as_options(str(message))
        if text not in shown:
            shown.add(text)
            warn(text)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for kind in NOT_FOR_USERS:
            warnings.simplefilter("ignore", kind)
        warnings.showwarning = show
        yield


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
    return int(Exit.INTERRUPTED if status.name == "INTERRUPTED" else Exit.NOT_CONVERGED)


def check_files(inputs: Sequence[Path] = (), **wanted: Path | None) -> None:
    """Refuse what could not be written, before an hour's work is lost to it.

    `wanted` are paths, or None, by what they are to hold; `inputs` must not be written over.

    Examples
    --------
    >>> check_files(picture=Path("plan.txt"))
    Traceback (most recent call last):
    ...
    frot.InputError: plan.txt must end in .png or .svg or .pdf or .jpg or .webp
    """
    for name, path in wanted.items():
        if path is None:
            continue
        check_writable(path)
        if path.suffix.lower() not in ENDINGS[name]:
            raise InputError(f"{path} must end in {' or '.join(ENDINGS[name])}")
        if path.resolve() in [source.resolve() for source in inputs]:
            raise InputError(f"{path} is read from; give the path of another file")
        if name == "picture":
            require("matplotlib.figure", "plot")
        if name == "report":
            require("jinja2", "plot")


def save_picture(draw: Callable[[], Any], path: Path | None) -> None:
    """Draw and write a picture, if one is wanted."""
    if path is not None:
        figure = draw()
        with replacing(path) as draft:
            figure.savefig(draft, dpi=150)
