"""The frozen problem that solvers take."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import frot
from frot import Problem
from frot.costs import Stack

STACK = np.arange(24.0).reshape(2, 3, 4)


def make(a, b) -> Problem:
    return Problem(Stack(STACK), np.array(a), np.array(b), names=("p", "q"))


def test_shape_and_independent_costs():
    problem = make([0.5, 0.25, 0.25], [0.25] * 4)
    assert problem.shape == (2, 3, 4)
    expected = np.einsum("i,lij,j->l", problem.a, STACK, problem.b)
    assert problem.independent == pytest.approx(expected, rel=1e-15)
    assert problem.mean_cost == pytest.approx(expected.mean(), rel=1e-15)


def test_the_typical_cost_looks_at_every_arc_once_and_away_from_huge_ones():
    seen = []

    class Watched(Stack):
        def at(self, rows, cols):
            seen.append(len(rows))
            return super().at(rows, cols)

    stack = STACK + 1.0
    stack[:, 0, 0] = 1e9
    problem = Problem(Watched(stack), np.full(3, 1 / 3), np.full(4, 0.25), names=("p", "q"))
    median = problem.typical_cost**2 / problem.mean_cost
    assert 1.0 <= median <= 24.0 < problem.typical_cost < problem.mean_cost
    assert seen == [12]


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


def test_points_without_weight_leave_with_their_coordinates():
    X, Y = np.arange(6.0).reshape(3, 2), np.arange(4.0).reshape(2, 2)
    costs = Stack(np.ones((1, 3, 2)))
    problem = Problem(costs, np.array([0.5, 0.0, 0.5]), np.array([0.0, 1.0]), points=(X, Y))
    small, rows, cols = problem.support()
    assert small.points is not None
    assert np.array_equal(small.points[0], X[rows])
    assert np.array_equal(small.points[1], Y[cols])


def test_a_run_that_is_cut_short_has_an_answer_for_points_without_weight():
    """The first plans that bounds are taken from are between the points that have some."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(9, 3)), rng.normal(size=(7, 3))
    a = np.array([0.0, *np.full(8, 1 / 8)])
    with pytest.warns(frot.ConvergenceWarning):
        found = frot.solve(X, Y, a=a, solver=frot.Exact(max_iter=1, tol=0.0))
    assert np.asarray(found.plan)[0].sum() == 0.0
    assert found.points is not None
    assert np.array_equal(found.points[0], X)
