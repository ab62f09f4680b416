"""How many rows of a kernel are formed at a time."""

from __future__ import annotations

from frot._base.arrays import Home
from frot.costs.geometry import Geometry

__all__ = ["cached_blocks", "row_blocks"]

# Temporaries of a block, three or four of them: near the cache of a CPU, and large on a device,
# where every block costs a launch of each operation.
BLOCK_BYTES_ON_HOST = 4_000_000
BLOCK_BYTES_ON_DEVICE = 1_000_000_000
# Entries of a block that stays in the cache of a CPU with its temporaries: memory that is new to a
# process costs as much as some passes over it.
CACHED = 30_000


def row_blocks(geometry: Geometry, crowd: int = 0) -> list[slice]:
    """Cut the rows so that a block of the kernels of a batch stays within the bytes for it.

    What rounding leaves of a product of matrices depends on their shapes: members of a `crowd` cut
    their rows as all of it did, so that each has the same plan wherever it is formed.
    """
    batch, _, n, m = geometry.shape
    home = geometry.home
    return _cut((crowd or batch, n, m), _entries(home))


def cached_blocks(home: Home, shape: tuple[int, ...]) -> list[slice]:
    """Cut the rows of a kernel (B, n, m) that is worked on in many steps; on devices as above."""
    return _cut(shape, CACHED if home.on_host else _entries(home))


def _entries(home: Home) -> int:
    budget = BLOCK_BYTES_ON_HOST if home.on_host else BLOCK_BYTES_ON_DEVICE
    size = 4 if home.dtype == home.xp.float32 else 8
    return budget // size


def _cut(shape: tuple[int, ...], entries: int) -> list[slice]:
    batch, n, m = shape
    step = min(max(entries // (m * batch), 1), n)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]
