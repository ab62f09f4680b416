"""Kernels in blocks: what a kept kernel gives, sweep by sweep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import frot
from frot import Simplex, Status
from frot._base.arrays import Home
from frot.costs import Stack
from frot.costs.points import Points
from frot.costs.protocol import Batch, Costs
from frot.solvers.entropic import kernel as row_blocks_module
from frot.solvers.entropic.certificate import certify
from frot.solvers.entropic.dense import DenseEngine
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.stream import StreamEngine

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(1, 30, 4)), RNG.normal(size=(1, 20, 4)) + 0.3
A, B = RNG.dirichlet(np.ones(30))[None], RNG.dirichlet(np.ones(20))[None]
HOLES = np.where(np.arange(20) < 3, 0.0, B)
HOLES = HOLES / HOLES.sum()
ALPHA = np.array([[0.1, 0.2, 0.3, 0.4]])
POINTS = Points(X, Y)
GEOMETRIES: dict[str, Costs] = {
    "points": POINTS,
    "costs": Batch((Stack(POINTS.stack()[0]),)),
}


def problem(b: np.ndarray = B, eps: float = 0.2) -> EntropicProblem:
    return EntropicProblem.of(Home.of(X), A, b, Simplex(0.1), eps, np.ones((1, 4)))


@pytest.fixture(autouse=True, params=[1, 10**9], ids=["rows", "whole"])
def blocks(request, monkeypatch) -> None:
    """Blocks of one row each, and one block of all."""
    monkeypatch.setattr(row_blocks_module, "BLOCK_BYTES_ON_HOST", request.param)


@pytest.mark.parametrize("b", [B, HOLES], ids=["full", "holes"])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_a_pass_is_a_sweep(name: str, b: np.ndarray):
    g = RNG.normal(size=(1, 20))
    stream = StreamEngine(GEOMETRIES[name], problem(b)).sweep(ALPHA, g, np.inf)
    dense = DenseEngine(GEOMETRIES[name], problem(b)).sweep(ALPHA, g, np.inf)
    for part in ("f", "g", "phi", "columns", "error", "dual", "primal"):
        found, expected = getattr(stream, part), getattr(dense, part)
        if part == "columns":
            # Of columns without weight nothing is asked.
            found, expected = found[b > 0.0], expected[b > 0.0]
        assert found == pytest.approx(expected, rel=1e-11, abs=1e-12), part


@pytest.mark.parametrize("b", [B, HOLES], ids=["full", "holes"])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_both_prove_the_same(name: str, b: np.ndarray):
    g = 0.1 * RNG.normal(size=(1, 20))
    proofs = [
        certify(engine, ALPHA, engine.sweep(ALPHA, g, 1e-2).g)
        for engine in (
            StreamEngine(GEOMETRIES[name], problem(b)),
            DenseEngine(GEOMETRIES[name], problem(b)),
        )
    ]
    for proof in proofs:
        assert proof.lower[0] <= proof.upper[0]
    # Another way of sweeping, but the bounds of the same problem.
    assert proofs[0].lower[0] <= proofs[1].upper[0]
    assert proofs[1].lower[0] <= proofs[0].upper[0]
    assert proofs[0].lower[0] == pytest.approx(proofs[1].lower[0], rel=1e-2)


def test_sweeps_get_as_close_as_they_are_asked_to():
    engine = StreamEngine(POINTS, problem(eps=0.3))
    g = np.zeros((1, 20))
    errors = [float(engine.sweep(ALPHA, g, 0.0, limit).error[0]) for limit in (1, 5, 15)]
    assert errors[0] > errors[1] > errors[2]
    at = engine.sweep(ALPHA, g, 1e-6)
    assert at.error[0] <= 1e-6
    assert at.work <= 200


def test_any_metric_streams():
    x, y = X[0], Y[0]
    options = {"eta": 0.1, "eps": 0.3, "metric": "cityblock", "groups": [[0, 1], [2, 3]]}
    dense = frot.solve(x, y, **options)
    stream = frot.solve(x, y, memory_budget=10, **options)
    assert stream.status is Status.CONVERGED
    assert stream.value == pytest.approx(dense.value, rel=2e-4)
    assert stream.lower <= dense.upper
    assert dense.lower <= stream.upper


def test_far_points_of_one_group_are_swept_as_closely_as_they_pay():
    # Few points carry most of the cost: what is left of their mass in wrong columns counts more.
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(400, 1)), rng.normal(size=(240, 1)) + 0.3
    X[:3] += 100.0
    Y[:2] += 100.0
    found = frot.solve(X, Y, [1], eps=frot.relative(0.2), memory_budget=1e5)
    assert found.status == frot.Status.CONVERGED
    assert found.gap <= 1e-4
    assert found.iterations < 50


@pytest.mark.parametrize("seed", [4, 7, 13, 17])
@pytest.mark.parametrize("eps", [1.0, 0.05])
def test_outliers_that_nothing_joins(seed: int, eps: float):
    """A few far points, of other mass on either side: potentials differ by hundreds of eps."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(110, 8)), rng.normal(size=(100, 8))
    x[:3] += 100.0
    y[:1] += 100.0
    options: Any = {"eta": frot.relative(0.05), "eps": frot.relative(eps)}
    result = frot.solve(x, y, [2] * 4, **options, memory_budget=3e4)
    assert result.status is Status.CONVERGED
    kept = frot.solve(x, y, [2] * 4, **options)
    assert max(kept.lower, result.lower) <= min(kept.upper, result.upper)
