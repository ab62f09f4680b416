"""The capped simplex in every solver: between the largest cost and the mean of all."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import frot
from frot import CappedSimplex
from frot.costs import Stack
from frot.problem.problem import Problem
from frot.solvers.exact.column_generation import column_generation
from frot.solvers.frank_wolfe import best_mixture
from frot.solvers.oracles import NetworkSimplex

LINEAR = (frot.Exact(), frot.LinearProgram(), frot.FrankWolfe(), frot.CuttingSet())
SHAPES = [(4, 6, 7), (7, 12, 9), (12, 15, 12)]


def draw(shape: tuple[int, int, int], seed: int = 0, signed: bool = False):
    """Costs of groups that differ in size, and uneven weights."""
    rng = np.random.default_rng(seed)
    count, n, m = shape
    C = rng.uniform(size=shape) * np.linspace(0.7, 1.3, count)[:, None, None]
    if signed:
        C = C - 0.5
    return C, rng.dirichlet(np.full(n, 3.0)), rng.dirichlet(np.full(m, 3.0))


def program(C: np.ndarray, a: np.ndarray, b: np.ndarray, k: int) -> float:
    """The epigraph program of the mean of the k largest costs, by SciPy's door to HiGHS."""
    count, n, m = C.shape
    rows, cols = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
    found = linprog(
        np.concatenate([np.zeros(n * m), [1.0], np.full(count, 1.0 / k)]),
        A_ub=np.hstack([C.reshape(count, -1), -np.ones((count, 1)), -np.eye(count)]),
        b_ub=np.zeros(count),
        A_eq=np.hstack([np.vstack([rows, cols]), np.zeros((n + m, count + 1))]),
        b_eq=np.concatenate([a, b]),
        bounds=[(0.0, None)] * (n * m) + [(None, None)] + [(0.0, None)] * count,
    )
    assert found.status == 0
    return float(found.fun)


def caps(count: int) -> list[int]:
    return sorted({1, 2, 3, count // 2, count - 1, count})


@pytest.mark.parametrize("solver", LINEAR, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_interval_holds_what_highs_finds(shape, solver):
    C, a, b = draw(shape)
    for k in caps(shape[0]):
        truth = program(C, a, b, k)
        res = frot.solve_costs(C, a, b, adversary=CappedSimplex(k), solver=solver)
        assert res.status.ok
        # HiGHS is right to 1e-7 itself.
        assert res.lower - 1e-7 <= truth <= res.upper + 1e-7
        assert res.value == pytest.approx(truth, rel=2e-6)
        assert CappedSimplex(k).contains(res.alpha)


@pytest.mark.parametrize("solver", [frot.Exact(), frot.LinearProgram()], ids=repr)
def test_costs_of_any_sign(solver):
    C, a, b = draw((6, 8, 9), seed=1, signed=True)
    for k in caps(6):
        res = frot.solve_costs(C, a, b, adversary=CappedSimplex(k), solver=solver)
        assert res.status.ok
        assert res.value == pytest.approx(program(C, a, b, k), abs=1e-7)


def test_one_share_is_the_simplex():
    C, a, b = draw((5, 8, 8))
    for solver in LINEAR:
        one = frot.solve_costs(C, a, b, adversary=CappedSimplex(1), solver=solver)
        plain = frot.solve_costs(C, a, b, solver=solver)
        assert (one.lower, one.upper) == (plain.lower, plain.upper)


@pytest.mark.parametrize("eta", [0.0, 0.1])
def test_as_many_shares_as_groups_is_transport_at_the_mean_cost(eta):
    C, a, b = draw((5, 8, 9))
    mean = frot.solve_costs(C.mean(axis=0)[None], a, b).value + eta * np.log(5.0)
    solvers = LINEAR if eta == 0.0 else (frot.Exact(), frot.FrankWolfe())
    for solver in solvers:
        res = frot.solve_costs(C, a, b, eta=eta, adversary=CappedSimplex(5), solver=solver)
        assert res.value == pytest.approx(mean, rel=1e-9)
        assert res.alpha == pytest.approx(np.full(5, 0.2), abs=1e-15)


def test_more_shares_never_cost_more():
    C, a, b = draw((9, 15, 14), seed=3)
    found = [frot.solve_costs(C, a, b, adversary=CappedSimplex(k)) for k in range(1, 10)]
    assert all(one.upper >= other.lower for one, other in pairwise(found))
    assert found[0].lower > found[-1].upper


def test_the_order_of_the_groups_is_no_matter():
    C, a, b = draw((8, 12, 10), seed=4)
    order = np.random.default_rng(0).permutation(8)
    changes: list[dict[str, Any]] = [{}, {"eta": 0.1}, {"eps": 0.05}]
    for options in changes:
        one = frot.solve_costs(C, a, b, adversary=CappedSimplex(3), **options)
        other = frot.solve_costs(C[order], a, b, adversary=CappedSimplex(3), **options)
        assert max(one.lower, other.lower) <= min(one.upper, other.upper)
        assert other.value == pytest.approx(one.value, rel=2e-4)


def test_many_groups_enter_on_demand():
    C, a, b = draw((160, 12, 12), seed=5)
    for k in (2, 40, 150):
        res = frot.solve_costs(C, a, b, adversary=CappedSimplex(k))
        assert res.status.ok
        assert res.value == pytest.approx(program(C, a, b, k), rel=1e-7)


def test_points_and_their_costs_agree():
    rng = np.random.default_rng(6)
    X, Y = rng.normal(size=(40, 6)), rng.normal(size=(30, 6)) + np.linspace(0.0, 1.0, 6)
    stack = (X.T[:, :, None] - Y.T[:, None, :]) ** 2
    one = frot.solve(X, Y, adversary=CappedSimplex(2))
    other = frot.solve_costs(stack, adversary=CappedSimplex(2))
    assert one.value == pytest.approx(other.value, rel=1e-9)
    assert one.gap <= 1e-9


@pytest.mark.parametrize("prior", [None, [1.0, 2.0, 3.0, 4.0, 5.0]], ids=["uniform", "prior"])
@pytest.mark.parametrize("eta", [0.01, 0.1, 1.0])
def test_entropy_and_cap_together(eta, prior):
    C, a, b = draw((5, 7, 6), seed=7)
    options = {"eta": eta, "prior": prior, "adversary": CappedSimplex(3)}
    exact = frot.solve_costs(C, a, b, **options)
    steps = [frot.FrankWolfe(tol=1e-7), frot.FrankWolfe(step="line_search", tol=1e-3)]
    for solver in steps:
        res = frot.solve_costs(C, a, b, solver=solver, **options)
        assert res.status.ok
        assert max(res.lower, exact.lower) <= min(res.upper, exact.upper)
    assert exact.gap <= 1e-9
    assert CappedSimplex(3).contains(exact.alpha)
    # The weights that answer the plan are those at the saddle point.
    log_prior = None if prior is None else np.log(np.asarray(prior) / np.sum(prior))
    _, alpha = CappedSimplex(3, eta, log_prior).best(exact.phi)
    assert alpha == pytest.approx(exact.alpha, abs=1e-5)


def test_the_dual_by_scipy_agrees_with_entropy_and_cap():
    C, a, b = draw((4, 5, 5), seed=8)
    adversary = CappedSimplex(2, eta=0.05)

    def loss(alpha: np.ndarray) -> float:
        mixed = np.tensordot(alpha, C, 1)
        return -float((NetworkSimplex()(mixed, a, b).plan.dense() * mixed).sum()) - (
            adversary.reward(alpha)
        )

    best = minimize(
        loss,
        np.full(4, 0.25),
        bounds=[(1e-9, 0.5)] * 4,
        constraints={"type": "eq", "fun": lambda alpha: alpha.sum() - 1.0},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    res = frot.solve_costs(C, a, b, adversary=adversary)
    # A maximum of a function with kinks, found without a proof.
    assert -best.fun <= res.upper + 1e-9
    assert -best.fun == pytest.approx(res.value, rel=1e-3)


@pytest.mark.parametrize("eta", [0.0, 0.1])
def test_with_entropy_on_the_plan(eta):
    C, a, b = draw((6, 20, 15), seed=9)
    for k in (2, 4, 6):
        options = {"eta": eta, "eps": 0.05, "adversary": CappedSimplex(k), "tol": 1e-7}
        res = frot.solve_costs(C, a, b, **options)
        assert res.status.ok
        assert CappedSimplex(k).contains(res.alpha)
        # The optimum without eps is below, and the plan's own objective above.
        plain = frot.solve_costs(C, a, b, eta=eta, adversary=CappedSimplex(k))
        assert res.unregularised[0] <= plain.upper
        assert plain.lower <= res.unregularised[1]
        plan = np.asarray(res.plan)
        phi = np.einsum("lij,ij->l", C, plan)
        value = CappedSimplex(k, eta).best(phi)[0]
        on = plan > 0.0
        entropy = float((plan[on] * np.log(plan[on] / np.outer(a, b)[on])).sum())
        assert value + 0.05 * entropy == pytest.approx(res.value, rel=1e-6)


def test_an_eps_that_vanishes_comes_to_the_exact_optimum():
    C, a, b = draw((6, 12, 12), seed=10)
    exact = frot.solve_costs(C, a, b, adversary=CappedSimplex(3))
    res = frot.solve_costs(C, a, b, eps=1e-6, adversary=CappedSimplex(3))
    assert res.value == pytest.approx(exact.value, rel=1e-4)
    assert res.unregularised[0] <= exact.upper
    assert exact.lower <= res.unregularised[1]


def test_the_sinkhorn_oracle():
    C, a, b = draw((5, 12, 10), seed=11)
    options = {"eta": 0.1, "adversary": CappedSimplex(2)}
    exact = frot.solve_costs(C, a, b, **options)
    with pytest.warns(frot.ConvergenceWarning):
        res = frot.solve_costs(
            C, a, b, solver=frot.FrankWolfe(frot.Sinkhorn(eps=0.02), max_iter=20), **options
        )
    assert res.lower <= exact.upper
    assert exact.lower <= res.upper


def test_column_generation_alone_ends_at_the_optimum():
    C, a, b = draw((6, 9, 8), seed=13)
    for k in (2, 3, 5):
        problem = Problem(Stack(C), a, b, CappedSimplex(k))
        *_, last = column_generation(problem, None)
        assert last.upper is not None
        assert last.lower is not None
        assert last.upper.bound == pytest.approx(program(C, a, b, k), rel=1e-7)
        assert last.upper.bound - last.lower.bound <= 1e-9


@pytest.mark.parametrize("eta", [0.0, 0.2])
def test_the_best_mixture_under_a_cap(eta):
    rng = np.random.default_rng(15)
    phis = rng.uniform(size=(6, 4))
    for k in (2, 5, 6):
        adversary = CappedSimplex(k, eta)
        weights, alpha = best_mixture(phis, adversary, unit=1.0)
        value, _ = adversary.best(phis @ weights)
        assert adversary.contains(alpha)
        # The weights prove that no mixture is better.
        assert (alpha @ phis).min() + adversary.reward(alpha) == pytest.approx(value, abs=1e-8)


def test_a_run_that_had_no_time_still_tells_the_truth():
    C, a, b = draw((12, 60, 50), seed=16)
    truth = frot.solve_costs(C, a, b, adversary=CappedSimplex(4)).value
    changes: list[dict[str, Any]] = [{}, {"eps": 1e-3}, {"solver": "frank_wolfe"}]
    for options in changes:
        with pytest.warns(frot.ConvergenceWarning):
            res = frot.solve_costs(C, a, b, adversary=CappedSimplex(4), time_limit=1e-9, **options)
        low, high = res.unregularised
        assert low <= truth <= high
