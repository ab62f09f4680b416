r"""The passes of `_fused_triton` in plain PyTorch, a block of rows at a time: what they mean.

Scores are :math:`x_i \cdot y_j` plus biases, in units of log 2. The plan of a pass is
:math:`p_{ij} = 2^{(x_i \cdot y_j + cols_j) + rows_i}`, in single precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from frot.solvers.entropic._fused import WIDTH

__all__ = [
    "EVEN",
    "ROWS",
    "WIDTH",
    "apply",
    "column_sums",
    "log_sums",
    "products",
    "transport",
    "updates",
]

# Entries of a block.
ENTRIES = 8_000_000
# Rows of a tile of clouds (see `clouds`).
ROWS, EVEN = 512, 16


def _blocks(x: Any, y: Any) -> Iterator[tuple[slice, Any]]:
    step = max(1, ENTRIES // len(y))
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        yield part, x[part] @ y.T


def log_sums(x: Any, y: Any, bias: Any, precise: bool = False) -> Any:
    """Return log2 sums of rows, (n,) in double."""
    logs = []
    for _, tile in _blocks(x, y):
        tile += bias
        level = tile.amax(dim=1)
        tile -= level[:, None]
        logs.append(tile.exp2_().sum(dim=1, dtype=torch.float64).log2() + level.double())
    return torch.cat(logs)


def column_sums(x: Any, y: Any, rows: Any, cols: Any, weights: Any, precise: bool = True) -> Any:
    """Return sums of columns, (m,) in double."""
    sums = torch.zeros(len(y), dtype=torch.float64, device=x.device)
    for part, tile in _blocks(x, y):
        plan = ((tile + cols) + rows[part, None]).exp2_()
        plan *= weights[part, None]
        sums += plan.sum(dim=0, dtype=torch.float64)
    return sums


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


def _scores(z: Any, now: Any, logs: Any, tile: list[int]) -> tuple[slice, slice, Any]:
    """Return rows, columns and scores, with what columns add to them, of a tile of clouds."""
    first_row, end_row, first_col, end_col, shift, _ = tile
    rows, cols = slice(first_row, end_row), slice(first_col, end_col)
    found = z[first_row - shift : end_row - shift] @ z[first_col - shift : end_col - shift].T
    found += (now[cols] + logs[cols]).float()
    return rows, cols, found


def updates(
    z: Any, now: Any, before: Any, logs: Any, weights: Any, tiles: Any, ahead: Any,
    precise: bool = False, even: bool = False,
) -> Any:  # fmt: skip
    """Write the potentials ahead; return the mass that was wrong in every tile.

    Tiles are rows (first row, end, first column, end, what scaled points lie before potentials,
    what points do). Rows of clouds with themselves, the last not zero, go half the way from where
    they are now; the others are compared with what was `before`.
    """
    errors = []
    for tile in tiles.tolist():
        rows, _, scores = _scores(z, now, logs, tile)
        level = scores.amax(dim=1)
        scores -= level[:, None]
        found = -(scores.exp2_().sum(dim=1, dtype=torch.float64).log2() + level.double())
        old = (now if tile[5] else before)[rows]
        off = (torch.exp2((old - found).clamp(max=60.0)) - 1.0).abs()
        errors.append((off * weights[rows]).sum())
        ahead[rows] = 0.5 * (found + old) if tile[5] else found
    return torch.stack(errors).float()


def transport(
    z: Any, values: Any, now: Any, logs: Any, tiles: Any, sums: Any, moved: Any,
    precise: bool = True, even: bool = False,
) -> None:  # fmt: skip
    """Write sums of the plan over the rows' weights, and its products with values (d, N)."""
    for tile in tiles.tolist():
        rows, cols, scores = _scores(z, now, logs, tile)
        plan = (scores + now[rows, None].float()).exp2_()
        sums[rows] = plan.sum(dim=1)
        moved[rows] = plan @ values[:, cols.start - tile[5] : cols.stop - tile[5]].T
