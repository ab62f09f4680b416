"""Costs on top of others: those with forbidden arcs."""

from __future__ import annotations

import numpy as np
import pytest

from frot import Plan
from frot.costs import ForbiddenCosts

STACK = np.array([[[1.0, np.inf, 2.0], [3.0, 4.0, np.inf]], [[np.inf, 5.0, 1.0], [2.0, 2.0, 0.0]]])
A, B = np.array([0.5, 0.5]), np.array([0.25, 0.5, 0.25])
SHUT = np.array([[True, True, False], [False, False, True]])
COSTS = ForbiddenCosts.of_stack(STACK)


def test_an_arc_that_is_infinite_in_one_group_is_forbidden():
    assert (COSTS.forbidden == SHUT).all()
    for alpha in ([1.0, 0.0], [0.0, 1.0], [0.5, 0.5]):
        mixed = COSTS.mix(np.array(alpha))
        assert (np.isinf(mixed) == SHUT).all()
    assert COSTS.mix(np.array([0.5, 0.5]))[0, 2] == 1.5


def test_plans_that_use_one_cost_everything():
    assert np.isinf(COSTS.inner(Plan(np.outer(A, B)))).all()
    allowed = Plan.from_arcs([0, 1, 1], [2, 0, 1], [0.2, 0.3, 0.5], (2, 3))
    assert COSTS.inner(allowed) == pytest.approx([2.0 * 0.2 + 0.9 + 2.0, 0.2 + 0.6 + 1.0])


def test_entries_and_means_are_of_allowed_arcs():
    assert np.isinf(COSTS.at(np.array([0, 0]), np.array([0, 2]))).tolist() == [[True, False]] * 2
    weights = np.where(SHUT, 0.0, np.outer(A, B))
    finite = np.where(SHUT, 0.0, STACK)
    expected = (finite * weights).sum(axis=(1, 2)) / weights.sum()
    assert COSTS.independent(A, B) == pytest.approx(expected)
    assert COSTS.magnitudes(A, B) == pytest.approx(expected)
    assert (COSTS.least(A, B) <= [2.0, 1.0]).all()


def test_some_of_the_points():
    part = COSTS.take(np.array([1]), np.array([2, 0]))
    assert part.forbidden.tolist() == [[True, False]]
    assert part.mix(np.array([1.0, 0.0]))[0, 1] == 3.0
