"""Column generation: the same optimum as the paper's program, on few points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from frot._bounds import relative_gap
from frot._costs import StackedCosts
from frot._problem import Problem
from frot._solvers._column_generation import (
    _exact_inverse,
    column_generation,
    column_generation_suits,
)
from tests.reference import linear_program
from tests.strategies import Given, cost_problems


def solved(stack: np.ndarray, a: np.ndarray, b: np.ndarray, tol: float = 1e-9):
    """The narrowest interval that was offered."""
    offers = list(column_generation(Problem(StackedCosts(stack), a, b), None, tol))
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


@pytest.mark.parametrize("big", [1e4, 1e9, 1e12])
@pytest.mark.parametrize("seed", range(5))
def test_numbers_that_stand_for_forbidden_arcs(big, seed):
    rng = np.random.default_rng(seed)
    stack = rng.random((3, 6, 6))
    shut = rng.random((3, 6, 6)) < 0.5
    shut[:, np.arange(6), rng.permutation(6)] = False
    stack[shut] = big
    uniform = np.full(6, 1 / 6)
    assert relative_gap(*solved(stack, uniform, uniform)) <= 1e-8


def test_only_few_points_and_groups():
    def problem(groups, n):
        uniform = np.full(n, 1.0 / n)
        return Problem(StackedCosts(np.ones((groups, n, n))), uniform, uniform)

    assert column_generation_suits(problem(3, 20))
    assert not column_generation_suits(problem(3, 60))
    assert not column_generation_suits(problem(30, 20))


def test_an_inverse_that_double_precision_does_not_have():
    columns = [[1.0, 1.0], [1.0, 1.0 + 2.0**-52]]
    inverse = _exact_inverse(columns)
    assert inverse.tolist() == [[2.0**52 + 1, -(2.0**52)], [-(2.0**52), 2.0**52]]
