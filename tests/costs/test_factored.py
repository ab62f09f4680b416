"""Squared Euclidean and cosine costs that are never stacked."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import frot
from frot import Groups, InputError, Plan
from frot.costs import Points
from frot.costs.points import is_identity
from tests.reference import quiet

RNG = np.random.default_rng(0)


def test_an_offset_costs_no_digits():
    X, Y = RNG.normal(size=(8, 3)), RNG.normal(size=(9, 3))
    # Offsets that are powers of two change no digit of the differences themselves.
    X, Y = X.astype(np.float32).astype(float), Y.astype(np.float32).astype(float)
    plain = Points.of(X, Y, Groups.all(3))
    moved = Points.of(X + 2.0**14, Y + 2.0**14, Groups.all(3))
    assert moved.mix(np.ones(1)) == pytest.approx(cdist(X, Y, "sqeuclidean"), rel=1e-11)
    dense = Plan(np.full((8, 9), 1 / 72))
    assert moved.inner(dense) == pytest.approx(plain.inner(dense), rel=1e-11)


def test_sparse_plans_lose_no_digits_where_clouds_are_far_apart():
    X = np.array([[0.0], [1e8]])
    Y = X + 1e-4
    costs = Points.of(X, Y, Groups.each(1))
    plan = Plan.from_arcs([0, 1], [0, 1], [0.5, 0.5], (2, 2))
    exact = 0.5 * ((Y - X) ** 2).sum()
    assert costs.inner(plan)[0] == pytest.approx(exact, rel=1e-3)


def clusters(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in two clusters that are 1e8 times as far apart as they are wide."""
    rng = np.random.default_rng(seed)
    centres = rng.choice([-1e4, 1e4], 8)[:, None]
    return centres + 1e-4 * rng.normal(size=(8, 2)), centres + 1e-4 * rng.normal(size=(8, 2))


def test_dense_plans_lose_no_digits_where_clouds_are_far_apart():
    X, Y = clusters(2)
    plan = np.where(np.abs(X[:, :1] - Y[:, 0]) < 1.0, 1 / 64, 0.0)
    exact = np.einsum("ij,ijk->k", plan, (X[:, None] - Y) ** 2)
    costs = Points.of(X, Y, Groups.each(2))
    assert costs.inner(Plan(plan)) == pytest.approx(exact, rel=1e-3)


def test_no_upper_bound_is_below_the_objective_of_its_plan():
    for seed in range(10):
        X, Y = clusters(seed)
        solver = frot.FrankWolfe(oracle=frot.Sinkhorn(eps=1e-9, max_iter=200), max_iter=5)
        result = quiet(frot.solve, X, Y, solver=solver)
        phi = np.einsum("ij,ijk->k", np.asarray(result.plan), (X[:, None] - Y) ** 2)
        assert result.upper >= phi.max() * (1 - 1e-3)


def test_costs_are_never_negative():
    X = np.repeat(RNG.normal(size=(1, 4)) * 1e3, 5, axis=0)
    costs = Points.of(X, X.copy(), Groups.all(4))
    assert (costs.mix(np.ones(1)) >= 0.0).all()
    assert costs.product(np.full(5, 0.2), np.full(5, 0.2))[0] >= 0.0


def test_features_in_no_group_are_dropped():
    X, Y = RNG.normal(size=(3, 6)), RNG.normal(size=(4, 6))
    costs = Points.of(X, Y, Groups.parse([[4], [1]], 6))
    assert costs.X.shape == (3, 2)
    expected = 0.25 * (X[:, [4]] - Y[:, 4]) ** 2 + 0.75 * (X[:, [1]] - Y[:, 1]) ** 2
    assert costs.mix(np.array([0.25, 0.75])) == pytest.approx(expected, rel=1e-12)


def test_many_features_go_through_blocks():
    X, Y = RNG.normal(size=(20, 30_000)), RNG.normal(size=(25, 30_000))
    groups = Groups.from_sizes([10_000, 20_000])
    costs = Points.of(X, Y, groups)
    expected = 0.5 * cdist(X, Y, "sqeuclidean")
    assert costs.mix(np.array([0.5, 0.5])) == pytest.approx(expected, rel=1e-11)
    plan = Plan.from_arcs(np.arange(20), np.arange(20), np.full(20, 0.05), (20, 25))
    per_feature = 0.05 * ((X - Y[:20]) ** 2).sum(axis=0)
    wanted = [per_feature[:10_000].sum(), per_feature[10_000:].sum()]
    assert costs.inner(plan) == pytest.approx(wanted, rel=1e-11)


class TestCosine:
    def test_lengths_do_not_matter(self):
        X, Y = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))
        plain = Points.of(X, Y, Groups.all(3), "cosine").mix(np.ones(1))
        long = Points.of(X * 1e200, Y * 1e-200, Groups.all(3), "cosine").mix(np.ones(1))
        assert long == pytest.approx(plain, rel=1e-12)
        assert plain == pytest.approx(cdist(X, Y, "cosine"), rel=1e-10)

    def test_a_row_of_zeros_is_refused_by_number_and_group(self):
        X = np.array([[1.0, 1.0], [1.0, 0.0]])
        groups = Groups.parse({"left": [0], "right": [1]}, 2)
        with pytest.raises(InputError, match="Y row 1 is all zeros in group 'right'"):
            Points.of(X[:1], X, groups, "cosine")


def test_a_mix_takes_little_more_memory_than_it_is():
    import tracemalloc

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 600, 20))
    costs = Points.of(X, Y, Groups.each(20))
    tracemalloc.start()
    try:
        mixed = costs.mix(np.full(20, 0.05))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 1.5 * mixed.nbytes


class TestManyFeatures:
    """Points that are centred block by block, of which there is no second copy."""

    X, Y = RNG.normal(size=(20, 30_000)) + 1e3, RNG.normal(size=(25, 30_000)) + 1e3

    def costs(self) -> Points:
        return Points.of(self.X, self.Y, Groups.each(30_000))

    def test_nothing_keeps_a_centred_copy(self):
        costs, plan = self.costs(), Plan(np.full((20, 25), 1 / 500))
        alpha = np.full(30_000, 1 / 30_000)
        mixed = costs.mix(alpha)
        costs.rounding(alpha)
        costs.inner(plan)
        u, v = np.full(20, 0.05), np.full(25, 0.04)
        costs.doubt(costs.product(u, v), u, v, 500)
        assert not {"X", "Y"} & vars(costs).keys()
        assert mixed == pytest.approx(cdist(self.X, self.Y, "sqeuclidean") / 30_000, rel=1e-11)

    def test_dense_plans_lose_no_digits_to_an_offset(self):
        plan = RNG.dirichlet(np.ones(500)).reshape(20, 25)
        some = np.arange(0, 30_000, 1_000)
        gaps = self.X[:, None, some] - self.Y[:, some]
        expected = np.einsum("ij,ijk->k", plan, gaps**2)
        assert self.costs().inner(Plan(plan))[some] == pytest.approx(expected, rel=1e-11)

    def test_a_solve_takes_little_more_than_one_copy_of_the_points(self):
        import tracemalloc

        solver = frot.FrankWolfe(step="paper", max_iter=2)
        options = {"groups": "each", "eta": 1.0, "solver": solver}
        quiet(frot.solve, self.X[:, :5], self.Y[:, :5], **options)
        tracemalloc.start()
        try:
            result = quiet(frot.solve, self.X, self.Y, **options)
            kept, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        points = self.X.nbytes + self.Y.nbytes
        assert result.lower <= result.value <= result.upper
        # Names of 30,000 groups take as much as half the points do here.
        assert peak < 1.9 * points
        assert kept < 1.5 * points


def test_which_groups_are_one_feature_each():
    assert is_identity(Groups.each(2).membership())
    assert not is_identity(Groups.all(2).membership())
    assert not is_identity(Groups.parse([[1], [0]], 2).membership())
    assert not is_identity(2.0 * Groups.each(2).membership())
