"""The entropic problem: its certificate recomputed by hand, its limits, and its prior."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import ot
import pytest
from hypothesis import given

import frot
from frot import Entropic, InputError, Status
from tests.reference import quiet, smooth_max
from tests.strategies import Given, cost_problems

RNG = np.random.default_rng(0)
STACK = RNG.random((4, 12, 9))
A, B = RNG.dirichlet(np.ones(12)), RNG.dirichlet(np.ones(9))


def primal(result: frot.Result, stack: np.ndarray, a, b, eta: float, eps: float) -> float:
    """The objective of the plan, from its definition."""
    plan = np.asarray(result.plan)
    ratio = np.where(plan > 0.0, plan / np.where(plan > 0.0, np.outer(a, b), 1.0), 1.0)
    phi = np.einsum("lij,ij->l", stack, plan)
    return smooth_max(phi, eta) + eps * float((plan * np.log(ratio)).sum())


def dual(result: frot.Result, stack: np.ndarray, a, b, eta: float, eps: float) -> float:
    """The dual objective of the potentials and weights, from its definition."""
    alpha, (f, g) = result.alpha, result.potentials
    mixed = np.einsum("l,lij->ij", alpha, stack)
    gibbs = np.outer(a, b) * np.exp((f[:, None] + g - mixed) / eps)
    on = alpha[alpha > 0.0]
    return float(f @ a + g @ b - eps * (gibbs.sum() - 1.0) - eta * (on @ np.log(on)))


@pytest.mark.parametrize("eta", [0.0, 0.003, 0.1, 3.0])
@pytest.mark.parametrize("eps", [0.005, 0.05, 1.0])
def test_the_interval_is_what_plan_and_potentials_prove(eta, eps):
    result = frot.solve_costs(STACK, A, B, eta=eta, eps=eps, solver=Entropic(tol=1e-6))
    assert result.status is Status.CONVERGED
    assert result.gap <= 1e-6
    upper = primal(result, STACK, A, B, eta, eps)
    lower = dual(result, STACK, A, B, eta, eps)
    # The entropy of the rounded plan is bounded by that of its parts, so the value is no less.
    assert upper <= result.value * (1.0 + 1e-12)
    assert result.value == pytest.approx(upper, rel=1e-6)
    assert result.lower == pytest.approx(lower, rel=1e-9)
    assert lower <= upper * (1.0 + 1e-12)
    assert result.plan.sum(axis=1) == pytest.approx(A, rel=1e-12)
    assert result.plan.sum(axis=0) == pytest.approx(B, rel=1e-12)


@given(
    cost_problems(negative=True),
    st.sampled_from([0.0, 0.01, 1.0]),
    st.sampled_from([0.01, 0.1, 10.0]),
)
def test_the_truth_without_eps_is_in_its_interval(problem: Given, eta_share, eps_share):
    reach = max(float(np.abs(problem.stack).max()), 1e-6)
    eta, eps = eta_share * reach, eps_share * reach
    arguments = (problem.stack, problem.a, problem.b)
    result = quiet(frot.solve_costs, *arguments, eta=eta, eps=eps, solver=Entropic(max_iter=50))
    exact = quiet(frot.solve_costs, *arguments, eta=eta)
    lower, upper = result.unregularised
    assert lower <= exact.upper
    assert exact.lower <= upper
    assert result.lower <= result.upper
    # KL is never negative, so the entropic optimum is no less than the plain one.
    assert exact.lower <= result.upper


@pytest.mark.parametrize("eps", [0.02, 0.2])
def test_one_group_is_sinkhorn(eps):
    result = frot.solve_costs(STACK[:1], A, B, eps=eps, solver=Entropic(tol=1e-9))
    plan = ot.sinkhorn(A, B, STACK[0], eps, method="sinkhorn_log", stopThr=1e-13)
    assert np.asarray(result.plan) == pytest.approx(plan, abs=1e-6)


def test_small_eps_comes_near_the_exact_value():
    exact = frot.solve_costs(STACK, A, B)
    result = frot.solve_costs(STACK, A, B, eps=1e-3)
    assert "Entropic" in result.solver
    lower, upper = result.unregularised
    assert lower <= exact.value <= upper
    assert upper - lower <= 0.02 * exact.value


def test_a_prior_counts_like_copies_of_a_group():
    """Two copies of a group with the paper's entropy are one of twice the prior."""
    eta, eps = 0.2, 0.05
    copies = frot.solve_costs(STACK[[0, 0, 1]], A, B, eta=eta, eps=eps, solver=Entropic(tol=1e-8))
    prior = frot.solve_costs(
        STACK[:2], A, B, eta=eta, eps=eps, prior=[2, 1], solver=Entropic(tol=1e-8)
    )
    assert prior.value + eta * np.log(3) == pytest.approx(copies.value, rel=1e-7)
    assert prior.alpha == pytest.approx([copies.alpha[:2].sum(), copies.alpha[2]], abs=1e-4)


def test_a_start_saves_steps():
    cold = frot.solve_costs(STACK, A, B, eta=0.01, eps=0.01)
    warm = frot.solve_costs(STACK, A, B, eta=0.01, eps=0.01, start=cold)
    assert warm.iterations <= cold.iterations
    assert warm.value == pytest.approx(cold.value, rel=2e-4)


def test_limits_are_kept_and_said():
    with pytest.warns(frot.ConvergenceWarning, match="max_iter"):
        result = frot.solve_costs(STACK, A, B, eps=0.01, solver=Entropic(tol=1e-12, max_iter=2))
    assert result.status is Status.MAX_ITER
    assert result.lower <= result.upper


def test_it_needs_eps():
    with pytest.raises(InputError, match=r"eps: Entropic needs eps > 0"):
        frot.solve_costs(STACK, A, B, solver=Entropic())


def test_points_that_are_all_alike():
    result = frot.solve(np.ones((3, 2)), np.ones((4, 2)), eps=0.5)
    assert result.value == pytest.approx(0.0, abs=1e-12)
    assert np.asarray(result.plan) == pytest.approx(np.full((3, 4), 1 / 12))


@pytest.mark.parametrize("groups", [[2], [1, 1]], ids=["one group", "two groups"])
@pytest.mark.parametrize(
    "door",
    [frot.solve, lambda X, Y, *g, **k: frot.solve_batch([X], [Y], *g, **k)[0]],
    ids=["alone", "batch"],
)
def test_far_points_that_weigh_next_to_nothing_have_an_interval_that_holds(door, groups):
    # Potentials of the far points are 10^12 eps from where sweeps begin, which move them by some.
    X, Y = np.array([[9e5, 8e5], [0.1, -0.7]]), np.array([[1.1e6, 1e6], [0.0, -0.8], [1.9, 1.5]])
    a, b = np.array([2e-12, 1 - 2e-12]), np.array([3e-12, 0.4, 0.6 - 3e-12])
    found = quiet(door, X, Y, groups, a=a, b=b, eps=1.0)
    # The near points have one row: nothing to choose, and no entropy to speak of.
    costs = (X[:, None, :] - Y) ** 2
    plan = np.array([[2e-12, 0.0, 0.0], [1e-12, 0.4, 0.6 - 3e-12]])
    phi = [
        np.vdot(plan, costs[:, :, at].sum(axis=2))
        for at in ([[0, 1]] if groups == [2] else [[0], [1]])
    ]
    assert found.lower <= max(phi) * (1.0 + 1e-9)
    assert max(phi) <= found.upper * (1.0 + 1e-9)
