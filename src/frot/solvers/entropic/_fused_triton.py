# pyright: reportMissingImports=false, reportIndexIssue=false
"""Triton kernels of the passes over scores that are never written.

Tiles of points are multiplied on tensor cores, exponentiated and summed where they are. Sums of a
tile and of a segment of tiles are in single precision, those of segments in double, so that
rounding does not grow with the number of points. `tests/solvers/entropic/fused_plain.py` has the
same passes in plain PyTorch.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from frot._base.arrays import Array
from frot.solvers.entropic._fused import ADDED_TILES, COLS, WIDTH

# Rows of a tile, which has `COLS` columns, or more where only logarithms of sums are asked for.
ROWS, WIDE_COLS = 128, 128
# Clouds of a multiple of so many points are `even`: loads of them go together.
EVEN = 16
LAUNCH = {"num_warps": 8, "num_stages": 2}


@triton.jit
def _products(
    x, y, i, j, n, m, width,
    PARTS: tl.constexpr, WIDTH: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A tile of x y^T.

    Up to `WIDTH` features stay in shared memory while columns pass, which has no room for more:
    those are read again for every tile.
    """
    k = tl.arange(0, WIDTH)
    rows = i.to(tl.int64)[:, None] * width + k[None, :]
    cols = j.to(tl.int64)[:, None] * width + k[None, :]
    if PARTS == 1:
        left = tl.load(x + rows, mask=(i < n)[:, None], other=0.0)
        right = tl.load(y + cols, mask=(j < m)[:, None], other=0.0)
        result = tl.dot(left, tl.trans(right), input_precision=PRECISION)
    else:
        result = tl.zeros((i.shape[0], j.shape[0]), dtype=tl.float32)
        for part in range(PARTS):
            left = tl.load(x + rows + part * WIDTH, mask=(i < n)[:, None], other=0.0)
            right = tl.load(y + cols + part * WIDTH, mask=(j < m)[:, None], other=0.0)
            result = tl.dot(left, tl.trans(right), acc=result, input_precision=PRECISION)
    return result


@triton.jit
def _log_sums(
    x, y, bias, logs, n, m, width,
    ROWS: tl.constexpr, COLS: tl.constexpr, PARTS: tl.constexpr, WIDTH: tl.constexpr,
    SEGMENT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Rows of log2 sum_j 2^(x_i y_j + bias_j)."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    level = tl.full((ROWS,), -3.0e38, dtype=tl.float32)
    whole = tl.zeros((ROWS,), dtype=tl.float64)
    for first in range(0, m, COLS * SEGMENT):
        peak = level
        total = tl.zeros((ROWS,), dtype=tl.float32)
        for start in range(first, tl.minimum(first + COLS * SEGMENT, m), COLS):
            j = start + tl.arange(0, COLS)
            tile = _products(x, y, i, j, n, m, width, PARTS, WIDTH, PRECISION)
            tile += tl.load(bias + j, mask=j < m, other=float("-inf"))[None, :]
            ahead = tl.maximum(peak, tl.max(tile, axis=1))
            total = total * tl.exp2(peak - ahead) + tl.sum(tl.exp2(tile - ahead[:, None]), axis=1)
            peak = ahead
        whole = whole * tl.exp2(level - peak).to(tl.float64) + total.to(tl.float64)
        level = peak
    tl.store(logs + i, tl.log2(whole) + level.to(tl.float64), mask=i < n)


@triton.jit
def _column_sums(
    x, y, rows, cols, weights, sums, n, m, width,
    ROWS: tl.constexpr, COLS: tl.constexpr, PARTS: tl.constexpr, WIDTH: tl.constexpr,
    SEGMENT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Columns of sum_i weights_i p_ij."""
    j = tl.program_id(0) * COLS + tl.arange(0, COLS)
    across = tl.load(cols + j, mask=j < m, other=float("-inf"))
    whole = tl.zeros((COLS,), dtype=tl.float64)
    for first in range(0, n, ROWS * SEGMENT):
        total = tl.zeros((COLS,), dtype=tl.float32)
        for start in range(first, tl.minimum(first + ROWS * SEGMENT, n), ROWS):
            i = start + tl.arange(0, ROWS)
            tile = _products(x, y, i, j, n, m, width, PARTS, WIDTH, PRECISION)
            down = tl.load(rows + i, mask=i < n, other=float("-inf"))
            plan = tl.exp2((tile + across[None, :]) + down[:, None])
            weight = tl.load(weights + i, mask=i < n, other=0.0)
            total += tl.sum(plan * weight[:, None], axis=0)
        whole += total.to(tl.float64)
    tl.store(sums + j, whole, mask=j < m)


@triton.jit
def _apply(
    x, y, rows, cols, thin, values, points, weights, sums, moments, n, m, width, features, tiles,
    ROWS: tl.constexpr, COLS: tl.constexpr, PARTS: tl.constexpr, WIDTH: tl.constexpr,
    SEGMENT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Row sums of p_ij thin_j, and moments of points and values over some rows of it."""
    block, part = tl.program_id(0), tl.program_id(1)
    i = block * ROWS + tl.arange(0, ROWS)
    k = part * WIDTH + tl.arange(0, WIDTH)
    down = tl.load(rows + i, mask=i < n, other=float("-inf"))
    whole = tl.zeros((ROWS,), dtype=tl.float64)
    moment = tl.zeros((WIDTH,), dtype=tl.float64)
    weight = tl.load(weights + i, mask=i < n, other=0.0)
    place = i.to(tl.int64)[:, None] * features + k[None, :]
    there = (k < features)[None, :]
    for first in range(0, m, COLS * SEGMENT):
        moved = tl.zeros((ROWS, WIDTH), dtype=tl.float32)
        total = tl.zeros((ROWS,), dtype=tl.float32)
        for start in range(first, tl.minimum(first + COLS * SEGMENT, m), COLS):
            j = start + tl.arange(0, COLS)
            tile = _products(x, y, i, j, n, m, width, PARTS, WIDTH, PRECISION)
            across = tl.load(cols + j, mask=j < m, other=float("-inf"))
            plan = tl.exp2((tile + across[None, :]) + down[:, None])
            total += tl.sum(plan * tl.load(thin + j, mask=j < m, other=0.0)[None, :], axis=1)
            # Values lie feature by feature, as tensor cores want them.
            on = (k < features)[:, None] & (j < m)[None, :]
            value = tl.load(values + k.to(tl.int64)[:, None] * m + j[None, :], mask=on, other=0.0)
            moved += tl.dot(plan, tl.trans(value), input_precision=PRECISION)
        whole += total.to(tl.float64)
        mine = tl.load(points + place, mask=(i < n)[:, None] & there, other=0.0).to(tl.float64)
        moment += tl.sum(moved.to(tl.float64) * mine * weight[:, None], axis=0)
    if part == 0:
        tl.store(sums + i, whole, mask=i < n)
    tl.store(moments + (part * tiles + block).to(tl.int64) * WIDTH + tl.arange(0, WIDTH), moment)


@triton.jit
def _times(
    x, y, rows, cols, values, moved, n, m, width, count,
    ROWS: tl.constexpr, COLS: tl.constexpr, PARTS: tl.constexpr, WIDTH: tl.constexpr,
    COUNT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Some rows of the plan times values."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, COUNT)
    down = tl.load(rows + i, mask=i < n, other=float("-inf"))
    result = tl.zeros((ROWS, COUNT), dtype=tl.float32)
    for start in range(0, m, COLS):
        j = start + tl.arange(0, COLS)
        tile = _products(x, y, i, j, n, m, width, PARTS, WIDTH, PRECISION)
        across = tl.load(cols + j, mask=j < m, other=float("-inf"))
        plan = tl.exp2((tile + across[None, :]) + down[:, None])
        on = (k < count)[:, None] & (j < m)[None, :]
        value = tl.load(values + k.to(tl.int64)[:, None] * m + j[None, :], mask=on, other=0.0)
        result += tl.dot(plan, tl.trans(value), input_precision=PRECISION)
    place = i.to(tl.int64)[:, None] * count + k[None, :]
    tl.store(moved + place, result, mask=(i < n)[:, None] & (k < count)[None, :])


@triton.jit
def _tile_ends(mine, ALIGNED: tl.constexpr):
    """The rows of a tile and the columns that they have scores with, from and to."""
    first_col = tl.multiple_of(tl.load(mine + 2), ALIGNED)
    return tl.load(mine), tl.load(mine + 1), first_col, tl.load(mine + 3)


@triton.jit
def _cloud_scores(
    z, now, logs, i, j, shift, end_row, end_col, width,
    PARTS: tl.constexpr, WIDTH: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A tile of products of points with what its columns' potentials and weights add."""
    tile = _products(
        z, z, i - shift, j - shift, end_row - shift, end_col - shift, width,
        PARTS, WIDTH, PRECISION,
    )  # fmt: skip
    bias = tl.load(now + j, mask=j < end_col, other=0.0)
    bias += tl.load(logs + j, mask=j < end_col, other=float("-inf"))
    return tile + bias.to(tl.float32)[None, :]


@triton.jit
def _updates(
    z, now, before, logs, weights, tiles, ahead, errors, width,
    ROWS: tl.constexpr, COLS: tl.constexpr, PARTS: tl.constexpr, WIDTH: tl.constexpr,
    SEGMENT: tl.constexpr, PRECISION: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    """A tile of rows: the potentials that its columns leave it, and the mass that was wrong."""
    mine = tiles + tl.program_id(0) * 6
    first_row, end_row, first_col, end_col = _tile_ends(mine, ALIGNED)
    shift, alone = tl.load(mine + 4), tl.load(mine + 5)
    i = first_row + tl.arange(0, ROWS)
    level = tl.full((ROWS,), -3.0e38, dtype=tl.float32)
    whole = tl.zeros((ROWS,), dtype=tl.float64)
    for first in range(first_col, end_col, COLS * SEGMENT):
        peak = level
        total = tl.zeros((ROWS,), dtype=tl.float32)
        for start in range(first, tl.minimum(first + COLS * SEGMENT, end_col), COLS):
            j = start + tl.arange(0, COLS)
            tile = _cloud_scores(
                z, now, logs, i, j, shift, end_row, end_col, width, PARTS, WIDTH, PRECISION
            )
            most = tl.maximum(peak, tl.max(tile, axis=1))
            total = total * tl.exp2(peak - most) + tl.sum(tl.exp2(tile - most[:, None]), axis=1)
            peak = most
        whole = whole * tl.exp2(level - peak).to(tl.float64) + total.to(tl.float64)
        level = peak
    on = i < end_row
    result = -(tl.log2(whole) + level.to(tl.float64))
    old = tl.load(before + i, mask=on, other=0.0)
    old = tl.where(alone != 0, tl.load(now + i, mask=on, other=0.0), old)
    # Errors beyond 60 in units of log 2 are wrong anyway.
    off = tl.abs(tl.exp2(tl.minimum((old - result).to(tl.float32), 60.0)) - 1.0)
    weight = tl.load(weights + i, mask=on, other=0.0).to(tl.float32)
    tl.store(errors + tl.program_id(0), tl.sum(tl.where(on, off * weight, 0.0), axis=0))
    tl.store(ahead + i, tl.where(alone != 0, 0.5 * (result + old), result), mask=on)


@triton.jit
def _transport(
    z, values, now, logs, tiles, sums, moved, width, features, count,
    ROWS: tl.constexpr, COLS: tl.constexpr, PARTS: tl.constexpr, WIDTH: tl.constexpr,
    SEGMENT: tl.constexpr, PRECISION: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    """A tile of rows of the plan over the rows' weights: sums, and products with values."""
    part = tl.program_id(1)
    mine = tiles + tl.program_id(0) * 6
    first_row, end_row, first_col, end_col = _tile_ends(mine, ALIGNED)
    shift, base = tl.load(mine + 4), tl.multiple_of(tl.load(mine + 5), ALIGNED)
    i = first_row + tl.arange(0, ROWS)
    k = part * WIDTH + tl.arange(0, WIDTH)
    down = tl.load(now + i, mask=i < end_row, other=float("-inf")).to(tl.float32)
    whole = tl.zeros((ROWS,), dtype=tl.float32)
    result = tl.zeros((ROWS, WIDTH), dtype=tl.float32)
    for first in range(first_col, end_col, COLS * SEGMENT):
        total = tl.zeros((ROWS,), dtype=tl.float32)
        some = tl.zeros((ROWS, WIDTH), dtype=tl.float32)
        for start in range(first, tl.minimum(first + COLS * SEGMENT, end_col), COLS):
            j = start + tl.arange(0, COLS)
            tile = _cloud_scores(
                z, now, logs, i, j, shift, end_row, end_col, width, PARTS, WIDTH, PRECISION
            )
            plan = tl.exp2(tile + down[:, None])
            total += tl.sum(plan, axis=1)
            on = (k < features)[:, None] & (j < end_col)[None, :]
            place = k.to(tl.int64)[:, None] * count + (j - base)[None, :]
            value = tl.load(values + place, mask=on, other=0.0)
            some += tl.dot(plan, tl.trans(value), input_precision=PRECISION)
        whole += total
        result += some
    on = i < end_row
    if part == 0:
        tl.store(sums + i, whole, mask=on)
    place = i.to(tl.int64)[:, None] * features + k[None, :]
    tl.store(moved + place, result, mask=on[:, None] & (k < features)[None, :])


def _room(like: torch.Tensor, *shape: int, dtype: Any = torch.float64) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=like.device)


def _tiles(count: int, size: int) -> int:
    return -(-count // size)


def log_sums(x: Array, y: Array, bias: Array, precise: bool = False) -> Array:
    """Return log2 sums of rows, (n,) in double."""
    (n, width), m = x.shape, len(y)
    logs = _room(x, n)
    _log_sums[(_tiles(n, ROWS),)](
        x, y, bias, logs, n, m, width,
        ROWS, WIDE_COLS, width // WIDTH, WIDTH, ADDED_TILES, "tf32x3" if precise else "tf32",
        **LAUNCH,
    )  # fmt: skip
    return logs


def column_sums(
    x: Array, y: Array, rows: Array, cols: Array, weights: Array, precise: bool = True
) -> Array:
    """Return sums of columns, (m,) in double."""
    (n, width), m = x.shape, len(y)
    sums = _room(x, m)
    _column_sums[(_tiles(m, COLS),)](
        x, y, rows, cols, weights, sums, n, m, width,
        ROWS, COLS, width // WIDTH, WIDTH, ADDED_TILES, "tf32x3" if precise else "tf32",
        **LAUNCH,
    )  # fmt: skip
    return sums


def apply(
    x: Array, y: Array, rows: Array, cols: Array, thin: Array, values: Array, points: Array,
    weights: Array, precise: bool = True,
) -> tuple[Array, Array]:  # fmt: skip
    """Return row sums of the plan, (n,), and its moments, (d,), both in double."""
    (n, width), m = x.shape, len(y)
    tiles, parts = _tiles(n, ROWS), width // WIDTH
    sums, moments = _room(x, n), _room(x, parts, tiles, WIDTH)
    values = values.contiguous()
    _apply[(tiles, parts)](
        x, y, rows, cols, thin, values, points, weights, sums, moments, n, m, width,
        len(values), tiles, ROWS, COLS, parts, WIDTH, ADDED_TILES, "tf32x3" if precise else "tf32",
        **LAUNCH,
    )  # fmt: skip
    return sums, moments.sum(dim=1).reshape(-1)[: len(values)]


def products(
    x: Array, y: Array, rows: Array, cols: Array, values: Array, precise: bool = False
) -> Array:
    """Return the products of the plan and values (k, m), (n, k) in single precision."""
    (n, width), (count, m) = x.shape, values.shape
    moved = _room(x, n, count, dtype=torch.float32)
    # A copy of a turned matrix may lie in memory as that does.
    values = values.contiguous()
    _times[(_tiles(n, ROWS),)](
        x, y, rows, cols, values, moved, n, m, width, count,
        ROWS, COLS, width // WIDTH, WIDTH, triton.next_power_of_2(count),
        "tf32x3" if precise else "tf32",
        **LAUNCH,
    )  # fmt: skip
    return moved


def updates(
    z: Array, now: Array, before: Array, logs: Array, weights: Array, tiles: Array, ahead: Array,
    precise: bool = False, even: bool = False,
) -> Array:  # fmt: skip
    """Write the potentials ahead; return the mass that was wrong in every tile."""
    width, errors = z.shape[1], _room(z, len(tiles), dtype=torch.float32)
    _updates[(len(tiles),)](
        z, now, before, logs, weights, tiles, ahead, errors, width,
        ROWS, WIDE_COLS, width // WIDTH, WIDTH, ADDED_TILES, "tf32x3" if precise else "tf32",
        EVEN if even else 1, **LAUNCH,
    )  # fmt: skip
    return errors


def transport(
    z: Array, values: Array, now: Array, logs: Array, tiles: Array, sums: Array, moved: Array,
    precise: bool = True, even: bool = False,
) -> None:  # fmt: skip
    """Write sums of the plan over the rows' weights, and its products with values (d, N)."""
    width, (features, count) = z.shape[1], values.shape
    _transport[(len(tiles), width // WIDTH)](
        z, values, now, logs, tiles, sums, moved, width, features, count,
        ROWS, COLS, width // WIDTH, WIDTH, ADDED_TILES, "tf32x3" if precise else "tf32",
        EVEN if even else 1, **LAUNCH,
    )  # fmt: skip
