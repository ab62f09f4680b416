import json

import numpy as np
import pytest

from frot import Plan
from frot.cli.reproduce.experiment import Check, Verdict, relative_excess
from frot.cli.reproduce.fig1 import fig1, shared_mass
from frot.cli.reproduce.fig2 import fig2, mean_squared_error

# Fewer than the figure has, which takes ten seconds.
ETAS, EPSES = [0.01, 1.0, 100.0], [0.001, 0.1, 10.0]


@pytest.fixture(scope="module")
def first():
    return fig1(n=40, seed=0)


@pytest.fixture(scope="module")
def second():
    return fig2(n=50, seed=0, etas=ETAS, epses=EPSES)


class TestMatching:
    def test_shared_mass_of_matchings_is_the_share_of_common_pairs(self):
        one, other = np.eye(4) / 4, np.eye(4)[[1, 0, 2, 3]] / 4
        assert shared_mass(Plan(one), Plan(other)) == 0.5
        assert shared_mass(Plan(one), Plan(one)) == 1.0

    def test_relative_excess_is_zero_at_the_reference_and_one_without_matching(self):
        cost = np.random.default_rng(0).random((3, 3))
        best, none = Plan(np.eye(3) / 3), Plan(np.full((3, 3), 1 / 9))
        assert relative_excess(best, best, cost) == 0.0
        assert relative_excess(none, best, cost) == pytest.approx(1.0)

    def test_mean_squared_error(self):
        one, other = Plan(np.eye(2) / 2), Plan(np.eye(2)[::-1] / 2)
        assert mean_squared_error(one, one) == 0.0
        assert mean_squared_error(one, other) == 0.25


class TestVerdict:
    @pytest.mark.parametrize(
        ("held", "outcome"),
        [
            ((True, True), "reproduced"),
            ((True, False), "partly reproduced"),
            ((False, False), "not reproduced"),
        ],
    )
    def test_outcome_follows_the_checks(self, held, outcome):
        verdict = Verdict("9", "claim", tuple(Check("x", h) for h in held))
        assert verdict.outcome == outcome
        assert verdict.as_dict()["outcome"] == outcome
        assert verdict.line.startswith(f"Figure 9: {outcome}. ")


class TestFigure1:
    def test_frot_finds_the_matching_and_transport_does_not(self, first):
        for way in ("paper", "exact"):
            runs = first.numbers[way]
            assert runs["frot"]["alpha"][0] >= 0.9999
            assert runs["frot"]["shared_mass"] > 0.95
            assert runs["noisy"]["shared_mass"] < 0.5
            assert runs["noisy"]["relative_excess"] > runs["frot"]["relative_excess"]
        assert first.verdicts[0].outcome == "reproduced"

    def test_the_papers_settings_are_the_papers(self, first):
        run = first.numbers["paper"]["frot"]
        assert (run["eta"], run["eps"], run["iterations"]) == (1.0, 0.02, 10)
        assert "step='paper'" in run["solver"]
        assert run["status"] == "MAX_ITER"

    def test_intervals_of_both_ways_meet(self, first):
        paper, exact = first.numbers["paper"]["frot"], first.numbers["exact"]["frot"]
        assert exact["gap"] < 1e-8
        assert paper["lower"] <= exact["upper"]
        assert exact["lower"] <= paper["upper"]

    def test_the_picture_has_six_panels(self, first):
        figure = first.draw()
        assert len(figure.axes) == 6
        titles = [axes.get_title() for axes in figure.axes]
        assert titles[0] == "OT on clean data\nthe reference"
        assert titles[5].startswith("FROT on noisy data (η = 1)\n100%")
        # The arcs are the first collection, then the two clouds.
        assert all(len(axes.collections) == 3 for axes in figure.axes)


class TestFigure2:
    def test_every_eta_and_eps_is_there(self, second):
        for method in ("fw_emd", "fw_sinkhorn"):
            assert [p["eta"] for p in second.numbers["over_eta"][method]] == ETAS
        assert [p["eps"] for p in second.numbers["over_eps"]] == EPSES

    def test_no_plan_beats_the_linear_program(self, second):
        best = second.numbers["lp"]["objective"]
        points = [*second.numbers["over_eta"]["fw_emd"], *second.numbers["over_eps"]]
        assert min(point["objective"] for point in points) >= best * (1 - 1e-9)

    def test_small_eta_gives_the_linear_programs_value(self, second):
        point = second.numbers["over_eta"]["fw_emd"][0]
        assert point["objective"] == pytest.approx(second.numbers["lp"]["objective"], rel=1e-9)
        assert point["mse"] == pytest.approx(0.0, abs=1e-12)

    def test_notes_tell_of_dominance_and_uniqueness(self, second):
        assert second.numbers["lp_plan"]["appears_unique"] is True
        assert "One group decides alone" in second.notes[0]
        assert "appears to be the only optimal one" in second.notes[1]

    def test_verdicts_follow_the_numbers(self, second):
        assert [verdict.figure for verdict in second.verdicts] == ["2a", "2b", "2c"]
        small = [p for p in second.numbers["over_eta"]["fw_sinkhorn"] if p["eta"] <= 1.0]
        share = max(p["mse"] for p in small) / second.numbers["mse_of_independent_plan"]
        assert second.verdicts[1].checks[1].holds == (share <= 0.05)
        assert f"{share:.0%}" in second.verdicts[1].checks[1].figures

    def test_the_picture_has_the_series(self, second):
        objective, by_eta, by_eps = second.draw().axes
        labels = [line.get_label() for line in objective.lines]
        assert labels == ["LP (η = 0)", "FW-EMD", "FW-Sinkhorn (ε = 0.1)"]
        assert list(by_eta.lines[0].get_ydata()) == [
            point["mse"] for point in second.numbers["over_eta"]["fw_emd"]
        ]
        assert list(by_eps.lines[0].get_xdata()) == EPSES


def test_write_leaves_a_picture_and_all_numbers(first, tmp_path):
    picture, numbers = first.write(tmp_path / "new" / "folder")
    assert picture.read_bytes().startswith(b"\x89PNG")
    content = json.loads(numbers.read_text(encoding="utf-8"))
    assert content["verdicts"][0]["outcome"] == "reproduced"
    assert content["exact"]["frot"]["alpha"] == first.numbers["exact"]["frot"]["alpha"]
