"""Passes over the plan of a potential: exact rows, and potentials that bind without eps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from frot import Simplex
from frot._base.arrays import Home
from frot.costs.stack import StackGeometry
from frot.solvers.sinkhorn._passes import settled_pass
from frot.solvers.sinkhorn.dense import DenseEngine
from frot.solvers.sinkhorn.terms import Terms

RNG = np.random.default_rng(0)
COSTS = RNG.random((3, 7, 5))
ALPHA = np.array([[0.2, 0.5, 0.3]])
MIXED = (ALPHA @ COSTS.reshape(3, -1)).reshape(7, 5)
A = RNG.dirichlet(np.ones(7))
EPS = 0.05


def engine_of(b: np.ndarray) -> DenseEngine:
    sizes = np.full((1, 3), 0.5)
    terms = Terms.of(Home.of(COSTS), A[None], b[None], Simplex(), EPS, sizes)
    return DenseEngine(StackGeometry(COSTS[None]), terms)


@pytest.mark.parametrize("b", [np.full(5, 0.2), RNG.dirichlet(np.ones(5))], ids=["even", "uneven"])
def test_a_pass_is_the_softmin_and_its_plan(b: np.ndarray):
    engine, g = engine_of(b), RNG.normal(size=(1, 5))
    first = settled_pass(engine.terms, engine.passes(ALPHA), g)
    shifted = g[0] - b @ g[0]
    f = -EPS * np.asarray(logsumexp((shifted - MIXED) / EPS, b=b[None], axis=1))
    plan = A[:, None] * b * np.exp((f[:, None] + shifted - MIXED) / EPS)
    assert first.g[0] == pytest.approx(shifted, rel=1e-14)
    assert first.f[0] == pytest.approx(f, rel=1e-12)
    assert first.masses[0] == pytest.approx(plan.sum(axis=0), rel=1e-12)


@pytest.mark.parametrize("b", [np.full(5, 0.2), RNG.dirichlet(np.ones(5))], ids=["even", "uneven"])
def test_plain_potentials_leave_no_cost_negative_and_bind(b: np.ndarray):
    engine, g = engine_of(b), RNG.normal(size=(1, 5))
    first = settled_pass(engine.terms, engine.passes(ALPHA), g)
    reduced = MIXED - first.plain_f[0][:, None] - first.plain_g[0]
    assert reduced.min() >= -1e-14
    assert np.abs(reduced).min(axis=0) == pytest.approx(0.0, abs=1e-14)


def test_thinned_columns_are_counted():
    b = RNG.dirichlet(np.ones(5))
    engine, thin = engine_of(b), RNG.random((1, 5))
    passes = engine.passes(ALPHA)
    first = settled_pass(engine.terms, passes, RNG.normal(size=(1, 5)))
    rows, phi = passes.second(first, thin)
    f, g = first.f[0], first.g[0]
    plan = A[:, None] * b * np.exp((f[:, None] + g - MIXED) / EPS) * thin
    assert rows[0] * A == pytest.approx(plan.sum(axis=1), rel=1e-12)
    assert phi[0] == pytest.approx((COSTS * plan).sum(axis=(1, 2)), rel=1e-12)
