"""Pairs of photographs matched in every way with one network, taken up where it was stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from frot._base.store import Store
from frot.cli.reproduce.layer_weights import SWEEP
from frot.cli.reproduce.pairs import Choice, features_of, network, solve_way
from frot.cli.reproduce.resume import finish, work_of
from frot.correspondence import Matcher, Pair, PairSet, best_layer, search_layers

__all__ = [
    "CHOICES",
    "PICKED",
    "PROPOSED",
    "RARE",
    "READINGS",
    "SEARCHED",
    "Runs",
    "match_pair",
    "matcher_of",
    "run_network",
    "with_picks",
]

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

    Parameters
    ----------
    matcher : Matcher
        With the network.
    pairs : PairSet
        All pairs; those of cars are taken.
    kept : Store
        Where what was picked is kept, and every pair on the way: it takes minutes to find.
    most : int
        Pairs of cars at most.
    progress : bool
        Show a bar.
    """
    categories = [category for category in pairs.counts if category.startswith("car")]
    cars = pairs.only(categories)
    found = {**CHOICES, **SWEEP}
    for key in (PICKED, *SEARCHED):
        choice = CHOICES[key]
        # Alone a layer is judged by its transport; the others are meant with Hough matching.
        way = choice.of(matcher).with_settings(hough=key != PICKED)
        some = cars.first(min(most, PICKED_ON if key == PICKED else SEARCHED_ON))
        work = work_of(picks=way.fingerprint, cars=some.fingerprint, search=(BEAM, MOST))
        pick = partial(_picked, some, way, key == PICKED, kept, progress)
        layers = tuple(finish(kept, work, ["layers"], pick)["layers"])
        picked = {"layer": layers[0]} if key == PICKED else {"layers": layers}
        found[key] = Choice(choice.label, choice.method, {**choice.overrides, **picked})
    return found


def _picked(
    cars: PairSet, way: Matcher, alone: bool, kept: Store, progress: bool, key: str
) -> tuple[str, list[str]]:
    if alone:
        return key, [best_layer(cars, way, store=kept, progress=progress)]
    found = search_layers(cars, way, beam=BEAM, most=MOST, store=kept, progress=progress)
    return key, list(found.best)


@dataclass(frozen=True, eq=False)
class Runs:
    """What all choices made of all pairs of a set with one network.

    Attributes
    ----------
    errors : array of shape (pairs, choices, readings, points)
        In units of the object's size; NaN where a choice was not run, and behind the last point
        of pairs that have fewer than others.
    alpha : array of shape (pairs, choices, L)
    seconds : array of shape (pairs, choices)
        For solving; features and costs are shared.
    """

    network: str
    layers: tuple[str, ...]
    choices: tuple[str, ...]
    errors: np.ndarray
    alpha: np.ndarray
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
    features = matcher.pair_features(pair.source, pair.target)
    _ = features.layers.costs
    own_points, names = len(pair.source_points), features.layers.names
    count = own_points if most is None else most
    found = np.full((len(choices), len(READINGS) * count + len(names) + 1), np.nan)
    for row, (name, choice) in zip(found, choices.items(), strict=True):
        if name in skipped:
            continue
        way = choice.of(matcher)
        own = features_of(way, features)
        began = time.perf_counter()
        outcome = solve_way(way, own)
        spent = time.perf_counter() - began
        errors = [
            way.with_settings(transfer=transfer, hough=hough).errors(own, outcome, pair)
            for transfer, hough in READINGS
        ]
        alpha = dict(zip(own.layers.names, outcome.alpha, strict=True))
        places = row[: len(READINGS) * count].reshape(len(READINGS), count)
        places[:, :own_points] = errors
        row[places.size : -1] = [alpha.get(layer, 0.0) for layer in names]
        row[-1] = 0.0 if outcome.transport is None else spent
    return found


def run_network(
    name: str,
    pairs: PairSet,
    choices: Mapping[str, Choice],
    kept: Store,
    *,
    workers: int = 1,
    tick: Callable[[int], None] = lambda count: None,
) -> Runs:
    """Match all pairs in every way, taking up a run that was stopped.

    Parameters
    ----------
    name : str
        Of the network.
    pairs : PairSet
    choices : mapping of str to Choice
    kept : Store
        Where finished pairs are kept.
    workers : int
        Processes.
    tick : callable
        Called with the number of pairs that became available, old ones at once.
    """
    matcher = matcher_of(name)
    work = work_of(
        ways={key: choice.of(matcher).fingerprint for key, choice in choices.items()},
        pairs=pairs.fingerprint,
        readings=READINGS,
        rare=(RARE, EVERY),
    )
    most = max(len(pair.source_points) for pair in pairs)
    do = partial(_numbered, name, pairs.pairs, dict(choices), most)
    found = finish(
        kept, work, range(len(pairs.pairs)), do, workers=workers, prepare=_prepare, tick=tick
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


def _numbered(
    name: str, pairs: Sequence[Pair], choices: Mapping[str, Choice], most: int, index: int
) -> tuple[int, np.ndarray]:
    skipped = RARE if index % EVERY else ()
    return index, match_pair(matcher_of(name), pairs[index], choices, skipped, most)
