"""Exact transport: POT's answer, its potentials, and its failures."""

from __future__ import annotations

import os
import subprocess
import sys

import hypothesis.strategies as st
import numpy as np
import ot
import pytest
from hypothesis import given

from frot import InputError, NetworkSimplex, SolverError
from frot.plans.plan import is_sparse
from frot.solvers.oracles import network_simplex as _pot
from frot.solvers.oracles.network_simplex import network_simplex
from tests.reference import LIGHT
from tests.strategies import Given, cost_problems


@given(cost_problems(most_groups=1, most_points=8, zeros=False))
def test_it_is_pots_optimum_with_optimal_potentials(given: Given):
    M = given.stack[0]
    found = NetworkSimplex()(M, given.a, given.b)
    value = float((np.asarray(found.plan) * M).sum())
    reach = max(float(np.abs(M).max()), 1e-300)
    assert value == pytest.approx(ot.emd2(given.a, given.b, M), abs=1e-9 * reach)
    assert (M - found.f[:, None] - found.g).min() >= -1e-12 * reach
    assert found.f @ given.a + found.g @ given.b == pytest.approx(value, abs=1e-9 * reach)
    assert found.converged
    assert is_sparse(found.plan)
    assert len(found.plan.arcs()[2]) <= len(given.a) + len(given.b) - 1


@given(cost_problems(most_groups=1, zeros=False))
def test_marginals(given: Given):
    plan = NetworkSimplex()(given.stack[0], given.a, given.b).plan
    assert plan.sum(axis=1) == pytest.approx(given.a, abs=1e-15)
    assert plan.sum(axis=0) == pytest.approx(given.b, abs=1e-15)


@given(cost_problems(most_groups=1, zeros=False), st.sampled_from([-1.0, -1e6, 3.0]))
def test_a_constant_changes_nothing(given: Given, constant):
    M = given.stack[0]
    shift = constant * max(float(np.abs(M).max()), 1.0)
    plain = NetworkSimplex()(M, given.a, given.b).plan.dense()
    moved = NetworkSimplex()(M + shift, given.a, given.b).plan.dense()
    reach = float(np.abs(M).max()) + 1e-9 * abs(shift)
    assert (moved * M).sum() == pytest.approx((plain * M).sum(), abs=1e-9 * max(reach, 1e-300))


@pytest.mark.parametrize("scale", [1e-200, 1e-20, 1e-15, 1e15, 1e200])
def test_the_unit_of_cost_does_not_matter(scale):
    rng = np.random.default_rng(0)
    M, a = rng.random((6, 6)), np.full(6, 1 / 6)
    best = ot.emd2(a, a, M)
    plan = NetworkSimplex()(M * scale, a, a).plan
    assert (plan.dense() * M).sum() == pytest.approx(best, rel=1e-10)


def test_a_failure_is_an_error_that_says_how_to_mend_it():
    rng = np.random.default_rng(0)
    M, a = rng.random((30, 30)), np.full(30, 1 / 30)
    with pytest.raises(SolverError, match=r"limit was 1 pivots, see NetworkSimplex\(max_iter"):
        NetworkSimplex(max_iter=1)(M, a, a)


def test_infinite_costs_are_refused():
    half = np.array([0.5, 0.5])
    with pytest.raises(InputError, match="larger than all others"):
        NetworkSimplex()(np.array([[1.0, np.inf], [np.inf, 2.0]]), half, half)


HEAVY = ("torch", "jax", "tensorflow", "cupy", "ot.backend")


def run(script: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        check=True, capture_output=True, text=True, env=os.environ | environment,
    ).stdout  # fmt: skip


def test_a_solve_loads_neither_pot_nor_what_pot_loads():
    script = (
        "import frot, sys; frot.solve([[0.0, 1.0], [1.0, 1.0]], [[2.0, 3.0], [1.0, 0.0]]);"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert run(script).strip() == "[]"


@pytest.mark.parametrize("first", ["frot", "ot"])
def test_the_users_pot_works_whoever_comes_first(first):
    solve = "frot.solve([[0.0], [1.0]], [[2.0], [1.0]]);"
    use = (
        "ot.emd([0.5, 0.5], [0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]]);"
        "print(float(ot.emd2_1d([0.0, 1.0], [1.0, 2.0])), ot.lp.emd_wrap.emd_c is not None);"
    )
    order = ("import frot;" + solve + "import ot;" + use) if first == "frot" else (
        "import ot;" + use + "import frot;" + solve)  # fmt: skip
    assert run(order, **LIGHT).strip() == "1.0 True"


def test_weights_are_not_touched():
    a, b = np.array([0.25, 0.75]), np.array([0.5, 0.5 + 1e-12])
    before = b.copy()
    network_simplex(np.eye(2), a, b, 1000)
    assert (b == before).all()


def test_it_is_pots_answer():
    rng = np.random.default_rng(0)
    M, a, b = rng.random((7, 5)), np.full(7, 1 / 7), np.full(5, 0.2)
    found = network_simplex(M, a, b, 100_000)
    assert found.solved
    assert (found.plan * M).sum() == pytest.approx(ot.emd2(a, b, M), rel=1e-12)
    assert (M - found.f[:, None] - found.g).min() >= -1e-12


def test_too_few_pivots_are_told():
    M = np.random.default_rng(0).random((30, 30))
    assert not network_simplex(M, np.full(30, 1 / 30), np.full(30, 1 / 30), 1).solved


def test_where_the_file_is_elsewhere_pot_is_imported_whole(monkeypatch):
    monkeypatch.setattr(_pot, "EXTENSION_SUFFIXES", [".nowhere"])
    assert _pot._load_alone() is None
