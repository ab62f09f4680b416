"""What ``frot match`` prints: the points, the layers that counted, how far it is proven."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from frot._cli._console import console, say

if TYPE_CHECKING:
    from frot.correspondence._match import Match as Matched
    from frot.correspondence._transfer import Transfer as Moved

__all__ = ["show_match"]


def show_match(match: Matched, points: np.ndarray, moved: Moved, rows: int, top: int) -> None:
    """Print a table of points, the heaviest layers and the interval."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAVY, pad_edge=False, collapse_padding=True)
    for heading in ("point", "x, y in A", "x, y in B", "confidence"):
        table.add_column(heading, justify="right", no_wrap=True)
    shown = list(zip(points, moved.points, moved.confidence, strict=True))[:rows]
    for number, ((x, y), (u, v), sure) in enumerate(shown, start=1):
        table.add_row(str(number), f"{x:.1f}, {y:.1f}", f"{u:.1f}, {v:.1f}", f"{sure:.0%}")
    if shown:
        console().print(table)
    if len(shown) < len(points):
        say(f"... and {len(points) - len(shown):,} more points")
    layers = sorted(match.alpha.items(), key=lambda item: -item[1])[:top]
    if layers:
        text = ", ".join(f"{name} {weight:.3f}" for name, weight in layers)
        say(f"Heaviest of {len(match.alpha)} layers: {text}")
    n, m = match.source_grid.count, match.target_grid.count
    say(f"{match.method}: {n:,} to {m:,} cells in {match.seconds:.3g} s")
    result = match.result
    if result is not None:
        say(
            f"optimum in [{result.lower:.8g}, {result.upper:.8g}], gap {result.gap:.1e}, "
            f"{result.status}: {result.status.sentence}",
            style="" if result.status.ok else "yellow",
        )
