"""Frank-Wolfe: the paper's algorithm 2 to the letter, its rate, and the better steps."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import entr

import frot
from frot import FrankWolfe, Simplex, Sinkhorn, Status
from frot.costs import Stack
from frot.plans.lazy import LazyPlan
from frot.solvers.frank_wolfe import best_mixture, line_search, rate_bound
from tests.reference import algorithm_2, linear_program, quiet, smooth_max
from tests.strategies import seeds

RNG = np.random.default_rng(0)
STACK = RNG.random((5, 12, 9))
A, B = RNG.dirichlet(np.ones(12)), RNG.dirichlet(np.ones(9))
ETA = 0.3


def run(step: Any, **options) -> frot.Result:
    settings = {"tol": 0.0, "max_iter": 10} | options
    solver = FrankWolfe(step=step, **settings)
    return quiet(frot.solve_costs, STACK, A, B, eta=ETA, solver=solver)


class TestThePaper:
    @pytest.mark.parametrize("steps", [1, 3, 10])
    def test_algorithm_2_to_the_letter(self, steps):
        expected, _ = algorithm_2(STACK, A, B, ETA, steps)
        result = run("paper", max_iter=steps)
        assert np.asarray(result.plan) == pytest.approx(expected, abs=1e-14)
        phi = np.einsum("lij,ij->l", STACK, expected)
        assert result.phi == pytest.approx(phi, rel=1e-13)
        assert result.value == pytest.approx(smooth_max(phi, ETA), rel=1e-13)
        weights = np.exp(phi / ETA)
        assert result.alpha == pytest.approx(weights / weights.sum(), rel=1e-12)
        assert result.iterations == steps

    @pytest.mark.parametrize("steps", [1, 3, 10])
    def test_with_sinkhorn(self, steps):
        expected, _ = algorithm_2(STACK, A, B, ETA, steps, eps=0.05)
        solver = FrankWolfe(
            oracle=Sinkhorn(eps=0.05, tol=1e-9), step="paper", tol=0.0, max_iter=steps
        )
        result = quiet(frot.solve_costs, STACK, A, B, eta=ETA, solver=solver)
        assert np.asarray(result.plan) == pytest.approx(expected, abs=1e-5)
        assert result.phi == pytest.approx(np.einsum("lij,ij->l", STACK, expected), abs=1e-5)

    def test_with_points_and_groups(self):
        X, Y = RNG.normal(size=(10, 6)), RNG.normal(size=(10, 6)) + 1.0
        groups = [[0, 1], [2, 3, 4], [5]]
        stack = np.stack([((X[:, None, g] - Y[None][:, :, g]) ** 2).sum(-1) for g in groups])
        uniform = np.full(10, 0.1)
        expected, _ = algorithm_2(stack, uniform, uniform, 1.0, 10)
        solver = FrankWolfe(step="paper", tol=0.0, max_iter=10)
        result = quiet(frot.solve, X, Y, groups, eta=1.0, solver=solver)
        assert np.asarray(result.plan) == pytest.approx(expected, abs=1e-13)

    @pytest.mark.parametrize("eta", [0.05, 0.3, 2.0])
    @pytest.mark.parametrize("step", ["paper", "line_search"])
    def test_proposition_3_holds_along_the_run(self, eta, step):
        best = frot.solve_costs(STACK, A, B, eta=eta).lower
        result = quiet(
            frot.solve_costs,
            *(STACK, A, B),
            eta=eta,
            solver=FrankWolfe(step=step, tol=0.0, max_iter=60),
        )
        assert len(result.history) == 60 or step == "line_search"
        assert result.rate is not None
        for now in result.history:
            assert now.upper - best <= result.rate(now.iteration)
            assert now.upper >= best

    def test_uppers_are_the_objectives_of_the_plans_on_the_way(self):
        _, plans = algorithm_2(STACK, A, B, ETA, 10)
        seen = [now.upper for now in run("paper").history]
        expected = [smooth_max(np.einsum("lij,ij->l", STACK, plan), ETA) for plan in plans[1:]]
        assert seen == pytest.approx(expected, rel=1e-12)

    def test_its_last_plan_is_returned_even_where_an_earlier_was_better(self):
        result = run("paper", max_iter=25)
        assert result.history[-1].upper == result.upper

    def test_a_number_of_steps_is_no_failure(self):
        solver = FrankWolfe(step="paper", tol=0.0, max_iter=3)
        result = frot.solve_costs(STACK, A, B, eta=ETA, solver=solver)
        assert result.status is frot.Status.MAX_ITER
        with pytest.warns(frot.ConvergenceWarning):
            frot.solve_costs(STACK, A, B, eta=ETA, solver=FrankWolfe(step="paper", max_iter=3))

    def test_the_toy_of_figure_1(self):
        from frot.datasets import toy

        X, Y, groups = toy(n=50)
        solver = FrankWolfe(oracle=Sinkhorn(eps=0.02), step="paper", max_iter=10)
        result = quiet(frot.solve, X, Y, groups, eta=1.0, solver=solver)
        assert result.alpha[0] > 0.999


class TestRateBound:
    @given(seeds, st.integers(1, 6))
    def test_the_constant_is_the_largest_eigenvalue(self, seed, groups):
        stack = np.random.default_rng(seed).random((groups, 3, 4)) ** 3
        stack[0, 0] = 0.0
        flat = stack.reshape(groups, -1)
        largest = np.linalg.eigvalsh(flat @ flat.T)[-1]
        bound = rate_bound(Stack(stack), 0.5, np.array([1, 6]))
        exact = 4.0 * largest / (0.5 * np.array([3.0, 8.0]))
        assert (bound >= exact * (1.0 - 1e-12)).all()
        assert bound == pytest.approx(exact, rel=2e-2)
        twice = rate_bound(Stack(stack), 0.5, np.array([1, 6]), delta=1.0)
        assert twice == pytest.approx(2.0 * bound)

    def test_costs_of_points_that_are_never_formed(self):
        X, Y = RNG.normal(size=(6, 4)), RNG.normal(size=(5, 4))
        solver = FrankWolfe(step="paper", tol=0.0, max_iter=2)
        result = quiet(frot.solve, X, Y, "each", eta=1.0, solver=solver, memory_budget=1.0)
        assert result.rate is not None
        stack = (X.T[:, :, None] - Y.T[:, None, :]) ** 2
        assert result.rate(3) == pytest.approx(rate_bound(Stack(stack), 1.0, 3), rel=1e-9)

    def test_groups_that_cost_nothing(self):
        stack = np.zeros((3, 2, 2))
        assert rate_bound(Stack(stack), 1.0, 1) == 0.0
        stack[1] = 1.0
        assert rate_bound(Stack(stack), 1.0, 2) == pytest.approx(4.0, rel=1e-3)

    @pytest.mark.parametrize(
        ("options", "eta"),
        [({"step": "fully_corrective"}, ETA), ({"step": "fully_corrective"}, 0.0)],
    )
    def test_no_rate_where_the_proposition_is_silent(self, options, eta):
        solver = FrankWolfe(tol=0.0, max_iter=3, **options)
        assert quiet(frot.solve_costs, STACK, A, B, eta=eta, solver=solver).rate is None

    def test_neither_with_sinkhorn_nor_for_costs_below_zero(self):
        solver = FrankWolfe(oracle=Sinkhorn(eps=0.1), step="paper", tol=0.0, max_iter=3)
        assert quiet(frot.solve_costs, STACK, A, B, eta=ETA, solver=solver).rate is None
        solver = FrankWolfe(step="paper", tol=0.0, max_iter=3)
        assert quiet(frot.solve_costs, STACK - 0.5, A, B, eta=ETA, solver=solver).rate is None
        with pytest.raises(frot.InputError, match="costs: must be 0 or more"):
            rate_bound(Stack(STACK - 0.5), ETA, 1)
        with pytest.raises(frot.InputError, match=r"eta: 0\.0 has no rate"):
            rate_bound(Stack(STACK), 0.0, 1)

    def test_a_pickle_leaves_the_costs_behind(self):
        result = run("paper")
        assert result.rate is not None
        kept = pickle.dumps(result)
        assert len(kept) < STACK.nbytes
        again = pickle.loads(kept)
        assert again.rate is None
        assert again.value == result.value


class TestBetterSteps:
    def test_a_line_search_never_rises(self):
        uppers = [now.upper for now in run("line_search", max_iter=30).history]
        assert uppers == sorted(uppers, reverse=True)

    def test_fully_corrective_converges_first(self):
        def calls(step: Any) -> int:
            solver = FrankWolfe(step=step, tol=1e-3, max_iter=3000)
            result = frot.solve_costs(STACK, A, B, eta=0.03, solver=solver)
            assert result.status is Status.CONVERGED
            return result.iterations

        paper, search, corrective = map(calls, ("paper", "line_search", "fully_corrective"))
        assert corrective < search <= paper

    @settings(max_examples=40)
    @given(seeds, st.sampled_from([0.0, 0.02, 0.5]))
    def test_fully_corrective_converges(self, seed, eta):
        rng = np.random.default_rng(seed)
        stack = rng.random((4, 6, 5))
        result = frot.solve_costs(stack, eta=eta, solver=FrankWolfe())
        assert result.status is Status.CONVERGED
        exact = linear_program(stack, np.full(6, 1 / 6), np.full(5, 0.2))
        assert exact - 1e-9 <= result.value <= exact + eta * np.log(4) + 1e-5

    def test_with_sinkhorn_the_interval_does_not_close_but_holds(self):
        exact = frot.solve_costs(STACK, A, B, eta=ETA)
        solver = FrankWolfe(oracle=Sinkhorn(eps=0.1), max_iter=30)
        entropic = quiet(frot.solve_costs, STACK, A, B, eta=ETA, solver=solver)
        assert entropic.lower <= exact.value <= entropic.upper
        assert entropic.gap > 1e-3
        # The eps is the oracle's: the problem has none, in value, interval and result.
        phi = np.einsum("lij,ij->l", STACK, np.asarray(entropic.plan))
        assert entropic.value == pytest.approx(smooth_max(phi, ETA), rel=1e-12)
        assert entropic.eps == 0.0
        assert entropic.unregularised == (entropic.lower, entropic.upper)
        with_eps = frot.solve_costs(STACK, A, B, eta=ETA, eps=0.1)
        assert with_eps.lower > exact.upper
        assert not entropic.status.ok

    def test_an_oracle_that_fails_is_reported(self):
        solver = FrankWolfe(oracle=Sinkhorn(eps=1e-3, max_iter=2), max_iter=3)
        with pytest.warns(frot.ConvergenceWarning) as caught:
            frot.solve_costs(STACK, A, B, eta=ETA, solver=solver)
        messages = [str(warning.message) for warning in caught]
        assert sum("did not reach its tolerance; raise" in text for text in messages) == 1


class TestOracles:
    """Whatever oracle is given is the one that is called."""

    @pytest.mark.parametrize("step", ["paper", "line_search", "fully_corrective"])
    def test_a_subclass_with_a_call_of_its_own_is_called(self, step):
        calls = []

        class Counting(Sinkhorn):
            def __call__(self, M, a, b, start=None):
                calls.append(start is None)
                return super().__call__(M, a, b, start)

        options = {"eta": ETA}
        solver = FrankWolfe(oracle=Counting(eps=0.1, tol=1e-10), step=step, max_iter=4)
        own = quiet(frot.solve_costs, STACK, A, B, solver=solver, **options)
        assert calls == [True] + [False] * (own.iterations - 1)
        assert len(calls) > 1
        solver = FrankWolfe(oracle=Sinkhorn(eps=0.1, tol=1e-10), step=step, max_iter=4)
        plain = quiet(frot.solve_costs, STACK, A, B, solver=solver, **options)
        assert own.value == pytest.approx(plain.value, rel=1e-6)
        assert np.asarray(own.plan) == pytest.approx(np.asarray(plain.plan), abs=1e-6)

    def test_a_subclass_without_one_keeps_plans_lazy(self):
        class Renamed(Sinkhorn):
            pass

        solver = FrankWolfe(oracle=Renamed(eps=0.1), step="paper", max_iter=3)
        found = quiet(frot.solve_costs, STACK, A, B, eta=ETA, solver=solver)
        assert isinstance(found.plan, LazyPlan)

    @pytest.mark.parametrize("eps", [0.0, 0.1])
    def test_an_oracle_of_ones_own(self, eps):
        calls = []

        class Own:
            def __call__(self, M, a, b, start=None):
                calls.append(M)
                found = (Sinkhorn(eps) if eps else frot.NetworkSimplex())(M, a, b)
                return frot.Transport(found.plan, found.f, found.g)

        solver = FrankWolfe(oracle=Own(), max_iter=10)
        found = quiet(frot.solve_costs, STACK, A, B, eta=ETA, solver=solver)
        assert len(calls) == found.iterations
        exact = frot.solve_costs(STACK, A, B, eta=ETA)
        assert found.lower <= exact.upper
        assert exact.lower <= found.upper


class TestLazyAverages:
    """With Sinkhorn the average is kept as what it is made of."""

    X, Y = RNG.normal(size=(14, 3)), RNG.normal(size=(11, 3)) + 0.5

    @pytest.mark.parametrize("budget", [2e9, 100])
    @pytest.mark.parametrize("step", ["paper", "line_search", "fully_corrective"])
    def test_no_dense_plan_is_made_on_the_way(self, monkeypatch, step, budget):
        monkeypatch.setattr(LazyPlan, "_native", lambda self: pytest.fail("a plan was formed"))
        solver = FrankWolfe(oracle=Sinkhorn(eps=0.3), step=step, max_iter=5)
        options = {"eta": 0.5, "memory_budget": budget}
        result = quiet(frot.solve, self.X, self.Y, solver=solver, **options)
        assert isinstance(result.plan, LazyPlan)
        assert (
            len(result.plan._components) == 5
            if step == "paper"
            else len(result.plan._components) <= 5
        )
        assert result.plan.sum(axis=1) == pytest.approx(np.full(14, 1 / 14), abs=1e-13)
        exact = frot.solve(self.X, self.Y, eta=0.5)
        assert result.lower <= exact.value <= result.upper

    def test_points_without_weight_leave_it_lazy(self):
        a = np.where(np.arange(14) % 2, 1 / 7, 0.0)
        solver = FrankWolfe(oracle=Sinkhorn(eps=0.3), step="paper", max_iter=3)
        result = quiet(frot.solve, self.X, self.Y, a=a, eta=0.5, solver=solver)
        assert isinstance(result.plan, LazyPlan)
        assert result.plan.sum(axis=1) == pytest.approx(a, abs=1e-14)
        small = quiet(frot.solve, self.X[1::2], self.Y, eta=0.5, solver=solver)
        assert np.asarray(result.plan)[1::2] == pytest.approx(np.asarray(small.plan), abs=1e-5)


class TestWhatIsProven:
    @pytest.mark.parametrize("step", ["line_search", "fully_corrective"])
    def test_potentials_that_are_worse_than_nothing_are_not_handed_out(self, step):
        # Most costs are small, and the entropy makes plans pay the few that are not.
        rng = np.random.default_rng(3)
        stack = rng.random((3, 5, 6))
        stack[rng.random(stack.shape) < 0.2] = 1e9
        solver = FrankWolfe(oracle=Sinkhorn(eps=1e7, tol=1e-6), step=step, max_iter=3)
        result = quiet(frot.solve_costs, stack, eta=1e6, solver=solver)
        f, g = result.potentials
        entropy = 1e6 * float(entr(result.alpha).sum())
        proven = float(f.mean() + g.mean()) + entropy
        assert proven >= result.lower - 1e-12 * (abs(f).mean() + abs(g).mean() + 1e7)


class TestLineSearch:
    @given(seeds, st.sampled_from([0.01, 0.3, 10.0]))
    def test_it_finds_the_minimum_on_the_segment(self, seed, eta):
        rng = np.random.default_rng(seed)
        start, end = rng.normal(size=(2, 4))
        adversary = Simplex(eta)
        gamma = line_search(adversary, start, end)
        assert 0.0 <= gamma <= 1.0

        def value(share: float) -> float:
            return adversary.best(start + share * (end - start))[0]

        grid = np.linspace(0.0, 1.0, 101)
        assert value(gamma) <= min(value(share) for share in grid) + 1e-12

    def test_ends(self):
        assert line_search(Simplex(0.1), np.array([0.0]), np.array([1.0])) == 0.0
        assert line_search(Simplex(0.1), np.array([1.0]), np.array([0.0])) == 1.0
        assert line_search(Simplex(1.0), np.zeros(2), np.zeros(2)) == 0.0


def by_linear_program(phis: np.ndarray) -> float:
    """Min over mixtures of the largest group cost."""
    groups, count = phis.shape
    solved = linprog(
        np.append(np.zeros(count), 1.0),
        A_ub=np.hstack([phis, -np.ones((groups, 1))]),
        b_ub=np.zeros(groups),
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * count + [(None, None)],
    )
    return float(solved.fun)


@given(seeds, st.integers(1, 6), st.integers(1, 6))
def test_without_entropy_it_is_a_matrix_game(seed, groups, count):
    phis = np.random.default_rng(seed).random((groups, count))
    weights, alpha = best_mixture(phis, Simplex(), unit=1.0)
    truth = by_linear_program(phis)
    assert (phis @ weights).max() == pytest.approx(truth, abs=1e-7)
    assert (alpha @ phis).min() == pytest.approx(truth, abs=1e-7)
    for simplex in (weights, alpha):
        assert simplex.min() >= 0.0
        assert simplex.sum() == pytest.approx(1.0, rel=1e-12)


@given(seeds, st.sampled_from([0.01, 0.3, 5.0]), st.sampled_from([1e-6, 1.0, 1e6]))
def test_with_entropy_no_other_mixture_is_better(seed, eta, unit):
    rng = np.random.default_rng(seed)
    phis = rng.random((4, 5)) * unit
    adversary = Simplex(eta * unit)
    weights, _ = best_mixture(phis, adversary, unit)
    best = adversary.best(phis @ weights)[0]
    for other in (*np.eye(5), *rng.dirichlet(np.ones(5), 20)):
        assert best <= adversary.best(phis @ other)[0] + 1e-7 * unit


@pytest.mark.parametrize("column", [np.zeros(3), np.ones(3)])
def test_plans_that_are_all_the_same(column):
    weights, alpha = best_mixture(np.column_stack([column] * 4), Simplex(), unit=1.0)
    assert weights.sum() == pytest.approx(1.0)
    assert alpha.sum() == pytest.approx(1.0)
    assert np.isfinite(weights).all()


def test_a_single_plan():
    weights, alpha = best_mixture(np.array([[1.0], [3.0]]), Simplex(), unit=1.0)
    assert weights.tolist() == [1.0]
    assert alpha.tolist() == [0.0, 1.0]


def test_costs_far_above_their_unit_leave_no_direction_and_no_warning():
    # Slacks next to costs that large round to zero.
    column = np.array([7054532.127896651, 1195578.4152296337, 14084218.66602767, 64051008.78986745])
    weights, alpha = best_mixture(np.column_stack([column, column]), Simplex(), 1.6e-9, 1e-3)
    assert weights.sum() == pytest.approx(1.0)
    assert np.isfinite(alpha).all()
