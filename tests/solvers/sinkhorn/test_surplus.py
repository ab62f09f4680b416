"""What rounding adds to a plan's divergence, against the sum itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import frot
from frot._base.arrays import Home
from frot.costs.points import PointGeometry
from frot.solvers.sinkhorn.certificate import certify
from frot.solvers.sinkhorn.dense import DenseEngine
from frot.solvers.sinkhorn.objective import plan_objective
from frot.solvers.sinkhorn.terms import Terms

RNG = np.random.default_rng(5)
ALPHA = np.array([[0.3, 0.7]])


def engine(eps: float, n: int = 30, m: int = 20) -> DenseEngine:
    """Two features, a group each."""
    X, Y = RNG.normal(size=(1, n, 2)), RNG.normal(size=(1, m, 2)) + 0.5
    a, b = RNG.dirichlet(np.ones(n) * 5.0)[None], RNG.dirichlet(np.ones(m) * 5.0)[None]
    geometry = PointGeometry(X, Y)
    terms = Terms.of(Home.of(X), a, b, frot.Simplex(), eps, geometry.sizes(a, b))
    return DenseEngine(geometry, terms)


def objective(made: DenseEngine, proof) -> float:
    """The objective of the proof's plan, from its entries."""
    terms, geometry = made.terms, made.geometry
    scores = (proof.g[:, None, :] - geometry.mix(proof.alpha)) / terms.eps[:, :, None]
    plan = terms.b[:, None, :] * np.exp(scores - scores.max(axis=2, keepdims=True))
    plan *= (terms.a / plan.sum(axis=2))[:, :, None]
    plan *= proof.thin[:, None, :] * proof.weight[:, None, None]
    plan += proof.left[:, :, None] * proof.right[:, None, :]
    np.testing.assert_allclose(plan.sum(axis=1), terms.b, rtol=1e-12)
    density = plan / (terms.a[:, :, None] * terms.b[:, None, :])
    entropy = float((plan * np.log(np.where(plan > 0.0, density, 1.0))).sum())
    return float(geometry.inner(plan).max()) + float(terms.eps[0, 0]) * entropy


@pytest.mark.parametrize("closeness", [1e-7, 1e-5, 1e-3, 0.1])
@pytest.mark.parametrize("eps", [5.0, 0.5, 0.2])
def test_a_kept_kernel_and_the_scores_tell_the_same_objective(eps: float, closeness: float):
    made = engine(eps)
    at = made.start(ALPHA, closeness)
    last = certify(made, ALPHA, at.g, enough=np.inf)
    early = certify(made, ALPHA, at.g)
    assert np.isfinite(last.surplus).all()
    assert np.isnan(early.surplus).all()
    expected = objective(made, last)
    unit = 1e-10 * float(made.terms.scale[0, 0])
    assert float(plan_objective(made, last)[0]) == pytest.approx(expected, abs=unit)
    assert float(plan_objective(made, early)[0]) == pytest.approx(expected, abs=unit)
    # No mass put in: nothing that the sum over marginals would not tell.
    nothing = replace(last, surplus=0.0 * last.surplus)
    assert float(plan_objective(made, nothing)[0]) <= float(plan_objective(made, last)[0])


@pytest.mark.parametrize("eps", [0.05, 1e-3])
def test_kernels_whose_entries_are_too_small_leave_it_to_the_scores(eps: float):
    made = engine(eps)
    last = certify(made, ALPHA, made.start(ALPHA, 1e-3).g, enough=np.inf)
    assert np.isnan(last.surplus).all()
    unit = 1e-10 * float(made.terms.scale[0, 0])
    assert float(plan_objective(made, last)[0]) == pytest.approx(objective(made, last), abs=unit)


def test_the_series_is_as_good_as_logarithms(monkeypatch):
    made = engine(5.0)
    g = made.start(ALPHA, 1e-7).g
    short = certify(made, ALPHA, g, enough=np.inf).surplus
    monkeypatch.setattr("frot.solvers.sinkhorn._surplus.LEFT_OUT", -1.0)
    logs = certify(made, ALPHA, g, enough=np.inf).surplus
    assert short == pytest.approx(logs, rel=1e-6)
