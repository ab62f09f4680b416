"""How much memory a piece of work took at its peak, beyond what was there before."""

from __future__ import annotations

import ctypes
import gc
import os
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MEASURES", "Peak", "peak_memory"]

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
MEASURES = {
    "resident": "growth of the process's peak resident memory (what libraries in C took included)",
    "python": "peak of what Python and NumPy allocated (libraries in C left out)",
}


@dataclass
class Peak:
    """The peak in bytes, once the work is over, and by which of `MEASURES`."""

    kind: str
    size: int = 0


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measure the body: by the kernel's own mark where it can be reset, else by tracemalloc.

    The kernel's costs nothing and sees all; tracemalloc slows Python down, so that it is only
    for where there is no other way.

    Examples
    --------
    >>> import numpy as np
    >>> with peak_memory() as peak:
    ...     _ = np.ones(12_000_000).sum()
    >>> peak.kind in MEASURES, peak.size >= 0  # some 96 MB
    (True, True)
    """
    # What was left by the work before must not be freed, or found free, in the middle of this.
    gc.collect()
    _give_back()
    if STATUS.exists() and os.access(RESET, os.W_OK):
        peak = Peak("resident")
        RESET.write_text("5")
        before = _kilobytes("VmRSS")
        try:
            yield peak
        finally:
            peak.size = max(0, 1024 * (_kilobytes("VmHWM") - before))
        return
    peak = Peak("python")
    running = tracemalloc.is_tracing()
    if running:
        tracemalloc.reset_peak()
    else:
        tracemalloc.start()
    start = tracemalloc.get_traced_memory()[0]
    try:
        yield peak
    finally:
        peak.size = max(0, tracemalloc.get_traced_memory()[1] - start)
        if not running:
            tracemalloc.stop()


def _give_back() -> None:
    """Return freed memory to the system, so that nothing takes it again unseen."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        # Only glibc keeps it, and has this.
        return


def _kilobytes(key: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{key}:"))
    return int(line.split()[1])
