"""Where a run may begin, and that it helps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import frot
from frot import Exact, FrankWolfe, InputError, Problem, Status
from frot.costs import Stack
from frot.solvers import Start

RNG = np.random.default_rng(0)
STACK = RNG.random((5, 20, 18))
SOLVERS: dict[str, Any] = {"Exact": Exact(), "FrankWolfe": FrankWolfe()}


@pytest.fixture(scope="module")
def cold() -> dict[str, frot.Result]:
    return {
        f"{name}, {eta}": frot.solve_costs(STACK, eta=eta, solver=solver)
        for name, solver in SOLVERS.items()
        for eta in (0.0, 0.05)
    }


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("eta", [0.0, 0.05])
@pytest.mark.parametrize("what", ["result", "alpha", "plan"])
def test_a_good_start_takes_no_longer(cold, name, eta, what):
    before = cold[f"{name}, {eta}"]
    start = {"result": before, "alpha": before.alpha, "plan": before.plan}[what]
    warm = frot.solve_costs(STACK, eta=eta, solver=SOLVERS[name], start=start)
    assert warm.status is Status.CONVERGED
    assert warm.value == pytest.approx(before.value, rel=2e-6)
    assert warm.iterations <= before.iterations


@pytest.mark.parametrize("seed", range(3))
def test_good_weights_save_calls_of_the_oracle(seed):
    stack = np.random.default_rng(seed).random((10, 40, 40))
    cold = frot.solve_costs(stack, solver=FrankWolfe())
    warm = frot.solve_costs(stack, solver=FrankWolfe(), start=cold.alpha)
    # The answer to one plan is a single group, which leads away from the best weights.
    assert warm.iterations < 0.9 * cold.iterations


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize(
    "start",
    [
        np.eye(5)[2],
        np.array([1.0, 1e-300, 0.0, 0.0, 1e3]),
        np.eye(20, 18) + 1e-12,
        np.ones((20, 18)),
        np.eye(20, 18)[::-1],
    ],
    ids=["one group", "odd weights", "diagonal", "uniform", "antidiagonal"],
)
def test_a_bad_start_does_no_harm(cold, name, start):
    result = frot.solve_costs(STACK, solver=SOLVERS[name], start=start)
    assert result.status is Status.CONVERGED
    assert result.value == pytest.approx(cold[f"{name}, 0.0"].value, rel=2e-6)


class TestParse:
    problem = Problem(Stack(STACK[:, :3, :4]), np.full(3, 1 / 3), np.full(4, 0.25))
    rows, cols = np.arange(3), np.arange(4)

    def parse(self, start: Any) -> Start:
        Start.check(start, (5, 3, 4))
        return Start.parse(start, self.problem, self.rows, self.cols)

    def test_nothing(self):
        start = self.parse(None)
        assert (start.alpha, start.plan, start.g) == (None, None, None)

    def test_weights_are_normalised(self):
        start = self.parse([1, 1, 2, 0, 0])
        assert start.alpha is not None
        assert start.alpha.tolist() == [0.25, 0.25, 0.5, 0.0, 0.0]

    def test_plans_are_made_feasible(self):
        start = self.parse(np.ones((3, 4)))
        assert start.plan is not None
        assert start.plan.sum(axis=1) == pytest.approx([1 / 3] * 3, abs=1e-16)
        assert start.plan.sum(axis=0) == pytest.approx([0.25] * 4, abs=1e-16)

    def test_results_bring_everything(self):
        result = frot.solve_costs(STACK[:, :3, :4])
        start = self.parse(result)
        assert start.alpha == pytest.approx(result.alpha, rel=1e-12)
        assert start.plan is not None
        assert np.asarray(start.plan) == pytest.approx(np.asarray(result.plan), abs=1e-15)
        assert start.g is not None
        assert np.array_equal(start.g, result.potentials[1])

    @pytest.mark.parametrize(
        ("start", "message"),
        [
            (np.ones(4), r"start: shape \(4,\) is neither weights \(5,\) nor a plan \(3, 4\)"),
            (np.ones((4, 3)), r"start: shape \(4, 3\)"),
            (np.zeros(5), "start: must be finite, >= 0 and not all zero"),
            (np.full(5, np.inf), "start: must be finite"),
            (-np.ones((3, 4)), "start: must be finite, >= 0"),
        ],
    )
    def test_refused(self, start, message):
        with pytest.raises(InputError, match=message):
            self.parse(start)

    def test_a_result_of_another_problem_is_refused(self):
        with pytest.raises(InputError, match=r"start: shape \(20, 18\) is neither"):
            self.parse(frot.solve_costs(STACK))

    def test_points_without_weight_are_dropped_from_a_plan(self):
        a = np.append(np.full(10, 0.1), np.zeros(10))
        result = frot.solve_costs(STACK, a, start=np.ones((20, 18)))
        assert result.status is Status.CONVERGED
        again = frot.solve_costs(STACK, a, start=result)
        assert again.value == pytest.approx(result.value, rel=1e-8)
