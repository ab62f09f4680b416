"""What a solution with eps proves about the problem without: bounds that hold, and bind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import frot
from frot import Simplex
from frot.costs import Stack
from frot.problem.problem import Marginals, Problem
from frot.problem.unregularised import interval_without_eps, plain_lower

RNG = np.random.default_rng(0)
COSTS = RNG.random((3, 7, 5))
ALPHA = np.array([0.2, 0.5, 0.3])
A, B = RNG.dirichlet(np.ones(7)), RNG.dirichlet(np.ones(5))
HOLES = np.array([0.3, 0.0, 0.2, 0.5, 0.0])


def problem_of(b: np.ndarray, **options: Any) -> Problem:
    return Problem(Stack(COSTS), A, b, eps=0.05, **options)


@pytest.mark.parametrize("b", [B, HOLES], ids=["full", "holes"])
def test_potentials_leave_no_cost_negative_and_bind(b: np.ndarray):
    found = plain_lower(problem_of(b), ALPHA, RNG.normal(size=5))
    reduced = np.tensordot(ALPHA, COSTS, 1) - found.f[:, None] - found.g
    assert reduced.min() >= -1e-14
    assert np.abs(reduced).min(axis=0) == pytest.approx(0.0, abs=1e-14)
    assert found.bound == pytest.approx(A @ found.f + b @ found.g, rel=1e-12)


@pytest.mark.parametrize("eta", [0.0, 0.1])
@pytest.mark.parametrize("door", ["solve", "batch", "single", "device costs"])
def test_the_optimum_is_inside(door: str, eta: float):
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(30, 4)), rng.normal(size=(25, 4)) + 0.5
    exact = frot.solve(X, Y, [2, 2], eta=eta)
    options: dict[str, Any] = {"eta": eta, "eps": frot.relative(0.01)}
    if door == "batch":
        found = frot.solve_batch(X[None], Y[None], [2, 2], **options)[0]
    elif door == "solve":
        found = frot.solve(X, Y, [2, 2], **options)
    else:
        torch = pytest.importorskip("torch")
        kind = torch.float32 if door == "single" else torch.float64
        x, y = (torch.tensor(side, dtype=kind) for side in (X, Y))
        found = frot.solve(x, y, [2, 2], **options)
    low, high = found.unregularised
    off = 1e-5 if door == "single" else 0.0
    assert low <= exact.upper * (1.0 + off)
    assert exact.lower * (1.0 - off) <= high
    assert high - low <= 0.1 * high


def test_a_solution_of_its_own_problem_proves_it_to_the_last_digits():
    exact = frot.solve_costs(COSTS, A, B)
    low, high = interval_without_eps(problem_of(B), exact.alpha, exact.potentials[1], exact.plan)
    assert low <= exact.upper
    assert exact.lower <= high
    assert high - low <= 1e-9 * high


@pytest.mark.parametrize("tau", [(0.3, 0.3), (np.inf, 0.2), (0.5, np.inf)])
def test_mass_that_may_go_is_paid_for(tau: tuple[float, float]):
    exact = frot.solve_costs(COSTS, A, B, tau=tau, eta=0.05)
    found = frot.solve_costs(COSTS, A, B, tau=tau, eta=0.05, eps=0.002)
    low, high = found.unregularised
    assert low <= exact.upper
    assert exact.lower <= high
    assert high - low <= 0.05 * high


def test_weights_that_are_not_allowed_are_projected_and_nothing_proves_zero():
    problem = problem_of(B, adversary=Simplex(0.0), marginals=Marginals())
    assert plain_lower(problem, 2.0 * ALPHA, np.zeros(5)).alpha == pytest.approx(ALPHA)
    # One column so dear that the others are left with less than nothing.
    found = plain_lower(problem, ALPHA, np.array([1e9, 0.0, 0.0, 0.0, 0.0]))
    assert found.bound >= 0.0
