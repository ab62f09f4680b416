"""POT's compiled part: loaded alone, and harmless to the user's POT."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import ot
import pytest

from frot.solvers.oracles import pot as _pot
from frot.solvers.oracles.pot import network_simplex
from tests.reference import LIGHT

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
