"""Which kind of costs points, groups and a metric call for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from frot import Groups
from frot._costs import (
    FactoredCosts,
    MetricCosts,
    SeparableCosts,
    StackedCosts,
    build_costs,
)
from frot._costs._protocol import blocks

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(4, 60)), RNG.normal(size=(5, 60))
EACH, WIDE, ALL = Groups.each(60), Groups.from_sizes([30, 30]), Groups.all(60)


@pytest.mark.parametrize(
    ("groups", "metric", "p", "kind"),
    [
        (EACH, "sqeuclidean", 1.0, FactoredCosts),
        (EACH, "euclidean", 2.0, FactoredCosts),
        (EACH, "cosine", 1.0, FactoredCosts),
        (WIDE, "sqeuclidean", 1.0, StackedCosts),
        (WIDE, "cosine", 1.0, StackedCosts),
        (ALL, "sqeuclidean", 1.0, FactoredCosts),
        (EACH, "euclidean", 1.0, SeparableCosts),
        (EACH, "cityblock", 3.0, SeparableCosts),
        (EACH, "chebyshev", 1.0, SeparableCosts),
        (EACH, "minkowski", 2.0, SeparableCosts),
        (EACH, "canberra", 1.0, StackedCosts),
        (EACH, "sqeuclidean", 2.0, StackedCosts),
        (WIDE, "euclidean", 1.0, StackedCosts),
        (WIDE, lambda u, v: abs(u - v).max(), 1.0, StackedCosts),
    ],
)
def test_the_kind_and_its_costs(groups, metric, p, kind):
    costs = build_costs(X, Y, groups, metric, p)
    assert type(costs) is kind
    for group, row in enumerate(np.eye(len(groups))):
        columns = groups.indices[group]
        expected = cdist(X[:, columns], Y[:, columns], metric) ** p
        assert costs.mix(row) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("groups", "metric", "kind"),
    [
        (WIDE, "euclidean", MetricCosts),
        (WIDE, "sqeuclidean", FactoredCosts),
        (EACH, "cityblock", SeparableCosts),
    ],
)
def test_a_stack_must_fit_the_memory(groups, metric, kind):
    assert type(build_costs(X, Y, groups, metric, memory_budget=100)) is kind


def test_blocks_cover_everything_once():
    cuts = blocks(10, 8, budget=24)
    assert [(cut.start, cut.stop) for cut in cuts] == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert blocks(3, 1000, budget=1) == [slice(0, 1), slice(1, 2), slice(2, 3)]
    assert blocks(0, 8) == []
