"""What an entropic result claims: recomputed by hand, for awkward problems of every kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import frot
from frot import Entropic, Status, relative
from frot.costs.stack import Stack
from frot.solvers.entropic.certificate import proving
from frot.solvers.entropic.dense import DenseEngine
from frot.solvers.entropic.entropic_problem import EntropicProblem
from tests.reference import quiet
from tests.solvers.entropic.bounds import check_bounds, dual, primal, stack_of
from tests.strategies import SCALES, group_lists, marginals, point_clouds

OK = (Status.CONVERGED, Status.STALLED)


@st.composite
def problems(draw: Any) -> tuple:
    """Points of any unit with ties and copies, groups that overlap, weights with zeros."""
    X, Y = draw(point_clouds(most_points=7, most_features=4))
    if draw(st.booleans()):
        Y[:] = Y[0] if draw(st.booleans()) else X[0]
    unit = draw(st.sampled_from(SCALES))
    X, Y = unit * X, unit * Y
    groups = draw(group_lists(X.shape[1]))
    a, b = draw(marginals(len(X))), draw(marginals(len(Y)))
    stack = stack_of(X, Y, groups)
    mean = float(np.einsum("lij,i,j->l", stack, a, b).mean()) or unit**2
    eta = mean * draw(st.sampled_from([0.0, 0.0, 0.001, 0.1, 1.0]))
    eps = mean * draw(st.sampled_from([1e-4, 1e-3, 0.01, 0.1, 10.0]))
    # Without eta a prior is refused.
    prior = np.arange(1.0, len(groups) + 1.0) if draw(st.booleans()) and eta > 0.0 else None
    return X, Y, groups, a, b, stack, eta, eps, prior


def log_of(prior: np.ndarray | None) -> Any:
    return 0.0 if prior is None else np.log(prior / prior.sum())


@pytest.mark.parametrize("budget", [2e9, 1000], ids=["dense", "streamed"])
@given(problem=problems())
@settings(max_examples=40)
def test_bounds_hold(budget: float, problem: tuple):
    X, Y, groups, a, b, stack, eta, eps, prior = problem
    options = {"a": a, "b": b, "eta": eta, "prior": prior}
    result = quiet(frot.solve, X, Y, groups, eps=eps, memory_budget=budget, max_iter=150, **options)
    check_bounds(result, stack, a, b, log_of(prior))
    if budget > 1000:
        assert result.status in OK
    exact = quiet(frot.solve, X, Y, groups, eps=0.0, **options)
    lower, upper = result.unregularised
    assert lower <= exact.upper
    assert exact.lower <= upper
    # KL is never negative, so the entropic optimum is no less than the plain one.
    assert exact.lower <= result.upper


@given(problem=problems())
@settings(max_examples=40)
def test_stacks_and_tight_runs_agree(problem: tuple):
    X, Y, groups, a, b, stack, eta, eps, prior = problem
    options = {"a": a, "b": b, "eta": eta, "eps": eps, "prior": prior}
    tight = quiet(frot.solve, X, Y, groups, tol=1e-11, **options)
    loose = quiet(frot.solve_costs, stack, max_iter=20, **options)
    check_bounds(tight, stack, a, b, log_of(prior))
    check_bounds(loose, stack, a, b, log_of(prior))
    assert tight.status in OK
    rounding = 1e-12 * max(float(stack.max()), eps, eta)
    assert loose.lower <= tight.upper + rounding
    assert tight.lower <= loose.upper + rounding


class TestSinglePrecision:
    """The search may round; what is proven is about the numbers that were given."""

    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(40, 6)), rng.normal(size=(30, 6)) + 0.5
    a, b = rng.dirichlet(np.ones(40)), rng.dirichlet(np.ones(30))
    groups = ((0, 1), (2, 3), (4, 5))

    def solve(self, **options: Any) -> frot.Result:
        settings: dict[str, Any] = {
            "a": self.a,
            "b": self.b,
            "eta": 0.0123456789,
            "eps": 0.3456789012,
        } | options
        return frot.solve(self.X, self.Y, self.groups, memory_budget=1000, **settings)

    def test_weights_and_regularisation_are_not_rounded(self):
        result = self.solve(tol=1e-4)
        check_bounds(result, stack_of(self.X, self.Y, self.groups), self.a, self.b)
        assert result.eps == 0.3456789012
        assert result.lower <= self.solve(tol=1e-9).value <= result.upper

    def test_double_takes_over_where_single_can_do_no_more(self):
        """Clusters this far apart leave no digit of the distances within them in single."""
        far = np.where(np.arange(20) % 2, 300.0, -300.0)[:, None]
        X, Y = (self.rng.normal(size=(20, 2)) + far for _ in range(2))
        result = quiet(frot.solve, X, Y, eta=0.1, eps=0.5, memory_budget=10, max_iter=300)
        assert result.gap < 0.02
        assert result.lower <= frot.solve(X, Y, eta=0.1, eps=0.5).upper

    def test_scales_that_single_precision_does_not_have(self):
        for unit in (1e-18, 1e18):
            result = frot.solve(
                unit * self.X, unit * self.Y, self.groups, eps=relative(0.1), memory_budget=1000
            )
            assert result.status is Status.CONVERGED


class TestStoppedEarly:
    """A run that ends before it got anywhere still has bounds, and they count the entropy."""

    stack = np.random.default_rng(1).random((3, 6, 5))
    a, b = np.full(6, 1 / 6), np.full(5, 0.2)

    @pytest.mark.parametrize("eps", [0.01, 10.0])
    def test_one_step(self, eps):
        result = quiet(frot.solve_costs, self.stack, eps=eps, tol=1e-14, max_iter=1)
        assert result.status is Status.MAX_ITER
        check_bounds(result, self.stack, self.a, self.b)

    def test_interrupted_before_the_first_step(self, monkeypatch):
        def interrupted(*_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

        monkeypatch.setattr("frot.solvers.entropic.entropic.Ascent", interrupted)
        with pytest.raises(frot.Interrupted) as stop:
            frot.solve_costs(self.stack, eps=0.05)
        result = stop.value.result
        assert result.status is Status.INTERRUPTED
        check_bounds(result, self.stack, self.a, self.b)

    def test_no_time_at_all(self):
        result = quiet(frot.solve_costs, self.stack, eps=0.01, tol=1e-14, time_limit=1e-9)
        assert result.status is Status.TIME_LIMIT
        check_bounds(result, self.stack, self.a, self.b)


class TestInvariances:
    rng = np.random.default_rng(5)
    stack = rng.random((4, 9, 7))
    a, b = rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(7))

    def solve(self, stack: np.ndarray, **options: Any) -> frot.Result:
        return frot.solve_costs(stack, self.a, self.b, solver=Entropic(tol=1e-9), **options)

    @pytest.mark.parametrize("eta", [0.0, 0.05])
    def test_groups_in_another_order(self, eta):
        order = [2, 0, 3, 1]
        first = self.solve(self.stack, eta=eta, eps=0.02)
        second = self.solve(self.stack[order], eta=eta, eps=0.02)
        assert second.value == pytest.approx(first.value, rel=2e-9)
        assert second.alpha == pytest.approx(first.alpha[order], abs=1e-3)

    def test_a_copy_of_a_group_changes_nothing_without_eta(self):
        first = self.solve(self.stack, eps=0.02)
        second = self.solve(self.stack[[0, 1, 2, 3, 0, 0]], eps=0.02)
        assert second.value == pytest.approx(first.value, rel=2e-9)
        assert second.alpha[[0, 4, 5]].sum() == pytest.approx(first.alpha[0], abs=1e-3)

    @pytest.mark.parametrize("unit", [1e-12, 1e12])
    def test_units(self, unit):
        first = self.solve(self.stack, eta=0.03, eps=0.02)
        second = self.solve(unit * self.stack, eta=0.03 * unit, eps=0.02 * unit)
        assert second.value == pytest.approx(unit * first.value, rel=2e-9, abs=0.0)
        assert second.iterations <= 2 * first.iterations

    def test_sides_exchanged(self):
        first = self.solve(self.stack, eta=0.03, eps=0.02)
        turned = np.ascontiguousarray(self.stack.transpose(0, 2, 1))
        second = frot.solve_costs(turned, self.b, self.a, eta=0.03, eps=0.02, tol=1e-9)
        assert second.value == pytest.approx(first.value, rel=2e-9)

    @pytest.mark.parametrize("budget", [2e9, 1000])
    def test_normalised_by_the_mean(self, budget):
        X, Y = self.rng.normal(size=(9, 4)), self.rng.normal(size=(7, 4))
        groups = [[0, 1], [2], [3]]
        stack = stack_of(X, Y, groups)
        stack = stack / stack.mean(axis=(1, 2), keepdims=True)
        result = frot.solve(
            X, Y, groups, eta=0.1, eps=0.1, normalise="mean", memory_budget=budget, tol=1e-6
        )
        check_bounds(result, stack, np.full(9, 1 / 9), np.full(7, 1 / 7))
        assert result.mean_cost == pytest.approx(1.0)


class TestDegenerate:
    @pytest.mark.parametrize("budget", [2e9, 10])
    @pytest.mark.parametrize("eps", [0.3, relative(0.01)], ids=str)
    def test_nothing_costs_anything(self, budget, eps):
        points = np.ones((4, 3))
        result = frot.solve(points, points[:2], eta=0.0, eps=eps, memory_budget=budget)
        assert result.value == pytest.approx(0.0, abs=1e-12)
        assert result.eps > 0.0
        assert np.asarray(result.plan) == pytest.approx(np.full((4, 2), 1 / 8))

    @pytest.mark.parametrize("budget", [2e9, 1])
    def test_one_point_each(self, budget):
        result = frot.solve([[0.0, 0.0]], [[3.0, 4.0]], eps=0.1, memory_budget=budget)
        assert result.value == pytest.approx(16.0)
        assert np.asarray(result.plan) == pytest.approx(np.ones((1, 1)))

    @pytest.mark.parametrize("budget", [2e9, 1])
    def test_a_column_without_weight_may_be_nearest_to_all(self, budget):
        """It must not set the scale of a kernel that it takes no part in."""
        X, Y = np.zeros((3, 1)), np.array([[0.0], [10.0], [11.0]])
        b = np.array([0.0, 0.5, 0.5])
        start = quiet(frot.solve, X, Y, eps=1.0, max_iter=1)
        for begin in (None, start):
            result = frot.solve(X, Y, b=b, eps=1e-4 * 110.5, start=begin, memory_budget=budget)
            assert result.value == pytest.approx(110.5)
            assert np.asarray(result.plan)[:, 0].max() == 0.0
            assert np.isfinite(result.potentials[1]).all()
            assert result.unregularised == pytest.approx((110.5, 110.5))

    @pytest.mark.parametrize("b", [[1 / 3, 1 / 3, 1 / 3], [0.5, 0.3, 0.2], [0.5, 0.5, 0.0]])
    def test_an_eps_beyond_all_costs_leaves_the_problem_without_it_its_digits(self, b):
        """What has digits of eps only, as logarithms of weights, may not enter reduced costs."""
        costs = np.array([[[0.7, 0.2, 0.04]]])
        sweeps = frot.FrankWolfe(oracle=frot.Sinkhorn(eps=4e5))
        result = frot.solve_costs(costs, b=np.array(b), solver=sweeps)
        f, g = result.potentials
        assert (f[:, None] + g - costs[0]).max() <= 1e-15
        assert result.lower == pytest.approx(costs[0, 0] @ b, rel=1e-13)

    def test_potentials_that_prove_less_than_nothing_are_none(self):
        """Bounds fall back to zero, since no cost is negative: so do the potentials."""
        costs, eps = Stack(np.ones((2, 1, 1, 2))), 0.5
        half, one = np.full((2, 2), 0.5), np.ones((2, 1))
        batch = EntropicProblem.of(costs.home, one, half, frot.Simplex(), eps, one)
        f, g = np.array([[1.0], [1.0]]), np.array([[-3.0, 0.5], [0.0, 0.5]])
        got = proving(DenseEngine(costs, batch), f, g)
        assert got[0].tolist() == [[0.0], [1.0]]
        assert got[1].tolist() == [[0.0, 0.0], [0.0, 0.5]]

    def test_evaluations_of_these_tests_see_a_wrong_plan(self):
        stack = np.random.default_rng(0).random((2, 4, 4))
        uniform = np.full(4, 0.25)
        result = frot.solve_costs(stack, eps=0.05, tol=1e-9)
        assert primal(result, stack, uniform, uniform) == pytest.approx(result.value, rel=1e-9)
        assert dual(result, stack, uniform, uniform) == pytest.approx(result.lower, rel=1e-9)
        other = quiet(frot.solve_costs, stack[::-1] ** 2, eps=0.05)
        assert primal(other, stack, uniform, uniform) > result.upper * (1.0 + 1e-4)


class TestOneKernel:
    """With one group and a large eps, or few points, the search's kernel serves the proof."""

    @pytest.mark.parametrize("n", [40, 250], ids=["stack", "points"])
    @pytest.mark.parametrize("share", [0.06, 0.5, 3.0])
    @pytest.mark.parametrize("even", [True, False])
    def test_bounds_hold(self, n, share, even, monkeypatch):
        rng = np.random.default_rng(3)
        X, Y = rng.normal(size=(n, 4)), rng.normal(size=(n + 7, 4)) + 0.4
        a, b = rng.dirichlet(np.full(n, 9.0)), rng.dirichlet(np.full(n + 7, 9.0))
        if even:
            a, b = np.full(n, 1.0 / n), np.full(n + 7, 1.0 / (n + 7))
        options = {"a": a, "b": b, "eps": relative(share)}
        result = frot.solve(X, Y, "all", **options)
        check_bounds(result, stack_of(X, Y, [range(4)]), a, b)
        sharp = frot.solve(X, Y, "all", tol=1e-9, **options)
        assert result.lower <= sharp.upper
        assert sharp.lower <= result.upper
        # What its potentials prove without eps is as good as from a kernel of the proof's own.
        formed = "frot.solvers.entropic.certificate.kernel_pass"
        monkeypatch.setattr(formed, lambda *given: None)
        other = frot.solve(X, Y, "all", **options)
        assert result.unregularised == pytest.approx(other.unregularised, rel=1e-12)
        assert (result.lower, result.upper) == pytest.approx((other.lower, other.upper), rel=1e-12)

    def test_a_start_far_off_is_no_base(self):
        rng = np.random.default_rng(4)
        X, Y = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
        first = frot.solve(X, Y, "all", eps=1.0)
        far = first.potentials[0] - 1e6, first.potentials[1] + 1e6
        again = frot.solve(X, Y, "all", eps=1.0, start=replace(first, potentials=far))
        weights = np.full(30, 1.0 / 30)
        check_bounds(again, stack_of(X, Y, [range(2)]), weights, weights)
        assert again.upper - again.lower == pytest.approx(first.upper - first.lower, rel=0.5)
