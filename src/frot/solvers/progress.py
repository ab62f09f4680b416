"""Progress bars: of the certified gap of one problem, and of the count of many."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from frot.problem.result import Progress

__all__ = ["counting_bar", "progress_bar"]


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


@contextmanager
def counting_bar(
    what: str,
    count: int,
    effort: float,
    *,
    enabled: bool,
    before: tuple[int, float] = (0, 0.0),
) -> Iterator[Callable[[int, float], None]]:
    """Yield a function that adds to the count done; it does nothing unless `enabled`.

    The bar and the time left go by effort, in whatever unit, since the parts may differ in size;
    the count is what is shown in figures. What was done `before` is shown, and no measure of pace.
    """
    if not enabled:
        yield lambda more, done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}/" + str(count)),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        so_far, done_before = before
        task = bar.add_task(what, total=effort, count=so_far)
        bar.update(task, completed=done_before)

        def show(more: int, done: float) -> None:
            nonlocal so_far
            so_far += more
            bar.update(task, advance=done, count=so_far)

        yield show
