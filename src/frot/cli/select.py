"""``frot select``: a labelled table in, the features that tell its classes apart out.

Below the command is what it prints and writes: the ranked features, gene sets that were tested.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from frot._base.errors import InputError
from frot._base.files import replacing
from frot._base.names import quote_some
from frot.cli.command import (
    TYPED,
    Json,
    Output,
    Quiet,
    Report,
    TableFile,
    check_files,
    examples,
    exit_code,
    new_table,
    option,
    warn,
)

if TYPE_CHECKING:
    from rich.table import Table

    from frot.selection import FROTSelector, PathwayTest, PermutationTest, ShapeTest

EXAMPLES = examples(
    "frot select genes.csv --label class --top 20 --table genes.tsv --report report.html",
    "frot select counts.tsv --transpose --labels samples.csv --label condition --log1p",
    "frot select cells.h5ad --label cell_type --groups sets.gmt --permutations 1000",
    "frot select genes.csv.gz --label class --json | jq .table",
)

# The choices of options; reading them off the library would load scikit-learn for ``--help``.
Missing = Literal["error", "impute", "drop"]
Score = Literal["moderated", "alpha"]

GROUPS = "each, prefix, or a .gmt, .json, .csv or .tsv file of groups."
LABELS = "File with the classes, matched by samples' names."
TRANSPOSE = "The table has one row per feature, one column per sample."
IDS = "Column of samples' names; with --transpose, of features'."
LOG1P = "Rank log(1 + x), for counts and intensities."
KEEP = "A feature though it looks like metadata; repeatable."
SCORE = "Rank by a moderated t, or alpha, the paper's."
BLOCK = "Column to adjust for and permute within: batch, site, patient."
TOP = "How many to select; below 1, a fraction. By default 50, at most half."


def select(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Table of samples, a row each.")],
    label: Annotated[str, option("Data", "Column of the classes.", "COLUMN")],
    labels: Annotated[str | None, option("Data", LABELS, "FILE")] = None,
    transpose: Annotated[bool, option("Data", TRANSPOSE, None, "--transpose")] = False,
    ids: Annotated[str | None, option("Data", IDS, "COLUMN", "--id")] = None,
    drop: Annotated[list[str] | None, option("Data", "Not a feature; repeatable.", "NAME")] = None,
    keep: Annotated[list[str] | None, option("Data", KEEP, "NAME")] = None,
    log1p: Annotated[bool, option("Data", LOG1P, None, "--log1p")] = False,
    missing: Annotated[Missing, option("Data", "What to do with missing values.")] = "error",
    groups: Annotated[str, option("Selection", GROUPS, "GROUPS")] = "each",
    top: Annotated[str | None, option("Selection", TOP, "NUMBER")] = None,
    score: Annotated[Score, option("Selection", SCORE)] = "moderated",
    block: Annotated[str | None, option("Selection", BLOCK, "COLUMN")] = None,
    permutations: Annotated[
        int,
        typer.Option(
            help="Permutations of the labels, for p and q, gene sets and shapes.",
            metavar="COUNT",
            min=0,
            rich_help_panel="Inference",
        ),
    ] = 0,
    seed: Annotated[int, option("Inference", "Seed of the permutations.")] = 0,
    table: TableFile = None,
    report: Report = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Select the features that tell the classes of a table apart.

    DATA is a .csv, .tsv, .txt, .gct (also with .gz), .xlsx or .parquet file with a column of
    classes, or an .h5ad file with one in obs. Columns of numbers are features; the first column
    of text names the samples.

    Exit codes: 0 solved, 2 bad input, 3 stopped before the tolerance, 130 interrupted.
    """
    from frot.selection import FROTSelector, read_samples, write_selection_report

    inputs = [data, *([Path(labels)] if labels else []), Path(groups)]
    check_files(inputs, table=table, report=report)
    out = Output(json, quiet)
    count = None if top is None else parse_top(top)
    samples = read_samples(
        data,
        label,
        labels=labels,
        transpose=transpose,
        block=block,
        ids=ids,
        drop=drop or (),
        keep=keep or (),
        log1p=log1p,
    )
    sets = samples.groups(groups).limited()
    classes = len(set(samples.y.tolist()))
    n, d = samples.shape
    out.remark(f"{n:,} samples of {d:,} features, {classes} class{'' if classes == 1 else 'es'}")
    _warn_of_what_is_left_out(samples, "features" if transpose else "samples", sets.dropped)
    selector = FROTSelector(
        max(1, min(50, len(sets) // 2)) if count is None else count,
        groups=sets,
        score=score,
        missing=missing,
        values="log1p" if log1p else "auto",
    )
    # Names of samples and features are told, and probes of one gene known; not of sparse tables,
    # which frames hold a column at a time.
    X = samples.X if hasattr(samples.X, "tocsc") else samples.to_frame()
    with errors_as_options():
        selector.fit(X, samples.y, samples.block)
        test: dict[str, Any] = {"n_permutations": permutations, "random_state": seed}
        if permutations and not selector.single:
            names = {"feature_names": samples.names}
            selector.pathway_test(X, samples.y, progress=out.bar, **names, **test)
        elif permutations:
            selector.permutation_test(X, samples.y, progress=out.bar, **test)
            if _has_shapes(selector, X):
                selector.shape_test(X, samples.y, progress=out.bar, **test)
    show_selection(out, selector)
    out.numbers(selection_numbers(selector))
    if table is not None:
        write_ranking(selector, table)
    if report is not None:
        write_selection_report(
            selector,
            X,
            samples.y,
            report,
            title=f"{data.name} by {label}",
            command=TYPED.get(),
            full_table="" if table is None else table.name,
            feature_names=samples.names,
            sample_names=samples.ids,
        )
    out.wrote(table, report)
    results = [
        comparison.result for comparison in selector.comparisons_ if comparison.result is not None
    ]
    raise typer.Exit(max((exit_code(result.status) for result in results), default=0))


def _has_shapes(selector: FROTSelector, X: Any) -> bool:
    """Whether `shape_test` can be run: of two classes of ten samples, in a table that is dense."""
    comparison = selector.comparisons_[0]
    return len(selector.classes_) == 2 and min(comparison.sizes) >= 10 and not hasattr(X, "tocsc")


def parse_top(text: str) -> int | float:
    """Read a number of features, or a fraction of them.

    Examples
    --------
    >>> parse_top("20"), parse_top("0.1")
    (20, 0.1)
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise InputError(f"top: {text!r} is not a number; give a whole number, or a fraction below 1")


def _warn_of_what_is_left_out(samples: Any, whose: str, dropped: Sequence[str]) -> None:
    if samples.ignored:
        warn(
            f"{quote_some(list(samples.ignored))}: text, and so no feature; left out "
            f"(--drop says so without this warning, --id takes one for the {whose}' names)"
        )
    if dropped:
        single = len(dropped) == 1
        warn(
            f"{len(dropped)} set{'' if single else 's'} ha{'s' if single else 've'} too few "
            f"features in the data, or too many, and {'is' if single else 'are'} left out: "
            f"{quote_some(list(dropped))}"
        )


# Arguments of the library that messages begin with, and where they came from here.
ORIGINS = {
    "n_features_to_select": "top",
    "y": "label",
    "n_permutations": "permutations",
    "random_state": "seed",
}


@contextmanager
def errors_as_options() -> Iterator[None]:
    """Call arguments of the library by the options they came from."""
    try:
        yield
    except ValueError as error:
        # Of scikit-learn's own words the first sentence says what is wrong.
        text = str(error) if isinstance(error, InputError) else str(error).splitlines()[0]
        # The argument is what a message begins with; a class may be called "therapy: none".
        head, colon, rest = text.partition(":")
        raise InputError(ORIGINS.get(head, head) + colon + rest) from None


def write_ranking(selector: FROTSelector, path: Path) -> None:
    """Write the table of all features, or sets, best first, with whether each is selected."""
    columns = ranking_columns(selector)
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        comma = path.suffix.lower() == ".csv"
        writer = csv.writer(file, delimiter="," if comma else "\t", lineterminator="\n")
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow([_cell(value) for value in row])


def _cell(value: Any) -> str:
    """Write a number with all that it has; nothing where there is none."""
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{float(value):.9g}"
    return str(value)


def ranking_columns(selector: FROTSelector) -> dict[str, np.ndarray]:
    """Return the table of all features, or sets, best first, by column."""
    tested, _ = selector.tests
    order = np.argsort(selector.ranking_) if tested is None else tested.order
    table: Any = selector.table_ if tested is None else tested.table
    columns = {name: np.asarray(table[name]) for name in table}
    return columns | {"selected": selector.groups_support_[order].astype(int)}


FACTS = ("value", "lower", "upper", "gap", "eta", "status", "solver", "time")


def selection_numbers(selector: FROTSelector) -> dict[str, Any]:
    """Return the table and the solver's facts of each comparison, ready for JSON."""
    columns = ranking_columns(selector)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    comparisons = []
    for comparison in selector.comparisons_:
        known = {} if comparison.result is None else comparison.result.to_dict()
        comparisons.append(
            {"name": comparison.name} | {name: known[name] for name in FACTS if known}
        )
    return {
        "table": [dict(zip(columns, row, strict=True)) for row in rows],
        "comparisons": comparisons,
    }


@dataclass(frozen=True)
class Column:
    """A column of a printed table.

    Attributes
    ----------
    heading : str
    cells : sequence of str
    spare : int
        Where the terminal is too narrow, columns of the largest number are left out first; those
        of 0 stay.
    most : int, optional
        Longer cells are cut.
    """

    heading: str
    cells: Sequence[str]
    spare: int = 0
    most: int | None = None


def print_columns(out: Output, name: Column, columns: Sequence[Column]) -> None:
    """Print a table as wide as the terminal allows, with the columns that it has room for.

    The `name` of what a row is about is never cut: it goes on in the next line beyond half the
    width.
    """
    if not name.cells:
        return
    console = out.console()
    wide = console.options.update(max_width=10_000)
    shown = list(columns)
    while (
        console.measure(_printed(name, shown, console.width // 2), options=wide).maximum
        > console.width
    ):
        last = max(shown, key=lambda column: column.spare)
        if not last.spare:
            break
        shown.remove(last)
    console.print(_printed(name, shown, console.width // 2))
    if left := [column.heading for column in columns if column not in shown]:
        out.say(f"No room for {', '.join(left)}; a wider terminal or --table has them.")


def _printed(name: Column, columns: Sequence[Column], room: int) -> Table:
    from rich.text import Text

    table = new_table()
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column(name.heading, overflow="fold", min_width=8, max_width=max(room, 8))
    for column in columns:
        table.add_column(
            column.heading,
            justify="right",
            no_wrap=True,
            overflow="ellipsis",
            max_width=column.most,
        )
    # As text, so that brackets in names are not read as markup.
    cells = [list(map(Text, column.cells)) for column in (name, *columns)]
    for rank, row in enumerate(zip(*cells, strict=True), start=1):
        table.add_row(str(rank), *row)
    return table


def show_selection(out: Output, selector: FROTSelector, most: int = 20) -> None:
    """Print `most` rows of the table and one line for each comparison."""
    what = "feature" if selector.single else "group"
    sets, test = selector.tests
    order = np.argsort(selector.ranking_) if sets is None else sets.order
    kept = int(selector.groups_support_.sum())
    shown = order[: min(most, kept)]
    name, columns = _ranking(selector, shown, what) if sets is None else _sets(sets, shown)
    print_columns(out, name, columns)
    if sets is not None:
        _show_shared_edges(out, sets, shown)
    more = f", of which the first {len(shown)} are shown" if len(shown) < kept else ""
    out.say(f"{kept:,} of {len(order):,} {what}s selected{more}.")
    if selector.block_ is not None:
        blocks = len(set(selector.block_.tolist()))
        out.say(f"Adjusted for {blocks:,} blocks; labels are permuted within blocks.")
    if sets is not None:
        _show_pathway_test(out, sets)
    elif test is not None:
        _show_permutation_test(out, test)
    elif selector.single:
        many = int((selector.p_values[1] <= 0.05).sum())
        out.say(f"Moderated t: {many:,} features with q <= 0.05 (Benjamini-Hochberg)")
    if "shape_" in vars(selector):
        _show_shape_test(out, selector.shape_)
    show_comparisons(out, selector)


def _written(values: np.ndarray, form: str) -> list[str]:
    return ["-" if value != value else f"{value:{form}}" for value in values.tolist()]


# Letters of a class that are printed.
CLASS = 16


def _ranking(selector: FROTSelector, shown: np.ndarray, what: str) -> tuple[Column, list[Column]]:
    table: Any = selector.table_[: len(shown)]
    name = Column(what, table["feature"].tolist())
    columns = [Column("up in", table["up_in"].tolist(), 1, CLASS)]
    if selector.single:
        # By how much it is up there, whichever class comes first.
        change = np.abs(table["log2_fold_change"].to_numpy())
        columns.append(Column("by log2", _written(change, ".2f"), 4))
        columns.append(Column("t", _written(np.abs(table["t"].to_numpy()), ".1f"), 3))
    else:
        columns.append(Column("score", _written(table["score"].to_numpy(), ".3g"), 3))
    if "comparison" in table:
        # Without it nobody knows who the rest is in which a feature may be up.
        columns.append(Column("comparison", table["comparison"].tolist(), 2, 2 * CLASS))
    for heading, column, spare in (("p", "p", 5), ("q", "q", 1), ("max-T", "p_max", 6)):
        if column in table and not table[column].isna().all():
            columns.append(Column(heading, _written(table[column].to_numpy(), ".2g"), spare))
    if "q_form" in table:
        columns.append(Column("form q", _written(table["q_form"].to_numpy(), ".2g"), 7))
    if any(comparison.result is not None for comparison in selector.comparisons_):
        columns.append(Column("α", _written(table["alpha"].to_numpy(), ".2g"), 8))
    return name, columns


def _show_permutation_test(out: Output, test: PermutationTest) -> None:
    counts = [int((q <= level).sum()) for q, level in ((test.q, 0.05), (test.q, 0.1))]
    out.say(
        f"{test.n_permutations:,} permutations of Welch's t: {counts[0]:,} features with "
        f"q <= 0.05, {counts[1]:,} with q <= 0.1 (pooled null, pi0 {test.pi0:.2f}), "
        f"{int((test.q_bh <= 0.05).sum()):,} with Benjamini-Hochberg q <= 0.05, "
        f"{int((test.p_max <= 0.05).sum()):,} with max-T p <= 0.05"
    )


def _show_shape_test(out: Output, test: ShapeTest) -> None:
    form, spread = (int((q <= 0.05).sum()) for q in (test.q_form, test.q_spread))
    best = f"; the surest is {test.names[test.order[0]]}" if form else ""
    out.say(
        f"Shape of {int(test.tested.sum()):,} features, aligned: {form:,} differ in form (q <= "
        f"0.05), {spread:,} in spread{best}"
    )


def _sets(test: PathwayTest, shown: np.ndarray) -> tuple[Column, list[Column]]:
    prefix = _prefix(test.names)
    edges = []
    for group in shown:
        edge = [test.feature_names[column] for column in test.edges[group]]
        more = f" +{len(edge) - 3}" if len(edge) > 3 else ""
        edges.append(" ".join(edge[:3]) + more)
    name = Column("set", [test.names[group].removeprefix(prefix) for group in shown])
    columns = [
        Column("size", _written(test.groups.sizes[shown], "d"), 3),
        Column("p", _written(test.p_competitive[shown], ".2g"), 4),
        Column("q", _written(test.q_competitive[shown], ".2g"), 1),
        Column("q self", _written(test.q_self_contained[shown], ".2g"), 2),
        Column("up in", [test.up_in[group] for group in shown], 1, CLASS),
        Column("leading edge", edges, 5),
    ]
    return name, columns


def _show_shared_edges(out: Output, test: PathwayTest, shown: np.ndarray) -> None:
    like, prefix = test.redundancy(), _prefix(test.names)
    for group in shown:
        name, share = like[group]
        if name:
            short = test.names[group].removeprefix(prefix), name.removeprefix(prefix)
            out.say(f"{short[0]} shares {share:.0%} of its leading edge with {short[1]}")


def _show_pathway_test(out: Output, test: PathwayTest) -> None:
    if test.note:
        out.say(f"{test.note}.")
    if prefix := _prefix(test.names):
        out.say(f"Names are shown without {prefix!r}; --table has them whole, and all tests.")
    many = [int((q <= 0.05).sum()) for q in (test.q_competitive, test.q_self_contained)]
    out.say(
        f"{test.n_permutations:,} permutations, q <= 0.05: {many[0]} sets differ more than "
        f"other genes do (competitive), {many[1]} differ (self-contained)"
    )
    if test.power:
        out.say(test.power)


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
    same = next((index for index, (a, b) in enumerate(zip(first, last)) if a != b), 0)  # noqa: B905
    head, underscore, _ = first[:same].rpartition("_")
    return head + underscore


def show_comparisons(out: Output, selector: FROTSelector) -> None:
    """Print a line of the solver's facts for each comparison."""
    for comparison in selector.comparisons_:
        result = comparison.result
        if result is None:
            continue
        drawn = f", {comparison.about_plan}" if comparison.is_sample else ""
        out.say(
            f"{comparison.name}: eta {result.eta:.4g}, optimum in [{result.lower:.8g}, "
            f"{result.upper:.8g}], gap {result.gap:.1e}, {result.status}{drawn}",
            style="" if result.status.ok else "yellow",
        )
    left = [comparison for comparison in selector.comparisons_ if comparison.result is None]
    if left:
        more = f" and in {len(left) - 1} more comparisons" if len(left) > 1 else ""
        out.say(f"{left[0].name}: {left[0].about_plan}{more}")
