"""Over-relaxed sweeps: the same plan as plain ones, in far fewer."""

from __future__ import annotations

import numpy as np
import pytest

from frot._oracles._sweeps import _Relaxation, sweep_to

RNG = np.random.default_rng(0)
M = RNG.random((60, 50))
A, B = RNG.dirichlet(np.ones(60)), RNG.dirichlet(np.ones(50))


def plain_sweeps(eps: float, tol: float) -> tuple[np.ndarray, int]:
    kernel = np.exp(-M / eps)
    u, v, sweeps = np.ones(60), np.ones(50), 0
    while np.abs(v * (kernel.T @ u) - B).sum() > tol:
        v = B / (kernel.T @ u)
        u = A / (kernel @ v)
        sweeps += 1
    return u[:, None] * kernel * v, sweeps


def test_fewer_sweeps_to_the_same_plan():
    plan, sweeps = plain_sweeps(0.01, 1e-9)
    found = sweep_to(M, A, B, 0.01, np.zeros(50), 1e-9, 10_000)
    assert found.error <= 1e-9
    assert found.plan == pytest.approx(plan, abs=1e-8)
    assert found.sweeps < 0.5 * sweeps


def test_rows_are_exact_and_the_error_is_that_of_the_columns():
    for limit in (1, 7, 33, 10_000):
        found = sweep_to(M, A, B, 0.02, np.zeros(50), 1e-7, limit)
        assert found.sweeps <= limit
        assert found.plan.sum(axis=1) == pytest.approx(A, rel=1e-12)
        assert np.abs(found.plan.sum(axis=0) - B).sum() == pytest.approx(found.error, abs=1e-13)


def test_potentials_make_the_plan():
    found = sweep_to(M, A, B, 0.05, np.zeros(50), 1e-9, 10_000)
    gibbs = np.outer(A, B) * np.exp((found.f[:, None] + found.g - M) / 0.05)
    assert gibbs == pytest.approx(found.plan, rel=1e-9, abs=1e-15)


def test_relaxation_retreats_when_errors_grow_and_then_stays_back():
    relaxation = _Relaxation()
    omegas = []
    for sweep in range(200):
        # Errors fall slowly at omega = 1 and rise above it.
        relaxation.update(0.98**sweep if relaxation.omega == 1.0 else 1.0 + sweep)
        omegas.append(relaxation.omega)
    assert max(omegas) > 1.5
    assert set(omegas[-50:]) == {1.0}
