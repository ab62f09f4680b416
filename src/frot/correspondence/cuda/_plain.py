"""The same operations in plain PyTorch, where there is no Triton."""

from __future__ import annotations

from typing import Any

import torch

from frot.correspondence._transport import paper_shares, sweep

__all__ = ["Steps", "gather", "spread", "unit_vectors"]


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


# Rows at a time where a whole stack in single precision would not fit.
ROWS = 256
TINY = 1e-30


class Steps:
    """The steps' operations in PyTorch, on any device.

    Parameters
    ----------
    shape : tuple of int
        (L, padded n, padded m).
    """

    def __init__(self, shape: tuple[int, int, int], device: Any) -> None:
        self.shape = shape
        self.error_blocks = 1

    def absorb(
        self, S: Any, weights: Any, h: Any, b: Any, factor: float, K: Any, levels: Any
    ) -> None:
        """Write exp(h + factor * mixed cosines - levels) to K, with the rows' maxima as levels."""
        bias = torch.where(b > 0.0, h, -torch.inf)
        for part in torch.arange(self.shape[1]).split(ROWS):
            rows = slice(int(part[0]), int(part[-1]) + 1)
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

    def weigh(
        self, S: Any, K: Any, a: Any, b: Any, u: Any, v: Any,
        phi: Any, log_prior: Any, alpha: Any, gamma: float, eta: float,
    ) -> None:  # fmt: skip
        """Move phi to that of the plan by gamma, and write the weights that answer it."""
        total = torch.zeros_like(phi)
        for part in torch.arange(self.shape[1]).split(ROWS):
            rows = slice(int(part[0]), int(part[-1]) + 1)
            plan = (a * u)[rows, None] * K[rows].float() * (b * v)
            total += torch.einsum("lij,ij->l", S[:, rows].float(), plan)
        phi += gamma * (2.0 - 2.0 * total - phi)
        alpha.copy_(torch.softmax(phi / eta + log_prior, dim=0))

    def blend(self, K: Any, a: Any, b: Any, u: Any, v: Any, out: Any) -> None:
        """Write the average of the plans of all steps."""
        n, m = out.shape
        out.zero_()
        for step, share in enumerate(paper_shares(len(K))):
            left, right = share * (a * u[step])[:n], (b * v[step])[:m]
            out += left[:, None] * K[step, :n, :m].float() * right
