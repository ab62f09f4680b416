"""Progress on stderr: of the certified gap of one problem, and of the count of many.

A bar on a terminal and in a notebook; lines where stderr is a file or a pipe.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from frot.problem.result import Progress

__all__ = ["counting_bar", "progress_bar"]

# Seconds between two lines in a file.
PAUSE = 10.0


class Lines:
    """Lines of text on stderr: the first at once, others when `pause` seconds have passed.

    Examples
    --------
    >>> Lines("pairs").left(0.25, 60.0)
    '0:03:00 left'
    """

    def __init__(self, what: str, pause: float | None = None) -> None:
        self.what = what
        self.began = time.monotonic()
        self._pause = PAUSE if pause is None else pause
        self._last: tuple[float, str] = (-math.inf, "")

    def show(self, text: str, *, final: bool = False) -> None:
        """Write a line with the time so far, unless the last one is fresh or says the same."""
        now = time.monotonic()
        when, said = self._last
        if said == text or not (final or now - when >= self._pause):
            return
        self._last = (now, text)
        print(f"{self.what}: {text}, {_clock(now - self.began)}", file=sys.stderr, flush=True)

    @staticmethod
    def left(share: float, seconds: float) -> str:
        """Say how long the rest takes, where `share` took so many seconds."""
        return f"{_clock(seconds * (1.0 - share) / share)} left"


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _has_bars() -> bool:
    """Whether a bar can move where stderr goes."""
    from rich.console import Console

    console = Console(stderr=True)
    return console.is_terminal or console.is_jupyter


@contextmanager
def progress_bar(tol: float, *, enabled: bool) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that shows a `Progress`; it does nothing unless `enabled`.

    The bar fills with the digits of the gap, since solvers gain digits at an even pace.
    """
    if not enabled:
        yield lambda now: None
        return
    if not _has_bars():
        lines, last = Lines("solving"), ""

        def line(now: Progress) -> None:
            nonlocal last
            last = f"gap {now.gap:.1e} (to {tol:.0e})"
            lines.show(last)

        try:
            yield line
        finally:
            if last:
                lines.show(last, final=True)
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
    if not _has_bars():
        with _counted_lines(what, count, effort, before) as add:
            yield add
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


@contextmanager
def _counted_lines(
    what: str, count: int, effort: float, before: tuple[int, float]
) -> Iterator[Callable[[int, float], None]]:
    """Yield a function that adds to the count done, and writes lines of it."""
    lines = Lines(what)
    so_far, old = before
    done = 0.0

    def text() -> str:
        share = done / (effort - old) if effort > old else 1.0
        if not 0.0 < share < 1.0:
            return f"{so_far}/{count}"
        return f"{so_far}/{count}, {lines.left(share, time.monotonic() - lines.began)}"

    def add(more: int, gone: float) -> None:
        nonlocal so_far, done
        so_far += more
        done += gone
        lines.show(text())

    lines.show(text())
    try:
        yield add
    finally:
        lines.show(text(), final=True)
