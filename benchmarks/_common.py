# ruff: noqa: E402
"""What the benchmarks share: one thread, medians, peaks of memory, a plain table."""

from __future__ import annotations

import os

# One thread for us and for the peer; has to be set before NumPy is loaded.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# The rankings of features that the paper's experiments compare are measured here too.
sys.path.append(str(Path(__file__).parents[1] / "experiments"))

__all__ = ["fastest", "peak_memory", "table", "timed"]


def timed(work: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Return the median processor time of `work` in seconds, and what it returned last."""
    times, result = [], None
    for _ in range(repeats):
        begin = time.process_time()
        result = work()
        times.append(time.process_time() - begin)
    return statistics.median(times), result


def fastest(work: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Return the least processor time of `work` in seconds, and what it returned last.

    On one thread that is the time it takes when nothing else runs.
    """
    least, result = float("inf"), None
    for _ in range(repeats):
        begin = time.process_time()
        result = work()
        least = min(least, time.process_time() - begin)
    return least, result


def peak_memory(prepare: Callable[..., Any], work: Callable[..., Any], *arguments: Any) -> int:
    """Return by how many bytes a fresh process grows at most in ``work(prepare(*arguments))``.

    What `prepare` makes (the inputs, the imports) does not count. The peak is the kernel's own.
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_peak, (prepare, work, arguments))


def _peak(prepare: Callable[..., Any], work: Callable[..., Any], arguments: tuple) -> int:
    made = prepare(*arguments)
    # Writing 5 makes the kernel forget the peak so far.
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    work(made)
    return _status("VmHWM") - before


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise OSError(f"no {field} in /proc/self/status")


def table(header: list[str], rows: list[list[str]]) -> None:
    """Print rows under a header, columns aligned."""
    widths = [max(len(str(line[i])) for line in [header, *rows]) for i in range(len(header))]
    for line in [header, ["-" * width for width in widths], *rows]:
        cells = zip(line, widths, strict=True)
        print("  ".join(f"{cell!s:>{width}}" for cell, width in cells))
