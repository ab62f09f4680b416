r"""`LayerCosts`: what matching two cells costs in every layer of a network, on its own grid.

.. math:: C_l = 2\, U_s D_l U_t^\top, \qquad
    [D_l]_{pq} = 1 - \cos(x_p^{(l)}, y_q^{(l)})

with p and q the cells of the layer itself and U the bilinear interpolation from their centres to
the cells that are matched. Deep layers have few cells, so that all :math:`D_l` together take a
small part of the stack (L, n, m), which is never formed: a mix of costs is a sum of small matrices,
interpolated once for each grid, and the costs of a plan are its sums over coarse cells times these.
No term of either is negative, so that rounding is a share of the sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from frot._base.arrays import Home, namespace, to_numpy
from frot._base.errors import InputError
from frot.correspondence._features import FeatureMap, Grid
from frot.costs.protocol import Costs, Rounding
from frot.plans.plan import Plan, is_sparse

# Numbers that are summed in single precision before sums go on in double: bounds on the costs of a
# plan are 6e-5 of them, twice as wide with twice as many, and half as many take 10 % longer.
SUMMED = 1_024


@dataclass(frozen=True, eq=False)
class Level:
    """Layers that share their grids.

    Attributes
    ----------
    layers : tuple of int
        Their numbers.
    distances : array of shape (n_l, layers, m_l)
        One minus the cosine, between the layers' own cells.
    source, target : Interpolation
        From those to the cells that are matched.
    grids : (Grid, Grid)
        The layers' own.
    telling : array of shape (layers,)
        How far the vectors of a layer are apart, of the image where they are less: a layer whose
        vectors are all the same tells nothing.
    """

    layers: tuple[int, ...]
    distances: Any
    source: Interpolation
    target: Interpolation
    grids: tuple[Grid, Grid]
    telling: Any

    def mix(self, weights: Any, start: int, stop: int) -> Any:
        """Return the sum of weights, (layers,), times distances in some rows, (rows, m)."""
        if self.source.trivial:
            return self.target.spread(weights @ self.distances[start:stop, ...])
        lines, own = self.source.lines(start, stop)
        wide = self.target.spread(weights @ self.distances[self.source.cells(own), ...])
        found = self.source.rows(wide, lines, own)
        begin = start - lines.start * self.source.across.shape[0]
        return found[begin : begin + stop - start, :]

    def inner(self, plan: Any, start: int, stop: int) -> Any:
        """Return the sums of some rows of a plan times the distances, (layers,), in double."""
        cells, rows = self.source.pooled_rows(plan, start, stop)
        return _dot(self.distances[cells, ...], self.target.pooled(rows))

    def product(self, left: Any, right: Any, start: int, stop: int) -> Any:
        """Return the sums for the plan left_i right_j, from sums over either side."""
        cells, rows = self.source.pooled_rows(left[:, None], start, stop)
        return _dot(self.distances[cells, ...], rows * self.target.pooled(right[None, :]))

    def at(self, rows: np.ndarray, cols: np.ndarray) -> Any:
        """Return distances of arcs, (layers, K), in double precision."""
        home = Home.of(self.distances)
        total: Any = 0.0
        for p, left in self.source.corners(rows):
            for q, right in self.target.corners(cols):
                picked = self.distances[home.indices(p), :, home.indices(q)]
                share = home.double().bring(left * right)
                total = total + home.xp.astype(picked, home.xp.float64) * share[:, None]
        return home.xp.matrix_transpose(total)


def _dot(distances: Any, plan: Any) -> Any:
    """Return sums of distances, (n, layers, m), times a plan, (n, m), over both: (layers,)."""
    xp, m = namespace(distances), distances.shape[2]
    total: Any = 0.0
    for begin in range(0, m, SUMMED):
        part = slice(begin, begin + SUMMED)
        found = distances[:, :, part] @ plan[:, part, None]
        total = total + xp.sum(found[:, :, 0], axis=0, dtype=xp.float64)
    return total


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Bilinear, from a layer's cells to those that are matched: matrices down and across."""

    down: Any
    across: Any
    # How many coarse lines each line reaches, [first, last), on the host.
    reach: np.ndarray
    trivial: bool
    # How many lines, and columns, meet in one of the layer's, at most.
    met: int

    @classmethod
    def of(cls, layer: FeatureMap, cells: Grid, home: Home) -> Interpolation:
        """From the grid of a layer to the grid of the cells."""
        down, across = layer.reading(cells)
        on = down > 0.0
        reach = np.stack([on.argmax(axis=1), down.shape[1] - on[:, ::-1].argmax(axis=1)], axis=1)
        met = sum(int(np.count_nonzero(matrix, axis=0).max()) for matrix in (down, across))
        trivial = all(
            matrix.shape[0] == matrix.shape[1] and np.array_equal(matrix, np.eye(len(matrix)))
            for matrix in (down, across)
        )
        return cls(home.bring(down), home.bring(across), reach, trivial, met)

    @classmethod
    def none(cls, cells: Grid, home: Home) -> Interpolation:
        """From the cells that are matched to themselves."""
        line = np.arange(cells.h)
        reach = np.stack([line, line + 1], axis=1)
        return cls(home.bring(np.eye(cells.h)), home.bring(np.eye(cells.w)), reach, True, 2)

    def lines(self, start: int, stop: int) -> tuple[slice, slice]:
        """Return the lines that have the cells start..stop, and the layer's own that these see."""
        wide = self.across.shape[0]
        lines = slice(start // wide, -(-stop // wide))
        own = self.reach[lines]
        return lines, slice(int(own[0, 0]), int(own[-1, 1]))

    def cells(self, own: slice) -> slice:
        """Return the numbers of the layer's cells in some of its lines."""
        wide = self.across.shape[1]
        return slice(own.start * wide, own.stop * wide)

    def spread(self, values: Any) -> Any:
        """Interpolate the last axis, (k, own cells) to (k, cells)."""
        if self.trivial:
            return values
        xp = namespace(values)
        (h, hs), (w, ws) = self.down.shape, self.across.shape
        found = xp.reshape(values, (-1, hs, ws)) @ xp.matrix_transpose(self.across)
        return xp.reshape(self.down @ found, (-1, h * w))

    def pooled(self, values: Any) -> Any:
        """Add up the last axis by the layer's cells, (k, cells) to (k, own cells)."""
        if self.trivial:
            return values
        xp = namespace(values)
        (h, hs), (w, ws) = self.down.shape, self.across.shape
        found = xp.matrix_transpose(self.down) @ xp.reshape(values, (-1, h, w))
        return xp.reshape(found @ self.across, (-1, hs * ws))

    def rows(self, values: Any, lines: slice, own: slice) -> Any:
        """Interpolate the first axis: of the layer's own lines to those of the cells."""
        xp, m = namespace(values), values.shape[1]
        w, ws = self.across.shape
        found = self.across @ xp.reshape(values, (-1, ws, m))
        down = self.down[lines, own]
        return xp.reshape(down @ xp.reshape(found, (-1, w * m)), (-1, m))

    def pooled_rows(self, plan: Any, start: int, stop: int) -> tuple[slice, Any]:
        """Add up rows start..stop of a plan by the layer's cells; return which of these, and sums.

        Cells as a slice of all, sums of shape (cells, m).
        """
        if self.trivial:
            return slice(start, stop), plan
        xp, (count, m) = namespace(plan), plan.shape
        lines, own = self.lines(start, stop)
        w = self.across.shape[0]
        before, whole = start - lines.start * w, (lines.stop - lines.start) * w
        if whole > count:
            padded = xp.zeros((whole, m), dtype=plan.dtype, device=plan.device)
            padded[before : before + count, :] = plan
            plan = padded
        down = xp.matrix_transpose(self.down[lines, own])
        found = xp.reshape(down @ xp.reshape(plan, (-1, w * m)), (-1, w, m))
        return self.cells(own), xp.reshape(xp.matrix_transpose(self.across) @ found, (-1, m))

    def corners(self, cells: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return of each of the four corners of cells their numbers and their shares."""
        (_, hs), (w, ws) = self.down.shape, self.across.shape
        y, x = np.divmod(np.asarray(cells), w)
        down, across = to_numpy(self.down).astype(float), to_numpy(self.across).astype(float)
        low, left = self.reach[y, 0], (across[x] > 0.0).argmax(axis=1)
        found = []
        for i in (np.minimum(low, hs - 1), np.minimum(low + 1, hs - 1)):
            for j in (np.minimum(left, ws - 1), np.minimum(left + 1, ws - 1)):
                found.append((i * ws + j, down[y, i] * across[x, j]))
        # At the last line or column the second corner is the first again, which counts once.
        for double, second in ((low + 1 > hs - 1, (2, 3)), (left + 1 > ws - 1, (1, 3))):
            for corner in second:
                found[corner][1][double] = 0.0
        return found


@dataclass(frozen=True, eq=False)
class LayerCosts(Costs):
    """Costs of L layers between n and m cells.

    Distances are in single precision, and the costs are defined by them: bounds are about what is
    done with them. `span` are the rows that are looked at, and `picked` which of these and of the
    columns, where that is not all of them.
    """

    levels: tuple[Level, ...]
    size: tuple[int, int]
    out: Home
    span: tuple[int, int]
    picked: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def home(self) -> Home:
        """Where results go, and their precision."""
        return self.out

    @property
    def given(self) -> Any:
        """The precision of the distances."""
        return self.levels[0].distances.dtype

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        count = sum(len(level.layers) for level in self.levels)
        if self.picked is not None:
            i, j = self.picked
            return (count, len(i), len(j))
        return (count, self.span[1] - self.span[0], self.size[1])

    # No cosine exceeds one, nor does a mean of cosines.
    nonnegative = True

    @property
    def peaks(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """No cosine is below -1."""
        return self.home.bring(np.full(self.shape[0], 4.0))

    def mix(self, alpha: Any) -> Any:
        """Return the mixed cost, (n, m)."""
        xp, mixed = self.home.xp, None
        for level in self.levels:
            at = self.home.indices(level.layers)
            weights = xp.astype(2.0 * xp.take(alpha, at, axis=0), self.given)
            part = level.mix(weights, *self.span)
            if mixed is None:
                mixed = part
            else:
                mixed += part
        if self.picked is not None:
            i, j = map(self.home.indices, self.picked)
            mixed = xp.take(xp.take(mixed, i, axis=0), j, axis=1)
        return xp.astype(mixed, self.home.dtype, copy=False)

    def inner(self, plan: Any) -> Any:
        """Return the costs of a plan, (L,)."""
        if isinstance(plan, Plan):
            if is_sparse(plan):
                return super().inner(plan)
            plan = self.home.bring(to_numpy(plan.dense()))
        rows = self.home.xp.astype(plan, self.given, copy=False)
        if self.picked is not None:
            turn = self.home.xp.matrix_transpose
            rows = turn(self._spread(turn(self._spread(rows, 0)), 1))
        return self._costs([level.inner(rows, *self.span) for level in self.levels])

    def product(self, u: Any, v: Any) -> Any:
        """Return the costs of u v^T, (L,), from sums over either side."""
        left, right = (self.home.xp.astype(x, self.given, copy=False) for x in (u, v))
        if self.picked is not None:
            left, right = self._spread(left, 0), self._spread(right, 1)
        return self._costs([level.product(left, right, *self.span) for level in self.levels])

    def at(self, rows: np.ndarray, cols: np.ndarray) -> Any:
        """Return the costs at a few arcs, (L, K)."""
        if self.picked is not None:
            rows, cols = self.picked[0][rows], self.picked[1][cols]
        return self._costs([level.at(rows + self.span[0], cols) for level in self.levels])

    def _costs(self, found: list[Any]) -> Any:
        """Return twice the levels' numbers, (layers, ...) each, in the order of the layers."""
        xp = self.home.xp
        order = np.argsort(np.concatenate([level.layers for level in self.levels]))
        ordered = xp.take(xp.concat(found), self.home.indices(order), axis=0)
        return xp.astype(2.0 * ordered, self.home.dtype)

    def rows(self, part: slice) -> LayerCosts:
        """Return the costs of some rows only."""
        _, n, m = self.shape
        start, stop, _ = part.indices(n)
        if self.picked is not None:
            return self.take(np.arange(start, stop), np.arange(m))
        return replace(self, span=(self.span[0] + start, self.span[0] + stop))

    def take(self, rows: np.ndarray, cols: np.ndarray) -> LayerCosts:
        """Return the costs between some of the cells: of the rows between these only, cut."""
        _, n, m = self.shape
        i, j = self.picked or (np.arange(n), np.arange(m))
        i, j = i[rows], j[cols]
        start, stop = int(i.min()), int(i.max()) + 1
        span = (self.span[0] + start, self.span[0] + stop)
        return replace(self, span=span, picked=(i - start, j))

    def _spread(self, values: Any, side: int) -> Any:
        """Add up the first axis, of the cells there are, by where these stand among all."""
        assert self.picked is not None
        xp, index = self.home.xp, self.picked[side]
        size = self.size[1] if side else self.span[1] - self.span[0]
        whole = xp.zeros((size, *values.shape[1:]), dtype=values.dtype, device=values.device)
        if isinstance(whole, np.ndarray):
            np.add.at(whole, index, values)
            return whole
        return whole.index_add(0, self.home.indices(index), values)

    @property
    def _unit(self) -> float:
        """Half a unit in the last place of the distances."""
        return 0.5 * float(self.home.xp.finfo(self.given).eps)

    def rounding(self, alpha: Any) -> Rounding:
        """Bound the rounding of a mix: a share of its entries, since no term is negative.

        Of a sum over layers, and of two products and their sum along each of four sides.
        """
        return Rounding((self.shape[0] + 20.0) * self._unit)

    def doubt(self, phi: Any, u: Any, v: Any, entries: int | None = None) -> Any:
        """Bound the rounding of sums: over cells that meet in one, and over `SUMMED` products."""
        met = max(level.source.met + level.target.met for level in self.levels)
        return (min(SUMMED, self.size[1]) + met + 12.0) * self._unit * phi

    def to(self, home: Home) -> Costs:
        """Return results in another precision, as right as single precision is; else a stack."""
        return replace(self, out=home) if home.library == self.home.library else super().to(home)


def layer_costs(
    source: Sequence[FeatureMap], target: Sequence[FeatureMap], cells: tuple[Grid, Grid], home: Home
) -> LayerCosts:
    r"""Return the costs of all layers between the cells of two images.

    Layers finer than the cells are interpolated to these first, and all vectors are then brought
    to unit length. A vector of zeros, where all units of a layer are dead, has the cosine 0 with
    every other.

    Parameters
    ----------
    source, target : sequences of FeatureMap
        The same layers of both images.
    cells : (Grid, Grid)
        The cells that are matched.
    home : Home
        Where to work: the library, the device, and single or double precision.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> maps = [FeatureMap(str(h), rng.normal(size=(8, h, h)), 16 / h, 1) for h in (4, 2)]
    >>> costs = layer_costs(maps, maps, (maps[0].grid, maps[0].grid), Home.of(np.zeros(1, "f4")))
    >>> costs.shape, [level.distances.shape for level in costs.levels]
    ((2, 16, 16), [(16, 1, 16), (4, 1, 4)])
    """
    check_maps(source, target)
    source, target = (
        [at_most(layer, grid) for layer in maps]
        for maps, grid in zip((source, target), cells, strict=True)
    )
    alike: dict[tuple[Grid, Grid], list[int]] = {}
    for layer, (one, other) in enumerate(zip(source, target, strict=True)):
        alike.setdefault((_places(one.grid), _places(other.grid)), []).append(layer)
    levels = []
    for layers in alike.values():
        one, other = source[layers[0]], target[layers[0]]
        room = (one.grid.count, len(layers), other.grid.count)
        distances = home.xp.empty(room, dtype=home.dtype, device=home.device)
        apart = []
        for slot, layer in enumerate(layers):
            F, G = (unit_vectors(maps[layer], home) for maps in (source, target))
            # One more channel each makes one minus the cosine of a single product.
            ones = [home.xp.ones_like(x[:1, :]) for x in (F, G)]
            left, right = home.xp.concat([-F, ones[0]]), home.xp.concat([G, ones[1]])
            home.xp.matmul(home.xp.matrix_transpose(left), right, out=distances[:, slot, :])
            apart += [home.xp.max(home.xp.max(x, axis=1) - home.xp.min(x, axis=1)) for x in (F, G)]
        telling = home.xp.min(home.xp.reshape(home.xp.stack(apart), (-1, 2)), axis=1)
        ends = (Interpolation.of(one, cells[0], home), Interpolation.of(other, cells[1], home))
        levels.append(Level(tuple(layers), distances, *ends, (one.grid, other.grid), telling))
    n, m = (grid.count for grid in cells)
    return LayerCosts(tuple(levels), (n, m), home, (0, n))


def _places(grid: Grid) -> Grid:
    """A grid by the places of its cells: what they see makes no other place of them."""
    return replace(grid, receptive_field=0.0)


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
    return layer.at(grid)


def unit_vectors(layer: FeatureMap, home: Home) -> Any:
    """Return a layer's vectors at unit length, (channels, cells); zeros stay zeros.

    They are shorter than one by more than rounding, so that no cosine exceeds one.
    """
    xp = home.xp
    flat = xp.reshape(home.bring(layer.values), (layer.channels, layer.grid.count))
    norms = xp.sqrt(xp.sum(flat * flat, axis=0)) * (1.0 + 2e-6)
    return flat * xp.where(norms > 0.0, 1.0 / xp.where(norms > 0.0, norms, 1.0 + norms), norms)


def vectors_at(maps: Sequence[FeatureMap], cells: Grid, home: Home) -> Any:
    """Return the layers' vectors of unit length, interpolated to the cells and end to end, (n, d).

    Their products summed over a layer are the cosines that its costs are made of.
    """
    layers = [at_most(layer, cells) for layer in maps]
    found = [Interpolation.of(x, cells, home).spread(unit_vectors(x, home)) for x in layers]
    return home.xp.matrix_transpose(home.xp.concat(found))


def end_to_end(
    source: Sequence[FeatureMap], target: Sequence[FeatureMap], cells: tuple[Grid, Grid], home: Home
) -> Any:
    """Return cosines of the vectors of all layers put end to end as they are, (n, m).

    As if every map was interpolated to the cells: products are formed between the layers' own
    cells and interpolated, which is the same.
    """
    parts = [_products(one, other, cells, home) for one, other in zip(source, target, strict=True)]
    products, left, right = (sum(part) for part in zip(*parts, strict=True))
    return _cosines(products, left, right)


def costs_of_interpolated(
    source: Sequence[FeatureMap], target: Sequence[FeatureMap], cells: tuple[Grid, Grid], home: Home
) -> LayerCosts:
    r"""Return the paper's costs: 2 - 2 cos of vectors that were interpolated to the cells first.

    Between the centres of coarse cells such vectors are brought to unit length again, where
    `layer_costs` interpolates the cosines. Every layer has a matrix of its own, (n, m).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> maps = [FeatureMap(str(h), rng.normal(size=(8, h, h)), 16 / h, 1) for h in (4, 2)]
    >>> cells, home = (maps[0].grid, maps[0].grid), Home.of(np.zeros(1, "f4"))
    >>> costs = costs_of_interpolated(maps, maps, cells, home)
    >>> bool(costs.mix(np.array([0.0, 1.0])).diagonal().max() < 1e-6)
    True
    """
    check_maps(source, target)
    xp, (n, m), layers = home.xp, (grid.count for grid in cells), range(len(source))
    distances = xp.empty((n, len(source), m), dtype=home.dtype, device=home.device)
    for layer in layers:
        distances[:, layer, :] = 1.0 - _cosines(
            *_products(source[layer], target[layer], cells, home)
        )
    left, right = (Interpolation.none(grid, home) for grid in cells)
    telling = xp.ones_like(distances[0, :, 0])
    level = Level(tuple(layers), distances, left, right, cells, telling)
    return LayerCosts((level,), (n, m), home, (0, n))


def _products(
    one: FeatureMap, other: FeatureMap, cells: tuple[Grid, Grid], home: Home
) -> tuple[Any, Any, Any]:
    """Return inner products of a layer's interpolated vectors, (n, m), and their squares.

    Products are formed between the layer's own cells, and interpolated.
    """
    xp = home.xp
    layers = [at_most(layer, grid) for layer, grid in zip((one, other), cells, strict=True)]
    F, G = (xp.reshape(home.bring(x.values), (x.channels, x.grid.count)) for x in layers)
    left, right = (
        Interpolation.of(layer, grid, home) for layer, grid in zip(layers, cells, strict=True)
    )
    weight = xp.ones_like(F[0, :1])
    products = (xp.matrix_transpose(F) @ G)[:, None, :]
    level = Level((0,), products, left, right, (layers[0].grid, layers[1].grid), weight)
    squares = [xp.sum(end.spread(x) ** 2, axis=0) for x, end in ((F, left), (G, right))]
    return level.mix(weight, 0, cells[0].count), squares[0], squares[1]


def _cosines(products: Any, left: Any, right: Any) -> Any:
    """Divide products, which are used up, by the roots of squares; zeros have the cosine 0."""
    xp = namespace(products)
    inverse = [1.0 / xp.sqrt(xp.where(x > 0.0, x, 1.0 + x)) for x in (left, right)]
    products *= inverse[0][:, None]
    products *= inverse[1][None, :]
    return xp.clip(products, -1.0, 1.0)


def check_maps(source: Sequence[FeatureMap], target: Sequence[FeatureMap]) -> None:
    """Refuse maps that do not belong together."""
    if len(source) == 0 or len(source) != len(target):
        raise InputError(
            f"source, target: have {len(source)} and {len(target)} layers; pass the maps of the "
            "same layers, at least one"
        )
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
