"""Robustness under noise: the data, what is measured, and verdicts that follow the numbers."""

import copy
import json

import numpy as np
import pytest

import frot
from frot.cli.reproduce.robustness import (
    CLOUDS,
    Draw,
    Setting,
    _unsolved,
    claims,
    draw_robustness,
    measure,
    recovered,
    robustness,
    with_noise,
)


@pytest.fixture(scope="module")
def made():
    # Few points, but noise enough that OT must suffer and FROT must not.
    return robustness(24, repeats=1, levels=[0.0, 0.5, 1.0], counts=[0, 10], sizes=[0.5, 1.0])


@pytest.mark.parametrize("name", list(CLOUDS))
def test_true_values_are_what_many_points_have(name):
    cloud = CLOUDS[name]
    x, y = cloud.draw(400, np.random.default_rng(1))
    assert frot.wasserstein(x, y).value == pytest.approx(cloud.truth["ot"], rel=0.05)
    assert frot.max_min(x, y).value == pytest.approx(cloud.truth["max_sliced"], rel=0.12)
    assert cloud.truth["max_sliced"] <= cloud.truth["frot"] <= cloud.truth["srw"]
    # The truth of FROT is half of that of OT, by symmetry of the two features.
    assert cloud.truth["frot"] == pytest.approx(cloud.truth["ot"] / 2)


def test_finished_draws_are_not_measured_again(tmp_path, monkeypatch):
    calls = []
    sizes = {"repeats": 1, "levels": [0.0, 1.0], "counts": [3], "sizes": [1.0]}

    def measured(draw):
        if len(calls) == stop_at:
            raise KeyboardInterrupt
        calls.append(draw.key)
        return real(draw)

    real, stop_at = Draw.measure, 3
    monkeypatch.setattr(Draw, "measure", measured)
    with pytest.raises(KeyboardInterrupt):
        robustness(6, folder=tmp_path, **sizes)
    stop_at = None
    again = robustness(6, folder=tmp_path, **sizes)
    # Two levels, features, and one turned, on two clouds; the size is one of the levels.
    assert len(calls) == len(set(calls)) == 8
    assert again.numbers == robustness(6, **sizes).numbers


def test_an_interrupted_solve_is_no_number(monkeypatch):
    from frot.cli.reproduce import robustness as module

    def interrupted(*arguments, **options):
        raise frot.Interrupted(frot.wasserstein(*arguments))

    monkeypatch.setattr(module, "max_sliced", interrupted)
    with pytest.raises(KeyboardInterrupt):
        module.run_all(np.zeros((2, 2)), np.ones((2, 2)))


def test_levels_share_their_points_and_their_noise():
    cloud = CLOUDS["annulus"]
    clean, (x, _) = Setting(10, 3, 1.0).draw(cloud, 5)
    again, (louder, _) = Setting(10, 3, 2.0).draw(cloud, 5)
    assert np.array_equal(clean[0], again[0])
    assert np.array_equal(x[:, :2], clean[0])
    assert np.allclose(louder[:, 2:], 2.0 * x[:, 2:])
    assert not np.array_equal(Setting(10, 3, 1.0).draw(cloud, 6)[0][0], clean[0])


def test_no_noise_changes_nothing():
    cloud = CLOUDS["hypercube"]
    clean = cloud.draw(20, np.random.default_rng(0))
    found = measure(cloud, clean, with_noise(clean, 4, 0.0, np.random.default_rng(1)))
    for method, numbers in found.items():
        assert numbers["ratio"] == pytest.approx(1.0, abs=0.01), method
    assert found["ot"]["excess"] == pytest.approx(0.0, abs=1e-9)
    assert found["ot"]["recovered"] == pytest.approx(2 / 6)


def test_the_share_recovered_is_that_of_the_choice():
    X, Y = np.zeros((1, 4)), np.array([[3.0, 0.0, 4.0, 0.0]])
    assert recovered(frot.solve(X, Y), 4) == pytest.approx(0.0, abs=1e-9)
    assert recovered(frot.max_sliced(X, Y), 4) == pytest.approx(9 / 25)
    assert recovered(frot.srw(X, Y, 1), 4) == pytest.approx(9 / 25, abs=1e-3)
    assert recovered(frot.wasserstein(X, Y), 4) == 0.5


def test_ot_suffers_and_frot_does_not(made):
    for cloud in CLOUDS:
        last = made.numbers["over_level"][cloud][-1]
        assert last["ot"]["ratio"] > 3.0
        assert last["frot"]["ratio"] < 1.2
        assert last["frot"]["recovered"] > 0.8
        assert last["ot"]["excess"] > last["frot"]["excess"] >= -1e-9
    turned = made.numbers["turned"]["hypercube"]
    straight = made.numbers["over_level"]["hypercube"][-1]
    assert turned["srw"]["ratio"] == pytest.approx(straight["srw"]["ratio"], rel=0.02)
    assert turned["frot"]["ratio"] < 0.8 * straight["frot"]["ratio"]


def test_it_is_written_with_a_picture(made, tmp_path):
    paths = made.write(tmp_path)
    assert [path.name for path in paths] == ["robustness.png", "robustness.json"]
    content = json.loads(paths[1].read_text(encoding="utf-8"))
    assert len(content["verdicts"]) == 7
    assert [point["n"] for point in content["over_n"]["annulus"]] == [12, 24]
    figure = made.draw()
    assert len(figure.axes) == 12
    names = [line.get_label() for line in figure.axes[0].lines]
    assert [name for name in names if not str(name).startswith("_")] == [
        "FROT",
        "SRW (k = 2)",
        "max-sliced",
        "OT",
    ]


def test_where_srw_is_not_solved_nothing_is_claimed(made):
    numbers = copy.deepcopy(made.numbers)
    for cloud in CLOUDS:
        numbers["over_level"][cloud][-1]["srw"] |= {"gap": 0.4, "ratio": 9.0}
        numbers["over_level"][cloud][-1]["frot"]["ratio"] = 5.0
    checks = next(v for v in claims(numbers) if v.figure == "FROT and SRW").checks
    assert all("for noise up to 0.5" in check.figures for check in checks)
    sweeps = {key: numbers[key] for key in ("over_level", "over_features", "over_n")}
    (note,) = _unsolved(sweeps)
    assert "2 of 14 settings, with gaps up to 40%" in note
    drawn = draw_robustness(numbers).axes[0].lines
    hollow = [line for line in drawn if line.get_markerfacecolor() == "white"]
    assert [np.asarray(line.get_xdata()).tolist() for line in hollow] == [[1.0]]


def outcomes(numbers):
    return {verdict.figure: verdict.outcome for verdict in claims(numbers)}


def test_verdicts_follow_the_numbers(made):
    good = outcomes(made.numbers)
    assert good["values under louder noise"] == "reproduced"
    assert good["rotation"] == "partly reproduced"
    worse = copy.deepcopy(made.numbers)
    for cloud in CLOUDS:
        worse["over_level"][cloud][-1]["frot"]["ratio"] = 1e3
        for point in worse["over_level"][cloud]:
            for method in ("frot", "srw", "max_sliced"):
                point[method]["recovered"] = 0.1
                point[method]["excess"] = 2.0
        for point in worse["over_n"][cloud]:
            point["ot"]["error"] = 0.0
        worse["over_features"][cloud][-1]["srw"]["ratio"] = 1e-9
        worse["turned"][cloud] = {m: {"ratio": 50.0} for m in ("frot", "srw", "max_sliced")}
    assert set(outcomes(worse).values()) == {"not reproduced"}
