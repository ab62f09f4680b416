"""Each relative on its own: what it chose, its status, its limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import frot
from frot import Status
from frot.plans.line import line_arcs, line_cost, line_potential
from frot.relatives.displacement import Displacements
from frot.relatives.pair import check_pair
from frot.relatives.srw import project_fantope
from tests.reference import quiet
from tests.strategies import seeds

rng = np.random.default_rng(0)


def hypercube(n: int, d: int, informative: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """The fragmented hypercube of the subspace-robust paper."""
    draw = np.random.default_rng(1)
    X, Y = draw.uniform(-1.0, 1.0, size=(2, n, d))
    Y[:, :informative] += 2.0 * np.sign(Y[:, :informative])
    return X, Y


def test_srw_finds_the_directions_that_move():
    X, Y = hypercube(60, 10)
    res = frot.srw(X, Y, k=2, tol=1e-3)
    assert res.status is Status.CONVERGED
    assert res.gap <= 1e-3
    chosen = res.chosen
    assert chosen is not None
    assert chosen.kind == "subspace"
    assert chosen.weights is not None
    shares = chosen.array**2 @ chosen.weights
    assert set(np.argsort(-shares)[:2]) == {0, 1}
    assert "0 " in chosen.describe()
    assert res.alpha.sum() == pytest.approx(1.0)
    # alpha and phi say what Omega makes of the plan: between the bounds, up to the gap.
    assert res.alpha @ res.phi == pytest.approx(res.value, rel=2e-3)
    assert "chosen" in res.summary()


def test_srw_of_more_features_than_points_is_the_same_in_fewer_coordinates():
    X, Y = hypercube(8, 60)
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(200, 60)))[0].T
    here = quiet(frot.srw, X, Y, k=3, tol=1e-4, max_iter=40)
    there = quiet(frot.srw, X @ turn, Y @ turn, k=3, tol=1e-4, max_iter=40)
    assert here.lower <= there.upper * (1.0 + 1e-9)
    assert there.lower <= here.upper * (1.0 + 1e-9)
    assert there.chosen is not None
    assert there.chosen.array.shape[0] == 200


@pytest.mark.parametrize("method", [frot.srw, frot.max_sliced, frot.max_min, frot.sliced])
def test_points_that_coincide_cost_nothing(method):
    X = hypercube(5, 3)[0]
    more = {"k": 2} if method is frot.srw else {}
    res = quiet(method, X, X, **more)
    assert res.lower == 0.0
    assert res.value == pytest.approx(0.0, abs=1e-12)


def test_srw_with_weights_that_vanish():
    X, Y = hypercube(6, 3)
    a = np.array([0.5, 0.5, 0.0, 0.0, 0.0, 0.0])
    res = quiet(frot.srw, X, Y, k=1, a=a, tol=1e-5, max_iter=60)
    alone = quiet(frot.srw, X[:2], Y, k=1, tol=1e-5, max_iter=60)
    assert res.lower <= alone.upper * (1.0 + 1e-9)
    assert alone.lower <= res.upper * (1.0 + 1e-9)


def test_limits_end_a_run_with_a_warning_and_valid_bounds():
    X, Y = np.random.default_rng(0).normal(size=(2, 30, 8))
    with pytest.warns(frot.ConvergenceWarning, match="srw"):
        res = frot.srw(X, Y, k=2, tol=1e-12, max_iter=3)
    assert res.status is Status.MAX_ITER
    assert res.iterations == 3
    seen = []
    res = quiet(frot.srw, X, Y, k=2, tol=1e-12, callback=lambda at: seen.append(at) or True)
    assert res.status is Status.STOPPED
    assert len(seen) == 1
    assert quiet(frot.srw, X, Y, k=2, tol=0.0, time_limit=1e-9).status is Status.TIME_LIMIT
    with pytest.warns(frot.ConvergenceWarning, match=r"max_min\(.*Stopped at time_limit"):
        assert frot.max_min(X, Y, [4, 4], time_limit=1e-9).gap > 0.0


def test_copies_of_a_group_that_is_solved_are_not():
    rng = np.random.default_rng(0)
    # Of clusters far apart the plan is the best one of either copy.
    X = 1e3 * rng.normal(size=(3, 3))[rng.integers(3, size=10)] + 0.1 * rng.normal(size=(10, 3))
    Y = X + 0.01 * rng.normal(size=(10, 3)) + 100.0
    res = frot.max_min(X, Y, [[0, 1, 2], [0, 1, 2], [1], [0, 1]])
    assert res.iterations == 1
    assert res.status is Status.CONVERGED
    assert res.gap <= 1e-9


def test_max_sliced_is_not_convex_and_says_so_without_a_warning():
    X, Y = hypercube(20, 4)
    res = frot.max_sliced(X, Y)
    assert res.status is Status.LOWER_BOUND
    assert "lower bound" in res.status.sentence
    assert res.lower <= res.value <= res.upper


@pytest.mark.parametrize("d", [2, 3])
def test_max_sliced_finds_the_best_direction_of_a_fine_grid(d):
    draw = np.random.default_rng(d)
    X, Y = draw.normal(size=(15, d)), draw.normal(size=(12, d)) * 2.0 + 0.5
    directions = draw.normal(size=(3000, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    a, b = np.full(15, 1 / 15), np.full(12, 1 / 12)
    best = max(
        line_cost(x, y, line_arcs(x, y, a, b))
        for x, y in zip(directions @ X.T, directions @ Y.T, strict=True)
    )
    assert frot.max_sliced(X, Y).value >= best * (1.0 - 1e-9)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_the_projection_on_the_fantope_is_in_it_and_nothing_in_it_is_nearer(seed):
    draw = np.random.default_rng(seed)
    size = int(draw.integers(1, 7))
    k = int(draw.integers(1, size + 1))
    matrix = draw.normal(size=(size, size)) * 10.0 ** draw.uniform(-3, 3)
    matrix = matrix + matrix.T
    weights, vectors = project_fantope(matrix, k)
    assert (weights >= 0.0).all()
    assert (weights <= 1.0).all()
    assert weights.sum() == pytest.approx(k, rel=1e-9)
    nearest = (vectors * weights) @ vectors.T
    # The angle to anything else in the set is right or obtuse.
    for _ in range(5):
        turn = np.linalg.qr(draw.normal(size=(size, size)))[0]
        other = turn[:, :k] @ turn[:, :k].T
        inner = float(((matrix - nearest) * (other - nearest)).sum())
        assert inner <= 1e-9 * max(1.0, float(np.abs(matrix).max()))


def test_srw_without_structure_ends_at_its_limit_with_an_interval_that_holds():
    X, Y = np.random.default_rng(5).normal(size=(2, 60, 12))
    rough = quiet(frot.srw, X, Y, k=3, max_iter=40)
    fine = quiet(frot.srw, X, Y, k=3, tol=1e-9, max_iter=300)
    assert rough.status is Status.MAX_ITER
    assert fine.gap < rough.gap < 0.1
    assert rough.lower <= fine.upper
    assert fine.lower <= rough.upper
    # Omega and the plan prove the two bounds, from what was handed out alone.
    chosen = fine.chosen
    assert chosen is not None
    assert chosen.weights is not None
    factor = chosen.array * np.sqrt(chosen.weights)
    assert frot.wasserstein(X @ factor, Y @ factor).value >= fine.lower * (1.0 - 1e-9)
    gaps = (X[:, None] - Y).reshape(-1, 12)
    V = (gaps.T * np.asarray(fine.plan).ravel()) @ gaps
    assert np.linalg.eigvalsh(V)[-3:].sum() <= fine.upper


def test_srw_that_is_out_of_time_at_once_does_not_claim_what_plain_transport_costs():
    X, Y = np.random.default_rng(0).normal(size=(2, 30, 8)) + np.array([[[0.0]], [[3.0]]])
    res = quiet(frot.srw, X, Y, k=1, time_limit=1e-9)
    assert res.lower <= quiet(frot.srw, X, Y, k=1).upper


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_lines_are_transported_by_sorting(seed):
    draw = np.random.default_rng(seed)
    n, m = draw.integers(1, 8, size=2)
    x, y = draw.integers(0, 4, n).astype(float), draw.normal(size=m)
    a, b = draw.dirichlet(np.ones(n)), draw.dirichlet(np.ones(m))
    arcs = line_arcs(x, y, a, b)
    truth = frot.wasserstein(x[:, None], y[:, None], a=a, b=b)
    assert line_cost(x, y, arcs) == pytest.approx(truth.value, rel=1e-9, abs=1e-12)
    g = line_potential(x, y, arcs)
    f = ((x[:, None] - y) ** 2 - g).min(axis=1)
    assert a @ f + b @ g == pytest.approx(truth.value, rel=1e-9, abs=1e-10)


def test_displacements_and_their_largest_eigenvalues():
    X, Y = hypercube(7, 4)
    pair = check_pair(X, Y, None, None)
    plan = frot.wasserstein(X, Y).plan
    moments = Displacements.of(pair)
    gaps = (X[:, None] - Y).reshape(-1, 4)
    truth = (gaps.T * np.asarray(plan).ravel()) @ gaps
    assert np.allclose(moments.matrix(plan), truth)
    found = moments.leading(plan, 2)
    assert found.value == pytest.approx(np.linalg.eigvalsh(truth)[-2:].sum())
    assert found.value <= found.bound <= found.value * (1.0 + 1e-10)
    few = Displacements.of(check_pair(X[:2], Y[:1], None, None))
    assert few.features <= 2
    assert np.allclose(few.back((few.X - few.Y).T).T, X[:2] - Y[:1])


def test_the_interval_of_sliced_holds_the_mean_over_directions():
    """Two pairs a quarter turn apart: features alone are far from all directions."""
    X, Y = np.array([[0.0, 0.7], [0.0, -0.7]]), np.array([[0.7, 0.0], [-0.7, 0.0]])
    found = frot.sliced(X, Y, projections=4000)
    truth = 0.49 * (1.0 - 2.0 / np.pi)
    assert found.lower <= truth <= found.upper
    assert found.value == pytest.approx(truth, rel=0.1)
    shifted = frot.sliced(X, X + np.array([3.0, 4.0]))
    assert shifted.lower == pytest.approx(12.5) == shifted.upper


@pytest.mark.parametrize("weighted", [False, True])
def test_sliced_is_pots_on_average(weighted):
    import ot

    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(9, 4)), rng.normal(size=(7, 4)) + 0.5
    a, b = np.full(9, 1 / 9), np.full(7, 1 / 7)
    if weighted:
        a, b = rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(7))
    expected: Any = ot.sliced_wasserstein_distance(X, Y, a, b, n_projections=20_000, seed=0)
    found = frot.sliced(X, Y, a=a, b=b, projections=2000)
    assert found.lower <= float(expected) ** 2 <= found.upper
    assert found.value == pytest.approx(float(expected) ** 2, rel=0.1)
    assert frot.sliced(X, Y, random_state=1).value != frot.sliced(X, Y, random_state=2).value
    assert found.value <= frot.wasserstein(X, Y, a=a, b=b).value / 4


def test_wasserstein_is_the_usual_one():
    import ot

    X, Y = hypercube(8, 3)
    M = ot.dist(X, Y)
    assert frot.wasserstein(X, Y).value == pytest.approx(ot.emd2([], [], M), rel=1e-9)
    assert frot.wasserstein(X, Y, p=1).value == pytest.approx(ot.emd2([], [], M**0.5), rel=1e-9)
    assert frot.wasserstein(X, Y, eps=0.1).eps == 0.1


def test_all_fit_in_one_table():
    X, Y = hypercube(10, 4)
    C = np.stack([(X[:, [i]] - Y[:, i]) ** 2 for i in range(4)])
    results = [
        frot.solve(X, Y),
        frot.srw(X, Y, k=2),
        frot.max_sliced(X, Y),
        frot.sliced(X, Y),
        frot.max_min(X, Y),
        frot.equitable(C),
        frot.wasserstein(X, Y),
    ]
    for res in results:
        assert res.plan.shape == (10, 10)
        assert len(res.alpha) == len(res.phi) == len(res.names)
        assert res.time >= 0.0
        assert res.solver
        assert res.chosen is None or "\n" not in res.chosen.describe()
        assert res.summary().count("\n") >= 5


def test_torch_tensors_come_back_as_such():
    torch = pytest.importorskip("torch")
    X, Y = hypercube(5, 3)
    res = frot.srw(torch.tensor(X), torch.tensor(Y), k=2)
    assert isinstance(res.alpha, torch.Tensor)


def test_single_features_are_sorted_and_others_are_not():
    X, Y = np.random.default_rng(1).normal(size=(2, 25, 6))
    X[:, 0] = X[:, 0].round()
    a = np.random.default_rng(0).dirichlet(np.ones(25))
    a[3], a = 0.0, a / (a.sum() - a[3])
    each = [
        frot.wasserstein(X[:, [at]], Y[:, [at]], a=a, normalise_weights=True) for at in range(6)
    ]
    res = frot.max_min(X, Y, "each", a=a, normalise_weights=True)
    best = max(each, key=lambda one: one.value)
    assert res.value == pytest.approx(best.value, rel=1e-9)
    assert res.status is Status.CONVERGED
    # Sorting has shown that no other can win.
    assert res.iterations == 1
    mixed = frot.max_min(X, Y, [[0], [1, 2], [3, 4, 5]], a=a, normalise_weights=True)
    pairs = [
        frot.wasserstein(X[:, g], Y[:, g], a=a, normalise_weights=True) for g in ([1, 2], [3, 4, 5])
    ]
    assert mixed.value == pytest.approx(max(each[0].value, *(p.value for p in pairs)), rel=1e-9)
