"""``frot solve``: two tables in, a certified answer out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import frot
from frot._base.errors import InputError
from frot._base.files import replacing
from frot._base.tables import Table, read_pair, read_table
from frot.cli.calls import TablesCall, given
from frot.cli.console import console, exit_code, remark, say, warn, warnings_as_lines
from frot.cli.files import PICTURES, check_files, save_picture
from frot.costs import METRICS
from frot.groups.groups import Groups

if TYPE_CHECKING:
    from frot.groups.groups import Groups
    from frot.problem.result import Result

__all__ = ["solve"]


def read_weights(path: Path) -> np.ndarray:
    r"""Read a single row or column of numbers from any file that holds a table.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "weights.csv"
    >>> _ = path.write_text("weight\n0.25\n0.75\n")
    >>> read_weights(path)
    array([0.25, 0.75])
    """
    if path.suffix.lower() == ".npy" and path.is_file():
        try:
            array = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"cannot read {path}: {error}") from None
    else:
        array = read_table(path).values
    if array.size != max(array.shape, default=0):
        raise InputError(f"{path} has shape {array.shape}; weights are one row or one column")
    return array.ravel()


@dataclass(frozen=True)
class SolveFiles:
    """Where the result, the report and the picture go; None for those not wanted."""

    result: Path | None = None
    report: Path | None = None
    picture: Path | None = None

    def check(self) -> None:
        """Refuse what could not be written, before the work."""
        check_files((self.result, (".npz",)), (self.report, ()), (self.picture, PICTURES))

    def write(
        self, result: Result, call: TablesCall, groups: Groups, names: Sequence[str] | None
    ) -> list[Path]:
        """Write all that is wanted; returns the paths."""
        if self.result is not None:
            with replacing(self.result) as draft:
                result.save(draft)
        if self.report is not None:
            from frot.show import write_report

            title = f"{call.a.name} to {call.b.name}"
            write_report(
                result,
                self.report,
                call.python,
                title,
                command=call.command,
                groups=groups,
                feature_names=names,
            )
        save_picture(lambda: result.plot(groups=groups, feature_names=names), self.picture)
        return [path for path in (self.result, self.report, self.picture) if path is not None]


class SolverName(str, Enum):
    """The solvers by name."""

    auto = "auto"
    exact = "exact"
    entropic = "entropic"
    frank_wolfe = "frank-wolfe"
    linear_program = "linear-program"


NormaliseWeights = Annotated[
    bool,
    typer.Option(
        "--normalise-weights", help="Divide weights by their sum.", rich_help_panel="Problem"
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="One weight a point.", rich_help_panel="Problem"),
]


def problem_option(text: str, metavar: str) -> Any:
    return typer.Option(help=text, metavar=metavar, rich_help_panel="Problem")


def algorithm_option(text: str, metavar: str) -> Any:
    return typer.Option(help=text, metavar=metavar, rich_help_panel="Algorithm")


def output_option(text: str) -> Any:
    return typer.Option(help=text, metavar="FILE", rich_help_panel="Output")


@dataclass(frozen=True, eq=False)
class TwoTables:
    """What a problem is read from: two tables, groups of their columns, weights of their rows."""

    first: Table
    second: Table
    groups: Groups
    weights: dict[str, Any]

    @property
    def names(self) -> tuple[str, ...] | None:
        """Of the features, where one of the tables has them."""
        return self.first.columns or self.second.columns


def read_problem(
    a: Path, b: Path, groups: str, weights_a: Path | None, weights_b: Path | None
) -> TwoTables:
    """Read everything and say how much there is of it."""
    first, second = read_pair(a, b)
    parsed = Groups.parse(groups, first.shape[1], first.columns or second.columns)
    if parsed.dropped:
        warn(f"{len(parsed.dropped)} sets have no feature in the data and were left out")
    files = {"a": weights_a, "b": weights_b}
    weights = {side: read_weights(path) for side, path in files.items() if path is not None}
    remark(f"{first.shape[0]} and {second.shape[0]} points, {repr(parsed)[len('Groups(') : -1]}")
    return TwoTables(first, second, parsed, weights)


GROUPS = "each, all, prefix, sizes like 2,8, or a .gmt, .json, .csv or .tsv file."
METRIC = f"{', '.join(METRICS)}, euclidean, or any other of SciPy's cdist."
SOLVER = "auto, exact, frank-wolfe or linear-program."


def solve(
    a: Annotated[Path, typer.Argument(metavar="A", help="Table of points, a row each.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The other table, of the same features.")],
    groups: Annotated[str, problem_option(GROUPS, "GROUPS")] = "each",
    eta: Annotated[float, problem_option("Entropy of the weights of groups.", "COST")] = 0.0,
    eps: Annotated[float | None, problem_option("Entropy of the plan (Sinkhorn).", "COST")] = None,
    metric: Annotated[str, problem_option(METRIC, "NAME")] = "sqeuclidean",
    p: Annotated[float, problem_option("Power of the metric.", "NUMBER")] = 1.0,
    normalise: Annotated[str, problem_option("none, mean or regret.", "HOW")] = "none",
    weights_a: Weights = None,
    weights_b: Weights = None,
    normalise_weights: NormaliseWeights = False,
    solver: Annotated[SolverName, algorithm_option(SOLVER, "NAME")] = SolverName.auto,
    tol: Annotated[float | None, algorithm_option("Relative gap to stop at.", "GAP")] = None,
    max_iter: Annotated[int | None, algorithm_option("Iterations at most.", "COUNT")] = None,
    time_limit: Annotated[float | None, algorithm_option("Seconds at most.", "SECONDS")] = None,
    out: Annotated[Path | None, output_option("Write the result as .npz.")] = None,
    report: Annotated[Path | None, output_option("Write a web page, .html.")] = None,
    plot: Annotated[
        Path | None, output_option("Write a picture: .png, .svg, .pdf, .jpg or .webp.")
    ] = None,
    top: Annotated[
        int, typer.Option(min=0, help="Groups to print.", rich_help_panel="Output")
    ] = 10,
    progress: Annotated[
        bool | None,
        typer.Option(help="Show a bar; by default on a terminal.", rich_help_panel="Output"),
    ] = None,
) -> None:
    """Transport the points of table A to those of table B, robust to the choice of features.

    Tables are .csv, .tsv (also with .gz), .npy, .npz or .parquet files.

    Ctrl-C ends the run with the best certified answer so far; files are still written.

    Exit codes: 0 solved, 2 bad input, 3 stopped before the tolerance, 130 interrupted.
    """
    outputs = SolveFiles(out, report, plot)
    outputs.check()
    data = read_problem(a, b, groups, weights_a, weights_b)
    options = given(
        eta=(eta, 0.0),
        eps=(eps, None),
        solver=(solver.value.replace("-", "_"), "auto"),
        metric=(metric, "sqeuclidean"),
        p=(p, 1.0),
        normalise=(normalise, "none"),
        normalise_weights=(normalise_weights, False),
        tol=(tol, None),
        max_iter=(max_iter, None),
        time_limit=(time_limit, None),
    )
    bar = sys.stderr.isatty() if progress is None else progress
    try:
        with warnings_as_lines():
            points = data.first.values, data.second.values
            result = frot.solve(*points, data.groups, **data.weights, **options, progress=bar)
    except frot.Interrupted as stop:
        result = stop.result
    except InputError as error:
        # The fix that the library names is an argument; here it is an option.
        text = str(error).replace("normalise_weights=True", "--normalise-weights")
        raise InputError(text) from None
    _show(result, top)
    call = TablesCall(a, b, groups, weights_a, weights_b, options)
    for path in outputs.write(result, call, data.groups, data.names):
        say(f"Wrote {path}")
    raise typer.Exit(exit_code(result.status))


def _show(result: Any, top: int) -> None:
    from rich.text import Text

    text = Text(result.summary(top))
    colour = "green" if result.status.ok else "yellow"
    text.highlight_regex(r"^\S.*", "bold")
    text.highlight_words([f"{result.status}:"], f"bold {colour}")
    text.highlight_regex(r"(?m)^  (value|interval|status|solver|plan|groups)\b", "dim")
    console().print(text, soft_wrap=True)
