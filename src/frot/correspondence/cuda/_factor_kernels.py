# pyright: reportMissingImports=false, reportIndexIssue=false
"""Triton kernels from maps to the factors of their cosines, one launch each."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["gather", "spread", "unit_vectors"]

# Fine cells and columns of a tile of interpolated vectors; cells, channels and warps of one of
# vectors that are scaled.
TILE = (32, 128)
UNIT = (16, 256, 8)


@triton.jit
def _unit(
    maps, unit, norms, cells, channels, width,
    CELLS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Some cells of a layer: vectors from (channels, cells) to (width, channels) at unit length."""
    block, layer = tl.program_id(0), tl.program_id(1)
    i = block * CELLS + tl.arange(0, CELLS)[None, :]
    on = i < cells
    source = maps + layer.to(tl.int64) * channels * cells + i
    total = tl.zeros((CHANNELS, CELLS), dtype=tl.float32)
    for first in range(0, channels, CHANNELS):
        c = first + tl.arange(0, CHANNELS)[:, None]
        part = tl.load(source + c * cells, mask=on & (c < channels), other=0.0).to(tl.float32)
        total += part * part
    squares = tl.sum(total, axis=0, keep_dims=True)
    inverse = tl.where(squares > 0.0, 1.0 / tl.sqrt(tl.maximum(squares, 1e-37)), 0.0)
    tl.store(norms + layer * width + i, tl.sqrt(squares), mask=i < width)
    into = unit + layer.to(tl.int64) * width * channels + i * channels
    for first in range(0, channels, CHANNELS):
        c = first + tl.arange(0, CHANNELS)[:, None]
        part = tl.load(source + c * cells, mask=on & (c < channels), other=0.0).to(tl.float32)
        value = (part * inverse).to(unit.dtype.element_ty)
        tl.store(into + c, value, mask=(i < width) & (c < channels))


@triton.jit
def _scale(gram, length, corners, weights, i, on, width):
    """One over the length of what interpolation makes of the corners of cells i."""
    squares = tl.zeros_like(i).to(tl.float32)
    whole = tl.zeros_like(i).to(tl.float32)
    for p in tl.static_range(4):
        cell = tl.load(corners + i * 4 + p, mask=on, other=0)
        share = tl.load(weights + i * 4 + p, mask=on, other=0.0) * tl.load(length + cell)
        whole += share
        for q in tl.static_range(4):
            other = tl.load(corners + i * 4 + q, mask=on, other=0)
            beside = tl.load(weights + i * 4 + q, mask=on, other=0.0) * tl.load(length + other)
            squares += share * beside * tl.load(gram + cell * width + other).to(tl.float32)
    # Rounding of a vector that cancels between its corners must not become a direction.
    alive = squares > 1e-6 * whole * whole
    return tl.where(alive, 1.0 / tl.sqrt(tl.where(alive, squares, 1.0)), 0.0)


@triton.jit
def _spread(
    grams, norms, corners, weights, out, n, rows, width,
    CELLS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Some fine cells of a layer: rows of D U N, four entries each among zeros."""
    block, part, layer = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i = block * CELLS + tl.arange(0, CELLS)[:, None]
    on = i < n
    length = norms + layer * width
    gram = grams + layer.to(tl.int64) * width * width
    scale = _scale(gram, length, corners, weights, i, on, width)
    j = part * WIDTH + tl.arange(0, WIDTH)[None, :]
    value = tl.zeros((CELLS, WIDTH), dtype=tl.float32)
    for p in tl.static_range(4):
        cell = tl.load(corners + i * 4 + p, mask=on, other=0)
        share = tl.load(weights + i * 4 + p, mask=on, other=0.0) * tl.load(length + cell) * scale
        value += tl.where(j == cell, share, 0.0)
    into = out + layer.to(tl.int64) * rows * width + i * width + j
    tl.store(into, value.to(out.dtype.element_ty), mask=(i < rows) & (j < width))


@triton.jit
def _gather(
    table, grams, norms, corners, weights, out, n, rows, width, count,
    CELLS: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """Some fine cells of a layer: rows of (D U N) table, four rows of the table each."""
    block, part, layer = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i = block * CELLS + tl.arange(0, CELLS)[:, None]
    on = i < n
    length = norms + layer * width
    gram = grams + layer.to(tl.int64) * width * width
    scale = _scale(gram, length, corners, weights, i, on, width)
    j = part * COUNT + tl.arange(0, COUNT)[None, :]
    here = j < count
    value = tl.zeros((CELLS, COUNT), dtype=tl.float32)
    source = table + layer.to(tl.int64) * width * count
    for p in tl.static_range(4):
        cell = tl.load(corners + i * 4 + p, mask=on, other=0)
        share = tl.load(weights + i * 4 + p, mask=on, other=0.0) * tl.load(length + cell) * scale
        value += share * tl.load(source + cell * count + j, mask=here, other=0.0).to(tl.float32)
    into = out + layer.to(tl.int64) * rows * count + i * count + j
    tl.store(into, value.to(out.dtype.element_ty), mask=(i < rows) & here)


def unit_vectors(maps: Any, width: int, dtype: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return unit vectors (layers, width, channels) and lengths of (layers, channels, cells)."""
    count, channels, cells = maps.shape
    unit = torch.empty((count, width, channels), dtype=dtype, device=maps.device)
    norms = torch.empty((count, width), dtype=torch.float32, device=maps.device)
    block, part, warps = UNIT
    _unit[(-(-width // block), count)](
        maps, unit, norms, cells, channels, width, block, part, num_warps=warps
    )
    return unit, norms


def spread(grams: Any, norms: Any, side: Any, dtype: Any) -> torch.Tensor:
    """Return D U N, (layers, rows, width), from products of coarse vectors and their lengths."""
    count, width, _ = grams.shape
    out = torch.empty((count, side.rows, width), dtype=dtype, device=grams.device)
    cells, part = TILE
    _spread[(-(-side.rows // cells), -(-width // part), count)](
        grams, norms, side.corners, side.weights, out, len(side.corners), side.rows, width,
        cells, part, num_warps=4,
    )  # fmt: skip
    return out


def gather(table: Any, grams: Any, norms: Any, side: Any) -> torch.Tensor:
    """Return (D U N) table, (layers, rows, k), of a table (layers, width, k)."""
    count, width, across = table.shape
    out = torch.empty((count, side.rows, across), dtype=table.dtype, device=table.device)
    cells, part = TILE
    _gather[(-(-side.rows // cells), -(-across // part), count)](
        table, grams, norms, side.corners, side.weights, out, len(side.corners), side.rows, width,
        across, cells, part, num_warps=4,
    )  # fmt: skip
    return out
