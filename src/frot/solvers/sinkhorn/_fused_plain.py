r"""The passes of `_fused_triton` in plain PyTorch, a block of rows at a time: what they mean.

Scores are :math:`x_i \cdot y_j` plus biases, in units of log 2. The plan of a pass is
:math:`p_{ij} = 2^{(x_i \cdot y_j + cols_j) + rows_i}`, in single precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from frot.solvers.sinkhorn._fused import WIDTH

__all__ = ["WIDTH", "apply", "column_sums", "log_sums", "products"]

# Entries of a block.
ENTRIES = 8_000_000


def _blocks(x: Any, y: Any) -> Iterator[tuple[slice, Any]]:
    step = max(1, ENTRIES // len(y))
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        yield part, x[part] @ y.T


def log_sums(
    x: Any, y: Any, bias: Any, other: Any = None, precise: bool = False
) -> tuple[Any, Any]:
    """Return log2 sums of rows, (n,) in double, and largest scores with another bias, (n,)."""
    found, top = [], []
    for _, tile in _blocks(x, y):
        if other is not None:
            top.append((tile + other).amax(dim=1))
        tile += bias
        level = tile.amax(dim=1)
        tile -= level[:, None]
        found.append(tile.exp2_().sum(dim=1, dtype=torch.float64).log2() + level.double())
    return torch.cat(found), None if other is None else torch.cat(top)


def column_sums(
    x: Any, y: Any, rows: Any, cols: Any, weights: Any, other: Any, precise: bool = True
) -> tuple[Any, Any]:
    """Return sums of columns, (m,) in double, and largest scores with another bias, (m,)."""
    found = torch.zeros(len(y), dtype=torch.float64, device=x.device)
    top = torch.full((len(y),), -torch.inf, dtype=torch.float32, device=x.device)
    for part, tile in _blocks(x, y):
        top = torch.maximum(top, (tile + other[part, None]).amax(dim=0))
        plan = ((tile + cols) + rows[part, None]).exp2_()
        plan *= weights[part, None]
        found += plan.sum(dim=0, dtype=torch.float64)
    return found, top


def apply(
    x: Any, y: Any, rows: Any, cols: Any, thin: Any, values: Any, points: Any, weights: Any,
    precise: bool = True,
) -> tuple[Any, Any]:  # fmt: skip
    r"""Return row sums of the plan, (n,), and its moments, (d,), both in double.

    With columns times `thin` the sums are of :math:`p_{ij} t_j`, and the moments
    :math:`\sum_{ij} w_i\, p_{ij}\, z_{ik} v_{kj}` of points z, (n, d), and values v, (d, m).
    """
    sums, moments = [], torch.zeros(len(values), dtype=torch.float64, device=x.device)
    for part, tile in _blocks(x, y):
        plan = ((tile + cols) + rows[part, None]).exp2_()
        sums.append((plan * thin).sum(dim=1, dtype=torch.float64))
        moved = (plan @ values.T).double()
        moments += (moved * points[part] * weights[part, None]).sum(dim=0)
    return torch.cat(sums), moments


def products(x: Any, y: Any, rows: Any, cols: Any, values: Any, precise: bool = False) -> Any:
    """Return the products of the plan and values (k, m), (n, k) in single precision."""
    parts = [((tile + cols) + rows[part, None]).exp2_() @ values.T for part, tile in _blocks(x, y)]
    return torch.cat(parts)
