"""Figures 1 and 2 at full size, with the paper's claims; and how plans are held against others."""

from __future__ import annotations

import numpy as np
import pytest

import fig1
import fig2
from _paper import mean_squared_error, relative_excess, shared_mass
from frot import Plan


@pytest.fixture(scope="module")
def first():
    return fig1.EXPERIMENT()


@pytest.fixture(scope="module")
def second():
    return fig2.EXPERIMENT()


def test_shared_mass_of_matchings_is_the_share_of_common_pairs():
    one, other = np.eye(4) / 4, np.eye(4)[[1, 0, 2, 3]] / 4
    assert shared_mass(Plan(one), Plan(other)) == 0.5
    assert shared_mass(Plan(one), Plan(one)) == 1.0


def test_relative_excess_is_zero_at_the_reference_and_one_without_matching():
    cost = np.random.default_rng(0).random((3, 3))
    best, none = Plan(np.eye(3) / 3), Plan(np.full((3, 3), 1 / 9))
    assert relative_excess(best, best, cost) == 0.0
    assert relative_excess(none, best, cost) == pytest.approx(1.0)


def test_mean_squared_error():
    one, other = Plan(np.eye(2) / 2), Plan(np.eye(2)[::-1] / 2)
    assert mean_squared_error(one, one) == 0.0
    assert mean_squared_error(one, other) == 0.25


class TestFigure1:
    def test_the_claim_holds(self, first):
        assert [claim.verdict for claim in first.claims] == ["holds"]
        assert len(first.claims[0].checks) == 6

    def test_frot_finds_the_matching_and_transport_does_not(self, first):
        assert list(first.numbers) == ["the paper's algorithm", "exact"]
        for numbers in first.numbers.values():
            assert numbers["frot"]["groups"][0]["alpha"] >= 0.9999
            assert numbers["shared"]["frot"] > 0.999
            assert numbers["shared"]["noisy"] < 0.06

    def test_the_papers_settings_are_the_papers(self, first):
        numbers = first.numbers["the paper's algorithm"]["frot"]
        # The eps is the oracle's, and no part of the problem.
        assert (numbers["eta"], numbers["eps"], numbers["iterations"]) == (1.0, 0.0, 10)
        assert "Sinkhorn(eps=0.02" in numbers["solver"]
        assert numbers["status"] == "MAX_ITER"

    def test_intervals_of_both_ways_meet(self, first):
        paper, exact = (numbers["frot"] for numbers in first.numbers.values())
        assert exact["gap"] < 1e-8
        assert paper["lower"] <= exact["upper"]
        assert exact["lower"] <= paper["upper"]

    def test_the_picture_has_six_panels(self, first):
        axes = first.pictures[0].figure.axes
        assert len(axes) == 6
        assert axes[0].get_title() == "OT on clean data\nthe reference"
        assert axes[5].get_title().startswith("FROT on noisy data (η = 1)\n100%")
        # The arcs are the first collection, then the two clouds.
        assert all(len(panel.collections) == 3 for panel in axes)


def lp_objective(run):
    return max(group["phi"] for group in run.numbers["lp"]["groups"])


class TestFigure2:
    def test_the_claims(self, second):
        assert [claim.text[:10] for claim in second.claims] == [
            "Figure 2a:",
            "Figure 2b:",
            "Figure 2c:",
        ]
        # (b) with EMD only: with Sinkhorn, eps = .1 is more than the plan shows of the costs.
        assert [claim.verdict for claim in second.claims] == ["holds", "in part", "holds"]
        assert list(second.claims[1].checks.values()) == [True, False]

    def test_every_eta_and_eps_is_there(self, second):
        for points in second.numbers["over_eta"].values():
            assert [point["eta"] for point in points] == fig2.ETAS
        assert [point["eps"] for point in second.numbers["over_eps"]] == fig2.EPSES

    def test_no_plan_beats_the_linear_program(self, second):
        best = lp_objective(second)
        points = [*second.numbers["over_eta"]["fw_emd"], *second.numbers["over_eps"]]
        assert min(point["objective"] for point in points) >= best * (1 - 1e-9)

    def test_small_eta_gives_the_linear_programs_plan(self, second):
        point = second.numbers["over_eta"]["fw_emd"][0]
        assert point["objective"] == pytest.approx(lp_objective(second), rel=1e-9)
        assert point["mse"] == pytest.approx(0.0, abs=1e-12)

    def test_notes_tell_of_dominance_and_uniqueness(self, second):
        text = " ".join(second.notes)
        assert "One group decides alone" in text
        assert "appears to be the only optimal one" in text

    def test_the_picture_has_the_series(self, second):
        objective, by_eta, by_eps = second.pictures[0].figure.axes
        labels = [line.get_label() for line in objective.lines]
        assert labels == ["LP (η = 0)", "FW-EMD", "FW-Sinkhorn (ε = 0.1)"]
        points = second.numbers["over_eta"]["fw_emd"]
        assert list(by_eta.lines[0].get_ydata()) == [point["mse"] for point in points]
        assert list(by_eps.lines[0].get_xdata()) == fig2.EPSES
