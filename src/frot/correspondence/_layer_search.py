"""Which layers to take, for methods that need to be told: hyperpixel flow's beam search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from frot._base.errors import InputError, hearing
from frot._base.validate import check_number
from frot.correspondence._features import FeatureMap
from frot.correspondence._matcher import Matcher
from frot.correspondence._score import pck
from frot.correspondence.datasets import PairSet
from frot.correspondence.datasets.pair_set import Pair
from frot.correspondence.layers import LayerTable, PairFeatures, PhotoFeatures
from frot.solvers.progress import counting_bar

__all__ = ["LayerSearch", "ScoredLayers", "best_layer", "search_layers"]

# Called with the pairs done and the solves that took.
Show = Callable[[int, float], None]


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
    progress : bool
        Whether to show a bar.

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
    for value, name in ((beam, "beam"), (most, "most")):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name}: must be a whole number >= 1, got {value!r}")
    _check(pairs, threshold)
    names = matcher.backbone.layers
    rounds = min(most, len(names))
    effort = float(len(pairs) * len(names) * (1 + (rounds - 1) * beam))
    seen = _photos(pairs, matcher)
    kept: list[tuple[int, ...]] = [()]
    history = []
    with counting_bar("pairs", rounds * len(pairs), effort, enabled=progress) as show:
        for _ in range(rounds):
            choices = sorted(
                {
                    tuple(sorted((*old, k)))
                    for old in kept
                    for k in range(len(names))
                    if k not in old
                }
            )

            def tried(pair: Pair, choices: Any = choices) -> list[np.ndarray]:
                photos = seen[str(pair.source)], seen[str(pair.target)]
                return [
                    _errors(way, found, pair)
                    for way, found in _chosen_features(matcher, *photos, choices)
                ]

            scores = _scores(pairs, tried, threshold, show)
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
    pairs: PairSet, matcher: Matcher, *, threshold: float = 0.1, progress: bool = False
) -> str:
    """Return the layer that alone matches labelled pairs best, by transport.

    Every layer is scored exactly as ``matcher.having(method="best-layer", layer=name)`` scores:
    on the common grid, whatever its own.

    Parameters
    ----------
    pairs, matcher, threshold, progress :
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
    ways = [matcher.having(method="best-layer", layer=name) for name in names]
    seen = _photos(pairs, matcher)

    def tried(pair: Pair) -> list[np.ndarray]:
        one, other = seen[str(pair.source)], seen[str(pair.target)]
        features = matcher.join(one, other)
        return [_errors(way, features, pair) for way in ways]

    effort = float(len(pairs) * len(names))
    with counting_bar("pairs", len(pairs), effort, enabled=progress) as show:
        return names[int(np.argmax(_scores(pairs, tried, threshold, show)))]


def _check(pairs: PairSet, threshold: float) -> None:
    check_number(threshold, "threshold", strict=True)
    if not len(pairs):
        raise InputError("pairs: is empty; give labelled pairs to choose layers on")
    if pairs.score != "points":
        raise InputError(f"pairs: {pairs.name} is scored by masks; give a set with points")


def _photos(pairs: PairSet, matcher: Matcher) -> dict[str, PhotoFeatures]:
    """Features of all photographs, by path."""
    paths = dict.fromkeys(str(path) for pair in pairs for path in (pair.source, pair.target))
    return {path: matcher.features(path) for path in paths}


def _scores(
    pairs: PairSet, tried: Callable[[Pair], list[np.ndarray]], threshold: float, show: Show
) -> np.ndarray:
    """Return the PCK of every choice; `tried` gives their errors on a pair."""
    errors = []
    for pair in pairs:
        errors.append(tried(pair))
        show(1, float(len(errors[-1])))
    found = [pck(list(those), threshold).value for those in zip(*errors, strict=True)]
    # Sums of the same hits in another order are equal, not a rounding apart.
    return np.round(found, 12)


def _chosen_features(
    matcher: Matcher, one: PhotoFeatures, other: PhotoFeatures, choices: Sequence[tuple[int, ...]]
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
        way = matcher.with_layers(chosen)
        yield way, way.join(one, other, tables[cells].only(chosen, grid_of))


def _put(maps: tuple[FeatureMap, ...], place: int, one: FeatureMap) -> tuple[FeatureMap, ...]:
    return (*maps[:place], one, *maps[place + 1 :])


def _errors(way: Matcher, features: PairFeatures, pair: Pair) -> np.ndarray:
    # What stops at its limit is scored as it is.
    with hearing():
        return way.errors(features, way.solve(features), pair)
