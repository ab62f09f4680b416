"""The front door: closed forms, and right answers on inputs at the edge of what is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import ot
import pytest
from hypothesis import given
from scipy.spatial.distance import cdist
from scipy.stats import wasserstein_distance

import frot
from frot import Entropic, Exact, FrankWolfe, Sinkhorn, Status
from frot._base.arrays import Home
from frot.api.solve import on_accelerator, solved_in_place
from frot.problem.options import check_problem
from tests.reference import linear_program
from tests.strategies import point_clouds, seeds


class TestClosedForms:
    @given(seeds)
    def test_two_points_cost_what_their_worst_group_costs(self, seed):
        rng = np.random.default_rng(seed)
        x, y = rng.integers(-9, 10, (1, 4)).astype(float), rng.integers(-9, 10, (1, 4))
        result = frot.solve(x, y, groups=[[0, 1], [2], [3]])
        gaps = (x - y)[0] ** 2
        assert result.phi.tolist() == [gaps[0] + gaps[1], gaps[2], gaps[3]]
        assert result.value == max(gaps[0] + gaps[1], gaps[2], gaps[3])
        assert result.lower <= result.value <= result.upper
        assert np.asarray(result.plan).tolist() == [[1.0]]

    @given(seeds)
    def test_a_translation_costs_the_worst_squared_shift(self, seed):
        rng = np.random.default_rng(seed)
        X, shift = rng.normal(size=(7, 5)), rng.normal(size=5)
        result = frot.solve(X, X + shift, groups=[[0, 1], [2, 3], [4]])
        expected = np.add.reduceat(shift**2, [0, 2, 4])
        assert result.status is Status.CONVERGED
        assert result.value == pytest.approx(expected.max(), rel=1e-8)
        assert result.lower <= expected.max() * (1 + 1e-12)

    @pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
    def test_one_feature_is_solved_by_sorting(self, p):
        rng = np.random.default_rng(1)
        x, y = rng.normal(size=40), rng.normal(size=40) * 2 + 1
        result = frot.solve(x[:, None], y[:, None], metric="cityblock", p=p)
        expected = (np.abs(np.sort(x) - np.sort(y)) ** p).mean()
        assert result.value == pytest.approx(expected, rel=1e-12)
        if p > 1.0:
            # Sorting is then the only optimal plan.
            assert result.plan.argmax()[np.argsort(x)].tolist() == np.argsort(y).tolist()

    def test_one_feature_with_weights_is_scipys_wasserstein_distance(self):
        rng = np.random.default_rng(2)
        x, y, a, b = rng.normal(size=9), rng.normal(size=14), rng.random(9), rng.random(14)
        result = frot.solve(
            x[:, None], y[:, None], a=a, b=b, metric="euclidean", normalise_weights=True
        )
        assert result.value == pytest.approx(wasserstein_distance(x, y, a, b), rel=1e-12)

    @pytest.mark.parametrize(
        "metric", ["sqeuclidean", "euclidean", "cityblock", "chebyshev", "cosine", "canberra"]
    )
    def test_one_group_is_ordinary_transport(self, metric):
        rng = np.random.default_rng(3)
        X, Y = rng.normal(size=(12, 4)), rng.normal(size=(17, 4))
        a, b = rng.dirichlet(np.ones(12)), rng.dirichlet(np.ones(17))
        result = frot.solve(X, Y, "all", a=a, b=b, metric=metric)
        assert result.alpha.tolist() == [1.0]
        assert result.value == pytest.approx(ot.emd2(a, b, cdist(X, Y, metric)), rel=1e-10)

    def test_two_opposite_assignments_meet_halfway(self):
        result = frot.solve_costs([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
        assert result.value == pytest.approx(0.5, abs=1e-12)
        assert result.alpha == pytest.approx([0.5, 0.5], abs=1e-8)
        assert result.phi == pytest.approx([0.5, 0.5], abs=1e-12)

    def test_a_single_pair_with_eta_is_the_papers_lemma_1(self):
        result = frot.solve([[0.0, 0.0]], [[1.0, 2.0]], eta=0.5)
        weights = np.exp([1.0 / 0.5, 4.0 / 0.5])
        assert result.value == pytest.approx(0.5 * np.log(weights.sum()), rel=1e-14)
        assert result.alpha == pytest.approx(weights / weights.sum(), rel=1e-12)

    def test_a_prior_shifts_the_answer_by_its_logarithm(self):
        result = frot.solve([[0.0, 0.0]], [[1.0, 2.0]], eta=0.5, prior=[3.0, 1.0])
        weights = np.array([0.75, 0.25]) * np.exp([1.0 / 0.5, 4.0 / 0.5])
        assert result.value == pytest.approx(0.5 * np.log(weights.sum()), rel=1e-14)
        assert result.alpha == pytest.approx(weights / weights.sum(), rel=1e-12)

    def test_the_papers_toy_puts_all_weight_on_the_true_features(self):
        from frot.datasets import toy

        X, Y, groups = toy(n=60)
        result = frot.solve(X, Y, groups, eta=1.0)
        assert result.alpha[0] > 0.999
        assert result.status is Status.CONVERGED


class TestEdges:
    @given(point_clouds(clouds=1))
    def test_equal_clouds_cost_nothing(self, clouds):
        result = frot.solve(clouds[0], clouds[0].copy())
        assert result.value == 0.0
        assert result.lower == 0.0
        assert result.status is Status.CONVERGED

    @pytest.mark.parametrize("solver", ["exact", "frank_wolfe", "linear_program"])
    def test_costs_of_zero(self, solver):
        result = frot.solve_costs(np.zeros((3, 4, 5)), solver=solver)
        assert (result.value, result.lower, result.upper) == (0.0, 0.0, 0.0)
        assert result.status is Status.CONVERGED

    @pytest.mark.parametrize("shape", [(1, 9), (9, 1)])
    def test_one_point_on_a_side_leaves_one_plan(self, shape):
        rng = np.random.default_rng(4)
        stack, b = rng.random((3, *shape)), rng.dirichlet(np.ones(9))
        sides: dict[str, Any] = {"b" if shape[0] == 1 else "a": b}
        result = frot.solve_costs(stack, **sides)
        assert np.asarray(result.plan).ravel() == pytest.approx(b, rel=1e-14)
        assert result.value == pytest.approx((stack.reshape(3, 9) @ b).max(), rel=1e-13)
        assert result.status is Status.CONVERGED

    @pytest.mark.parametrize("solver", ["exact", "frank_wolfe", "linear_program"])
    def test_points_without_weight_change_nothing(self, solver):
        rng = np.random.default_rng(5)
        X, Y = rng.normal(size=(6, 4)), rng.normal(size=(7, 4))
        a, b = np.array([0.5, 0.0, 0.25, 0.0, 0.25, 0.0]), np.append(np.full(4, 0.25), np.zeros(3))
        full = frot.solve(X, Y, [2, 2], a=a, b=b, solver=solver)
        part = frot.solve(X[a > 0], Y[b > 0], [2, 2], a=a[a > 0], b=b[b > 0], solver=solver)
        assert full.value == pytest.approx(part.value, rel=1e-6)
        assert full.plan.shape == (6, 7)
        assert np.asarray(full.plan)[1::2].any() == np.False_
        assert full.plan.sum(axis=1) == pytest.approx(a, abs=1e-15)
        assert full.points is not None
        assert full.points[0].shape == (6, 4)

    @given(seeds)
    def test_potentials_are_feasible_for_points_without_weight_too(self, seed):
        rng = np.random.default_rng(seed)
        stack = rng.random((3, 6, 7))
        a, b = np.append(np.full(4, 0.25), [0.0, 0.0]), np.append(np.full(4, 0.25), np.zeros(3))
        result = frot.solve_costs(stack, a, b)
        mixed = np.einsum("l,lij->ij", result.alpha, stack)
        f, g = result.potentials
        assert (f[:, None] + g - mixed).max() <= 1e-12

    def test_tiny_weights_count(self):
        stack = np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
        tiny = 1e-12
        result = frot.solve_costs(stack, [tiny, 1.0 - tiny], [0.5, 0.5])
        assert result.value == pytest.approx(0.5 - tiny, rel=1e-15)
        assert result.plan.sum(axis=1)[0] == pytest.approx(tiny, rel=1e-3)

    def test_duplicated_points_share_their_weight(self):
        X, Y = np.array([[0.0], [0.0], [1.0]]), np.array([[0.0], [1.0], [1.0]])
        result = frot.solve(X, Y, a=[0.25, 0.5, 0.25], b=[0.25, 0.5, 0.25])
        merged = frot.solve([[0.0], [1.0]], [[0.0], [1.0]], a=[0.75, 0.25], b=[0.25, 0.75])
        assert result.value == merged.value == 0.5

    @pytest.mark.parametrize("scale", [1e-90, 1e-30, 1e-6, 1e6, 1e30, 1e90])
    def test_the_unit_of_cost_does_not_matter(self, scale):
        stack = np.random.default_rng(7).random((3, 6, 5))
        plain, scaled = frot.solve_costs(stack), frot.solve_costs(stack * scale)
        assert scaled.status is Status.CONVERGED
        assert scaled.value / scale == pytest.approx(plain.value, rel=1e-8)
        assert scaled.alpha == pytest.approx(plain.alpha, abs=1e-6)

    @pytest.mark.parametrize(
        ("solver", "scale"),
        [
            ("frank_wolfe", 1e-30),
            ("frank_wolfe", 1e-12),
            ("frank_wolfe", 1e12),
            ("frank_wolfe", 1e30),
            ("linear_program", 1e-30),
            ("linear_program", 1e30),
        ],
    )
    def test_the_unit_of_cost_does_not_matter_to_other_solvers(self, solver, scale):
        stack = np.random.default_rng(7).random((3, 6, 5))
        plain = frot.solve_costs(stack, solver=solver)
        scaled = frot.solve_costs(stack * scale, solver=solver)
        assert scaled.value / scale == pytest.approx(plain.value, rel=1e-5)

    @pytest.mark.parametrize(("n", "m"), [(2, 150), (150, 2), (3, 100)])
    def test_few_points_against_many(self, n, m):
        stack = np.random.default_rng(8).random((4, n, m))
        result = frot.solve_costs(stack)
        assert result.status is Status.CONVERGED
        a, b = np.full(n, 1 / n), np.full(m, 1 / m)
        assert result.value == pytest.approx(linear_program(stack, a, b), rel=1e-8)

    def test_five_hundred_groups_are_generated_on_demand(self):
        rng = np.random.default_rng(9)
        X, Y = rng.normal(size=(30, 500)), rng.normal(size=(30, 500)) + 0.3 * rng.normal(size=500)
        result = frot.solve(X, Y)
        assert result.status is Status.CONVERGED
        assert result.gap <= 1e-9
        assert result.alpha.sum() == pytest.approx(1.0, rel=1e-12)
        lower = frot.solve(X, Y, "each", solver=frot.LinearProgram(method="ipm"))
        assert result.value == pytest.approx(lower.value, rel=1e-7)

    def test_negative_costs(self):
        result = frot.solve_costs([[[-1.0, -2.0], [-3.0, -1.0]], [[-5.0, 0.0], [0.0, -5.0]]])
        # Plan x on the diagonal: -2.5 + 1.5 x against -5 x, equal at x = 5 / 13.
        assert result.value == pytest.approx(-25.0 / 13.0, rel=1e-9)
        assert result.status is Status.CONVERGED

    def test_costs_whose_mean_is_zero(self):
        C = np.array([[1.0, -1.0], [-1.0, 1.0]])
        result = frot.solve_costs([C, -C], tol=1e-7)
        assert result.value == pytest.approx(0.0, abs=1e-9)
        assert result.lower == pytest.approx(0.0, abs=1e-9)


BITS = np.array([[0, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 1]])
OTHER_BITS = np.array([[1, 1, 1], [0, 0, 0], [0, 1, 0]])


@pytest.fixture(scope="module")
def expected() -> frot.Result:
    return frot.solve(BITS.astype(float), OTHER_BITS.astype(float), [1, 2])


class TestContainers:
    @pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint64, bool, object])
    def test_every_type_of_number_gives_the_same_answer(self, dtype, expected):
        result = frot.solve(BITS.astype(dtype), OTHER_BITS.astype(dtype), [1, 2])
        assert result.value == expected.value
        assert result.phi.tolist() == expected.phi.tolist()

    def test_lists(self, expected):
        result = frot.solve(BITS.tolist(), OTHER_BITS.tolist(), [[0], [1, 2]])
        assert result.value == expected.value

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_data_frames_bring_their_names(self, library, expected):
        frames = pytest.importorskip(library)
        names = ["age", "lab_na", "lab_k"]
        X = frames.DataFrame(dict(zip(names, BITS.T, strict=True)))
        Y = frames.DataFrame(dict(zip(names, OTHER_BITS.T, strict=True)))
        result = frot.solve(X, Y, "prefix")
        assert result.names == ("age", "lab")
        assert result.value == expected.value

    def test_a_data_frame_and_an_array(self, expected):
        pandas = pytest.importorskip("pandas")
        X = pandas.DataFrame(BITS, columns=["age", "lab_na", "lab_k"])
        result = frot.solve(X, OTHER_BITS, "prefix", a=pandas.Series([0.25] * 4))
        assert result.names == ("age", "lab")
        assert result.value == expected.value

    def test_the_callers_arrays_are_left_alone(self):
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(5, 3)), rng.normal(size=(6, 3))
        a, C = rng.dirichlet(np.ones(5)), rng.random((2, 5, 6))
        before = [x.copy() for x in (X, Y, a, C)]
        frot.solve(X, Y, a=a, metric="cosine")
        frot.solve(X, Y, a=a)
        frot.solve_costs(C, a)
        assert all(np.array_equal(x, y) for x, y in zip(before, (X, Y, a, C), strict=True))

    def test_names_of_cost_matrices(self):
        C = np.ones((2, 2, 2))
        assert frot.solve_costs(C).names == ("g0", "g1")
        assert frot.solve_costs(C, names=["colour", "shape"]).names == ("colour", "shape")


class TestNormalisation:
    def test_mean_makes_the_unit_of_a_group_irrelevant(self):
        rng = np.random.default_rng(10)
        X, Y = rng.normal(size=(8, 2)), rng.normal(size=(8, 2)) + np.array([1.0, 2.0])
        plain = frot.solve(X, Y, normalise="mean")
        wide = frot.solve(X * [1.0, 50.0], Y * [1.0, 50.0], normalise="mean")
        assert wide.value == pytest.approx(plain.value, rel=1e-7)
        assert wide.alpha == pytest.approx(plain.alpha, abs=1e-5)

    def test_regret_is_zero_for_one_group_and_not_negative_for_two(self):
        rng = np.random.default_rng(11)
        X, Y = rng.normal(size=(8, 2)), rng.normal(size=(9, 2))
        # Zero but for rounding, which is more than a share of 1e-9 of the gap's floor.
        alone = frot.solve(X, Y, "all", normalise="regret", tol=1e-6)
        assert alone.value == pytest.approx(0.0, abs=1e-12)
        assert frot.solve(X, Y, "each", normalise="regret").value > 1e-3


def test_the_memory_budget_changes_how_not_what():
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(9, 6)), rng.normal(size=(7, 6))
    options = {"groups": [2, 4], "metric": "canberra"}
    stacked = frot.solve(X, Y, **options)
    chunked = frot.solve(X, Y, **options, memory_budget=0)
    assert chunked.value == pytest.approx(stacked.value, rel=1e-9)
    with pytest.raises(frot.InputError, match="memory_budget: must be finite and >= 0"):
        frot.solve(X, Y, memory_budget=-1)


def test_what_stays_where_it_is():
    terms = check_problem((2, 6, 5), None, None, 0.0, 0.1, None, "none", False)
    assert solved_in_place(Entropic(), terms)
    assert not solved_in_place(Entropic(), terms._replace(normalise="regret"))
    assert not solved_in_place(Exact(), terms)
    assert not solved_in_place(FrankWolfe(oracle=Sinkhorn(eps=0.1)), terms)


def test_what_runs_on_a_device():
    torch = pytest.importorskip("torch")
    elsewhere = Home.of(torch.zeros(1, device="meta"))
    assert on_accelerator(elsewhere)
    assert not on_accelerator(Home.of(torch.zeros(1)))
    assert not on_accelerator(None)


def test_means_that_cancel_are_not_divided_by():
    # Of +1 and -1 in equal parts rounding left a mean of 3e-17, and the group was scaled by that.
    signs = [[1, 1, 1, -1, -1, -1], [1, -1, 1, 1, -1, -1], [1, 1, 1, -1, 1, -1]]
    stack = np.array(signs, dtype=float)[:, None]
    result = frot.solve_costs(stack, normalise="mean")
    assert result.upper - result.lower <= 1e-12
    # Of the last group alone the mean is not zero: two of six, which becomes one.
    np.testing.assert_allclose(result.phi, [0.0, 0.0, 1.0], atol=1e-12)


def test_the_fourth_power_of_distances_is_warned_of():
    X, Y = np.zeros((2, 1)), np.full((2, 1), 2.0)
    with pytest.warns(frot.DataWarning, match="fourth power"):
        assert frot.solve(X, Y, p=2).value == pytest.approx(16.0)
    # Warnings are errors here.
    assert frot.solve(X, Y, p=2, metric="euclidean").value == pytest.approx(4.0)


@pytest.mark.parametrize("eps", [1e308, 1e16])
def test_an_eps_beside_which_costs_are_rounding_is_refused(eps):
    X = np.random.default_rng(0).normal(size=(5, 2))
    with pytest.raises(frot.InputError, match=r"^eps: .* is too large"):
        frot.solve(X, X + 1.0, eps=eps)
    with pytest.raises(frot.InputError, match=r"eps: .* is too large"):
        frot.solve_batch(X[None], X[None] + 1.0, eps=eps)
