import numpy as np
import pytest

from frot._base.errors import InputError
from frot.correspondence import (
    Matcher,
    PairSet,
    TorchBackbone,
    _layer_search,
    pck,
    point_errors,
)
from frot.correspondence._layer_search import _chosen_features, best_layer, search_layers
from frot.correspondence.layers import LayerPair, LayerTable
from tests.correspondence import planted
from tests.correspondence.layers import TARGET, random_maps
from tests.correspondence.small import cat, convolutions

SIDE = 96


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return planted.pairs(tmp_path_factory.mktemp("willow"))


def matcher(method, backbone=None, **options):
    return Matcher(
        backbone or planted.Planted(), method=method, hough=False, side=SIDE,
        **{"stride": 4, **options},
    )  # fmt: skip


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


@pytest.mark.parametrize(
    ("method", "stride"),
    [("uniform", 4), ("scot", "first"), ("ot", 8), ("hpf", 4), ("nn", 8), ("frot", 8)],
)
def test_choices_are_matched_as_by_a_matcher_with_these_layers(pairs, method, stride):
    pair = pairs.pairs[0]
    layers = ("noise_a", "x_coarse", "y", "noise_b_coarse")
    # Fine layers alone are brought to the stride that is asked for.
    way = matcher(method, planted.Planted(layers), stride=stride)
    photos = way.features(pair.source), way.features(pair.target)
    choices = [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 3), (0, 1, 2, 3)]
    for chosen, (some, features) in zip(
        choices, _chosen_features(way, choices, *photos), strict=True
    ):
        names = tuple(layers[k] for k in chosen)
        assert some.backbone.layers == features.layers.names == names
        found = some.match(features, some.solve(features))
        fresh = matcher(method, planted.Planted(layers), layers=names, stride=stride)
        alone = fresh(pair.source, pair.target)
        assert found.source_grid == alone.source_grid
        assert found.target_grid == alone.target_grid
        np.testing.assert_allclose(found.scores, alone.scores, rtol=1e-3, atol=1e-3)
        again = way.with_layers(names)(pair.source, pair.target)
        np.testing.assert_allclose(again.scores, alone.scores, rtol=1e-6, atol=1e-7)


def test_fine_layers_alone_match_no_more_cells_than_asked_for(pairs):
    pair = pairs.pairs[0]
    match = matcher("nn", planted.Planted(("x", "y")), stride=8)(pair.source, pair.target)
    assert (match.source_grid.h, match.source_grid.w, match.source_grid.stride) == (9, 12, 8)
    own = matcher("nn", planted.Planted(("x", "y")), stride=4)(pair.source, pair.target)
    assert (own.source_grid.h, own.source_grid.w) == (18, 24)


def test_a_search_that_was_stopped_goes_on(pairs, tmp_path, monkeypatch, capsys):
    pairs = pairs.first(3)
    whole = search_layers(pairs, matcher("nn"), most=2)
    real, calls = _layer_search._errors, []

    def counted(*given):
        if len(calls) == stop:
            raise KeyboardInterrupt
        calls.append(given)
        return real(*given)

    monkeypatch.setattr(_layer_search, "_errors", counted)
    stop = 2 * len(planted.Planted().layers) + 1  # in the third pair
    store = tmp_path / "search.sqlite"
    with pytest.raises(KeyboardInterrupt):
        search_layers(pairs, matcher("nn"), most=2, store=store, progress=True)
    assert f"layer search: 2/{2 * len(pairs)}, " in capsys.readouterr().err
    done, stop = len(calls), -1
    again = search_layers(pairs, matcher("nn"), most=2, store=store)
    assert again == whole
    # Two pairs of the first round were there.
    first = len(pairs) * len(planted.Planted().layers)
    assert first - 2 * len(planted.Planted().layers) <= len(calls) - done
    calls.clear()
    assert search_layers(pairs, matcher("nn"), most=2, store=store) == whole
    assert calls == []
    assert search_layers(pairs, matcher("hpf"), most=1, store=store).best
    assert len(calls) == first
    calls.clear()
    found = [best_layer(pairs.first(1), matcher("ot"), store=store) for _ in range(2)]
    assert found[0] == found[1]
    assert len(calls) == len(planted.Planted().layers)


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
    single = way.with_settings(method="best-layer", layer="x")
    assert score(single, pairs) > score(
        way.with_settings(method="best-layer", layer="noise_a"), pairs
    )


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
    table = LayerTable(source, target, 1, device)
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


def test_choices_are_looked_at_a_second_time_with_their_own_layers():
    way = Matcher(TorchBackbone(convolutions()), side=SIDE, device="cpu")
    one, other = cat(h=SIDE, w=SIDE), np.ascontiguousarray(cat(h=SIDE, w=SIDE)[:, ::-1])
    choices = [(0, 1), (1, 3), (0, 1, 2, 3)]
    found = _chosen_features(way, choices, way.features(one), way.features(other))
    for chosen, (some, features) in zip(choices, found, strict=True):
        match = some.match(features, some.solve(features))
        alone = Matcher(TorchBackbone(convolutions()), layers=chosen, side=SIDE, device="cpu")
        expected = alone(one, other)
        assert len(match.looks) == 2
        assert match.looks == pytest.approx(expected.looks, abs=1e-2)
        np.testing.assert_allclose(match.scores, expected.scores, rtol=1e-2, atol=1e-2)
