"""Newton steps: a quadratic finish, and honesty where there is none."""

from __future__ import annotations

import numpy as np
import pytest

import frot
from frot import Entropic, Status, relative
from frot.costs import Stack
from frot.solvers.entropic.dense import DenseEngine
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.newton import weight_curvature
from tests.reference import quiet
from tests.solvers.entropic.bounds import check_bounds


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("eta", [0.0, 0.01, 0.1])
@pytest.mark.parametrize("eps", [0.01, 0.1])
def test_ten_digits_in_few_steps(seed, eta, eps):
    rng = np.random.default_rng(seed)
    stack = rng.random((6, 25, 20))
    a, b = rng.dirichlet(np.ones(25)), rng.dirichlet(np.ones(20))
    result = frot.solve_costs(
        stack, a, b, eta=relative(eta), eps=relative(eps), solver=Entropic(tol=1e-10)
    )
    assert result.status is Status.CONVERGED
    assert result.iterations < 100
    check_bounds(result, stack, a, b)


def test_more_digits_than_there_are():
    stack = np.random.default_rng(0).random((3, 8, 7))
    with pytest.warns(frot.ConvergenceWarning, match="cannot be narrowed further"):
        result = frot.solve_costs(stack, eps=0.05, eta=0.05, tol=1e-17)
    assert result.status is Status.STALLED
    assert result.gap < 1e-12


def test_small_eps_does_not_stall():
    """Plans that are nearly matchings make second derivatives nearly singular."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(6, 3)), rng.normal(size=(7, 3))
        result = frot.solve(X, Y, eta=relative(0.001), eps=relative(2e-4), tol=1e-8)
        assert result.status is Status.CONVERGED
        assert result.iterations < 150


def test_matchings_in_single_precision():
    """Second derivatives are exactly singular there; that must not raise."""
    points = np.arange(6.0)[:, None] * [1.0, 3.0]
    result = quiet(frot.solve, points.astype(np.float32), points, eps=1e-3, memory_budget=1)
    assert np.isfinite([result.lower, result.upper]).all()
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(points, dtype=torch.float32)
    result = quiet(frot.solve, tensor, tensor + 0.25, eps=1e-3)
    # A matching of six points: the distance of each pair, and the entropy of knowing which.
    assert result.value == pytest.approx(0.0625 + 1e-3 * np.log(6), rel=1e-4)


def test_many_groups_do_without():
    rng = np.random.default_rng(1)
    stack = rng.random((120, 12, 10))
    for eta in (0.0, 0.1):
        result = frot.solve_costs(stack, eta=eta, eps=0.05, tol=1e-5)
        assert result.status is Status.CONVERGED
        check_bounds(result, stack, np.full(12, 1 / 12), np.full(10, 0.1))


def test_weights_that_start_at_zero_are_found_again():
    stack = np.random.default_rng(2).random((4, 9, 8))
    cold = frot.solve_costs(stack, eps=0.03, tol=1e-8)
    for corner in np.eye(4):
        warm = frot.solve_costs(stack, eps=0.03, tol=1e-8, start=corner)
        assert warm.value == pytest.approx(cold.value, rel=2e-8)


@pytest.mark.parametrize("tau", [(np.inf, np.inf), (1.0, 2.0), (np.inf, 2.0)])
def test_curvature_in_the_weights_is_a_finite_difference(tau):
    rng = np.random.default_rng(0)
    geometry = Stack(rng.random((2, 3, 7, 6)))
    a, b = rng.dirichlet(np.ones(7), 2), rng.dirichlet(np.ones(6), 2)
    sizes = geometry.product(a, b)
    problem = EntropicProblem.of(
        geometry.home, a, b, frot.Simplex(), np.array([0.1, 0.2]), sizes, tau=tau
    )
    engine = DenseEngine(geometry, problem)
    alpha = np.array([[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]])
    point = engine.sweep(alpha, engine.start(alpha).g, 1e-14)
    found = weight_curvature(engine, point)
    for group, way in enumerate(1e-5 * np.eye(3)):
        ahead, back = (engine.sweep(alpha + step, point.g, 1e-15).phi for step in (way, -way))
        assert found[:, :, group] == pytest.approx((ahead - back) / 2e-5, abs=1e-8)
