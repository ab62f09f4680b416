"""Plans found on the host, for arrays that are elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from frot import Plan
from frot._base.arrays import Home, to_numpy
from frot.plans.at import PlanAt
from tests.libraries import FOREIGN, Library

RNG = np.random.default_rng(0)
DENSE = RNG.random((4, 3)) * (RNG.random((4, 3)) < 0.7)
SPARSE = Plan.from_arcs(*Plan(DENSE).arcs(), (4, 3))


@pytest.mark.parametrize("plan", [Plan(DENSE), SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("library", FOREIGN, ids=str)
def test_arrays_go_in_and_come_out_as_the_users(library: Library, plan: Plan):
    at = PlanAt(plan, Home.of(library([0.0])))
    V, U = RNG.normal(size=(3, 2)), RNG.normal(size=(4, 2))
    for found, expected in (
        (at.dense(), DENSE),
        (at @ library(V), DENSE @ V),
        (at.T @ library(U), DENSE.T @ U),
        (at.T.T @ library(V), DENSE @ V),
        (at.rows(1), DENSE[1]),
        (at.rows([2, 0]), DENSE[[2, 0]]),
        (at.sum(axis=0), DENSE.sum(axis=0)),
        (at.sum(axis=1), DENSE.sum(axis=1)),
        (at[1], DENSE[1]),
        (at * library(DENSE), DENSE**2),
    ):
        assert library.owns(found)
        assert to_numpy(found) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert at.sum() == pytest.approx(DENSE.sum())
    for axis in (0, 1):
        assert to_numpy(at.argmax(axis=axis)).tolist() == DENSE.argmax(axis=axis).tolist()
    assert np.asarray(at) == pytest.approx(DENSE, abs=0)
    assert np.asarray(at).dtype == np.float64
    assert at.is_sparse == plan.is_sparse
    assert at.nnz == plan.nnz
    assert isinstance(at.T, PlanAt)
