"""Whatever the solver and the problem, the interval holds the truth and the answer is feasible."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import minimize
from scipy.special import softmax

import frot
from frot import Exact, FrankWolfe, LinearProgram, Sinkhorn
from tests.reference import linear_program, quiet, smooth_max
from tests.strategies import Given, cost_problems

# Each solver on its own problems; all together are hundreds.
FEW = settings(max_examples=40)
STEPS: Any = ("paper", "line_search", "fully_corrective")
HARD: dict[str, Any] = {
    "Exact": Exact(),
    "simplex": LinearProgram(method="simplex"),
    "ipm": LinearProgram(method="ipm"),
    "fully_corrective": FrankWolfe(max_iter=100),
    "fully_corrective with Sinkhorn": FrankWolfe(
        oracle=Sinkhorn(eps=1.0, max_iter=300), max_iter=15
    ),
}
SMOOTH: dict[str, Any] = {"Exact": Exact()} | {
    f"{step} with {name}": FrankWolfe(oracle=oracle, step=step, max_iter=15)
    for step, (name, oracle) in itertools.product(
        STEPS,
        [("NetworkSimplex", frot.NetworkSimplex()), ("Sinkhorn", Sinkhorn(eps=1.0, max_iter=300))],
    )
}


def solved(problem: Given, solver: Any, eta: float = 0.0) -> frot.Result:
    """Solve, by an oracle whose eps suits the costs where it has one."""
    if isinstance(solver, FrankWolfe) and isinstance(solver.oracle, Sinkhorn):
        eps = 0.05 * max(float(np.abs(problem.stack).max()), 1e-6)
        solver = replace(solver, oracle=replace(solver.oracle, eps=eps))
    return quiet(frot.solve_costs, problem.stack, problem.a, problem.b, eta=eta, solver=solver)


def check_answer(problem: Given, result: frot.Result, eta: float) -> None:
    """Check all but the optimum: feasibility of plan, weights and potentials, and the value."""
    reach = float(np.abs(problem.stack).max())
    plan = np.asarray(result.plan)
    assert (plan >= 0.0).all()
    assert plan.sum(axis=1) == pytest.approx(problem.a, rel=1e-12, abs=1e-15)
    assert plan.sum(axis=0) == pytest.approx(problem.b, rel=1e-12, abs=1e-15)
    phi = np.einsum("lij,ij->l", problem.stack, plan)
    assert result.phi == pytest.approx(phi, rel=1e-11, abs=1e-13 * reach)
    assert result.value == pytest.approx(smooth_max(phi, eta), rel=1e-11, abs=1e-12 * (reach + eta))
    assert (result.alpha >= 0.0).all()
    assert result.alpha.sum() == pytest.approx(1.0, rel=1e-12)
    assert result.lower <= result.upper
    assert result.value <= result.upper
    assert result.status.ok == (result.gap <= eval_tol(result))


def eval_tol(result: frot.Result) -> float:
    """The tolerance in the solver's name."""
    return float(result.solver.split(" tol=")[-1].split("tol=")[-1].split(",")[0])


def check_interval(problem: Given, solver: Any) -> None:
    result = solved(problem, solver)
    truth = linear_program(problem.stack, problem.a, problem.b)
    slack = 1e-9 * float(np.abs(problem.stack).max())
    assert result.lower <= truth + slack
    assert result.upper >= truth - slack
    check_answer(problem, result, 0.0)


@pytest.mark.parametrize("name", HARD)
@FEW
@given(problem=cost_problems())
def test_highs_is_in_the_interval(name, problem: Given):
    check_interval(problem, HARD[name])


@pytest.mark.parametrize("name", HARD)
@FEW
@given(problem=cost_problems(negative=True))
def test_and_where_costs_are_negative(name, problem: Given):
    check_interval(problem, HARD[name])


@pytest.mark.parametrize("name", SMOOTH)
@FEW
@given(problem=cost_problems(), share=st.sampled_from([0.01, 0.1, 1.0, 10.0]))
def test_entropy_moves_the_truth_by_at_most_eta_log_of_the_groups(name, problem: Given, share):
    reach = float(np.abs(problem.stack).max())
    eta = share * max(reach, 1e-6)
    result = solved(problem, SMOOTH[name], eta)
    truth = linear_program(problem.stack, problem.a, problem.b)
    assert result.upper >= truth - 1e-9 * reach
    assert result.lower <= truth + eta * np.log(len(problem.stack)) + 1e-9 * (reach + eta)
    check_answer(problem, result, eta)


@given(cost_problems(), st.sampled_from([0.02, 0.3, 3.0]))
def test_intervals_of_two_algorithms_meet(problem: Given, share):
    eta = share * max(float(np.abs(problem.stack).max()), 1e-6)
    one = solved(problem, Exact(), eta)
    other = solved(problem, FrankWolfe(step="fully_corrective", max_iter=60), eta)
    slack = 1e-12 * max(abs(one.upper), eta)
    assert max(one.lower, other.lower) <= min(one.upper, other.upper) + slack


def by_scipy(problem: Given, eta: float) -> float:
    """Minimise G_eta over plans by SLSQP, from the product plan."""
    n, m = len(problem.a), len(problem.b)
    flat = problem.stack.reshape(len(problem.stack), -1)
    sums = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])[:-1]
    targets = np.concatenate([problem.a, problem.b])[:-1]
    found = minimize(
        lambda x: smooth_max(flat @ x, eta),
        np.outer(problem.a, problem.b).ravel(),
        jac=lambda x: softmax(flat @ x / eta) @ flat,
        bounds=[(0.0, 1.0)] * (n * m),
        constraints={"type": "eq", "fun": lambda x: sums @ x - targets, "jac": lambda x: sums},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return float(found.fun)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("eta", [0.05, 0.5, 5.0])
def test_scipys_minimum_is_in_the_interval(seed, eta):
    rng = np.random.default_rng(seed)
    problem = Given(rng.random((3, 4, 3)), rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(3)))
    result = frot.solve_costs(problem.stack, problem.a, problem.b, eta=eta)
    found = by_scipy(problem, eta)
    assert result.lower <= found + 1e-7
    assert result.value == pytest.approx(found, abs=2e-6)


@pytest.mark.parametrize("name", HARD)
def test_larger_problems(name):
    rng = np.random.default_rng(0)
    problem = Given(rng.random((6, 25, 20)), rng.dirichlet(np.ones(25)), np.full(20, 0.05))
    result = solved(problem, HARD[name])
    truth = linear_program(problem.stack, problem.a, problem.b)
    assert result.lower - 1e-9 <= truth <= result.upper + 1e-9
    check_answer(problem, result, 0.0)
    if "Sinkhorn" not in name:
        assert result.gap <= 1e-4
