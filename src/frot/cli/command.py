"""What all commands share: options, printing, JSON, files to write, warnings and exit codes.

`command` gives a function that Typer makes a command of ``--out``, ``--json``, ``--quiet``,
``--verbose``, stdin and examples. `option` declares any other option, and `option_words` and
`arguments` write options out again. Answers go to stdout and remarks to stderr; files are refused
before the work if they cannot be written, and complete after it.
"""

from __future__ import annotations

import gzip
import inspect
import json
import math
import re
import shlex
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand

from frot._base.errors import InputError, require
from frot._base.files import check_writable, make_folder, replacing
from frot.problem.adversary import CappedSimplex

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from frot.problem.result import Status

# A path that is stdin or stdout.
STREAM = "-"


@dataclass(frozen=True)
class RunningCommand:
    """Where a command's numbers go, how much it prints, and what its options are called.

    With numbers on stdout nothing else is: what people read goes to stderr.
    """

    numbers: Path | None = None
    quiet: bool = False
    verbose: bool = False
    # Arguments of the library that its messages may name, and the options that they are here.
    options: Mapping[str, str] = field(default_factory=dict)
    # Where what came on stdin is read from.
    spool: Path | None = None

    @property
    def streams(self) -> bool:
        """Whether stdout is for numbers."""
        return self.numbers is not None and str(self.numbers) == STREAM


NO_COMMAND = RunningCommand()
RUNNING: ContextVar[RunningCommand] = ContextVar("running", default=NO_COMMAND)


# Arguments of Python in messages: keep='age', transpose=True, ids=
ARGUMENT = re.compile(r"\b(\w+)=('[^']*'|True|(?=[\s;,)]|$))")


def as_options(text: str) -> str:
    """Return a message of the library with its arguments as options of the command that runs.

    The file that stdin was written to is called stdin.

    Examples
    --------
    >>> token = RUNNING.set(RunningCommand(options={"keep": "--keep", "ids": "--id"}))
    >>> as_options("keep='age at birth' ranks it; eta=True; give ids=")
    "--keep 'age at birth' ranks it; eta=True; give --id"
    >>> RUNNING.reset(token)
    """
    options, spool = RUNNING.get().options, RUNNING.get().spool
    if spool is not None:
        text = text.replace(str(spool), "stdin")

    def option_of(found: re.Match[str]) -> str:
        name, value = found.groups()
        words = [options.get(name, ""), value.strip("'")]
        return shlex.join(words[: 1 + (value not in ("", "True"))]) if name in options else found[0]

    return ARGUMENT.sub(option_of, text)


def console(*, stderr: bool = False) -> Console:
    """Make a console for wherever the stream goes now, which tests redirect."""
    from rich.console import Console

    how = RUNNING.get()
    return Console(stderr=stderr or how.streams, highlight=False, quiet=how.quiet)


def new_table() -> Table:
    """Make an empty table for `console`."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAVY, pad_edge=False, collapse_padding=True)


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
    how = RUNNING.get()
    if how.numbers is not None:
        text = json.dumps(_finite(content), indent=2, ensure_ascii=False, allow_nan=False)
        if how.streams:
            print(text)
        else:
            with replacing(how.numbers) as draft:
                draft.write_text(f"{text}\n", "utf-8")
            wrote(how.numbers)
    if call is not None and how.verbose:
        remark(f"In Python:\n\n{call.python}\n")


def _finite(content: Any) -> Any:
    """Return content with null for numbers that are none: JSON has no other word for them."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    unknown = isinstance(content, float) and not math.isfinite(content)
    return None if unknown else content


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
def warnings_as_lines() -> Iterator[None]:
    """Show each warning as a line, once, instead of as Python does."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for text in dict.fromkeys(str(warning.message) for warning in caught):
                warn(as_options(text))


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
TABLES = (".tsv", ".csv")
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
        with warnings_as_lines(), replacing(path) as draft:
            figure.savefig(draft, dpi=150)


WORST = "The COUNT worst groups share the weight: none has more than 1/COUNT."


def option(
    panel: str | None, text: str, metavar: str | None = None, *flags: str, **more: Any
) -> Any:
    """Return an option in a panel of the help; by default its flag is its name."""
    return typer.Option(*flags, help=text, metavar=metavar, rich_help_panel=panel, **more)


def parameter(name: str, kind: Any, default: Any = None) -> inspect.Parameter:
    """Return a parameter of a command that is an option."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def take(run: Callable[..., None], parameters: Sequence[inspect.Parameter]) -> None:
    """Let a function of any keywords take these parameters: Typer reads both attributes."""
    vars(run)["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {one.name: one.annotation for one in parameters}


Progress = Annotated[
    bool | None, option("Output", "Show a bar, or lines in a file; by default on a terminal.")
]


def bar(progress: bool | None) -> bool:
    """Whether to show a bar: on a terminal, or by ``--verbose``, unless it was said."""
    how = RUNNING.get()
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


class Writes(NamedTuple):
    """A file that a command can write."""

    # Of the function, that takes the path.
    parameter: str
    # By which ``--out`` knows it.
    endings: tuple[str, ...]
    # What it is called in a folder.
    name: str


JSON = "Write all numbers as JSON to FILE, or to stdout: --json - (or a bare --json)."
OUT = "Write to a file what its ending says ({}), or all of that into a folder; repeatable."
Json = Annotated[Path | None, option("Output", JSON, "FILE", "--json")]
Quiet = Annotated[bool, option("Output", "Print warnings and errors only.", None, "--quiet", "-q")]
Verbose = Annotated[
    bool,
    option(
        "Output",
        "Show a bar, the time, the same in Python, and where an error comes from.",
        None,
        "--verbose",
        "-v",
    ),
]


class CommandWithJson(TyperCommand):
    """A command whose ``--json`` without a file means stdout."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put a dash where ``--json`` has no file."""
        words: list[str] = []
        for at, word in enumerate(args):
            words.append(word)
            after = args[at + 1 : at + 2]
            if word == "--json" and (not after or (after[0][:1] == "-" and after[0] != STREAM)):
                words.append(STREAM)
        return super().parse_args(ctx, words)


def command(
    *examples: str,
    writes: Sequence[Writes] = (),
    folder: str | None = None,
    options: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that all have, and examples at the end of its help.

    A path that is a dash is read from stdin, and the command gets the path of what was read. It
    takes each path that it `writes` as a parameter: what ``--out`` can write besides numbers, which
    go to `folder` if nobody says. `options` are what `as_options` replaces in messages.
    """

    def decorate(work: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(work, eval_str=True).parameters
        files = (*writes, Writes("json", NUMBERS, "numbers.json"))
        added: dict[str, Any] = {"json": Json, "quiet": Quiet, "verbose": Verbose}
        if writes:
            endings = " ".join(one.endings[0] for one in files)
            out = option("Output", OUT.format(endings), "FILE|FOLDER", "--out")
            added = {"out": Annotated[list[Path] | None, out], **added}
        parameters = [one.replace(kind=one.KEYWORD_ONLY) for one in own.values()]
        parameters += [
            parameter(name, kind, False if name in ("quiet", "verbose") else None)
            for name, kind in added.items()
        ]

        @wraps(work)
        def run(**given: Any) -> None:
            said = {name: given.pop(name) for name in added}
            given["json"] = said["json"]
            outs = said.get("out") or []
            if folder is not None and not outs and not any(given[one.parameter] for one in writes):
                outs = [Path(folder)]
            _put(given, files, outs)
            to = given.pop("json")
            if to is None or str(to) != STREAM:
                check_files((to, NUMBERS))
            with ExitStack() as stack:
                spool = None
                for name, value in given.items():
                    if isinstance(value, Path) and str(value) == STREAM:
                        given[name] = spool = stack.enter_context(spooled())
                how = bool(said["quiet"]), bool(said["verbose"])
                running = RunningCommand(to, *how, options, spool)
                stack.callback(RUNNING.reset, RUNNING.set(running))
                stack.enter_context(_clock(running.verbose))
                try:
                    work(**given)
                except InputError as error:
                    raise InputError(as_options(str(error))) from None

        take(run, parameters)
        head = "Examples:" if len(examples) > 1 else "Example:"
        vars(run)["epilog"] = "\n\n".join([head, *examples]) if examples else None
        return run

    return decorate


def _put(given: dict[str, Any], files: Sequence[Writes], outs: Sequence[Path]) -> None:
    """Set the parameters that ``--out`` stands for."""
    for path in outs:
        ending = path.suffix.lower()
        if path.is_dir() or not ending:
            make_folder(path)
            for one in files:
                if given.get(one.parameter) is None:
                    given[one.parameter] = path / one.name
            continue
        found = [one.parameter for one in files if ending in one.endings]
        if not found:
            known = " or ".join(end for one in files for end in one.endings)
            raise InputError(f"{path} must end in {known}, or be a folder")
        if given.get(found[0]) is not None:
            raise InputError(f"out: {path} and {given[found[0]]} hold the same; give one of them")
        given[found[0]] = path


@contextmanager
def _clock(verbose: bool) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    except Exception as error:
        if verbose and not isinstance(error, typer.Exit):
            traceback.print_exc()
        raise
    finally:
        if verbose:
            remark(f"{time.perf_counter() - start:.2f} s")


def typed(path: Path) -> Path:
    """Return a path as it was typed: a dash for what was read from stdin.

    Examples
    --------
    >>> [typed(Path(name)).name for name in ("/tmp/frot-x/stdin.csv", "b.csv")]
    ['-', 'b.csv']
    """
    spool = path.name.startswith("stdin.") and path.parent.name.startswith(PREFIX)
    return Path(STREAM) if spool else path


PREFIX = "frot-"


@contextmanager
def spooled() -> Iterator[Path]:
    """Yield the path of a file with what is on stdin, named by what it looks like."""
    content = sys.stdin.buffer.read()
    if not content:
        raise InputError("stdin: is empty; give a table or a photograph there, or a path")
    try:
        ending = ending_of(content)
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"stdin: is damaged, or not all of it came: {error}") from None
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        path = Path(folder) / f"stdin{ending}"
        path.write_bytes(content)
        yield path


# What files begin with.
MAGIC = {
    b"\x93NUMPY": ".npy",
    b"PAR1": ".parquet",
    b"\x89HDF": ".h5ad",
    b"\x89PNG": ".png",
    b"\xff\xd8\xff": ".jpg",
    b"RIFF": ".webp",
    b"#1.2": ".gct",
}


def ending_of(content: bytes) -> str:
    r"""Return the ending that a file of this content has.

    Examples
    --------
    >>> ending_of(b"a,b\n1,2\n"), ending_of(b"a\tb\n"), ending_of(gzip.compress(b"a,b"))
    ('.csv', '.tsv', '.csv.gz')
    """
    for magic, ending in MAGIC.items():
        if content.startswith(magic):
            return ending
    if content.startswith(b"\x1f\x8b"):
        with gzip.open(BytesIO(content)) as file:
            return f"{ending_of(file.read(65536))}.gz"
    if content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(BytesIO(content)) as file:
            return ".npz" if any(name.endswith(".npy") for name in file.namelist()) else ".xlsx"
    return ".tsv" if b"\t" in content.partition(b"\n")[0] else ".csv"
