"""Plans with the right marginals, to the last place of every weight."""

from __future__ import annotations

from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from frot import Plan
from frot.plans.feasible import (
    fill,
    marginal_error,
    northwest,
    round_plan,
)
from tests.strategies import seeds

UNIT = float(np.finfo(float).eps)


def uneven(rng: np.random.Generator, size: int, digits: float) -> np.ndarray:
    weights = 10.0 ** -rng.uniform(0.0, digits, size)
    return weights / weights.sum()


def exact_errors(plan: Plan, a: np.ndarray, b: np.ndarray) -> float:
    """The largest relative error of a marginal, in rational numbers."""
    sums = [[Fraction(0)] * len(a), [Fraction(0)] * len(b)]
    for i, j, mass in zip(*(part.tolist() for part in plan.arcs()), strict=True):
        sums[0][i] += Fraction(mass)
        sums[1][j] += Fraction(mass)
    totals = [sum(map(Fraction, side.tolist())) for side in (a, b)]
    shares = [
        abs(found / (Fraction(weight) * totals[0] / total) - 1)
        for side, weights, total in zip(sums, (a, b), totals, strict=True)
        for found, weight in zip(side, weights.tolist(), strict=True)
    ]
    return float(max(shares))


@given(seeds, st.sampled_from([0.0, 6.0, 14.0]))
def test_rounding_is_relative_to_every_weight(seed, digits):
    rng = np.random.default_rng(seed)
    a, b = uneven(rng, 6, digits), uneven(rng, 5, digits)
    rough = np.outer(a, b) * rng.uniform(0.5, 1.5, (6, 5)) * (rng.random((6, 5)) < 0.6)
    for plan in (Plan(rough), Plan.from_arcs(*Plan(rough).arcs(), (6, 5))):
        assert exact_errors(round_plan(plan, a, b), a, b) <= 16.0 * UNIT


@given(seeds, st.sampled_from([0.0, 6.0, 14.0]))
def test_the_error_that_is_told_covers_the_error_there_is(seed, digits):
    rng = np.random.default_rng(seed)
    a, b = uneven(rng, 6, digits), uneven(rng, 5, digits)
    plan = round_plan(Plan(np.outer(a, b) * rng.uniform(0.5, 1.5, (6, 5))), a, b)
    assert (
        exact_errors(plan, a, b)
        <= marginal_error(plan, a, b).level * (1.0 + 1e-9) + 4.0 * UNIT * 1e-3
    )


@given(seeds, st.sampled_from([0.0, 6.0, 12.0]))
def test_the_corner_rule_loses_no_digit(seed, digits):
    rng = np.random.default_rng(seed)
    a, b = uneven(rng, 40, digits), uneven(rng, 30, digits)
    rows, cols, mass = northwest(a, b)
    assert len(mass) <= 69
    assert exact_errors(Plan.from_arcs(rows, cols, mass, (40, 30)), a, b) <= 8.0 * UNIT
    assert (np.diff(rows) >= 0).all()
    assert (np.diff(cols) >= 0).all()


def test_the_corner_rule_leaves_no_light_point_out():
    """Cumulated masses of both sides may meet to the last place, with a light point in between."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        a, b = (rng.integers(1, 8, size).astype(float) for size in rng.integers(2, 14, 2))
        b[rng.integers(len(b))] *= 1e-17
        a, b = a / a.sum(), b / b.sum()
        plan = Plan.from_arcs(*northwest(a, b), (len(a), len(b)))
        assert exact_errors(plan, a, b) <= 1e-12


def test_filling_begins_with_light_points():
    rows, cols, mass = fill(np.array([1.0, 1e-20]), np.array([1e-20, 1.0]))
    assert list(zip(rows, cols, mass, strict=True)) == [(1, 0, 1e-20), (0, 1, 1.0)]


class TestMarginalError:
    @given(seeds, st.sampled_from([0.0, 1e-15, 1e-6, 0.1]))
    def test_a_right_plan_costs_no_more_than_it_says(self, seed, noise):
        rng = np.random.default_rng(seed)
        a, b = uneven(rng, 6, 3.0), uneven(rng, 5, 3.0)
        plan = np.outer(a, b) * rng.uniform(1.0 - noise, 1.0 + noise, (6, 5))
        M = rng.random((6, 5)) ** 8
        error = marginal_error(Plan(plan), a, b)
        # The best repair of this plan: what it keeps, and what fills the rest.
        kept = plan / plan.sum(axis=1, keepdims=True) * a[:, None]
        kept /= max(1.0, float((kept.sum(axis=0) / b).max()))
        lacks = a - kept.sum(axis=1), b - kept.sum(axis=0)
        filled = np.outer(*lacks) / max(float(lacks[0].sum()), 1e-300)
        value, bound = ((kept + filled) * M).sum(), (plan * M).sum()
        bound += error.level * bound + error.spread * (np.outer(a, b) * M).sum()
        assert value <= bound * (1.0 + 1e-14)

    def test_a_factor_of_all_columns_is_no_spread(self):
        half = np.array([0.5, 0.5])
        error = marginal_error(Plan.from_arcs([0, 1], [0, 1], [0.75, 0.75], (2, 2)), half, half)
        assert error == (0.0, 0.5)

    def test_mass_where_there_is_no_weight(self):
        error = marginal_error(Plan(np.eye(2) / 2), np.array([1.0, 0.0]), np.array([0.5, 0.5]))
        assert error.spread == np.inf
