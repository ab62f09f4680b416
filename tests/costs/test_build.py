"""Which kind of costs points, groups and a metric call for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import frot
from frot import Groups
from frot._base.arrays import blocks
from frot.costs import (
    Distances,
    Points,
    Powers,
    Stack,
    build_costs,
)
from frot.costs.build import points_costs

RNG = np.random.default_rng(0)
# Enough points that squared distances are not summed from differences.
X, Y = RNG.normal(size=(74, 60)), RNG.normal(size=(75, 60))
EACH, WIDE, ALL = Groups.each(60), Groups.from_sizes([30, 30]), Groups.all(60)


@pytest.mark.parametrize(
    ("groups", "metric", "p", "kind"),
    [
        (EACH, "sqeuclidean", 1.0, Points),
        (EACH, "euclidean", 2.0, Points),
        (EACH, "cosine", 1.0, Points),
        (WIDE, "sqeuclidean", 1.0, Stack),
        (WIDE, "cosine", 1.0, Stack),
        (ALL, "sqeuclidean", 1.0, Points),
        (EACH, "euclidean", 1.0, Powers),
        (EACH, "cityblock", 3.0, Powers),
        (EACH, "chebyshev", 1.0, Powers),
        (EACH, "minkowski", 2.0, Powers),
        (EACH, "canberra", 1.0, Stack),
        (EACH, "sqeuclidean", 2.0, Stack),
        (WIDE, "euclidean", 1.0, Stack),
        (WIDE, lambda u, v: abs(u - v).max(), 1.0, Stack),
    ],
)
def test_the_kind_and_its_costs(groups, metric, p, kind):
    costs = build_costs(X, Y, groups, metric, p)
    assert type(costs) is kind
    for group, row in enumerate(np.eye(len(groups))):
        columns = groups.indices[group]
        expected = cdist(X[:, columns], Y[:, columns], metric) ** p
        # Of arrays this large NumPy asks in a thousandth of pytest.approx's time.
        off = np.abs(costs.mix(row) - expected)
        assert (off <= np.maximum(1e-9 * np.abs(expected), 1e-12)).all()


@pytest.mark.parametrize(
    ("groups", "metric", "kind"),
    [
        (WIDE, "euclidean", Distances),
        (WIDE, "sqeuclidean", Points),
        (EACH, "cityblock", Powers),
    ],
)
def test_a_stack_must_fit_the_memory(groups, metric, kind):
    assert type(build_costs(X, Y, groups, metric, memory_budget=100)) is kind


def test_blocks_cover_everything_once():
    cuts = blocks(10, 8, budget=24)
    assert [(cut.start, cut.stop) for cut in cuts] == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert blocks(3, 1000, budget=1) == [slice(0, 1), slice(1, 2), slice(2, 3)]
    assert blocks(0, 8) == []


class TestFewPoints:
    """Squared distances of few points are stacked, and lose no digit however close points are."""

    @pytest.mark.parametrize("groups", [Groups.each(6), Groups.all(6), Groups.parse([2, 1, 3], 6)])
    def test_near_duplicates(self, groups):
        rng = np.random.default_rng(0)
        few = 1e3 + rng.normal(size=(5, 6))
        near = few + 1e-9 * rng.normal(size=(5, 6))
        costs = build_costs(few, near, groups)
        assert type(costs) is Stack
        gaps = few[:, None].astype(np.longdouble) - near
        for group, row in enumerate(np.eye(len(groups))):
            exact = (gaps[:, :, groups.indices[group]] ** 2).sum(axis=2)
            off = np.abs(costs.mix(row) - exact)
            assert (off <= costs.relative * exact).all()

    def test_overlapping_groups(self):
        rng = np.random.default_rng(1)
        few, other = rng.normal(size=(4, 5)), rng.normal(size=(3, 5))
        lists = [[0, 1], [1, 2, 4], [3]]
        costs = build_costs(few, other, Groups.parse(lists, 5))
        expected = np.stack([cdist(few[:, g], other[:, g], "sqeuclidean") for g in lists])
        assert np.stack([costs.mix(row) for row in np.eye(3)]) == pytest.approx(expected)


def test_a_users_metric_that_is_infinite_is_refused_with_the_way_out():
    def forbids(u: np.ndarray, v: np.ndarray) -> float:
        return np.inf if u[0] > 10.0 and v[0] == 0.0 else 1.0

    with pytest.raises(frot.InputError, match="must not be matched gets a cost larger than all"):
        frot.solve([[1.0], [1e3]], [[0.0], [2.0]], metric=forbids)


def test_a_batch_of_points_has_costs():
    X, Y = np.zeros((5, 2, 3)), np.ones((5, 4, 3))
    found = points_costs(X, Y, Groups.each(3), "sqeuclidean")
    assert found.shape == (5, 3, 2, 4)
    assert (found.stack() == 1.0).all()
