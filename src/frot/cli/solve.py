"""``frot solve``: two tables in, a certified answer out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import frot
from frot._base.errors import InputError
from frot.cli import tables
from frot.cli.command import Writes, command, typed
from frot.cli.console import (
    PAGES,
    PICTURES,
    check_files,
    exit_code,
    numbers,
    save_picture,
    show_summary,
    warnings_as_lines,
    wrote,
)
from frot.cli.options import Progress, bar, capped, given, option
from frot.costs import METRICS

__all__ = ["TAU", "Penalty", "prices", "solve"]


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
)
def solve(
    a: tables.First,
    b: tables.Second,
    groups: tables.GroupsOption = "each",
    worst: tables.Worst = None,
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
    weights_a: tables.Weights = None,
    weights_b: tables.Weights = None,
    normalise_weights: tables.NormaliseWeights = False,
    solver: Annotated[SolverName, option("Algorithm", SOLVER, "NAME")] = "auto",
    tol: tables.Tol = None,
    max_iter: Annotated[int | None, option("Algorithm", "Iterations at most.", "COUNT")] = None,
    time_limit: Annotated[float | None, option("Algorithm", "Seconds at most.", "SECONDS")] = None,
    save: Annotated[
        Path | None, option("Output", "Write the result, .npz, for frot.load.", "FILE")
    ] = None,
    report: tables.ReportFile = None,
    plot: tables.PictureFile = None,
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
    data = tables.read_problem(a, b, groups, weights_a, weights_b)
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
    call = tables.TablesCall(typed(a), typed(b), groups, weights_a, weights_b, options)
    try:
        with warnings_as_lines():
            result = frot.solve(
                *data.points, data.groups, **data.weights, **options, progress=bar(progress)
            )
    except frot.Interrupted as stop:
        result = stop.result
    except InputError as error:
        # The fix that the library names is an argument; here it is an option.
        text = str(error).replace("normalise_weights=True", "--normalise-weights")
        raise InputError(text) from None
    show_summary(result.summary(top), result.status)
    known: dict[str, Any] = {"groups": data.groups, "feature_names": data.names}
    numbers(result.to_dict(), call)
    if save is not None:
        result.save(save)
    if report is not None:
        title = f"{a.name} to {b.name}"
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
