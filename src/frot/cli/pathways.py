"""What ``frot select`` prints of gene sets that were tested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from frot.cli.console import console, say

if TYPE_CHECKING:
    from frot.selection import FROTSelector, PathwayTest, StabilitySelection

__all__ = ["show_comparisons", "show_pathways"]

# Genes of a leading edge that are printed; a table has all.
GENES = 3
LEVEL = 0.05


def show_pathways(
    selector: FROTSelector, rows: int, stability: StabilitySelection | None = None
) -> None:
    """Print the sets, best first, with both tests, and what the figures mean."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    test: PathwayTest = selector.pathways_
    shown = test.order[: min(rows, int(selector.groups_support_.sum()))]
    table = Table(box=box.SIMPLE_HEAVY, pad_edge=False, collapse_padding=True)
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
