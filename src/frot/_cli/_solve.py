"""``frot solve``: two tables in, a certified answer out."""

from __future__ import annotations

import sys
import warnings
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from frot._cli._console import console, remark, say, warn
from frot._cli._exit import exit_code

__all__ = ["solve"]


class SolverName(str, Enum):
    """The solvers by name."""

    auto = "auto"
    exact = "exact"
    entropic = "entropic"
    frank_wolfe = "frank-wolfe"
    linear_program = "linear-program"


Weights = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="One weight a point.", rich_help_panel="Problem"),
]


def _problem(text: str, metavar: str) -> Any:
    return typer.Option(help=text, metavar=metavar, rich_help_panel="Problem")


def _run(text: str, metavar: str) -> Any:
    return typer.Option(help=text, metavar=metavar, rich_help_panel="Algorithm")


def _file(text: str) -> Any:
    return typer.Option(help=text, metavar="FILE", rich_help_panel="Output")


GROUPS = "each, all, prefix, sizes like 2,8, or a .gmt, .json, .csv or .tsv file."
METRIC = "sqeuclidean, euclidean, cosine, or any other of SciPy's cdist."
SOLVER = "auto, exact, frank-wolfe or linear-program."


def solve(
    a: Annotated[Path, typer.Argument(metavar="A", help="Table of points, a row each.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The other table, of the same features.")],
    groups: Annotated[str, _problem(GROUPS, "GROUPS")] = "each",
    eta: Annotated[float, _problem("Entropy of the weights of groups.", "COST")] = 0.0,
    eps: Annotated[float | None, _problem("Entropy of the plan (Sinkhorn).", "COST")] = None,
    metric: Annotated[str, _problem(METRIC, "NAME")] = "sqeuclidean",
    p: Annotated[float, _problem("Power of the metric.", "NUMBER")] = 1.0,
    normalise: Annotated[str, _problem("none, mean or regret.", "HOW")] = "none",
    weights_a: Weights = None,
    weights_b: Weights = None,
    normalise_weights: Annotated[
        bool,
        typer.Option(
            "--normalise-weights", help="Divide weights by their sum.", rich_help_panel="Problem"
        ),
    ] = False,
    solver: Annotated[SolverName, _run(SOLVER, "NAME")] = SolverName.auto,
    tol: Annotated[float | None, _run("Relative gap to stop at.", "GAP")] = None,
    max_iter: Annotated[int | None, _run("Iterations at most.", "COUNT")] = None,
    time_limit: Annotated[float | None, _run("Seconds at most.", "SECONDS")] = None,
    out: Annotated[Path | None, _file("Write the result as .npz.")] = None,
    report: Annotated[Path | None, _file("Write a web page, .html.")] = None,
    plot: Annotated[Path | None, _file("Write a picture: .png, .svg, .pdf, .jpg or .webp.")] = None,
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
    from frot._cli._call import Call
    from frot._cli._outputs import Outputs
    from frot._cli._weights import read_weights
    from frot._errors import InputError
    from frot._groups import Groups
    from frot._tables import read_pair

    outputs = Outputs(out, report, plot)
    outputs.check()
    first, second = read_pair(a, b)
    names = first.columns or second.columns
    parsed = Groups.parse(groups, first.shape[1], names)
    if parsed.dropped:
        warn(f"{len(parsed.dropped)} sets have no feature in the data and were left out")
    options: dict[str, Any] = _given(
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
    weights = {
        key: read_weights(path)
        for key, path in (("a", weights_a), ("b", weights_b))
        if path is not None
    }
    remark(f"{first.shape[0]} and {second.shape[0]} points, {repr(parsed)[len('Groups(') : -1]}")
    bar = sys.stderr.isatty() if progress is None else progress
    try:
        result = _solve_noting(first.values, second.values, parsed, options | weights, bar)
    except InputError as error:
        # The fix that the library names is an argument; here it is an option.
        text = str(error).replace("normalise_weights=True", "--normalise-weights")
        raise InputError(text) from None
    _show(result, top)
    call = Call(a, b, groups, weights_a, weights_b, options)
    for path in outputs.write(result, call, parsed, names):
        say(f"Wrote {path}")
    raise typer.Exit(exit_code(result.status))


def _given(**choices: tuple[Any, Any]) -> dict[str, Any]:
    """Only the options that differ from their defaults, so that the call stays readable."""
    return {name: value for name, (value, default) in choices.items() if value != default}


def _solve_noting(X: Any, Y: Any, groups: Any, options: dict[str, Any], progress: bool) -> Any:
    """Solve, and show warnings as a line each instead of as Python does."""
    import frot

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = frot.solve(X, Y, groups, **options, progress=progress)
        except frot.Interrupted as stop:
            result = stop.result
    for warning in caught:
        warn(str(warning.message))
    return result


def _show(result: Any, top: int) -> None:
    from rich.text import Text

    text = Text(result.summary(top))
    colour = "green" if result.status.ok else "yellow"
    text.highlight_regex(r"^\S.*", "bold")
    text.highlight_words([f"{result.status}:"], f"bold {colour}")
    text.highlight_regex(r"(?m)^  (value|interval|status|solver|plan|groups)\b", "dim")
    console().print(text, soft_wrap=True)
