"""What must not change the answer, and how the answer follows what does."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import frot
from tests.reference import quiet
from tests.strategies import SCALES, Given, cost_problems, point_clouds, seeds

calm = {"scaled": False, "zeros": False}


def solved(stack: np.ndarray, a: np.ndarray, b: np.ndarray, **options) -> frot.Result:
    return quiet(frot.solve_costs, stack, a, b, **options)


def same_value(one: frot.Result, other: frot.Result, factor: float = 1.0, shift: float = 0.0):
    """Whether two intervals can hold the same number, and are narrow enough to tell."""
    reach = max(abs(one.upper), abs(one.lower), abs(one.mean_cost), abs(shift), 1e-300)
    slack = 1e-9 * reach * abs(factor)
    low, high = sorted((factor * one.lower + shift, factor * one.upper + shift))
    assert other.lower <= high + slack
    assert other.upper >= low - slack
    assert other.value == pytest.approx(factor * one.value + shift, abs=1e-6 * reach * abs(factor))


etas = st.sampled_from([0.0, 0.05, 1.0])


class TestGroups:
    @given(cost_problems(**calm), seeds, etas)
    def test_their_order_does_not_matter(self, problem: Given, seed, eta):
        order = np.random.default_rng(seed).permutation(len(problem.stack))
        one = solved(problem.stack, problem.a, problem.b, eta=eta)
        other = solved(problem.stack[order], problem.a, problem.b, eta=eta)
        same_value(one, other)
        if eta > 0.0:
            assert other.alpha == pytest.approx(one.alpha[order], abs=1e-3)

    @given(cost_problems(**calm))
    def test_a_group_given_twice_counts_once(self, problem: Given):
        twice = np.concatenate([problem.stack, problem.stack[:1]])
        one = solved(problem.stack, problem.a, problem.b)
        same_value(one, solved(twice, problem.a, problem.b))

    @given(cost_problems(**calm))
    def test_with_entropy_duplicates_add_eta_log_2(self, problem: Given):
        eta = 0.3
        one = solved(problem.stack, problem.a, problem.b, eta=eta)
        other = solved(np.concatenate([problem.stack] * 2), problem.a, problem.b, eta=eta)
        same_value(one, other, shift=eta * np.log(2.0))

    @given(cost_problems(**calm), seeds, etas)
    def test_one_more_never_lowers_the_value(self, problem: Given, seed, eta):
        more = np.random.default_rng(seed).random((1, *problem.stack.shape[1:]))
        fewer = solved(problem.stack, problem.a, problem.b, eta=eta)
        every = solved(np.concatenate([problem.stack, more]), problem.a, problem.b, eta=eta)
        assert every.upper >= fewer.lower - 1e-12

    @given(cost_problems(most_groups=3, **calm))
    def test_the_value_is_between_the_worst_group_and_the_sum(self, problem: Given):
        result = solved(problem.stack, problem.a, problem.b)
        alone = [solved(group[None], problem.a, problem.b).lower for group in problem.stack]
        assert result.upper >= max(alone) - 1e-12
        total = solved(problem.stack.sum(axis=0)[None], problem.a, problem.b)
        assert result.lower <= total.upper + 1e-12


class TestCosts:
    @given(cost_problems(negative=True, **calm), st.sampled_from(SCALES), etas)
    def test_scaling_costs_and_eta_scales_the_value(self, problem: Given, scale, eta):
        one = solved(problem.stack, problem.a, problem.b, eta=eta)
        other = solved(problem.stack * scale, problem.a, problem.b, eta=eta * scale)
        same_value(one, other, factor=scale)

    @given(cost_problems(**calm), st.integers(-300, 300), etas)
    def test_adding_a_constant_adds_it(self, problem: Given, constant, eta):
        one = solved(problem.stack, problem.a, problem.b, eta=eta)
        other = solved(problem.stack + 0.01 * constant, problem.a, problem.b, eta=eta)
        assert other.value == pytest.approx(one.value + 0.01 * constant, abs=1e-6)

    @given(cost_problems(**calm), st.floats(0.01, 5.0))
    def test_entropy_adds_at_most_eta_log_of_the_groups(self, problem: Given, eta):
        hard = solved(problem.stack, problem.a, problem.b)
        soft = solved(problem.stack, problem.a, problem.b, eta=eta)
        assert soft.upper >= hard.lower - 1e-12
        assert soft.lower <= hard.upper + eta * np.log(len(problem.stack)) + 1e-12


class TestPoints:
    @given(cost_problems(**calm), etas)
    def test_swapping_the_sides_transposes_the_plan(self, problem: Given, eta):
        one = solved(problem.stack, problem.a, problem.b, eta=eta)
        other = solved(problem.stack.transpose(0, 2, 1), problem.b, problem.a, eta=eta)
        same_value(one, other)
        assert other.plan.shape == one.plan.shape[::-1]
        assert other.plan.sum(axis=0) == pytest.approx(problem.a, abs=1e-14)

    @given(cost_problems(**calm), seeds)
    def test_their_order_does_not_matter(self, problem: Given, seed):
        rng = np.random.default_rng(seed)
        rows, cols = rng.permutation(len(problem.a)), rng.permutation(len(problem.b))
        one = solved(problem.stack, problem.a, problem.b)
        other = solved(problem.stack[:, rows][:, :, cols], problem.a[rows], problem.b[cols])
        same_value(one, other)
        assert other.plan.sum(axis=1) == pytest.approx(problem.a[rows], abs=1e-14)
        assert other.plan.sum(axis=0) == pytest.approx(problem.b[cols], abs=1e-14)

    @given(point_clouds(), st.floats(-1e4, 1e4))
    def test_moving_both_clouds_changes_nothing(self, clouds, shift):
        X, Y = clouds
        one, other = quiet(frot.solve, X, Y), quiet(frot.solve, X + shift, Y + shift)
        assert other.value == pytest.approx(one.value, rel=1e-6, abs=1e-9)

    @given(cost_problems(**calm), seeds)
    def test_splitting_a_point_changes_nothing(self, problem: Given, seed):
        share = np.random.default_rng(seed).uniform(0.1, 0.9)
        stack = np.concatenate([problem.stack, problem.stack[:, :1]], axis=1)
        a = np.append(problem.a, (1 - share) * problem.a[0])
        a[0] *= share
        same_value(
            solved(problem.stack, problem.a, problem.b), solved(stack, a / a.sum(), problem.b)
        )
