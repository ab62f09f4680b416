"""Over-relaxed sweeps: the same plan as plain ones, in far fewer."""

from __future__ import annotations

import numpy as np
import pytest

from frot._arrays import Home
from frot._entropic._scaling import Relaxation, settle
from frot._entropic._scaling import sweep_to as sweep_batch

RNG = np.random.default_rng(0)
M = RNG.random((60, 50))
A, B = RNG.dirichlet(np.ones(60)), RNG.dirichlet(np.ones(50))


def sweep_to(eps: float, tol: float, limit: int):
    """One problem as a batch of one."""
    found = sweep_batch(M[None], A[None], B[None], np.array([[eps]]), np.zeros((1, 50)), tol, limit)
    return found._replace(f=found.f[0], g=found.g[0], plan=found.plan[0], error=found.error[0])


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
    found = sweep_to(0.01, 1e-9, 10_000)
    assert found.error <= 1e-9
    assert found.plan == pytest.approx(plan, abs=1e-8)
    assert found.sweeps < 0.5 * sweeps


def test_rows_are_exact_and_the_error_is_that_of_the_columns():
    for limit in (1, 7, 33, 10_000):
        found = sweep_to(0.02, 1e-7, limit)
        assert found.sweeps <= limit
        assert found.plan.sum(axis=1) == pytest.approx(A, rel=1e-12)
        assert np.abs(found.plan.sum(axis=0) - B).sum() == pytest.approx(found.error, abs=1e-13)


def test_potentials_make_the_plan():
    found = sweep_to(0.05, 1e-9, 10_000)
    gibbs = np.outer(A, B) * np.exp((found.f[:, None] + found.g - M) / 0.05)
    assert gibbs == pytest.approx(found.plan, rel=1e-9, abs=1e-15)


def test_relaxation_retreats_when_errors_grow_and_then_stays_below():
    relaxation = Relaxation(Home.of(M), 1)
    omegas = []
    for sweep in range(0, 2000, 10):
        # Errors fall slowly below omega = 1.5 and rise above it.
        error = 0.98**sweep if relaxation.omega[0] < 1.5 else 1.0 + sweep
        relaxation.update(np.array([error]), sweep)
        omegas.append(float(relaxation.omega[0]))
    assert max(omegas) > 1.5
    assert max(omegas[-50:]) < 1.5
    assert omegas[-1] > 1.2


def test_members_of_a_batch_do_not_disturb_each_other():
    costs = np.stack([M, M**2, 5.0 * M])
    eps = np.array([[0.01], [0.02], [0.5]])
    a, b = np.stack([A, A, np.full(60, 1 / 60)]), np.stack([B, B[::-1], B])
    together = settle(costs, a, b, eps, 1e-10, 20_000)
    assert (together.error <= 1e-10).all()
    for at in range(3):
        rows = slice(at, at + 1)
        alone = settle(costs[rows], a[rows], b[rows], eps[rows], 1e-10, 20_000)
        assert together.plan[at] == pytest.approx(alone.plan[0], abs=1e-9)


def test_small_eps_needs_few_sweeps_and_loses_no_mass():
    found = settle(M[None], A[None], B[None], np.array([[1e-4]]), 1e-6, 20_000)
    assert np.isfinite(found.plan).all()
    assert found.plan.sum() == pytest.approx(1.0, abs=1e-12)


def test_single_precision_stays_single_and_keeps_its_mass():
    costs, a, b = (x[None].astype(np.float32) for x in (M, A, B))
    found = settle(costs, a, b, np.full((1, 1), 1e-3, dtype=np.float32), 1e-4, 5_000)
    assert found.plan.dtype == np.float32
    assert found.plan.sum() == pytest.approx(1.0, abs=1e-5)
