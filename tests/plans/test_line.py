"""Transport on a line: sorting against a solver, and its bounds."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import ot
import pytest
from hypothesis import given

import frot
from frot import Status
from frot.plans.line import line_arcs, line_cost, line_potential
from tests.strategies import marginals, seeds


@given(seeds, st.sampled_from([1.0, 1.5, 2.0, 3.0]), st.data())
def test_it_is_the_optimum_with_optimal_potentials(seed, p, data):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 9, 2)
    x, y = rng.integers(0, 5, n).astype(float), rng.normal(size=m)
    a, b = data.draw(marginals(int(n), zeros=False)), data.draw(marginals(int(m), zeros=False))
    M = np.abs(x[:, None] - y) ** p
    arcs = line_arcs(x, y, a, b)
    best = ot.emd2(a, b, M)
    assert line_cost(x, y, arcs, p) == pytest.approx(best, rel=1e-9, abs=1e-12)
    g = line_potential(x, y, arcs, p)
    f = (M - g).min(axis=1)
    assert a @ f + b @ g == pytest.approx(best, rel=1e-9, abs=1e-9 * M.max())


@pytest.mark.parametrize("p", [1.0, 2.0, 2.5, 3.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_wasserstein_of_one_feature_sorts(p, weighted):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(700, 1)), rng.normal(size=(500, 1)) + 1.0
    weights = {"a": rng.dirichlet(np.ones(700)), "b": rng.dirichlet(np.ones(500))}
    found = frot.wasserstein(x, y, p=p, **(weights if weighted else {}))
    given = weights if weighted else {"a": None, "b": None}
    assert found.status is Status.CONVERGED
    assert found.gap < 1e-11
    expected = ot.emd2_1d(x[:, 0], y[:, 0], given["a"], given["b"], metric="minkowski", p=p)
    assert found.value == pytest.approx(expected, rel=1e-9)
    f, g = found.potentials
    costs = np.abs(x - y.T) ** p
    assert (costs - f[:, None] - g).min() >= -1e-9 * costs.max()
    assert found.mean_cost == pytest.approx(
        found.plan.sum(axis=1) @ costs @ found.plan.sum(axis=0), rel=1e-9
    )


@pytest.mark.parametrize("eta", [0.0, 0.7])
def test_solve_takes_the_same_way(eta):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(30, 3)), rng.normal(size=(20, 3))
    line = frot.solve(x, y, groups=[[1]], eta=eta)
    whole = frot.solve(x, y, groups=[[1]], eta=eta, solver=frot.FrankWolfe())
    assert line.lower <= whole.upper
    assert whole.lower <= line.upper
    assert line.iterations == 1


def test_a_power_below_one_is_not_convex():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(9, 1)), rng.normal(size=(9, 1))
    found = frot.solve(x, y, metric="euclidean", p=0.5)
    M = np.sqrt(np.abs(x - y.T))
    assert found.value == pytest.approx(ot.emd2(np.full(9, 1 / 9), np.full(9, 1 / 9), M), rel=1e-9)


def test_a_light_point_far_away():
    found = frot.solve([[1e4], [0.0]], [[1.0], [2.0]], a=[1e-9, 1 - 1e-9])
    assert found.lower <= 2.59996 <= found.upper
    assert found.gap < 1e-12


@pytest.mark.parametrize("far", [-1e5, 1e5, 1e7])
@pytest.mark.parametrize("side", ["x", "y"])
def test_potentials_of_near_points_know_nothing_of_far_ones(far, side):
    rng = np.random.default_rng(3)
    near, light = rng.normal(size=(6, 1)), np.array([*rng.dirichlet(np.ones(6)), 1e-14, 1e-14])
    points = {"x": near, "y": rng.normal(size=(6, 1))}
    points[side] = np.concatenate([points[side], [[far], [1.1 * far]]])
    weights = {"x": np.full(6, 1 / 6), "y": np.full(6, 1 / 6)}
    weights[side] = light
    found = frot.solve(points["x"], points["y"], "all", a=weights["x"], b=weights["y"])
    f, g = found.potentials
    costs = (points["x"] - points["y"].T) ** 2
    over = f[:6, None] + g[:6] - costs[:6, :6]
    assert over.max() <= 1e-13
    proven = weights["x"] @ f + weights["y"] @ g
    assert proven == pytest.approx(found.lower, rel=1e-12)
