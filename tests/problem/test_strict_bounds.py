"""Intervals against the truth in rational arithmetic, with no allowance at all."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import frot
from tests.reference import quiet


def squared(X: np.ndarray, Y: np.ndarray, feature: int) -> Fraction:
    """Mean squared difference of matched rows in one feature, exactly."""
    pairs = zip(X[:, feature], Y[:, feature], strict=True)
    return sum(((Fraction(x) - Fraction(y)) ** 2 for x, y in pairs), Fraction(0)) / len(X)


@pytest.mark.parametrize("shift", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("solver", ["exact", "linear_program"])
def test_near_translations(shift, offset, solver):
    """Points in the same order in every feature: the identity is the best plan of each group."""
    rng = np.random.default_rng(0)
    X = offset + np.sort(rng.normal(size=(16, 3)), axis=0)
    Y = X + shift * (1.0 + 0.1 * np.arange(3))
    result = quiet(frot.solve, X, Y, "each", solver=solver)
    truth = max(squared(X, Y, feature) for feature in range(3))
    assert Fraction(result.lower) <= truth <= Fraction(result.upper)


@pytest.mark.parametrize("forbidden", [1e4, 1e9])
def test_forbidden_arcs_do_not_set_the_scale(forbidden):
    rng = np.random.default_rng(1)
    stack = rng.random((3, 20, 20))
    closed = rng.random((20, 20)) < 0.3
    stack[:, closed] = forbidden
    result = frot.solve_costs(stack)
    capped = frot.solve_costs(np.minimum(stack, 50.0))
    assert result.status is frot.Status.CONVERGED
    assert result.value == pytest.approx(capped.value, rel=1e-8)
    assert np.asarray(result.plan)[closed].sum() == 0.0


def test_an_outlier_on_both_sides_does_not_set_the_scale():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 4))
    Y = X[::-1] + 0.1 * rng.normal(size=(30, 4))
    far = np.full((1, 4), 1e3)
    result = frot.solve(np.vstack([X, far]), np.vstack([Y, far]), [2, 2])
    alone = frot.solve(X, Y, [2, 2])
    assert result.status is frot.Status.CONVERGED
    assert result.value * 31 / 30 == pytest.approx(alone.value, rel=1e-8)


@pytest.mark.parametrize("size", [1e6, 1e10, 1e14])
def test_groups_whose_costs_cancel(size):
    rng = np.random.default_rng(3)
    for _ in range(40):
        b = rng.multinomial(64, np.full(5, 0.2)) / 64.0
        stack = np.stack([rng.random((1, 5)), size * rng.normal(size=(1, 5))])
        spare = int(np.argmax(b))
        stack[1, 0, spare] -= float(stack[1, 0] @ b) / b[spare]
        result = quiet(frot.solve_costs, stack, None, b)
        truth = max(
            sum(Fraction(c) * Fraction(w) for c, w in zip(cost[0], b, strict=True))
            for cost in stack
        )
        assert Fraction(result.lower) <= truth <= Fraction(result.upper)


@pytest.mark.parametrize("step", ["fully_corrective", "paper"])
def test_huge_starts_prove_nothing(step):
    stack = -np.random.default_rng(4).random((2, 3, 3)) - 1.0
    solver = frot.FrankWolfe(step=step, max_iter=30)
    eta = 0.1 if step == "paper" else 0.0
    exact = frot.solve_costs(stack, eta=eta)
    result = quiet(frot.solve_costs, stack, eta=eta, solver=solver, start=[1e308, 1e308])
    assert result.lower <= exact.upper
    assert exact.lower <= result.upper


def test_a_value_of_zero_by_rounding_is_said_to_be_that():
    X, Y = np.full((3, 400), 0.1), np.full((3, 400), 0.1)
    result = quiet(frot.solve, X, Y + 1e-12, groups=[200, 200])
    assert result.status in (frot.Status.STALLED, frot.Status.CONVERGED)
    assert result.lower <= 200 * 1e-24 * 1.001
    assert result.upper >= 200 * 1e-24 * 0.999
