"""The layers that methods which need to be told are told: picked with the labels of car pairs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from frot._files import make_folder, replacing
from frot._fingerprint import fingerprint
from frot._reproduce._correspondence_choices import CHOICES, PICKED, SEARCHED
from frot._reproduce._pair_runs import Choice
from frot.correspondence import Matcher, PairSet, best_layer, search_layers

__all__ = ["with_picks"]

# Car pairs at most, spread over the folders, that single layers are picked on, and sets of layers
# searched on, which takes ten times as long.
PICKED_ON, SEARCHED_ON = 30, 20
# Hyperpixel flow's search: choices that are kept, and layers at most.
BEAM, MOST = 4, 6


def with_picks(
    name: str, matcher: Matcher, pairs: PairSet, folder: Path | None = None, most: int = PICKED_ON
) -> dict[str, Choice]:
    """Return all choices, those that need layers with the ones that are best on cars.

    Parameters
    ----------
    name : str
        Of the network, for the files.
    matcher : Matcher
        With the network.
    pairs : PairSet
        All pairs; those of cars are taken.
    folder : path, optional
        Where what was picked is kept: it takes minutes to find.
    most : int
        Pairs of cars at most.
    """
    categories = [category for category in pairs.counts if category.startswith("car")]
    cars = pairs.only(categories)
    found = dict(CHOICES)
    for key in (PICKED, *SEARCHED):
        choice = CHOICES[key]
        # Alone a layer is judged by its transport; the others are meant with Hough matching.
        way = choice.of(matcher).having(hough=key != PICKED)
        pick, count = (_alone, PICKED_ON) if key == PICKED else (_searched, SEARCHED_ON)
        layers = _kept(way, cars.first(min(most, count)), folder, f"{name}-{key}", pick)
        picked = {"layer": layers[0]} if key == PICKED else {"layers": layers}
        found[key] = Choice(choice.label, choice.method, {**choice.overrides, **picked})
    return found


def _alone(cars: PairSet, way: Matcher) -> tuple[str, ...]:
    return (best_layer(cars, way),)


def _searched(cars: PairSet, way: Matcher) -> tuple[str, ...]:
    return search_layers(cars, way, beam=BEAM, most=MOST).best


def _kept(
    way: Matcher,
    cars: PairSet,
    folder: Path | None,
    name: str,
    pick: Callable[[PairSet, Matcher], tuple[str, ...]],
) -> tuple[str, ...]:
    """What was picked before, or is picked now and kept."""
    if folder is None:
        return pick(cars, way)
    about = fingerprint(matcher=way.fingerprint, cars=cars.fingerprint, search=(BEAM, MOST))[:16]
    path = make_folder(folder) / f"{name}-layers-{about}.txt"
    if path.is_file():
        layers = tuple(path.read_text("utf-8").split())
        if layers and set(layers) <= set(way.backbone.layers):
            return layers
    layers = pick(cars, way)
    with replacing(path) as draft:
        draft.write_text("\n".join(layers) + "\n", "utf-8")
    return layers
