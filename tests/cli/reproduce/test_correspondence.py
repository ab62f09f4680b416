import json

import numpy as np
import pytest

import frot
from frot._base.errors import InputError
from frot.cli.reproduce import correspondence as module
from frot.cli.reproduce import pairs as pairs_module
from frot.cli.reproduce.correspondence import correspondence, score_rows
from frot.cli.reproduce.experiment import open_store
from frot.cli.reproduce.pairs import (
    CHOICES,
    PICKED,
    READINGS,
    SEARCHED,
    Choice,
    Runs,
    match_pair,
)
from frot.correspondence import Matcher, load_pairs, pf_willow
from tests.correspondence import generated, planted

LAYERS = ("x", "y", "noise_of_its_own")
ETAS = (0.2, 1.0, 5.0)
SWEEP = {
    key: choice for key, choice in pairs_module.SWEEP.items() if choice.overrides["eta"] in ETAS
}
RARE = ("max-min", "srw", *SWEEP)


@pytest.fixture(scope="module")
def willow(tmp_path_factory):
    return generated.pf_willow(tmp_path_factory.mktemp("willow"), ("car(G)", "duck(S)"))


@pytest.fixture(scope="module")
def data(tmp_path_factory, willow):
    root = tmp_path_factory.mktemp("data")
    (root / "pf-willow").symlink_to(willow)
    (root / "birds").mkdir()
    generated.birds(root / "birds")
    return root


@pytest.fixture
def small(monkeypatch):
    """A network that knows the answer, on small grids; what it extracted is counted."""
    backbone = planted.Planted(LAYERS)
    matcher = Matcher(backbone, side=64, stride=4)
    for place in (module, pairs_module):
        monkeypatch.setattr(place, "matcher_of", lambda name: matcher)
    # Three eta are enough.
    monkeypatch.setattr(module, "ETAS", ETAS)
    monkeypatch.setattr(pairs_module, "SWEEP", SWEEP)
    monkeypatch.setattr(pairs_module, "RARE", RARE)
    monkeypatch.setattr(pairs_module, "EVERY", 2)
    return backbone


def test_all_methods_on_all_pairs_with_tables_pictures_and_verdicts(small, data, tmp_path):
    made = correspondence(["planted"], 4, data=data, folder=tmp_path / "kept")
    rows = made.numbers["scores"]
    assert {row["choice"] for row in rows} == {*CHOICES, *SWEEP}
    parts = {row["pairs_of"]: row["pairs"] for row in rows if row["choice"] == "frot"}
    assert parts == {"all 4 pairs": 4, "2 pairs without cars": 2, "4 pairs of birds": 4}
    by = {
        (row["choice"], row["transfer"], row["hough"]): row
        for row in rows
        if row["pairs_of"] == "all 4 pairs"
    }
    assert len(by) == len([*CHOICES, *SWEEP]) * len(READINGS)
    plain = {name: by[name, "near", False] for name in ("uniform", "nn", "frot")}
    assert plain["uniform"]["pck"] != plain["nn"]["pck"]
    for row in plain.values():
        assert row["difference"] == pytest.approx(row["pck"] - plain["uniform"]["pck"])
    assert by["frot", "median", False]["pairs"] == 4
    # Indices 0 and 2.
    assert all(by[name, "near", True]["pairs"] == 2 for name in RARE)
    assert by["frot", "median", False]["pck"] > by["nn", "near", False]["pck"]
    about = made.numbers["networks"]["pf-willow"]["planted"]
    assert about["best_layer"] in ("x", "y")
    assert sum(about["alpha"]["frot"]) == pytest.approx(1.0)
    assert about["alpha"][PICKED][LAYERS.index(about["best_layer"])] == 1.0
    assert about["alpha"]["frot"][2] < 0.05
    # A search that has labels does not take the layer of noise, and only what it takes is used.
    for key in SEARCHED:
        searched = about["searched_layers"][key]
        assert searched
        assert set(searched) <= {"x", "y"}
        alpha = dict(zip(LAYERS, about["alpha"][key], strict=True))
        assert [layer for layer in LAYERS if alpha[layer] > 0.0] == searched

    paths = made.write(tmp_path / "out")
    assert [path.name for path in paths] == [
        "correspondence.png", "correspondence.json", "correspondence.md",
        "correspondence-birds.png", "correspondence-layers-pf-willow.png",
        "correspondence-layers-birds.png", "correspondence-matches.png",
    ]  # fmt: skip
    content = json.loads(paths[1].read_text(encoding="utf-8"))
    assert [verdict["figure"] for verdict in content["verdicts"]] == [
        "FROT", "picked", "prior", "labels", "searched", "layers", "eta"
    ]  # fmt: skip
    table = paths[2].read_text(encoding="utf-8")
    assert "| FROT, coherence prior (default) |" in table
    assert "; 2 pairs)" in table
    assert [axes.get_title() for axes in made.draw().axes] == ["planted"]
    swept = next(one for one in made.tables if one.title.startswith("Over eta, 2 pairs"))
    assert [line[0] for line in swept.rows] == [f"{eta:g}" for eta in ETAS]
    # Of the optimum this is a theorem; three steps may end anywhere.
    used = [float(line[2].split(";")[0]) for line in swept.rows]
    assert used == sorted(used)
    assert used[0] < used[-1]
    weights, scores = made.more["layers-pf-willow"]().axes[2:]
    assert len(weights.lines) == len(ETAS)
    # With the prior the layer of noise is never used.
    assert max(np.asarray(line.get_ydata())[2] for line in weights.lines) < 0.1
    assert np.asarray(scores.lines[0].get_xdata()).tolist() == list(ETAS)


def test_finished_pairs_are_not_matched_again(small, willow, tmp_path, monkeypatch):
    real, calls = pairs_module.match_pair, []

    def counted(matcher, pair, choices, skipped=(), most=None):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(pair.id)
        return real(matcher, pair, choices, skipped, most)

    monkeypatch.setattr(pairs_module, "match_pair", counted)
    with pytest.raises(KeyboardInterrupt):
        correspondence(["planted"], 4, data=willow, folder=tmp_path)
    first = list(calls)
    calls[:] = []
    for pick in ("best_layer", "search_layers"):  # what they picked is kept as well
        monkeypatch.setattr(pairs_module, pick, None)
    assert correspondence(["planted"], 4, data=willow, folder=tmp_path).numbers["pairs"] == {
        "pf-willow": 4
    }
    assert len(calls) == 2
    assert not set(first) & set(calls)


def test_pairs_of_another_version_are_matched_again(small, willow, tmp_path, monkeypatch):
    real, calls = pairs_module.match_pair, []

    def counted(matcher, pair, choices, skipped=(), most=None):
        calls.append(pair.id)
        return real(matcher, pair, choices, skipped, most)

    monkeypatch.setattr(pairs_module, "match_pair", counted)
    some = {key: CHOICES[key] for key in ("nn", "uniform", "frot")}
    pairs = pf_willow(willow).first(2)
    monkeypatch.setattr(pairs_module, "RARE", ())

    def go():
        calls.clear()
        with open_store(tmp_path) as kept:
            pairs_module.run_network("planted", pairs, some, kept)
        return len(calls)

    assert [go(), go()] == [2, 0]
    monkeypatch.setattr(frot, "__version__", "99.0")
    assert [go(), go()] == [2, 0]


def test_a_pair_is_what_the_matcher_alone_makes_of_it(willow):
    pair = pf_willow(willow).pairs[1]
    matcher = Matcher(planted.Planted(LAYERS), side=64, stride=4)
    some = {key: CHOICES[key] for key in ("uniform", "frot")}
    found = match_pair(matcher, pair, some, skipped=["uniform"])
    assert np.isnan(found[0]).all()
    count = len(pair.source_points)
    for r, (transfer, hough) in enumerate(READINGS):
        alone = matcher.with_settings(transfer=transfer, hough=hough)(pair.source, pair.target)
        moved = alone.transfer(pair.source_points).points
        errors = np.linalg.norm(moved - pair.target_points, axis=1) / pair.length
        assert found[1, r * count : (r + 1) * count] == pytest.approx(errors, abs=1e-6)
        assert found[1, 4 * count : -1] == pytest.approx(list(alone.alpha.values()), abs=1e-6)


@pytest.mark.parametrize("layers", [("y",), ("x", "y")])
def test_a_choice_with_some_layers_is_a_matcher_with_these(willow, layers):
    pair = pf_willow(willow).pairs[1]
    backbone = planted.Planted(LAYERS)
    matcher = Matcher(backbone, side=64, stride=4)
    found = match_pair(matcher, pair, {"some": Choice("some", "uniform", {"layers": layers})})[0]
    assert len(backbone.extracted) == 2
    count = len(pair.source_points)
    alone = Matcher(planted.Planted(LAYERS), layers=layers, side=64, stride=4, method="uniform")
    moved = alone(pair.source, pair.target).transfer(pair.source_points).points
    errors = np.linalg.norm(moved - pair.target_points, axis=1) / pair.length
    assert found[3 * count : 4 * count] == pytest.approx(errors, abs=1e-6)
    shares = [1.0 / len(layers) if layer in layers else 0.0 for layer in LAYERS]
    assert found[4 * count : -1] == pytest.approx(shares)


def test_scores_and_their_errors():
    errors = np.full((4, 2, 4, 10), 0.5)
    errors[:, 0, :, :5] = 0.05
    errors[:2, 1] = 0.05
    errors[3, 1] = np.nan
    runs = Runs("net", ("l",), ("uniform", "frot"), errors, np.ones((4, 2, 1)), np.ones((4, 2)))
    some = {key: CHOICES[key] for key in ("uniform", "frot")}
    rows = score_rows(runs, some, {"all": np.ones(4, dtype=bool)}, "uniform")
    uniform, frot = rows[0], rows[4]
    assert (uniform["pck"], uniform["pairs"], uniform["standard_error"]) == (50.0, 4, 0.0)
    assert (frot["pck"], frot["pairs"]) == (pytest.approx(200 / 3), 3)
    assert frot["difference"] == pytest.approx(50 / 3)
    assert frot["difference_standard_error"] == pytest.approx(100 / 3)


def test_pairs_with_fewer_points_than_others(data):
    pair = load_pairs("birds", data).pairs[0]
    matcher = Matcher(planted.Planted(LAYERS), side=64, stride=4)
    some = {"nn": CHOICES["nn"]}
    (own,), (filled,) = (match_pair(matcher, pair, some, most=most) for most in (None, 6))
    errors = filled[: 6 * len(READINGS)].reshape(len(READINGS), 6)
    assert np.isnan(errors[:, 4:]).all()
    assert errors[:, :4].ravel() == pytest.approx(own[: 4 * len(READINGS)])
    runs = Runs("net", LAYERS, ("nn",), errors[None, None], np.ones((1, 1, 3)), np.ones((1, 1)))
    row = score_rows(runs, some, {"all": np.ones(1, dtype=bool)}, "nn")[0]
    assert row["pck"] == pytest.approx(100 * np.mean(own[:4] <= 0.1))


def test_sets_that_are_not_known(data):
    with pytest.raises(InputError, match="'colon' is not known; give some of pf-willow, birds"):
        correspondence(["planted"], 2, sets=["colon"], data=data)


def test_networks_that_are_not_known(willow):
    with pytest.raises(InputError, match="'vgg' is not known"):
        correspondence(["vgg"], data=willow)
