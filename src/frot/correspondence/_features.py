"""Feature maps, grids of cells, the `Backbone` protocol, and the mass of cells.

Mass is where the network's classifier looks, or where a user says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from frot._base.arrays import Home
from frot._base.contract import refuse_masked
from frot._base.errors import InputError
from frot.correspondence._interpolation import interpolation, resize, sampling

Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """The activations of one layer.

    Parameters
    ----------
    name : str
        The layer's name.
    values : array of shape (channels, h, w)
        Single precision.
    stride : float
        Pixels of the network's input between neighbouring rows of cells, and between columns.
    receptive_field : float
        Pixels of the network's input, across, that a cell sees.
    finite : bool
        Whether it is known already that all values are numbers.
    column_stride : float, optional
        Pixels between columns, where these are not as far apart as rows.
    start : (float, float), optional
        Where the first cell looks, y and x. If left out it is not known: the first cell is taken
        to look at the first pixel, and the ends of a coarser layer to lie on the ends of the
        cells that are matched, as in the literature.

    Examples
    --------
    >>> FeatureMap("stem", np.zeros((64, 75, 57), dtype="float32"), 4, 11).grid.count
    4275
    """

    name: str
    values: Any
    stride: float
    receptive_field: float
    finite: bool = False
    column_stride: float | None = None
    start: tuple[float, float] | None = None
    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def channels(self) -> int:
        """Number of channels."""
        return int(self.values.shape[0])

    def at(self, grid: Grid) -> FeatureMap:
        """Return the layer on another grid."""

        def make() -> FeatureMap:
            return replace(
                self,
                values=self.interpolated(self.values, grid),
                stride=grid.stride,
                column_stride=grid.column_stride,
                start=None if self.start is None else grid.start,
            )

        return self.once(grid, make)

    def interpolated(self, values: Any, grid: Grid) -> Any:
        """Return values of this layer's cells, (..., h, w), at the cells of another grid."""
        if self.grid == grid:
            return values
        home = Home.of(values)
        down, across = (home.bring(matrix) for matrix in self.reading(grid))
        return down @ (values @ across.T)

    def reading(self, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrices that read rows and columns at another grid's, (new h, h), (new w, w).

        Bilinear, at the places of the cells; where it is not known at what places this layer's
        cells look, its ends are put on the ends of the grid.

        Examples
        --------
        >>> layer = FeatureMap("late", np.zeros((1, 2, 2)), 16, 43, start=(-4.0, -4.0))
        >>> layer.reading(Grid(3, 3, 8.0, 19.0))[0]
        array([[0.75, 0.25],
               [0.25, 0.75],
               [0.  , 1.  ]])
        """
        own = self.grid
        counts = ((own.h, grid.h), (own.w, grid.w))
        if self.start is None:
            down, across = (interpolation(old, new, align_corners=True) for old, new in counts)
            return down, across
        down, across = (
            sampling((places - start) / stride, old)
            for places, start, stride, (old, _) in zip(
                grid.places, own.start, own.strides, counts, strict=True
            )
        )
        return down, across

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what was made of this layer once; it is kept as long as the layer is."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    @cached_property
    def grid(self) -> Grid:
        """The cells."""
        _, h, w = self.values.shape
        across = None if self.column_stride is None else float(self.column_stride)
        start = (0.0, 0.0) if self.start is None else (float(self.start[0]), float(self.start[1]))
        field = float(self.receptive_field)
        return Grid(int(h), int(w), float(self.stride), field, across, start)


@dataclass(frozen=True)
class Grid:
    """Cells over an image, row by row; (y, x) has its centre at start + (stride y, stride x).

    Parameters
    ----------
    h, w : int
        Rows and columns of cells.
    stride : float
        Pixels between the centres of neighbours in rows above each other, and side by side.
    receptive_field : float
        Pixels across that a cell sees.
    column_stride : float, optional
        Pixels between neighbours side by side, where that is another number.
    start : (float, float)
        The centre of the first cell, y and x.

    Examples
    --------
    >>> Grid(2, 3, 8.0, 11.0).centres.tolist()
    [[0.0, 0.0], [8.0, 0.0], [16.0, 0.0], [0.0, 8.0], [8.0, 8.0], [16.0, 8.0]]
    >>> Grid(2, 2, 8.0, 11.0, 6.0, (3.5, 2.5)).centres.tolist()
    [[2.5, 3.5], [8.5, 3.5], [2.5, 11.5], [8.5, 11.5]]
    """

    h: int
    w: int
    stride: float
    receptive_field: float
    column_stride: float | None = None
    start: tuple[float, float] = (0.0, 0.0)

    @property
    def count(self) -> int:
        """Number of cells."""
        return self.h * self.w

    @property
    def strides(self) -> tuple[float, float]:
        """Pixels between rows, and between columns."""
        return self.stride, self.stride if self.column_stride is None else self.column_stride

    @property
    def spacing(self) -> float:
        """Pixels between neighbours: the geometric mean of the strides."""
        return self.stride if self.column_stride is None else math.sqrt(math.prod(self.strides))

    @property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the rows lie, (h,), and the columns, (w,), in pixels."""
        down, across = (
            start + stride * np.arange(count)
            for start, stride, count in zip(self.start, self.strides, (self.h, self.w), strict=True)
        )
        return down, across

    def columns(self, x: np.ndarray) -> np.ndarray:
        """Return the columns, with fractions, that places lie on."""
        return (x - self.start[1]) / self.strides[1]

    def rows(self, y: np.ndarray) -> np.ndarray:
        """Return the rows, with fractions, that places lie on."""
        return (y - self.start[0]) / self.strides[0]

    @property
    def centres(self) -> np.ndarray:
        """Centres of the cells as (x, y), shape (h w, 2); not to be written to."""
        return _centres(self)

    @property
    def boxes(self) -> np.ndarray:
        """What the cells see, as (left, top, right, bottom), shape (h w, 4); likewise."""
        return _boxes(self)

    def inside(self, size: tuple[int, int]) -> np.ndarray:
        """Return which cells see at most a stride beyond an image of (h, w) pixels, (h w,).

        All of them where none does: the network sees further than the image is wide.

        Examples
        --------
        >>> Grid(4, 4, 8.0, 19.0).inside((32, 32)).reshape(4, 4).astype(int)[1]
        array([0, 1, 1, 1])
        """
        low, high = self.boxes[:, :2], self.boxes[:, 2:]
        stride = np.array(self.strides[::-1])
        found = np.all((low >= -stride) & (high < np.array(size[::-1]) + stride), axis=1)
        return found if found.any() else np.ones(self.count, dtype=bool)


@lru_cache(maxsize=64)
def _centres(grid: Grid) -> np.ndarray:
    """The same for all photographs of a size."""
    down, across = grid.places
    found = np.stack(np.meshgrid(across, down), axis=-1).reshape(-1, 2)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=64)
def _boxes(grid: Grid) -> np.ndarray:
    reach, centres = grid.receptive_field // 2, grid.centres
    found = np.concatenate([centres - reach, centres + reach], axis=1)
    found.flags.writeable = False
    return found


class Backbone(Protocol):
    """Anything that turns an image into named maps of features.

    One whose weights may change while it is used can have a `state` as well: a key that costs
    little and is another after a change, so that no features are remembered that are out of date.
    A vision transformer may have `patch`, the side of its patches in pixels, and `most_side`, the
    longest side of a photograph that it takes; photographs are resized to suit them. With
    `strides`, pixels by the name of the layer, ``print(matcher)`` shows them.
    """

    @property
    def name(self) -> str:
        """A short name for tables and pictures."""
        ...

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers, in the order of the network."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of everything that decides what comes out: weights, layers, preprocessing."""
        ...

    def extract(self, image: np.ndarray) -> list[FeatureMap]:
        """Return one map a layer.

        Parameters
        ----------
        image : array of shape (h, w, 3)
            Red, green and blue in [0, 1], single precision, already of the size to be matched at.
            Mean, standard deviation, layout and order of colours are the backbone's own affair.
        """
        ...


@runtime_checkable
class Classifying(Protocol):
    """A backbone that has kept its classifier, and can say where it looked."""

    def class_maps(self, image: np.ndarray, classes: int) -> np.ndarray:
        r"""Return class activation maps of the most probable classes, shape (classes, h, w).

        Of Zhou et al. 2016:

        .. math:: \mathrm{CAM}_c(y, x) = \sum_k W_{ck}\, F_k(y, x)

        with F the maps that the classifier averages (after their last activation) and W its
        weights, without bias. The most probable class comes first.
        """
        ...


@runtime_checkable
class OnDevice(Protocol):
    """A backbone that can leave its maps on the device where it runs."""

    def extract_on_device(self, image: np.ndarray) -> list[FeatureMap]:
        """Return the maps of an image, tensors where the network is."""
        ...


def extract_named(backbone: Backbone, name: str, image: np.ndarray) -> list[FeatureMap]:
    """Return the maps of an image, from a backbone that may know images by name.

    Examples
    --------
    >>> from frot.correspondence.backbones import ArrayBackbone
    >>> image = np.zeros((64, 96, 3), dtype="float32")
    >>> backbone = ArrayBackbone({"cat.jpg": {"patches": np.ones((5, 4, 6))}})
    >>> knows_names(backbone), [one.name for one in extract_named(backbone, "cat.jpg", image)]
    (True, ['patches'])
    """
    by_name = getattr(backbone, "extract_named", None)
    return backbone.extract(image) if by_name is None else by_name(name, image)


def knows_names(backbone: Any) -> bool:
    """Whether a backbone, or the one inside it, may know images by name."""
    return hasattr(_innermost(backbone), "extract_named")


def state_of(backbone: Any) -> Any:
    """Return the state of a backbone, or of the one inside it; None where it has none.

    Examples
    --------
    >>> state_of(object()) is None
    True
    """
    return getattr(_innermost(backbone), "state", None)


def sizes_of(backbone: Any) -> tuple[int | None, int | None]:
    """Return `patch` and `most_side` of a backbone, or of the one inside it; None where absent."""
    own = _innermost(backbone)
    return getattr(own, "patch", None), getattr(own, "most_side", None)


def strides_of(backbone: Any) -> dict[str, float]:
    """Return `strides` of a backbone, or of the one inside it: of each layer, where it knows them.

    Examples
    --------
    >>> strides_of(object())
    {}
    """
    return getattr(_innermost(backbone), "strides", {})


def _innermost(backbone: Any) -> Any:
    """Return the backbone inside all others around it."""
    while (inside := getattr(backbone, "backbone", None)) is not None:
        backbone = inside
    return backbone


def refuse_classes(name: str) -> InputError:
    """Return what is raised where a network has no classifier to look with."""
    return InputError(
        f"{name} has no classifier on averaged maps, so it has no class activation maps; use "
        "mass='uniform', pass masks, or take another backbone"
    )


def top_maps(maps: np.ndarray, weights: np.ndarray, scores: np.ndarray, classes: int) -> np.ndarray:
    r"""Return the maps of the most probable classes, shape (classes, h, w).

    .. math:: \mathrm{CAM}_c(y, x) = \sum_k W_{ck} F_k(y, x)

    of maps F, (channels, h, w), and weights W, (all classes, channels); the scores are what the
    classifier makes of the image, with its bias.

    Examples
    --------
    >>> weights = np.array([[1.0, 1.0], [2.0, 2.0]])
    >>> top_maps(np.ones((2, 1, 1)), weights, np.array([2.0, 4.0]), 1).tolist()
    [[[4.0]]]
    """
    if not 1 <= classes <= len(weights):
        raise InputError(f"classes is {classes}; the classifier has 1 to {len(weights)}")
    best = np.argsort(-scores, kind="stable")[:classes]
    return np.einsum("ck,kyx->cyx", weights[best], maps)


MASSES = ("uniform", "cam", "cam-top")


def class_activation(
    backbone: Any, image: np.ndarray, kind: str, small: float = 1e-5
) -> np.ndarray:
    r"""Return where the network's classifier looks, from 0 to 1, shape (h, w) of the image.

    "cam-top" is the map of the most probable class, stretched to [0, 1] (the paper's words).
    "cam" takes the two most probable classes at three sizes of the image: each map is

    .. math:: (\mathrm{cam} - \min \mathrm{cam}) / \max \mathrm{cam},

    the larger of the classes counts, and the sizes are added up and divided by their maximum. A
    class whose map is nowhere positive counts as zero.
    """
    if not isinstance(backbone, Classifying):
        raise refuse_classes(backbone.name)
    h, w = image.shape[:2]
    if kind == "cam-top":
        cam = resize(backbone.class_maps(image, 1), h, w, align_corners=True)[0]
        low, high = float(cam.min()), float(cam.max())
        return (cam - low) / max(high - low, small)
    total = np.zeros((h, w), dtype=np.float32)
    # Each made from the one before.
    at = image
    for scale in (1.0, 1.5, 2.0):
        size = (int(h * scale), int(w * scale))
        at = np.moveaxis(resize(np.moveaxis(at, -1, 0), *size, align_corners=True), 0, -1)
        maps = resize(backbone.class_maps(at, 2), h, w, align_corners=True)
        lows, highs = maps.min(axis=(1, 2), keepdims=True), maps.max(axis=(1, 2), keepdims=True)
        # Divided by a maximum below zero a map would be negative, and lose against any other.
        seen = np.where(highs > 0.0, (maps - lows) / np.where(highs > 0.0, highs, 1.0), 0.0)
        total += seen.max(axis=0)
    return total / (float(total.max()) + small)


def staircase(activation: np.ndarray, grid: Grid) -> np.ndarray:
    """Return weights of the cells, (n,), from the activation at their centre pixels.

    0.5 where it is low, 0.8 above 0.4, 0.9 above 0.5, 1 above 0.6; divided by their sum.

    Examples
    --------
    >>> staircase(np.array([[0.0, 1.0]]), Grid(1, 2, 1.0, 1.0)).round(3)
    array([0.333, 0.667])
    """
    h, w = activation.shape
    x, y = grid.centres.astype(int).T
    there = activation[np.clip(y, 0, h - 1), np.clip(x, 0, w - 1)]
    steps = np.array([0.5, 0.8, 0.9, 1.0])
    weights = steps[np.searchsorted((0.4, 0.5, 0.6), there, side="left")]
    return weights / weights.sum()


def check_mask(mask: Any, size: tuple[int, int], name: str) -> np.ndarray:
    """Return a user's mask over a photograph's own pixels as floats, or say what is wrong."""
    refuse_masked(mask, name)
    try:
        mask = np.asarray(mask)
        values = mask.astype(float)
    except (TypeError, ValueError):
        raise InputError(f"{name}: is not numeric; use weights >= 0, one per pixel") from None
    if mask.shape != size:
        raise InputError(
            f"{name}: has shape {mask.shape}, but the photograph has {size} (height, width)"
        )
    if not np.isfinite(values).all() or (values < 0.0).any():
        raise InputError(f"{name}: has entries that are negative or not numbers; use weights >= 0")
    if not values.any():
        raise InputError(f"{name}: is zero everywhere; mark the object with positive values")
    return values


def mask_mass(mask: np.ndarray, ratio: float, grid: Grid, name: str) -> np.ndarray:
    """Return weights of the cells, (n,): a checked mask of the photograph at their centres."""
    h, w = mask.shape
    down, across = (
        sampling(places / ratio, side) for places, side in zip(grid.places, (h, w), strict=True)
    )
    weights = (down @ mask @ across.T).ravel()
    if weights.sum() <= 0.0:
        raise InputError(f"{name}: is zero at every cell; mark a larger part, or raise side")
    return weights / weights.sum()
