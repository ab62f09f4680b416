from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from benchmarks._fuzz.truth import NoPlanError, Program, normalised, transport
from benchmarks._fuzz.truth.linear import lacks, plan_costs


def stack_of(seed: int, shape: tuple[int, ...] = (3, 4, 5)) -> np.ndarray:
    return np.random.default_rng(seed).random(shape)


@pytest.mark.parametrize("seed", range(10))
def test_plan_and_value_belong_together(seed):
    rng = np.random.default_rng(seed)
    program = Program.of_stack(stack_of(seed), rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(5)))
    found = transport(program)
    assert not any(lacks(program, found.mass))
    assert max(plan_costs(program, found.mass)) == found.value


def test_points_without_weight_do_not_count():
    stack = stack_of(0)
    far = np.concatenate([stack, 1e9 + stack[:, :1]], axis=1)
    a = np.array([0.25, 0.25, 0.25, 0.25, 0.0])
    assert transport(Program.of_stack(far, a)).value == transport(Program.of_stack(stack)).value


@pytest.mark.parametrize("light", [1e-12, 1e-300])
def test_light_points_count_for_what_they_weigh(light):
    # One point of weight w at a distance: the cost is exactly linear in w.
    a = np.array([light, 1.0])
    program = Program.of_points([[1e4], [0.0]], [[0.0]], [[0]], a=a)
    share = Fraction(light) / (Fraction(light) + 1)
    assert transport(program).value == share * Fraction(1e4) ** 2


@pytest.mark.parametrize("seed", range(10))
def test_forbidden_arcs_are_arcs_of_endless_cost(seed):
    rng = np.random.default_rng(seed)
    stack = stack_of(seed, (2, 4, 4))
    closed = rng.random((4, 4)) < 0.4
    closed[np.arange(4), rng.permutation(4)] = False
    forbidden, dear = stack.copy(), stack.copy()
    forbidden[0, closed], dear[:, closed] = np.inf, 1e9
    expected = transport(Program.of_stack(dear))
    found = transport(Program.of_stack(forbidden))
    assert found.value == expected.value
    assert not any(closed[arc] for arc in found.mass)


def test_no_plan_is_told_by_what_has_no_arc():
    stack = np.zeros((1, 2, 2))
    stack[0, :, 1] = np.inf
    with pytest.raises(NoPlanError) as error:
        transport(Program.of_stack(stack, [0.5, 0.5], [0.25, 0.75]))
    assert error.value.lack == Fraction(3, 4)


def test_a_plan_that_just_fits_is_one():
    # One third is no float, but uniform weights are exact.
    stack = np.full((1, 3, 3), np.inf)
    stack[0, [0, 1, 2], [2, 0, 1]] = 5.0
    assert transport(Program.of_stack(stack)).value == 5


def test_mean_costs_become_one():
    program = normalised(Program.of_stack(1e-7 * stack_of(1)), "mean")
    assert [float(mean) for mean in program.means()] == pytest.approx([1.0] * 3, abs=1e-15)


def test_a_group_without_cost_stays():
    program = normalised(Program.of_stack(np.zeros((1, 2, 2))), "mean")
    assert program.largest == 0


def test_no_group_regrets_its_own_optimum():
    program = normalised(Program.of_stack(stack_of(2)), "regret")
    for group in range(3):
        assert abs(transport(program.only([group])).value) <= program.doubt
    with pytest.raises(ValueError, match="no normalisation"):
        normalised(program, "max")
