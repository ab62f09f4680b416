"""How many rows of a kernel are formed at a time."""

from __future__ import annotations

import numpy as np

from frot._entropic._geometry import Geometry

__all__ = ["row_blocks"]

# Temporaries of a block, three or four of them: near the cache of a CPU, and large on a device,
# where every block costs a launch of each operation.
BLOCK_BYTES_ON_HOST = 4_000_000
BLOCK_BYTES_ON_DEVICE = 1_000_000_000


def row_blocks(geometry: Geometry) -> list[slice]:
    """Cut the rows so that a block of the kernels of a batch stays within the bytes for it."""
    batch, _, n, m = geometry.shape
    home = geometry.home
    budget = BLOCK_BYTES_ON_HOST if home.on_host else BLOCK_BYTES_ON_DEVICE
    size = 4 if home.dtype == home.xp.float32 else 8
    step = int(np.clip(budget // (size * m * batch), 1, n))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]
