"""What goes into a network and comes out: images, prepared, and maps over grids of cells."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from frot._base.errors import InputError
from frot.correspondence._interpolation import resize

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "Backbone",
    "Classifying",
    "FeatureMap",
    "Grid",
    "OnDevice",
    "Preprocessing",
    "check_image",
    "extract_named",
    "innermost",
    "knows_names",
    "preprocessing",
    "refuse_classes",
    "state_of",
    "top_maps",
]


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
        Pixels of the network's input between neighbouring cells.
    receptive_field : float
        Pixels of the network's input, across, that a cell sees.
    finite : bool
        Whether it is known already that all values are numbers.

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
    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def channels(self) -> int:
        """Number of channels."""
        return int(self.values.shape[0])

    def at(self, h: int, w: int, stride: float) -> FeatureMap:
        """Return the layer on another grid."""

        def make() -> FeatureMap:
            values = resize(self.values, h, w, align_corners=True)
            return replace(self, values=values, stride=stride)

        return self.once((h, w, stride), make)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what was made of this layer once; it is kept as long as the layer is."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    @cached_property
    def grid(self) -> Grid:
        """The cells."""
        _, h, w = self.values.shape
        return Grid(int(h), int(w), float(self.stride), float(self.receptive_field))


@dataclass(frozen=True)
class Grid:
    """Cells over an image, row by row; cell (y, x) has its centre at stride (x, y).

    Parameters
    ----------
    h, w : int
        Rows and columns of cells.
    stride : float
        Pixels between the centres of neighbours.
    receptive_field : float
        Pixels across that a cell sees.

    Examples
    --------
    >>> Grid(2, 3, 8.0, 11.0).centres.tolist()
    [[0.0, 0.0], [8.0, 0.0], [16.0, 0.0], [0.0, 8.0], [8.0, 8.0], [16.0, 8.0]]
    """

    h: int
    w: int
    stride: float
    receptive_field: float

    @property
    def count(self) -> int:
        """Number of cells."""
        return self.h * self.w

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
        limit = np.array(size[::-1]) + self.stride
        found = np.all((low >= -self.stride) & (high < limit), axis=1)
        return found if found.any() else np.ones(self.count, dtype=bool)


@lru_cache(maxsize=64)
def _centres(grid: Grid) -> np.ndarray:
    """The same for all photographs of a size."""
    y, x = np.mgrid[: grid.h, : grid.w]
    found = grid.stride * np.stack([x.ravel(), y.ravel()], axis=1).astype(float)
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
    longest side of a photograph that it takes; photographs are resized to suit them.
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
    return hasattr(innermost(backbone), "extract_named")


def state_of(backbone: Any) -> Any:
    """Return the state of a backbone, or of the one inside it; None where it has none.

    Examples
    --------
    >>> state_of(object()) is None
    True
    """
    return getattr(innermost(backbone), "state", None)


def innermost(backbone: Any) -> Any:
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


IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Preprocessing:
    """What is done to the colours: (scale x - mean) / std, channel by channel.

    Parameters
    ----------
    colour : {"RGB", "BGR"}
        Order of the channels that the network wants.
    mean, std : tuples of three floats
        In the network's order of channels.
    scale : float
        1.0, or 255.0 where the network was trained on bytes.

    Examples
    --------
    >>> bytes_minus_mean = Preprocessing("BGR", (104, 117, 123), (1, 1, 1), 255.0)
    >>> bytes_minus_mean(np.ones((1, 1, 3), dtype="float32"))[0, 0].tolist()
    [151.0, 138.0, 132.0]
    """

    colour: str = "RGB"
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    scale: float = 1.0

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """Return the network's input for an image of shape (h, w, 3), in single precision."""
        image = check_image(image)
        if self.colour == "BGR":
            image = image[..., ::-1]
        mean = np.asarray(self.mean, dtype=np.float32)
        std = np.asarray(self.std, dtype=np.float32)
        return (image * np.float32(self.scale) - mean) / std


def preprocessing(
    colour: str,
    mean: Sequence[float] | float | None,
    std: Sequence[float] | float | None,
    scale: float,
) -> Preprocessing:
    """Check what the user says of the colours, and fill in the rest.

    Nothing given means ImageNet's mean and standard deviation; with a mean or a scale given, what
    is missing is a mean of 0 and a standard deviation of 1.

    Examples
    --------
    >>> preprocessing("BGR", [104, 117, 123], None, 255.0).std
    (1.0, 1.0, 1.0)
    >>> preprocessing("RGB", None, None, 1.0).mean
    (0.485, 0.456, 0.406)
    """
    if colour not in ("RGB", "BGR"):
        raise InputError(f"colour is {colour!r}; give 'RGB' or 'BGR'")
    if not np.isfinite(scale) or scale <= 0:
        raise InputError(f"scale is {scale}; give a positive number, such as 1 or 255")
    if mean is None and std is None and scale == 1.0:
        mean, std = IMAGENET_MEAN, IMAGENET_STD
        if colour == "BGR":
            mean, std = mean[::-1], std[::-1]
    middle = _three("mean", 0.0 if mean is None else mean)
    spread = _three("std", 1.0 if std is None else std)
    if min(spread) <= 0:
        raise InputError(f"std is {spread}; give positive numbers")
    return Preprocessing(colour, middle, spread, float(scale))


def check_image(image: np.ndarray) -> np.ndarray:
    """Refuse what is not an image of shape (h, w, 3) in finite floats.

    Examples
    --------
    >>> check_image(np.zeros((40, 40, 3))).dtype
    dtype('float32')
    """
    image = np.asarray(image)
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype.kind != "f" or image.size == 0:
        raise InputError(
            f"image has shape {image.shape} and type {image.dtype}; give (h, w, 3) floats in "
            "[0, 1], as read_photo makes them"
        )
    if not np.isfinite(image).all():
        raise InputError("image holds values that are not finite; replace them first")
    return image.astype(np.float32, copy=False)


def _three(name: str, value: Sequence[float] | float) -> tuple[float, float, float]:
    values = np.asarray(value, dtype=float)
    if values.shape not in ((), (3,)) or not np.isfinite(values).all():
        raise InputError(f"{name} is {value}; give one finite number or three")
    one, two, three = np.broadcast_to(values, 3).tolist()
    return one, two, three
