# pyright: reportMissingImports=false, reportIndexIssue=false
"""Triton kernels, from maps to the factors of their cosines, and for the steps on what is kept.

Shapes are padded: a stack is (L, rows, cols), kernels (rows, cols); rows and columns without
weight have a or b equal to zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

# Fine cells and columns of a tile of interpolated vectors; cells, channels and warps of one of
# vectors that are scaled.
TILE = (32, 128)
UNIT = (16, 256, 8)


@triton.jit(do_not_specialize=["cells"])
def _unit(
    maps, unit, norms, cells, channels, width, stride_l, stride_i,
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
    into = unit + layer.to(tl.int64) * stride_l + i.to(tl.int64) * stride_i
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


@triton.jit(do_not_specialize=["n"])
def _spread(
    grams, norms, corners, weights, out, n, rows, width, stride_l, stride_i,
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
    into = out + layer.to(tl.int64) * stride_l + i.to(tl.int64) * stride_i + j
    tl.store(into, value.to(out.dtype.element_ty), mask=(i < rows) & (j < width))


@triton.jit(do_not_specialize=["n"])
def _gather(
    table, grams, norms, corners, weights, out, n, rows, width, count, stride_l, stride_i,
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
    into = out + layer.to(tl.int64) * stride_l + i.to(tl.int64) * stride_i + j
    tl.store(into, value.to(out.dtype.element_ty), mask=(i < rows) & here)


def unit_vectors(
    maps: Any, width: int, dtype: Any, into: Any = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return unit vectors (layers, width, channels) and lengths of (layers, channels, cells)."""
    count, channels, cells = maps.shape
    unit = _room(into, (count, width, channels), dtype, maps.device)
    norms = torch.empty((count, width), dtype=torch.float32, device=maps.device)
    block, part, warps = UNIT
    _unit[(-(-width // block), count)](
        maps, unit, norms, cells, channels, width, *unit.stride()[:2], block, part, num_warps=warps
    )
    return unit, norms


def spread(grams: Any, norms: Any, side: Any, dtype: Any, into: Any = None) -> torch.Tensor:
    """Return D U N, (layers, rows, width), from products of coarse vectors and their lengths."""
    count, width, _ = grams.shape
    out = _room(into, (count, side.rows, width), dtype, grams.device)
    cells, part = TILE
    _spread[(-(-side.rows // cells), -(-width // part), count)](
        grams, norms, side.corners, side.weights, out, len(side.corners), side.rows, width,
        *out.stride()[:2], cells, part, num_warps=4,
    )  # fmt: skip
    return out


def gather(table: Any, grams: Any, norms: Any, side: Any, into: Any = None) -> torch.Tensor:
    """Return (D U N) table, (layers, rows, k), of a table (layers, width, k)."""
    count, width, across = table.shape
    out = _room(into, (count, side.rows, across), table.dtype, table.device)
    cells, part = TILE
    _gather[(-(-side.rows // cells), -(-across // part), count)](
        table, grams, norms, side.corners, side.weights, out, len(side.corners), side.rows, width,
        across, *out.stride()[:2], cells, part, num_warps=4,
    )  # fmt: skip
    return out


def _room(into: Any, size: tuple[int, ...], dtype: Any, device: Any) -> torch.Tensor:
    return torch.empty(size, dtype=dtype, device=device) if into is None else into


@dataclass(frozen=True)
class Tuning:
    """How the work is cut; what was fastest at n = 4,275 and 34 layers on an H200."""

    absorb_warps: int = 4
    rows: int = 2
    programs: int = 264
    sweep_warps: int = 8
    stages: int = 3
    columns: int = 32
    chunk: int = 128
    block: int = 128
    unroll: int = 4
    parts: int = 528
    phi_warps: int = 4
    # Rows and columns of factors that are summed at a time; not measured.
    tile: tuple[int, int] = (8, 128)

    @classmethod
    def of(cls, m: int) -> Tuning:
        """Rows of more than 8,704 entries need more threads for their registers; not measured."""
        return cls() if m <= 8_704 else cls(absorb_warps=16, rows=1, sweep_warps=16)


@triton.jit
def _absorb(
    S, weights, h, b, K, levels, m, stride_l, factor,
    L: tl.constexpr, P: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """A row: K = exp(score - max), score = h + factor * sum of weights times cosines; and max."""
    i = tl.program_id(0)
    j0 = tl.arange(0, P)
    j1 = P + tl.arange(0, R)
    on1 = j1 < m
    sum0 = tl.zeros((P,), dtype=tl.float32)
    sum1 = tl.zeros((R,), dtype=tl.float32)
    row = S + i.to(tl.int64) * m
    for layer in tl.static_range(L):
        w = tl.load(weights + layer)
        sum0 += w * tl.load(row + j0).to(tl.float32)
        sum1 += w * tl.load(row + j1, mask=on1, other=0.0).to(tl.float32)
        row += stride_l
    b0 = tl.load(b + j0)
    b1 = tl.load(b + j1, mask=on1, other=0.0)
    score0 = tl.where(b0 > 0.0, tl.load(h + j0) + factor * sum0, float("-inf"))
    score1 = tl.where(b1 > 0.0, tl.load(h + j1, mask=on1, other=0.0) + factor * sum1, float("-inf"))
    top = tl.maximum(tl.max(score0, axis=0), tl.max(score1, axis=0))
    tl.store(levels + i, top)
    out = K + i.to(tl.int64) * m
    tl.store(out + j0, tl.exp(score0 - top).to(K.dtype.element_ty))
    tl.store(out + j1, tl.exp(score1 - top).to(K.dtype.element_ty), mask=on1)


@triton.jit
def _sweep(
    K, a, b, v, u, partial, n, m,
    ROWS: tl.constexpr, PROGRAMS: tl.constexpr, STAGES: tl.constexpr,
    P: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """Rows of a program: u = 1 / K (b v), and what they add to the columns K^T (a u).

    Sums stay in the layout of the rows until the end: to change it takes longer than to add.
    """
    program = tl.program_id(0)
    j0 = tl.arange(0, P)[None, :]
    j1 = P + tl.arange(0, R)[None, :]
    on1 = j1 < m
    w0 = tl.load(b + j0) * tl.load(v + j0)
    w1 = tl.load(b + j1, mask=on1, other=0.0) * tl.load(v + j1, mask=on1, other=0.0)
    sum0 = tl.zeros((ROWS, P), dtype=tl.float32)
    sum1 = tl.zeros((ROWS, R), dtype=tl.float32)
    for first in tl.range(program * ROWS, n, PROGRAMS * ROWS, num_stages=STAGES):
        i = first + tl.arange(0, ROWS)[:, None]
        live = i < n
        row = K + i.to(tl.int64) * m
        k0 = tl.load(row + j0, mask=live, other=0.0).to(tl.float32)
        k1 = tl.load(row + j1, mask=live & on1, other=0.0).to(tl.float32)
        total = tl.sum(k0 * w0, axis=1, keep_dims=True) + tl.sum(k1 * w1, axis=1, keep_dims=True)
        scaling = 1.0 / tl.maximum(total, 1e-30)
        tl.store(u + i, scaling, mask=live)
        mass = tl.load(a + i, mask=live, other=0.0) * scaling
        sum0 += k0 * mass
        sum1 += k1 * mass
    out = partial + program * m
    tl.store(out + j0, tl.sum(sum0, axis=0, keep_dims=True))
    tl.store(out + j1, tl.sum(sum1, axis=0, keep_dims=True), mask=on1)


@triton.jit
def _columns(
    partial, b, v, totals, errors, m,
    PROGRAMS: tl.constexpr, UPDATE: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A block of columns: their sums, the mass that is wrong in them, and the next v."""
    program = tl.program_id(0)
    j = program * BLOCK + tl.arange(0, BLOCK)
    on = j < m
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in tl.static_range(0, PROGRAMS, CHUNK):
        at = first + tl.arange(0, CHUNK)
        part = tl.load(
            partial + at[:, None] * m + j[None, :],
            mask=(at < PROGRAMS)[:, None] & on[None, :],
            other=0.0,
        )
        total += tl.sum(part, axis=0)
    tl.store(totals + j, total, mask=on)
    weight = tl.load(b + j, mask=on, other=0.0)
    scaling = tl.load(v + j, mask=on, other=0.0)
    tl.store(errors + program, tl.sum(weight * tl.abs(scaling * total - 1.0), axis=0))
    if UPDATE:
        fresh = tl.where(weight > 0.0, 1.0 / tl.maximum(total, 1e-30), 1.0)
        tl.store(v + j, fresh, mask=on)


@triton.jit
def _stack_sums(
    S, K, a, u, b, v, partial, n, m, stride_l, rows,
    L: tl.constexpr, LAYERS: tl.constexpr, P: tl.constexpr, R: tl.constexpr,
    BLOCK: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """Some rows and columns: the plan times every layer's cosines, summed."""
    block, part = tl.program_id(0), tl.program_id(1)
    j = block * BLOCK + tl.arange(0, BLOCK)[None, :]
    on = j < m
    layer0 = tl.arange(0, P)[:, None]
    layer1 = P + tl.arange(0, R)[:, None]
    here1 = (layer1 < L) & on
    sum0 = tl.zeros((P, BLOCK), dtype=tl.float32)
    sum1 = tl.zeros((R, BLOCK), dtype=tl.float32)
    first = part * rows
    last = tl.minimum(first + rows, n)
    at0 = S + layer0.to(tl.int64) * stride_l + j
    at1 = S + layer1.to(tl.int64) * stride_l + j
    for start in range(first, last, UNROLL):
        for k in tl.static_range(UNROLL):
            # Beyond the last row the last one is read again, and weighs nothing.
            i = tl.minimum(start + k, last - 1)
            mass = tl.where(start + k < last, tl.load(a + i) * tl.load(u + i), 0.0)
            offset = i.to(tl.int64) * m
            plan = mass * tl.load(K + offset + j, mask=on, other=0.0).to(tl.float32)
            sum0 += tl.load(at0 + offset, mask=on, other=0.0).to(tl.float32) * plan
            sum1 += tl.load(at1 + offset, mask=here1, other=0.0).to(tl.float32) * plan
    scale = tl.load(b + j, mask=on, other=0.0) * tl.load(v + j, mask=on, other=0.0)
    out = partial + (part * tl.num_programs(0) + block) * LAYERS
    tl.store(out + layer0, tl.sum(sum0 * scale, axis=1, keep_dims=True))
    tl.store(out + layer1, tl.sum(sum1 * scale, axis=1, keep_dims=True), mask=layer1 < L)


@triton.jit
def _factor_sums(
    X, means, a, starts, partial, n, width, rows,
    L: tl.constexpr, LAYERS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """Some rows of a layer: the factor's times the plan's means of the other, weighted, summed."""
    layer, part = tl.program_id(0), tl.program_id(1)
    begin = tl.load(starts + layer)
    end = tl.load(starts + layer + 1)
    behind = tl.load(starts + L)
    first = part * rows
    last = tl.minimum(first + rows, n)
    total = tl.zeros((ROWS, COLS), dtype=tl.float32)
    for start in range(first, last, ROWS):
        i = start + tl.arange(0, ROWS)[:, None]
        live = i < last
        row = i.to(tl.int64) * width
        mass = tl.load(a + i, mask=live, other=0.0)
        mass /= tl.maximum(tl.load(means + row + behind, mask=live, other=1.0), 1e-30)
        for column in range(begin, end, COLS):
            k = column + tl.arange(0, COLS)[None, :]
            on = live & (k < end)
            x = tl.load(X + row + k, mask=on, other=0.0).to(tl.float32)
            total += mass * x * tl.load(means + row + k, mask=on, other=0.0)
    tl.store(partial + part * LAYERS + layer, tl.sum(tl.sum(total, axis=1), axis=0))


@triton.jit
def _answer(
    partial, phi, log_prior, alpha, count, gamma, eta,
    L: tl.constexpr, LAYERS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Move phi a share gamma of the way to that of the new plan, and answer it."""
    layer = tl.arange(0, LAYERS)
    here = layer < L
    total = tl.zeros((CHUNK, LAYERS), dtype=tl.float32)
    for first in range(0, count, CHUNK):
        at = first + tl.arange(0, CHUNK)
        total += tl.load(
            partial + at[:, None] * LAYERS + layer[None, :],
            mask=(at < count)[:, None] & here[None, :],
            other=0.0,
        )
    fresh = 2.0 - 2.0 * tl.sum(total, axis=0)
    known = tl.load(phi + layer, mask=here, other=0.0)
    known = known + gamma * (fresh - known)
    tl.store(phi + layer, known, mask=here)
    score = known / eta + tl.load(log_prior + layer, mask=here, other=0.0)
    score = tl.where(here, score, float("-inf"))
    weight = tl.exp(score - tl.max(score, axis=0))
    tl.store(alpha + layer, weight / tl.sum(weight, axis=0), mask=here)


@triton.jit
def _blend(
    K, a, b, u, v, out, cols, m, share,
    ADD: tl.constexpr, P: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """A row of a share of the plan, without the padding, written or added."""
    i = tl.program_id(0)
    j0 = tl.arange(0, P)
    j1 = P + tl.arange(0, R)
    on0 = j0 < m
    on1 = j1 < m
    left = share * tl.load(a + i) * tl.load(u + i)
    row = K + i.to(tl.int64) * cols
    into = out + i.to(tl.int64) * m
    sum0 = left * tl.load(v + j0, mask=on0, other=0.0) * tl.load(row + j0).to(tl.float32)
    part1 = tl.load(row + j1, mask=on1, other=0.0).to(tl.float32)
    sum1 = left * tl.load(v + j1, mask=on1, other=0.0) * part1
    sum0 *= tl.load(b + j0, mask=on0, other=0.0)
    sum1 *= tl.load(b + j1, mask=on1, other=0.0)
    if ADD:
        sum0 += tl.load(into + j0, mask=on0, other=0.0).to(tl.float32)
        sum1 += tl.load(into + j1, mask=on1, other=0.0).to(tl.float32)
    tl.store(into + j0, sum0.to(out.dtype.element_ty), mask=on0)
    tl.store(into + j1, sum1.to(out.dtype.element_ty), mask=on1)


class Steps:
    """The steps' operations on a CUDA device (or in Triton's interpreter).

    Parameters
    ----------
    shape : tuple of int
        (L, padded n, padded m).
    buffers : Buffers
        Makes what is kept.
    """

    def __init__(
        self, shape: tuple[int, int, int], buffers: Any, tuning: Tuning | None = None
    ) -> None:
        self.shape = shape
        layers, n, m = shape
        self.tuning = tuning = tuning or Tuning.of(m)
        # A row is a power of two and the rest, so that few lanes have nothing to do.
        self.whole = 1 << (m.bit_length() - 1)
        # Few sizes of the rest: each is compiled by itself.
        sizes = (max(16, self.whole // part) for part in (16, 4, 2, 1))
        self.rest = next(size for size in sizes if m - self.whole <= size)
        self.layers = max(16, triton.next_power_of_2(layers))
        self.most = 1 << (layers.bit_length() - 1)
        self.few = triton.next_power_of_2(max(1, layers - self.most))
        self.programs = min(tuning.programs, -(-n // tuning.rows))
        self.blocks = -(-m // tuning.block)
        self.rows = max(1, -(-n // max(1, tuning.parts // self.blocks)))
        self.parts = -(-n // self.rows)
        self.columns = buffers.zeros(self.programs, m)
        self.error_blocks = -(-m // tuning.columns)
        # Of a plan times every layer's cosines, in parts; parts that are not used stay zero.
        self.sums = buffers.zeros(self.parts * self.blocks, self.layers)

    def absorb(
        self, S: Any, weights: Any, h: Any, b: Any, factor: float, K: Any, levels: Any
    ) -> None:
        """Write exp(h + factor * mixed cosines - levels) to K, with the rows' maxima as levels."""
        layers, n, m = S.shape
        _absorb[(n,)](
            S, weights, h, b, K, levels, m, n * m, factor, layers, self.whole, self.rest,
            num_warps=self.tuning.absorb_warps,
        )  # fmt: skip

    def sweep(
        self, K: Any, a: Any, b: Any, u: Any, v: Any, totals: Any, errors: Any, update: bool
    ) -> None:
        """Write u = 1 / K (b v), K^T (a u) and the columns' errors; to update, v, too."""
        _, n, m = self.shape
        tuning = self.tuning
        _sweep[(self.programs,)](
            K, a, b, v, u, self.columns, n, m,
            tuning.rows, self.programs, tuning.stages, self.whole, self.rest,
            num_warps=tuning.sweep_warps,
        )  # fmt: skip
        _columns[(self.error_blocks,)](
            self.columns, b, v, totals, errors, m,
            self.programs, update, tuning.chunk, tuning.columns, num_warps=4,
        )  # fmt: skip

    def stack_sums(self, S: Any, K: Any, a: Any, b: Any, u: Any, v: Any) -> None:
        """Sum the plan times every layer's cosines in a stack."""
        layers, n, m = self.shape
        tuning = self.tuning
        _stack_sums[(self.blocks, self.parts)](
            S, K, a, u, b, v, self.sums, n, m, n * m, self.rows,
            layers, self.layers, self.most, self.few, tuning.block, tuning.unroll,
            num_warps=tuning.phi_warps,
        )  # fmt: skip

    def factor_sums(self, X: Any, means: Any, a: Any, starts: Any, part: int, parts: int) -> None:
        """Sum a X means over some rows and every layer's columns, one of some parts of all rows.

        Means are divided by those of one, which are in the column behind the last layer's.
        """
        (n, width), layers = X.shape, self.shape[0]
        block, across = self.tuning.tile
        # As many programs as keep a device busy, and as there are places for their sums.
        some = max(1, min(len(self.sums) // parts, self.tuning.parts * 4 // layers))
        rows = block * -(-n // (block * some))
        sums = self.sums[part * some : (part + 1) * some]
        _factor_sums[(layers, -(-n // rows))](
            X, means, a, starts, sums, n, width, rows,
            layers, self.layers, block, across, num_warps=4,
        )  # fmt: skip

    def answer(self, phi: Any, log_prior: Any, alpha: Any, gamma: float, eta: float) -> None:
        """Move phi to that of the sums by gamma, and write the weights that answer it."""
        _answer[(1,)](
            self.sums, phi, log_prior, alpha, len(self.sums), gamma, eta,
            self.shape[0], self.layers, 128, num_warps=16,
        )  # fmt: skip

    def blend(
        self, K: Any, a: Any, b: Any, u: Any, v: Any, out: Any, share: float, add: bool
    ) -> None:
        """Write a share of the plan a u K v b, without its padding, or add it."""
        n, m = out.shape
        _blend[(n,)](
            K, a, b, u, v, out, K.shape[1], m, share, add, self.whole, self.rest, num_warps=8,
        )  # fmt: skip
