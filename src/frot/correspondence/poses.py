"""Poses: a photograph seen mirrored, turned or scaled, and which of these matches another best.

Features of a network turn with the photograph. So A is turned before the network sees it, and what
the network makes of the turned A is read off at the places of A's own cells: costs, plans and
points stay in A's own frame, and only what asks which cells are neighbours (coherence, agreement)
looks at the turned frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.ndimage import affine_transform
from scipy.sparse import csr_array

from frot._base.arrays import Home
from frot.correspondence._coherence import forwardness, kept_neighbours
from frot.correspondence._features import FeatureMap, Grid
from frot.correspondence.agreement import Matches, rigidity


@dataclass(frozen=True)
class Turn:
    """A transformation of a photograph: mirrored left to right, then rotated, then scaled.

    Parameters
    ----------
    mirror : bool
    angle : float
        Degrees, counter-clockwise.
    scale : float

    Examples
    --------
    >>> str(Turn()), str(Turn(mirror=True, angle=90.0)), str(Turn(scale=0.7))
    ('as is', 'mirrored, turned by 90°', 'scaled by 0.7')
    """

    mirror: bool = False
    angle: float = 0.0
    scale: float = 1.0

    @property
    def matrix(self) -> np.ndarray:
        """The matrix of shape (2, 2) that acts on x and y; y points down."""
        # Quarter turns are exact.
        c, s = (round(f(np.deg2rad(self.angle)), 15) for f in (np.cos, np.sin))
        turn = np.array([[c, s], [-s, c]])
        return self.scale * turn @ np.diag([-1.0 if self.mirror else 1.0, 1.0])

    def __str__(self) -> str:
        parts = ["mirrored"] if self.mirror else []
        parts += [f"turned by {self.angle:g}°"] if self.angle else []
        parts += [f"scaled by {self.scale:g}"] if self.scale != 1.0 else []
        return ", ".join(parts) or "as is"


AS_IS = Turn()
MIRRORED = Turn(mirror=True)
_ANGLES = tuple(45.0 * k for k in range(8))
# What is tried besides the photograph as it is.
POSES: dict[str, tuple[Turn, ...]] = {
    "none": (),
    "mirror": (MIRRORED,),
    "all": (
        *(Turn(mirror, angle) for mirror in (False, True) for angle in _ANGLES if mirror or angle),
        Turn(scale=0.7),
        Turn(scale=1.4),
    ),
}


@dataclass(frozen=True)
class Pose:
    """How A was turned before it was matched with B.

    Attributes
    ----------
    turn : Turn
        As is, unless something else was better by the margin.
    statistic : float
        How much better the best of the other poses was than A as it is, by the four parts of
        `evidence`, each in units of its spread.
    margin : float
        What the statistic has to exceed.
    tried : dict
        The statistic of every pose that was tried, by name; empty where none was.
    """

    turn: Turn = AS_IS
    statistic: float = 0.0
    margin: float = 0.0
    tried: Mapping[str, float] = field(default_factory=dict)

    @property
    def told(self) -> str:
        """The pose and the evidence for it, as text.

        Examples
        --------
        >>> Pose(Turn(mirror=True), 3.21, 1.5, {"mirrored": 3.21}).told
        'mirrored (better than as is by 3.2, and 1.5 is asked for)'
        """
        if not self.tried:
            return str(self)
        best = max(self.tried, key=lambda name: self.tried[name])
        found = "better than as is" if self.turn != AS_IS else f"{best}: better"
        return f"{self} ({found} by {self.statistic:.1f}, and {self.margin:g} is asked for)"

    def __str__(self) -> str:
        return str(self.turn)


@dataclass(frozen=True, eq=False)
class Frame:
    """The pixels of a turned image: ``q = matrix p + shift``.

    Attributes
    ----------
    turn : Turn
    shift : array of shape (2,)
    canvas : (h, w)
        Of the image with its margin, before it is turned.
    size : (h, w)
        Of the turned image.
    regular : bool
        Whether cells are at multiples of their stride; otherwise the first and the last are at
        the image's edges.
    """

    turn: Turn
    shift: np.ndarray
    canvas: tuple[int, int]
    size: tuple[int, int]
    regular: bool

    def affine(self) -> np.ndarray:
        """Return matrix and shift, (2, 3)."""
        return np.column_stack([self.turn.matrix, self.shift])

    def seen(self, own: Grid, turned: Grid) -> np.ndarray:
        """Return where an image's cells are among those of the turned one, (n, 2), in cells."""
        places = own.centres / own.stride * self._steps(own, self.canvas)
        return (places @ self.turn.matrix.T + self.shift) / self._steps(turned, self.size)

    def back(self, turned: Grid, own: Grid) -> np.ndarray:
        """Return where the turned image's cells are among those of the image, (n, 2), in cells."""
        places = turned.centres / turned.stride * self._steps(turned, self.size)
        inverse = np.linalg.inv(self.turn.matrix)
        return (places - self.shift) @ inverse.T / self._steps(own, self.canvas)

    def _steps(self, grid: Grid, size: tuple[int, int]) -> np.ndarray:
        """Pixels between cells, across and down."""
        if self.regular:
            return np.array([grid.stride, grid.stride])
        counts, sides = np.array([grid.w, grid.h]), np.array(size[::-1])
        return np.maximum(sides - 1, 1) / np.maximum(counts - 1, 1)


def frame_of(size: tuple[int, int], turn: Turn, strides: Sequence[float]) -> Frame:
    """Return the frame that an image of size (h, w) is turned into.

    A network whose layers have several strides has its cells at multiples of these, from the first
    pixel on. So the image gets a margin, until there is one pixel more than a multiple of all, and
    the cells of one that was mirrored or turned by quarters lie on those of the image itself.
    Patches have one stride, and no margin.

    Examples
    --------
    >>> frame = frame_of((30, 40), Turn(mirror=True), (4, 8))
    >>> frame.size, frame.seen(Grid(4, 5, 8.0, 1.0), Grid(5, 6, 8.0, 1.0))[0].tolist()
    ((33, 41), [5.0, 0.0])
    """
    regular = len(set(strides)) > 1 and float(max(strides)).is_integer()
    whole = int(max(strides)) if regular else 1
    h, w = (side + (1 - side) % whole for side in size)
    corners = np.array([[0, 0], [w - 1, 0], [0, h - 1], [w - 1, h - 1]]) @ turn.matrix.T
    low, high = corners.min(axis=0), corners.max(axis=0)
    wide, tall = np.ceil(np.round(high - low, 9)).astype(int) + 1
    return Frame(turn, -low, (h, w), (int(tall), int(wide)), regular)


def turned_image(image: np.ndarray, frame: Frame) -> np.ndarray:
    """Return an image, (h, w, 3), in a frame; what lies beyond its edges is its reflection."""
    inverse = np.linalg.inv(frame.turn.matrix)
    # Rows come first in images.
    matrix = inverse[::-1, ::-1]
    shift: Any = (-inverse @ frame.shift)[::-1]
    whole, start = np.round(matrix), np.round(shift)
    if np.abs(matrix - whole).max() < 1e-9 and np.abs(shift - start).max() < 1e-9:
        return _rearranged(image, whole.astype(int), start.astype(int), frame.size)
    channels = [
        affine_transform(image[..., c], matrix, shift, frame.size, order=1, mode="mirror")
        for c in range(image.shape[2])
    ]
    return np.ascontiguousarray(np.stack(channels, axis=-1), dtype=np.float32)


def _rearranged(
    image: np.ndarray, matrix: np.ndarray, start: np.ndarray, size: tuple[int, int]
) -> np.ndarray:
    """An image mirrored or turned by quarters, whose pixels lie on those of the image itself."""
    # Along which axis of the frame the image's rows and columns run.
    axes = [int(np.flatnonzero(along)[0]) for along in matrix]
    rows, columns = (
        _reflected(along[axis] * np.arange(size[axis]) + first, length)
        for along, axis, first, length in zip(matrix, axes, start, image.shape[:2], strict=True)
    )
    found = image[rows[:, None], columns[None, :]]
    found = found if axes == [0, 1] else found.swapaxes(0, 1)
    return np.ascontiguousarray(found, dtype=np.float32)


def _reflected(places: np.ndarray, length: int) -> np.ndarray:
    """Places along a line of pixels; those beyond its ends are reflected there."""
    period = max(2 * (length - 1), 1)
    places = np.abs(places) % period
    return np.minimum(places, period - places)


@dataclass(frozen=True, eq=False)
class Taps:
    """Bilinear samples of a grid: the numbers of four cells a place, (k, 4), and their weights."""

    cells: np.ndarray
    weights: np.ndarray
    count: int

    @classmethod
    def of(cls, places: np.ndarray, grid: Grid, *, edges: bool) -> Taps:
        """Take samples at places, (k, 2), in cells; beyond the grid those of its edge, or none."""
        ends = np.array([grid.w - 1, grid.h - 1])
        # Rounding is not to mix cells that lie on one another.
        places = np.round(places, 6)
        at = np.clip(places, 0, ends)
        low = np.minimum(at.astype(int), np.maximum(ends - 1, 0))
        part = at - low
        x, y = (np.stack([low[:, c], np.minimum(low[:, c] + 1, ends[c])], axis=1) for c in (0, 1))
        u, v = (np.stack([1.0 - part[:, c], part[:, c]], axis=1) for c in (0, 1))
        cells = (y[:, :, None] * grid.w + x[:, None, :]).reshape(-1, 4)
        weights = (v[:, :, None] * u[:, None, :]).reshape(-1, 4)
        if not edges:
            inside = np.all((places > -0.5) & (places < ends + 0.5), axis=1)
            weights = weights * inside[:, None]
        return cls(cells, weights, grid.count)

    @cached_property
    def matrix(self) -> csr_array:
        """The samples as a matrix, (k, cells)."""
        rows = np.repeat(np.arange(len(self.cells)), 4)
        shape = (len(self.cells), self.count)
        return csr_array((self.weights.ravel(), (rows, self.cells.ravel())), shape=shape)

    def rows(self, values: Any, home: Home) -> Any:
        """Return the rows of an array, (cells, m), at the places, (k, m)."""
        total: Any = 0.0
        for cells, weights in self._brought(home):
            total = total + weights[:, None] * home.xp.take(values, cells, axis=0)
        return total

    def _brought(self, home: Home) -> list[tuple[Any, Any]]:
        """Cells and weights where they are used, brought there once."""
        key = (home.library, str(home.device), str(home.dtype))
        if key not in self._there:
            self._there[key] = [
                (home.indices(self.cells[:, k]), home.bring(self.weights[:, k]))
                for k in range(4)
                if self.weights[:, k].any()
            ]
        return self._there[key]

    @cached_property
    def _there(self) -> dict[tuple[str, str, str], list[tuple[Any, Any]]]:
        return {}


def own_maps(
    turned: Sequence[FeatureMap], own: Sequence[FeatureMap], frame: Frame
) -> tuple[FeatureMap, ...]:
    """Return what a network makes of the turned image at the image's own cells, a map a layer."""
    taps: dict[tuple[Grid, Grid], Taps] = {}
    found = []
    for one, other in zip(turned, own, strict=True):
        key = (other.grid, one.grid)
        if key not in taps:
            taps[key] = Taps.of(frame.seen(*key), one.grid, edges=True)
        values = _sampled(one, taps[key]).reshape(one.channels, other.grid.h, other.grid.w)
        found.append(FeatureMap(other.name, values, other.stride, other.receptive_field))
    return tuple(found)


def _sampled(layer: FeatureMap, taps: Taps) -> Any:
    """A layer's values at some places, (channels, k), where the layer is."""
    if isinstance(layer.values, np.ndarray):
        flat = layer.values.astype(np.float32).reshape(layer.channels, -1)
        return np.ascontiguousarray((taps.matrix.astype(np.float32) @ flat.T).T)
    home = Home.of(layer.values)
    flat = home.xp.reshape(layer.values, (layer.channels, -1))
    return home.xp.matrix_transpose(taps.rows(home.xp.matrix_transpose(flat), home))


# Spreads of the four parts on pairs of four species of birds, seen by MobileNetV2 and
# EfficientNet-Lite2, and what the sum of the parts has to exceed; chosen there, on pairs of cars
# and on photographs that were made symmetric.
SPREADS = {"coherence": 0.10, "plan": 0.22, "direction": 0.33, "rigidity": 0.6}
MARGINS = {"none": 0.0, "mirror": 2.2, "all": 3.0}
# What is its own mirror image matches as it is, left to left and right to right. So matches that
# run forwards more than this are not mirrored, whatever the statistic.
FORWARD = 0.5
# Rigidities are told apart from here on.
LEAST_RIGID = 0.01


def evidence(coherences: np.ndarray, votes: Any, source: Grid, target: Grid, home: Home) -> dict:
    r"""Return what speaks for a pose, each part in units of its spread.

    "coherence" is the logarithm of the mean coherence of the layers, "plan" that of the coherence
    of the matches with the most votes, "direction" whether these run from left to right as their
    cells do, in the mean of both directions, and "rigidity" the logarithm of how many of them move
    alike. The share that the best votes have is no part of it: with some networks it is less
    wherever A is mirrored, whichever way things face.

    Parameters
    ----------
    coherences : array of shape (L,)
    votes : array of shape (n, m)
        In the turned frame; cells without votes are not asked.
    source, target : Grid
        The cells of the turned frame and of B.
    home : Home
    """
    found = Matches.of(votes, source, target, home)
    kept, order = (
        np.array(
            [
                measure(found.there, source, target, found.voting),
                measure(found.back, target, source),
            ]
        )
        for measure in (kept_neighbours, forwardness)
    )
    raw = {
        "coherence": _logarithm(float(np.mean(coherences))),
        "plan": 0.5 * _logarithm(float(kept.prod())),
        "direction": float(order.mean()),
        "rigidity": _logarithm(rigidity(found, home) + LEAST_RIGID),
    }
    return {name: raw[name] / SPREADS[name] for name in raw}


def _logarithm(value: float) -> float:
    return float(np.log(max(value, 1e-12)))


def choose(found: Mapping[Turn, Mapping[str, float]], which: str) -> Pose:
    """Return the pose with the best evidence; as is, unless another is better by the margin.

    A is not mirrored, either, where its matches run forwards as it is.

    Parameters
    ----------
    found : mapping of Turn to dict
        What `evidence` says of each, A as it is among them.
    which : {"none", "mirror", "all"}
    """
    sums = {turn: sum(parts.values()) for turn, parts in found.items()}
    gains = {turn: value - sums[AS_IS] for turn, value in sums.items() if turn != AS_IS}
    margin = MARGINS[which]
    if not gains:
        return Pose(margin=margin)
    best = max(gains, key=lambda turn: gains[turn])
    tried = {str(turn): gain for turn, gain in gains.items()}
    symmetric = best == MIRRORED and found[AS_IS]["direction"] * SPREADS["direction"] > FORWARD
    better = gains[best] > margin and not symmetric
    return Pose(best if better else AS_IS, gains[best], margin, tried)
