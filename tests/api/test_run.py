"""Points that weigh next to nothing are left out on the way, and come back with their mass."""

from __future__ import annotations

import numpy as np
import pytest

import frot
from frot.api.run import negligible
from frot.costs import StackedCosts


def far_and_light(seed: int = 0):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(6, 4)), rng.normal(size=(5, 4)) + 0.5
    X[1], Y[3] = 1e8, -2e8
    a, b = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(5))
    a[1], b[3] = 3e-300, 5e-301
    return X, Y, a / a.sum(), b / b.sum()


@pytest.mark.parametrize("options", [{}, {"eta": 2.0}, {"eps": 0.3}, {"eta": 2.0, "eps": 0.3}])
def test_they_change_nothing(options):
    X, Y, a, b = far_and_light()
    kept = [0, 2, 3, 4, 5], [0, 1, 2, 4]
    whole = frot.solve(X, Y, [2, 2], a=a, b=b, **options)
    alone = frot.solve(
        X[kept[0]], Y[kept[1]], [2, 2], a=a[kept[0]], b=b[kept[1]], normalise_weights=True,
        **options,
    )  # fmt: skip
    assert whole.status is frot.Status.CONVERGED
    assert whole.value == pytest.approx(alone.value, rel=1e-12)
    assert whole.lower <= alone.upper
    assert alone.lower <= whole.upper


def test_their_mass_is_in_the_plan():
    X, Y, a, b = far_and_light()
    plan = np.asarray(frot.solve(X, Y, [2, 2], a=a, b=b, eta=2.0).plan)
    assert plan.sum(axis=1) == pytest.approx(a, rel=1e-14, abs=0.0)
    assert plan.sum(axis=0) == pytest.approx(b, rel=1e-14, abs=0.0)


def test_light_points_that_cost_something_stay():
    stack = np.ones((1, 2, 2))
    stack[0, 0] = 1e200
    a, b = np.array([1e-150, 1.0]), np.array([0.5, 0.5])
    assert negligible(frot.Problem(StackedCosts(stack), a, b)) is None
    stack[0, 0] = 1.0
    light = negligible(frot.Problem(StackedCosts(stack), a, b))
    assert light is not None
    assert light.rows.tolist() == [1]
    # Points without any weight are no concern of this.
    a = np.array([0.0, 1.0])
    assert negligible(frot.Problem(StackedCosts(stack), a, b)) is None
