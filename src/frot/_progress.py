"""A progress bar that shows how far the certified gap still is from the tolerance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from frot._result import Progress

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(tol: float, *, enabled: bool) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that shows a `Progress`; it does nothing unless `enabled`.

    The bar fills with the digits of the gap, since solvers gain digits at an even pace.
    """
    if not enabled:
        yield lambda now: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("gap {task.fields[gap]}"),
        TimeElapsedColumn(),
    )
    digits = max(1.0, -math.log10(max(tol, 1e-15)))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("solving", total=digits, gap="?")

        def show(now: Progress) -> None:
            done = -math.log10(min(1.0, max(now.gap, 1e-15)))
            text = f"{now.gap:.1e} (to {tol:.0e})"
            bar.update(task, completed=min(done, digits), gap=text)

        yield show
