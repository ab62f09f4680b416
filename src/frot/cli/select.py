"""``frot select``: a labelled table in, the features that tell its classes apart out.

Below the command is what it prints and writes: the ranked features, gene sets that were tested.
"""

from __future__ import annotations

import csv
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from frot._base.errors import InputError, require
from frot._base.files import make_folder, replacing
from frot._base.names import quote_some
from frot._base.stopping import Interrupted
from frot.cli.command import (
    PAGES,
    TABLES,
    WORST,
    Progress,
    Writes,
    arguments,
    bar,
    capped,
    check_files,
    command,
    console,
    exit_code,
    given,
    new_table,
    numbers,
    option,
    option_words,
    remark,
    say,
    typed,
    warn,
    warnings_as_lines,
    wrote,
)

if TYPE_CHECKING:
    from frot.selection import FROTSelector, PathwayTest, PermutationTest


@dataclass(frozen=True)
class SelectCall:
    """What to select from and how; each mapping holds only what differs from the defaults.

    `columns` are arguments of `frot.selection.read_samples`, `options` of `FROTSelector`, `limits`
    of `frot.Groups.limited`, `permutation` of the test (`permutation_test` if there is a statistic,
    else `pathway_test`), empty where not asked for; `files` are names of options and paths that are
    written.

    Examples
    --------
    >>> call = SelectCall(
    ...     Path("a b.csv"), 5, "each", {"label": "class"}, {"eta": 0.5},
    ...     permutation={"n_permutations": 99, "statistic": "shift"},
    ... )
    >>> print(call.command)
    frot select 'a b.csv' --label class --top 5 --eta 0.5 --permutations 99 --statistic shift
    >>> print(call.python)
    from frot.selection import FROTSelector, read_samples
    <BLANKLINE>
    samples = read_samples('a b.csv', label='class')
    selector = FROTSelector(5, groups=samples.groups('each'), eta=0.5)
    selector.fit(samples.X, samples.y)
    selector.permutation_test(samples.X, samples.y, n_permutations=99, statistic='shift')
    """

    data: Path
    top: int | float
    groups: str
    columns: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    permutation: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """The command line."""
        words = ["frot", "select", str(self.data), "--label", str(self.columns["label"])]
        words += ["--top", str(self.top)]
        if self.groups != "each":
            words += ["--groups", self.groups]
        words += option_words(self.limits)
        for name, value in self.columns.items():
            if name not in ("label", "block"):
                words += _words(name, value)
        words += option_words(self.options)
        if self.permutation:
            words += ["--permutations", str(self.permutation["n_permutations"])]
            words += option_words(given(statistic=(self.permutation.get("statistic"), None)))
        if "block" in self.columns:
            words += ["--block", str(self.columns["block"])]
        if "random_state" in self.permutation:
            words += ["--seed", str(self.permutation["random_state"])]
        for name, path in self.files.items():
            words += [f"--{name}", str(path)]
        return shlex.join(words)

    @property
    def python(self) -> str:
        """The same in Python."""
        read = [repr(str(self.data)), *arguments(self.columns)]
        groups = f"samples.groups({self.groups!r})"
        if self.limits or self.groups.endswith(".gmt"):
            groups += f".limited({', '.join(arguments(self.limits))})"
        fit = [str(self.top), f"groups={groups}", *arguments(self.options)]
        lines = ["import frot"] * ("adversary" in self.options)
        lines += [
            "from frot.selection import FROTSelector, read_samples",
            "",
            f"samples = read_samples({', '.join(read)})",
            f"selector = FROTSelector({', '.join(fit)})",
            "selector.fit(samples.X, samples.y)",
        ]
        if self.permutation:
            values = ["samples.X", "samples.y", *arguments(self.permutation)]
            values += ["block=samples.block"] * ("block" in self.columns)
            sets = "statistic" not in self.permutation
            values += ["feature_names=samples.names"] * sets
            work = "pathway_test" if sets else "permutation_test"
            lines.append(f"selector.{work}({', '.join(values)})")
        return "\n".join(lines)


def _words(name: str, value: Any) -> list[str]:
    """Write an argument of `read_samples` as words of the command line."""
    flag = "--id" if name == "ids" else f"--{name}"
    if value is True:
        return [flag]
    return [word for one in ([value] if isinstance(value, str) else value) for word in (flag, one)]


@dataclass(frozen=True)
class SelectFiles:
    """Where the table, the page and the finished permutations go.

    Unless the user names a checkpoint it lies beside the first file that is written, or in the
    working folder, and is removed when the run is complete. One that was named is kept, so that
    more permutations can be added.

    Examples
    --------
    >>> SelectFiles(Path("data.csv"), Path("out/genes.tsv")).permutations.as_posix()
    'out/genes.tsv.permutations'
    >>> SelectFiles(Path("in/data.csv")).permutations.as_posix()
    'data.csv.permutations'
    """

    data: Path
    table: Path | None = None
    page: Path | None = None
    checkpoint: Path | None = None
    per_class: Path | None = None

    @property
    def permutations(self) -> Path:
        """Checkpoint of the permutation test."""
        near = self.table or self.page or Path(self.data.name)
        return self.checkpoint or near.with_name(f"{near.name}.permutations")

    def check(self) -> None:
        """Refuse what could not be written, before the work."""
        wanted = (self.table, TABLES), (self.page, PAGES), (self.checkpoint, ())
        wanted += ((self.per_class, TABLES),)
        check_files(*wanted, inputs=[self.data], called="the data itself")

    def finish(self) -> None:
        """Remove the checkpoint if the user did not ask for it."""
        if self.checkpoint is None:
            self.permutations.unlink(missing_ok=True)


# The choices of options; reading them off the library would load scikit-learn for ``--help``.
Scaling = Literal["balanced", "paper", "none"]
Multiclass = Literal["ovr", "ovo"]
Missing = Literal["error", "impute", "drop"]
Values = Literal["auto", "log2", "log1p", "linear"]
Score = Literal[
    "auto", "moderated", "t", "shift", "shape", "combined", "alpha", "phi", "misalignment", "set"
]
Statistic = Literal[
    "t", "shift", "shape", "wasserstein", "combined", "alpha", "phi", "misalignment"
]

GROUPS = "each, prefix, or a .gmt, .json, .csv or .tsv file of groups."
LABELS = "File with the classes, matched by samples' names."
TRANSPOSE = "The table has one row per feature, one column per sample."
IDS = "Column of samples' names; with --transpose, of features'."
FEATURES = "Only these are features; repeatable."
KEEP = "A feature though it looks like metadata; repeatable."
TOP = "How many to select; below 1, a fraction. By default 50, at most half."
ETA = "Entropy of the weights: auto, or a number."
STATISTIC = "What the permutations test; by default t, or for groups two nulls of sets."
MIN_SIZE = "Fewest features of a group in the data; 5 for .gmt files."
MAX_SIZE = "Most features of a group in the data; 500 for .gmt files."
COVERAGE = "Least share of a set's genes that the data has."
PLAN = "Find the plan and alpha; by default for up to 250,000 pairs of samples."
REFERENCE = "Compare every other class with this one, such as the controls."
PICTURES = "Write volcano, strips, heat map and sets as .svg and .pdf."
PER_CLASS = "Write the ranks of every comparison, .tsv or .csv."
CHECKPOINT = "Keep finished permutations here; by default beside --out until done."


@command(
    "frot select genes.csv --label class --top 20 --out genes.tsv --out report.html",
    "frot select counts.tsv --transpose --labels samples.csv --label condition --log1p",
    "frot select cells.h5ad --label cell_type --groups sets.gmt --permutations 1000",
    "zcat genes.csv.gz | frot select - --label class --json - | jq .table",
    writes=[
        Writes("table", TABLES, "features.tsv"),
        Writes("report", PAGES, "report.html"),
    ],
    options={"labels": "--labels", "ids": "--id", "transpose": "--transpose", "log1p": "--log1p",
             "features": "--features", "drop": "--drop", "keep": "--keep", "missing": "--missing",
             "min_size": "--min-size", "max_size": "--max-size", "min_coverage": "--min-coverage"},
)  # fmt: skip
def select(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Table of samples, a row each.")],
    label: Annotated[str, option("Data", "Column of the classes.", "COLUMN")],
    labels: Annotated[str | None, option("Data", LABELS, "FILE")] = None,
    transpose: Annotated[bool, option("Data", TRANSPOSE, None, "--transpose")] = False,
    top: Annotated[str | None, option("Selection", TOP, "NUMBER")] = None,
    groups: Annotated[str, option("Data", GROUPS, "GROUPS")] = "each",
    min_size: Annotated[int | None, option("Data", MIN_SIZE, "COUNT")] = None,
    max_size: Annotated[int | None, option("Data", MAX_SIZE, "COUNT")] = None,
    min_coverage: Annotated[float, option("Data", COVERAGE, "SHARE")] = 0.0,
    ids: Annotated[str | None, option("Data", IDS, "COLUMN", "--id")] = None,
    features: Annotated[list[str] | None, option("Data", FEATURES, "NAME|FILE")] = None,
    drop: Annotated[
        list[str] | None,
        option("Data", "Not a feature; repeatable.", "NAME|FILE", "--drop", "--ignore"),
    ] = None,
    keep: Annotated[list[str] | None, option("Data", KEEP, "NAME|FILE")] = None,
    log1p: Annotated[bool, option("Data", "Rank log(1 + x), for counts.", None, "--log1p")] = False,
    layer: Annotated[
        str | None, option("Data", "Layer of an .h5ad file to read, not X.", "NAME")
    ] = None,
    values: Annotated[Values, option("Data", "What the numbers are, for fold changes.")] = "auto",
    missing: Annotated[Missing, option("Data", "What to do with missing values.")] = "error",
    scaling: Annotated[Scaling, option("Selection", "Scale of features.")] = "balanced",
    score: Annotated[Score, option("Selection", "What to rank by.")] = "auto",
    eta: Annotated[str, option("Selection", ETA, "COST")] = "auto",
    worst: Annotated[int | None, option("Selection", WORST, "COUNT")] = None,
    multiclass: Annotated[
        Multiclass, option("Selection", "Three or more classes: one against rest, or pairs.")
    ] = "ovr",
    reference: Annotated[str | None, option("Selection", REFERENCE, "CLASS")] = None,
    plan: Annotated[bool | None, option("Selection", PLAN)] = None,
    tol: Annotated[float | None, option("Selection", "Relative gap to stop at.", "GAP")] = None,
    max_iter: Annotated[
        int | None, option("Selection", "Transport problems at most.", "COUNT")
    ] = None,
    permutations: Annotated[
        int, option("Inference", "Number of permutations of the labels.", "COUNT", min=0)
    ] = 0,
    statistic: Annotated[Statistic | None, option("Inference", STATISTIC)] = None,
    block: Annotated[
        str | None, option("Inference", "Column to permute within: batch, donor.", "COLUMN")
    ] = None,
    seed: Annotated[
        int, option("Inference", "Seed of permutations.", None, "--seed", "--random-state", min=0)
    ] = 0,
    workers: Annotated[int, option("Inference", "Processes; -1 for all cores.", "COUNT")] = 1,
    checkpoint: Annotated[Path | None, option("Inference", CHECKPOINT, "FILE")] = None,
    table: Annotated[
        Path | None, option("Output", "Write all ranks, .tsv or .csv.", "FILE")
    ] = None,
    per_class: Annotated[Path | None, option("Output", PER_CLASS, "FILE")] = None,
    report: Annotated[Path | None, option("Output", "Write a web page, .html.", "FILE")] = None,
    pictures: Annotated[Path | None, option("Output", PICTURES, "FOLDER")] = None,
    rows: Annotated[int, option("Output", "Rows to print.", "COUNT", min=0)] = 20,
    progress: Progress = None,
) -> None:
    """Select the features that separate classes: in which class each is higher, and by how much.

    DATA is a .csv, .tsv, .txt, .gct (also with .gz), .xlsx, .parquet or .npz file with a column of
    classes, or an .h5ad file with one in obs. Columns of numbers are features; the first column
    of text names the samples. A dash is stdin.

    A run that is stopped, by Ctrl-C or otherwise, keeps its finished permutations on disk; the
    same command goes on from there.

    Exit codes: 0 solved, 2 bad input, 3 stopped before the tolerance, 130 interrupted.
    """
    from frot.selection import (
        FROTSelector,
        read_samples,
        write_selection_pictures,
        write_selection_report,
    )

    files = SelectFiles(data, table, report, checkpoint, per_class)
    files.check()
    if pictures is not None:
        require("matplotlib.figure", "plot")
        make_folder(pictures)
    count = None if top is None else _number(top, "top")
    if not workers:
        raise InputError("workers: 0 processes do nothing; give 1 or more, or -1 for all cores")
    if block is not None and not permutations:
        raise InputError("block: is what permutations stay within; give --permutations too")
    columns: dict[str, Any] = {"label": label} | given(
        labels=(labels, None), transpose=(transpose, False), block=(block, None), ids=(ids, None),
        layer=(layer, None),
        features=(features or None, None), drop=(drop or [], []), keep=(keep or [], []),
        log1p=(log1p, False),
    )  # fmt: skip
    with warnings_as_lines():
        samples = _translated(read_samples, data, **columns)
        limits = given(min_size=(min_size, None), max_size=(max_size, None))
        limits |= given(min_coverage=(min_coverage, 0.0))
        parsed = samples.groups(groups).limited(**limits)
    n, d = samples.shape
    number = max(1, min(50, len(parsed) // 2)) if count is None else count
    classes = len(set(samples.y.tolist()))
    remark(f"{n:,} samples of {d:,} features, {classes} class{'' if classes == 1 else 'es'}")
    _note(samples, "features" if transpose else "samples", parsed)
    options = given(
        scaling=(scaling, "balanced"),
        adversary=(capped(worst, len(parsed)), None),
        eta=(eta if eta == "auto" else _number(eta, "eta"), "auto"),
        score=(score, "auto"),
        values=(values, "auto"),
        plan=(plan, None),
        multiclass=(multiclass, "ovr"),
        reference=(reference, None),
        missing=(missing, "error"),
        tol=(tol, None),
        max_iter=(max_iter, None),
    )
    test: dict[str, Any] = {"n_permutations": permutations} if permutations else {}
    if test and (statistic is not None or groups == "each"):
        test["statistic"] = statistic or "t"
    if test and seed:
        test["random_state"] = seed
    written = {"out": table, "per-class": per_class, "report": report, "pictures": pictures}
    call = SelectCall(
        typed(data), number, groups, columns, options, test,
        {name: path for name, path in written.items() if path is not None}, limits,
    )  # fmt: skip
    selector = FROTSelector(number, groups=parsed, **options)
    run = {"n_jobs": workers, "progress": bar(progress)}
    interrupted = False
    with warnings_as_lines():
        try:
            selector = _translated(selector.fit, samples.X, samples.y)
        except Interrupted as stop:
            # Fitted with the best answer until then; no more is asked for.
            selector, test, interrupted = stop.result, {}, True
    _test(selector, samples, files, test, run)
    show_selection(selector, rows)
    numbers(selection_numbers(selector), call)
    if table is not None:
        write_ranking(selector, table)
    if per_class is not None:
        write_comparisons(selector, per_class)
    named = {"feature_names": samples.names, "sample_names": samples.ids}
    with warnings_as_lines():
        if report is not None:
            write_selection_report(
                selector,
                samples.X,
                samples.y,
                report,
                title=f"{data.name} by {label}",
                call=call.python,
                command=call.command,
                full_table="" if table is None else table.name,
                **named,
            )
        wrote(table, per_class, report)
        if pictures is not None:
            drawn = write_selection_pictures(selector, samples.X, samples.y, pictures, **named)
            remark(f"Wrote {len(drawn)} files in {pictures}")
    if not interrupted:
        files.finish()
    results = [one.result for one in selector.comparisons_ if one.result is not None]
    raise typer.Exit(max((exit_code(result.status) for result in results), default=0))


def _number(text: str, name: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    more = "auto or a number" if name == "eta" else "a whole number, or a fraction below 1"
    raise InputError(f"{name}: {text!r} is not a number; give {more}")


def _note(samples: Any, whose: str, groups: Any) -> None:
    """Say what was taken for what, so that nothing is left out in silence."""
    if samples.ignored:
        warn(
            f"{quote_some(list(samples.ignored))}: text, and so no feature; left out "
            f"(--drop says so without this warning, --id takes one for the {whose}' names)"
        )
    if groups.dropped:
        one = len(groups.dropped) == 1
        warn(
            f"{len(groups.dropped)} set{'' if one else 's'} ha{'s' if one else 've'} too few "
            "features in the data, or too many (--min-size, --max-size, --min-coverage), and "
            f"{'is' if one else 'are'} left out: {quote_some(groups.dropped)}"
        )


def _translated(work: Any, *arguments: Any, **options: Any) -> Any:
    """Run, with arguments of the library called by the options they came from."""
    names = {"n_features_to_select": "top", "y": "label", "n_permutations": "permutations"}
    try:
        return work(*arguments, **options)
    except InputError as error:
        text = str(error)
    except ValueError as error:
        # scikit-learn's own words, of which the first sentence says what is wrong.
        text = str(error).splitlines()[0]
    # The argument is what a message begins with; a class may be called "therapy: none".
    head, colon, rest = text.partition(":")
    raise InputError(names.get(head, head) + colon + rest)


def _test(
    selector: Any, samples: Any, files: Any, test: dict[str, Any], run: dict[str, Any]
) -> None:
    """Run the permutation test or the pathway test, if one was asked for."""
    data = samples.X, samples.y
    try:
        if test and "statistic" not in test:
            options = test | {"block": samples.block, "feature_names": samples.names}
            _translated(selector.pathway_test, *data, **options)
        elif test:
            options = test | run | {"block": samples.block, "checkpoint": files.permutations}
            with warnings_as_lines():
                _translated(selector.permutation_test, *data, **options)
    except KeyboardInterrupt:
        if files.permutations.exists():
            kept = files.permutations
            remark(f"What is finished is in {kept}; the same command goes on from there.")
        raise


# Genes of a leading edge that are printed; a table has all.
GENES = 3
LEVEL = 0.05


def write_ranking(selector: FROTSelector, path: Path) -> None:
    """Write the table of all features, or sets, best first, with whether each is selected."""
    _write(path, [ranking_columns(selector)])


def ranking_columns(selector: FROTSelector) -> dict[str, np.ndarray]:
    """Return the table of all features, or sets, best first, by column."""
    tested, _ = selector.tests
    order = np.argsort(selector.ranking_) if tested is None else tested.order
    table: Any = selector.table_ if tested is None else tested.table
    columns = _columns(table)
    columns["selected"] = selector.groups_support_[order].astype(int)
    return columns


def selection_numbers(selector: FROTSelector) -> dict[str, Any]:
    """Return the table and the solver's facts of each comparison, ready for JSON."""
    columns = ranking_columns(selector)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    results = [(one.name, one.result) for one in selector.comparisons_]
    return {
        "table": [
            {name: None if value != value else value for name, value in zip(columns, row)}  # noqa: B905
            for row in rows
        ],
        "comparisons": [
            {"name": name}
            | ({} if result is None else {k: v for k, v in result.to_dict().items() if k in FACTS})
            for name, result in results
        ],
    }


FACTS = ("value", "lower", "upper", "gap", "eta", "status", "solver", "time")


def write_comparisons(selector: FROTSelector, path: Path) -> None:
    """Write the tables of all comparisons below each other, the first column saying of which.

    The two sides are ``mean_first`` and ``mean_second`` here, whatever their names.
    """
    tables = []
    for one, table in zip(selector.comparisons_, selector.tables_.values(), strict=True):
        columns = _columns(table)
        names = {f"mean_{label}": side for label, side in zip(one.labels, SIDES, strict=True)}
        named = {names.get(name, name): column for name, column in columns.items()}
        tables.append({"comparison": np.full(len(columns["rank"]), one.name, object)} | named)
    _write(path, tables)


SIDES = ("mean_first", "mean_second")


def _columns(table: Any) -> dict[str, np.ndarray]:
    return {name: np.asarray(table[name]) for name in table}


def _write(path: Path, tables: list[dict[str, np.ndarray]]) -> None:
    """Write tables of the same columns below each other."""
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        comma = path.suffix.lower() == ".csv"
        writer = csv.writer(file, delimiter="," if comma else "\t", lineterminator="\n")
        writer.writerow(tables[0])
        for columns in tables:
            for row in zip(*columns.values(), strict=True):
                writer.writerow([_cell(value) for value in row])


def _cell(value: Any) -> str:
    """Write a number with all that it has; nothing where there is none."""
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{float(value):.9g}"
    return str(value)


# How q-values were made.
QS = {"pooled": "pooled null, pi0 {:.2f}", "bh": "Benjamini-Hochberg"}
RIGHT: dict[str, Any] = {"justify": "right", "no_wrap": True}
CUT: dict[str, Any] = {"overflow": "ellipsis", "no_wrap": True}

# A heading, a cell for each row, and how it is laid out.
PrintedColumn = tuple[str, Sequence[str], dict[str, Any]]


def _print_table(columns: Sequence[PrintedColumn]) -> None:
    from rich.text import Text

    table = new_table()
    for heading, _, look in columns:
        table.add_column(heading, **look)
    # As text, so that brackets in names are not read as markup.
    for row in zip(*(map(Text, cells) for _, cells, _ in columns), strict=True):
        table.add_row(*row)
    if table.row_count:
        console().print(table)


def _written(values: np.ndarray, form: str) -> list[str]:
    return ["-" if value != value else f"{value:{form}}" for value in values.tolist()]


def show_selection(selector: FROTSelector, rows: int) -> None:
    """Print the table and one line for each comparison."""
    single = len(selector.groups_) == selector.n_features_in_ and selector.groups_.in_order
    what = "feature" if single else "group"
    sets, test = selector.tests
    order = np.argsort(selector.ranking_) if sets is None else sets.order
    kept = int(selector.groups_support_.sum())
    shown = order[: min(rows, kept)]
    columns = _ranking(selector, shown, what) if sets is None else _sets(sets, shown)
    _print_table(columns)
    if sets is not None:
        _show_shared_edges(sets, shown)
    more = f", of which the first {len(shown)} are shown" if len(shown) < kept else ""
    say(f"{kept:,} of {len(order):,} {what}s selected{more}.")
    if sets is not None:
        _show_pathway_test(sets)
    show_comparisons(selector)
    if sets is None and test is not None:
        _show_permutation_test(test, what)


def _ranking(selector: FROTSelector, shown: np.ndarray, what: str) -> list[PrintedColumn]:
    signed = {name: column[: len(shown)] for name, column in _columns(selector.table_).items()}
    names = [selector.groups_.names[group] for group in shown]
    columns: list[PrintedColumn] = [
        ("rank", _written(selector.ranking_[shown], "d"), RIGHT),
        (what, names, {"overflow": "fold", "min_width": 8}),
        ("score", _written(selector.scores_[shown], ".4g"), RIGHT),
        ("up in", signed["up_in"].tolist(), RIGHT),
        ("log2 FC", _written(signed["log2_fold_change"], "+.2f"), RIGHT),
    ]
    if "comparison" in signed:
        columns.append(("comparison", signed["comparison"].tolist(), RIGHT))
    if any(one.result is not None for one in selector.comparisons_):
        columns.append(("α", _written(selector.alpha_[shown], ".2g"), RIGHT))
    _, test = selector.tests
    if test is not None:
        tested = {"p": test.p, "q": test.q, "max-T": test.p_max}
        columns += [(name, _written(p[shown], ".2g"), RIGHT) for name, p in tested.items()]
    return columns


def _show_permutation_test(test: PermutationTest, what: str) -> None:
    say(
        f"{len(test.null):,} permutations of {test.statistic}: "
        f"{int((test.q <= 0.05).sum()):,} {what}s with q <= 0.05, "
        f"{int((test.q <= 0.1).sum()):,} with q <= 0.1 "
        f"({QS[test.q_method].format(test.pi0)}), "
        f"{int((test.q_bh <= 0.05).sum()):,} with Benjamini-Hochberg q <= 0.05, "
        f"{int((test.p_max <= 0.05).sum()):,} with max-T p <= 0.05"
    )
    if not test.by_feature:
        say(
            f"p and q of {test.statistic} are right if nothing differs, and too small for "
            f"single {what}s beside others that do: test t for those",
            style="yellow",
        )


def _sets(test: PathwayTest, shown: np.ndarray) -> list[PrintedColumn]:
    prefix = _prefix(test.names)
    values = {"p": test.p_competitive, "q": test.q_competitive, "q self": test.q_self_contained}
    edges = []
    for group in shown:
        edge = [test.feature_names[column] for column in test.edges[group]]
        more = f" +{len(edge) - GENES}" if len(edge) > GENES else ""
        edges.append(" ".join(edge[:GENES]) + more)
    narrow = RIGHT | {"min_width": 5}
    return [
        ("rank", [str(rank + 1) for rank in range(len(shown))], RIGHT | {"min_width": 4}),
        ("set", [test.names[group].removeprefix(prefix) for group in shown],
         CUT | {"max_width": 24}),
        ("size", _written(test.groups.sizes[shown], "d"), narrow),
        *((name, _written(found[shown], ".2g"), narrow) for name, found in values.items()),
        ("up in", [test.up_in[group] for group in shown], CUT | {"min_width": 5, "max_width": 12}),
        ("leading edge", edges, CUT | {"max_width": 20}),
    ]  # fmt: skip


def _show_shared_edges(test: PathwayTest, shown: np.ndarray) -> None:
    like, prefix = test.redundancy(), _prefix(test.names)
    for group in shown:
        name, share = like[group]
        if name:
            short = test.names[group].removeprefix(prefix), name.removeprefix(prefix)
            say(f"{short[0]} shares {share:.0%} of its leading edge with {short[1]}")


def _show_pathway_test(test: PathwayTest) -> None:
    if prefix := _prefix(test.names):
        say(f"Names are shown without {prefix!r}; --out has them whole, coverage and all tests.")
    many = [int((q <= LEVEL).sum()) for q in (test.q_competitive, test.q_self_contained)]
    say(
        f"{test.n_permutations:,} permutations, q <= {LEVEL:g}: {many[0]} sets differ more than "
        f"other genes do (competitive), {many[1]} differ (self-contained)"
    )


def _prefix(names: Sequence[str]) -> str:
    """Return what all names begin with, up to an underscore.

    Examples
    --------
    >>> _prefix(["HALLMARK_HYPOXIA", "HALLMARK_HEDGEHOG"]), _prefix(["A_B"])
    ('HALLMARK_', '')
    """
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)
    same = next((at for at, (a, b) in enumerate(zip(first, last)) if a != b), 0)  # noqa: B905
    head, underscore, _ = first[:same].rpartition("_")
    return head + underscore


def show_comparisons(selector: FROTSelector) -> None:
    """Print a line of the solver's facts for each comparison."""
    for one in selector.comparisons_:
        result = one.result
        if result is None:
            continue
        drawn = f", {one.about_plan}" if one.is_sample else ""
        say(
            f"{one.name}: eta {result.eta:.4g}, perplexity {result.perplexity:.1f} of "
            f"{len(result.alpha):,}, optimum in [{result.lower:.8g}, {result.upper:.8g}], "
            f"gap {result.gap:.1e}, {result.status}{drawn}",
            style="" if result.status.ok else "yellow",
        )
    left = [one for one in selector.comparisons_ if one.result is None]
    if left:
        more = f" and in {len(left) - 1} more comparisons" if len(left) > 1 else ""
        say(f"{left[0].name}: {left[0].about_plan}{more}; --plan makes one, of samples drawn")
