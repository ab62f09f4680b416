"""The layers of two images on common grids: cosines, costs and norms, computed once for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from frot._arrays import Home
from frot._errors import InputError
from frot.correspondence._feature_map import FeatureMap, Grid
from frot.correspondence._interpolate import interpolation, resize

__all__ = ["LayerPair", "at_most", "common_grid"]


def common_grid(maps: Sequence[FeatureMap], stride: float | None) -> Grid:
    """Return the grid that all layers are brought to.

    It is that of the first layer (the paper's choice) where no stride is asked for, otherwise that
    of the first layer with this stride or a larger one.

    Examples
    --------
    >>> maps = [FeatureMap("fine", np.zeros((1, 8, 8)), 4, 11),
    ...         FeatureMap("coarse", np.zeros((1, 4, 4)), 8, 43)]
    >>> common_grid(maps, None).stride, common_grid(maps, 8).stride
    (4.0, 8.0)
    """
    if stride is None:
        return maps[0].grid
    for layer in maps:
        if layer.stride >= stride:
            return layer.grid
    return maps[-1].grid


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
    values = resize(layer.values, grid.h, grid.w, align_corners=True)
    return FeatureMap(layer.name, values, grid.stride, layer.receptive_field)


@dataclass(frozen=True, eq=False)
class LayerPair:
    r"""Two images as a network's layers see them, cell against cell.

    .. math::
        \cos_l(i, j) = \frac{\langle (U_s F_l)_i, (U_t G_l)_j \rangle}
        {\|(U_s F_l)_i\| \, \|(U_t G_l)_j\|}, \qquad C_l = 2 - 2 \cos_l

    with F and G the features on the layer's own grids, and U the bilinear interpolation to the
    common ones (corners aligned). Interpolation is linear, so products are formed on the coarse
    grids and interpolated afterwards. A cell without any activation has cosine zero with all.

    Parameters
    ----------
    source, target : sequences of FeatureMap
        The same layers of both images.
    source_grid, target_grid : Grid
        The common grids.
    home : Home
        Array library, device and precision to work in.
    """

    source: tuple[FeatureMap, ...]
    target: tuple[FeatureMap, ...]
    source_grid: Grid
    target_grid: Grid
    home: Home

    def __post_init__(self) -> None:
        if [layer.name for layer in self.source] != [layer.name for layer in self.target]:
            raise InputError("source, target: have different layers; extract both alike")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the layers."""
        return tuple(layer.name for layer in self.source)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        return (len(self.source), self.source_grid.count, self.target_grid.count)

    def only(self, chosen: Sequence[int]) -> LayerPair:
        """Some of the layers."""
        picked = [tuple(side[k] for k in chosen) for side in (self.source, self.target)]
        return LayerPair(*picked, self.source_grid, self.target_grid, self.home)

    @cached_property
    def norms(self) -> tuple[Any, Any]:
        """Lengths of the interpolated vectors, (L, n) and (L, m)."""
        return (
            self._norms(self.source, self.source_grid),
            self._norms(self.target, self.target_grid),
        )

    def _norms(self, maps: Sequence[FeatureMap], grid: Grid) -> Any:
        xp = self.home.xp
        return xp.stack([_lengths(xp, self._upsampled(layer, grid)) for layer in maps])

    def _upsampled(self, layer: FeatureMap, grid: Grid) -> Any:
        """The layer's vectors on the common grid, (n, channels)."""
        return self._interpolated(self.home.bring(layer.values), grid)

    def _interpolated(self, maps: Any, grid: Grid) -> Any:
        """Maps (channels, h, w) as vectors on the grid, (n, channels)."""
        xp = self.home.xp
        channels, h, w = maps.shape
        if (h, w) != (grid.h, grid.w):
            down = self.home.bring(interpolation(h, grid.h, True))
            across = self.home.bring(interpolation(w, grid.w, True))
            maps = down @ (maps @ xp.matrix_transpose(across))
        return xp.matrix_transpose(xp.reshape(maps, (channels, grid.count)))

    @cached_property
    def inner(self) -> Any:
        """Inner products of the interpolated vectors, (L, n, m)."""
        return self.home.xp.stack([self._products(k) for k in range(len(self.source))])

    def _products(self, k: int) -> Any:
        """Inner products of one layer, formed on the coarser of the grids of each side."""
        xp = self.home.xp
        one, other = self.source[k], self.target[k]
        F, coarse_s = self._thin(one, self.source_grid)
        G, coarse_t = self._thin(other, self.target_grid)
        found = F @ xp.matrix_transpose(G)
        if coarse_t:
            found = xp.matrix_transpose(
                self._interpolated(_as_maps(xp, found, other.grid), self.target_grid)
            )
        if coarse_s:
            turned = _as_maps(xp, xp.matrix_transpose(found), one.grid)
            found = self._interpolated(turned, self.source_grid)
        return found

    def _thin(self, layer: FeatureMap, grid: Grid) -> tuple[Any, bool]:
        """The layer's vectors on its own grid where that has fewer cells than the common one."""
        if layer.grid.count < grid.count:
            values = self.home.bring(layer.values)
            flat = self.home.xp.reshape(values, (layer.channels, layer.grid.count))
            return self.home.xp.matrix_transpose(flat), True
        return self._upsampled(layer, grid), False

    @cached_property
    def cosines(self) -> Any:
        """Cosines of the interpolated vectors, (L, n, m)."""
        left, right = (_inverse(self.home.xp, norms) for norms in self.norms)
        return self.home.xp.clip(self.inner * left[:, :, None] * right[:, None, :], -1.0, 1.0)

    @property
    def costs(self) -> Any:
        """C_l = 2 - 2 cos_l, (L, n, m)."""
        return 2.0 - 2.0 * self.cosines

    @cached_property
    def concatenated(self) -> Any:
        """Cosines of the vectors of all layers put end to end as they are, (n, m)."""
        xp = self.home.xp
        left, right = (_inverse(xp, xp.sqrt(xp.sum(norms**2, axis=0))) for norms in self.norms)
        return xp.clip(xp.sum(self.inner, axis=0) * left[:, None] * right[None, :], -1.0, 1.0)

    def vectors(self) -> tuple[Any, Any]:
        """The layers' vectors, each of unit length, put end to end: (n, d) and (m, d)."""
        xp = self.home.xp
        sides = []
        for maps, grid, norms in (
            (self.source, self.source_grid, self.norms[0]),
            (self.target, self.target_grid, self.norms[1]),
        ):
            scale = _inverse(xp, norms)
            parts = [self._upsampled(f, grid) * scale[k, :, None] for k, f in enumerate(maps)]
            sides.append(xp.concat(parts, axis=1))
        return sides[0], sides[1]


def _lengths(xp: Any, vectors: Any) -> Any:
    return xp.sqrt(xp.sum(vectors * vectors, axis=1))


def _inverse(xp: Any, norms: Any) -> Any:
    """One over the norms; zero where there is no vector, so that its cosines are zero."""
    ones = xp.ones_like(norms)
    return xp.where(norms > 0.0, 1.0 / xp.where(norms > 0.0, norms, ones), 0.0 * ones)


def _as_maps(xp: Any, products: Any, grid: Grid) -> Any:
    """Columns over a grid as maps: (k, h w) to (k, h, w)."""
    return xp.reshape(products, (products.shape[0], grid.h, grid.w))
