"""The frozen problem that solvers take."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from frot import Problem
from frot._costs import StackedCosts

STACK = np.arange(24.0).reshape(2, 3, 4)


def make(a, b) -> Problem:
    return Problem(StackedCosts(STACK), np.array(a), np.array(b), names=("p", "q"))


def test_shape_and_independent_costs():
    problem = make([0.5, 0.25, 0.25], [0.25] * 4)
    assert problem.shape == (2, 3, 4)
    expected = np.einsum("i,lij,j->l", problem.a, STACK, problem.b)
    assert problem.independent == pytest.approx(expected, rel=1e-15)
    assert problem.mean_cost == pytest.approx(expected.mean(), rel=1e-15)


def test_support_is_the_problem_itself_where_every_point_has_weight():
    problem = make([0.5, 0.25, 0.25], [0.25] * 4)
    small, rows, cols = problem.support()
    assert small is problem
    assert (rows.tolist(), cols.tolist()) == ([0, 1, 2], [0, 1, 2, 3])


def test_support_drops_points_without_weight():
    small, rows, cols = make([0.5, 0.0, 0.5], [0.0, 0.5, 0.5, 0.0]).support()
    assert (rows.tolist(), cols.tolist()) == ([0, 2], [1, 2])
    assert small.shape == (2, 2, 2)
    assert small.a.tolist() == [0.5, 0.5]
    assert small.names == ("p", "q")
    eye = np.eye(2)
    for group in range(2):
        assert np.array_equal(small.costs.mix(eye[group]), STACK[group][np.ix_(rows, cols)])


def test_it_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        make([1.0, 0.0, 0.0], [0.25] * 4).eps = 1.0  # type: ignore[misc]
