"""Exact closes the gap: at all shapes and scales, with and without entropy, however degenerate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import frot
from frot import Exact, Status
from frot.plans.plan import is_sparse
from tests.reference import linear_program, quiet
from tests.strategies import Given, cost_problems, seeds


def converged(problem: Given, eta: float = 0.0) -> frot.Result:
    """Solve; an optimum of zero may be all rounding: then it must be right to that."""
    weights = {"a": problem.a, "b": problem.b}
    result = quiet(frot.solve_costs, problem.stack, **weights, eta=eta, solver=Exact())
    reach = max(float(np.abs(problem.stack).max()), eta)
    if result.status is Status.STALLED:
        assert result.upper - result.lower <= 1e-12 * reach
        assert abs(result.value) <= 1e-3 * reach
    else:
        assert result.status is Status.CONVERGED
        assert result.gap <= 1e-9
    return result


class TestItConverges:
    @given(cost_problems())
    def test_without_entropy(self, problem: Given):
        result = converged(problem)
        truth = linear_program(problem.stack, problem.a, problem.b)
        assert result.value == pytest.approx(truth, abs=1e-8 * float(np.abs(problem.stack).max()))

    @given(cost_problems(negative=True))
    def test_with_negative_costs(self, problem: Given):
        converged(problem)

    @given(cost_problems(), st.sampled_from([1e-3, 0.03, 1.0, 30.0]))
    def test_with_entropy(self, problem: Given, share):
        converged(problem, eta=share * max(float(np.abs(problem.stack).max()), 1e-9))

    @given(seeds, st.integers(2, 5), st.integers(10, 25), st.booleans())
    def test_with_few_points_against_many(self, seed, few, many, flipped):
        rng = np.random.default_rng(seed)
        stack = rng.normal(size=(3, few, many)) ** 2
        stack = stack.transpose(0, 2, 1) if flipped else stack
        n, m = stack.shape[1:]
        converged(Given(stack, np.full(n, 1 / n), np.full(m, 1 / m)))

    @given(seeds)
    def test_with_groups_of_very_different_scales(self, seed):
        rng = np.random.default_rng(seed)
        stack = rng.random((5, 6, 5)) * 10.0 ** rng.uniform(-4, 4, (5, 1, 1))
        converged(Given(stack, np.full(6, 1 / 6), np.full(5, 1 / 5)))

    @given(seeds)
    def test_with_balanced_groups(self, seed):
        rng = np.random.default_rng(seed)
        stack = rng.random((6, 5)) + 0.01 * rng.normal(size=(20, 6, 5))
        converged(Given(stack, rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(5))))

    @pytest.mark.parametrize("shape", [(3, 80, 80), (3, 120, 40), (3, 40, 120), (150, 60, 60)])
    def test_where_arcs_and_groups_are_generated(self, shape):
        count, n, m = shape
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(n, count)), rng.normal(size=(m, count)) + rng.normal(size=count)
        result = frot.solve(X, Y)
        assert result.status is Status.CONVERGED
        assert len(result.plan.arcs()[2]) <= n + m + count

    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize("eta", [0.3, 1.0])
    def test_with_entropy_between_a_set_and_itself(self, eta, seed):
        """Its arcs are pairs of a point and itself, which nothing else joins."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(8, 4))
        result = frot.solve(X, X[rng.permutation(8)], [2, 2], eta=eta, solver="exact")
        assert result.status is Status.CONVERGED
        assert result.lower <= eta * np.log(2) <= result.upper

    def test_many_groups_of_which_some_violate_later(self):
        rng = np.random.default_rng(1)
        stack = rng.random((400, 12, 12))
        result = frot.solve_costs(stack)
        assert result.status is Status.CONVERGED
        uniform = np.full(12, 1 / 12)
        assert result.value == pytest.approx(linear_program(stack, uniform, uniform), rel=1e-8)


class TestTheAnswer:
    def test_groups_that_tie_share_the_weight(self):
        C = np.array([[0.0, 1.0], [1.0, 0.0]])
        result = frot.solve_costs([C, 1.0 - C, 0.1 * C])
        assert result.alpha == pytest.approx([0.5, 0.5, 0.0], abs=1e-7)
        assert result.phi[:2] == pytest.approx([0.5, 0.5], abs=1e-12)

    def test_complementary_slackness(self):
        rng = np.random.default_rng(2)
        result = frot.solve_costs(rng.random((5, 15, 15)))
        assert result.alpha @ (result.value - result.phi) <= 1e-8 * result.value

    def test_with_entropy_alpha_is_the_softmax_of_phi(self):
        rng = np.random.default_rng(3)
        result = frot.solve_costs(rng.random((5, 15, 15)), eta=0.02)
        weights = np.exp((result.phi - result.phi.max()) / 0.02)
        assert result.alpha == pytest.approx(weights / weights.sum(), abs=1e-4)

    def test_without_entropy_the_plan_is_a_vertex(self):
        rng = np.random.default_rng(4)
        result = frot.solve_costs(rng.random((4, 20, 20)))
        assert is_sparse(result.plan)
        assert len(result.plan.arcs()[2]) <= 20 + 20 + 4

    def test_the_limit_of_no_entropy(self):
        rng = np.random.default_rng(5)
        stack = rng.random((4, 10, 10))
        hard = frot.solve_costs(stack).value
        for eta in (1e-2, 1e-4, 1e-6):
            soft = frot.solve_costs(stack, eta=eta).value
            assert hard - 1e-12 <= soft <= hard + eta * np.log(4) + 1e-9
