"""The value of an entropic result is the objective of the plan it hands out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frot
from frot._base.arrays import Home
from frot.costs.points import PointGeometry
from frot.solvers.sinkhorn.certificate import certify
from frot.solvers.sinkhorn.dense import DenseEngine
from frot.solvers.sinkhorn.objective import plan_objective
from frot.solvers.sinkhorn.terms import BatchTerms
from tests.libraries import LIBRARIES


def objective(result: frot.Result) -> float:
    """G_eta of the plan's costs plus eps times its divergence, from the plan alone."""
    result = result.numpy()
    plan = np.asarray(result.plan, dtype=float)
    a, b = plan.sum(axis=1), plan.sum(axis=0)
    on = plan > 0.0
    divergence = float((plan[on] * np.log(plan[on] / np.outer(a, b)[on])).sum())
    phi = np.asarray(result.phi)
    if result.eta == 0.0:
        return float(phi.max()) + result.eps * divergence
    top = phi.max()
    worst = top + result.eta * np.log(np.exp((phi - top) / result.eta).sum())
    return float(worst) + result.eps * divergence


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    share=st.sampled_from([1e-3, 0.02, 0.3, 5.0]),
    eta=st.sampled_from([0.0, 0.1, 10.0]),
    tol=st.sampled_from([0.3, 1e-2, 1e-4, 1e-9]),
)
def test_of_one_problem(seed: int, share: float, eta: float, tol: float):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 12, size=2)
    X, Y = rng.normal(size=(n, 4)), rng.normal(size=(m, 4)) + 0.3
    result = frot.solve(
        X, Y, [2, 2], a=rng.dirichlet(np.ones(n)), eta=eta, eps=frot.relative(share), tol=tol
    )
    assert result.value == pytest.approx(objective(result), rel=1e-9, abs=1e-12)
    assert result.lower <= result.value <= result.upper


def test_of_a_run_that_was_stopped_at_once():
    X, Y = np.array([[1.3, 8.2], [0.7, 5.2]]), np.array([[0.9, 8.5], [0.4, 6.2]])
    with pytest.warns(frot.ConvergenceWarning):
        result = frot.solve(X, Y, eps=6.0, max_iter=1)
    assert result.value == pytest.approx(objective(result), rel=1e-12)
    # Nor is an interval with eps taken for one without.
    low, high = result.unregularised
    assert low <= frot.solve(X, Y).value <= high


@pytest.mark.parametrize("library", LIBRARIES, ids=str)
def test_of_a_batch(library):
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(4, 9, 4)), rng.normal(size=(4, 7, 4)) + 0.5
    results = frot.solve_batch(library(X), library(Y), [2, 2], eta=0.2, eps=0.1, tol=1e-3)
    rough = 1e-10 if library.precision == "float64" else 1e-5
    for one, value in zip(results, results.value, strict=True):
        assert value == pytest.approx(objective(one), rel=rough)


def test_of_a_batch_that_had_no_time():
    X, Y = np.array([[[0.0], [1.0]], [[3.0], [1.0]]]), np.array([[[0.5], [2.0]], [[0.0], [7.0]]])
    with pytest.warns(frot.ConvergenceWarning):
        results = frot.solve_batch(X, Y, eps=1.0, time_limit=1e-9)
    for one, value in zip(results, results.value, strict=True):
        assert value == pytest.approx(objective(one), rel=1e-12)


def test_of_far_points_next_to_no_weight():
    # Nothing of the plan of potentials reaches the far point: all its mass is what rounding put in.
    Y, b = np.array([[0.7], [8e5]]), np.array([1.0, 4e-15])
    result = frot.solve([[2.0]], Y, b=b, metric="cityblock", eps=frot.relative(0.03))
    exact = 1.3 + 4e-15 * (8e5 - 2.0 - 1.3)
    assert result.lower <= exact <= result.upper
    assert result.value == pytest.approx(exact, rel=2e-11)


def test_of_logarithms_that_are_larger_than_single_precision_tells():
    # One row leaves no choice, so that the plan has no divergence, but far from these potentials.
    X, Y = np.array([[[0.0]]]), np.array([[[8.3e7], [0.1]]])
    b = np.array([[2.0**-26, 1 - 2.0**-26]])
    with pytest.warns(frot.ConvergenceWarning):
        result = frot.solve_batch(X, Y, b=b, max_iter=1)[0]
    assert np.asarray(result.plan)[0] == pytest.approx(b[0], rel=1e-15)
    assert result.value == pytest.approx(float(b[0] @ Y[0, :, 0] ** 2), rel=1e-12)


# What rounding adds to a plan's divergence, against the sum itself.
RNG = np.random.default_rng(5)
ALPHA = np.array([[0.3, 0.7]])


def engine(eps: float, n: int = 30, m: int = 20) -> DenseEngine:
    """Two features, a group each."""
    X, Y = RNG.normal(size=(1, n, 2)), RNG.normal(size=(1, m, 2)) + 0.5
    a, b = RNG.dirichlet(np.ones(n) * 5.0)[None], RNG.dirichlet(np.ones(m) * 5.0)[None]
    geometry = PointGeometry(X, Y)
    terms = BatchTerms.of(Home.of(X), a, b, frot.Simplex(), eps, geometry.sizes(a, b))
    return DenseEngine(geometry, terms)


def proven_objective(made: DenseEngine, proof) -> float:
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
    expected = proven_objective(made, last)
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
    assert float(plan_objective(made, last)[0]) == pytest.approx(
        proven_objective(made, last), abs=unit
    )


def test_the_series_is_as_good_as_logarithms(monkeypatch):
    made = engine(5.0)
    g = made.start(ALPHA, 1e-7).g
    short = certify(made, ALPHA, g, enough=np.inf).surplus
    monkeypatch.setattr("frot.solvers.sinkhorn.objective.LEFT_OUT", -1.0)
    logs = certify(made, ALPHA, g, enough=np.inf).surplus
    assert short == pytest.approx(logs, rel=1e-6)
