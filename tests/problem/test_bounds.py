"""Certificates hold whatever they are made from."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import ot
import pytest
from hypothesis import given, settings

import frot
from frot import Plan, Problem, Simplex
from frot._base.arrays import UNIT
from frot.costs import MEMORY_BUDGET, Rounding, Stack, build_costs
from frot.groups.groups import Groups
from frot.plans.feasible import MarginalError, northwest, round_plan
from frot.plans.plan import is_sparse
from frot.problem.adversary import as_adversary
from frot.problem.bounds import (
    FAINT,
    Lower,
    Upper,
    c_transforms,
    cost_doubt,
    is_rounding,
    lower_bound,
    marginal_doubt,
    mostly_rounding,
    plan_doubt,
    proven_dual,
    refuse_contradiction,
    upper_bound,
)
from frot.problem.marginals import MarginalPrice
from frot.problem.problem import Marginals
from tests.reference import exact_two_by_two, linear_program, quiet
from tests.strategies import SCALES, Given, cost_problems, marginals, seeds

NONE = np.zeros(0, dtype=int)


@st.composite
def both_marginals(draw):
    return draw(marginals(draw(st.integers(1, 7)))), draw(marginals(draw(st.integers(1, 7))))


def problem_of(given: Given, eta: float = 0.0) -> Problem:
    return Problem(Stack(given.stack), given.a, given.b, Simplex(eta))


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
        problem = Problem(Stack(np.ones((1, 2, 2))), half, half)
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
        problem = Problem(Stack(np.ones((2, 2, 2))), np.full(2, 0.5), np.full(2, 0.5))
        lower = lower_bound(problem, np.array([3.0, -1.0]), np.zeros(2))
        assert lower.alpha.tolist() == [1.0, 0.0]
        assert lower.bound == pytest.approx(1.0, abs=1e-14)

    def test_weights_of_another_set_are_taken_as_they_are(self):
        half = np.full(2, 0.5)
        ball = as_adversary(frot.Ellipsoid([1.0, 1.0], 0.5), 2)
        problem = Problem(Stack(np.ones((2, 2, 2))), half, half, ball)
        alpha = np.array([1.0, 1.5])
        lower = lower_bound(problem, alpha, np.zeros(2))
        assert lower.alpha is alpha
        assert lower.bound == pytest.approx(2.5, abs=1e-13)


class TestFarPoints:
    def test_potentials_prove_what_is_said(self):
        # These prove less than nothing, where no cost is negative.
        costs = Stack(np.array([[[0.0, 1e9], [0.0, 0.0]]]))
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
    problem = Problem(Stack(-np.eye(n)[None]), weights, weights)
    plan = Plan(np.eye(n) * (1.0 + share) / n)
    phi = problem.costs.inner(plan)
    assert phi[0] < -1.0  # below the optimum
    assert phi[0] + cost_doubt(problem, plan, phi)[0] >= -1.0


class TestMargins:
    """The constants of `docs/proofs.md`, each where nothing else shows.

    Margins are far below the absolute tolerance that `pytest.approx` has unless it is told.
    """

    COSTS = np.array([[[0.0, 2.0, 1.0], [4.0, 0.0, 3.0]], [[1.0, 0.0, 2.0], [0.0, 2.0, 5.0]]])
    A, B = np.array([0.25, 0.75]), np.array([0.5, 0.25, 0.25])
    # Far above all costs, so that the value is not below zero.
    F, G = np.array([65.0, 63.5]), np.array([-2.0, 0.5, 3.0])
    SIZE = 16.25 + 47.625 + 1.0 + 0.125 + 0.75
    VALUE = 16.25 + 47.625 - 1.0 + 0.125 + 0.75
    HALF = np.array([0.5, 0.5])
    EXACT = Rounding(0.0, np.zeros(2), np.zeros(3))

    def problem(self, shift: float = 0.0, **options: Any) -> Problem:
        options = {"a": self.A, "b": self.B} | options
        return Problem(Stack(self.COSTS - shift), **options)

    def test_of_potentials(self):
        found = proven_dual(self.problem(), self.HALF, self.F, self.G, self.EXACT)
        assert found.slack == pytest.approx(
            (8.0 * self.SIZE + 4.0 * self.VALUE) * UNIT, rel=1e-12, abs=0.0
        )
        assert found.bound == self.VALUE - found.slack

    def test_of_entries(self):
        entries = Rounding(0.125, np.array([1.0, 2.0]), np.array([4.0, 8.0, 16.0]))
        found = proven_dual(self.problem(), self.HALF, self.F, self.G, entries)
        assert found.slack == pytest.approx(1.75 + 8.0 + 0.125 * self.VALUE, rel=1e-12, abs=0.0)
        assert found.bound == pytest.approx(self.VALUE - found.slack)

    def test_of_sums_that_are_not_one(self):
        found = proven_dual(self.problem(), 0.75 * self.HALF, self.F, self.G, self.EXACT)
        assert found.slack == pytest.approx(0.25 * self.VALUE, rel=1e-12, abs=0.0)
        heavy = self.problem(a=self.A + 0.125)
        found = proven_dual(heavy, self.HALF, self.F, self.G, self.EXACT)
        assert found.slack == pytest.approx(0.25 * (self.SIZE + 0.125 * 128.5), rel=1e-12, abs=0.0)

    def test_of_entropy(self):
        problem = self.problem(adversary=Simplex(2.0))
        found = proven_dual(problem, self.HALF, self.F, self.G, self.EXACT)
        reward = 2.0 * np.log(2.0)
        margin = (8.0 * self.SIZE + 4.0 * self.VALUE) * UNIT
        margin += 8.0 * UNIT * reward
        assert found.slack == pytest.approx(margin, rel=1e-9, abs=0.0)
        assert found.bound == pytest.approx(self.VALUE + reward - found.slack, rel=1e-15)

    def test_where_mass_may_go(self):
        problem = self.problem(marginals=Marginals(64.0, 32.0), b=4.0 * self.B)
        found = proven_dual(problem, self.HALF, self.F, self.G, self.EXACT)
        sides = ((self.A, found.f, 64.0), (4.0 * self.B, found.g, 32.0))
        kept = [np.maximum(w, w * np.exp(-p / tau)) for w, p, tau in sides]
        size = kept[0] @ np.abs(found.f) + kept[1] @ np.abs(found.g)
        value = sum(-tau * float(w @ np.expm1(-p / tau)) for w, p, tau in sides)
        assert found.f - self.F == pytest.approx(self.G.max() - found.g.max())
        assert found.slack == pytest.approx((8.0 * size + 4.0 * value) * UNIT, rel=1e-9, abs=0.0)
        assert found.bound == pytest.approx(value - found.slack)
        entries = Rounding(0.0, np.array([1.0, 2.0]), np.array([4.0, 8.0, 16.0]))
        found = proven_dual(problem, self.HALF, self.F, self.G, entries)
        expected = kept[0] @ entries.rows + kept[1] @ entries.cols
        assert found.slack == pytest.approx(expected, rel=1e-12, abs=0.0)

    def test_potentials_of_minus_infinity_prove_nothing(self):
        problem = self.problem(shift=1.0, marginals=Marginals(1e-3, 1e-3))
        found = proven_dual(problem, self.HALF, np.full(2, -1e9), self.G - 1e9, self.EXACT)
        assert found.bound == -np.inf

    def test_of_underflow(self):
        nothing = proven_dual(self.problem(), self.HALF, np.zeros(2), np.zeros(3), self.EXACT)
        assert nothing.slack == FAINT * self.problem().mean_cost
        plan = Plan.from_arcs([0], [0], [1.0], (2, 3))
        # Nothing is paid in the first group.
        doubt = cost_doubt(self.problem(), plan, np.array([0.0, 1.0]), MarginalError(0.0, 0.0))
        assert doubt[0] == FAINT * self.problem().sizes[0]

    @pytest.mark.parametrize("shift", [0.0, 1.0], ids=["nonnegative", "signed"])
    def test_of_marginals(self, shift: float):
        problem, phi = self.problem(shift=shift, a=self.A + 0.125), np.array([2.0, 3.0])
        found = marginal_doubt(problem, phi, MarginalError(0.5, 0.25))
        peaks = np.array([3.0, 4.0]) if shift else phi
        level = 0.75 if shift else 0.25
        assert found == pytest.approx(0.5 * 1.25 * problem.sizes + level * peaks)
        assert not marginal_doubt(problem, phi, MarginalError(0.0, 0.0)).any()

    def test_of_a_plan(self):
        problem = self.problem(a=self.A + 0.125)
        plan = Plan(np.outer(self.A, self.B))
        phi = problem.costs.inner(plan)
        found = cost_doubt(problem, plan, phi, MarginalError(0.0, 0.0))
        assert found == pytest.approx(
            plan_doubt(problem.costs, phi, plan) + 0.25 * phi, rel=1e-9, abs=0.0
        )
        found = cost_doubt(self.problem(), plan, phi, MarginalError(0.0, 0.0))
        assert found == pytest.approx(
            plan_doubt(problem.costs, phi, plan) + UNIT * phi, rel=1e-9, abs=0.0
        )

    def test_of_a_plan_where_mass_may_go(self):
        problem = self.problem(marginals=Marginals(1.0, np.inf), a=2.0 * self.A, b=4.0 * self.B)
        plan = Plan.from_arcs([0, 0, 1], [0, 2, 2], [0.25, 0.125, 0.25], (2, 3))
        upper = upper_bound(problem, plan)
        # Columns are kept: scaled, and the one that nobody serves gets its mass.
        scaled = 4.0 * np.array([[0.5, 0.25, 1 / 12], [0.0, 0.0, 1 / 6]])
        assert np.asarray(upper.plan) == pytest.approx(scaled)
        phi = np.einsum("lij,ij->l", self.COSTS, scaled)
        side, masses = MarginalPrice(1.0), scaled.sum(axis=1)
        price = side.price(2.0 * self.A, masses)
        assert upper.value == pytest.approx(phi.max() + price)
        share = (8.0 + 0.5 * 4) * UNIT
        doubt = plan_doubt(problem.costs, phi, upper.plan)
        doubt = doubt + UNIT * phi + 4.0 * share * phi + 2.0 * share * 4.0 * problem.sizes
        error = side.price_error(2.0 * self.A, masses, share)
        margin = float((phi + doubt).max() - phi.max()) + error
        assert upper.bound - upper.value == pytest.approx(margin, rel=0.2, abs=0.0)

    def test_rows_are_kept_as_columns_are(self):
        problem = self.problem(marginals=Marginals(np.inf, 1.0))
        plan = Plan.from_arcs([0, 0], [1, 2], [0.5, 0.5], (2, 3))
        kept = np.asarray(upper_bound(problem, plan).plan)
        assert kept == pytest.approx(np.array([[0.0, 0.125, 0.125], [0.75, 0.0, 0.0]]))

    def test_what_is_mostly_rounding(self):
        arrays = np.zeros(1), np.zeros(1), np.zeros(1)

        def told(width: float, above: float, slack: float) -> bool:
            upper = Upper(1.0 + width, 1.0 + width - above, Plan(np.ones((1, 1))), arrays[0])
            return mostly_rounding(upper, Lower(1.0, *arrays, slack))

        assert told(3.0, 0.5, 0.25)
        assert told(2.0, 0.5, 0.0)
        assert not told(3.25, 0.5, 0.25)
        assert is_rounding(4.0, 1.0)
