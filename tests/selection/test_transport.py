from typing import Any

import numpy as np
import ot
import pytest

import frot
from frot.groups.groups import Groups
from frot.selection._transport import (
    Parts,
    draw_rows,
    eta_for_perplexity,
    pooling,
    scale_sides,
    squared_wasserstein,
    target_perplexity,
    transport,
    weights_of,
)


def two_sides(n=24, m=16, d=40, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) * rng.uniform(0.1, 10.0, d) + rng.normal(size=d)
    y = rng.normal(size=(m, d)) + rng.normal(size=d)
    y[:, :3] += 2.5
    return x, y


def found_of(groups=None, **options):
    x, y = two_sides()
    return transport(x, y, groups or Groups.each(40), picks=3, **options)


@pytest.mark.parametrize("sizes", [(24, 16), (20, 20), (7, 13), (1, 4)])
def test_the_wasserstein_distance_of_each_feature_is_pots(sizes):
    x, y = two_sides(*sizes)
    expected: Any = [ot.emd2_1d(x[:, k], y[:, k]) for k in range(40)]
    np.testing.assert_allclose(squared_wasserstein(x, y), expected)


def test_the_cost_is_the_sum_of_its_parts_and_each_is_nonnegative():
    parts = found_of().parts
    np.testing.assert_allclose(parts.shift + parts.shape + parts.misalignment, parts.phi)
    assert min(parts.shift.min(), parts.shape.min(), parts.misalignment.min()) >= 0.0
    rounded = Parts.of(np.array([1.0]), np.array([1.0 + 1e-15]), np.array([1.0]))
    assert (rounded.shape[0], rounded.misalignment[0]) == (0.0, 0.0)


def test_both_classes_count_alike_where_they_are_balanced():
    x, y = two_sides()
    assert not scale_sides(x, y, "balanced").any()
    np.testing.assert_allclose(np.square(x).mean(axis=0) + np.square(y).mean(axis=0), 2.0)
    np.testing.assert_allclose(x.mean(axis=0), -y.mean(axis=0), atol=1e-12)


def test_the_papers_scaling_is_pooled_standardisation():
    x, y = two_sides()
    both = np.concatenate([x, y])
    standard = (both - both.mean(axis=0)) / both.std(axis=0)
    result = frot.solve(standard[:24], standard[24:], "each", eta=1.0, tol=1e-9)
    found = transport(x, y, Groups.each(40), eta=1.0, scaling="paper")
    assert found.result.lower <= result.upper
    assert result.lower <= found.result.upper
    np.testing.assert_allclose(weights_of(result.phi, 1.0), found.alpha, atol=0.02)


def test_constants_cost_nothing():
    x, y = two_sides()
    x[:, 5] = y[:, 5] = 0.1
    assert scale_sides(x, y, "balanced").tolist() == [k == 5 for k in range(40)]
    assert (x[:, 5] == 0.0).all()


def test_alpha_answers_the_plan_with_the_perplexity_asked_for():
    found = found_of()
    result = found.result
    assert result.lower <= result.value <= result.upper
    assert result.gap <= 1e-2
    np.testing.assert_allclose(found.alpha, weights_of(result.phi, result.eta))
    assert found.alpha.sum() == pytest.approx(1.0)
    perplexity = np.exp(-found.alpha @ np.log(found.alpha))
    assert perplexity == pytest.approx(9.0, rel=0.05)


@pytest.mark.parametrize("eta", [0.5, frot.relative(0.1)])
def test_eta_can_be_set(eta):
    result = found_of(eta=eta).result
    expected = 0.5 if eta == 0.5 else 0.1 * result.mean_cost
    assert result.eta == pytest.approx(expected)


def test_classes_that_hardly_differ_keep_a_least_eta():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 30, 400))
    found = transport(x, y, Groups.each(400), picks=1)
    assert found.result.eta == pytest.approx(0.015 * found.result.mean_cost, rel=0.01)


def test_a_groups_cost_is_the_mean_of_those_of_its_features_that_vary():
    x, y = two_sides()
    x[:, 30:] = y[:, 30:] = 1.0
    groups = Groups.parse([[0, 1, 2, 39], [2, 3, 4, 5], range(6, 40)], 40)
    found = transport(x, y, groups, picks=1)
    assert found.result.names == groups.names
    plan = found.result.plan.dense()
    costs = [(plan * np.square(x[:, [k]] - y[:, [k]].T)).sum() for k in range(40)]
    for index, members in enumerate(groups.indices):
        varying = [k for k in members if k < 30]
        assert found.parts.phi[index] == pytest.approx(np.mean([costs[k] for k in varying]))
    total = found.parts.shift + found.parts.shape + found.parts.misalignment
    np.testing.assert_allclose(total, found.parts.phi)


def test_pooling_of_single_features_is_none():
    assert pooling(Groups.each(3), np.zeros(3, dtype=bool)) is None
    assert pooling(Groups.parse([[1], [0], [2]], 3), np.zeros(3, dtype=bool)) is not None


def test_perplexities():
    assert target_perplexity(1, 2000) == 3.0
    assert target_perplexity(50, 40) == 20.5
    phi = np.random.default_rng(0).uniform(size=50)
    for target in (1.5, 10.0, 40.0):
        alpha = weights_of(phi, eta_for_perplexity(phi, target))
        assert np.exp(-alpha @ np.log(alpha)) == pytest.approx(target, rel=1e-4)
    # Ties are never told apart.
    assert eta_for_perplexity(np.array([1.0, 1.0, 0.0]), 1.5) == pytest.approx(1e-6)
    assert eta_for_perplexity(np.full(3, 2.0), 1.5) == 2.0


def test_many_samples_are_drawn_in_proportion():
    rows = np.arange(900), np.arange(900, 1500)
    codes = np.repeat([0, 1, 2], [900, 450, 150])
    first, second = draw_rows(rows, codes)
    assert len(first) == len(second) == 500
    assert np.bincount(codes[second])[1:].tolist() == [375, 125]
    assert set(first) < set(range(900))
    assert (np.diff(second) > 0).all()
    np.testing.assert_array_equal(draw_rows(rows, codes)[1], second)
