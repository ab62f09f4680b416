"""What every experiment shares: options, pieces of work that resume, claims, tables, figures.

An experiment is a function of a `Run` and an `Experiment` that declares it. A whole script::

    from __future__ import annotations

    import frot
    from _runner import Experiment, Run

    def measure(task: tuple[int, int]) -> float:
        n, seed = task
        return frot.solve(*frot.toy(n, seed)).gap

    def run(run: Run) -> None:
        tasks = {f"{n}": (n, run.seed) for n in (10, 20, run.options.n)}
        gaps = run.pieces("problems", tasks, measure)
        run.table("Gaps", ["n", "gap"], [[n, f"{gap:.0e}"] for n, gap in gaps.items()])
        run.claim("Gaps are small.", {f"n = {n}: {gap:.0e}": gap < 1e-6 for n, gap in gaps.items()})

    EXPERIMENT = Experiment("gaps", "Intervals are tight.", run, options={"n": (40, "most points")})

    if __name__ == "__main__":
        EXPERIMENT.main()

``python experiments/gaps.py --n 80`` writes gaps.json, gaps.md and the figures to ``out/``;
``python experiments`` runs every script of this folder (see ``_report.py``).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import frot
from frot._base.errors import InputError, MissingDependencyError, SolverError
from frot._base.files import make_folder, replacing
from frot._base.fingerprint import fingerprint
from frot._base.parallel import spread
from frot._base.store import Store
from frot.solvers.progress import counting_bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Task = TypeVar("Task")
# Default and help of every experiment's options; an experiment adds its own.
COMMON: dict[str, tuple[Any, str]] = {
    "seed": (0, "seed of random points, splits or noise"),
    "workers": (os.cpu_count() or 1, "processes"),
    "out": (Path("out"), "folder of results, and of finished pieces of work"),
    "data": (None, "folder of the data sets; by default what FROT_DATA names"),
}


# What a check found; None is where numbers decide nothing, such as within their standard errors.
WORDS = {True: "yes", False: "no", None: "undecided"}


@dataclass(frozen=True)
class Claim:
    """A statement, and the checks that it was put to: numbers in words, and whether they hold."""

    text: str
    checks: Mapping[str, bool | None]
    # Why there is no check.
    reason: str = ""

    @property
    def verdict(self) -> str:
        """Say "holds", "in part", "does not hold", "undecided"; "not checked" without a check."""
        held = [holds for holds in self.checks.values() if holds is not None]
        if not held:
            return "undecided" if self.checks else "not checked"
        if all(held):
            # What errors leave open is no evidence.
            return "holds" if len(held) == len(self.checks) else "in part"
        return "in part" if any(held) else "does not hold"


@dataclass(frozen=True)
class Table:
    """Numbers as text, in rows whose first cell is the row's name."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure, what is on it, and its file's name."""

    name: str
    text: str
    figure: Figure


@dataclass(eq=False)
class Run:
    """One run of an experiment: its options, and what it finds."""

    experiment: Experiment
    # The common options and the experiment's own, by name.
    options: argparse.Namespace
    # Everything that was computed, for NAME.json.
    numbers: dict[str, Any] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def seed(self) -> int:
        """The option ``--seed``."""
        return self.options.seed

    def claim(
        self, text: str, holds: bool | Mapping[str, bool | None] | None, detail: str = ""
    ) -> None:
        """State a claim: whether it holds, and the numbers in words; None where not checked.

        `holds` may be several checks, by their numbers in words; of these None is undecided.
        """
        if isinstance(holds, Mapping):
            self.claims.append(Claim(text, dict(holds)))
        elif holds is None:
            self.claims.append(Claim(text, {}, detail))
        else:
            self.claims.append(Claim(text, {detail: holds}))

    def table(
        self, title: str, header: Sequence[str], rows: Iterable[Sequence[Any]], note: str = ""
    ) -> None:
        """Add a table; cells are written as `str` writes them."""
        self.tables.append(Table(title, header, [list(map(str, row)) for row in rows], note))

    def figure(self, figure: Figure, text: str, name: str = "") -> None:
        """Add a figure, with `text` for what is on it; a second one needs a `name`."""
        word = f"-{name}" if name else ""
        self.pictures.append(Picture(f"{self.experiment.name}{word}.png", text, figure))

    def note(self, text: str) -> None:
        """Say what a reader of the claims should know."""
        self.notes.append(text)

    def pieces(
        self,
        what: str,
        tasks: Mapping[str, Task],
        do: Callable[[Task], Any],
        *,
        depends: Any = None,
        prepare: Callable[[], object] = bool,
    ) -> dict[str, Any]:
        """Return ``do(task)``, an array or a JSON value, for every task by its key.

        Pieces are done in ``--workers`` processes and kept at once, in ``out/NAME.sqlite``: what
        an earlier run finished, even one that was killed, is not done again. `what` names them,
        in the plural. A kept piece is used where key, seed, `what`, `depends` (data, options: all
        that results depend on and keys do not say), and version of frot are the same.
        `prepare` is called in every process first, to load what is large.
        """
        work = fingerprint(what=what, seed=self.seed, depends=depends, version=frot.__version__)
        name, out = self.experiment.name, self.options.out
        path = None if out is None else make_folder(out) / f"{name}.sqlite"
        with Store(path, f"the experiment {name}", {}) as store:
            done = {key: value for key, value in store.finished(work).items() if key in tasks}
            missing = [(key, task) for key, task in tasks.items() if key not in done]
            count, before = len(tasks), len(done)
            bar = counting_bar(
                f"{name}: {what}", count, float(count), enabled=True, before=(before, float(before))
            )
            keyed = partial(_keyed, do)
            try:
                with bar as show:
                    for key, value in spread(keyed, missing, self.options.workers, prepare, True):
                        store.add(key, value, work)
                        done[key] = value
                        show(1, 1.0)
            except KeyboardInterrupt:
                if path is not None:
                    say(f"finished {what} are kept in {path}; the same command goes on from there")
                raise
        return {key: done[key] for key in tasks}

    @property
    def markdown(self) -> str:
        """Claims, tables and notes."""
        parts = [f"# {self.experiment.name}", self.experiment.about]
        for claim in self.claims:
            checks = [f"- {WORDS[holds]}: {text}" for text, holds in claim.checks.items() if text]
            checks += [f"- {claim.reason}"] if claim.reason else []
            parts.append("\n".join([f"**{claim.verdict}**: {claim.text}", "", *checks]).rstrip())
        for table in self.tables:
            parts += [f"## {table.title}", table.note, markdown_table(table.header, table.rows)]
        parts.append("\n".join(f"- {note}" for note in self.notes))
        return "\n\n".join(filter(None, parts)) + "\n"

    def write(self, folder: Path) -> None:
        """Write NAME.json, NAME.md and the figures."""
        content = {
            "claims": [{**vars(claim), "verdict": claim.verdict} for claim in self.claims],
            "tables": [vars(table) for table in self.tables],
            "notes": self.notes,
            "numbers": self.numbers,
        }
        text = json.dumps(content, indent=2, allow_nan=False, default=_plain, ensure_ascii=False)
        folder, name = make_folder(folder), self.experiment.name
        write_text(folder / f"{name}.json", text + "\n")
        write_text(folder / f"{name}.md", self.markdown)
        for picture in self.pictures:
            with replacing(folder / picture.name) as draft:
                picture.figure.savefig(draft, dpi=150)


@dataclass(frozen=True)
class Experiment:
    """What a script declares: a name, what it puts to the test, how it runs, and what it needs."""

    name: str
    # A sentence.
    about: str
    run: Callable[[Run], None]
    # The script's own: default and help by name. A tuple is a list of words, by commas.
    options: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    # Raises `InputError` (with the place looked in) or `MissingDependencyError`, before any work.
    needs: Callable[[argparse.Namespace], object] = bool

    def complete(self, options: Mapping[str, Any]) -> argparse.Namespace:
        """Return its options, by default where they are not given; without an `out`, None."""
        values = {name: default for name, (default, _) in (COMMON | {**self.options}).items()}
        values["out"] = None
        values |= {name: value for name, value in options.items() if name in values}
        return argparse.Namespace(**values)

    def __call__(self, **options: Any) -> Run:
        """Run it with these options; without an `out`, nothing is written."""
        run = Run(self, self.complete(options))
        self.needs(run.options)
        self.run(run)
        if run.options.out is not None:
            run.write(run.options.out)
        return run

    def main(self) -> None:
        """Run it as a script: 0 computed, 1 failed, 2 bad input, 130 interrupted."""
        try:
            options = parse(self.about, [self]).parse_args()
            print(self(**vars(options)).markdown)
            say(f"wrote {options.out / self.name}.*")
        except SolverError as error:
            sys.exit(f"{self.name}: {error}")
        except (InputError, MissingDependencyError) as error:
            say(f"{self.name}: {error}")
            sys.exit(2)
        except KeyboardInterrupt:
            sys.exit(130)


def parse(about: str, experiments: Iterable[Experiment]) -> argparse.ArgumentParser:
    """Return a parser of the common options and the experiments' own; absent is left out."""
    parser = argparse.ArgumentParser(description=about, argument_default=argparse.SUPPRESS)
    options = dict(COMMON)
    for experiment in experiments:
        options |= experiment.options
    for name, (default, words) in options.items():
        flag = f"--{name.replace('_', '-')}"
        if default not in (None, ()):
            shown = ",".join(default) if isinstance(default, tuple) else default
            words = f"{words} ({shown})"
        if isinstance(default, bool):
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, help=words)
        else:
            parser.add_argument(flag, type=_kind(name, default), help=words)
    parser.set_defaults(out=COMMON["out"][0])
    return parser


def _kind(name: str, default: Any) -> Callable[[str], Any]:
    """What makes an option's value of its text, by its default."""
    if isinstance(default, int):
        return partial(_whole, 0 if name == "seed" else 1)
    if isinstance(default, tuple):
        return _words
    return Path if default is None else type(default)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def write_text(path: Path, text: str) -> None:
    """Write a file that is whole or not there."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def say(text: str) -> None:
    """Write a line to stderr, which is not the result."""
    print(text, file=sys.stderr, flush=True)


def standard_error(values: Any) -> float:
    """Return the standard error of a mean; NaN of a single value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def _keyed(do: Callable[[Task], Any], item: tuple[str, Task]) -> tuple[str, Any]:
    key, task = item
    return key, do(task)


def _whole(least: int, text: str) -> int:
    if not text.lstrip("-").isdigit() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of {least} or more")
    return int(text)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else np.asarray(value).tolist()
