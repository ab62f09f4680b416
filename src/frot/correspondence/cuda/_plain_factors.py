"""From maps to the factors of their cosines in plain PyTorch, in any precision."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["gather", "spread", "unit_vectors"]


def unit_vectors(maps: Any, width: int, dtype: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return unit vectors (layers, width, channels) and lengths of (layers, channels, cells)."""
    count, channels, cells = maps.shape
    exact = torch.float64 if dtype == torch.float64 else torch.float32
    norms = torch.zeros((count, width), dtype=exact, device=maps.device)
    norms[:, :cells] = maps.to(exact).square().sum(dim=1).sqrt()
    unit = torch.zeros((count, width, channels), dtype=dtype, device=maps.device)
    inverse = torch.where(norms > 0.0, norms, torch.inf).reciprocal()[:, None, :cells]
    unit[:, :cells] = (maps * inverse).mT
    return unit, norms


def gather(table: Any, grams: Any, norms: Any, side: Any) -> torch.Tensor:
    """Return (D U N) table, (layers, rows, k), of a table (layers, width, k)."""
    return torch.bmm(spread(grams, norms, side, table.dtype), table)


def spread(grams: Any, norms: Any, side: Any, dtype: Any) -> torch.Tensor:
    """Return D U N, (layers, rows, width), from products of coarse vectors and their lengths."""
    count, width, _ = grams.shape
    n = len(side.corners)
    where = side.corners.long()
    shares = side.weights * norms[:, where.flatten()].reshape(count, n, 4)
    pairs = (where[:, :, None] * width + where[:, None, :]).flatten()
    products = grams.flatten(1)[:, pairs].reshape(count, n, 4, 4)
    squares = (products * shares[:, :, :, None] * shares[:, :, None, :]).sum(dim=(2, 3))
    # Rounding of a vector that cancels between its corners must not become a direction.
    alive = squares > 1e-6 * shares.sum(dim=2).square()
    scale = torch.where(alive, squares, torch.inf).rsqrt()
    out = torch.zeros((count, side.rows, width), dtype=dtype, device=grams.device)
    values = (shares * scale[:, :, None]).to(dtype)
    out[:, :n].scatter_add_(2, where.expand(count, n, 4), values)
    return out
