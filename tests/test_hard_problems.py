"""Forbidden arcs, light points far away, near-duplicates, copies of groups, time limits."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest

import frot
from frot import Status
from tests.reference import linear_program, quiet

NO_FARTHER_THAN = 1e-7


@pytest.mark.parametrize("big", [1e4, 1e6, 1e9])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("n", [5, 12, 60])
def test_large_numbers_for_forbidden_arcs(big, shared, n):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        stack = rng.random((3, n, n))
        shut = rng.random((1, n, n) if shared else (3, n, n)) < 0.5
        shut[:, np.arange(n), rng.permutation(n)] = False
        stack[np.broadcast_to(shut, stack.shape)] = big
        result = quiet(frot.solve_costs, stack)
        # 1e-9 of the floor of the gap is four units in the last place of the mean cost.
        assert result.gap <= 1e-8
        assert shared is False or result.status is Status.CONVERGED


def test_large_costs_that_differ_between_groups():
    result = frot.solve_costs([[[1e4, 0], [1e4, 3], [3, 2]], [[0, 0], [1, 1e4], [2, 1]]])
    assert result.status is Status.CONVERGED
    thirds = np.full(3, 1 / 3), np.full(2, 1 / 2)
    stack = np.array([[[1e4, 0], [1e4, 3], [3, 2]], [[0, 0], [1, 1e4], [2, 1]]])
    assert result.value == pytest.approx(linear_program(stack, *thirds), rel=1e-9)


def truth_on_a_line(far: float, weight: Fraction) -> Fraction:
    """Of a light point at `far` and a heavy one at zero, to 1 and 2 with half the mass each."""
    light = weight * (Fraction(far) - 2) ** 2
    return light + Fraction(1, 2) + (Fraction(1, 2) - weight) * 4


@pytest.mark.parametrize(("far", "weight"), [(1e4, 1e-9), (1e5, 1e-12), (1e7, 1e-14)])
@pytest.mark.parametrize("features", [1, 2])
def test_a_light_point_far_away(far, weight, features):
    """A second feature that is zero everywhere keeps it from being sorted."""
    X, Y = np.array([[far], [0.0]]), np.array([[1.0], [2.0]])
    if features == 2:
        X, Y = np.pad(X, ((0, 0), (0, 1))), np.pad(Y, ((0, 0), (0, 1)))
    a = np.array([weight, 1 - weight])
    result = frot.solve(X, Y, "all", a=a)
    share = Fraction(weight) / (Fraction(weight) + Fraction(1 - weight))
    assert result.lower <= truth_on_a_line(far, share) <= result.upper
    assert result.gap <= 1e-11


@pytest.mark.parametrize(("far", "weight"), [(1e4, 1e-9), (1e5, 1e-12), (1e8, 1e-12)])
@pytest.mark.parametrize("n", [6, 60, 120])
def test_light_points_among_others(far, weight, n):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(n, 4)), rng.normal(size=(n, 4))
        X[0] += far
        a = np.full(n, (1.0 - weight) / (n - 1))
        a[0] = weight
        result = quiet(frot.solve, X, Y, [2, 2], a=a)
        assert result.gap <= NO_FARTHER_THAN


@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("n", [10, 40, 60])
def test_near_duplicates(noise, n):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 6))
        moves = noise * rng.normal(size=(n, 6))
        order = rng.permutation(n)
        Y = X[order] + moves
        result = frot.solve(X, Y, [2, 2, 2])
        assert result.status is Status.CONVERGED
        assert result.plan.argmax().tolist() == np.argsort(order).tolist()
        gaps = (X[order] - Y).reshape(n, 3, 2) ** 2
        expected = gaps.sum(axis=2).mean(axis=0).max()
        assert result.lower <= expected * (1.0 + 1e-9)
        assert expected <= result.upper
        assert result.value == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_exact_duplicates_cost_nothing():
    X = np.random.default_rng(0).normal(size=(30, 4))
    result = frot.solve(X, X[::-1], [2, 2])
    assert result.value == result.lower == 0.0
    assert result.gap <= 1e-100


def test_many_copies_of_few_groups():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 12)), rng.normal(size=(20, 12)) + 0.2
    base = [[2 * k, 2 * k + 1] for k in range(6)]
    few = frot.solve(X, Y, base)
    many = frot.solve(X, Y, [base[k % 6] for k in range(5000)], time_limit=60.0)
    assert many.status is Status.CONVERGED
    assert many.value == pytest.approx(few.value, rel=1e-8)


@pytest.mark.xdist_group("alone")
class TestTimeLimit:
    """Within a factor of two plus a fifth of a second, on an idle machine; here with much air."""

    AIR = 10.0

    @pytest.mark.parametrize("groups", [[20], [10, 10], [2] * 10])
    @pytest.mark.parametrize("eta", [0.0, 0.1])
    def test_of_exact(self, groups, eta):
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(2000, 20)), rng.normal(size=(2000, 20))
        frot.solve(X[:5], Y[:5], groups, eta=eta)
        begin = time.perf_counter()
        result = quiet(frot.solve, X, Y, groups, eta=eta, time_limit=0.1)
        assert time.perf_counter() - begin <= self.AIR * 0.4
        assert result.status is Status.TIME_LIMIT
        assert 0.0 <= result.lower <= result.upper < np.inf

    def test_some_seconds_are_not_wasted(self):
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(1500, 6)), rng.normal(size=(1500, 6))
        result = quiet(frot.solve, X, Y, [2, 2, 2], time_limit=6.0)
        assert result.gap <= 0.3

    @pytest.mark.parametrize("solver", ["linear_program", frot.FrankWolfe()])
    def test_of_others(self, solver):
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(2000, 6)), rng.normal(size=(2000, 6)) + 1.0
        begin = time.perf_counter()
        result = quiet(frot.solve, X, Y, [2, 2, 2], solver=solver, time_limit=0.1)
        assert time.perf_counter() - begin <= self.AIR * 0.4
        # What the points alone prove: clouds do not come closer than their means.
        assert 0.0 < result.lower <= result.upper < np.inf

    def test_a_callbacks_own_timeout_is_not_ours(self):
        def impatient(now: frot.Progress) -> None:
            raise TimeoutError("mine")

        with pytest.raises(TimeoutError, match="mine"):
            frot.solve([[0.0, 1.0], [1.0, 3.0]], [[1.0, 0.0], [2.0, 2.0]], callback=impatient)
