r"""Two factors of every layer's cosines, in half precision, from maps on their own grids.

.. math:: \cos_l = X_l Y_l^\top

With :math:`\hat F, \hat G` the coarse vectors at unit length, N their lengths, U the interpolation
and D the inverse lengths of what it makes,

.. math:: X = (D_s U_s N_s)(\hat F \hat G^\top), \qquad Y = D_t U_t N_t ,

and, where a layer has fewer channels than the target's map has cells,

.. math:: X = (D_s U_s N_s) \hat F, \qquad Y = (D_t U_t N_t) \hat G .

All of it is a fixed sequence of operations on the device, so that it can be captured in a graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from frot.correspondence._interpolation import Line, corners
from frot.correspondence.cuda import _plain

__all__ = ["Group", "Operands", "Side", "SideStream", "make_groups", "padded", "products"]

# Whether products of half precision can be had in single.
WIDER_OUTPUT = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 8)
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
    def size(self) -> int:
        """Length of all its factors' rows together, which is what the products cost."""
        return len(self.layers) * min(self.channels, self.target[0] * self.target[1])

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


class SideStream:
    """A second stream of launches: small ones leave a device idle. Without CUDA there is one.

    Where there is little work, to change between streams takes longer than to wait (`alone`).
    """

    def __init__(self, device: Any, alone: bool = False) -> None:
        cuda = torch.device(device).type == "cuda" and not alone
        self.stream = torch.cuda.Stream(device) if cuda else None

    @contextmanager
    def launching(self) -> Iterator[None]:
        """Launch here what needs nothing that comes after."""
        if self.stream is None:
            yield
            return
        self.stream.wait_stream(torch.cuda.current_stream(self.stream.device))
        with torch.cuda.stream(self.stream):
            yield

    def join(self) -> None:
        """Let the first stream wait for this one."""
        if self.stream is not None:
            torch.cuda.current_stream(self.stream.device).wait_stream(self.stream)


class Side:
    """Interpolation of the coarse cells of one image: four corners for each of n fine cells."""

    def __init__(
        self,
        coarse: tuple[int, int],
        fine: tuple[int, int],
        device: Any,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        down, across = (Line.between(*sizes) for sizes in zip(coarse, fine, strict=True))
        cells, weights = [], []
        for rows, columns, high, wide in corners(down, across):
            cells.append((rows[:, None] * across.old + columns[None, :]).ravel())
            weights.append((high[:, None] * wide[None, :]).ravel())
        self.same = coarse == fine
        self.rows = padded(fine[0] * fine[1])
        self.width = padded(coarse[0] * coarse[1], COARSE)
        self.corners = torch.tensor(np.stack(cells, axis=1), dtype=torch.int32, device=device)
        self.weights = torch.tensor(np.stack(weights, axis=1), dtype=dtype, device=device)


@lru_cache(maxsize=64)
def _side(coarse: tuple[int, int], fine: tuple[int, int], device: Any, dtype: torch.dtype) -> Side:
    """The same for all photographs of a size."""
    return Side(coarse, fine, device, dtype)


def products(unit: torch.Tensor) -> torch.Tensor:
    """Return the products of the cells of each layer, in more than their own precision."""
    if unit.is_cuda and unit.dtype == torch.float16:
        if WIDER_OUTPUT:
            return torch.bmm(unit, unit.mT, out_dtype=torch.float32)
        unit = unit.float()
        return torch.bmm(unit, unit.mT)
    return torch.bmm(unit.double(), unit.double().mT)


class Operands:
    """The factors of one group, for maps that come again and again in the same shapes.

    On the common grids `source` and `target`, in half precision, or single where half is not fast,
    by `unit_vectors`, `gather` and `spread` of the module `kernels`. The target's factor is made
    on the side stream.
    """

    def __init__(
        self,
        group: Group,
        source: tuple[int, int],
        target: tuple[int, int],
        device: Any,
        dtype: torch.dtype = torch.float16,
        kernels: Any = _plain,
        side_stream: SideStream | None = None,
    ) -> None:
        self.group, self.dtype, self.kernels = group, dtype, kernels
        self.side_stream = side_stream or SideStream(device)
        exact = torch.promote_types(dtype, torch.float32)
        self.sides = (
            _side(group.source, source, device, exact),
            _side(group.target, target, device, exact),
        )

    def __call__(self, F: torch.Tensor, G: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return X (layers, padded n, k) and Y (layers, padded m, k) of maps (layers, c, h, w)."""
        left, right = self.sides
        if self.group.by_channels:
            with self.side_stream.launching():
                Y = self._vectors(G, right)
            X = self._vectors(F, left)
            self.side_stream.join()
            return X, Y
        with self.side_stream.launching():
            other, *target = self._coarse(G, right)
            Y = self.kernels.spread(*target, right, self.dtype)
        unit, grams, norms = self._coarse(F, left)
        self.side_stream.join()
        return self.kernels.gather(torch.bmm(unit, other.mT), grams, norms, left), Y

    def _vectors(self, maps: torch.Tensor, side: Side) -> torch.Tensor:
        """Interpolate to vectors of unit length, (layers, padded n, channels)."""
        if side.same:
            return self.kernels.unit_vectors(maps.flatten(2), side.rows, self.dtype)[0]
        unit, grams, norms = self._coarse(maps, side)
        return self.kernels.gather(unit, grams, norms, side)

    def _coarse(self, maps: torch.Tensor, side: Side) -> tuple[torch.Tensor, ...]:
        """Return coarse vectors at unit length, (layers, width, channels), products, lengths."""
        unit, norms = self.kernels.unit_vectors(maps.flatten(2), side.width, self.dtype)
        return unit, products(unit), norms
