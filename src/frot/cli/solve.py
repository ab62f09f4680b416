"""``frot solve``: two tables in, a certified answer out.

Also the options of two tables, reading them, and the call written
out.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

import frot
from frot._base.errors import InputError
from frot._base.tables import Table, read_pair, read_table
from frot.cli.command import (
    PAGES,
    PICTURES,
    WORST,
    Progress,
    Writes,
    arguments,
    bar,
    capped,
    check_files,
    command,
    exit_code,
    given,
    numbers,
    option,
    option_words,
    remark,
    save_picture,
    show_summary,
    typed,
    warn,
    warnings_as_lines,
    wrote,
)
from frot.costs import METRICS
from frot.groups.groups import Groups

GROUPS = "each, all, prefix, sizes like 2,8, or a .gmt, .json, .csv or .tsv file."
PICTURE = "Write a picture: .png, .svg, .pdf, .jpg or .webp."

First = Annotated[Path, typer.Argument(metavar="A", help="Table of points, a row each.")]
Second = Annotated[Path, typer.Argument(metavar="B", help="The other table, of the same features.")]
GroupsOption = Annotated[str, option("Problem", GROUPS, "GROUPS")]
Worst = Annotated[int | None, option("Problem", WORST, "COUNT")]
Weights = Annotated[Path | None, option("Problem", "One weight per point.", "FILE")]
NormaliseWeights = Annotated[
    bool,
    option(
        "Problem",
        "Divide weights by their sum.",
        None,
        "--normalise-weights",
        "--normalize-weights",
    ),
]
Tol = Annotated[float | None, option("Algorithm", "Relative gap to stop at.", "GAP")]
ReportFile = Annotated[Path | None, option("Output", "Write a web page, .html.", "FILE")]
PictureFile = Annotated[Path | None, option("Output", PICTURE, "FILE")]


@dataclass(frozen=True, eq=False)
class TwoTables:
    """What a problem is read from: two tables, groups of their columns, weights of their rows."""

    first: Table
    second: Table
    groups: Groups
    weights: dict[str, Any]

    @property
    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of both."""
        return self.first.values, self.second.values

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


def weights_call(path: Path) -> str:
    """Return the Python expression that reads the weights of points.

    Examples
    --------
    >>> print(weights_call(Path("weights.npy")))
    numpy.load('weights.npy').ravel()
    """
    if path.suffix.lower() == ".npy":
        return f"numpy.load({str(path)!r}).ravel()"
    return f"frot.read_table({str(path)!r}).values.ravel()"


@dataclass(frozen=True)
class TablesCall:
    """The call of `frot.solve` on two tables.

    Attributes
    ----------
    options : mapping
        The arguments that were given.

    Examples
    --------
    >>> call = TablesCall(Path("a.csv"), Path("my b.csv"), "prefix", options={"eta": 0.5})
    >>> print(call.command)
    frot solve a.csv 'my b.csv' --groups prefix --eta 0.5
    >>> print(call.python)
    import frot
    <BLANKLINE>
    A, B = frot.read_pair('a.csv', 'my b.csv')
    groups = frot.Groups.parse('prefix', A.shape[1], A.columns or B.columns)
    result = frot.solve(A.values, B.values, groups, eta=0.5)
    """

    a: Path
    b: Path
    groups: str
    weights_a: Path | None = None
    weights_b: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """The command line."""
        words = ["frot", "solve", str(self.a), str(self.b), "--groups", self.groups]
        options = dict(self.options)
        if "solver" in options:
            options["solver"] = options["solver"].replace("_", "-")
        files = {"weights_a": self.weights_a, "weights_b": self.weights_b}
        kept = {name: path for name, path in files.items() if path is not None}
        return shlex.join([*words, *option_words({**kept, **options})])

    @property
    def python(self) -> str:
        """The same in Python."""
        weights = {"a": self.weights_a, "b": self.weights_b}
        more = [f"{name}={weights_call(path)}" for name, path in weights.items() if path]
        more += arguments(self.options)
        lines = ["import numpy"] * ("numpy.load" in " ".join(more)) + ["import frot", ""]
        lines.append(f"A, B = frot.read_pair({str(self.a)!r}, {str(self.b)!r})")
        columns = "A.columns or B.columns"
        lines.append(f"groups = frot.Groups.parse({self.groups!r}, A.shape[1], {columns})")
        call = ", ".join(["groups", *more])
        lines.append(f"result = frot.solve(A.values, B.values, {call})")
        return "\n".join(lines)


SolverName = Literal["auto", "exact", "entropic", "frank-wolfe", "linear-program"]
PENALTY = "Penalty with tau: kl, or tv (partial transport)."
Penalty = Annotated[Literal["kl", "tv"], option("Problem", PENALTY, "NAME")]
TAU = "Price of mass that is not kept: one number, or two as 0.5,inf."
METRIC = f"{', '.join(METRICS)}, euclidean, or any other of SciPy's cdist."
NORMALISE = "Make groups comparable: none, mean or regret."
SOLVER = "auto, exact, entropic, frank-wolfe or linear-program."


@command(
    "frot solve a.csv b.csv --groups prefix --out result.npz --out page.html",
    "frot solve a.csv b.csv --groups sets.gmt --eta 0.5 --json numbers.json",
    "zcat a.csv.gz | frot solve - b.csv --json - --quiet | jq .value",
    writes=[
        Writes("save", (".npz",), "result.npz"),
        Writes("report", PAGES, "report.html"),
        Writes("plot", PICTURES, "plan.png"),
    ],
    options={"normalise_weights": "--normalise-weights"},
)
def solve(
    a: First,
    b: Second,
    groups: GroupsOption = "each",
    worst: Worst = None,
    eta: Annotated[float, option("Problem", "Entropy of the weights of groups.", "COST")] = 0.0,
    eps: Annotated[
        float | None, option("Problem", "Entropy of the plan (Sinkhorn).", "COST")
    ] = None,
    tau: Annotated[str | None, option("Problem", TAU, "COST")] = None,
    penalty: Penalty = "kl",
    metric: Annotated[str, option("Problem", METRIC, "NAME")] = "sqeuclidean",
    p: Annotated[float, option("Problem", "Power of the metric.", "NUMBER")] = 1.0,
    normalise: Annotated[
        str,
        option("Problem", NORMALISE, "HOW", "--normalise", "--normalize"),
    ] = "none",
    weights_a: Weights = None,
    weights_b: Weights = None,
    normalise_weights: NormaliseWeights = False,
    solver: Annotated[SolverName, option("Algorithm", SOLVER, "NAME")] = "auto",
    tol: Tol = None,
    max_iter: Annotated[int | None, option("Algorithm", "Iterations at most.", "COUNT")] = None,
    time_limit: Annotated[float | None, option("Algorithm", "Seconds at most.", "SECONDS")] = None,
    save: Annotated[
        Path | None, option("Output", "Write the result, .npz, for frot.load.", "FILE")
    ] = None,
    report: ReportFile = None,
    plot: PictureFile = None,
    top: Annotated[int, option("Output", "Groups to print.", min=0)] = 10,
    progress: Progress = None,
) -> None:
    """Transport the points of table A to those of table B, robust to the choice of features.

    Tables are .csv, .tsv, .txt (also with .gz), .xlsx, .npy, .npz or .parquet files; one of them
    may be a dash, for stdin.

    Ctrl-C ends the run with the best certified answer so far; files are still written.

    Exit codes: 0 solved, 2 bad input, 3 stopped before the tolerance, 130 interrupted.
    """
    check_files((save, (".npz",)), (report, ()), (plot, PICTURES))
    data = read_problem(a, b, groups, weights_a, weights_b)
    options = given(
        adversary=(capped(worst, len(data.groups)), None),
        eta=(eta, 0.0),
        eps=(eps, None),
        tau=(None if tau is None else prices(tau), None),
        penalty=(penalty, "kl"),
        solver=(solver.replace("-", "_"), "auto"),
        metric=(metric, "sqeuclidean"),
        p=(p, 1.0),
        normalise=(normalise, "none"),
        normalise_weights=(normalise_weights, False),
        tol=(tol, None),
        max_iter=(max_iter, None),
        time_limit=(time_limit, None),
    )
    call = TablesCall(typed(a), typed(b), groups, weights_a, weights_b, options)
    try:
        with warnings_as_lines():
            result = frot.solve(
                *data.points, data.groups, **data.weights, **options, progress=bar(progress)
            )
    except frot.Interrupted as stop:
        result = stop.result
    show_summary(result.summary(top), result.status)
    known: dict[str, Any] = {"groups": data.groups, "feature_names": data.names}
    numbers(result.to_dict(), call)
    if save is not None:
        result.save(save)
    if report is not None:
        title = f"{a.name} to {b.name}"
        with warnings_as_lines():
            frot.write_report(result, report, call.python, title, command=call.command, **known)
    save_picture(lambda: result.plot(**known), plot)
    wrote(save, report, plot)
    raise typer.Exit(exit_code(result.status))


def prices(text: str) -> float | tuple[float, float]:
    """Read one price of mass, or one for each side.

    Examples
    --------
    >>> prices("0.5"), prices("inf,2")
    (0.5, (inf, 2.0))
    """
    try:
        first, *rest = map(float, text.split(","))
    except ValueError:
        first, rest = 0.0, [0.0, 0.0]
    if len(rest) > 1:
        raise InputError(f"tau: {text!r} is neither a number nor two, such as 0.5,inf")
    return (first, rest[0]) if rest else first
