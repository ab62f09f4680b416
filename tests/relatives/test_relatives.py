"""Each relative on its own: what it chose, its status, its limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp
from scipy.linalg import eigh

import frot
from frot import Plan, Status
from frot.plans.line import line_arcs, line_cost, line_potential
from frot.relatives._displacement import Displacements, reduce_points
from frot.relatives._fantope import best_planes, fantope_weights, top_sum
from frot.relatives._sliced import costs_along
from tests.reference import quiet
from tests.strategies import cost_problems, seeds

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


def test_srw_by_lanczos_forms_nothing_of_size_d_by_d(monkeypatch):
    from frot.relatives import _displacement

    X, Y = hypercube(150, 200)
    dense = quiet(frot.srw, X, Y, k=2, tol=1e-3, max_iter=8)
    monkeypatch.setattr(_displacement, "DENSE_FEATURES", 10)
    res = quiet(frot.srw, X, Y, k=2, tol=1e-3, max_iter=8)
    assert res.lower <= dense.upper * (1.0 + 1e-9)
    assert dense.lower <= res.upper * (1.0 + 1e-9)
    assert res.gap < 0.2


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


def test_a_time_limit_that_leaves_copies_of_a_group_only_has_left_nothing():
    rng = np.random.default_rng(0)
    # Of clusters far apart the plan is the best one of either copy.
    X = 1e3 * rng.normal(size=(3, 3))[rng.integers(3, size=10)] + 0.1 * rng.normal(size=(10, 3))
    Y = X + 0.01 * rng.normal(size=(10, 3)) + 100.0
    res = frot.max_min(X, Y, [[0, 1, 2], [0, 1, 2], [1], [0, 1]], time_limit=1e-9)
    assert res.iterations == 1
    assert res.status is Status.CONVERGED
    assert res.gap <= 1e-9


def test_methods_that_are_not_convex_say_so_without_a_warning():
    X, Y = hypercube(20, 4)
    for res in (frot.max_sliced(X, Y), frot.generalised_max_sliced(X, Y, "circular", max_iter=5)):
        assert res.status is Status.LOWER_BOUND
        assert "lower bound" in res.status.sentence
        assert res.lower <= res.upper
    assert res.upper == np.inf
    assert res.gap == 1.0


def test_linear_defining_function_is_max_sliced():
    X, Y = hypercube(20, 3)
    ours = frot.generalised_max_sliced(X, Y, "linear", restarts=8)
    own = frot.generalised_max_sliced(X, Y, lambda points, theta: points @ theta, restarts=8)
    assert ours.value == pytest.approx(frot.max_sliced(X, Y).value, rel=1e-3)
    assert own.value == pytest.approx(ours.value, rel=1e-6)


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


@settings(max_examples=40, deadline=None)
@given(hnp.arrays(float, 6, elements={"min_value": -3, "max_value": 3}))
def test_fantope_weights_are_feasible_and_nearly_best(values):
    for k in (1, 3, 6):
        for mu in (1e-8, 1e-2, 10.0):
            omega = fantope_weights(values, k, mu)
            assert (omega >= 0.0).all()
            assert (omega <= 1.0 + 1e-12).all()
            assert omega.sum() == pytest.approx(k, rel=1e-9)
            assert top_sum(values, k) - omega @ values <= 2.0 * 6 * mu + 1e-6


def test_best_planes_closes_its_gap():
    draw = np.random.default_rng(3)
    roots = draw.normal(size=(12, 6, 6))
    planes = roots @ roots.transpose(0, 2, 1)
    found = best_planes(planes, 2, np.full(12, 1 / 12), 0.1, 1e-4, max_iter=200)
    assert found.upper - found.lower <= 1e-4
    assert np.linalg.eigvalsh(found.omega).max() <= 1.0 + 1e-9
    assert np.trace(found.omega) == pytest.approx(2.0)


def test_displacements_in_every_form():
    X, Y = hypercube(7, 4)
    n = len(X)
    plan = Plan(np.random.default_rng(0).dirichlet(np.ones(n * n)).reshape(n, n))
    at = Displacements(X, Y, plan.sum(axis=1), plan.sum(axis=0))
    rows, cols, mass = plan.arcs()
    gaps = X[rows] - Y[cols]
    truth = (gaps.T * mass) @ gaps
    assert np.allclose(at.moments(plan, np.eye(4)), truth)
    assert np.allclose(at.apply(plan, np.eye(4)), truth)
    values, vectors, doubt = at.top(plan, 2)
    assert np.allclose(values, eigh(truth)[0][-2:])
    assert np.allclose(truth @ vectors, vectors * values)
    assert 0.0 <= doubt < 1e-10
    turned_x, turned_y, basis = reduce_points(X[:2], Y[:1])
    assert basis is not None
    assert np.allclose((turned_x - turned_y) @ basis.T, X[:2] - Y[:1])


@settings(max_examples=15, deadline=None)
@given(cost_problems(scaled=False))
def test_every_kind_of_the_same_set_gives_the_same(problem):
    count = len(problem.stack)
    sides = np.vstack([-np.eye(count), np.ones((1, count)), -np.ones((1, count))])
    kinds = (
        frot.Polytope(np.eye(count)),
        frot.Polyhedron(sides, np.append(np.zeros(count), [1.0, -1.0])),
        frot.CappedSimplex(1),
    )
    truth = frot.solve_costs(problem.stack, problem.a, problem.b)
    for kind in kinds:
        res = quiet(frot.cutting_set, problem.stack, problem.a, problem.b, adversary=kind)
        assert res.value == pytest.approx(truth.value, rel=1e-6, abs=1e-7)
        assert res.lower <= truth.upper + 1e-7
        assert truth.lower <= res.upper + 1e-7


def test_a_box_is_its_upper_corner_and_a_point_is_plain_transport():
    C = np.random.default_rng(0).uniform(size=(3, 5, 6))
    high = np.array([1.0, 2.0, 0.5])
    res = frot.cutting_set(C, adversary=frot.Box(np.zeros(3), high))
    mixed = frot.solve_costs(np.tensordot(high, C, 1)[None])
    assert res.value == pytest.approx(mixed.value, rel=1e-8)
    assert res.alpha == pytest.approx(high)
    point = frot.cutting_set(C, adversary=frot.Ellipsoid(high, 0.0))
    assert point.value == pytest.approx(mixed.value, rel=1e-8)


def test_an_ellipsoid_is_between_its_centre_and_its_reach():
    C = np.random.default_rng(0).uniform(size=(3, 6, 6))
    centre = np.full(3, 1.0)
    res = frot.cutting_set(C, adversary=frot.Ellipsoid(centre, 0.3), tol=1e-6)
    assert res.status.ok
    assert np.linalg.norm(res.alpha - centre) <= 0.3 + 1e-9
    mean = frot.solve_costs(C.sum(axis=0)[None]).value
    assert mean < res.value < mean + 0.3 * np.sqrt(3.0)


def test_wasserstein_is_the_usual_one():
    import ot

    X, Y = hypercube(8, 3)
    M = ot.dist(X, Y)
    assert frot.wasserstein(X, Y).value == pytest.approx(ot.emd2([], [], M), rel=1e-9)
    assert frot.wasserstein(X, Y, p=1).value == pytest.approx(ot.emd2([], [], M**0.5), rel=1e-9)
    assert frot.wasserstein(X, Y, eps=0.1).eps == 0.1


@pytest.mark.parametrize("weighted", [False, True])
def test_transport_along_lines_is_pots(weighted):
    import ot

    rng = np.random.default_rng(5)
    X, Y, directions = rng.normal(size=(9, 4)), rng.normal(size=(7, 4)), rng.normal(size=(30, 4))
    a, b = np.full(9, 1 / 9), np.full(7, 1 / 7)
    if weighted:
        a, b = rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(7))
    unit = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    expected: Any = ot.sliced_wasserstein_distance(X, Y, a, b, projections=unit.T)
    found = costs_along(X, Y, a, b, directions)
    assert found.mean() == pytest.approx(float(expected) ** 2, rel=1e-12)


def test_sliced_does_not_depend_on_how_many_directions_are_taken_at_a_time(monkeypatch):
    X, Y = hypercube(8, 3)
    whole = frot.sliced(X, Y, projections=20, random_state=3)
    monkeypatch.setattr(
        "frot.relatives._sliced.blocks", lambda count, size: [slice(0, 7), slice(7, count)]
    )
    assert frot.sliced(X, Y, projections=20, random_state=3).value == pytest.approx(
        whole.value, rel=1e-12
    )
    assert frot.sliced(X, Y, projections=20, random_state=4).value != whole.value


def test_all_fit_in_one_table():
    X, Y = hypercube(10, 4)
    C = np.stack([(X[:, [i]] - Y[:, i]) ** 2 for i in range(4)])
    results = [
        frot.solve(X, Y),
        frot.srw(X, Y, k=2),
        frot.max_sliced(X, Y),
        frot.generalised_max_sliced(X, Y),
        frot.sliced(X, Y),
        frot.max_min(X, Y),
        frot.cutting_set(C),
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


def test_max_sliced_beyond_dense_features_is_still_bounded(monkeypatch):
    from frot.relatives import _displacement

    X, Y = np.random.default_rng(1).normal(size=(2, 30, 20))
    dense = frot.max_sliced(X, Y, restarts=2)
    monkeypatch.setattr(_displacement, "DENSE_FEATURES", 5)
    res = frot.max_sliced(X, Y, restarts=2)
    assert res.lower == pytest.approx(dense.lower, rel=1e-3)
    assert res.value <= res.upper <= dense.upper * 1.01
