"""What experiments have in common: claims, needs, options, answers, and the paper's algorithms.

Runs that take long resume: what is finished is in a store, by a fingerprint of all that it depends
on (`finish`).
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from frot._base.errors import ConvergenceWarning
from frot._base.files import make_folder, replacing
from frot._base.fingerprint import fingerprint
from frot._base.parallel import spread
from frot._base.store import Store
from frot.api.solve import solve
from frot.plans.plan import Plan
from frot.problem.result import Result
from frot.solvers import FrankWolfe
from frot.solvers.oracles import NetworkSimplex, Sinkhorn
from frot.solvers.progress import counting_bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class RunOptions:
    """What a run is asked for; None leaves the choice to the experiment."""

    # Of random points, splits or noise.
    seed: int = 0
    # Points in each cloud.
    n: int | None = None
    # Of gene expression; sets of photographs, too.
    splits: int | None = None
    sets: Sequence[str] | None = None
    # Of photographs.
    pairs: int | None = None
    networks: Sequence[str] | None = None
    regret: bool | None = None
    # Processes.
    workers: int = 1
    # Where the data sets are.
    data: Path | None = None
    # Where finished pieces are kept, so that a stopped run goes on; without it nothing is.
    folder: Path | None = None
    # Show a bar.
    progress: bool = False


@dataclass(frozen=True)
class Experiment:
    """One entry of the registry."""

    # As on the command line, and of the files.
    name: str
    # What it puts to the test, in a sentence.
    about: str
    # Takes fields of `RunOptions` by name, has defaults for those that may be None, and resumes
    # from `folder`.
    run: Callable[..., Reproduction]
    # Raises `InputError` or `MissingDependencyError` with the reason where data or a library is
    # lacking, before any work.
    check: Callable[[RunOptions], object] = bool
    # What data it needs, in words; empty if none.
    needs: str = ""
    # What finished pieces are, where it keeps any.
    pieces: str = ""
    # Whether its claims are the paper's.
    papers: bool = True

    @property
    def takes(self) -> list[str]:
        """The fields of `RunOptions` that it has a use for."""
        known = inspect.signature(self.run).parameters
        return [one.name for one in fields(RunOptions) if one.name in known]

    def __call__(self, options: RunOptions) -> Reproduction:
        """Run it with what is asked for; what is None is left to its own defaults."""
        given = {name: getattr(options, name) for name in self.takes}
        return self.run(**{name: value for name, value in given.items() if value is not None})


def standard_error(values: Any) -> float | None:
    """Return the standard error of a mean over draws, splits or pairs; None of a single one.

    Examples
    --------
    >>> standard_error([0.0, 2.0]), standard_error([1.0])
    (1.0, None)
    """
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def with_error(value: float, error: float | None, form: str) -> str:
    """Write a number and its standard error, where there is one.

    Examples
    --------
    >>> with_error(-3.14, 1.23, "+.1f"), with_error(10.0, None, "+.1f")
    ('-3.1 ± 1.2', '+10.0')
    """
    return f"{value:{form}}" + ("" if error is None else f" ± {error:{form.lstrip('+')}}")


@dataclass(frozen=True)
class Check:
    """One statement that the numbers bear out or not, with those numbers in words."""

    figures: str
    holds: bool


@dataclass(frozen=True)
class Verdict:
    """A claim and the checks it was put to; `kind` is what `figure` is the name of.

    Examples
    --------
    >>> checks = (Check("0.9999 or more: it is 1.0", True), Check("at most 5: it is 7", False))
    >>> print(Verdict("1", "FROT works", checks).line)
    Figure 1: partly reproduced. yes: 0.9999 or more: it is 1.0; no: at most 5: it is 7.
    """

    figure: str
    claim: str
    checks: tuple[Check, ...]
    kind: str = "Figure"

    @property
    def heading(self) -> str:
        """What it is about, and the outcome."""
        return f"{self.kind} {self.figure}: {self.outcome}"

    @property
    def outcome(self) -> str:
        """Say "reproduced", "partly reproduced" or "not reproduced"."""
        held = [check.holds for check in self.checks]
        if all(held):
            return "reproduced"
        return "partly reproduced" if any(held) else "not reproduced"

    @property
    def lines(self) -> list[str]:
        """Each check with yes or no."""
        return [f"{'yes' if check.holds else 'no'}: {check.figures}" for check in self.checks]

    @property
    def line(self) -> str:
        """The verdict in one line."""
        return f"{self.heading}. {'; '.join(self.lines)}."

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "figure": self.figure,
            "claim": self.claim,
            "outcome": self.outcome,
            "checks": [{"figures": c.figures, "holds": c.holds} for c in self.checks],
        }


def verdicts_of(kind: str, *claims: tuple[str, str, Iterable[Check]]) -> tuple[Verdict, ...]:
    """Return verdicts on claims: (figure, claim, checks) each; those without a check are left out.

    Examples
    --------
    >>> checks = [Check("it did", True)]
    >>> found = verdicts_of("Claim", ("one", "FROT works", checks), ("two", "", []))
    >>> [verdict.line for verdict in found]
    ['Claim one: reproduced. yes: it did.']
    """
    made = [Verdict(figure, claim, tuple(checks), kind) for figure, claim, checks in claims]
    return tuple(verdict for verdict in made if verdict.checks)


@dataclass(frozen=True)
class ExperimentTable:
    """A table that an experiment made: numbers in rows, the first cell of each being its name.

    Examples
    --------
    >>> print(ExperimentTable("Times", ("method", "s"), (("sort", "0.1"),), "One thread.").markdown)
    ## Times
    <BLANKLINE>
    One thread.
    <BLANKLINE>
    | method | s |
    | --- | --- |
    | sort | 0.1 |
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    @property
    def markdown(self) -> str:
        """As text."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join(filter(None, [f"## {self.title}", self.note, table]))


@dataclass(frozen=True, eq=False)
class Reproduction:
    """What an experiment found."""

    # Of the files, for example "fig1".
    name: str
    # All that was computed, ready for JSON.
    numbers: dict[str, Any]
    verdicts: tuple[Verdict, ...]
    # Makes the picture; called only when one is wanted, since it needs matplotlib.
    draw: Callable[[], Figure]
    # What a reader of the verdicts should know about the data.
    notes: tuple[str, ...] = ()
    tables: tuple[ExperimentTable, ...] = ()
    # What makes further pictures, by what is added to the name of their files.
    more: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)

    @property
    def markdown(self) -> str:
        """Tables, verdicts and notes as text."""
        parts = [f"# {self.name}", *(table.markdown for table in self.tables), "## Verdicts"]
        for verdict in self.verdicts:
            checks = "\n".join(f"- {line}" for line in verdict.lines)
            parts.append(f"**{verdict.heading}**: {verdict.claim}\n\n{checks}")
        parts += ["## Notes", "\n".join(f"- {note}" for note in self.notes)]
        return "\n\n".join(parts) + "\n"

    @property
    def content(self) -> dict[str, Any]:
        """Everything, for JSON."""
        verdicts = [verdict.as_dict() for verdict in self.verdicts]
        return {**self.numbers, "notes": list(self.notes), "verdicts": verdicts}

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write NAME.png, NAME.json and, with tables, NAME.md into `folder`; returns the paths.

        Further pictures are NAME-WORD.png.
        """
        folder = make_folder(folder)
        picture, numbers = folder / f"{self.name}.png", folder / f"{self.name}.json"
        # The numbers first: they were dear, and a missing matplotlib shall not lose them.
        with replacing(numbers) as draft:
            draft.write_text(json.dumps(self.content, indent=2, allow_nan=False) + "\n", "utf-8")
        paths = [picture, numbers]
        if self.tables:
            paths.append(folder / f"{self.name}.md")
            with replacing(paths[-1]) as draft:
                draft.write_text(self.markdown, "utf-8")
        drawn = {picture: self.draw}
        drawn |= {folder / f"{self.name}-{word}.png": draw for word, draw in self.more.items()}
        for path, draw in drawn.items():
            with replacing(path) as draft:
                draw().savefig(draft, dpi=150)
        return (*paths, *list(drawn)[1:])


Key = TypeVar("Key", int, str)


class Setting(Protocol):
    """What draws of an experiment are made by; its name is that of a row."""

    @property
    def name(self) -> str:
        """What its row is called."""
        ...


AnySetting = TypeVar("AnySetting", bound=Setting)


def open_store(folder: Path | None) -> Store:
    """Open the store of finished pieces in a folder, or one in memory without a folder.

    Examples
    --------
    >>> with open_store(None) as kept:
    ...     kept.finished()
    {}
    """
    path = None if folder is None else make_folder(folder) / "finished.sqlite"
    return Store(path, "a reproduction", {})


def work_fingerprint(**parts: Any) -> str:
    """Return the fingerprint of all that results depend on; another version of frot does it anew.

    Examples
    --------
    >>> [work_fingerprint(seed=0) == work_fingerprint(seed=seed) for seed in (0, 1)]
    [True, False]
    """
    import frot

    return fingerprint(**parts, version_of_frot=frot.__version__)


def finish(
    kept: Store,
    work: str,
    keys: Sequence[Key],
    do: Callable[[Key], Any],
    *,
    workers: int = 1,
    prepare: Callable[[], object] = bool,
    tick: Callable[[int], object] = lambda count: None,
    what: str = "",
    progress: bool = False,
    effort: Callable[[Key], float] = lambda key: 1.0,
) -> dict[Key, Any]:
    """Do what the store does not have, keep each piece at once, and return all by key.

    `do` makes an array or a JSON value of a key, in so many processes, each of which calls
    `prepare` first (see `frot._base.parallel.spread`). `work` is of `work_fingerprint`; `tick` is
    called with the number of pieces that became available, old ones at once. With `progress` there
    is a bar, called `what`, that goes by the effort of the pieces.

    Examples
    --------
    >>> with open_store(None) as kept:
    ...     finish(kept, work_fingerprint(), [2, 3], lambda key: key**2)
    {2: 4, 3: 9}
    """
    efforts = {key: effort(key) for key in keys}
    done = {key: value for key, value in kept.finished(work).items() if key in efforts}
    tick(len(done))
    missing = [key for key in keys if key not in done]
    before = len(done), sum(efforts[key] for key in done)
    bar = counting_bar(what, len(keys), sum(efforts.values()), enabled=progress, before=before)
    with bar as show:
        for key, value in spread(partial(_keyed, do), missing, workers, prepare):
            kept.add(key, value, work)
            done[key] = value
            tick(1)
            show(1, efforts[key])
    return {key: done[key] for key in keys}


def _keyed(do: Callable[[Key], Any], key: Key) -> tuple[Key, Any]:
    return key, do(key)


def finish_draws(
    folder: Path | None,
    work: str,
    settings: Sequence[AnySetting],
    count: int,
    measure: Callable[[AnySetting, int], Any],
    **options: Any,
) -> dict[str, list[Any]]:
    """Measure draws 0 to `count` - 1 of every setting; return them by its name.

    See `finish` for `work` and the options.
    """
    keys = [f"{one.name}/{index}" for one in settings for index in range(count)]
    do = partial(_measure_draw, {one.name: one for one in settings}, measure)
    with open_store(folder) as kept:
        done = finish(kept, work, keys, do, **options)
    return {one.name: [done[f"{one.name}/{at}"] for at in range(count)] for one in settings}


def _measure_draw(
    settings: Mapping[str, AnySetting], measure: Callable[[AnySetting, int], Any], key: str
) -> Any:
    name, index = key.rsplit("/", 1)
    return measure(settings[name], int(index))


# "T = 10"; a tolerance of zero keeps a run that is done early from stopping early.
ITERATIONS = 10
FW_EMD = FrankWolfe(oracle=NetworkSimplex(), step="paper", max_iter=ITERATIONS, tol=0.0)
FW_SINKHORN = FrankWolfe(oracle=Sinkhorn(), step="paper", max_iter=ITERATIONS, tol=0.0)


class NotedResult(NamedTuple):
    """The result of an experiment's solve, and the warnings that came with it."""

    result: Result
    warnings: tuple[str, ...]


def run_solver(X: Any, Y: Any, groups: Any, **options: Any) -> NotedResult:
    """Solve; where a solver or its oracle fell short, that is noted instead of shown."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = solve(X, Y, groups, **options)
    for warning in caught:
        if not issubclass(warning.category, ConvergenceWarning):
            warnings.warn(warning.message, stacklevel=2)
    noted = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    return NotedResult(result, tuple(noted))


def relative_excess(plan: Plan, reference: Plan, cost: np.ndarray) -> float:
    r"""How much of the way from `reference` to an arbitrary plan the cost of `plan` is.

    .. math::
        \frac{\langle \Pi - \Pi_{ref}, C \rangle}{\langle a b^\top - \Pi_{ref}, C \rangle},

    0 for a plan as cheap as the reference and 1 for one as dear as no matching at all.

    Examples
    --------
    >>> best = Plan(np.eye(2) / 2)
    >>> relative_excess(Plan(np.full((2, 2), 0.25)), best, np.array([[0.0, 1.0], [1.0, 0.0]]))
    1.0
    """
    independent = float(plan.sum(axis=1) @ cost @ plan.sum(axis=0))
    least = float((reference.dense() * cost).sum())
    return float(((plan.dense() * cost).sum() - least) / (independent - least))
