"""Column generation: the same optimum as the paper's program, on few points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from frot._base.contract import gap_floor, relative_gap
from frot.costs import Stack
from frot.problem.problem import Problem
from frot.solvers.exact.column_generation import column_generation
from tests.reference import linear_program
from tests.strategies import Given, cost_problems


def solved(stack: np.ndarray, a: np.ndarray, b: np.ndarray):
    """The narrowest interval that was offered."""
    offers = list(column_generation(Problem(Stack(stack), a, b), None))
    uppers = [offer.upper.bound for offer in offers if offer.upper is not None]
    lowers = [offer.lower.bound for offer in offers if offer.lower is not None]
    return max(lowers), min(uppers)


@given(cost_problems(zeros=False))
def test_it_is_the_optimum(given: Given):
    lower, upper = solved(given.stack, given.a, given.b)
    expected = linear_program(given.stack, given.a, given.b)
    assert lower <= expected * (1 + 1e-7) + 1e-12
    assert expected <= upper * (1 + 1e-7) + 1e-12
    assert upper - lower <= 1e-9 * max(upper, 1e-9 * np.abs(given.stack).max())


@pytest.mark.parametrize("big", [1e2, 1e4, 1e9])
@pytest.mark.parametrize("seed", range(5))
def test_numbers_that_stand_for_forbidden_arcs(big, seed):
    rng = np.random.default_rng(seed)
    stack = rng.random((3, 6, 6))
    shut = rng.random((3, 6, 6)) < 0.5
    shut[:, np.arange(6), rng.permutation(6)] = False
    stack[shut] = big
    uniform = np.full(6, 1 / 6)
    assert relative_gap(*solved(stack, uniform, uniform), gap_floor(float(stack.mean()))) <= 1e-8


def test_a_group_that_binds_at_first_and_then_no_more():
    # The first plan's largest cost is in group 0, whose dual would be negative soon after.
    stack = [
        [[8e8, 3.53e8], [0.5, 0.85], [0.4, 0.75], [5.35e8, 8e8]],
        [[7e8, 2.03e8], [0.4, 0.55], [0.38, 0.3045], [8.5e8, 3.65e8]],
        [[6e8, 5.5e8], [0.6, 0.7], [0.08, 0.4545], [3.85e8, 4.65e8]],
    ]
    assert relative_gap(*solved(np.array(stack), np.full(4, 0.25), np.full(2, 0.5)), 0.0) <= 1e-12
