"""Entropic transport: right where it converges, honest where it does not, never NaN."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import ot
import pytest
from hypothesis import given

from frot import InputError, Sinkhorn
from tests.libraries import LIBRARIES, Library
from tests.reference import sinkhorn_plan
from tests.strategies import Given, cost_problems

RNG = np.random.default_rng(0)
M = RNG.random((20, 15))
A, B = RNG.dirichlet(np.ones(20)), RNG.dirichlet(np.ones(15))


def entropic_value(plan: np.ndarray, M: np.ndarray, a, b, eps: float) -> float:
    ratio = np.where(plan > 0.0, plan / np.outer(a, b), 1.0)
    return float((plan * M).sum() + eps * (plan * np.log(ratio)).sum())


class TestAgainstPOT:
    @pytest.mark.parametrize("eps", [1.0, 0.1, 0.02])
    def test_plan(self, eps):
        found = Sinkhorn(eps, tol=1e-10)(M, A, B)
        expected = ot.sinkhorn(
            A, B, M, eps, method="sinkhorn_log", stopThr=1e-12, numItermax=50_000
        )
        assert found.converged
        assert np.asarray(found.plan) == pytest.approx(expected, abs=1e-8)

    def test_the_reference_of_these_tests_agrees(self):
        expected = ot.sinkhorn(A, B, M, 0.1, method="sinkhorn_log", stopThr=1e-13)
        assert sinkhorn_plan(M, A, B, 0.1) == pytest.approx(expected, abs=1e-9)

    def test_small_eps_comes_near_the_exact_cost(self):
        found = Sinkhorn(1e-3)(M, A, B)
        assert found.converged
        cost = float((found.plan.dense() * M).sum())
        assert cost == pytest.approx(ot.emd2(A, B, M), rel=2e-2)

    def test_the_dual_value_is_the_primal_value(self):
        eps = 0.05
        found = Sinkhorn(eps, tol=1e-12)(M, A, B)
        primal = entropic_value(np.asarray(found.plan), M, A, B, eps)
        assert found.f @ A + found.g @ B == pytest.approx(primal, rel=1e-9)


class TestAlways:
    @given(
        cost_problems(most_groups=1, negative=True, zeros=False),
        st.sampled_from([1e-8, 1e-4, 1e-2, 1.0, 1e4]),
    )
    def test_never_nan_never_lost_mass_and_honest(self, given: Given, share):
        cost = given.stack[0]
        eps = share * max(float(np.abs(cost).max()), 1e-6)
        oracle = Sinkhorn(eps, max_iter=300)
        found = oracle(cost, given.a, given.b)
        plan = np.asarray(found.plan)
        assert np.isfinite(plan).all()
        assert np.isfinite(found.f).all()
        assert np.isfinite(found.g).all()
        assert plan.sum() == pytest.approx(1.0, abs=1e-9)
        assert plan.sum(axis=1) == pytest.approx(given.a, abs=1e-9)
        off = np.abs(plan.sum(axis=0) - given.b).sum()
        assert off <= oracle.tol + 1e-9 if found.converged else off > oracle.tol - 1e-9

    def test_tiny_eps_converges_or_says_not(self):
        eps = 1e-4 * float(M.max())
        few = Sinkhorn(eps, max_iter=5)(M, A, B)
        assert not few.converged
        assert np.asarray(few.plan).sum() == pytest.approx(1.0, abs=1e-12)
        many = Sinkhorn(eps, max_iter=100_000)(M, A, B)
        assert many.converged
        assert np.abs(many.plan.sum(axis=0) - B).sum() <= 1e-6
        assert (many.plan.dense() * M).sum() == pytest.approx(ot.emd2(A, B, M), rel=2e-3)

    @pytest.mark.parametrize("tol", [1e-3, 1e-9])
    def test_marginals_are_within_the_tolerance(self, tol):
        found = Sinkhorn(0.05, tol=tol)(M, A, B)
        assert found.plan.sum(axis=1) == pytest.approx(A, abs=1e-14)
        assert np.abs(found.plan.sum(axis=0) - B).sum() <= tol * (1 + 1e-9)

    def test_a_warm_start_takes_one_sweep(self):
        cold = Sinkhorn(0.02, tol=1e-8)(M, A, B)
        warm = Sinkhorn(0.02, tol=1e-6, max_iter=1)(M, A, B, start=cold.g)
        assert warm.converged
        assert np.asarray(warm.plan) == pytest.approx(np.asarray(cold.plan), abs=1e-6)
        assert not Sinkhorn(0.02, tol=1e-6, max_iter=1)(M, A, B).converged

    def test_the_callers_arrays_are_left_alone(self):
        cost, g = M.copy(), np.zeros(15)
        Sinkhorn(0.05)(cost, A, B, start=g)
        assert np.array_equal(cost, M)
        assert not g.any()

    def test_eps_must_be_positive(self):
        given: tuple[Any, ...] = (0.0, -1.0, np.nan, "1")
        for eps in given:
            with pytest.raises(InputError, match="eps: "):
                Sinkhorn(eps)


class TestAnyLibrary:
    @pytest.mark.parametrize("library", LIBRARIES, ids=str)
    @pytest.mark.parametrize("share", [1e-4, 1e-2, 1.0])
    def test_the_error_that_is_claimed_is_the_real_one(self, library: Library, share: float):
        tol = 1e-6 if library.precision == "float64" else 1e-4
        cost, a, b = library(M), library(A), library(B)
        found = Sinkhorn(share * float(M.max()), tol=tol, max_iter=3_000)(cost, a, b)
        plan = np.asarray(found.plan)
        assert np.isfinite(plan).all()
        given = np.asarray(library.host(b), dtype=float)
        rounding = 1e-12 if library.precision == "float64" else 3e-5
        assert plan.sum() == pytest.approx(1.0, abs=rounding)
        off = np.abs(plan.sum(axis=0) - given).sum()
        assert (off <= tol + rounding) == found.converged or abs(off - tol) <= rounding
        if share >= 1e-2:
            assert found.converged
            expected = sinkhorn_plan(M, A, B, share * float(M.max()))
            assert plan == pytest.approx(expected, abs=max(10 * tol, rounding))
        assert type(found.f) is type(cost)
        assert found.g.dtype == cost.dtype

    @pytest.mark.parametrize("library", LIBRARIES, ids=str)
    def test_a_start_of_the_same_kind(self, library: Library):
        cost, a, b = library(M), library(A), library(B)
        cold = Sinkhorn(0.05, tol=1e-5)(cost, a, b)
        warm = Sinkhorn(0.05, tol=1e-4, max_iter=1)(cost, a, b, start=cold.g)
        assert cold.converged
        assert warm.converged


class TestWithoutWeight:
    @given(cost_problems(most_groups=1, negative=True), st.sampled_from([1e-4, 1e-2, 1.0]))
    def test_no_nan_and_no_mass_where_none_belongs(self, given: Given, share):
        cost = given.stack[0]
        eps = share * max(float(np.abs(cost).max()), 1e-6)
        for start in (None, np.zeros(len(given.b))):
            found = Sinkhorn(eps, max_iter=200)(cost, given.a, given.b, start)
            plan = np.asarray(found.plan)
            assert plan.sum(axis=1) == pytest.approx(given.a, abs=1e-9)
            assert (plan[:, given.b == 0.0] == 0.0).all()
            assert np.isfinite(found.f).all()
            assert np.isfinite(found.g).all()


def test_the_matrix_stays_as_it_is():
    costs = M.copy()
    first = Sinkhorn(0.05)(costs, A, B)
    assert np.array_equal(costs, M)
    assert np.array_equal(np.asarray(first.plan), np.asarray(Sinkhorn(0.05)(costs, A, B).plan))
