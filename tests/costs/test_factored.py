"""Squared Euclidean and cosine costs that are never stacked."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import frot
from frot import Groups, InputError, Plan
from frot.costs import FactoredCosts
from frot.costs.points import is_identity
from tests.reference import quiet

RNG = np.random.default_rng(0)


def test_an_offset_costs_no_digits():
    X, Y = RNG.normal(size=(8, 3)), RNG.normal(size=(9, 3))
    # Offsets that are powers of two change no digit of the differences themselves.
    X, Y = X.astype(np.float32).astype(float), Y.astype(np.float32).astype(float)
    plain = FactoredCosts.of(X, Y, Groups.all(3))
    moved = FactoredCosts.of(X + 2.0**14, Y + 2.0**14, Groups.all(3))
    assert moved.mix(np.ones(1)) == pytest.approx(cdist(X, Y, "sqeuclidean"), rel=1e-11)
    dense = Plan(np.full((8, 9), 1 / 72))
    assert moved.inner(dense) == pytest.approx(plain.inner(dense), rel=1e-11)


def test_sparse_plans_lose_no_digits_where_clouds_are_far_apart():
    X = np.array([[0.0], [1e8]])
    Y = X + 1e-4
    costs = FactoredCosts.of(X, Y, Groups.each(1))
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
    costs = FactoredCosts.of(X, Y, Groups.each(2))
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
    costs = FactoredCosts.of(X, X.copy(), Groups.all(4))
    assert (costs.mix(np.ones(1)) >= 0.0).all()
    assert costs.independent(np.full(5, 0.2), np.full(5, 0.2))[0] >= 0.0


def test_features_in_no_group_are_dropped():
    X, Y = RNG.normal(size=(3, 6)), RNG.normal(size=(4, 6))
    costs = FactoredCosts.of(X, Y, Groups.parse([[4], [1]], 6))
    assert costs.X.shape == (3, 2)
    expected = 0.25 * (X[:, [4]] - Y[:, 4]) ** 2 + 0.75 * (X[:, [1]] - Y[:, 1]) ** 2
    assert costs.mix(np.array([0.25, 0.75])) == pytest.approx(expected, rel=1e-12)


def test_many_features_go_through_blocks():
    X, Y = RNG.normal(size=(20, 30_000)), RNG.normal(size=(25, 30_000))
    groups = Groups.from_sizes([10_000, 20_000])
    costs = FactoredCosts.of(X, Y, groups)
    expected = 0.5 * cdist(X, Y, "sqeuclidean")
    assert costs.mix(np.array([0.5, 0.5])) == pytest.approx(expected, rel=1e-11)
    plan = Plan.from_arcs(np.arange(20), np.arange(20), np.full(20, 0.05), (20, 25))
    per_feature = 0.05 * ((X - Y[:20]) ** 2).sum(axis=0)
    wanted = [per_feature[:10_000].sum(), per_feature[10_000:].sum()]
    assert costs.inner(plan) == pytest.approx(wanted, rel=1e-11)


class TestCosine:
    def test_lengths_do_not_matter(self):
        X, Y = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))
        plain = FactoredCosts.of(X, Y, Groups.all(3), "cosine").mix(np.ones(1))
        long = FactoredCosts.of(X * 1e200, Y * 1e-200, Groups.all(3), "cosine").mix(np.ones(1))
        assert long == pytest.approx(plain, rel=1e-12)
        assert plain == pytest.approx(cdist(X, Y, "cosine"), rel=1e-10)

    def test_a_row_of_zeros_is_refused_by_number_and_group(self):
        X = np.array([[1.0, 1.0], [1.0, 0.0]])
        groups = Groups.parse({"left": [0], "right": [1]}, 2)
        with pytest.raises(InputError, match="Y row 1 is all zeros in group 'right'"):
            FactoredCosts.of(X[:1], X, groups, "cosine")


def test_a_mix_takes_little_more_memory_than_it_is():
    import tracemalloc

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 600, 20))
    costs = FactoredCosts.of(X, Y, Groups.each(20))
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

    def costs(self) -> FactoredCosts:
        return FactoredCosts.of(self.X, self.Y, Groups.each(30_000))

    def test_nothing_keeps_a_centred_copy(self):
        costs, plan = self.costs(), Plan(np.full((20, 25), 1 / 500))
        alpha = np.full(30_000, 1 / 30_000)
        mixed = costs.mix(alpha)
        costs.rounding(alpha)
        costs.inner(plan)
        costs.doubt(costs.independent(np.full(20, 0.05), np.full(25, 0.04)), plan)
        assert not {"X", "Y", "_features"} & vars(costs).keys()
        assert mixed == pytest.approx(cdist(self.X, self.Y, "sqeuclidean") / 30_000, rel=1e-11)

    def test_peaks_are_those_of_the_centred_points(self):
        costs = self.costs()
        largest = np.maximum(np.abs(costs.X).max(axis=0), np.abs(costs.Y).max(axis=0))
        assert np.array_equal(costs._peaks, largest**2)

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


@pytest.mark.parametrize("features", [60, 30_000])
def test_rounding_is_of_the_weights_that_are_asked_for(features):
    """Norms are kept from the last mix, which may have been of other weights."""
    X, Y = RNG.normal(size=(6, features)), RNG.normal(size=(7, features))
    one, other = RNG.dirichlet(np.ones(features), size=2)
    other[: features // 2] = 0.0
    # Never mixed, so that nothing is kept.
    plain = [FactoredCosts.of(X, Y, Groups.each(features)).rounding(at) for at in (one, other)]
    costs = FactoredCosts.of(X, Y, Groups.each(features))
    for at, expected in zip((one, other), plain, strict=True):
        costs.mix(at)
        assert costs.rounding(at).rows == pytest.approx(expected.rows, rel=1e-12, abs=0.0)
        assert costs.rounding(at).cols == pytest.approx(expected.cols, rel=1e-12, abs=0.0)
        assert (costs.rounding(at).rows > 0.0).all()
    assert costs.rounding(one).rows == pytest.approx(plain[0].rows, rel=1e-12, abs=0.0)
    changed = one.copy()
    costs.mix(changed)
    changed[:] = other
    assert costs.rounding(changed).rows == pytest.approx(plain[1].rows, rel=1e-12, abs=0.0)


def test_rounding_is_of_its_weights_whatever_another_thread_mixes(monkeypatch):
    X, Y, each = RNG.normal(size=(6, 4)), RNG.normal(size=(7, 4)), Groups.each(4)
    one, other = RNG.dirichlet(np.ones(4), size=2)
    expected = FactoredCosts.of(X, Y, each).rounding(one)
    costs, compare = FactoredCosts.of(X, Y, each), np.array_equal

    def interrupted(a, b):
        """Another thread has its turn between a look at the weights and one at the norms."""
        found = compare(a, b)
        costs.mix(other)
        return found

    costs.mix(one)
    monkeypatch.setattr(np, "array_equal", interrupted)
    found = costs.rounding(one)
    monkeypatch.undo()
    assert found.rows == pytest.approx(expected.rows, rel=1e-12, abs=0.0)
    assert found.cols == pytest.approx(expected.cols, rel=1e-12, abs=0.0)


def test_which_groups_are_one_feature_each():
    assert is_identity(Groups.each(2).membership())
    assert not is_identity(Groups.all(2).membership())
    assert not is_identity(Groups.parse([[1], [0]], 2).membership())
    assert not is_identity(2.0 * Groups.each(2).membership())
