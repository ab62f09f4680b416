"""What the experiment on matches scores: the sets that are there, and the rows of its tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from _match_methods import MaxMin, SubspaceRobust
from _pairs import Network, Row, balanced, network_matcher, pair_count, prepare
from _runner import Run, say
from frot._base.errors import InputError
from frot.correspondence import (
    PairSet,
    default_backbone,
    load_pairs,
)
from frot.datasets.catalogue import folders
from weights import find_weights

# The paper's: eta, directions of SRW on the last layer, and how many last layers it has else.
ETAS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 2.0, 3.0, 4.0, 5.0)
RANKS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
LAST = (3, 4, 5)
# Labels: the paper's FROT is a whole preset; others have the pipeline of this library's default.
FROT, OURS = "FROT eta=0.3", "FROT, this library's default"
MEAN = "OT, mean of layers (default's pipeline)"
STEPS = "FROT eta=0.3, three steps (default's pipeline)"
# SRW and the search take a pair in so many, unless all are asked for; the search SEARCHED_ON at
# most, and adds up to MOST layers.
ONE_IN, SEARCHED_ON, MOST = 4, 8, 4
# As torchvision calls its files.
RESNET101 = ("resnet101-63fe2227.pth", "resnet101-cd907fc2.pth", "resnet101-5d3b4d8f.pth")


@dataclass(frozen=True)
class Scored:
    """Pairs that are scored, what sees them, and the ways in which they are matched."""

    pairs: PairSet
    network: Network
    rows: dict[str, Row]


def scored(
    pairs: PairSet, network: Network, layers: Mapping[str, tuple[str, ...]], first: int
) -> Scored:
    """Return the rows for a network whose layer number `first` has the cells that are matched."""

    def paper(*layers: int, **settings: Any) -> Row:
        return Row("frot-paper", layers or None, settings)

    count = len(network_matcher(network, "frot-paper").backbone.layers)
    rows = {
        "OT": paper(method="ot"),
        "HPF": Row("hpf", layers.get("hpf")),
        "OT-HPF": Row("scot", layers.get("scot")),
        "max-min": paper(method=MaxMin()),
        MEAN: Row(settings={"method": "uniform"}),
        STEPS: Row(settings={"prior": "uniform", "steps": 3, "eta": 0.3}),
        OURS: Row(),
    }
    rows |= {f"FROT eta={eta:.1f}": paper(eta=eta) for eta in ETAS}
    # Layers are counted from 1, as in the paper.
    for k in RANKS:
        label = f"SRW k={k} T=10 layers {count}"
        rows[label] = paper(count - 1, method=SubspaceRobust(k, 10))
    for last in LAST:
        label = f"SRW k=50 T=3 layers {first + 1}, {count - last + 1}-{count}"
        rows[label] = paper(first, *range(count - last, count), method=SubspaceRobust(50, 3))
    return Scored(pairs, network, rows)


class Search(NamedTuple):
    """A search for the layers of a preset."""

    network: Network
    preset: str
    cars: PairSet


def search(task: Search) -> list[str]:
    """Return the layers that match cars best, as HPF and OT-HPF choose theirs."""
    matcher = network_matcher(task.network, task.preset)
    # Two bars would overwrite each other, lines do not.
    progress = not sys.stderr.isatty()
    strength = (matcher.settings.agreement,)
    return list(matcher.tune(task.cars, most=MOST, agreements=strength, progress=progress).layers)


def searched(run: Run, network: Network, willow: PairSet) -> dict[str, tuple[str, ...]]:
    """Return the layers of the presets "hpf" and "scot"."""
    count = pair_count(run.options.pairs)
    count = SEARCHED_ON if count is None else min(SEARCHED_ON, max(2, count // ONE_IN))
    cars = balanced(
        willow.only([name for name in willow.categories if is_car(name)]), count, run.seed
    )
    tasks = {preset: Search(network, preset, cars) for preset in ("hpf", "scot")}
    ways = [network_matcher(network, preset).fingerprint for preset in tasks]
    depends = [ways, cars.fingerprint, MOST]
    found = run.pieces("layer searches", tasks, search, depends=depends, prepare=prepare)
    run.note(
        f"Layers were searched on {count} pairs of cars ({MOST} layers "
        f"at most). HPF: {', '.join(found['hpf'])}; OT-HPF: {', '.join(found['scot'])}."
    )
    return {preset: tuple(layers) for preset, layers in found.items()}


def is_car(category: str) -> bool:
    return category.startswith("car")


def find_pairs(options: Any) -> tuple[dict[str, PairSet], list[str]]:
    """Return the sets that are there, and for each of the others why it is left out."""
    pair_count(options.pairs)
    # It says so where torch or the network is not there.
    default_backbone()
    found, absent = {}, []
    for name in ("spair", "pf-willow", "birds"):
        try:
            found[name] = load_pairs(name, options.data)
            if name == "spair":
                find_resnet101(options)
        except InputError as error:
            found.pop(name, None)
            absent.append(f"{name} is left out. {error}")
    if not found:
        raise InputError(" ".join(absent))
    return found, absent


def find_resnet101(options: Any) -> Path:
    """Return the path of ResNet-101's weights, or say where they were looked for."""
    named = options.resnet101
    known = [named] if named else [find_weights(name, options.data) for name in RESNET101]
    for path in known:
        if path is not None and path.is_file():
            return path
    places = ", ".join(map(str, known if named else folders(options.data)))
    raise InputError(
        f"resnet101: no weights in {places}; put torchvision's {RESNET101[1]} into a folder "
        "weights there, or pass --resnet101 FILE"
    )


def find_sets(run: Run) -> list[Scored]:
    """Return what is scored: the sets that are there, each with its rows."""
    found, absent = find_pairs(run.options)
    for reason in absent:
        run.note(reason)
        say(f"correspondence: {reason}")
    sets, layers, lite = [], {}, Network(side=run.options.side)
    if "spair" in found:
        network = Network(
            "torchvision:resnet101", find_resnet101(run.options), side=run.options.side
        )
        sets.append(scored(found["spair"], network, {}, first=0))
        run.note(
            "On SPair-71k HPF and OT-HPF have their published layers; rows (paper) are its table's."
        )
    if "pf-willow" in found:
        willow = found["pf-willow"]
        layers = searched(run, lite, willow)
        # Neither layers nor this library's settings were chosen on the others.
        others = willow.only([name for name in willow.categories if not is_car(name)])
        # The very first layer of this network has four times as many cells as a ResNet's.
        sets.append(scored(others, lite, layers, first=1))
    if "birds" in found:
        if not layers:
            run.note("HPF and OT-HPF have all layers: PF-WILLOW, to search on, is not there.")
        sets.append(scored(found["birds"], lite, layers, first=1))
    return sets
