import numpy as np
import pytest

from frot import Groups, Plan
from frot.selection._costs import ActiveCosts, BlockedCosts, heaviest, pooling
from tests.selection.planted import blocked

GROUPS = Groups.from_indices([[0, 1, 2], [2, 3], [5], [6, 7, 8, 9, 10, 11]], 12)


def stack(costs):
    x, y = costs.scaled.block(slice(None))
    single = (x[:, :, None] - y[:, None, :]) ** 2
    return single if costs.pool is None else np.tensordot(costs.pool.toarray(), single, axes=1)


def some_costs(grouped, weighted=False):
    costs = blocked(weighted=weighted)
    pool = pooling(GROUPS, costs.scaled.units.constant, "mean") if grouped else None
    return BlockedCosts(costs.scaled, pool)


@pytest.mark.parametrize("grouped", [False, True])
def test_costs_are_those_of_the_stack(grouped):
    costs = some_costs(grouped)
    full = stack(costs)
    rng = np.random.default_rng(1)
    alpha = rng.dirichlet(np.ones(len(full)))
    alpha[1] = 0.0
    np.testing.assert_allclose(costs.mix(alpha), np.tensordot(alpha, full, axes=1), atol=1e-12)
    few = np.zeros(len(full))
    few[2] = 1.0
    np.testing.assert_allclose(costs.mix(few), full[2], atol=1e-12)
    a, b = costs.scaled.sides.weights
    plan = np.outer(a, b)
    np.testing.assert_allclose(costs.inner(Plan(plan)), (full * plan).sum(axis=(1, 2)))
    np.testing.assert_allclose(costs.independent(a, b), (full * plan).sum(axis=(1, 2)))
    rows, cols = np.array([0, 3, 3]), np.array([5, 0, 1])
    np.testing.assert_allclose(costs.at(rows, cols), full[:, rows, cols])
    np.testing.assert_allclose(costs.at(rows, cols, np.array([1])), full[[1]][:, rows, cols])


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("hold", [True, False])
def test_active_costs_are_some_of_all(grouped, hold, monkeypatch):
    if not hold:
        monkeypatch.setattr("frot.selection._costs.HOLD_BYTES", 0)
    costs = some_costs(grouped, weighted=True)
    some = np.array([0, 1, 3])
    active = ActiveCosts(costs, some)
    full = stack(costs)[some]
    alpha = np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(active.mix(alpha), np.tensordot(alpha, full, axes=1), atol=1e-12)
    a, b = costs.scaled.sides.weights
    plan = np.outer(a, b)
    np.testing.assert_allclose(active.inner(Plan(plan)), (full * plan).sum(axis=(1, 2)))


def test_doubt_and_rounding_cover_the_errors_made():
    costs = some_costs(True)
    rng = np.random.default_rng(2)
    a, b = costs.scaled.sides.weights
    plan = Plan(np.outer(a, b))
    phi = costs.inner(plan)
    exact = (stack(costs).astype(np.longdouble) * plan.dense()).sum(axis=(1, 2))
    assert (np.abs(phi - exact) <= costs.doubt(phi, plan)).all()
    alpha = rng.dirichlet(np.ones(4))
    error = np.abs(costs.mix(alpha) - np.tensordot(alpha, stack(costs), axes=1))
    assert error.max() <= costs.rounding(alpha).absolute


def test_a_sparse_plan_is_multiplied_as_one(monkeypatch):
    costs = some_costs(False)
    plan = Plan.from_arcs([0, 1], [0, 1], [0.5, 0.5], (9, 6))
    expected = costs.inner(plan)
    monkeypatch.setattr("frot.selection._costs.SPARSE_PLAN", 1.0)
    np.testing.assert_allclose(costs.inner(plan), expected)


def test_mean_pooling_counts_features_that_vary():
    constant = np.zeros(12, dtype=bool)
    constant[[0, 5]] = True
    pool = pooling(GROUPS, constant, "mean")
    assert pool is not None
    assert pool.toarray()[0, :3].tolist() == [0.5, 0.5, 0.5]
    assert pool.toarray()[2, 5] == 1.0
    summed = pooling(GROUPS, constant, "sum")
    assert summed is not None
    assert summed.toarray()[0, :3].tolist() == [1.0, 1.0, 1.0]
    assert pooling(Groups.each(12), constant, "mean") is None


def test_heaviest_hold_the_weight():
    weights = np.random.default_rng(0).dirichlet(np.full(200, 0.1))
    kept = heaviest(weights, 0.05)
    assert weights[kept].sum() >= 0.95
    assert weights[kept].sum() - weights[kept].min() < 0.95
    assert len(heaviest(weights, 0.05, most=3)) == 3
    assert heaviest(np.ones(4), 0.0).tolist() == [0, 1, 2, 3]
