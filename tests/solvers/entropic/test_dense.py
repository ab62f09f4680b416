"""Sweeps on stored kernels: the same plan as plain ones, in far fewer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from frot import Simplex
from frot._base.arrays import Home
from frot.costs.stack import Stack
from frot.solvers.entropic import dense, kernel
from frot.solvers.entropic.dense import DenseEngine, _exp_normal, kernel_sweeps
from frot.solvers.entropic.engine import sweep_to
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.point import Point
from tests.reference import sinkhorn_plan

RNG = np.random.default_rng(0)
M = RNG.random((60, 50))
A, B = RNG.dirichlet(np.ones(60)), RNG.dirichlet(np.ones(50))
ONE = np.ones((1, 1))


def engine(
    costs: np.ndarray, a: np.ndarray, b: np.ndarray, eps: Any, symmetric: bool = False
) -> DenseEngine:
    """Problems of one group each."""
    sizes = costs.mean(axis=(1, 2))[:, None]
    problem = EntropicProblem.of(Home.of(costs), a, b, Simplex(), eps, sizes, symmetric=symmetric)
    return DenseEngine(Stack(costs[:, None]), problem)


def swept(eps: float, tol: float, limit: int) -> Point:
    """One problem as a batch of one, from nothing."""
    return engine(M[None], A[None], B[None], eps).sweep(ONE, np.zeros((1, 50)), tol, limit)


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
    found = swept(0.01, 1e-9, 10_000)
    assert found.error[0] <= 1e-9
    assert found.plan[0] == pytest.approx(plan, abs=1e-8)
    assert found.work < 0.5 * sweeps


def test_rows_are_exact_and_the_error_is_that_of_the_columns():
    for limit in (1, 7, 33, 10_000):
        found = swept(0.02, 1e-7, limit)
        assert found.work <= limit
        assert found.plan[0].sum(axis=1) == pytest.approx(A, rel=1e-12)
        off = np.abs(found.plan[0].sum(axis=0) - B).sum()
        assert off == pytest.approx(found.error[0], abs=1e-13)
        assert found.plan[0].sum(axis=0) == pytest.approx(B * found.columns[0], rel=1e-10)


def test_potentials_make_the_plan():
    found = swept(0.05, 1e-9, 10_000)
    gibbs = np.outer(A, B) * np.exp((found.f[0][:, None] + found.g[0] - M) / 0.05)
    assert gibbs == pytest.approx(found.plan[0], rel=1e-9, abs=1e-15)


def test_members_of_a_batch_do_not_disturb_each_other():
    costs = np.stack([M, M**2, 5.0 * M])
    eps = np.array([0.01, 0.02, 0.5])
    a, b = np.stack([A, A, np.full(60, 1 / 60)]), np.stack([B, B[::-1], B])
    together = engine(costs, a, b, eps).start(np.ones((3, 1)), 1e-10, 20_000)
    assert (together.error <= 1e-10).all()
    for at in range(3):
        rows = slice(at, at + 1)
        alone = engine(costs[rows], a[rows], b[rows], eps[rows]).start(ONE, 1e-10, 20_000)
        assert together.plan[at] == pytest.approx(alone.plan[0], abs=1e-9)


def test_small_eps_loses_no_mass():
    found = engine(M[None], A[None], B[None], 1e-4).start(ONE, 1e-6, 20_000)
    assert np.isfinite(found.plan).all()
    assert found.plan.sum() == pytest.approx(1.0, abs=1e-12)


def test_single_precision_stays_single_and_keeps_its_mass():
    costs = M[None].astype(np.float32)
    found = engine(costs, A[None], B[None], 1e-3).start(
        np.ones((1, 1), dtype=np.float32), 1e-4, 5_000
    )
    assert found.plan.dtype == np.float32
    assert found.plan.sum() == pytest.approx(1.0, abs=1e-5)


def test_one_sweep_to_the_edge_of_the_range_leaves_numbers():
    # A single row: columns are right at once, their masses next to the largest number there is.
    costs = np.float32(0.029) * np.linspace(0.0, 93.0, 23, dtype=np.float32)[None, None, :]
    b = np.full((1, 23), 1 / 23)
    found = engine(costs, np.ones((1, 1)), b, 0.029).sweep(
        np.ones((1, 1), dtype=np.float32), np.zeros((1, 23), dtype=np.float32), 1e-5
    )
    assert found.error[0] <= 1e-5
    assert np.isfinite(found.dual).all()
    assert found.g - found.g[0, 0] == pytest.approx(costs[0], abs=1e-5)


class TestSymmetric:
    points = RNG.normal(size=(40, 2))
    costs = ((points[:, None] - points) ** 2).sum(axis=-1)
    a = RNG.dirichlet(np.ones(40))

    @pytest.mark.parametrize("eps", [1e-4, 1e-2, 1.0, 100.0])
    def test_every_step_halves_the_error_at_least(self, eps):
        both = engine(self.costs[None], self.a[None], self.a[None], eps, symmetric=True)
        # Beyond the first few, where the error is not small yet.
        errors = [
            float(both.sweep(ONE, np.zeros((1, 40)), 0.0, steps).error[0]) for steps in (8, 16, 24)
        ]
        floor = 1e-12
        assert errors[1] <= max(errors[0] * 0.5**8 * 4.0, floor)
        assert errors[2] <= max(errors[1] * 0.5**8 * 4.0, floor)

    @pytest.mark.parametrize("eps", [0.5, 2.0])
    def test_it_is_the_plan_of_plain_sweeps(self, eps):
        both = engine(self.costs[None], self.a[None], self.a[None], eps, symmetric=True)
        found = both.sweep(ONE, np.zeros((1, 40)), 1e-12, 200)
        assert found.error[0] <= 1e-12
        assert found.f[0] == pytest.approx(found.g[0], abs=1e-9)
        plan = sinkhorn_plan(self.costs, self.a, self.a, eps)
        assert found.plan[0] == pytest.approx(plan, abs=1e-9)
        assert found.plan[0] == pytest.approx(found.plan[0].T, abs=1e-12)


class TestUnevenWeights:
    """A light column next to all rows must not make the others vanish from the kernel."""

    @pytest.mark.parametrize("precision", ["float32", "float64"])
    @pytest.mark.parametrize("light", [0.0, 1e-20, 1e-6])
    def test_a_near_column_of_no_weight(self, precision, light):
        costs = np.stack([np.zeros(4), np.full(4, 3.0), np.linspace(3.0, 4.0, 4)], axis=1)
        b = np.array([light, 0.5, 0.5 - light])
        both = engine(costs[None].astype(precision), np.full((1, 4), 0.25), b[None], 1e-2)
        found = both.sweep(ONE.astype(precision), np.zeros((1, 3), dtype=precision), 1e-3, 2_000)
        assert np.isfinite(found.plan).all()
        assert found.error[0] <= 1e-3
        assert found.plan[0].sum(axis=0) == pytest.approx(b, abs=2e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels_hold_no_subnormal_numbers(dtype):
    # Products with them take fifty times as long on many processors.
    least = np.finfo(dtype).smallest_normal
    scores = np.linspace(1.1 * np.log(least), 0.0, 400, dtype=dtype).reshape(1, 20, 20)
    plain = np.exp(scores)
    assert ((plain > 0.0) & (plain < least)).any()
    found = _exp_normal(Home.of(scores), scores.copy())
    np.testing.assert_array_equal(found, np.where(plain < least, 0.0, plain))


def test_kernels_formed_again_and_again_count_as_sweeps(monkeypatch):
    # Far light points need potentials a hundred million eps away: each look finds scalings out of
    # range, and a limit of sweeps alone would allow a kernel for every few of them.
    formed, form = [], dense._form
    monkeypatch.setattr(dense, "_form", lambda *args: formed.append(1) or form(*args))
    x, y = np.array([0.0, 1e4]), np.array([1.0, 2.0, 1.1e4, 1.2e4])
    a, b = np.array([[1.0 - 1e-9, 1e-9]]), np.array([[0.5, 0.5 - 2e-6, 1e-6, 1e-6]])
    problem = EntropicProblem.of(Home.of(a), a, b, Simplex(), 1.0, np.ones((1, 1)))
    costs = Stack(((x[:, None] - y) ** 2)[None, None])
    limit = 2_000
    state = kernel_sweeps(costs, problem, np.ones((1, 1)), np.zeros((1, 4)), [slice(2)])
    work = sweep_to(state, 1e-12, limit)
    assert len(formed) > 10
    assert 16 * (len(formed) - 1) <= work <= limit + 16


def test_a_kernel_formed_in_blocks_is_the_same(monkeypatch):
    whole = swept(0.05, 1e-9, 500)
    monkeypatch.setattr(kernel, "BLOCK_BYTES_ON_HOST", 8 * 50 * 7)
    parts = engine(M[None], A[None], B[None], 0.05).parts
    assert [part.stop for part in parts] == [*range(7, 60, 7), 60]
    assert np.array_equal(swept(0.05, 1e-9, 500).plan, whole.plan)
