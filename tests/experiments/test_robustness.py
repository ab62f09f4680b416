"""Robustness under noise: the data, what is measured, and verdicts that follow the numbers."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

import frot
import robustness
from _clouds import CLOUDS, TRUTH, Draw, sample
from _runner import Run
from robustness import EXPERIMENT, claim_all, draw_sweeps, measure, recovered


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    # Few points, but noise enough that OT must suffer and FROT must not.
    patch = pytest.MonkeyPatch()
    patch.setattr(robustness, "LEVELS", (0.0, 0.5, 1.0))
    patch.setattr(robustness, "COUNTS", (0, 10))
    patch.setattr(robustness, "SIZES", (0.5, 1.0))
    run = EXPERIMENT(n=24, draws=1, workers=1)
    patch.undo()
    return run


@pytest.mark.parametrize("name", list(CLOUDS))
def test_true_values_are_what_many_points_have(name):
    truth = TRUTH[name]
    x, y = CLOUDS[name](400, np.random.default_rng(1))
    assert frot.wasserstein(x, y).value == pytest.approx(truth["ot"], rel=0.05)
    assert frot.max_min(x, y).value == pytest.approx(truth["max_sliced"], rel=0.12)
    assert truth["max_sliced"] <= truth["frot"] <= truth["srw"]
    # The truth of FROT is half of that of OT, by symmetry of the two features.
    assert truth["frot"] == pytest.approx(truth["ot"] / 2)


def test_levels_share_their_points_and_their_noise():
    draw = Draw("annulus", 10, 3, 1.0, seed=5)
    clean, (x, _) = sample(draw)
    again, (louder, _) = sample(replace(draw, level=2.0))
    assert np.array_equal(clean[0], again[0])
    assert np.array_equal(x[:, :2], clean[0])
    assert np.allclose(louder[:, 2:], 2.0 * x[:, 2:])
    assert not np.array_equal(sample(replace(draw, seed=6))[0][0], clean[0])


def test_a_turn_keeps_distances_and_mixes_features():
    draw = Draw("annulus", 10, 3, 1.0, seed=5)
    (_, (x, y)), (_, (u, v)) = sample(draw), sample(replace(draw, turned=True))
    apart = [((one[:, None] - other[None]) ** 2).sum(axis=2) for one, other in ((x, y), (u, v))]
    np.testing.assert_allclose(*apart, rtol=1e-10)
    assert not np.allclose(x, u)
    assert draw.key != replace(draw, turned=True).key


def test_no_noise_changes_nothing():
    for method, numbers in measure(Draw("hypercube", 20, 4, 0.0, seed=0)).items():
        assert numbers["ratio"] == pytest.approx(1.0, abs=0.01), method
        if method == "ot":
            assert numbers["excess"] == pytest.approx(0.0, abs=1e-9)
            assert numbers["recovered"] == pytest.approx(2 / 6)


def test_the_share_recovered_is_that_of_the_choice():
    X, Y = np.zeros((1, 4)), np.array([[3.0, 0.0, 4.0, 0.0]])
    assert recovered(frot.solve(X, Y), 4) == pytest.approx(0.0, abs=1e-9)
    assert recovered(frot.max_sliced(X, Y), 4) == pytest.approx(9 / 25)
    assert recovered(frot.srw(X, Y, 1), 4) == pytest.approx(9 / 25, abs=1e-3)
    assert recovered(frot.wasserstein(X, Y), 4) == 0.5


def test_ot_suffers_and_frot_does_not(made):
    sweeps = made.numbers["sweeps"]
    for cloud in CLOUDS:
        last = sweeps["level"][cloud][-1]
        assert last["ot"]["ratio"] > 3.0
        assert last["frot"]["ratio"] < 1.2
        assert last["frot"]["recovered"] > 0.8
        assert last["ot"]["excess"] > last["frot"]["excess"] >= -1e-9
    turned, straight = sweeps["turned"]["hypercube"][0], sweeps["level"]["hypercube"][-1]
    assert turned["srw"]["ratio"] == pytest.approx(straight["srw"]["ratio"], rel=0.02)
    assert turned["frot"]["ratio"] < 0.8 * straight["frot"]["ratio"]


def test_tables_and_picture_tell_every_point(made):
    assert [point["n"] for point in made.numbers["sweeps"]["n"]["annulus"]] == [12, 24]
    assert len(made.tables[0].rows) == 3 * 3 + 2 + 2
    axes = made.pictures[0].figure.axes
    assert len(axes) == 12
    names = [str(line.get_label()) for line in axes[0].lines]
    assert [name for name in names if not name.startswith("_")] == list(robustness.METHODS.values())


def verdicts(sweeps):
    run = Run(EXPERIMENT, EXPERIMENT.complete({}))
    claim_all(run, sweeps)
    return run.claims


def test_where_srw_is_not_solved_nothing_is_claimed(made):
    sweeps = copy.deepcopy(made.numbers["sweeps"])
    for cloud in CLOUDS:
        sweeps["level"][cloud][-1]["srw"] |= {"gap": 0.4, "ratio": 9.0}
        sweeps["level"][cloud][-1]["frot"]["ratio"] = 5.0
    checks = next(c for c in verdicts(sweeps) if "no more under noise than SRW" in c.text).checks
    assert all("for noise up to 0.5" in text for text in checks)
    drawn = draw_sweeps(sweeps).axes[0].lines
    hollow = [line for line in drawn if line.get_markerfacecolor() == "white"]
    assert [np.asarray(line.get_xdata()).tolist() for line in hollow] == [[1.0]]


def test_verdicts_follow_the_numbers(made):
    good = {claim.text: claim.verdict for claim in made.claims}
    assert good["Robust values move less under louder noise, and more of it, than OT's."] == "holds"
    turned = "Values of robust methods stay as they are under a random rotation."
    assert good[turned] == "in part"
    worse = copy.deepcopy(made.numbers["sweeps"])
    for cloud in CLOUDS:
        worse["level"][cloud][-1]["frot"]["ratio"] = 1e3
        worse["features"][cloud][-1]["srw"]["ratio"] = 1e-9
        worse["turned"][cloud] = [{m: {"ratio": 50.0} for m in robustness.ROBUST}]
        for point in worse["level"][cloud]:
            for method in robustness.ROBUST:
                point[method] |= {"recovered": 0.1, "excess": 2.0}
        for point in worse["n"][cloud]:
            point["ot"]["error"] = 0.0
    assert {claim.verdict for claim in verdicts(worse)} == {"does not hold"}
