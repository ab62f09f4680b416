"""Weighted sums of plans, and plans among more points than they have."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from frot import LazyPlan, Plan
from frot.plans.combine import combine_plans, expand_plan
from frot.plans.plan import is_sparse, plan_kind
from frot.solvers.entropic import kernel as row_blocks_module
from tests.plans.test_plan import MAKERS, A, B, M, N, arcs, averaged, lazy
from tests.strategies import seeds


class TestCombine:
    @given(seeds, st.integers(1, 30), st.booleans())
    def test_it_is_the_weighted_sum(self, seed, count, mixed):
        rng = np.random.default_rng(seed)
        plans = []
        for number in range(count):
            dense = rng.random((4, 5)) * (rng.random((4, 5)) < 0.4)
            sparse_plan = Plan.from_arcs(*Plan(dense).arcs(), (4, 5))
            plans.append(Plan(dense) if mixed and number % 2 else sparse_plan)
        weights = rng.random(count)
        total = combine_plans(plans, weights)
        expected = sum(w * np.asarray(p) for w, p in zip(weights, plans, strict=True))
        assert np.asarray(total) == pytest.approx(expected, rel=1e-14, abs=1e-16)
        assert is_sparse(total) == all(map(is_sparse, plans))

    def test_plans_of_zero_weight_are_left_out(self):
        total = combine_plans([arcs(), lazy()], [1.0, 0.0])
        assert is_sparse(total)
        assert np.array_equal(np.asarray(total), np.asarray(arcs()))

    def test_nothing_cannot_be_combined(self):
        with pytest.raises(ValueError, match="at least one plan of non-zero weight"):
            combine_plans([arcs()], [0.0])

    def test_lazy_ones_stay_lazy(self):
        steps = averaged()
        assert plan_kind(steps) == "3 lazy plans"
        assert steps.sum(axis=1) == pytest.approx(A, abs=1e-14)
        assert steps.sum(axis=0) == pytest.approx(B, abs=1e-14)
        mixed = combine_plans([lazy(), steps, lazy()], [0.25, 0.75, 0.0])
        assert isinstance(mixed, LazyPlan)
        assert plan_kind(mixed) == "4 lazy plans"
        expected = 0.25 * np.asarray(lazy()) + 0.75 * np.asarray(steps)
        assert np.asarray(mixed) == pytest.approx(expected, rel=1e-13)

    def test_with_a_plan_that_is_not_lazy(self):
        mixed = combine_plans([lazy(), Plan(np.outer(A, B))], [0.5, 0.5])
        assert not isinstance(mixed, LazyPlan)
        expected = 0.5 * np.asarray(lazy()) + 0.5 * np.outer(A, B)
        assert np.asarray(mixed) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["dense", "arcs", "lazy", "averaged", "torch-float64, lazy"])
@pytest.mark.parametrize("in_blocks", [False, True])
def test_rows_and_columns_are_placed_among_zeros(name, in_blocks, monkeypatch):
    if in_blocks:
        monkeypatch.setattr(row_blocks_module, "BLOCK_BYTES_ON_HOST", 2 * 8 * M)
    plan = MAKERS[name][1]()
    rows, cols = np.array([0, 3, 4, 5, 6, 8, 14]), np.array([1, 2, 4, 5, 7])
    large = expand_plan(plan, rows, cols, (15, 9))
    expected = np.zeros((15, 9))
    expected[np.ix_(rows, cols)] = np.asarray(plan)
    # To the last digit: marginals were proven of rows computed in these blocks.
    assert np.array_equal(np.asarray(large), expected)
    assert type(large) is type(plan)
    assert is_sparse(large) == is_sparse(plan)
    assert np.asarray(large.sum(axis=0)) == pytest.approx(expected.sum(axis=0))
    assert np.asarray(large.T.rows(4)) == pytest.approx(expected[:, 4])
    assert len(rows) == N
