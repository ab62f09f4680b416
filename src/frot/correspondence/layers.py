"""`LayerPair`: two photographs as the layers of a network see them, on common grids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.arrays import Home
from frot.correspondence._coherence import coherences
from frot.correspondence._cosines import DenseLayers, inverse, lengths
from frot.correspondence._device import working_home
from frot.correspondence._features import FeatureMap, Grid
from frot.correspondence._interpolation import resize
from frot.correspondence._layer_costs import GridGeometry, layer_costs
from frot.correspondence._photo import Photo

if TYPE_CHECKING:
    from frot.correspondence._transport import LayerPlan
    from frot.correspondence.cuda.pair import PairPlanner


def common_grid(maps: Sequence[FeatureMap], stride: float | None) -> int:
    """Return the number of the layer whose grid all others are brought to.

    It is the first layer where no stride is asked for, otherwise the first of those whose stride is
    this one or the next larger.

    Examples
    --------
    >>> maps = [FeatureMap("fine", np.zeros((1, 8, 8)), 4, 11),
    ...         FeatureMap("coarse", np.zeros((1, 4, 4)), 8, 43)]
    >>> common_grid(maps, None), common_grid(maps, 8)
    (0, 1)
    """
    if stride is None:
        return 0
    large = [k for k, layer in enumerate(maps) if layer.stride >= stride]
    return min(large, key=lambda k: maps[k].stride) if large else len(maps) - 1


def with_cells(
    maps: Sequence[FeatureMap], stride: float | None, exact: bool = False
) -> tuple[tuple[FeatureMap, ...], int]:
    """Return the layers and the number of the one whose grid all others are brought to.

    Where a stride is asked for and all layers are finer, the last one is brought to that stride:
    a choice of early layers shall not match more cells than all layers together. Where the stride
    is meant to the pixel (`exact`), the layer is brought to it whatever its own.

    Examples
    --------
    >>> maps, number = with_cells([FeatureMap("fine", np.zeros((1, 9, 16)), 4, 11)], 8)
    >>> maps[number].values.shape, maps[number].stride
    ((1, 5, 8), 8)
    >>> patches = [FeatureMap("block", np.zeros((1, 5, 8)), 16, 16)]
    >>> with_cells(patches, 8)[0][0].stride, with_cells(patches, 8, exact=True)[0][0].grid
    (16, Grid(h=9, w=15, stride=8.0, receptive_field=16.0))
    """
    number = common_grid(maps, stride)
    layer = maps[number]
    if stride is None or layer.stride == stride or (layer.stride > stride and not exact):
        return tuple(maps), number
    if layer.stride < stride:
        h, w = (math.ceil(side * layer.stride / stride) for side in (layer.grid.h, layer.grid.w))
        brought = at_most(layer, Grid(h, w, stride, layer.receptive_field))
    else:
        # The last cell lies where it lay.
        h, w = (round((side - 1) * layer.stride / stride) + 1 for side in layer.values.shape[1:])
        brought = layer.at(h, w, stride)
    return (*maps[:number], brought, *maps[number + 1 :]), number


def at_most(layer: FeatureMap, grid: Grid) -> FeatureMap:
    """Return the layer on a grid if its own is finer, as it is otherwise.

    Examples
    --------
    >>> layer = FeatureMap("fine", np.zeros((1, 8, 8)), 4, 11)
    >>> at_most(layer, Grid(4, 4, 8.0, 43.0)).values.shape
    (1, 4, 4)
    """
    if layer.grid.count <= grid.count:
        return layer
    return layer.at(grid.h, grid.w, grid.stride)


@dataclass(frozen=True, eq=False)
class LayerPair:
    """Two images as a network's layers see them, cell against cell, in NumPy or on a device."""

    source: tuple[FeatureMap, ...]
    target: tuple[FeatureMap, ...]
    # The layer whose cells are matched.
    grid_of: int = 0
    device: Any = None

    @cached_property
    def costs(self) -> GridGeometry:
        """The layers' costs 2 - 2 cos, never stacked where that would be large."""
        return layer_costs(*self._no_finer, grid_of=self.grid_of, device=self.device)

    def planned(
        self, planner: PairPlanner, a: np.ndarray, b: np.ndarray, prior: np.ndarray | None
    ) -> LayerPlan | None:
        """Return the plan that a device's kernels find, None where they cannot."""
        return planner(*self._no_finer, a, b, prior, grid_of=self.grid_of)

    @cached_property
    def coherences(self) -> np.ndarray:
        """The coherence of every layer, (L,), finer layers on the common grids."""
        source, target = self._no_finer
        return coherences(source, target, self.home)

    @cached_property
    def _no_finer(self) -> tuple[list[FeatureMap], list[FeatureMap]]:
        """Layers finer than the cells are sampled at the cells' places anyway: once is enough."""
        source, target = ([at_most(one, grid) for one in maps] for maps, grid in self._sides)
        return source, target

    @property
    def _sides(self) -> tuple[tuple[tuple[FeatureMap, ...], Grid], ...]:
        return (self.source, self.source_grid), (self.target, self.target_grid)

    @cached_property
    def home(self) -> Home:
        """Where arrays live."""
        return working_home(self.device)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the layers."""
        return tuple(layer.name for layer in self.source)

    @property
    def source_grid(self) -> Grid:
        """The cells of the source."""
        return self.source[self.grid_of].grid

    @property
    def target_grid(self) -> Grid:
        """The cells of the target."""
        return self.target[self.grid_of].grid

    def mixed(self, alpha: np.ndarray) -> Any:
        """Return the costs of the layers mixed with weights, (n, m)."""
        return self.costs.mix(self.home.bring(alpha[None, :]))[0, ...]

    @cached_property
    def norms(self) -> tuple[Any, Any]:
        """Lengths of the layers' vectors on the common grids, (L, n) and (L, m)."""
        xp = self.home.xp
        left, right = (
            xp.stack([lengths(xp, self._upsampled(layer, grid)) for layer in maps])
            for maps, grid in self._sides
        )
        return left, right

    def _upsampled(self, layer: FeatureMap, grid: Grid) -> Any:
        """The layer's vectors on the common grid, (n, channels)."""
        return self._interpolated(self.home.bring(layer.values), grid)

    def _interpolated(self, maps: Any, grid: Grid) -> Any:
        """Maps (channels, h, w) as vectors on the grid, (n, channels)."""
        xp, maps = self.home.xp, resize(maps, grid.h, grid.w, align_corners=True)
        return xp.matrix_transpose(xp.reshape(maps, (maps.shape[0], grid.count)))

    @cached_property
    def concatenated(self) -> Any:
        """Cosines of the vectors of all layers put end to end as they are, (n, m)."""
        xp = self.home.xp
        total: Any = 0.0
        for k in range(len(self.source)):
            total = total + self.products(k)
        left, right = (inverse(xp, xp.sqrt(xp.sum(norms**2, axis=0))) for norms in self.norms)
        return xp.clip(total * left[:, None] * right[None, :], -1.0, 1.0)

    def products(self, k: int) -> Any:
        """Return one layer's inner products, (n, m), formed on its own grids where coarser."""
        xp = self.home.xp
        one, other = self.source[k], self.target[k]
        F, coarse_s = self._thin(one, self.source_grid)
        G, coarse_t = self._thin(other, self.target_grid)
        found = F @ xp.matrix_transpose(G)
        if coarse_t:
            maps = xp.reshape(found, (found.shape[0], other.grid.h, other.grid.w))
            found = xp.matrix_transpose(self._interpolated(maps, self.target_grid))
        if coarse_s:
            turned = xp.matrix_transpose(found)
            maps = xp.reshape(turned, (turned.shape[0], one.grid.h, one.grid.w))
            found = self._interpolated(maps, self.source_grid)
        return found

    def _thin(self, layer: FeatureMap, grid: Grid) -> tuple[Any, bool]:
        """The layer's vectors on its own grid where that has fewer cells than the common one."""
        if layer.grid.count >= grid.count:
            return self._upsampled(layer, grid), False
        values = self.home.bring(layer.values)
        flat = self.home.xp.reshape(values, (layer.channels, layer.grid.count))
        return self.home.xp.matrix_transpose(flat), True

    def vectors(self) -> tuple[Any, Any]:
        """The layers' vectors, each of unit length, put end to end: (n, d) and (m, d)."""
        xp = self.home.xp
        left, right = (
            xp.concat(
                [self._upsampled(f, grid) * x[k, :, None] for k, f in enumerate(maps)], axis=1
            )
            for (maps, grid), x in zip(self._sides, self._scales, strict=True)
        )
        return left, right

    @cached_property
    def _scales(self) -> tuple[Any, Any]:
        """One over the norms."""
        left, right = (inverse(self.home.xp, norms) for norms in self.norms)
        return left, right


@dataclass(frozen=True, eq=False)
class LayerTable(LayerPair):
    """Layers whose products are worked out once, so that any choice of them is cheap.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> maps = tuple(FeatureMap(str(k), rng.normal(size=(8, 3, 4)), 8, 43) for k in range(5))
    >>> some = LayerTable(maps, maps).only((1, 4), 0)
    >>> some.names, some.costs.shape
    (('1', '4'), (1, 2, 12, 12))
    """

    _known: dict[int, Any] = field(default_factory=dict)

    def products(self, k: int) -> Any:
        """Return the inner products of layer k, (n, m)."""
        if k not in self._known:
            self._known[k] = super().products(k)
        return self._known[k]

    def only(self, chosen: Sequence[int], grid_of: int) -> LayerPair:
        """Return some layers, by their places, as if there were no others.

        `grid_of` is which of the chosen has the cells of the table.
        """
        source, target = (tuple(side[k] for k in chosen) for side in (self.source, self.target))
        return _Chosen(source, target, grid_of, self.device, table=self, chosen=tuple(chosen))


@dataclass(frozen=True, eq=False)
class _Chosen(LayerPair):
    """Some layers, from the products of the table."""

    table: LayerTable = field(kw_only=True)
    chosen: tuple[int, ...] = field(kw_only=True)

    @cached_property
    def costs(self) -> GridGeometry:
        """The chosen layers' costs, kept as matrices."""
        left, right = self.table._scales
        values = self.home.xp.stack(
            [self.table.products(k) * left[k, :, None] * right[k, None, :] for k in self.chosen],
            axis=0,
        )
        part = DenseLayers(tuple(range(len(self.chosen))), values)
        return GridGeometry.of((part,), self.source, values.shape[1:], self.home)

    @cached_property
    def norms(self) -> tuple[Any, Any]:
        """Lengths of the chosen layers' vectors, (L, n) and (L, m)."""
        take, places = self.home.xp.take, self.home.indices(np.array(self.chosen))
        left, right = (take(norms, places, axis=0) for norms in self.table.norms)
        return left, right

    def products(self, k: int) -> Any:
        """The inner products of a chosen layer, from the table."""
        return self.table.products(self.chosen[k])


@dataclass(frozen=True, eq=False)
class PhotoFeatures:
    """A photograph with the features that a network has of it, at the size it was matched at.

    `blank` is whether it has no content that could be matched.
    """

    photo: Photo
    size: tuple[int, int]
    ratio: float
    maps: tuple[FeatureMap, ...]
    activation: np.ndarray | None
    blank: bool = False

    @property
    def cam(self) -> np.ndarray | None:
        """The activation over the photograph's own pixels."""
        if self.activation is None:
            return None
        return resize(self.activation, *self.photo.size, align_corners=False)


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Two photographs with their features and weights: what every method starts from.

    Attributes
    ----------
    source, target :
        The photographs with their features.
    layers : LayerPair
        Their layers, cell against cell.
    a, b : arrays of shape (n,) and (m,)
        Weights of the cells.
    """

    source: PhotoFeatures
    target: PhotoFeatures
    layers: LayerPair
    a: np.ndarray
    b: np.ndarray
