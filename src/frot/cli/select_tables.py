"""What ``frot select`` prints and writes: the ranked features, gene sets that were tested."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.files import replacing
from frot.cli.console import console, new_table, say

if TYPE_CHECKING:
    from frot.selection import FROTSelector, PathwayTest, StabilitySelection

__all__ = ["selection_numbers", "show_selection", "write_comparisons", "write_ranking"]

# Genes of a leading edge that are printed; a table has all.
GENES = 3
LEVEL = 0.05


def write_ranking(
    selector: FROTSelector, path: Path, stability: StabilitySelection | None = None
) -> None:
    """Write the table of all features, or sets, best first, with whether each is selected."""
    _write(path, [ranking_columns(selector, stability)])


def ranking_columns(
    selector: FROTSelector, stability: StabilitySelection | None = None
) -> dict[str, np.ndarray]:
    """Return the table of all features, or sets, best first, by column."""
    tested = getattr(selector, "pathways_", None)
    order = np.argsort(selector.ranking_) if tested is None else tested.order
    table: Any = selector.table_ if tested is None else tested.table
    columns = _columns(table)
    columns["selected"] = selector.groups_support_[order].astype(int)
    if stability is not None:
        columns["frequency"] = stability.frequency[order]
    return columns


def selection_numbers(
    selector: FROTSelector, stability: StabilitySelection | None = None
) -> dict[str, Any]:
    """Return the table and the solver's facts of each comparison, ready for JSON."""
    columns = ranking_columns(selector, stability)
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


def show_selection(
    selector: FROTSelector, rows: int, stability: StabilitySelection | None = None
) -> None:
    """Print the table and one line for each comparison."""
    if hasattr(selector, "pathways_"):
        show_pathways(selector, rows, stability)
        return
    from rich.text import Text

    order = np.argsort(selector.ranking_)
    kept = int(selector.groups_support_.sum())
    shown = order[: min(rows, kept)]
    single = len(selector.groups_) == selector.n_features_in_ and selector.groups_.in_order
    what = "feature" if single else "group"
    tested = getattr(selector, "permutation_", None)
    table = new_table()
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column(what, overflow="fold", min_width=8)
    signed = _columns(selector.table_)
    planned = any(one.result is not None for one in selector.comparisons_)
    headings = ["score", "up in", "log2 FC", *(["comparison"] if "comparison" in signed else [])]
    headings += ["α"] if planned else []
    headings += ["p", "q", "max-T"] if tested is not None else []
    headings += ["stable"] if stability is not None else []
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for place, group in enumerate(shown):
        cells: list[Any] = [f"{selector.scores_[group]:.4g}", Text(signed["up_in"][place])]
        change = signed["log2_fold_change"][place]
        cells.append("-" if np.isnan(change) else f"{change:+.2f}")
        cells += [Text(signed["comparison"][place])] if "comparison" in signed else []
        cells += [f"{selector.alpha_[group]:.2g}"] if planned else []
        if tested is not None:
            cells += [f"{found[group]:.2g}" for found in (tested.p, tested.q, tested.p_max)]
        if stability is not None:
            cells.append(f"{stability.frequency[group]:.0%}")
        # As text, so that brackets in names are not read as markup.
        name = Text(selector.groups_.names[group])
        table.add_row(str(selector.ranking_[group]), name, *cells)
    if len(shown):
        console().print(table)
    more = f", of which the first {len(shown)} are shown" if len(shown) < kept else ""
    say(f"{kept:,} of {len(order):,} {what}s selected{more}.")
    show_comparisons(selector)
    if tested is not None:
        say(
            f"{len(tested.null):,} permutations of {tested.statistic}: "
            f"{int((tested.q <= 0.05).sum()):,} {what}s with q <= 0.05, "
            f"{int((tested.q <= 0.1).sum()):,} with q <= 0.1 "
            f"({QS[tested.q_method].format(tested.pi0)}), "
            f"{int((tested.q_bh <= 0.05).sum()):,} with Benjamini-Hochberg q <= 0.05, "
            f"{int((tested.p_max <= 0.05).sum()):,} with max-T p <= 0.05"
        )
        if not tested.by_feature:
            say(
                f"p and q of {tested.statistic} are right if nothing differs, and too small for "
                f"single {what}s beside others that do: test t for those",
                style="yellow",
            )


def show_pathways(
    selector: FROTSelector, rows: int, stability: StabilitySelection | None = None
) -> None:
    """Print the sets, best first, with both tests, and what the figures mean."""
    from rich.text import Text

    test: PathwayTest = selector.pathways_
    shown = test.order[: min(rows, int(selector.groups_support_.sum()))]
    table = new_table()
    table.add_column("rank", justify="right", no_wrap=True, min_width=4)
    table.add_column("set", overflow="ellipsis", no_wrap=True, max_width=24)
    for heading in ("size", "p", "q", "q self"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=5)
    table.add_column("up in", overflow="ellipsis", no_wrap=True, min_width=5, max_width=12)
    table.add_column("leading edge", overflow="ellipsis", no_wrap=True, max_width=20)
    if stability is not None:
        table.add_column("stable", justify="right", no_wrap=True)
    values = test.p_competitive, test.q_competitive, test.q_self_contained
    like, prefix = test.redundancy(), _prefix(test.names)
    for rank, group in enumerate(shown, start=1):
        edge = [test.feature_names[column] for column in test.edges[group]]
        more = f" +{len(edge) - GENES}" if len(edge) > GENES else ""
        cells = [str(test.groups.sizes[group])]
        cells += [f"{one[group]:.2g}" for one in values]
        # As text, so that brackets in names are not read as markup.
        words = [Text(test.up_in[group]), Text(" ".join(edge[:GENES]) + more)]
        last = [] if stability is None else [f"{stability.frequency[group]:.0%}"]
        name = Text(test.names[group].removeprefix(prefix))
        table.add_row(str(rank), name, *cells, *words, *last)
    if len(shown):
        console().print(table)
    for group in shown:
        name, share = like[group]
        if name:
            short = test.names[group].removeprefix(prefix), name.removeprefix(prefix)
            say(f"{short[0]} shares {share:.0%} of its leading edge with {short[1]}")
    kept, count = int(selector.groups_support_.sum()), len(test.order)
    more = f", of which the first {len(shown)} are shown" if len(shown) < kept else ""
    say(f"{kept:,} of {count:,} groups selected{more}.")
    if prefix:
        say(f"Names are shown without {prefix!r}; --out has them whole, coverage and all tests.")
    many = [int((q <= LEVEL).sum()) for q in (test.q_competitive, test.q_self_contained)]
    say(
        f"{test.n_permutations:,} permutations, q <= {LEVEL:g}: {many[0]} sets differ more than "
        f"other genes do (competitive), {many[1]} differ (self-contained)"
    )
    show_comparisons(selector)


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
