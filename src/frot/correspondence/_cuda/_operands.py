r"""Two factors of every layer's cosines, in half precision, from maps on their own grids.

.. math:: \cos_l = X_l Y_l^\top

Where a layer has fewer channels than the target's map has cells, the factors are the interpolated
vectors at unit length. Otherwise, with :math:`\hat F, \hat G` the coarse vectors at unit length,
N their lengths, U the interpolation and D the inverse lengths of what it makes,

.. math:: X = (D_s U_s N_s)(\hat F \hat G^\top), \qquad Y = D_t U_t N_t .

All of it is a fixed sequence of operations on the device, so that it can be captured in a graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from frot.correspondence._grid_lines import Line

__all__ = ["Group", "Operands", "Side", "make_groups", "padded"]

# Matrix products are slow on sides that are no multiples of these.
FINE, COARSE = 64, 8


def padded(size: int, multiple: int = FINE) -> int:
    """Return the next multiple.

    Examples
    --------
    >>> padded(4275)
    4288
    """
    return -(-size // multiple) * multiple


@dataclass(frozen=True)
class Group:
    """Layers of the same grids and number of channels, and how they are multiplied."""

    layers: tuple[int, ...]
    channels: int
    source: tuple[int, int]
    target: tuple[int, int]

    @property
    def by_channels(self) -> bool:
        """Whether the factors are vectors, rather than sums over coarse cells."""
        return self.channels <= self.target[0] * self.target[1]


def make_groups(
    source: Sequence[tuple[int, ...]], target: Sequence[tuple[int, ...]]
) -> list[Group]:
    """Sort layers, given as shapes (channels, h, w), by what they have in common.

    Examples
    --------
    >>> shapes = [(8, 4, 4), (8, 2, 2), (8, 2, 2)]
    >>> [(group.layers, group.by_channels) for group in make_groups(shapes, shapes)]
    [((0,), True), ((1, 2), False)]
    """
    found: dict[tuple[Any, ...], list[int]] = {}
    for layer, (one, other) in enumerate(zip(source, target, strict=True)):
        found.setdefault((one[0], one[1:], other[1:]), []).append(layer)
    return [Group(tuple(layers), *key) for key, layers in found.items()]


class Side:
    """Interpolation of coarse cells of one image: four corners for each of n fine cells."""

    def __init__(self, coarse: tuple[int, int], fine: tuple[int, int], device: Any) -> None:
        down, across = (Line.between(*sizes) for sizes in zip(coarse, fine, strict=True))
        cells, weights = [], []
        for i in range(2):
            for j in range(2):
                y = np.minimum(down.low + i, down.old - 1)[:, None]
                x = np.minimum(across.low + j, across.old - 1)[None, :]
                cells.append((y * across.old + x).ravel())
                weights.append((down.taps[:, i, None] * across.taps[None, :, j]).ravel())
        self.cells, self.fine = coarse[0] * coarse[1], fine
        self.width = padded(self.cells, COARSE)
        corners = np.stack(cells, axis=1)
        self.corners = torch.tensor(corners, device=device)
        self.weights = torch.tensor(np.stack(weights, axis=1), dtype=torch.float32, device=device)
        pairs = corners[:, :, None] * self.width + corners[:, None, :]
        self.pairs = torch.tensor(pairs.ravel(), device=device)

    def spread(self, unit: torch.Tensor, norms: torch.Tensor) -> torch.Tensor:
        """Return D U N, (layers, padded n, padded cells), of coarse vectors at unit length."""
        count, n = unit.shape[0], len(self.corners)
        shares = self.weights * norms[:, self.corners.reshape(-1)].reshape(count, n, 4)
        grams = _gram(unit).flatten(1)[:, self.pairs].reshape(count, n, 4, 4)
        squares = torch.einsum("lna,lnab,lnb->ln", shares, grams, shares)
        # Rounding of a vector that cancels between its corners must not become a direction.
        largest = shares.sum(dim=2).square()
        scale = torch.where(squares > 1e-6 * largest, squares, torch.inf).rsqrt()
        room = (count, padded(n), self.width)
        found = torch.zeros(room, dtype=unit.dtype, device=unit.device)
        values = (shares * scale[:, :, None]).to(unit.dtype)
        found[:, :n].scatter_add_(2, self.corners.expand(count, n, 4), values)
        return found


def _gram(unit: torch.Tensor) -> torch.Tensor:
    """Return the products of the cells of each layer in single precision."""
    if unit.is_cuda and unit.dtype == torch.float16:
        return torch.bmm(unit, unit.mT, out_dtype=torch.float32)
    return torch.bmm(unit.float(), unit.float().mT)


class Operands:
    """The factors of one group, for maps that come again and again in the same shapes.

    Parameters
    ----------
    group : Group
    source, target : tuples of int
        The common grids.
    dtype : torch dtype
        Half precision; single where half is not fast.
    """

    def __init__(
        self,
        group: Group,
        source: tuple[int, int],
        target: tuple[int, int],
        device: Any,
        dtype: torch.dtype = torch.float16,
    ) -> None:
        self.group, self.ends, self.dtype = group, (source, target), dtype
        if not group.by_channels:
            self.sides = Side(group.source, source, device), Side(group.target, target, device)

    def __call__(self, F: torch.Tensor, G: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return X (layers, padded n, k) and Y (layers, padded m, k) of maps (layers, c, h, w)."""
        if self.group.by_channels:
            return self._vectors(F, self.ends[0]), self._vectors(G, self.ends[1])
        (left, left_norms), (right, right_norms) = (
            self._units(maps, side) for maps, side in zip((F, G), self.sides, strict=True)
        )
        Y = self.sides[1].spread(right, right_norms)
        return torch.bmm(self.sides[0].spread(left, left_norms), torch.bmm(left, right.mT)), Y

    def _vectors(self, maps: torch.Tensor, end: tuple[int, int]) -> torch.Tensor:
        """Interpolate, and scale every vector to unit length."""
        if maps.shape[2:] != end:
            maps = functional.interpolate(maps.float(), end, mode="bilinear", align_corners=True)
        flat = maps.flatten(2)
        count, channels, n = flat.shape
        room = (count, padded(n), padded(channels, COARSE))
        found = torch.zeros(room, dtype=self.dtype, device=maps.device)
        found[:, :n, :channels] = (flat * _inverse(flat)).mT
        return found

    def _units(self, maps: torch.Tensor, side: Side) -> tuple[torch.Tensor, torch.Tensor]:
        """Return coarse vectors at unit length, (layers, padded cells, channels), and lengths.

        Lengths are relative to the largest, so that half precision holds them.
        """
        flat = maps.flatten(2)
        count, channels, cells = flat.shape
        inverse = _inverse(flat)
        unit = torch.zeros((count, side.width, channels), dtype=self.dtype, device=maps.device)
        unit[:, :cells] = (flat * inverse).mT
        norms = torch.where(inverse > 0.0, 1.0 / inverse, 0.0)[:, 0]
        top = norms.amax(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
        return unit, norms / top


def _inverse(flat: torch.Tensor) -> torch.Tensor:
    """Return one over the lengths of vectors along dimension 1; zero for those without any."""
    squares = flat.float().square().sum(dim=1, keepdim=True)
    return torch.where(squares > 0.0, squares, torch.inf).rsqrt()
