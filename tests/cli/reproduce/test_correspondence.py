import json

import numpy as np
import pytest

import frot
from frot._base.errors import InputError
from frot.cli.reproduce import correspondence as module
from frot.cli.reproduce.correspondence import (
    CHOICES,
    PICKED,
    RARE,
    READINGS,
    SEARCHED,
    Runs,
    correspondence,
    match_pair,
    score_rows,
)
from frot.cli.reproduce.pairs import Choice
from frot.cli.reproduce.resume import kept_in
from frot.correspondence import Matcher, pf_willow
from tests.correspondence import generated, planted

LAYERS = ("x", "y", "noise_of_its_own")


@pytest.fixture(scope="module")
def willow(tmp_path_factory):
    return generated.pf_willow(tmp_path_factory.mktemp("willow"), ("car(G)", "duck(S)"))


@pytest.fixture
def small(monkeypatch):
    """A network that knows the answer, on small grids; what it extracted is counted."""
    backbone = planted.Planted(LAYERS)
    matcher = Matcher(backbone, side=64, stride=4)
    monkeypatch.setattr(module, "matcher_of", lambda name: matcher)
    return backbone


def test_all_methods_on_all_pairs_with_a_table_a_picture_and_verdicts(small, willow, tmp_path):
    made = correspondence(["planted"], root=willow, folder=tmp_path / "kept")
    rows = made.numbers["scores"]
    assert {row["choice"] for row in rows} == set(CHOICES)
    assert {row["pairs_of"] for row in rows} == {"all 12 pairs", "6 pairs without cars"}
    by = {
        (row["choice"], row["transfer"], row["hough"]): row
        for row in rows
        if row["pairs_of"] == "all 12 pairs"
    }
    assert len(by) == len(CHOICES) * len(READINGS)
    assert by["uniform", "median", True]["difference"] == 0.0
    assert by["frot", "median", False]["pairs"] == 12
    # Indices 0 and 10.
    assert all(by[name, "near", True]["pairs"] == 2 for name in RARE)
    assert by["frot", "median", False]["pck"] > by["nn", "near", False]["pck"]
    about = made.numbers["networks"]["planted"]
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
    assert [path.suffix for path in paths] == [".png", ".json", ".md"]
    content = json.loads(paths[1].read_text(encoding="utf-8"))
    assert [verdict["figure"] for verdict in content["verdicts"]] == [
        "FROT", "picked", "prior", "labels", "searched"
    ]  # fmt: skip
    table = paths[2].read_text(encoding="utf-8")
    assert "| FROT, coherence prior (default) |" in table
    assert "; 2 pairs)" in table
    assert [axes.get_title() for axes in made.draw().axes] == ["planted"]


def test_finished_pairs_are_not_matched_again(small, willow, tmp_path, monkeypatch):
    real, calls = module.match_pair, []

    def counted(matcher, pair, choices, skipped=()):
        if len(calls) == 3:
            raise KeyboardInterrupt
        calls.append(pair.id)
        return real(matcher, pair, choices, skipped)

    monkeypatch.setattr(module, "match_pair", counted)
    with pytest.raises(KeyboardInterrupt):
        correspondence(["planted"], 6, root=willow, folder=tmp_path)
    first = list(calls)
    calls[:] = []
    for pick in ("best_layer", "search_layers"):  # what they picked is kept as well
        monkeypatch.setattr(module, pick, None)
    assert correspondence(["planted"], 6, root=willow, folder=tmp_path).numbers["pairs"] == 6
    assert len(calls) == 3
    assert not set(first) & set(calls)


def test_pairs_of_another_version_are_matched_again(small, willow, tmp_path, monkeypatch):
    real, calls = module.match_pair, []

    def counted(matcher, pair, choices, skipped=()):
        calls.append(pair.id)
        return real(matcher, pair, choices, skipped)

    monkeypatch.setattr(module, "match_pair", counted)
    some = {key: CHOICES[key] for key in ("nn", "uniform", "frot")}
    pairs = pf_willow(willow).first(2)
    monkeypatch.setattr(module, "RARE", ())

    def go():
        calls.clear()
        with kept_in(tmp_path) as kept:
            module.run_network("planted", pairs, some, kept)
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
        alone = matcher.having(transfer=transfer, hough=hough)(pair.source, pair.target)
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


def test_networks_that_are_not_known(willow):
    with pytest.raises(InputError, match="'vgg' is not known"):
        correspondence(["vgg"], root=willow)
