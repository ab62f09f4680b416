"""The products of every layer of two images, worked out once, so that any choice is cheap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from frot.correspondence._grid_geometry import GridGeometry
from frot.correspondence._grid_parts import KeptLayers
from frot.correspondence._layers import LayerPair, inverse

__all__ = ["LayerTable"]


@dataclass(frozen=True, eq=False)
class LayerTable:
    """Two images' layers on common grids, layer by layer.

    Parameters
    ----------
    layers : LayerPair
        All of them.

    Examples
    --------
    >>> from frot.correspondence._feature_map import FeatureMap
    >>> rng = np.random.default_rng(0)
    >>> maps = tuple(FeatureMap(str(k), rng.normal(size=(8, 3, 4)), 8, 43) for k in range(5))
    >>> some = LayerTable(LayerPair(maps, maps)).only((1, 4), 0)
    >>> some.names, some.costs.shape
    (('1', '4'), (1, 2, 12, 12))
    """

    layers: LayerPair
    _products: dict[int, Any] = field(default_factory=dict)

    def product(self, k: int) -> Any:
        """Return the inner products of layer k, (n, m)."""
        if k not in self._products:
            self._products[k] = self.layers.products(k)
        return self._products[k]

    def cosine(self, k: int) -> Any:
        """Return the cosines of layer k, (n, m)."""
        left, right = self._scales
        return self.product(k) * left[k, :, None] * right[k, None, :]

    @cached_property
    def _scales(self) -> tuple[Any, Any]:
        xp = self.layers.home.xp
        left, right = (inverse(xp, norms) for norms in self.layers.norms)
        return left, right

    def only(self, chosen: Sequence[int], grid_of: int) -> LayerPair:
        """Return some layers, as if there were no others.

        Parameters
        ----------
        chosen : sequence of int
            Their places.
        grid_of : int
            Which of the chosen has the cells of the table.
        """
        source, target = (
            tuple(side[k] for k in chosen) for side in (self.layers.source, self.layers.target)
        )
        device = self.layers.device
        return _Chosen(source, target, grid_of, device, table=self, chosen=tuple(chosen))


@dataclass(frozen=True, eq=False)
class _Chosen(LayerPair):
    """Some layers, from the products of the table."""

    table: LayerTable = field(kw_only=True)
    chosen: tuple[int, ...] = field(kw_only=True)

    @cached_property
    def costs(self) -> GridGeometry:
        """The chosen layers' costs, kept as matrices."""
        home = self.home
        values = home.xp.stack([self.table.cosine(k) for k in self.chosen], axis=0)
        count, n, m = values.shape
        channels = np.array([layer.channels for layer in self.source])
        part = KeptLayers(tuple(range(count)), values)
        return GridGeometry((part,), (n, m), channels, home, np.ones(count), (0, n))

    @cached_property
    def norms(self) -> tuple[Any, Any]:
        """Lengths of the chosen layers' vectors, (L, n) and (L, m)."""
        take, places = self.home.xp.take, self.home.indices(np.array(self.chosen))
        left, right = (take(norms, places, axis=0) for norms in self.table.layers.norms)
        return left, right

    def products(self, k: int) -> Any:
        """The inner products of a chosen layer, from the table."""
        return self.table.product(self.chosen[k])
