"""The operations of `_triton` in plain PyTorch, where there is no Triton."""

from __future__ import annotations

from typing import Any

import torch

from frot.correspondence._transport import sweep


def unit_vectors(
    maps: Any, width: int, dtype: Any, into: Any = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return unit vectors (layers, width, channels) and lengths of (layers, channels, cells)."""
    count, channels, cells = maps.shape
    exact = torch.float64 if dtype == torch.float64 else torch.float32
    norms = torch.zeros((count, width), dtype=exact, device=maps.device)
    norms[:, :cells] = maps.to(exact).square().sum(dim=1).sqrt()
    unit = _zeros(into, (count, width, channels), dtype, maps.device)
    inverse = torch.where(norms > 0.0, norms, torch.inf).reciprocal()[:, None, :cells]
    unit[:, :cells] = (maps * inverse).mT
    return unit, norms


def gather(table: Any, grams: Any, norms: Any, side: Any, into: Any = None) -> torch.Tensor:
    """Return (D U N) table, (layers, rows, k), of a table (layers, width, k)."""
    found = torch.bmm(spread(grams, norms, side, table.dtype), table)
    return found if into is None else into.copy_(found)


def spread(grams: Any, norms: Any, side: Any, dtype: Any, into: Any = None) -> torch.Tensor:
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
    out = _zeros(into, (count, side.rows, width), dtype, grams.device)
    values = (shares * scale[:, :, None]).to(dtype)
    out[:, :n].scatter_add_(2, where.expand(count, n, 4), values)
    return out


def _zeros(into: Any, size: tuple[int, ...], dtype: Any, device: Any) -> torch.Tensor:
    return torch.zeros(size, dtype=dtype, device=device) if into is None else into.zero_()


# Rows at a time where a whole stack in single precision would not fit.
ROWS = 256
TINY = 1e-30


class Steps:
    """The steps' operations in PyTorch, on any device.

    Parameters
    ----------
    shape : tuple of int
        (L, padded n, padded m).
    buffers : Buffers
        Makes what is kept.
    """

    def __init__(self, shape: tuple[int, int, int], buffers: Any) -> None:
        self.error_blocks = 1
        # Of a plan times every layer's cosines.
        self.sums = buffers.zeros(shape[0])

    def absorb(
        self, S: Any, weights: Any, h: Any, b: Any, factor: float, K: Any, levels: Any
    ) -> None:
        """Write exp(h + factor * mixed cosines - levels) to K, with the rows' maxima as levels."""
        bias = torch.where(b > 0.0, h, -torch.inf)
        for rows in _blocks(len(K)):
            score = torch.einsum("l,lij->ij", weights, S[:, rows].float())
            score = bias + factor * score
            levels[rows] = score.amax(dim=1)
            K[rows] = (score - levels[rows, None]).exp()

    def sweep(
        self, K: Any, a: Any, b: Any, u: Any, v: Any, totals: Any, errors: Any, update: bool
    ) -> None:
        """Write u = 1 / K (b v), K^T (a u) and the columns' errors; to update, v, too."""
        left, columns, error = sweep(torch, K.float(), a, b, v, TINY)
        u.copy_(left)
        totals.copy_(columns)
        errors.copy_(error)
        if update:
            v.copy_(1.0 / columns)

    def stack_sums(self, S: Any, K: Any, a: Any, b: Any, u: Any, v: Any) -> None:
        """Sum the plan times every layer's cosines in a stack."""
        self.sums.zero_()
        for rows in _blocks(len(K)):
            plan = (a * u)[rows, None] * K[rows].float() * (b * v)
            each = torch.einsum("lij,ij->li", S[:, rows].float(), plan)
            self.sums += each.double().sum(dim=1).float()

    def factor_sums(self, X: Any, means: Any, a: Any, starts: Any, part: int, parts: int) -> None:
        """Sum a X means over some rows and every layer's columns, one of some parts of all rows.

        Means are divided by those of one, which are in the column behind the last layer's.
        """
        if part == 0:
            self.sums.zero_()
        ends = starts.long()
        weights = a / means[:, ends[-1:]][:, 0].clamp_min(TINY)
        for rows in _blocks(len(X)):
            each = weights[rows] @ (X[rows].float() * means[rows])
            # Nothing but the device knows where layers end.
            sums = torch.nn.functional.pad(each.double().cumsum(dim=0), (1, 0))
            self.sums += (sums[ends[1:]] - sums[ends[:-1]]).float()

    def answer(self, phi: Any, log_prior: Any, alpha: Any, gamma: float, eta: float) -> None:
        """Move phi to that of the sums by gamma, and write the weights that answer it."""
        phi += gamma * (2.0 - 2.0 * self.sums - phi)
        alpha.copy_(torch.softmax(phi / eta + log_prior, dim=0))

    def blend(
        self, K: Any, a: Any, b: Any, u: Any, v: Any, out: Any, share: float, add: bool
    ) -> None:
        """Write a share of the plan a u K v b, without its padding, or add it."""
        n, m = out.shape
        left, right = share * (a[:n] * u[:n]), (b * v)[:m]
        for rows in _blocks(n):
            plan = left[rows, None] * K[rows, :m].float() * right
            out[rows] = out[rows] + plan if add else plan


def _blocks(n: int) -> list[slice]:
    return [slice(at, min(at + ROWS, n)) for at in range(0, n, ROWS)]
