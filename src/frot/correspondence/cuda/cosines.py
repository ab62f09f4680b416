r"""Cosines of every layer between the cells of two images, as two factors or as their products.

.. math:: \cos_l = X_l Y_l^\top

`CosineOperands` makes the factors in half precision from maps on their own grids. Kept are the
products of all layers, in a `Stack`, or the factors themselves, in `Factors`.

With :math:`\hat F, \hat G` the coarse vectors at unit length, N their lengths, U the interpolation
and D the inverse lengths of what it makes,

.. math:: X = (D_s U_s N_s)(\hat F \hat G^\top), \qquad Y = D_t U_t N_t ,

and, where a layer has fewer channels than the target's map has cells,

.. math:: X = (D_s U_s N_s) \hat F, \qquad Y = (D_t U_t N_t) \hat G .

All of it is a fixed sequence of operations on the device, so that it can be captured in a graph:
nothing waits for the device, and what outlasts a launch is in buffers that are allocated once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
import torch

from frot.correspondence._features import FeatureMap
from frot.correspondence._interpolation import Line, corners
from frot.correspondence.cuda import _plain

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
    def by_channels(self) -> bool:
        """Whether the factors are vectors, rather than sums over coarse cells."""
        return self.channels <= self.target[0] * self.target[1]

    @property
    def width(self) -> int:
        """Length of a row of a layer's factors."""
        cells = padded(self.target[0] * self.target[1], COARSE)
        return self.channels if self.by_channels else cells

    @property
    def size(self) -> int:
        """Length of all its factors' rows together, which is what the products cost."""
        return len(self.layers) * self.width


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


# Where the factors of a group go.
Places = tuple[torch.Tensor | None, torch.Tensor | None]


class CosineOperands:
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

    def __call__(
        self, F: torch.Tensor, G: torch.Tensor, into: Places = (None, None)
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return X (layers, padded n, k) and Y (layers, padded m, k) of maps (layers, c, h, w).

        They are written to the tensors `into`, new ones for None.
        """
        left, right = self.sides
        if self.group.by_channels:
            with self.side_stream.launching():
                Y = self._vectors(G, right, into[1])
            X = self._vectors(F, left, into[0])
            self.side_stream.join()
            return X, Y
        with self.side_stream.launching():
            other, *target = self._coarse(G, right)
            Y = self.kernels.spread(*target, right, self.dtype, into[1])
        unit, grams, norms = self._coarse(F, left)
        self.side_stream.join()
        return self.kernels.gather(torch.bmm(unit, other.mT), grams, norms, left, into[0]), Y

    def _vectors(self, maps: torch.Tensor, side: Side, into: torch.Tensor | None) -> torch.Tensor:
        """Interpolate to vectors of unit length, (layers, padded n, channels)."""
        if side.same:
            return self.kernels.unit_vectors(maps.flatten(2), side.rows, self.dtype, into)[0]
        unit, grams, norms = self._coarse(maps, side)
        return self.kernels.gather(unit, grams, norms, side, into)

    def _coarse(self, maps: torch.Tensor, side: Side) -> tuple[torch.Tensor, ...]:
        """Return coarse vectors at unit length, (layers, width, channels), products, lengths."""
        unit, norms = self.kernels.unit_vectors(maps.flatten(2), side.width, self.dtype)
        return unit, products(unit), norms


def cosine_factors(
    source: Sequence[FeatureMap],
    target: Sequence[FeatureMap],
    grid_of: int,
    device: Any,
    dtype: torch.dtype,
) -> Iterator[tuple[tuple[int, ...], torch.Tensor, torch.Tensor]]:
    """Yield layers alike with the two factors of their cosines, padded, in any precision."""
    shapes = [[tuple(one.values.shape) for one in maps] for maps in (source, target)]
    (_, h, w), (_, H, W) = (side[grid_of] for side in shapes)
    for group in make_groups(*shapes):
        F, G = (
            torch.stack([torch.as_tensor(maps[k].values, device=device) for k in group.layers])
            for maps in (source, target)
        )
        X, Y = CosineOperands(group, (h, w), (H, W), device, dtype)(F.to(dtype), G.to(dtype))
        yield group.layers, X, Y


@dataclass
class Buffers:
    """Makes tensors on a device that are kept, and counts their bytes."""

    device: torch.device
    bytes: int = field(default=0, init=False)

    def zeros(self, *size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Return zeros, in single precision if not told otherwise."""
        return self._counted(torch.zeros(size, dtype=dtype, device=self.device))

    def empty(self, *size: int, dtype: torch.dtype) -> torch.Tensor:
        """Return numbers that are written before they are read."""
        return self._counted(torch.empty(size, dtype=dtype, device=self.device))

    def of(self, values: Any, dtype: torch.dtype) -> torch.Tensor:
        """Return these values."""
        return self._counted(torch.tensor(values, dtype=dtype, device=self.device))

    def _counted(self, made: torch.Tensor) -> torch.Tensor:
        self.bytes += made.nbytes
        return made


@dataclass(frozen=True)
class Layout:
    """Sizes of what is kept of a pair: layers by group, and cells, padded.

    Examples
    --------
    >>> shapes = [(8, 4, 4), (8, 2, 2), (3, 2, 2)]
    >>> layout = Layout.of(shapes, shapes, 0, torch.float16)
    >>> layout.rows, layout.starts, layout.width
    (64, (0, 8, 16, 19), 64)
    """

    groups: tuple[Group, ...]
    source: tuple[int, int]
    target: tuple[int, int]
    dtype: torch.dtype

    @classmethod
    def of(
        cls,
        source: Sequence[tuple[int, ...]],
        target: Sequence[tuple[int, ...]],
        grid_of: int,
        dtype: torch.dtype,
    ) -> Layout:
        """The layout of maps of these shapes, (channels, h, w), on the grids of one of them."""
        (_, h, w), (_, H, W) = source[grid_of], target[grid_of]
        return cls(tuple(make_groups(source, target)), (h, w), (H, W), dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of cells, (n, m)."""
        return self.source[0] * self.source[1], self.target[0] * self.target[1]

    @cached_property
    def order(self) -> list[int]:
        """The layers' numbers, group by group, (L,)."""
        return [layer for group in self.groups for layer in group.layers]

    @property
    def rows(self) -> int:
        """Padded n."""
        return padded(self.shape[0])

    @property
    def cols(self) -> int:
        """Padded m."""
        return padded(self.shape[1])

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each layer's factor begins among all, in `order`, and where the last one ends."""
        widths = [group.width for group in self.groups for _ in group.layers]
        return (0, *np.cumsum(widths).tolist())

    @property
    def width(self) -> int:
        """Length of a row of all factors, and of one more column."""
        return padded(self.starts[-1] + 1)

    @cached_property
    def first(self) -> tuple[int, ...]:
        """The place of each group's first layer in `order`, and the number of layers."""
        return (0, *np.cumsum([len(group.layers) for group in self.groups]).tolist())

    @property
    def parts(self) -> list[slice]:
        """Rows that are worked on at a time where all would take too much room."""
        each = max(self.cols, self.width) * (self.dtype.itemsize + 4)
        count = -(-self.rows * each // CHUNK_BYTES)
        step = padded(-(-self.rows // count))
        return [slice(at, min(at + step, self.rows)) for at in range(0, self.rows, step)]


class Cosines(Protocol):
    """Cosines of all layers, kept in some form, for the kernels and plans of one pair."""

    @staticmethod
    def room(layout: Layout) -> int:
        """Return the bytes of its buffers."""
        ...

    def places(self, number: int) -> Places:
        """Where the factors of a group are to be written."""
        ...

    def fill(self, number: int, X: torch.Tensor, Y: torch.Tensor) -> None:
        """Keep what a group's factors, (layers, rows, k) and (layers, cols, k), say."""
        ...

    def absorb(self, alpha: Any, h: Any, b: Any, factor: float, K: Any, levels: Any) -> None:
        """Write exp(h + factor * mixed cosines - levels) to K, with the rows' maxima as levels."""
        ...

    def add_up(self, K: Any, a: Any, b: Any, u: Any, v: Any) -> None:
        """Leave the sums of the plan a u K v b times the cosines, in parts, with the kernels."""
        ...


class Stack:
    """All cosines, (L, rows, cols): every use reads them once."""

    def __init__(self, layout: Layout, buffers: Buffers, work: Any) -> None:
        self.layout, self.work = layout, work
        # Products are written whole, padding included.
        size = (len(layout.order), layout.rows, layout.cols)
        self.values = buffers.empty(*size, dtype=layout.dtype)

    @staticmethod
    def room(layout: Layout) -> int:
        """Return the bytes of its buffers."""
        return len(layout.order) * layout.rows * layout.cols * layout.dtype.itemsize

    def places(self, number: int) -> Places:
        """Anywhere: factors are not kept."""
        return None, None

    def fill(self, number: int, X: torch.Tensor, Y: torch.Tensor) -> None:
        """Multiply."""
        first, last = self.layout.first[number : number + 2]
        torch.bmm(X, Y.mT, out=self.values[first:last])

    def absorb(self, alpha: Any, h: Any, b: Any, factor: float, K: Any, levels: Any) -> None:
        """One pass over the stack."""
        self.work.absorb(self.values, alpha, h, b, factor, K, levels)

    def add_up(self, K: Any, a: Any, b: Any, u: Any, v: Any) -> None:
        """Another."""
        self.work.stack_sums(self.values, K, a, b, u, v)


# What rows of an operand and of its product may take at a time: large products keep a device busy.
CHUNK_BYTES = 128_000_000
# Powers of two are multiplied without rounding: half precision has numbers from 2^-14 to 2^16 with
# all digits. No entry of X exceeds 1 by more than rounding, nor does a row of a plan sum to more.
SCALE = 2.0**14


class Factors:
    r"""The factors of all layers side by side, X (rows, k) and Y (cols, k), without their products.

    Mixed cosines are one product, with the weights in one of the factors, and the sums of a plan
    times the cosines are another,

    .. math:: \sum_l \alpha_l \cos_l = (X \alpha) Y^\top , \qquad
              \sum_{ij} \pi_{ij} \cos_l(i, j) =
              \sum_i \frac{a_i}{(R 1)_i} \sum_{k \in l} X_{ik} (R Y)_{ik} , \qquad
              R_{ij} = u_i K_{ij} v_j b_j ,

    with operands in half precision, s X alpha and s R with :math:`s = 2^{14}`, and sums in single.
    R 1 is one but for rounding, which has one direction where all entries of a row are alike; it is
    a column of R Y, with ones in Y and zeros in X.

    To round an operand moves an entry by at most a share of :math:`2^{-11}`, or by
    :math:`2^{-25}` where it is subnormal. Hence, with weights however small,

    .. math:: \Big| \delta \sum_l \alpha_l \cos_l(i, j) \Big| \le
              2^{-11} \sum_l \alpha_l \sum_{k \in l} |X_{ik} Y_{jk}| + 2^{-39} \sum_k |Y_{jk}| ,

    where the sums over :math:`k \in l` are at most 1 for unit vectors: no more than the factors'
    own rounding. Rows are worked on in parts, so that what does not outlast a launch stays small.
    """

    def __init__(self, layout: Layout, buffers: Buffers, work: Any) -> None:
        self.layout, self.work = layout, work
        widest = layout.parts[0].stop
        size = widest * max(layout.cols, layout.width)
        # Columns behind the last layer stay as they are.
        self.X = buffers.zeros(layout.rows, layout.width, dtype=layout.dtype)
        self.Y = buffers.zeros(layout.cols, layout.width, dtype=layout.dtype)
        self.Y[:, layout.starts[-1]] = 1.0
        self.operand = buffers.empty(size, dtype=layout.dtype)
        self.product = buffers.empty(size, dtype=torch.float32)
        self.starts = buffers.of(layout.starts, torch.int32)
        widths = np.diff(layout.starts)
        layers = np.repeat(np.arange(len(widths)), widths)
        self.layers = buffers.of(np.pad(layers, (0, layout.width - len(layers))), torch.int64)
        self.ones = buffers.of(np.ones(widest), torch.float32)
        self.inverse = buffers.of([1.0 / SCALE], torch.float32)

    @staticmethod
    def room(layout: Layout) -> int:
        """Return the bytes of its buffers."""
        size, widest = layout.dtype.itemsize, layout.parts[0].stop
        kept = layout.width * (layout.rows + layout.cols) * size
        some = widest * max(layout.cols, layout.width) * (size + 4)
        return kept + some + 8 * layout.width + 4 * (len(layout.starts) + widest + 1)

    def places(self, number: int) -> Places:
        """Beside those of the other groups, as (layers, cells, k)."""
        group = self.layout.groups[number]
        first = self.layout.starts[self.layout.first[number]]
        count, width = len(group.layers), group.width
        X, Y = (
            side[:, first : first + count * width].unflatten(1, (count, width)).transpose(0, 1)
            for side in (self.X, self.Y)
        )
        return X, Y

    def fill(self, number: int, X: torch.Tensor, Y: torch.Tensor) -> None:
        """They are where they are kept."""

    def absorb(self, alpha: Any, h: Any, b: Any, factor: float, K: Any, levels: Any) -> None:
        """One product, with s alpha in the source's factor."""
        shares = SCALE * alpha[self.layers]
        for part in self.layout.parts:
            weighted, mixed = self._some(part, self.layout.width, self.layout.cols)
            torch.mul(self.X[part], shares, out=weighted)
            multiply(weighted, self.Y.mT, mixed)
            self.work.absorb(mixed[None], self.inverse, h, b, factor, K[part], levels[part])

    def add_up(self, K: Any, a: Any, b: Any, u: Any, v: Any) -> None:
        """One product, of the target's factor with the plan's rows, which sum to s."""
        parts = self.layout.parts
        for number, part in enumerate(parts):
            plan, means = self._some(part, self.layout.cols, self.layout.width)
            self.work.blend(K[part], self.ones, b, u[part], v, plan, SCALE, False)
            multiply(plan, self.Y, means)
            self.work.factor_sums(self.X[part], means, a[part], self.starts, number, len(parts))

    def _some(self, part: slice, across: int, wide: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return where an operand and a product of some rows go."""
        rows = part.stop - part.start
        return (
            self.operand[: rows * across].view(rows, across),
            self.product[: rows * wide].view(rows, wide),
        )


# The forms that cosines are kept in, by name.
KEPT: dict[str, type[Stack] | type[Factors]] = {"stack": Stack, "factors": Factors}


def multiply(A: torch.Tensor, B: torch.Tensor, out: torch.Tensor) -> None:
    """Write A B, summed in the precision of `out`."""
    if A.dtype == out.dtype:
        torch.mm(A, B, out=out)
    elif A.is_cuda and WIDER_OUTPUT:
        torch.mm(A, B, out_dtype=out.dtype, out=out)  # pyright: ignore[reportCallIssue]
    else:
        torch.mm(A.to(out.dtype), B.to(out.dtype), out=out)
