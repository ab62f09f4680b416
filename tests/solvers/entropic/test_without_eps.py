"""Bounds from the problem without eps, where light points far away leave a search no digits."""

from __future__ import annotations

import numpy as np
import pytest

import frot
from frot import Status
from frot.costs import StackedCosts
from frot.problem.problem import Problem
from frot.solvers.entropic.entropic import without_eps


def far_and_light(seed: int) -> tuple[np.ndarray, ...]:
    """Points and weights; some on both sides are a million away, and weigh next to nothing."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(2, 4)), rng.normal(size=(12, 4))
    a, b, far = np.array([1e-9, 1.0]), rng.random(12) + 0.1, rng.random(12) < 0.4
    X[0] *= 1e7
    Y[far] *= 10.0 ** rng.uniform(2.0, 7.0, far.sum())[:, None]
    b[far] *= 10.0 ** -rng.uniform(9.0, 16.0, far.sum())
    return X, Y, a / a.sum(), b / b.sum()


@pytest.mark.parametrize("seed", range(4))
def test_offers_hold_the_optimum(seed: int):
    rng = np.random.default_rng(seed)
    costs = rng.random((2, 4, 5))
    a, b = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(5))
    problem = Problem(StackedCosts(costs), a, b, eps=1e-3)
    found = frot.solve_costs(costs, a=a, b=b, eps=1e-3, tol=1e-9)
    offers = [offer for offer in without_eps(problem, 1e-6) if offer.upper is not None]
    assert offers
    for offer in offers:
        upper, lower = offer.upper, offer.lower
        assert upper is not None
        assert lower is not None
        assert lower.bound <= found.upper
        assert found.lower <= upper.bound
        # No plan's entropy is more than the logarithm of the smallest weight.
        assert upper.bound - lower.bound <= 1e-3 * -np.log(min(a.min(), b.min())) + 1e-6


@pytest.mark.parametrize("seed", range(4, 16))
def test_light_points_far_away_and_a_small_eps(seed: int):
    X, Y, a, b = far_and_light(seed)
    alone = frot.solve(X, Y, "all", a=a, b=b, eps=0.03)
    batch = frot.solve_batch(X[None], Y[None], "all", a=a[None], b=b[None], eps=0.03)
    assert alone.status in (Status.CONVERGED, Status.PRECISION)
    assert batch.status[0] in (Status.CONVERGED, Status.PRECISION)
    assert max(alone.lower, batch.lower[0]) <= min(alone.upper, batch.upper[0]) * (1.0 + 1e-12)
    assert alone.gap <= 1e-4
    assert batch.gap[0] <= 1e-4
