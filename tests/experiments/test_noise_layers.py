"""Layers of noise, with a network that knows the answer and drawn photographs."""

from __future__ import annotations

import numpy as np
import pytest

import _pairs
import noise_layers
from _runner import Run
from frot import InputError
from frot.correspondence import Evaluation, Record
from noise_layers import DEFAULT, EXPERIMENT, NOISE, ROWS, SCALED, TRAPPED, UNIFORM, add_claims
from tests.correspondence import generated, planted

LAYERS = ("x", "y", "noise_of_its_own")


@pytest.fixture
def willow(tmp_path):
    return generated.pf_willow(tmp_path / "willow", ("car(G)",))


@pytest.fixture
def network(monkeypatch):
    """A network that knows where things are; its maps are small."""
    monkeypatch.setattr(_pairs, "default_backbone", lambda: planted.Planted(LAYERS))
    monkeypatch.setattr(noise_layers, "default_backbone", lambda: None)
    _pairs.network_matcher.cache_clear()
    yield
    _pairs.network_matcher.cache_clear()


def test_noise_draws_the_plain_adversary_and_not_the_one_with_the_prior(network, willow, tmp_path):
    made = EXPERIMENT(data=willow, pairs="3", side=64, workers=1, out=tmp_path / "out")
    rows = {row[0]: row for row in made.tables[0].rows}
    assert list(rows) == [label for label in ROWS if "optima" not in label]
    weights = made.numbers["weights"]
    noise = {label: sum(list(alpha.values())[-NOISE:]) for label, alpha in weights.items()}
    assert noise[UNIFORM] == pytest.approx(0.5)
    paper, optimum, sharp = (noise[label] for label in TRAPPED)
    assert paper > 0.5
    assert sharp > optimum > 0.5
    assert noise[DEFAULT] < 0.01
    assert len(weights[DEFAULT]) == len(LAYERS) + NOISE
    assert rows[UNIFORM][1] == "50.0%"
    trap, _, repaired = made.claims
    assert [len(claim.checks) for claim in made.claims] == [6, 2, 6]
    assert trap.verdict in ("holds", "in part")
    assert any(text.startswith("it puts 0.") for text in repaired.checks)
    assert any("--regret" in note for note in made.notes)
    (picture,) = made.pictures
    bars = [bar.get_width() for bar in picture.figure.axes[0].containers[1]]
    assert bars == pytest.approx(list(noise.values()))


def evaluation(hits, noise):
    """Nine pairs of ten points, about so many of which are right, and the weight on noise."""
    records = []
    for k in range(9):
        errors = np.where(np.arange(10) < hits + k % 2, 0.0, 1.0)
        alpha = {"real": 1.0 - noise} | {f"noise_{i}": noise / NOISE for i in range(NOISE)}
        records.append(Record(str(k), "duck", errors=errors, alpha=alpha))
    return Evaluation("made", tuple(records))


@pytest.mark.parametrize(
    ("loud", "still", "best", "noise", "verdicts"),
    [
        # Hits with noise, without, and of the prior's with noise; weight on the noise.
        (3, 6, 6, 0.9, ["holds", "holds", "holds"]),
        (6, 6, 6, 0.9, ["in part", "in part", "in part"]),
        (6, 6, 6, 0.1, ["does not hold", "does not hold", "in part"]),
        (6, 3, 3, 0.1, ["does not hold", "does not hold", "in part"]),
    ],
)
def test_verdicts_follow_the_numbers(loud, still, best, noise, verdicts):
    both = {
        label: (evaluation(loud, noise), evaluation(still, 0.0))
        for label in (UNIFORM, *TRAPPED, *SCALED)
    }
    both[DEFAULT] = (evaluation(best, 0.001), evaluation(best, 0.0))
    run = Run(EXPERIMENT, EXPERIMENT.complete({}))
    add_claims(run, both, share=0.75)
    assert [claim.verdict for claim in run.claims] == verdicts


def test_no_data_says_where_it_was_looked_for(tmp_path, network):
    with pytest.raises(InputError, match=f"PF-WILLOW is not in {tmp_path}"):
        EXPERIMENT(data=tmp_path)
