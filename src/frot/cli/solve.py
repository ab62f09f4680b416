"""``frot solve``: two tables in, a certified answer out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import frot
from frot._base.errors import InputError
from frot._base.files import check_path
from frot._base.tables import numpy_errors, read_pair, read_table
from frot.cli.command import (
    TYPED,
    Json,
    Output,
    Picture,
    Quiet,
    Report,
    Save,
    check_files,
    examples,
    exit_code,
    option,
    save_picture,
    warn,
)
from frot.costs import METRICS
from frot.groups.groups import Groups

EXAMPLES = examples(
    "frot solve a.csv b.csv --groups prefix --save result.npz --report page.html",
    "frot solve a.csv b.csv --groups sets.gmt --eta 0.5 --json > numbers.json",
    "frot solve a.csv.gz b.csv --json --quiet | jq .value",
)


def solve(
    a: Annotated[Path, typer.Argument(metavar="A", help="Table of points, a row each.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The other, of the same features.")],
    groups: Annotated[
        str,
        option(
            "Problem",
            "each, all, prefix, sizes like 2,8, or a .gmt, .json, .csv or .tsv file.",
            "GROUPS",
        ),
    ] = "each",
    eta: Annotated[float, option("Problem", "Entropy of the weights of groups.", "COST")] = 0.0,
    eps: Annotated[float, option("Problem", "Entropy of the plan (Sinkhorn).", "COST")] = 0.0,
    tau: Annotated[
        str | None,
        option("Problem", "Price of mass that is not kept: one number, or two as 0.5,inf.", "COST"),
    ] = None,
    mass: Annotated[float | None, option("Problem", "Mass that is moved.", "MASS")] = None,
    metric: Annotated[
        str,
        option(
            "Problem", f"{', '.join(METRICS)}, euclidean, or any other of SciPy's cdist.", "NAME"
        ),
    ] = "sqeuclidean",
    normalise: Annotated[
        str,
        option(
            "Problem",
            "Make groups comparable: none, mean or regret.",
            "HOW",
            "--normalise",
            "--normalize",
        ),
    ] = "none",
    weights_a: Annotated[Path | None, option("Problem", "One weight per point.", "FILE")] = None,
    weights_b: Annotated[Path | None, option("Problem", "One weight per point.", "FILE")] = None,
    normalise_weights: Annotated[
        bool,
        option(
            "Problem",
            "Divide weights by their sum.",
            None,
            "--normalise-weights",
            "--normalize-weights",
        ),
    ] = False,
    tol: Annotated[float | None, option("Problem", "Relative gap to stop at.", "GAP")] = None,
    save: Save = None,
    report: Report = None,
    picture: Picture = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Transport table A to table B, robust to the choice of features.

    Tables are .csv, .tsv, .txt (also with .gz), .xlsx, .npy, .npz or .parquet files.

    Ctrl-C ends the run with the best certified answer so far; files are still written.

    Exit codes: 0 solved, 2 bad input, 3 stopped before the tolerance, 130 interrupted.
    """
    weights = [path for path in (weights_a, weights_b) if path is not None]
    inputs = [a, b, Path(groups), *weights]
    check_files(inputs, save=save, report=report, picture=picture)
    out = Output(json, quiet)
    first, second = read_pair(a, b)
    names = first.columns or second.columns
    parsed = Groups.parse(groups, first.shape[1], names)
    if parsed.dropped:
        warn(f"{len(parsed.dropped)} sets have no feature in the data and were left out")
    out.remark(
        f"{first.shape[0]} and {second.shape[0]} points, {repr(parsed)[len('Groups(') : -1]}"
    )
    try:
        result = frot.solve(
            first.values,
            second.values,
            parsed,
            a=None if weights_a is None else read_weights(weights_a),
            b=None if weights_b is None else read_weights(weights_b),
            eta=eta,
            eps=eps,
            tau=None if tau is None else prices(tau),
            mass=mass,
            metric=metric,
            normalise=normalise,
            normalise_weights=normalise_weights,
            tol=tol,
            progress=out.bar,
        )
    except frot.Interrupted as stop:
        result = stop.result
    show_result(out, result)
    out.numbers(result.to_dict())
    if save is not None:
        result.save(save)
    known: dict[str, Any] = {"groups": parsed, "feature_names": names}
    if report is not None:
        title = f"{a.name} to {b.name}"
        frot.write_report(result, report, title=title, command=TYPED.get(), **known)
    save_picture(lambda: result.plot(**known), picture)
    out.wrote(save, report, picture)
    raise typer.Exit(exit_code(result.status))


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
    if check_path(path, "weights").suffix.lower() == ".npy" and path.is_file():
        with numpy_errors(path):
            array = np.load(path, allow_pickle=False)
    else:
        array = read_table(path).values
    if array.size != max(array.shape, default=0):
        raise InputError(f"{path} has shape {array.shape}; weights are one row or one column")
    return array.ravel()


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


def show_result(out: Output, result: frot.Result) -> None:
    """Print the summary of a result: its heading bold, its status in colour."""
    from rich.text import Text

    status = result.status
    lines = Text(result.summary())
    lines.highlight_regex(r"^\S.*", "bold")
    lines.highlight_words([f"{status}:"], f"bold {'green' if status.ok else 'yellow'}")
    lines.highlight_regex(
        r"(?m)^  (value|interval|status|problem|solver|plan|kept|groups)\b", "dim"
    )
    out.console().print(lines, soft_wrap=True)
