"""Which device to compute on (NumPy, or PyTorch), and whether its memory is enough."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from frot._base.arrays import Home
from frot._base.errors import InputError, how_to_install


def find_device(device: str | None) -> Any:
    """Return the torch device to work on, None for the host."""
    if device == "cpu":
        return None
    try:
        import torch
    except ImportError:
        if device is None:
            return None
        raise InputError(
            f"device: {device!r} needs PyTorch; {how_to_install('torch')}; or use device='cpu'"
        ) from None
    if device is None:
        return "cuda" if torch.cuda.is_available() else None
    try:
        torch.zeros(1, device=device)
    except Exception as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"device: {device!r} cannot be used ({why}); use 'cpu'") from None
    return str(device)


def working_home(device: Any) -> Home:
    """Return where costs are worked out, in single precision: NumPy for None."""
    if device is None:
        return Home.of(np.zeros(1, dtype=np.float32))
    import torch

    return Home.of(torch.zeros(1, dtype=torch.float32, device=device))


def needed_room(n: int, m: int, each: int = 40) -> float:
    """Return the bytes that matching so many cells takes, about, without what is kept of layers.

    `each` is what a pair of cells was seen to take: ten matrices in single precision.
    """
    return float(each * n * m)


def check_room(n: int, m: int, memory: float | None = None) -> None:
    """Raise where the cells of two photographs are more than the memory can hold pairs of.

    The memory is in bytes; what the machine has if left out.

    Examples
    --------
    >>> check_room(1_000, 1_000)
    >>> check_room(40_000, 40_000, memory=16e9)
    Traceback (most recent call last):
    ...
    frot.InputError: side: 40,000 x 40,000 cells need some 64 GB, and there are 16 GB; ...
    """
    memory = _memory() if memory is None else memory
    if (needed := needed_room(n, m)) > memory:
        raise InputError(
            f"side: {n:,} x {m:,} cells need some {needed / 1e9:.0f} GB, and there are "
            f"{memory / 1e9:.0f} GB; use a smaller side or a larger stride"
        )


def _memory() -> float:
    """What the machine has, in bytes; infinite where it does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return float("inf")
