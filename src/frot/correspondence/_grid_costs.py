r"""Costs between the cells of two images, from the maps of all layers on their own grids.

.. math:: C_l = 2 - 2\, D_s U_s (F_l G_l^\top) U_t^\top D_t

with F and G the coarse features, U the bilinear interpolation to the common grid and D the inverse
lengths of the interpolated vectors: exactly the stack that interpolating every channel, scaling
every vector to unit length and multiplying would give, and never formed where it would be large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from frot._base.arrays import Home, namespace
from frot._base.errors import InputError
from frot.correspondence._coarse_layers import CoarseLayers
from frot.correspondence._feature_map import FeatureMap
from frot.correspondence._grid_geometry import GridGeometry
from frot.correspondence._grid_lines import Line, inverse_norms
from frot.correspondence._grid_parts import FactoredLayers, KeptLayers, Part

__all__ = ["BUDGET", "check_maps", "layer_costs", "working_home"]

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

    Parameters
    ----------
    source, target : sequences of FeatureMap
        The same layers of both images.
    grid_of : int
        The layer whose cells are matched.
    device : str or torch device, optional
        Where to work: with PyTorch on that device, with NumPy if left out.
    dtype : {"float32", "float64"}
        Working precision. Bounds of certificates count its rounding.
    budget : float, optional
        Bytes of cosines that may be kept as matrices; the rest is worked out from coarse products
        whenever it is needed. 256 MB if left out, 8 GB on a device.

    Returns
    -------
    GridGeometry

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
    n, m = (h * w for h, w in ends)
    count, itemsize = len(source), np.dtype(dtype).itemsize
    channels = np.array([one.channels for one in source])
    if budget is not None:
        whole = budget
    else:
        budget, whole = (BUDGET, WHOLE_BUDGET) if home.on_host else 2 * (DEVICE_BUDGET,)
    all_kept = count * n * m * itemsize <= whole
    fine, coarse = _sorted_layers(source, target, n, m)
    parts: list[Part] = []
    if all_kept and home.library == "torch" and not home.on_host:
        parts.append(KeptLayers(tuple(range(count)), _by_torch(source, target, grid_of, home)))
    elif all_kept:
        values = home.xp.empty((count, n, m), dtype=home.dtype, device=home.device)
        _keep_fine(values, fine, fine, source, target, home, ends)
        for layers in coarse:
            part = _coarse(layers, source, target, home, ends)
            for k, layer in enumerate(layers):
                out = home.xp.zeros((n, m), dtype=home.dtype, device=home.device)
                part.only(k).add(out, home.bring([1.0]), 0, n)
                values[layer, :, :] = out
        parts.append(KeptLayers(tuple(range(count)), values))
    else:
        room = int(budget // (n * m * itemsize))
        kept = [layer for layer in fine if channels[layer] > FEW_CHANNELS][:room]
        if kept:
            values = home.xp.empty((len(kept), n, m), dtype=home.dtype, device=home.device)
            _keep_fine(values, range(len(kept)), kept, source, target, home, ends)
            parts.append(KeptLayers(tuple(kept), values))
        rest = [layer for layer in fine if layer not in kept]
        if rest:
            X, Y = (
                home.xp.concat([_vectors(maps[k], home, end) for k in rest], axis=1)
                for maps, end in zip((source, target), ends, strict=True)
            )
            parts.append(FactoredLayers(tuple(rest), tuple(channels[rest].tolist()), X, Y))
        parts += [_coarse(layers, source, target, home, ends) for layers in coarse]
    return GridGeometry(tuple(parts), (n, m), channels, home, np.ones(count), (0, n))


def _by_torch(
    source: Sequence[FeatureMap], target: Sequence[FeatureMap], grid_of: int, home: Home
) -> Any:
    """Return all cosines, (L, n, m), by a few large products."""
    from frot.correspondence.cuda.pair import cosine_factors

    n, m = source[grid_of].grid.count, target[grid_of].grid.count
    values = home.xp.empty((len(source), n, m), dtype=home.dtype, device=home.device)
    for layer, X, Y in cosine_factors(source, target, grid_of, home.device, home.dtype):
        values[layer, :, :] = X[:n, :] @ Y[:m, :].mT
    return values


def working_home(device: Any, dtype: str = "float32") -> Home:
    """Return where costs are worked out: PyTorch on a device, NumPy for None."""
    if device is None:
        return Home.of(np.zeros(1, dtype=dtype))
    import torch

    return Home.of(torch.zeros(1, dtype=getattr(torch, dtype), device=device))


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
            if not bool(namespace(maps.values).isfinite(maps.values).all()):
                raise InputError(
                    f"{name}: layer {maps.name!r} has values that are infinite or NaN; check the "
                    "network's input"
                )


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


def _lines(one: FeatureMap, end: tuple[int, int]) -> tuple[Line, Line]:
    return Line.between(one.grid.h, end[0]), Line.between(one.grid.w, end[1])


def _vectors(one: FeatureMap, home: Home, end: tuple[int, int]) -> Any:
    """Return a map's interpolated vectors at unit length, (cells, channels)."""
    xp, values = home.xp, _brought(one, home)
    if values.shape[1:] != end:
        down, across = (home.bring(line.matrix) for line in _lines(one, end))
        values = down @ (values @ xp.matrix_transpose(across))
    values = xp.reshape(values, (values.shape[0], -1))
    norms = xp.sqrt(xp.sum(values * values, axis=0, dtype=xp.float64))
    scale = xp.where(norms > 0.0, 1.0 / xp.where(norms > 0.0, norms, xp.ones_like(norms)), 0.0)
    return xp.matrix_transpose(values * xp.astype(scale, home.dtype))


def _keep_fine(
    values: Any,
    slots: Sequence[int],
    layers: Sequence[int],
    source: Sequence[FeatureMap],
    target: Sequence[FeatureMap],
    home: Home,
    ends: list[tuple[int, int]],
) -> None:
    """Write the cosines of layers into an array (slots, n, m)."""
    for slot, layer in zip(slots, layers, strict=True):
        X, Y = _vectors(source[layer], home, ends[0]), _vectors(target[layer], home, ends[1])
        values[slot, :, :] = X @ home.xp.matrix_transpose(Y)


def _coarse(
    layers: Sequence[int],
    source: Sequence[FeatureMap],
    target: Sequence[FeatureMap],
    home: Home,
    ends: list[tuple[int, int]],
) -> CoarseLayers:
    """Multiply the vectors of coarse cells, for layers that share their grids."""
    xp = home.xp
    (_, hs, ws), (_, ht, wt) = (maps[layers[0]].values.shape for maps in (source, target))
    lines = _lines(source[layers[0]], ends[0]), _lines(target[layers[0]], ends[1])
    K = xp.empty((hs, ws, len(layers), wt, ht), dtype=home.dtype, device=home.device)
    scales: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for slot, layer in enumerate(layers):
        F, G = _brought(source[layer], home), _brought(target[layer], home)
        for maps, line, found in ((F, lines[0], scales[0]), (G, lines[1], scales[1])):
            found.append(inverse_norms(maps, home, *line))
        left = xp.reshape(F, (F.shape[0], hs * ws))
        right = xp.reshape(xp.matrix_transpose(G), (G.shape[0], wt * ht))
        K[:, :, slot, ...] = xp.reshape(xp.matrix_transpose(left) @ right, (hs, ws, wt, ht))
    ds = home.bring(np.stack(scales[0]))
    dt = home.bring(np.stack(scales[1]).reshape(len(layers), -1))
    return CoarseLayers(tuple(layers), K, *lines, ds, dt)
