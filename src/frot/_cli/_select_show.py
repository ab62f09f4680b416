"""What ``frot select`` prints: the best features, and how far the answer is proven."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from frot._cli._console import console, say

if TYPE_CHECKING:
    from frot.selection import FROTSelector, StabilitySelection

__all__ = ["show_selection"]


def show_selection(
    selector: FROTSelector, rows: int, stability: StabilitySelection | None = None
) -> None:
    """Print the table and one line for each comparison."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    order = np.argsort(selector.ranking_)
    kept = int(selector.groups_support_.sum())
    shown = order[: min(rows, kept)]
    single = len(selector.groups_) == selector.n_features_in_ and selector.groups_.in_order
    what = "feature" if single else "group"
    tested = getattr(selector, "permutation_", None)
    table = Table(box=box.SIMPLE_HEAVY, pad_edge=False, collapse_padding=True)
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column(what, overflow="fold", min_width=8)
    headings = ["score", "shift", "shape", "misaligned", "α"]
    headings += ["p", "q"] if tested is not None else []
    headings += ["stable"] if stability is not None else []
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for group in shown:
        parts = (selector.shift_, selector.shape_, selector.misalignment_)
        cells = [f"{selector.scores_[group]:.4g}", *(f"{part[group]:.3f}" for part in parts)]
        cells.append(f"{selector.alpha_[group]:.2g}")
        if tested is not None:
            cells += [f"{tested.p[group]:.2g}", f"{tested.q[group]:.2g}"]
        if stability is not None:
            cells.append(f"{stability.frequency[group]:.0%}")
        # As text, so that brackets in names are not read as markup.
        name = Text(selector.groups_.names[group])
        table.add_row(str(selector.ranking_[group]), name, *cells)
    if len(shown):
        console().print(table)
    more = f", of which the first {len(shown)} are shown" if len(shown) < kept else ""
    say(f"{kept:,} of {len(order):,} {what}s selected{more}.")
    for one in selector.comparisons_:
        result = one.result
        say(
            f"{one.name}: eta {result.eta:.4g}, perplexity {result.perplexity:.1f} of "
            f"{len(result.alpha):,}, optimum in [{result.lower:.8g}, {result.upper:.8g}], "
            f"gap {result.gap:.1e}, {result.status}",
            style="" if result.status.ok else "yellow",
        )
    if tested is not None:
        say(
            f"{len(tested.null):,} permutations of {tested.statistic}: "
            f"{int((tested.q <= 0.05).sum()):,} {what}s with q <= 0.05, "
            f"{int((tested.q <= 0.1).sum()):,} with q <= 0.1, "
            f"{int((tested.p_max <= 0.05).sum()):,} with max-T p <= 0.05"
        )
        if not tested.by_feature:
            say(
                f"p and q of {tested.statistic} are right if nothing differs, and too small for "
                f"single {what}s beside others that do: test shift, shape or wasserstein for those",
                style="yellow",
            )
