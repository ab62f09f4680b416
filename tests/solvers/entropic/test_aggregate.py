"""Clusters moved at once: few sweeps where there were hundreds, and no dual value that falls."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from frot import Simplex
from frot._base.arrays import Home
from frot.costs.points import Points
from frot.solvers.entropic._fused import FusedEngine
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.stream import CLUSTERS, StreamEngine, cluster_points, cluster_scalings
from tests.solvers.entropic import fused_plain

ALPHA = np.array([[0.5, 0.5]])


def engine_of(seed: int = 0, kind=StreamEngine):
    """Twenty clusters that weigh differently on either side; between them there is hardly mass."""
    rng = np.random.default_rng(seed)
    centres = 8.0 * rng.normal(size=(20, 8))
    X, Y = (rng.normal(size=(1, n, 8)) + centres[rng.integers(20, size=n)] for n in (300, 280))
    a, b = np.full((1, 300), 1 / 300), np.full((1, 280), 1 / 280)
    points = Points(X, Y, np.kron(np.eye(2), np.ones(4)))
    sizes = points.product(a, b)
    if kind is FusedEngine:
        X, Y, groups = (torch.asarray(part) for part in (X, Y, points.membership))
        points = Points(X, Y, groups)
    problem = EntropicProblem.of(Home.of(points.X), a, b, Simplex(), 0.02 * sizes.mean(), sizes)
    if kind is FusedEngine:
        return FusedEngine(points, problem, None, fused_plain), torch.asarray(ALPHA)
    return StreamEngine(points, problem), ALPHA


def test_few_sweeps_do(monkeypatch):
    g, moved, plain = np.zeros((1, 280)), 0, 0
    for seed in (1, 2, 3):
        engine, alpha = engine_of(seed)
        found = engine.sweep(alpha, g, 1e-4)
        with monkeypatch.context() as without:
            without.setattr(StreamEngine, "between_clusters", lambda self, alpha, g: None)
            expected = engine.sweep(alpha, g, 1e-4, 5_000)
        assert found.error[0] <= 1e-4
        assert expected.error[0] <= 1e-4
        assert found.dual == pytest.approx(expected.dual, rel=1e-4)
        moved, plain = moved + found.work, plain + expected.work
    assert 4 * moved <= plain


def test_the_dual_value_does_not_fall():
    engine, alpha = engine_of(1)
    g = np.zeros((1, 280))
    for _ in range(4):
        before = engine.sweep(alpha, g, 0.0, 3)
        moved = engine.between_clusters(alpha, before.g)
        after = engine.sweep(alpha, before.g + moved, np.inf)
        at = engine.sweep(alpha, before.g, np.inf)
        assert after.dual[0] >= at.dual[0] - 1e-12 * abs(at.dual[0])
        g = after.g


def test_fused_masses_are_those_of_blocks():
    blocks, alpha = engine_of()
    fused, tensor = engine_of(kind=FusedEngine)
    clusters = cluster_points(blocks.costs, blocks.problem, blocks.problem.prior)
    assert clusters is not None
    g = blocks.sweep(alpha, np.zeros((1, 280)), 0.0, 2).g
    masses = blocks.cluster_masses(alpha, g, clusters)
    same = type(clusters)(*(torch.asarray(side) for side in clusters))
    assert masses.shape == (CLUSTERS, CLUSTERS)
    assert masses.sum() == pytest.approx(1.0)
    found = fused.cluster_masses(tensor, torch.asarray(g), same)
    assert found == pytest.approx(masses, abs=1e-6)


def test_clusters_without_mass_stay_where_they_are():
    masses = np.array([[0.5, 0.0, 0.0], [0.2, 0.3, 0.0], [0.0, 0.0, 0.0]])
    found = cluster_scalings(masses, np.array([0.5, 0.5, 0.0]), np.array([0.6, 0.4, 0.0]))
    assert found[2] == 0.0
    s = np.exp(found[:2])
    r = 0.5 / (masses[:2, :2] @ s)
    assert (r[:, None] * masses[:2, :2] * s).sum(axis=0) == pytest.approx([0.6, 0.4])


def test_few_points_have_no_clusters():
    points = Points(np.zeros((1, 5, 2)), np.ones((1, 5, 2)))
    weights = np.full((1, 5), 0.2)
    problem = EntropicProblem.of(
        Home.of(weights), weights, weights, Simplex(), 0.1, np.ones((1, 2))
    )
    assert cluster_points(points, problem, np.array([[0.5, 0.5]])) is None
