import numpy as np
import pytest

from frot._errors import InputError
from frot.correspondence import Matcher, PairSet, pck, point_errors
from frot.correspondence._layer_search import best_layer, search_layers
from frot.correspondence._layer_table import LayerTable
from frot.correspondence._layers import LayerPair
from tests.correspondence import planted
from tests.correspondence.layers import TARGET, random_maps

SIDE = 96


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return planted.pairs(tmp_path_factory.mktemp("willow"))


def matcher(method, backbone=None, **options):
    return Matcher(
        backbone or planted.Planted(), method=method, hough=False, side=SIDE, stride=4, **options
    )


def score(way, pairs):
    errors = [
        point_errors(
            way(pair.source, pair.target).transfer(pair.source_points).points,
            pair.target_points,
            pair.length,
        )
        for pair in pairs
    ]
    return pck(errors).value


@pytest.mark.parametrize("method", ["nn", "hpf"])
def test_the_layers_that_know_something_are_found(pairs, method):
    backbone = planted.Planted()
    found = search_layers(pairs, matcher(method, backbone), most=3)
    assert found.best == ("x", "y")
    # One coordinate alone leaves the other to chance.
    assert found.score > found.history[0][0].score + 0.2
    assert [len(kept[0].layers) for kept in found.history] == [1, 2, 3]
    assert [len(kept) for kept in found.history] == [4, 4, 4]
    assert sorted(backbone.extracted) == sorted({path.name for p in pairs for path in (p.source,)})


@pytest.mark.parametrize("method", ["uniform", "scot", "ot", "hpf", "nn"])
def test_scores_are_those_of_a_matcher_with_these_layers(pairs, method):
    some = pairs.first(2)
    layers = ("noise_a", "x_coarse", "y", "noise_b_coarse")
    way = matcher(method, planted.Planted(layers))
    found = search_layers(some, way, beam=2, most=2)
    for kept in found.history:
        for one in kept:
            fresh = matcher(method, planted.Planted(layers), layers=one.layers)
            assert score(fresh, some) == pytest.approx(one.score)
            assert score(way.with_layers(one.layers), some) == pytest.approx(one.score)


def test_a_narrow_beam_is_a_greedy_search(pairs):
    found = search_layers(pairs, matcher("nn"), beam=1, most=2)
    (first,), (second,) = found.history
    assert set(first.layers) < set(second.layers)
    assert found == search_layers(pairs, matcher("nn"), beam=1, most=2)


def test_more_layers_than_there_are_is_all_of_them(pairs):
    found = search_layers(pairs.first(1), matcher("nn", planted.Planted(("x", "y"))), most=9)
    assert len(found.history) == 2


def test_the_best_single_layer(pairs):
    layers = ("noise_a", "noise_b", "x", "noise_c")
    way = matcher("frot", planted.Planted(layers))
    assert best_layer(pairs, way) == "x"
    single = way.having(method="best-layer", layer="x")
    assert score(single, pairs) > score(way.having(method="best-layer", layer="noise_a"), pairs)


def test_bad_input(pairs):
    way = matcher("nn")
    with pytest.raises(InputError, match="beam: must be a whole number >= 1, got 0"):
        search_layers(pairs, way, beam=0)
    with pytest.raises(InputError, match="most: must be"):
        search_layers(pairs, way, most=1.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="threshold"):
        search_layers(pairs, way, threshold=0.0)
    with pytest.raises(InputError, match="pairs: is empty"):
        best_layer(PairSet("none", ()), way)
    with pytest.raises(InputError, match="scored by masks"):
        best_layer(PairSet("masks", pairs.pairs, score="masks"), way)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_layers_of_a_table_are_those_alone(device):
    source, target = tuple(random_maps(seed=0)), tuple(random_maps(TARGET, seed=1))
    table = LayerTable(LayerPair(source, target, 1, device))
    chosen = (1, 3, 6)
    some = table.only(chosen, 0)
    alone = LayerPair(tuple(source[k] for k in chosen), tuple(target[k] for k in chosen), 0, device)
    alpha = np.array([0.2, 0.5, 0.3])
    for ours, theirs in (
        (some.mixed(alpha), alone.mixed(alpha)),
        (some.concatenated, alone.concatenated),
        (some.norms[0], alone.norms[0]),
        (some.norms[1], alone.norms[1]),
    ):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), atol=2e-5)
    plan = np.random.default_rng(0).dirichlet(np.ones(63 * 88)).reshape(63, 88)
    plan = some.home.bring(plan)[None]
    np.testing.assert_allclose(
        np.asarray(some.costs.inner(plan)), np.asarray(alone.costs.inner(plan)), atol=2e-5
    )
