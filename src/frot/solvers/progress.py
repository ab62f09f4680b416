"""Progress bars: of the certified gap of one problem, and of the count of many.

In a terminal they are Rich's, on stderr. In a notebook they are HTML that is shown in place:
Rich's would need ipywidgets there, and warns without them. Where stderr is a file or a pipe they
are lines of text, one every ten seconds.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from html import escape
from typing import Any

from frot.problem.result import Progress

# Seconds between two pictures of a bar in a notebook.
PAUSE = 0.1
# And between two lines of text.
LINE_PAUSE = 10.0


@contextmanager
def progress_bar(tol: float) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that shows a `Progress`.

    The bar fills with the digits of the gap, since solvers gain digits at an even pace.
    """
    digits = max(1.0, -math.log10(max(tol, 1e-15)))
    with _bar("solving", digits, "gap ?") as move:

        def show(now: Progress) -> None:
            done = -math.log10(min(1.0, max(now.gap, 1e-15)))
            move(min(done, digits), f"gap {now.gap:.1e} (to {tol:.0e})")

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
    so_far, spent = before
    with _bar(what, effort, f"{so_far}/{count}", spent, left=True) as move:

        def show(more: int, done: float) -> None:
            nonlocal so_far, spent
            so_far, spent = so_far + more, spent + done
            move(spent, f"{so_far}/{count}")

        yield show


Move = Callable[[float, str], None]


@contextmanager
def _bar(
    what: str, total: float, text: str, begun: float = 0.0, *, left: bool = False
) -> Iterator[Move]:
    """Yield a function that moves a bar to where it says, with a text next to it."""
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_jupyter:
        yield from _in_notebook(what, total, text, begun)
        return
    if not console.is_terminal:
        yield from _in_lines(what, total, text, begun, left)
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    ends: Sequence[Any] = [TextColumn("left"), TimeRemainingColumn()] if left else []
    detail = TextColumn("{task.fields[detail]}")
    columns = TextColumn("{task.description}"), BarColumn(), detail, TimeElapsedColumn(), *ends
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total, detail=text)
        bar.update(task, completed=begun)
        yield lambda done, said: bar.update(task, completed=done, detail=said)


def _in_notebook(what: str, total: float, text: str, begun: float) -> Iterator[Move]:
    """Yield the function; the picture changes ten times a second, and goes at the end."""
    from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

    start = last = time.monotonic()
    handle: Any = display(HTML(_html(what, begun, total, text, 0.0)), display_id=True)

    def move(done: float, said: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PAUSE:
            last = now
            handle.update(HTML(_html(what, done, total, said, now - start)))

    try:
        yield move
    finally:
        handle.update(HTML(""))


def _in_lines(what: str, total: float, text: str, begun: float, left: bool) -> Iterator[Move]:
    """Yield the function; a line says what is done, and how long the rest takes where asked."""
    start, when, last = time.monotonic(), -math.inf, ""
    now_at = (begun, text)

    def write(final: bool) -> None:
        nonlocal when, last
        done, said = now_at
        now = time.monotonic()
        line = f"{what}: {said}"
        if line == last or not (final or now - when >= LINE_PAUSE):
            return
        when, last = now, line
        share = (done - begun) / (total - begun) if total > begun else 1.0
        if left and 0.0 < share < 1.0:
            line += f", {_clock((now - start) * (1.0 - share) / share)} left"
        print(f"{line}, {_clock(now - start)}", file=sys.stderr, flush=True)

    def move(done: float, said: str) -> None:
        nonlocal now_at
        now_at = (done, said)
        write(final=False)

    if left:
        write(final=False)
    try:
        yield move
    finally:
        if left or now_at[1] != text:
            write(final=True)


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _html(what: str, done: float, total: float, text: str, seconds: float) -> str:
    """Return a bar as HTML.

    Examples
    --------
    >>> _html("pairs", 1, 4, "1/4", 61.0)
    '<div>pairs <progress value="0.2500" max="1"></progress> 1/4 · 1:01</div>'
    """
    share = min(1.0, done / total) if total > 0.0 else 1.0
    clock = f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
    bar = f'<progress value="{share:.4f}" max="1"></progress>'
    return f"<div>{escape(what)} {bar} {escape(text)} · {clock}</div>"
