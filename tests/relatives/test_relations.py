"""How the relatives stand to each other and to feature-robust transport."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog
from scipy.stats import ortho_group

import frot
from tests.reference import quiet
from tests.strategies import cost_problems, point_clouds, seeds

FEW = settings(max_examples=25, deadline=None)


def close(res: frot.Result, other: frot.Result, slack: float = 1e-7) -> None:
    """Both intervals hold the same number."""
    room = slack * (abs(res.upper) + abs(other.upper)) + 1e-12
    assert res.lower <= other.upper + room
    assert other.lower <= res.upper + room


def feasible(res: frot.Result, a=None, b=None) -> None:
    n, m = res.plan.shape
    a = np.full(n, 1 / n) if a is None else a
    b = np.full(m, 1 / m) if b is None else b
    assert np.allclose(res.plan.sum(axis=1), a, atol=1e-12)
    assert np.allclose(res.plan.sum(axis=0), b, atol=1e-12)
    assert res.lower <= res.upper
    assert (np.asarray(res.plan) >= 0.0).all()


@FEW
@given(point_clouds())
def test_frot_is_below_srw_of_one_direction_which_is_below_plain_transport(clouds):
    X, Y = clouds
    robust = frot.solve(X, Y, "each")
    one = quiet(frot.srw, X, Y, k=1, tol=1e-6, max_iter=60)
    plain = frot.wasserstein(X, Y)
    room = 1e-9 * (1.0 + plain.upper)
    assert robust.lower <= one.upper + room
    assert one.lower <= plain.upper + room
    for res in (robust, one, plain):
        feasible(res)


@FEW
@given(point_clouds(), st.data())
def test_srw_grows_with_k_up_to_plain_transport(clouds, data):
    X, Y = clouds
    d = X.shape[1]
    k = data.draw(st.integers(1, d))
    some = quiet(frot.srw, X, Y, k=k, tol=1e-5, max_iter=60)
    every = frot.srw(X, Y, k=d)
    assert some.lower <= every.upper + 1e-9 * (1.0 + every.upper)
    assert every.status.ok
    close(every, frot.wasserstein(X, Y))
    feasible(some)
    assert some.chosen is not None
    assert some.chosen.weights is not None
    assert some.chosen.weights.sum() <= k + 1e-9
    assert np.abs(some.chosen.array.T @ some.chosen.array - np.eye(len(some.alpha))).max() < 1e-9


@FEW
@given(point_clouds(most_points=4, most_features=3), seeds)
def test_rotations_and_shifts_leave_srw_as_it_is(clouds, seed):
    X, Y = clouds
    d = X.shape[1]
    turn = ortho_group.rvs(d, random_state=seed) if d > 1 else np.array([[-1.0]])
    options = {"k": 1, "tol": 1e-6, "max_iter": 60}
    here = quiet(frot.srw, X, Y, **options)
    there = quiet(frot.srw, X @ turn + 3.0, Y @ turn + 3.0, **options)
    close(here, there)


@FEW
@given(point_clouds())
def test_max_sliced_is_below_srw_of_one_direction(clouds):
    X, Y = clouds
    line = frot.max_sliced(X, Y, restarts=3)
    one = quiet(frot.srw, X, Y, k=1, tol=1e-6, max_iter=60)
    assert line.lower <= one.upper + 1e-9 * (1.0 + one.upper)
    assert line.status in (frot.Status.LOWER_BOUND, frot.Status.CONVERGED)
    assert line.lower <= line.value * (1.0 + 1e-9) + 1e-12
    feasible(line)
    # The best single feature is a direction too.
    single = frot.max_min(X, Y, "each")
    assert single.lower <= line.upper + 1e-9 * (1.0 + line.upper)


@FEW
@given(point_clouds())
def test_max_min_is_below_min_max(clouds):
    X, Y = clouds
    inner, outer = frot.max_min(X, Y, "each"), frot.solve(X, Y, "each")
    assert inner.lower <= outer.upper * (1.0 + 1e-9) + 1e-12
    assert inner.alpha.sum() == 1.0
    assert inner.alpha.max() == 1.0
    feasible(inner)
    each = [frot.wasserstein(X[:, [i]], Y[:, [i]]).value for i in range(X.shape[1])]
    assert inner.value == pytest.approx(max(each), rel=1e-8, abs=1e-12)


@FEW
@given(point_clouds(most_features=3))
def test_max_min_over_mixed_costs_reaches_min_max(clouds):
    X, Y = clouds
    outer = frot.solve(X, Y, "each")
    # The weights that prove the lower bound, as one single cost.
    mixed = frot.wasserstein(X * np.sqrt(outer.alpha), Y * np.sqrt(outer.alpha))
    assert mixed.value == pytest.approx(outer.value, rel=1e-7, abs=1e-10)


@FEW
@given(cost_problems(negative=True))
def test_cutting_set_with_the_simplex_is_frot(problem):
    cut = quiet(frot.solve_costs, problem.stack, problem.a, problem.b, solver=frot.CuttingSet())
    close(cut, frot.solve_costs(problem.stack, problem.a, problem.b))
    feasible(cut, problem.a, problem.b)


def capped(stack, a, b, k) -> float:
    """min over plans of the mean of the k largest costs: t + sum s_l / k, s_l >= phi_l - t."""
    count, n, m = stack.shape
    unit = float(np.abs(stack).max()) or 1.0
    ends = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    solved = linprog(
        np.concatenate([np.zeros(n * m), [1.0], np.full(count, 1.0 / k)]),
        A_ub=np.hstack([stack.reshape(count, -1) / unit, -np.ones((count, 1)), -np.eye(count)]),
        b_ub=np.zeros(count),
        A_eq=np.hstack([ends, np.zeros((n + m, 1 + count))])[1:],
        b_eq=np.append(a, b)[1:],
        bounds=[(0.0, None)] * (n * m) + [(None, None)] + [(0.0, None)] * count,
        method="highs",
    )
    assert solved.status == 0
    return float(solved.fun * unit)


@FEW
@given(cost_problems(zeros=False, scaled=False), st.data())
def test_the_capped_simplex_against_its_linear_program(problem, data):
    count = len(problem.stack)
    k = data.draw(st.integers(1, count))
    a, b = np.full(problem.stack.shape[1], 1.0), np.full(problem.stack.shape[2], 1.0)
    a, b = a / a.sum(), b / b.sum()
    res = quiet(
        frot.solve_costs, problem.stack, a, b, adversary=frot.CappedSimplex(k),
        solver="cutting_set",
    )  # fmt: skip
    truth = capped(problem.stack, a, b, k)
    room = 1e-6 * (1.0 + abs(truth))
    assert res.lower - room <= truth <= res.upper + room
    assert res.value == pytest.approx(truth, abs=1e-6)
    assert res.alpha.max() <= 1.0 / k + 1e-9


@FEW
@given(cost_problems())
def test_equitable_with_one_cost_is_transport(problem):
    one = quiet(frot.equitable, problem.stack[:1], problem.a, problem.b)
    close(one, frot.solve_costs(problem.stack[:1], problem.a, problem.b))
    feasible(one, problem.a, problem.b)


def shared(stack, a, b) -> float:
    """The linear program of equitable transport, whole."""
    count, n, m = stack.shape
    ends = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    levels = np.zeros((count, count * n * m + 1))
    for group in range(count):
        levels[group, group * n * m : (group + 1) * n * m] = stack[group].ravel()
    levels[:, -1] = -1.0
    solved = linprog(
        np.append(np.zeros(count * n * m), 1.0),
        A_ub=levels,
        b_ub=np.zeros(count),
        A_eq=np.hstack([*[ends] * count, np.zeros((n + m, 1))])[1:],
        b_eq=np.append(a, b)[1:],
        method="highs",
    )
    assert solved.status == 0
    return float(solved.fun)


@FEW
@given(cost_problems(scaled=False, zeros=False))
def test_equitable_against_its_linear_program(problem):
    n, m = problem.stack.shape[1:]
    a, b = np.full(n, 1.0 / n), np.full(m, 1.0 / m)
    res = quiet(frot.equitable, problem.stack, a, b)
    truth = shared(problem.stack, a, b)
    assert res.value == pytest.approx(truth, abs=1e-7)
    assert res.lower - 1e-7 <= truth <= res.upper + 1e-7
    feasible(res)
    assert res.chosen is not None
    assert res.chosen.array.sum() == pytest.approx(1.0)
    # To share the work is never worse than to have one do it, or all of it counted by all.
    assert res.lower <= frot.solve_costs(problem.stack, a, b).upper + 1e-9
