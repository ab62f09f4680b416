"""Search for the layers to use: hyperpixel flow's beam search on labelled pairs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from frot._base.errors import InputError, collect_warnings
from frot._base.fingerprint import fingerprint
from frot._base.store import Store
from frot._base.validate import check_count, check_number
from frot.correspondence._features import FeatureMap
from frot.correspondence._matcher import Matcher
from frot.correspondence.datasets import PairSet
from frot.correspondence.datasets.pair_set import Pair
from frot.correspondence.evaluation.scores import pck
from frot.correspondence.layers import LayerTable, PairFeatures, PhotoFeatures
from frot.solvers.progress import counting_bar


class ScoredLayers(NamedTuple):
    """Layers and the PCK per image that they reach."""

    layers: tuple[str, ...]
    score: float


@dataclass(frozen=True)
class LayerSearch:
    """What a search found.

    Attributes
    ----------
    best : tuple of str
        The layers of the best score; of equals the fewest, then the first in the network.
    score : float
        Their PCK per image on the pairs that were searched on, which is more than to expect on
        others: it is a maximum.
    history : tuple of tuples of ScoredLayers
        The layers that were kept for one layer, for two, and so on, best first.
    """

    best: tuple[str, ...]
    score: float
    history: tuple[tuple[ScoredLayers, ...], ...]


def search_layers(
    pairs: PairSet,
    matcher: Matcher,
    *,
    beam: int = 4,
    most: int = 8,
    threshold: float = 0.1,
    store: str | os.PathLike[str] | Store | None = None,
    progress: bool = False,
) -> LayerSearch:
    r"""Search for the layers that match labelled pairs best, as hyperpixel flow does.

    Every single layer is tried; the `beam` best are kept and joined by every other layer, the
    `beam` best of those are kept, and so on up to `most` layers. It takes about
    :math:`L\,(1 + \mathrm{beam}\,(\mathrm{most} - 1))` solves a pair. A choice is scored exactly as
    ``matcher.with_layers(choice)`` scores. Features are extracted once a photograph and held in
    memory; the products of each layer are computed once a pair and round, whatever the number of
    choices.

    Parameters
    ----------
    pairs : PairSet
        With points, other than those that the choice is then judged on.
    matcher : Matcher
        Of any method; "hpf", "scot", "ot", "uniform" and "nn" are those that need such a choice.
    beam, most : int
        Choices kept in each round, and layers at most.
    threshold : float
        Of the PCK.
    store : path, optional
        An SQLite file in which every pair is kept as it is finished, so that the same call goes on
        where one was stopped.
    progress : bool
        Whether to show a bar; lines where stderr is no terminal.

    Returns
    -------
    LayerSearch
        ``matcher.with_layers(found.best)`` is the matcher that was looked for.

    Examples
    --------
    >>> from pathlib import Path
    >>> from skimage.data import data_dir
    >>> cat, points = Path(data_dir, "chelsea.png"), np.array([[220.0, 100.0]])
    >>> pairs = PairSet("cats", (Pair("cat", cat, cat, points, points, "cat", 100.0),))
    >>> search_layers(pairs, Matcher(side=96, method="nn"), beam=1, most=2)
    LayerSearch(best=('block_0',), score=1.0, history=...)
    """
    beam, most = check_count(beam, "beam"), check_count(most, "most")
    _check(pairs, threshold)
    names = matcher.backbone.layers
    rounds = min(most, len(names))
    effort = float(len(pairs) * len(names) * (1 + (rounds - 1) * beam))
    kept: list[tuple[int, ...]] = [()]
    history = []
    with (
        _scoring(pairs, matcher, threshold, store) as score,
        counting_bar("layer search", rounds * len(pairs), effort, enabled=progress) as show,
    ):
        for _ in range(rounds):
            choices = sorted(
                {
                    tuple(sorted((*old, k)))
                    for old in kept
                    for k in range(len(names))
                    if k not in old
                }
            )
            scores = score(choices, partial(_chosen_features, matcher, choices), show)
            # Stable: of equal choices the first in the network stays first.
            order = np.argsort(-scores, kind="stable")[:beam]
            kept = [choices[i] for i in order]
            history.append(
                tuple(
                    ScoredLayers(tuple(names[k] for k in choices[i]), float(scores[i]))
                    for i in order
                )
            )
    # Of equals max() takes the first, which has the fewest layers.
    best = max((found[0] for found in history), key=lambda found: found.score)
    return LayerSearch(best.layers, best.score, tuple(history))


def best_layer(
    pairs: PairSet,
    matcher: Matcher,
    *,
    threshold: float = 0.1,
    store: str | os.PathLike[str] | Store | None = None,
    progress: bool = False,
) -> str:
    """Return the layer that alone matches labelled pairs best, by transport.

    Every layer is scored as ``matcher.with_settings(method="best-layer", layer=name)`` does: on the
    common grid, whatever its own.

    Parameters
    ----------
    pairs, matcher, threshold, store, progress :
        As for `search_layers`; the matcher's method does not matter.

    Returns
    -------
    str
        Its name; of equals the first in the network.

    Examples
    --------
    >>> from pathlib import Path
    >>> from skimage.data import data_dir
    >>> cat, points = Path(data_dir, "chelsea.png"), np.array([[220.0, 100.0]])
    >>> pairs = PairSet("cats", (Pair("cat", cat, cat, points, points, "cat", 100.0),))
    >>> best_layer(pairs, Matcher(side=96))
    'block_0'
    """
    _check(pairs, threshold)
    names = matcher.backbone.layers
    ways = [matcher.with_settings(method="best-layer", layer=name) for name in names]

    def joined(one: PhotoFeatures, other: PhotoFeatures) -> list[tuple[Matcher, PairFeatures]]:
        features = matcher.join(one, other)
        return [(way, features) for way in ways]

    effort = float(len(pairs) * len(names))
    with (
        _scoring(pairs, ways[0], threshold, store) as score,
        counting_bar("best layer", len(pairs), effort, enabled=progress) as show,
    ):
        return names[int(np.argmax(score(list(names), joined, show)))]


def _check(pairs: PairSet, threshold: float) -> None:
    check_number(threshold, "threshold", strict=True)
    if not len(pairs):
        raise InputError("pairs: is empty; give labelled pairs to choose layers on")
    if pairs.score != "points":
        raise InputError(f"pairs: {pairs.name} is scored by masks; give a set with points")


# From two photographs' features to a matcher and its features for each choice.
Ways = Callable[[PhotoFeatures, PhotoFeatures], Iterable[tuple[Matcher, PairFeatures]]]
# What a bar is told: how many pairs are done, and how much work they were.
Show = Callable[[int, float], None]


@contextmanager
def _scoring(
    pairs: PairSet, matcher: Matcher, threshold: float, store: Any
) -> Iterator[Callable[[Sequence[Any], Ways, Show], np.ndarray]]:
    """Yield what scores choices; every pair is kept as it is finished.

    In a store of the caller's, or one by its path.
    """
    from importlib.metadata import version

    # What a pair's scores depend on besides the choices.
    about = {
        "matcher": matcher.fingerprint,
        "pairs": pairs.fingerprint,
        "threshold": threshold,
        "version": version("frot"),
    }
    kept = store if isinstance(store, Store) else Store(store, "a layer search", {})
    features = cache(matcher.features)

    def scores(choices: Sequence[Any], ways: Ways, show: Show) -> np.ndarray:
        work = fingerprint(**about, choices=list(choices))
        known = kept.finished(work)
        for pair in pairs:
            if pair.id not in known:
                tried = ways(features(pair.source), features(pair.target))
                errors = [_errors(way, found, pair) for way, found in tried]
                known[pair.id] = np.array([pck([one], threshold).value for one in errors])
                kept.add(pair.id, known[pair.id], work)
            show(1, float(len(choices)))
        # Sums of the same hits in another order are equal, not a rounding apart.
        return np.round(np.mean([known[pair.id] for pair in pairs], axis=0), 12)

    try:
        yield scores
    finally:
        if kept is not store:
            kept.close()


def _chosen_features(
    matcher: Matcher, choices: Sequence[tuple[int, ...]], one: PhotoFeatures, other: PhotoFeatures
) -> Iterator[tuple[Matcher, PairFeatures]]:
    """Yield a matcher with each choice of layers, and its features, from shared products."""
    # Which cells are matched depends on the choice; those with the same share their products.
    tables: dict[tuple[object, ...], LayerTable] = {}
    for chosen in choices:
        source, grid_of = matcher.with_cells([one.maps[k] for k in chosen])
        target, _ = matcher.with_cells([other.maps[k] for k in chosen])
        ends, first = (source[grid_of], target[grid_of]), chosen[grid_of]
        # A layer that was brought to a coarser grid is another layer.
        own = ends[0] is one.maps[first] and ends[1] is other.maps[first]
        cells = (None if own else first, *(end.values.shape[1:] for end in ends))
        if cells not in tables:
            sides = _put(one.maps, first, ends[0]), _put(other.maps, first, ends[1])
            tables[cells] = LayerTable(*sides, first, matcher.device)
        # Photographs have the chosen layers alone, as they have if the way looks at them again.
        left, right = (
            replace(photo, maps=tuple(photo.maps[k] for k in chosen)) for photo in (one, other)
        )
        way = matcher.with_layers(chosen)
        yield way, way.join(left, right, tables[cells].only(chosen, grid_of))


def _put(maps: tuple[FeatureMap, ...], place: int, one: FeatureMap) -> tuple[FeatureMap, ...]:
    return (*maps[:place], one, *maps[place + 1 :])


def _errors(way: Matcher, features: PairFeatures, pair: Pair) -> np.ndarray:
    # What stops at its limit is scored as it is.
    with collect_warnings():
        return way.errors(features, way.solve(features), pair)
