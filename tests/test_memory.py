"""How much memory a large problem takes beyond its inputs, as the kernel counts it."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import frot
from benchmarks._common import peak_memory
from frot import relative
from frot.plans.lazy import LazyPlan
from frot.plans.plan import plan_kind
from tests.reference import LIGHT

pytestmark = pytest.mark.xdist_group("alone")

CAN_FORGET = os.access("/proc/self/clear_refs", os.W_OK) and Path("/proc/self/status").exists()
needs_proc = pytest.mark.skipif(not CAN_FORGET, reason="no /proc to read the peak of memory from")

GROUPS = [list(range(start, start + 8)) for start in range(0, 64, 8)]


def prepare(n: int) -> Any:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(n, 64)), rng.normal(size=(n, 64)) + 0.3 * rng.normal(size=64)
    # Libraries are loaded on the first solve; what they take is not the problem's.
    solve((X[:60], Y[:60], None), memory_budget=1000)
    return X, Y, rng.normal(size=(n, 3))


def solve(made: Any, **options: Any) -> frot.Result:
    X, Y, _ = made
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", frot.ConvergenceWarning)
        return frot.solve(
            X, Y, GROUPS, eta=relative(0.05), eps=relative(0.05), max_iter=1, **options
        )


def solve_and_multiply(made: Any) -> None:
    # A quarter of the default, for a quarter of the pairs that would need it.
    result = solve(made, memory_budget=5e8)
    assert isinstance(result.plan, LazyPlan)
    assert result.gap < 0.05
    moved = result.plan @ made[2]
    assert np.isfinite(moved).all()


def average_and_multiply(made: Any) -> None:
    X, Y, V = made
    solver = frot.FrankWolfe(oracle=frot.Sinkhorn(eps=0.5, tol=0.1), step="paper", max_iter=2)
    a = np.full(len(X), 1.0 / (len(X) - 1))
    a[0] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", frot.ConvergenceWarning)
        plan = frot.solve(
            X, Y, GROUPS, a=a, eta=relative(0.05), solver=solver,
            memory_budget=1e6,
        ).plan  # fmt: skip
    assert isinstance(plan, LazyPlan)
    assert plan_kind(plan) == "2 lazy plans"
    assert np.isfinite(plan @ V).all()


@needs_proc
def test_lazy_plans_take_a_third_of_a_dense_one_at_most(monkeypatch):
    for name, value in (LIGHT | {"OMP_NUM_THREADS": "2"}).items():
        monkeypatch.setenv(name, value)
    n = 6_000
    assert peak_memory(prepare, solve_and_multiply, n) < 8 * n * n / 3


@needs_proc
def test_averages_of_lazy_plans_are_never_formed(monkeypatch):
    for name, value in LIGHT.items():
        monkeypatch.setenv(name, value)
    n = 4_000
    assert peak_memory(prepare, average_and_multiply, n) < 8 * n * n
