from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import frot
from frot.correspondence import Matcher, NoisyBackbone, Pair, PairSet, TorchBackbone, tune
from tests.correspondence.small import SIDE, cat, convolutions, places

MOVES = (0, 8, 16, 24)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Photographs that are moved, and points that move with them."""
    folder = tmp_path_factory.mktemp("pairs")
    found = []
    for number, move in enumerate(MOVES):
        paths = [folder / f"{number}_{name}.png" for name in "ab"]
        for path, x in zip(paths, (60, 60 + move), strict=True):
            Image.fromarray((255 * cat(x=x)).astype(np.uint8)).save(path)
        points = places(border=32)
        moved = points - np.array([float(move), 0.0])
        kept = (moved >= 0.0).all(axis=1)
        found.append(Pair(str(number), paths[0], paths[1], points[kept], moved[kept], "cat", 60.0))
    return PairSet("cats", tuple(found))


def noisy(count=6) -> Any:
    """Real layers are drowned by layers of noise."""
    backbone = NoisyBackbone(TorchBackbone(convolutions()), count)
    options: Any = {"method": "uniform", "agreement": 0.0, "transfer": "argmax"}
    return Matcher(backbone, side=SIDE, device="cpu", centres="nominal", **options)


def test_layers_that_help_are_chosen_and_what_they_bring_is_estimated(pairs):
    matcher = noisy()
    found = matcher.tune(pairs, most=2, agreements=(0.0,), folds=4)
    assert found.better
    assert found.gain.count == len(pairs)
    assert found.gain.value > found.gain.standard_error
    assert not any(name.startswith("noise") for name in found.layers)
    assert 1 <= len(found.layers) <= 2
    assert found.matcher.backbone.layers == found.layers
    assert f"+{100 * found.gain.value:.1f}" in repr(found)
    assert all(name in repr(found) for name in found.layers)


def test_where_nothing_is_gained_the_matcher_stays(pairs):
    matcher = noisy(1).with_layers([0])
    found = matcher.tune(pairs, most=1, agreements=(0.0,))
    assert not found.better
    assert found.matcher is matcher
    assert repr(found).startswith("Tuned(nothing gained: +0.0 ± 0.0")


def test_held_out_pairs_are_not_looked_at(pairs, monkeypatch):
    seen = []
    search = tune._search
    monkeypatch.setattr(tune, "_search", lambda *args: seen.append(args[1]) or search(*args))
    noisy(1).tune(pairs, most=1, agreements=(0.0,), folds=2)
    assert seen == [[0, 1, 2, 3], [2, 3], [0, 1]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"most": 0}, "most: must be a whole number >= 1"),
        ({"beam": "x"}, "beam: 'x' is not a number"),
        ({"folds": 1}, "folds: must be a whole number >= 2"),
        ({"threshold": 0.0}, "threshold: must be finite and > 0"),
    ],
)
def test_bad_options(pairs, change, said):
    with pytest.raises(frot.InputError, match=said):
        noisy(1).tune(pairs, **change)


def test_pairs_that_cannot_be_tuned_on(pairs):
    for given, said in (
        (3, "pairs: is a int; use load_pairs"),
        (replace(pairs, pairs=pairs.pairs[:1]), "pairs: 1 are too few"),
        (replace(pairs, score="masks"), "is scored by masks; give a set with points"),
    ):
        with pytest.raises(frot.InputError, match=said):
            noisy(1).tune(given)
