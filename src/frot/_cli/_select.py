"""``frot select``: a labelled table in, the features that tell its classes apart out."""

from __future__ import annotations

import sys
import warnings
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from frot._cli._console import remark, say, warn
from frot._cli._exit import exit_code

__all__ = ["select"]


class Scaling(str, Enum):
    """How features are made comparable."""

    balanced = "balanced"
    paper = "paper"
    none = "none"


class Score(str, Enum):
    """What features are ranked by."""

    combined = "combined"
    alpha = "alpha"
    phi = "phi"
    shift = "shift"
    shape = "shape"
    misalignment = "misalignment"


class Statistic(str, Enum):
    """What is tested."""

    shift = "shift"
    shape = "shape"
    wasserstein = "wasserstein"
    combined = "combined"
    alpha = "alpha"
    phi = "phi"
    misalignment = "misalignment"


class Multiclass(str, Enum):
    """Which classes are held against which."""

    ovr = "ovr"
    ovo = "ovo"


class Missing(str, Enum):
    """What becomes of missing values."""

    error = "error"
    impute = "impute"
    drop = "drop"


def _option(panel: str, text: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(help=text, metavar=metavar, rich_help_panel=panel, **more)


def _named(flag: str, panel: str, text: str, metavar: str) -> Any:
    return typer.Option(flag, help=text, metavar=metavar, rich_help_panel=panel)


GROUPS = "each, prefix, or a .gmt, .json, .csv or .tsv file of groups."
TOP = "How many to select; below 1, a fraction. By default 50, at most half."
ETA = "Entropy of the weights: auto, or a number."
CHECKPOINT = "Keep finished permutations here; by default beside --out until done."


def select(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Table of samples, a row each.")],
    label: Annotated[str, _option("Data", "Column of the classes.", "COLUMN")],
    top: Annotated[str | None, _option("Selection", TOP, "NUMBER")] = None,
    groups: Annotated[str, _option("Data", GROUPS, "GROUPS")] = "each",
    ids: Annotated[
        str | None, _named("--id", "Data", "Column of samples' names.", "COLUMN")
    ] = None,
    ignore: Annotated[
        list[str] | None, _option("Data", "Column that is no feature; repeatable.", "COLUMN")
    ] = None,
    missing: Annotated[Missing, _option("Data", "What to do with missing values.")] = Missing.error,
    scaling: Annotated[Scaling, _option("Selection", "Scale of features.")] = Scaling.balanced,
    score: Annotated[Score, _option("Selection", "What to rank by.")] = Score.combined,
    eta: Annotated[str, _option("Selection", ETA, "COST")] = "auto",
    multiclass: Annotated[
        Multiclass, _option("Selection", "Three or more classes: one against rest, or pairs.")
    ] = Multiclass.ovr,
    tol: Annotated[float | None, _option("Selection", "Relative gap to stop at.", "GAP")] = None,
    max_iter: Annotated[
        int | None, _option("Selection", "Transport problems at most.", "COUNT")
    ] = None,
    permutations: Annotated[
        int, _option("Inference", "Permute labels so often.", "COUNT", min=0)
    ] = 0,
    statistic: Annotated[
        Statistic, _option("Inference", "What the permutations test.")
    ] = Statistic.shift,
    block: Annotated[
        str | None, _option("Inference", "Column to permute within: batch, donor.", "COLUMN")
    ] = None,
    stability: Annotated[
        int, _option("Inference", "Pairs of halves for stability selection.", "COUNT", min=0)
    ] = 0,
    seed: Annotated[int, _option("Inference", "Seed of both.", min=0)] = 0,
    workers: Annotated[int, _option("Inference", "Processes; -1 for all cores.", "COUNT")] = 1,
    checkpoint: Annotated[Path | None, _option("Inference", CHECKPOINT, "FILE")] = None,
    out: Annotated[Path | None, _option("Output", "Write all ranks, .tsv or .csv.", "FILE")] = None,
    report: Annotated[Path | None, _option("Output", "Write a web page, .html.", "FILE")] = None,
    rows: Annotated[int, _option("Output", "Rows to print.", "COUNT", min=0)] = 20,
    progress: Annotated[
        bool | None, _option("Output", "Show a bar; by default on a terminal.")
    ] = None,
) -> None:
    """Select the features that tell classes apart, with a plan between their samples.

    DATA is a .csv, .tsv (also with .gz), .parquet or .npz file with a column of classes, or an
    .h5ad file with one in obs. Columns of numbers are features; the first column of text names
    the samples.

    A run that is stopped, by Ctrl-C or otherwise, keeps its finished permutations on disk; the
    same command goes on from there.

    Exit codes: 0 solved, 2 bad input, 3 stopped before the tolerance, 130 interrupted.
    """
    from frot._cli._select_call import SelectCall
    from frot._cli._select_files import SelectFiles, write_ranking
    from frot._cli._select_show import show_selection
    from frot._errors import InputError
    from frot._interrupted import Interrupted
    from frot.selection import FROTSelector, read_samples, write_selection_report

    files = SelectFiles(data, out, report, checkpoint)
    files.check()
    given = None if top is None else _number(top, "top")
    if not workers:
        raise InputError("workers: 0 processes do nothing; give 1 or more, or -1 for all cores")
    if block is not None and not permutations:
        raise InputError("block: is what permutations stay within; give --permutations too")
    columns: dict[str, Any] = {"label": label} | _given(block=(block, None), ids=(ids, None))
    if ignore:
        columns["ignore"] = tuple(ignore)
    samples = read_samples(data, **columns)
    parsed = samples.groups(groups)
    n, d = samples.shape
    number = max(1, min(50, len(parsed) // 2)) if given is None else given
    remark(f"{n:,} samples of {d:,} features, {len(set(samples.y.tolist()))} classes")
    _note(samples, ids, parsed)
    options = _given(
        scaling=(scaling.value, "balanced"),
        eta=(eta if eta == "auto" else _number(eta, "eta"), "auto"),
        score=(score.value, "combined"),
        multiclass=(multiclass.value, "ovr"),
        missing=(missing.value, "error"),
        tol=(tol, None),
        max_iter=(max_iter, None),
    )
    test = {"n_permutations": permutations, "statistic": statistic.value} if permutations else {}
    halves: dict[str, Any] = {"n_pairs": stability} if stability else {}
    for chosen in (test, halves):
        chosen.update({"random_state": seed} if chosen and seed else {})
    call = SelectCall(
        data, number, groups, columns, options, test, halves,
        {name: path for name, path in (("out", out), ("report", report)) if path is not None},
    )  # fmt: skip
    selector = FROTSelector(number, groups=parsed, **options)
    run = {"n_jobs": workers, "progress": sys.stderr.isatty() if progress is None else progress}
    interrupted = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            selector = _translated(selector.fit, samples.X, samples.y)
        except Interrupted as stop:
            # Fitted with the best answer until then; no more is asked for.
            selector, test, halves, interrupted = stop.result, {}, {}, True
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        warn(text)
    found = _infer(selector, samples, files, test, halves, run)
    show_selection(selector, rows, found)
    if out is not None:
        write_ranking(selector, out, found)
        say(f"Wrote {out}")
    if report is not None:
        write_selection_report(
            selector,
            samples.X,
            samples.y,
            report,
            stability=found,
            title=f"{data.name} by {label}",
            call=call.python,
            command=call.command,
            full_table="" if out is None else out.name,
            feature_names=samples.names,
            sample_names=samples.ids,
        )
        say(f"Wrote {report}")
    if not interrupted:
        files.finish()
    codes = [exit_code(one.result.status) for one in selector.comparisons_]
    raise typer.Exit(max(codes))


def _given(**choices: tuple[Any, Any]) -> dict[str, Any]:
    """Only the options that differ from their defaults, so that the call stays readable."""
    return {name: value for name, (value, default) in choices.items() if value != default}


def _number(text: str, name: str) -> int | float:
    from frot._errors import InputError

    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    more = "auto or a number" if name == "eta" else "a whole number, or a fraction below 1"
    raise InputError(f"{name}: {text!r} is no number; give {more}")


def _note(samples: Any, ids: str | None, groups: Any) -> None:
    """Say what was taken for what, so that nothing is left out in silence."""
    if samples.ignored:
        from frot._names import quote_some

        warn(
            f"{quote_some(list(samples.ignored))}: text, and so no feature; left out "
            "(--ignore says so without this warning, --id takes one for the samples' names)"
        )
    if groups.dropped:
        warn(f"{len(groups.dropped)} sets have no feature in the data and were left out")


def _translated(work: Any, *arguments: Any, **options: Any) -> Any:
    """Run, with arguments of the library called by the options they came from."""
    from frot._errors import InputError

    names = {"n_features_to_select:": "top:", "y:": "label:", "n_permutations:": "permutations:"}
    names |= {"n_pairs:": "stability:", "missing='impute'": "--missing impute"}
    names |= {"missing='drop'": "--missing drop"}
    try:
        return work(*arguments, **options)
    except InputError as error:
        text = str(error)
    except ValueError as error:
        # scikit-learn's own words, of which the first sentence says what is wrong.
        text = str(error).splitlines()[0]
        if "NaN" in text:
            text = "data: has missing values; give --missing impute or --missing drop"
        elif "infinity" in text:
            text = "data: has infinite values; replace them"
    for one, other in names.items():
        text = text.replace(one, other)
    raise InputError(text)


def _infer(
    selector: Any,
    samples: Any,
    files: Any,
    test: dict[str, Any],
    halves: dict[str, Any],
    run: dict[str, Any],
) -> Any:
    """Run what was asked of permutation test and stability selection; returns the latter."""
    from frot.selection import stability_selection

    found = None
    data = samples.X, samples.y
    try:
        if test:
            options = test | run | {"block": samples.block, "checkpoint": files.permutations}
            _translated(selector.permutation_test, *data, **options)
        if halves:
            options = halves | run | {"selector": selector, "checkpoint": files.stability}
            found = _translated(stability_selection, *data, **options)
    except KeyboardInterrupt:
        kept = [path for path in (files.permutations, files.stability) if path.exists()]
        for path in kept:
            remark(f"What is finished is in {path}; the same command goes on from there.")
        raise
    return found
