r"""Costs between the cells of two images, from the maps of all layers on their own grids.

.. math:: C_l = 2 - 2\, D_s U_s (F_l G_l^\top) U_t^\top D_t

with F and G the coarse features, U the bilinear interpolation to the common grid and D the inverse
lengths of the interpolated vectors: exactly the stack that interpolating every channel, scaling
every vector to unit length and multiplying would give, and never formed where it would be large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from frot._base.arrays import Home, namespace
from frot._base.errors import InputError
from frot.correspondence._cosines import (
    SUMMED,
    CoarseLayers,
    DenseLayers,
    FactoredLayers,
    Part,
    inverse,
)
from frot.correspondence._device import working_home
from frot.correspondence._features import FeatureMap
from frot.correspondence._interpolation import Line, inverse_norms, resize
from frot.costs.protocol import Rounding, constant_potentials
from frot.costs.stack import StackGeometry


@dataclass(frozen=True, eq=False)
class GridGeometry:
    """Costs of L layers between n and m cells: a batch of one for the entropic engines."""

    # The layers, in whatever form, in working precision.
    parts: tuple[Part, ...]
    size: tuple[int, int]
    # What a cosine is a sum over, (L,), for the bounds on rounding.
    channels: np.ndarray
    # Where results go, and their precision; bounds are about the parts' own.
    home: Home
    # Factors of the costs, (L,), and the rows that are looked at.
    scale: np.ndarray
    span: tuple[int, int]

    @classmethod
    def of(
        cls, parts: Sequence[Part], maps: Sequence[FeatureMap], size: tuple[int, int], home: Home
    ) -> GridGeometry:
        """The costs of some maps' layers, between all cells and not scaled."""
        channels = np.array([one.channels for one in maps])
        return cls(tuple(parts), size, channels, home, np.ones(len(maps)), (0, size[0]))

    @property
    def _unit(self) -> float:
        """Rounding of working precision."""
        return float(self.home.xp.finfo(self.work.dtype).eps)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(1, L, n, m)."""
        start, stop = self.span
        return (1, len(self.channels), stop - start, self.size[1])

    @property
    def work(self) -> Home:
        """Where the parts live, and their precision."""
        return self.parts[0].home

    def _gather(self, found: list[Any]) -> Any:
        """Put the parts' numbers, (layers, ...) each, into the order of the layers."""
        xp = self.home.xp
        order = np.argsort(np.concatenate([part.layers for part in self.parts]), kind="stable")
        return xp.take(xp.concat(found, axis=0), self.home.indices(order), axis=0)

    def mix(self, alpha: Any) -> Any:
        """Return the mixed cost, (1, n, m)."""
        xp, work = self.home.xp, self.work
        weights = alpha[0, :] * self.home.bring(self.scale)
        level = 2.0 * float(xp.sum(weights))
        out = xp.full(self.shape[2:], level, dtype=work.dtype, device=work.device)
        weights = xp.astype(-2.0 * weights, work.dtype)
        for part in self.parts:
            part.add(out, xp.take(weights, work.indices(part.layers), axis=0), *self.span)
        return xp.astype(out, self.home.dtype, copy=False)[None, ...]

    def inner(self, plan: Any) -> Any:
        """Return the costs of a plan, (1, L); sums of rows are in double precision."""
        xp = self.home.xp
        rows = xp.sum(plan[0, ...], axis=1)
        block = xp.astype(plan[0, ...], self.work.dtype, copy=False)
        found = self._gather([part.sums(block, *self.span) for part in self.parts])
        return self._costs(xp.sum(rows, dtype=xp.float64), found)

    def product(self, u: Any, v: Any) -> Any:
        """Return the costs of u v^T from moments, (1, L)."""
        xp, work = self.home.xp, self.work
        left, right = (xp.astype(x[0, :], work.dtype) for x in (u, v))
        found = self._gather([part.product(left, right, *self.span) for part in self.parts])
        return self._costs(xp.sum(u) * xp.sum(v), found)

    def _costs(self, mass: Any, cosines: Any) -> Any:
        """Return 2 mass - 2 cosines, scaled, in the precision of results."""
        xp = self.home.xp
        found = 2.0 * mass - 2.0 * xp.astype(cosines, xp.float64)
        return xp.astype(found * self.home.double().bring(self.scale), self.home.dtype)[None, :]

    def peaks(self) -> Any:
        """No cosine is below -1."""
        return 4.0 * self.home.bring(self.scale)[None, :]

    def least(self, u: Any, v: Any) -> Any:
        """No cost is negative."""
        count = self.shape[1]
        return self.home.xp.zeros((1, count), dtype=self.home.dtype, device=self.home.device)

    def least_potentials(self, alpha: Any, u: Any, v: Any) -> tuple[Any, Any]:
        """Return nothing for either side."""
        return constant_potentials(alpha, self.least(u, v), u, v)

    def take(self, rows: Any, cols: Any) -> StackGeometry:
        """The costs between some cells, as a stack."""
        each = [
            np.broadcast_to(self._cosine_errors[:, None], (len(self.scale), k)) for k in self.size
        ]
        return StackGeometry(self.stack(), error=(each[0], 0.0 * each[1])).take(rows, cols)

    def rows(self, part: slice) -> GridGeometry:
        """The costs of some rows only."""
        start, stop, _ = part.indices(self.shape[2])
        return replace(self, span=(self.span[0] + start, self.span[0] + stop))

    def members(self, index: Any) -> GridGeometry:
        """A batch of one has one member."""
        return self

    def stack(self) -> Any:
        """All costs, (1, L, n, m), one layer at a time."""
        eye = np.eye(self.shape[1])
        found = [self.mix(self.home.bring(alone[None, :]))[0, ...] for alone in eye]
        return self.home.xp.stack(found, axis=0)[None, ...]

    @property
    def _cosine_errors(self) -> np.ndarray:
        """Bounds on the rounding of a cosine, (L,): k errors of either sign add up like sqrt(k)."""
        return 2.0 * self.scale * (16.0 + 2.0 * np.sqrt(self.channels)) * self._unit

    def mix_error(self, alpha: Any) -> Rounding:
        """Bound the rounding of cosines, and of the sum over layers: the same for all cells."""
        home, (_, _, n, m) = self.home, self.shape
        each = self._cosine_errors + 4.0 * self.scale * np.sqrt(self.shape[1]) * self._unit
        rows = home.xp.zeros((1, n), dtype=home.dtype, device=home.device)
        rows = rows + home.xp.sum(alpha * home.bring(each), axis=1)[:, None]
        cols = home.xp.zeros((1, m), dtype=home.dtype, device=home.device)
        return Rounding(home.xp.zeros_like(alpha[:, 0]), rows, cols)

    def inner_error(self, phi: Any, u: Any, v: Any) -> Any:
        """Bound the rounding of cosines, and of the sums along rows; those are added in double."""
        along = 2.0 * self.scale * (8.0 + 2.0 * np.sqrt(max(self.size[1], SUMMED))) * self._unit
        return self.home.bring((self._cosine_errors + along)[None, :])

    def double(self) -> GridGeometry:
        """Results in double precision; what single precision worked out is bounded as such."""
        return replace(self, home=self.home.double())

    def single(self) -> GridGeometry:
        """The same costs worked out in single precision."""
        xp = self.home.xp
        home = Home(xp, self.home.device, xp.float32)
        return replace(self, parts=tuple(part.cast(xp.float32) for part in self.parts), home=home)

    @property
    def nonnegative(self) -> bool:
        """No cosine exceeds one."""
        return True

    def sizes(self, u: Any, v: Any) -> Any:
        """Return the mean size of every layer's costs, (1, L)."""
        return self.product(u, v)

    def rescaled(self, factor: Any) -> GridGeometry:
        """The costs times a factor each."""
        return replace(self, scale=self.scale * np.asarray(factor))

    def at(self, rows: Any, cols: Any) -> Any:
        """Return the costs at a few arcs, (L, K)."""
        xp = self.home.xp
        found = self._gather([part.at(rows + self.span[0], cols) for part in self.parts])
        return self.home.double().bring(self.scale)[:, None] * (
            2.0 - 2.0 * xp.astype(found, xp.float64)
        )


# Bytes of cosines that may be kept as matrices where not all of them can be, where they can, and on
# a device, where anything else would be made of thousands of small launches.
BUDGET = 256_000_000
WHOLE_BUDGET = 512_000_000
DEVICE_BUDGET = 8_000_000_000
# Layers of fewer channels are as fast from their vectors.
FEW_CHANNELS = 100


def layer_costs(
    source: Sequence[FeatureMap],
    target: Sequence[FeatureMap],
    *,
    grid_of: int = 0,
    device: Any = None,
    dtype: str = "float32",
    budget: float | None = None,
) -> GridGeometry:
    r"""Return the costs of all layers between the cells of two images.

    .. math:: [C_l]_{ij} = 2 - 2 \cos(x_i^{(l)}, y_j^{(l)})

    with x and y the maps interpolated (bilinear, corners aligned) to the grids of one layer. A
    vector of zeros, where all units of a layer are dead, has the cosine 0 with every other.

    The layer `grid_of` has the cells that are matched. Work is in PyTorch on a device, in NumPy
    if that is left out, in the precision `dtype`, whose rounding the bounds of certificates count.
    So many bytes of cosines as `budget` says may be kept as matrices, 256 MB if left out, 8 GB on
    a device; the rest is worked out from coarse products whenever it is needed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> maps = [FeatureMap(str(h), rng.normal(size=(8, h, h)), 16 / h, 1) for h in (4, 2)]
    >>> costs = layer_costs(maps, maps)
    >>> costs.shape
    (1, 2, 16, 16)
    >>> float(costs.mix(np.array([[0.5, 0.5]], dtype="float32"))[0].diagonal().max().round(6))
    0.0
    """
    check_maps(source, target, grid_of)
    if dtype not in ("float32", "float64"):
        raise InputError(f"dtype: is {dtype!r}; use 'float32' or 'float64'")
    home = working_home(device, dtype)
    ends = [(maps[grid_of].grid.h, maps[grid_of].grid.w) for maps in (source, target)]
    both = _MapPair(source, target, home, *ends)
    n, m = (h * w for h, w in ends)
    count, itemsize = len(source), np.dtype(dtype).itemsize
    if budget is not None:
        whole = budget
    else:
        budget, whole = (BUDGET, WHOLE_BUDGET) if home.on_host else 2 * (DEVICE_BUDGET,)
    all_kept = count * n * m * itemsize <= whole
    fine, coarse = _sorted_layers(source, target, n, m)
    parts: list[Part] = []
    if all_kept and home.library == "torch" and not home.on_host:
        parts.append(DenseLayers(tuple(range(count)), _by_torch(source, target, grid_of, home)))
    elif all_kept:
        values = both.room(count)
        both.write_cosines(values, fine, fine)
        for layers in coarse:
            part = both.coarse(layers)
            for k, layer in enumerate(layers):
                out = home.xp.zeros((n, m), dtype=home.dtype, device=home.device)
                part.only(k).add(out, home.bring([1.0]), 0, n)
                values[layer, :, :] = out
        parts.append(DenseLayers(tuple(range(count)), values))
    else:
        some = int(budget // (n * m * itemsize))
        kept = [layer for layer in fine if source[layer].channels > FEW_CHANNELS][:some]
        if kept:
            values = both.room(len(kept))
            both.write_cosines(values, range(len(kept)), kept)
            parts.append(DenseLayers(tuple(kept), values))
        rest = [layer for layer in fine if layer not in kept]
        if rest:
            channels = tuple(source[layer].channels for layer in rest)
            X, Y = (
                home.xp.concat([_vectors(maps[k], home, end) for k in rest], axis=1)
                for maps, end in zip((source, target), ends, strict=True)
            )
            parts.append(FactoredLayers(tuple(rest), channels, X, Y))
        parts += [both.coarse(layers) for layers in coarse]
    return GridGeometry.of(parts, source, (n, m), home)


def _by_torch(
    source: Sequence[FeatureMap], target: Sequence[FeatureMap], grid_of: int, home: Home
) -> Any:
    """Return all cosines, (L, n, m), by a few large products."""
    from frot.correspondence.cuda.cosines import cosine_factors

    n, m = source[grid_of].grid.count, target[grid_of].grid.count
    values = home.xp.empty((len(source), n, m), dtype=home.dtype, device=home.device)
    for layers, X, Y in cosine_factors(source, target, grid_of, home.device, home.dtype):
        first, last = layers[0], layers[-1] + 1
        if layers == tuple(range(first, last)):
            # Blocks of a network follow each other: all products at once, where they are kept.
            home.xp.matmul(X[:, :n, :], Y[:, :m, :].mT, out=values[first:last, :, :])
            continue
        for layer, left, right in zip(layers, X, Y, strict=True):
            values[layer, :, :] = left[:n, :] @ right[:m, :].mT
    return values


def check_maps(source: Sequence[FeatureMap], target: Sequence[FeatureMap], grid_of: int) -> None:
    """Refuse maps that do not belong together."""
    if len(source) == 0 or len(source) != len(target):
        raise InputError(
            f"source, target: have {len(source)} and {len(target)} layers; pass the maps of the "
            "same layers, at least one"
        )
    if not -len(source) <= grid_of < len(source):
        raise InputError(f"grid_of: is {grid_of}, but there are {len(source)} layers")
    for one, other in zip(source, target, strict=True):
        if one.channels != other.channels or one.channels == 0:
            raise InputError(
                f"source, target: layer {one.name!r} has {one.channels} and {other.channels} "
                "channels; pass maps of the same network"
            )
        for maps, name in ((one, "source"), (other, "target")):
            if 0 in maps.values.shape:
                raise InputError(f"{name}: layer {maps.name!r} has no cells; use a larger image")
            if not (maps.finite or all_finite(maps.values)):
                raise InputError(
                    f"{name}: layer {maps.name!r} has values that are infinite or NaN; check the "
                    "network's input"
                )


def all_finite(values: Any) -> bool:
    """Whether all numbers of an array are finite."""
    return bool(namespace(values).isfinite(values).all())


def _sorted_layers(
    source: Sequence[FeatureMap], target: Sequence[FeatureMap], n: int, m: int
) -> tuple[list[int], list[list[int]]]:
    """Return the layers on grids as fine as the common ones, and the others by their grids."""
    fine: list[int] = []
    coarse: dict[tuple[int, ...], list[int]] = {}
    for layer, (one, other) in enumerate(zip(source, target, strict=True)):
        if 2 * one.grid.count * other.grid.count > n * m:
            fine.append(layer)
        else:
            grids = (*one.values.shape[1:], *other.values.shape[1:])
            coarse.setdefault(grids, []).append(layer)
    return fine, list(coarse.values())


def _brought(one: FeatureMap, home: Home) -> Any:
    """Return a map where it is worked on, its largest entry one so that squares stay finite."""
    values = home.bring(one.values)
    peak = float(home.xp.max(home.xp.abs(values)))
    return values / peak if peak > 0.0 else values


class _MapPair(NamedTuple):
    """The maps of two images, where they are worked on, and the sizes of the common grids."""

    source: Sequence[FeatureMap]
    target: Sequence[FeatureMap]
    home: Home
    source_end: tuple[int, int]
    target_end: tuple[int, int]

    def room(self, count: int) -> Any:
        """Return an array for the cosines of so many layers, (count, n, m)."""
        n, m = (h * w for h, w in (self.source_end, self.target_end))
        return self.home.xp.empty((count, n, m), dtype=self.home.dtype, device=self.home.device)

    def write_cosines(self, values: Any, slots: Sequence[int], layers: Sequence[int]) -> None:
        """Write the cosines of layers into slots of an array."""
        for slot, layer in zip(slots, layers, strict=True):
            X = _vectors(self.source[layer], self.home, self.source_end)
            Y = _vectors(self.target[layer], self.home, self.target_end)
            values[slot, :, :] = X @ self.home.xp.matrix_transpose(Y)

    def coarse(self, layers: Sequence[int]) -> CoarseLayers:
        """Multiply the vectors of coarse cells, for layers that share their grids."""
        home, xp, first = self.home, self.home.xp, layers[0]
        (_, hs, ws), (_, ht, wt) = (side[first].values.shape for side in (self.source, self.target))
        lines = (
            _lines(self.source[first], self.source_end),
            _lines(self.target[first], self.target_end),
        )
        K = xp.empty((hs, ws, len(layers), wt, ht), dtype=home.dtype, device=home.device)
        scales: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        for slot, layer in enumerate(layers):
            F, G = _brought(self.source[layer], home), _brought(self.target[layer], home)
            for maps, line, found in ((F, lines[0], scales[0]), (G, lines[1], scales[1])):
                found.append(inverse_norms(maps, home, *line))
            left = xp.reshape(F, (F.shape[0], hs * ws))
            right = xp.reshape(xp.matrix_transpose(G), (G.shape[0], wt * ht))
            K[:, :, slot, ...] = xp.reshape(xp.matrix_transpose(left) @ right, (hs, ws, wt, ht))
        ds = home.bring(np.stack(scales[0]))
        dt = home.bring(np.stack(scales[1]).reshape(len(layers), -1))
        return CoarseLayers(tuple(layers), K, *lines, ds, dt)


def _lines(one: FeatureMap, end: tuple[int, int]) -> tuple[Line, Line]:
    return Line.between(one.grid.h, end[0]), Line.between(one.grid.w, end[1])


def _vectors(one: FeatureMap, home: Home, end: tuple[int, int]) -> Any:
    """Return a map's interpolated vectors at unit length, (cells, channels)."""
    xp, values = home.xp, resize(_brought(one, home), *end, align_corners=True)
    values = xp.reshape(values, (values.shape[0], -1))
    norms = xp.sqrt(xp.sum(values * values, axis=0, dtype=xp.float64))
    return xp.matrix_transpose(values * xp.astype(inverse(xp, norms), home.dtype))
