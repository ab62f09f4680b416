"""Memory that the C library keeps between the steps of a run, instead of asking for it anew."""

from __future__ import annotations

import numpy as np

__all__ = ["keep_pages"]

# Blocks beyond this glibc takes from the system and gives back every time, whatever it has seen.
LARGEST = 30_000_000


def keep_pages(size: int) -> None:
    """Tell the C library how many bytes a run takes and frees, again and again.

    Pages that are new to a process cost as much as several passes over them: a quarter of a run
    between 800 points and 800, whose matrices are freed and allocated anew from step to step. glibc
    holds on to as much as the largest block that it has seen freed, so it is shown one, which
    nobody touches; other libraries are none the wiser.

    Examples
    --------
    >>> keep_pages(1_000_000)
    """
    if size <= LARGEST:
        np.empty(size, dtype=np.uint8)
