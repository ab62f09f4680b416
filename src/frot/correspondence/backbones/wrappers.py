"""Backbones without a network of their own: around another (some layers, noise), or of arrays."""

from __future__ import annotations

import difflib
import operator
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from frot._base.errors import DataWarning, InputError
from frot._base.fingerprint import fingerprint
from frot._base.validate import check_choice, check_count, check_seed
from frot.correspondence._features import (
    Backbone,
    Classifying,
    FeatureMap,
    Grid,
    extract_named,
    refuse_classes,
)
from frot.correspondence.backbones._preprocess import check_image


def choose_layers(
    available: Sequence[str], asked: Sequence[str | int] | None, network: str
) -> tuple[str, ...]:
    """Return the names of the layers asked for, in the order of the network.

    By their names, or by their places counted from 0; None takes all that are available.

    Examples
    --------
    >>> choose_layers(["stem", "layer1.0", "layer1.1"], ["layer1.1", 0], "resnet50")
    ('stem', 'layer1.1')
    """
    if asked is None:
        return tuple(available)
    if isinstance(asked, str | int):
        asked = [asked]
    wanted: set[str] = set()
    for layer in asked:
        if isinstance(layer, str):
            if layer not in available:
                raise InputError(
                    f"layers names {layer!r}, which {network} does not have; nearest: "
                    + ", ".join(nearest(layer, available))
                )
            wanted.add(layer)
        elif (place := whole(layer)) is None or not 0 <= place < len(available):
            raise InputError(
                f"layers holds {layer!r}, but {network} has layers 0 to {len(available) - 1}"
            )
        else:
            wanted.add(available[place])
    if not wanted:
        raise InputError("layers is empty; name at least one, or leave it out to take all")
    return tuple(name for name in available if name in wanted)


def nearest(name: str, known: Sequence[str]) -> list[str]:
    """Return the names most like another.

    Examples
    --------
    >>> nearest("resnet11", ["vgg11", "resnet101", "swin_t"])[0]
    'resnet101'
    """
    return difflib.get_close_matches(name, known, n=3, cutoff=0.0)


def warn_of_few(network: str, found: int, weights: int, most: int = 16) -> None:
    """Warn where few layers were found in a network of many matrices and filters.

    A layer has so many at `most` where all are found: a block of attention with gates has seven,
    one of inverted residuals between two that are no sums twice as many.

    Examples
    --------
    >>> warn_of_few("resnet50", 17, 54)
    """
    if weights > most * found:
        warnings.warn(
            f"{network}: few of its layers were found, {found}, and it applies {weights} matrices "
            "and filters; name more of its parts by `layers`",
            DataWarning,
            stacklevel=2,
        )


def whole(value: Any) -> int | None:
    """Return a whole number, NumPy's as well, as Python's; None for what is none.

    Examples
    --------
    >>> whole(np.int64(3)), whole(3.0), whole(True)
    (3, None, None)
    """
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


class Wrapper:
    """A backbone around another, whose maps it may change."""

    def __init__(self, backbone: Backbone, name: str, layers: tuple[str, ...]) -> None:
        self.backbone = backbone
        self.name = name
        self.layers = layers

    def extract(self, image: np.ndarray) -> list[FeatureMap]:
        """Return one map per layer for an image of shape (h, w, 3) in [0, 1]."""
        return self._changed(self.backbone.extract(image), image)

    def extract_named(self, name: str, image: np.ndarray) -> list[FeatureMap]:
        """Return the maps of an image that the other may know by name."""
        return self._changed(extract_named(self.backbone, name, image), image)

    def _changed(self, maps: list[FeatureMap], image: np.ndarray) -> list[FeatureMap]:
        return maps

    def class_maps(self, image: np.ndarray, classes: int = 1) -> np.ndarray:
        """Return the other's class activation maps, shape (classes, h, w)."""
        return self._classifier.class_maps(image, classes)

    @property
    def _classifier(self) -> Classifying:
        if not isinstance(self.backbone, Classifying):
            raise refuse_classes(self.name)
        return self.backbone


class SomeLayers(Wrapper):
    """A backbone that gives some of another's layers.

    Parameters
    ----------
    backbone : Backbone
        The other.
    layers : sequence of str or int
        Names, or places counted from 0.

    Examples
    --------
    >>> features = {"cat.jpg": {"low": np.zeros((3, 9, 9)), "high": np.zeros((5, 3, 3))}}
    >>> SomeLayers(ArrayBackbone(features), [1]).layers
    ('high',)
    """

    def __init__(self, backbone: Backbone, layers: Sequence[str | int]) -> None:
        name = backbone.name
        super().__init__(backbone, name, choose_layers(backbone.layers, layers, name))

    @property
    def fingerprint(self) -> str:
        """A hash of the other backbone and the choice."""
        return fingerprint(backbone=self.backbone.fingerprint, layers=list(self.layers))

    def _changed(self, maps: list[FeatureMap], image: np.ndarray) -> list[FeatureMap]:
        return [one for one in maps if one.name in self.layers]


class NoisyBackbone(Wrapper):
    """A backbone with layers of independent Gaussian noise behind its own, or of places.

    Each has the cells of one of the network's own maps, from places spread evenly over its depth.
    Noise has its channels, too, and depends on the image and the seed alone: the same photograph
    always has the same, two photographs have nothing in common. Layers of places know where in
    the frame a cell is and nothing else, as embeddings of places do: they match coherently, each
    cell with the one at the same place of the other frame, whatever is there.

    Parameters
    ----------
    backbone : Backbone
        The network.
    count : int
        Layers of noise.
    random_state : int
    kind : {"noise", "place"}

    Examples
    --------
    >>> features = {"cat.jpg": {"low": np.zeros((3, 9, 9)), "high": np.zeros((5, 3, 3))}}
    >>> noisy = NoisyBackbone(ArrayBackbone(features), count=2)
    >>> noisy.layers, noisy.noise
    (('low', 'high', 'noise_0', 'noise_1'), ('noise_0', 'noise_1'))
    >>> maps = noisy.extract_named("cat.jpg", np.zeros((36, 36, 3), dtype="float32"))
    >>> [one.values.shape for one in maps]
    [(3, 9, 9), (5, 3, 3), (3, 9, 9), (5, 3, 3)]
    """

    def __init__(
        self, backbone: Backbone, count: int = 3, random_state: int = 0, kind: str = "noise"
    ) -> None:
        count = check_count(count, "count")
        self.seed = check_seed(random_state, "random_state")
        self.kind = check_choice(kind, "kind", ("noise", "place"))
        if not hasattr(backbone, "layers"):
            raise InputError(
                f"backbone: is a {type(backbone).__name__}; give what resolve_backbone returns"
            )
        self.real: tuple[str, ...] = tuple(backbone.layers)
        self.noise: tuple[str, ...] = tuple(f"{kind}_{k}" for k in range(count))
        if taken := set(self.real) & set(self.noise):
            raise InputError(
                f"backbone: {backbone.name} has a layer {min(taken)!r} already; is it noisy twice?"
            )
        super().__init__(backbone, f"{backbone.name} + {count} of {kind}", self.real + self.noise)

    @property
    def fingerprint(self) -> str:
        """A hash of the network, the seed and the layers of noise."""
        return fingerprint(backbone=self.backbone.fingerprint, noise=self.noise, seed=self.seed)

    def _changed(self, maps: list[FeatureMap], image: np.ndarray) -> list[FeatureMap]:
        rng = np.random.default_rng([self.seed, int(image_key(image), 16)])
        found = list(maps)
        for k, name in enumerate(self.noise):
            like = maps[(2 * k + 1) * len(maps) // (2 * len(self.noise))]
            if self.kind == "noise":
                values = rng.standard_normal(like.values.shape, dtype=np.float32)
            else:
                values = _places(like.grid)
            found.append(replace(like, name=name, values=values))
        return found


def _places(grid: Grid) -> np.ndarray:
    """Sines and cosines of where cells are in the frame, (16, h, w)."""
    # From one edge of the frame to the other: no two places have the same waves.
    half_turns = (0.5, 1.0, 1.5, 2.0)
    y, x = np.meshgrid(np.linspace(0.0, 1.0, grid.h), np.linspace(0.0, 1.0, grid.w), indexing="ij")
    angles = np.pi * np.stack([wave * along for along in (x, y) for wave in half_turns])
    return np.concatenate([np.sin(angles), np.cos(angles)]).astype(np.float32)


def image_key(image: np.ndarray) -> str:
    """Return 64 hexadecimal digits that stand for an image of shape (h, w, 3) in [0, 1].

    Examples
    --------
    >>> image_key(np.zeros((40, 40, 3))) == image_key(np.zeros((40, 40, 3), dtype="float32"))
    True
    """
    return fingerprint(image=check_image(image))


class ArrayBackbone:
    """Features of known images, from whatever made them.

    Parameters
    ----------
    features : mapping of str
        For each image its maps: a sequence of FeatureMap, or a mapping of layers to arrays of
        shape (channels, h, w), whose cells then cover the image evenly, with strides H / h and
        W / w: also those of an image that was made square. An image goes by the name of its
        photograph, or by the `image_key` of its pixels. Every image has the same layers with the
        same channels.
    name : str
        For tables and pictures.

    Examples
    --------
    >>> image = np.zeros((64, 96, 3), dtype="float32")
    >>> backbone = ArrayBackbone({image_key(image): {"patches": np.ones((5, 4, 6))}})
    >>> [(one.name, one.stride) for one in backbone.extract(image)]
    [('patches', 16.0)]
    """

    def __init__(
        self,
        features: Mapping[str, Sequence[FeatureMap] | Mapping[str, np.ndarray]],
        name: str = "arrays",
    ) -> None:
        if not features:
            raise InputError("features is empty; give the maps of at least one image")
        self.name = name
        self._maps = {str(key): _maps(str(key), value) for key, value in features.items()}
        first = next(iter(self._maps))
        kinds = {
            key: [(part[0], part[1].shape[0]) for part in maps] for key, maps in self._maps.items()
        }
        for key, kind in kinds.items():
            if kind != kinds[first]:
                raise InputError(
                    f"features of {key} have other layers or channels than those of {first}"
                )
        self.layers: tuple[str, ...] = tuple(layer for layer, _ in kinds[first])

    @property
    def fingerprint(self) -> str:
        """A hash of all features."""
        return fingerprint(maps=self._maps)

    def extract(self, image: np.ndarray) -> list[FeatureMap]:
        """Return the maps of an image that was put in by its `image_key`."""
        return self.extract_named(image_key(image), image)

    def extract_named(self, name: str, image: np.ndarray) -> list[FeatureMap]:
        """Return the maps that were put in under a name, for an image of shape (h, w, 3)."""
        known = name if name in self._maps else image_key(image)
        if known not in self._maps:
            raise InputError(
                f"features has no maps of {name}; it has those of {', '.join(list(self._maps)[:3])}"
            )
        size = (int(image.shape[0]), int(image.shape[1]))
        return [
            covering(layer, values, size, name)
            if stride is None
            else _fitting(FeatureMap(layer, values, stride, field or stride, **places), size, name)
            for layer, values, stride, field, places in self._maps[known]
        ]


def covering(
    layer: str, values: np.ndarray, size: tuple[int, int], name: str = "image"
) -> FeatureMap:
    """Return a map whose cells cover an image of (h, w) pixels evenly.

    Cells are as far apart as that takes, down and across each; a cell looks at its middle. The grid
    has the shape of the image, to a cell, or is square, as that of an image made square is.

    Examples
    --------
    >>> covering("patches", np.zeros((4, 4, 4), dtype="float32"), (40, 80)).grid.centres[1]
    array([29.5,  4.5])
    """
    (h, w), (tall, wide) = values.shape[1:], size
    # A stride with which either side has as many cells, give or take one.
    least = max(tall / (h + 1), wide / (w + 1))
    most = min(tall / max(h - 1, 1e-9), wide / max(w - 1, 1e-9))
    if h > tall or w > wide:
        raise InputError(
            f"features of {name}, layer {layer}: {h} x {w} cells are more than the photograph's "
            f"{tall} x {wide} pixels at the size it is matched at; give arrays as (channels, h, w)"
        )
    if h != w and least > most:
        raise InputError(
            f"features of {name}, layer {layer}: {h} x {w} cells are neither square nor of the "
            f"shape of the photograph, {tall} x {wide} pixels; are they another photograph's, or "
            "(channels, w, h)? Where they are meant, give a FeatureMap with stride and "
            "column_stride"
        )
    down, across = tall / h, wide / w
    start = (0.5 * (down - 1.0), 0.5 * (across - 1.0))
    return FeatureMap(layer, values, down, max(down, across), column_stride=across, start=start)


def _fitting(layer: FeatureMap, size: tuple[int, int], name: str) -> FeatureMap:
    """Return a map with strides of its own, or say that it is of an image of another size."""
    grid = layer.grid
    for count, stride, side in zip((grid.h, grid.w), grid.strides, size, strict=True):
        # A cell more or less is what networks do at the edges.
        if not (count - 1) * stride <= side + stride <= (count + 2) * stride:
            down, across = (f"{stride:g}" for stride in grid.strides)
            raise InputError(
                f"features of {name}, layer {layer.name}: {grid.h} x {grid.w} cells, {down} and "
                f"{across} pixels apart, do not fit the photograph, {size[0]} x {size[1]} pixels "
                "at the size it is matched at; give `side` as it was for the features, or plain "
                "arrays, whose cells cover the photograph evenly"
            )
    return layer


def _maps(
    key: str, given: Sequence[FeatureMap] | Mapping[str, np.ndarray]
) -> list[tuple[str, np.ndarray, float | None, float | None, dict[str, Any]]]:
    if isinstance(given, Mapping):
        found = [(str(layer), values, None, None, {}) for layer, values in given.items()]
    elif isinstance(given, Sequence) and all(isinstance(one, FeatureMap) for one in given):
        found = [
            (
                one.name, one.values, one.stride, one.receptive_field,
                {"column_stride": one.column_stride, "start": one.start},
            )
            for one in given
        ]  # fmt: skip
    else:
        raise InputError(f"features of {key} are no maps; give FeatureMap or arrays by layer")
    if not found:
        raise InputError(f"features of {key} are empty; give at least one map")
    checked = []
    for layer, values, stride, field, places in found:
        values = np.asarray(values)
        if values.ndim != 3 or values.size == 0 or values.dtype.kind != "f":
            raise InputError(
                f"features of {key}, layer {layer}, have shape {values.shape} and type "
                f"{values.dtype}; give floats of shape (channels, h, w)"
            )
        with np.errstate(over="ignore"):
            single = np.ascontiguousarray(values, dtype=np.float32)
        if not np.isfinite(single).all():
            raise InputError(
                f"features of {key}, layer {layer}, hold values that are not finite, or beyond "
                "float32; replace them, or scale the layer"
            )
        checked.append((layer, single, stride, field, places))
    return checked
