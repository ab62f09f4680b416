"""Certificates hold whatever they are made from."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import ot
import pytest
from hypothesis import given, settings

import frot
from frot import Plan, Problem, Simplex
from frot.costs import MEMORY_BUDGET, StackedCosts, build_costs
from frot.groups.groups import Groups
from frot.plans.feasible import northwest, round_plan
from frot.plans.plan import is_sparse
from frot.problem.bounds import (
    c_transforms,
    cheap_lower_bound,
    cost_doubt,
    is_rounding,
    lower_bound,
    refuse_contradiction,
    upper_bound,
)
from tests.reference import exact_two_by_two, linear_program, quiet
from tests.strategies import SCALES, Given, cost_problems, marginals, seeds

NONE = np.zeros(0, dtype=int)


@st.composite
def both_marginals(draw):
    return draw(marginals(draw(st.integers(1, 7)))), draw(marginals(draw(st.integers(1, 7))))


def problem_of(given: Given, eta: float = 0.0) -> Problem:
    return Problem(StackedCosts(given.stack), given.a, given.b, Simplex(eta))


class TestNorthwest:
    @given(both_marginals())
    def test_marginals_and_number_of_arcs(self, sides):
        a, b = sides
        rows, cols, mass = northwest(a, b)
        plan = np.zeros((len(a), len(b)))
        np.add.at(plan, (rows, cols), mass)
        assert plan.sum(axis=1) == pytest.approx(a, abs=1e-15)
        assert plan.sum(axis=0) == pytest.approx(b, abs=1e-15)
        assert (mass >= 0.0).all()
        assert len(mass) <= len(a) + len(b) - 1

    def test_it_goes_down_the_staircase(self):
        rows, cols, mass = northwest(np.array([0.25, 0.75]), np.array([0.5, 0.5]))
        assert (rows.tolist(), cols.tolist()) == ([0, 1, 1], [0, 0, 1])
        assert mass.tolist() == [0.25, 0.25, 0.5]


class TestRoundPlan:
    @given(both_marginals(), seeds, st.booleans(), st.sampled_from([0.0, 1e-9, 0.1, 10.0]))
    def test_marginals_become_exact(self, sides, seed, as_arcs, noise):
        a, b = sides
        rng = np.random.default_rng(seed)
        rough = np.outer(a, b) + noise * rng.normal(size=(len(a), len(b)))
        plan = Plan(rough)
        if as_arcs:
            plan = Plan.from_arcs(*plan.arcs(), rough.shape)
        done = np.asarray(round_plan(plan, a, b))
        assert (done >= 0.0).all()
        assert done.sum(axis=1) == pytest.approx(a, abs=1e-15)
        assert done.sum(axis=0) == pytest.approx(b, abs=1e-15)

    @given(both_marginals(), seeds)
    def test_it_moves_no_more_mass_than_is_misplaced(self, sides, seed):
        a, b = sides
        rng = np.random.default_rng(seed)
        rough = np.outer(a, b) * rng.uniform(0.5, 1.5, (len(a), len(b)))
        done = np.asarray(round_plan(Plan(rough), a, b))
        off = np.abs(rough.sum(axis=1) - a).sum() + np.abs(rough.sum(axis=0) - b).sum()
        assert np.abs(done - rough).sum() <= 2.0 * off + 1e-14

    def test_a_feasible_plan_stays_as_it_is_and_sparse(self):
        a, b = np.array([0.5, 0.5]), np.array([0.25, 0.75])
        plan = Plan.from_arcs([0, 0, 1], [0, 1, 1], [0.25, 0.25, 0.5], (2, 2))
        done = round_plan(plan, a, b)
        assert is_sparse(done)
        assert np.array_equal(np.asarray(done), np.asarray(plan))

    @pytest.mark.parametrize(
        "plan",
        [
            Plan(np.zeros((2, 2))),
            Plan.from_arcs(NONE, NONE, np.zeros(0), (2, 2)),
        ],
    )
    def test_an_empty_plan_is_filled(self, plan):
        a, b = np.array([0.5, 0.5]), np.array([0.25, 0.75])
        done = round_plan(plan, a, b)
        assert np.asarray(done).tolist() == [[0.25, 0.25], [0.0, 0.5]]


class TestCTransforms:
    @given(cost_problems(most_groups=1, negative=True), seeds)
    def test_potentials_are_feasible_and_tight(self, given: Given, seed):
        M = given.stack[0]
        g = np.random.default_rng(seed).normal(size=M.shape[1]) * np.abs(M).max()
        f, h = c_transforms(M, g)
        slack = 1e-14 * (np.abs(M).max() + np.abs(g).max())
        reduced = M - f[:, None] - h
        assert reduced.min() >= -slack
        assert np.abs(reduced.min(axis=0)).max() <= slack
        assert (h >= g - slack).all()

    def test_potentials_out_of_range_are_replaced(self):
        half = np.full(2, 0.5)
        problem = Problem(StackedCosts(np.ones((1, 2, 2))), half, half)
        lower = lower_bound(problem, np.ones(1), np.array([np.inf, np.nan]))
        assert lower.bound == pytest.approx(1.0, rel=1e-14)

    def test_blocks_of_rows_agree_with_the_formula(self):
        rng = np.random.default_rng(0)
        M, g = rng.random((1500, 700)), rng.random(700)
        f, h = c_transforms(M, g)
        assert np.array_equal(f, (M - g).min(axis=1))
        assert np.array_equal(h, (M - f[:, None]).min(axis=0))


class TestBoundsOfAnything:
    @given(cost_problems(negative=True), seeds, st.floats(0.0, 2.0))
    def test_any_weights_and_potentials_prove_a_lower_bound(self, given: Given, seed, eta):
        rng = np.random.default_rng(seed)
        problem = problem_of(given, eta)
        alpha = rng.dirichlet(np.ones(len(given.stack)))
        g = rng.normal(size=len(given.b)) * np.abs(given.stack).max()
        lower = lower_bound(problem, alpha, g)
        truth = linear_program(given.stack, given.a, given.b)
        slack = 1e-8 * np.abs(given.stack).max()
        assert lower.bound <= truth + eta * np.log(len(given.stack)) + slack
        if eta == 0.0:
            assert lower.bound <= truth + slack

    @given(cost_problems(negative=True), seeds)
    def test_any_plan_proves_an_upper_bound(self, given: Given, seed):
        rough = np.random.default_rng(seed).random(given.stack.shape[1:])
        upper = upper_bound(problem_of(given), Plan(rough))
        truth = linear_program(given.stack, given.a, given.b)
        assert upper.bound >= truth - 1e-8 * np.abs(given.stack).max()
        assert upper.bound >= upper.value
        plan = np.asarray(upper.plan)
        phi = np.einsum("lij,ij->l", given.stack, plan)
        assert upper.phi == pytest.approx(phi, rel=1e-12, abs=1e-14 * np.abs(given.stack).max())
        assert upper.value == upper.phi.max()

    @given(cost_problems(most_groups=1, scaled=False, zeros=False))
    def test_optimal_potentials_close_the_gap(self, given: Given):
        M = given.stack[0]
        value, log = ot.emd2(given.a, given.b, M, log=True)
        lower = lower_bound(problem_of(given), np.ones(1), log["v"])
        assert lower.bound == pytest.approx(value, abs=1e-9)
        assert lower.bound <= value + 1e-12

    @given(cost_problems(), seeds)
    def test_the_lower_bound_is_below_the_upper_bound(self, given: Given, seed):
        rng = np.random.default_rng(seed)
        problem = problem_of(given)
        lower = lower_bound(
            problem, rng.dirichlet(np.ones(len(given.stack))), np.zeros(len(given.b))
        )
        upper = upper_bound(problem, Plan(np.outer(given.a, given.b)))
        assert 0.0 <= lower.bound <= upper.bound

    def test_weights_are_put_on_the_simplex(self):
        problem = Problem(StackedCosts(np.ones((2, 2, 2))), np.full(2, 0.5), np.full(2, 0.5))
        lower = lower_bound(problem, np.array([3.0, -1.0]), np.zeros(2))
        assert lower.alpha.tolist() == [1.0, 0.0]
        assert lower.bound == pytest.approx(1.0, abs=1e-14)


class TestFarPoints:
    def test_potentials_prove_what_is_said(self):
        # These prove less than nothing, where no cost is negative.
        costs = StackedCosts(np.array([[[0.0, 1e9], [0.0, 0.0]]]))
        problem = Problem(costs, np.array([0.5, 0.5]), np.array([0.6, 0.4]))
        lower = lower_bound(problem, np.ones(1), np.array([0.0, 5e8]))
        assert lower.bound == 0.0
        assert problem.a @ lower.f + problem.b @ lower.g == 0.0


class TestInExactArithmetic:
    """Bounds are widened for rounding, so they hold to the last digit."""

    @settings(max_examples=200)
    @given(seeds, st.sampled_from(SCALES), st.integers(1, 5), st.booleans())
    def test_two_by_two(self, seed, scale, count, offset):
        rng = np.random.default_rng(seed)
        stack = rng.normal(size=(count, 2, 2)) * scale + (1e6 * scale if offset else 0.0)
        sides = (np.array([k, 8.0 - k]) / 8.0 for k in rng.integers(1, 8, 2))
        a, b = sides
        truth = exact_two_by_two(stack, a, b)
        for solver in ("exact", "frank_wolfe", "linear_program"):
            result = quiet(frot.solve_costs, stack, a, b, solver=solver)
            assert result.lower <= truth <= result.upper

    @given(seeds)
    def test_costs_that_cancel(self, seed):
        rng = np.random.default_rng(seed)
        costs = rng.normal(size=(2, 7)) * 1e8
        costs = np.concatenate([costs, -costs.sum(axis=1, keepdims=True)], axis=1)
        truth = max(sum(map(Fraction, group), Fraction(0)) / 8 for group in costs.tolist())
        result = quiet(frot.solve_costs, costs[:, None, :])
        assert result.lower <= truth <= result.upper

    @given(seeds, st.floats(-2.0, 6.0))
    def test_entropy(self, seed, power):
        phi, eta = np.random.default_rng(seed).random(4), float(10.0**power)
        with localcontext() as context:
            context.prec = 50
            total = sum((Decimal(cost) / Decimal(eta)).exp() for cost in phi.tolist())
            truth = Decimal(eta) * Decimal(total).ln()
        result = quiet(frot.solve_costs, phi[:, None, None], eta=eta)
        assert Decimal(result.lower) <= truth <= Decimal(result.upper)


class TestBoundsWithoutAPass:
    @pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
    @pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock", "euclidean"])
    def test_potentials_prove_them(self, metric: str, p: float):
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(5, 4)), rng.normal(size=(7, 4)) + 1.0
        problem = make_problem_of(X, Y, metric, p)
        lower = cheap_lower_bound(problem)
        mixed = problem.costs.mix(lower.alpha)
        assert (lower.f[:, None] + lower.g <= mixed + 1e-12 * np.abs(mixed).max()).all()
        assert problem.a @ lower.f + problem.b @ lower.g == pytest.approx(lower.bound, abs=1e-12)

    def test_of_costs_of_any_sign(self):
        stack = np.random.default_rng(1).normal(size=(3, 4, 5))
        problem = Problem(StackedCosts(stack), np.full(4, 0.25), np.full(5, 0.2))
        lower = cheap_lower_bound(problem)
        assert (lower.f[:, None] + lower.g <= problem.costs.mix(lower.alpha) + 1e-12).all()
        assert lower.bound <= frot.solve_costs(stack).value


class TestContradictions:
    def test_are_refused(self):
        refuse_contradiction(1.0, 1.0, "solver")
        with pytest.raises(frot.SolverError, match=r"solver: the bounds \[2.0, 1.0\] contradict"):
            refuse_contradiction(2.0, 1.0, "solver")


def make_problem_of(X: np.ndarray, Y: np.ndarray, metric: str, p: float) -> Problem:
    groups = Groups.parse([2, 2], 4, None)
    costs = build_costs(X, Y, groups, metric, p, MEMORY_BUDGET)
    return Problem(costs, np.full(len(X), 1 / len(X)), np.full(len(Y), 1 / len(Y)))


def test_marginals_that_are_off_cost_what_a_plan_earns_too():
    """Costs of -1 on the diagonal: a plan with too much mass earns more than any feasible one."""
    n, share = 50, 1e-3
    weights = np.full(n, 1.0 / n)
    problem = Problem(StackedCosts(-np.eye(n)[None]), weights, weights)
    plan = Plan(np.eye(n) * (1.0 + share) / n)
    phi = problem.costs.inner(plan)
    assert phi[0] < -1.0  # below the optimum
    assert phi[0] + cost_doubt(problem, plan, phi)[0] >= -1.0


def test_an_interval_of_a_few_times_its_rounding_is_rounding():
    assert is_rounding(3e-16, 1e-16)
    assert not is_rounding(1e-3, 1e-16)
