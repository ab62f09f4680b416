"""Box, ellipsoid, polytope and polyhedron: what is best, what is in, and the way in."""

from __future__ import annotations

import numpy as np
import pytest

import frot

SIDES = np.vstack([np.eye(3), -np.eye(3)])
SETS = {
    "box": frot.Box([-1.0, 0.0, 0.5], [1.0, 2.0, 0.5]),
    "ball": frot.Ellipsoid([1.0, 1.0, 1.0], 0.5),
    "disc": frot.Ellipsoid([1.0, 0.0, -1.0], [[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]),
    "point": frot.Ellipsoid([1.0, 2.0, 3.0], 0.0),
    "polytope": frot.Polytope([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [1.0, 1.0, 1.0]]),
    "polyhedron": frot.Polyhedron(SIDES, [1.0, 1.0, 2.0, 0.0, 0.0, 1.0]),
    "flat": frot.Polyhedron(SIDES, [1, 1, 1, 0, 0, 0], equal=([[1.0, 1.0, 1.0]], [1.0])),
    # Two rows that leave no room between them are an equation.
    "pressed": frot.Polyhedron(
        np.vstack([SIDES, [[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]]]), [1, 1, 1, 0, 0, 0, 1, -1]
    ),
}


@pytest.mark.parametrize("kind", SETS)
def test_what_is_projected_is_in_and_stays(kind):
    rng, weights = np.random.default_rng(0), SETS[kind]
    for size in (1e-3, 1.0, 1e3):
        for raw in rng.normal(size=(30, 3)) * size:
            alpha = weights.project(raw)
            assert weights.contains(alpha)
            assert weights.project(alpha) == pytest.approx(alpha, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("kind", SETS)
def test_the_best_answer_is_in_and_nothing_in_the_set_is_better(kind):
    rng, weights = np.random.default_rng(1), SETS[kind]
    for phi in rng.normal(size=(30, 3)):
        value, alpha = weights.best(phi)
        near = weights.project(alpha)
        assert near == pytest.approx(alpha, abs=1e-9)
        assert alpha @ phi == pytest.approx(value, abs=1e-12)
        for raw in rng.normal(size=(10, 3)) * 3.0:
            assert weights.project(raw) @ phi <= value + 1e-9


@pytest.mark.parametrize("kind", SETS)
def test_what_is_outside_is_not_in(kind):
    weights = SETS[kind]
    _, alpha = weights.best(np.array([1.0, 1.0, 1.0]))
    assert not weights.contains(alpha + 1e-6)
