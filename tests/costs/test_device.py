"""Costs of other libraries' points: what the host's kinds say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from frot import InputError
from frot._base.arrays import Home
from frot.costs import FactoredCosts, StackedCosts, device_points, device_stack
from frot.groups.groups import Groups
from tests.libraries import FOREIGN, Library

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 4)) + 100.0, RNG.normal(size=(5, 4)) + 100.0
A, B = RNG.dirichlet(np.ones(6)), RNG.dirichlet(np.ones(5))
LISTS = {"groups": [[0, 1], [1, 2, 3]], "each": "each", "some": [[3], [0]]}


@pytest.mark.parametrize("library", FOREIGN, ids=str)
@pytest.mark.parametrize("groups", LISTS)
@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine"])
def test_points(library: Library, groups: str, metric: str):
    parsed = Groups.parse(LISTS[groups], 4)
    x, y = library(X), library(Y)
    found = device_points(x, y, parsed, metric, Home.of(x))
    x_host, y_host = (library.host(points).astype(float) for points in (x, y))
    expected = FactoredCosts.of(x_host, y_host, parsed, metric)
    near: dict[str, Any] = {"rel": 1e-8, "abs": 1e-13}
    assert found.shape == expected.shape
    assert found.independent(A, B) == pytest.approx(expected.independent(A, B), **near)
    assert found.magnitudes(A, B) == pytest.approx(expected.magnitudes(A, B), **near)
    rows, cols = np.array([0, 5, 2]), np.array([4, 0, 0])
    assert found.at(rows, cols) == pytest.approx(expected.at(rows, cols), **near)
    scale = np.arange(1.0, 1.0 + len(parsed))
    assert found.rescaled(scale).at(rows, cols) == pytest.approx(
        scale[:, None] * expected.at(rows, cols), **near
    )
    assert found.nonnegative


@pytest.mark.parametrize("library", FOREIGN, ids=str)
def test_stacks(library: Library):
    stack = library(RNG.normal(size=(3, 6, 5)))
    found = device_stack(stack, Home.of(stack))
    expected = StackedCosts(library.host(stack).astype(float))
    assert found.independent(A, B) == pytest.approx(expected.independent(A, B))
    assert found.magnitudes(A, B) == pytest.approx(expected.magnitudes(A, B))
    rows, cols = np.array([0, 5, 2]), np.array([4, 0, 0])
    assert found.at(rows, cols) == pytest.approx(expected.at(rows, cols))
    assert found.rescaled(np.full(3, 2.0)).at(rows, cols) == pytest.approx(
        2.0 * expected.at(rows, cols)
    )


def test_a_point_without_direction_is_named():
    library = FOREIGN[0]
    points = X.copy()
    points[4, [1, 2, 3]] = 0.0
    x, groups = library(points), Groups.parse(LISTS["groups"], 4)
    with pytest.raises(InputError, match=r"X row 4 is all zeros in group 'g1'.*drop such points"):
        device_points(x, library(Y), groups, "cosine", Home.of(x))
