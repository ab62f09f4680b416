"""Smoothed steps of subspace-robust transport: cheap, close, and never part of a proof."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frot
from frot import Plan, Status
from frot.relatives import _srw
from frot.relatives._displacement import Displacements
from frot.relatives._smoothed import Smoothed, capped_weights
from tests.reference import quiet
from tests.strategies import seeds


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(1, 7), st.sampled_from([1e-6, 0.3, 100.0]))
def test_capped_weights_are_the_best_ones(seed, k, tau):
    values = np.random.default_rng(seed).integers(0, 4, 7).astype(float)
    omega = capped_weights(values, k, tau)
    assert omega.sum() == pytest.approx(k)
    assert omega.min() >= 0.0
    assert omega.max() <= 1.0
    # The gradient of a better weight would be larger: none at zero exceeds one below the cap.
    slopes = values - tau * omega
    free, held = slopes[omega < 1.0 - 1e-9], slopes[omega > 1e-9]
    if len(free) and len(held):
        assert free.max() <= held.min() + 1e-6 * max(1.0, tau)


def noise(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    X, Y = np.random.default_rng(1).normal(size=(2, n, d))
    return X, Y


def test_averages_are_plans_and_come_down():
    X, Y = noise(40, 30)
    ones = np.full(40, 1 / 40)
    at = Displacements(X, Y, ones, ones)
    plan = Plan(np.eye(40) / 40)
    values, vectors, _ = at.top(plan, 23)
    smooth = Smoothed.begin(at, 3, plan, values, vectors)
    first = smooth.upper
    for _ in range(24):
        smooth.step()
    factor = smooth.step()
    assert smooth.upper < 0.8 * first
    assert np.allclose(smooth.plan.sum(axis=1), ones)
    assert np.allclose(smooth.plan.sum(axis=0), ones)
    sizes = np.linalg.eigvalsh(factor.T @ factor)
    assert sizes.max() <= 1.0 + 1e-9
    assert sizes.sum() == pytest.approx(3.0)
    # The directions are those of the average, not of the plan before.
    truth, _, _ = at.top(smooth.plan, 3)
    assert smooth.upper == pytest.approx(truth.sum(), rel=0.02)


def test_points_without_structure_converge_too():
    X, Y = noise(120, 40)
    res = frot.srw(X, Y, k=4, tol=0.05, max_iter=150)
    assert res.status is Status.CONVERGED
    assert np.allclose(res.plan.sum(axis=1), 1 / 120)
    # Both bounds by other means: an eigendecomposition, and plain transport at the answer.
    gaps = X[:, None] - Y
    moments = np.einsum("ij,ijk,ijl->kl", np.asarray(res.plan), gaps, gaps)
    assert np.linalg.eigvalsh(moments)[-4:].sum() <= res.upper
    assert res.chosen is not None
    assert res.chosen.weights is not None
    turn = res.chosen.array * np.sqrt(res.chosen.weights)
    plain = frot.wasserstein(X @ turn, Y @ turn)
    assert plain.value >= res.lower * (1.0 - 1e-9)


def test_smoothed_and_exact_rounds_agree(monkeypatch):
    X, Y = noise(40, 12)
    Y[:, :2] += 2.0 * np.sign(Y[:, :2])
    exact = quiet(frot.srw, X, Y, k=2, tol=1e-3)
    monkeypatch.setattr(_srw, "SMOOTH_FROM", 1)
    smooth = quiet(frot.srw, X, Y, k=2, tol=1e-3)
    assert smooth.gap <= 2e-3
    assert smooth.lower <= exact.upper
    assert exact.lower <= smooth.upper


def test_the_last_round_proves_what_it_has():
    X, Y = noise(110, 30)
    res = quiet(frot.srw, X, Y, k=2, tol=1e-9, max_iter=12)
    assert res.status is Status.MAX_ITER
    assert res.history[-1].iteration == 12
    assert res.history[-1].upper < res.history[-2].upper
