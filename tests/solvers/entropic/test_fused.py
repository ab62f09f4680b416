"""Fused passes are those over blocks; what they prove holds the optimum, whatever the points."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import frot
from frot import Simplex
from frot._base.arrays import Home, has_triton
from frot.costs.points import Points
from frot.solvers.entropic import _fused
from frot.solvers.entropic._fused import FusedEngine
from frot.solvers.entropic.certificate import certify
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.stream import StreamEngine
from tests.solvers.entropic import fused_plain

ROOT = Path(__file__).resolve().parents[3]
GROUPS = np.kron(np.eye(3), np.ones(2))


def engines(kind: str, seed: int = 0, eps: float = 0.05) -> tuple[FusedEngine, StreamEngine]:
    """The same problem for both ways, eps a share of the mean cost."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(1, 90, 6)), rng.normal(size=(1, 70, 6))
    Y[..., :2] += 0.7
    if kind == "far":
        X[:, :5] += 300.0
        Y[:, :4] += 300.0
    if kind == "clusters":
        centres = 20.0 * rng.normal(size=(5, 6))
        X, Y = X + centres[np.arange(90) % 5], Y + centres[np.arange(70) % 5]
    if kind == "cancelling":
        X, Y = 1e-3 * X + 5.0, 1e-3 * Y + 5.0
    a, b = rng.dirichlet(np.ones(90))[None], rng.dirichlet(np.ones(70))[None]
    if kind == "uneven":
        a, b = a**4 / (a**4).sum(), b**4 / (b**4).sum()
    points = Points(torch.asarray(X), torch.asarray(Y), torch.asarray(GROUPS))
    sizes = points.product(torch.asarray(a), torch.asarray(b)).numpy()
    home, mean = Home.of(points.X), float(sizes.mean())
    problem = EntropicProblem.of(home, a, b, Simplex(0.05 * mean), eps * mean, sizes)
    return FusedEngine(points, problem, None, fused_plain), StreamEngine(points, problem)


ALPHA = torch.asarray([[0.5, 0.3, 0.2]], dtype=torch.float64)
KINDS = ["plain", "uneven", "far", "clusters", "cancelling"]


@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_sweep_is_that_of_blocks(kind: str):
    fused, blocks = engines(kind)
    g = torch.zeros((1, 70), dtype=torch.float64)
    mine, its = fused.sweep(ALPHA, g, 1e-5), blocks.sweep(ALPHA, g, 1e-5)
    for name in ("f", "phi", "dual", "primal"):
        found, expected = getattr(mine, name), getattr(its, name)
        assert found.numpy() == pytest.approx(expected.numpy(), rel=1e-3, abs=1e-3), name


def test_costs_from_some_rows_are_right_on_average(monkeypatch):
    fused, _ = engines("plain")
    whole = fused.sweep(ALPHA, torch.zeros((1, 70), dtype=torch.float64), 1e-4)
    monkeypatch.setattr(_fused, "SAMPLE", 44)
    rng, found = np.random.default_rng(0), []
    for _ in range(200):
        # The rows that an engine would keep to.
        vars(fused)["_some"] = torch.asarray(rng.choice(90, 44, replace=False))
        found.append(fused.group_costs(ALPHA, whole.f, whole.g, whole.columns)[0].numpy())
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(200)
    assert (error > 1e-4).all()
    assert (np.abs(mean - whole.phi[0].numpy()) <= 0.02 + 4.0 * error).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("eps", [0.2, 0.02])
def test_a_proof_holds_what_double_precision_proves(kind: str, eps: float):
    # Both intervals hold the optimum, so that each bound is on its side of the other's.
    fused, blocks = engines(kind, eps=eps)
    at = blocks.sweep(ALPHA, torch.zeros((1, 70), dtype=torch.float64), 1e-6, 400)
    mine, its = certify(fused, ALPHA, at.g), certify(blocks, ALPHA, at.g)
    assert mine.lower <= its.upper
    assert its.lower <= mine.upper
    # It is what double precision proves but for the margins, on the safe side of it.
    size = float(its.upper[0])
    assert float(mine.lower[0]) <= float(its.lower[0]) + 1e-12 * size
    assert float(mine.upper[0]) >= float(its.upper[0]) - 1e-5 * size
    if kind == "plain":
        assert (
            float(mine.upper[0] - mine.lower[0]) <= float(its.upper[0] - its.lower[0]) + 1e-3 * size
        )


def test_margins_cover_what_single_precision_does_to_scores():
    # Scores of the passes against those of double precision, entry by entry, at worst.
    for kind in KINDS:
        fused, _ = engines(kind)
        passes = fused.passes(ALPHA)
        points, off = passes.points, passes.rounding()
        product = (points.x @ points.y.T).double() / points.unit
        mixed = points.x_norms[:, None] + points.y_norms[None, :]
        found = mixed / points.unit - product
        exact = fused.costs.mix(ALPHA)[0]
        allowed = off.rows[0][:, None] + off.cols[0][None, :]
        assert bool(((found - exact).abs() <= allowed).all()), kind


def test_the_door_takes_them(monkeypatch):
    # As on a CUDA device, with the kernels' twin in their place.
    rng = np.random.default_rng(0)
    X, Y = (torch.asarray(rng.normal(size=(n, 6)), dtype=torch.float32) for n in (450, 430))
    Y[:, :2] += 0.7
    options: dict[str, Any] = {"eta": frot.relative(0.05), "eps": frot.relative(0.05)}
    expected = frot.solve(X, Y, [2, 2, 2], **options, tol=1e-6)
    made = []

    def of(cls, geometry, problem, tol):
        made.append(cls(geometry, problem, None, fused_plain, proves=tol >= 2.5e-4))
        return made[-1]

    monkeypatch.setattr(FusedEngine, "of", classmethod(of))
    for tol in (1e-3, 1e-4):
        found = frot.solve(X, Y, [2, 2, 2], **options, tol=tol, memory_budget=1e4)
        assert found.status == frot.Status.CONVERGED
        assert found.lower <= expected.upper
        assert expected.lower <= found.upper
        assert found.gap <= tol
        assert np.asarray(found.plan.sum(axis=1)) == pytest.approx(np.full(450, 1 / 450), rel=1e-4)
    assert [engine.proves for engine in made] == [True, False]


@pytest.mark.skipif(not has_triton(), reason="Triton is not installed")
def test_kernels_are_their_twins():
    # Triton interprets its kernels on the host where that is asked for before it is imported.
    code = """
import torch
from frot.solvers.entropic import _fused_triton as fused
from tests.solvers.entropic import fused_plain as plain
draw = torch.Generator().manual_seed(0)
def normal(*shape): return torch.randn(*shape, generator=draw)
for n, m, d in ((140, 90, 10), (70, 150, 70), (130, 70, 200)):
    width = -(-d // plain.WIDTH) * plain.WIDTH
    x, y = torch.zeros(n, width), torch.zeros(m, width)
    x[:, :d], y[:, :d] = normal(n, d), normal(m, d)
    bias = normal(m)
    weights, thin = torch.rand(n, generator=draw), torch.rand(m, generator=draw)
    rows = -plain.log_sums(x, y, bias).float()
    calls = [
        ("log_sums", (x, y, bias)),
        ("column_sums", (x, y, rows, bias, weights)),
        ("products", (x, y, rows, bias, normal(20, m))),
        # Turned, as it lies in memory.
        ("products", (x, y, rows, bias, normal(m, 20).T)),
        ("apply", (x, y, rows, bias, thin, normal(d, m), normal(n, d).double(), weights.double())),
    ]
    for name, arguments in calls:
        found = [getattr(kernels, name)(*arguments) for kernels in (plain, fused)]
        found = [part if isinstance(part, tuple) else (part,) for part in found]
        for one, two in zip(*found, strict=True):
            assert torch.allclose(one, two.to(one.dtype), rtol=1e-4, atol=1e-4), name
    # Tiles of two clouds with each other, and of the first with itself, on the points of before.
    z, count = torch.cat([x, y]), n + m
    now, before, logs = (normal(count + n).double() for _ in range(3))
    weights, values = torch.rand(count + n, generator=draw).double(), normal(d, count)
    tiles = torch.tensor(
        [[0, 64, n, count, 0, 0], [64, n, n, count, 0, 0], [n, n + 60, 0, n, 0, 0],
         [count, count + 66, count, count + n, count, count]], dtype=torch.int32,
    )
    found = []
    for kernels in (plain, fused):
        ahead = torch.zeros(count + n, dtype=torch.float64)
        errors = kernels.updates(z, now, before, logs, weights, tiles, ahead, True)
        sums, moved = torch.zeros(count + n), torch.zeros(count + n, d)
        kernels.transport(z, values, ahead, logs, tiles, sums, moved)
        found.append((ahead, errors, sums, moved))
    for one, two in zip(*found, strict=True):
        assert float(one.abs().max()) > 0.0
        assert torch.allclose(one, two, rtol=1e-3, atol=1e-3)
"""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": paths}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
