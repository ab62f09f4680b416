"""`LayerPair`: two photographs as the layers of a network see them, on common grids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from frot._base.arrays import Home
from frot.correspondence._coherence import coherences
from frot.correspondence._device import working_home
from frot.correspondence._features import FeatureMap, Grid
from frot.correspondence._interpolation import resize
from frot.correspondence._photo import Photo
from frot.correspondence.layer_costs import (
    LayerCosts,
    costs_of_interpolated,
    end_to_end,
    layer_costs,
    vectors_at,
)


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
    large = [k for k, layer in enumerate(maps) if layer.grid.spacing >= stride]
    return min(large, key=lambda k: maps[k].grid.spacing) if large else len(maps) - 1


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
    ((1, 5, 8), 8.0)
    >>> patches = [FeatureMap("block", np.zeros((1, 5, 8)), 16, 16)]
    >>> with_cells(patches, 8)[0][0].stride, with_cells(patches, 8, exact=True)[0][0].values.shape
    (16, (1, 9, 15))
    """
    number = common_grid(maps, stride)
    layer = maps[number]
    own = layer.grid
    if stride is None or own.strides == (stride, stride):
        return tuple(maps), number
    if own.spacing >= stride and not exact:
        return tuple(maps), number
    # Finer cells are thinned out to what a layer of this stride has; coarser ones keep their ends.
    thinned = own.spacing < stride
    h, w = (
        math.ceil(count * step / stride) if thinned else round((count - 1) * step / stride) + 1
        for count, step in zip((own.h, own.w), own.strides, strict=True)
    )
    brought = layer.at(Grid(h, w, float(stride), own.receptive_field, start=own.start))
    return (*maps[:number], brought, *maps[number + 1 :]), number


@dataclass(frozen=True, eq=False)
class LayerPair:
    """Two images as a network's layers see them, cell against cell, in NumPy or on a device."""

    source: tuple[FeatureMap, ...]
    target: tuple[FeatureMap, ...]
    # The layer whose cells are matched.
    grid_of: int = 0
    device: Any = None

    @cached_property
    def costs(self) -> LayerCosts:
        """The layers' costs 2 - 2 cos, which `frot.solve_costs` takes."""
        return layer_costs(self.source, self.target, self.cells, self.home)

    @cached_property
    def paper_costs(self) -> LayerCosts:
        """The paper's 2 - 2 cos, of vectors that are interpolated first: a stack, (L, n, m)."""
        return costs_of_interpolated(self.source, self.target, self.cells, self.home)

    @cached_property
    def coherences(self) -> np.ndarray:
        """The coherence of every layer, (L,), finer layers on the common grids."""
        return coherences(self.costs)

    @cached_property
    def end_to_end(self) -> Any:
        """Cosines of the vectors of all layers put end to end as they are, (n, m)."""
        return end_to_end(self.source, self.target, self.cells, self.home)

    @cached_property
    def mean_cosine(self) -> Any:
        """The mean of the layers' cosines, (n, m), as if interpolated vectors had unit length.

        Between the centres of coarse cells they are shorter, and cells there would be nobody's
        nearest.
        """
        xp, count = self.home.xp, len(self.names)
        cosines = 1.0 - 0.5 * self.mixed(np.full(count, 1.0 / count))
        left, right = (xp.sqrt(xp.sum(side * side, axis=1) / count) for side in self.vectors())
        lengths = [xp.where(side > 0.0, side, 1.0 + side) for side in (left, right)]
        return cosines / lengths[0][:, None] / lengths[1][None, :]

    def vectors(self) -> tuple[Any, Any]:
        """The layers' vectors, each of unit length in its own cells, put end to end.

        Of shape (n, d) and (m, d), interpolated to the cells.
        """
        left, right = (
            vectors_at(maps, grid, self.home)
            for maps, grid in zip((self.source, self.target), self.cells, strict=True)
        )
        return left, right

    @cached_property
    def home(self) -> Home:
        """Where arrays live."""
        return working_home(self.device)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the layers."""
        return tuple(layer.name for layer in self.source)

    @property
    def cells(self) -> tuple[Grid, Grid]:
        """The cells of both."""
        return self.source[self.grid_of].grid, self.target[self.grid_of].grid

    @property
    def source_grid(self) -> Grid:
        """The cells of the source."""
        return self.cells[0]

    @property
    def target_grid(self) -> Grid:
        """The cells of the target."""
        return self.cells[1]

    def mixed(self, alpha: np.ndarray) -> Any:
        """Return the costs of the layers mixed with weights, (n, m)."""
        return self.costs.mix(self.home.bring(alpha))


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
