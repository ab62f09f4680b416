"""Every kind of costs says the same as the plain stack of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import ot
import pytest
from hypothesis import given, settings
from scipy.spatial.distance import cdist

from frot import Groups, Plan
from frot._base.arrays import Home
from frot.costs import (
    Costs,
    FactoredCosts,
    MetricCosts,
    RescaledCosts,
    SeparableCosts,
    StackedCosts,
)
from frot.costs.build import device_points, device_stack
from tests.strategies import seeds

N, M, D = 7, 6, 5
OVERLAPPING = [[0, 1], [1, 2, 4], [3], [0, 1, 2, 3, 4], [4, 0]]
RAGGED = [[0, 3], [2]]


def stacked(X: np.ndarray, Y: np.ndarray, lists: Any, metric: Any, p: float = 1.0) -> np.ndarray:
    return np.stack([cdist(X[:, g], Y[:, g], metric) ** p for g in lists])


def taxi(u: np.ndarray, v: np.ndarray) -> float:
    return float(np.abs(u - v).sum())


def parse(lists: list[list[int]]) -> Groups:
    return Groups.parse(lists, D)


EACH = [[k] for k in range(D)]
HOME = Home.of(np.zeros(1))
Made = tuple[Costs, np.ndarray]
KINDS: dict[str, Callable[[np.ndarray, np.ndarray], Made]] = {
    "stacked": lambda X, Y: (
        StackedCosts(stacked(X, Y, RAGGED, "euclidean")),
        stacked(X, Y, RAGGED, "euclidean"),
    ),
    "factored, ragged": lambda X, Y: (
        FactoredCosts.of(X, Y, parse(RAGGED)),
        stacked(X, Y, RAGGED, "sqeuclidean"),
    ),
    "factored, overlapping": lambda X, Y: (
        FactoredCosts.of(X, Y, parse(OVERLAPPING)),
        stacked(X, Y, OVERLAPPING, "sqeuclidean"),
    ),
    "factored, each": lambda X, Y: (
        FactoredCosts.of(X, Y, Groups.each(D)),
        stacked(X, Y, EACH, "sqeuclidean"),
    ),
    "factored, each in another order": lambda X, Y: (
        FactoredCosts.of(X, Y, parse(EACH[::-1])),
        stacked(X, Y, EACH[::-1], "sqeuclidean"),
    ),
    "cosine, overlapping": lambda X, Y: (
        FactoredCosts.of(X, Y, parse(OVERLAPPING), "cosine"),
        stacked(X, Y, OVERLAPPING, "cosine"),
    ),
    "separable, p = 1": lambda X, Y: (
        SeparableCosts(X, Y),
        stacked(X, Y, EACH, "cityblock"),
    ),
    "separable, p = 3": lambda X, Y: (
        SeparableCosts(X, Y, p=3.0),
        stacked(X, Y, EACH, "cityblock", 3.0),
    ),
    "separable, p = 1/2": lambda X, Y: (
        SeparableCosts(X, Y, p=0.5),
        stacked(X, Y, EACH, "cityblock", 0.5),
    ),
    "metric, a row at a time": lambda X, Y: (
        MetricCosts(X, Y, parse(OVERLAPPING), "chebyshev", p=2.0, chunk_bytes=1),
        stacked(X, Y, OVERLAPPING, "chebyshev", 2.0),
    ),
    "metric, three rows at a time": lambda X, Y: (
        MetricCosts(X, Y, parse(RAGGED), "euclidean", chunk_bytes=8 * 3 * M),
        stacked(X, Y, RAGGED, "euclidean"),
    ),
    "metric, callable": lambda X, Y: (
        MetricCosts(X, Y, parse(RAGGED), taxi),
        stacked(X, Y, RAGGED, "cityblock"),
    ),
    "on a device, points": lambda X, Y: (
        device_points(X, Y, parse(OVERLAPPING), "sqeuclidean", HOME),
        stacked(X, Y, OVERLAPPING, "sqeuclidean"),
    ),
    "on a device, stacked": lambda X, Y: (
        device_stack(stacked(X, Y, RAGGED, "euclidean"), HOME),
        stacked(X, Y, RAGGED, "euclidean"),
    ),
    "rescaled": lambda X, Y: (
        RescaledCosts(
            FactoredCosts.of(X, Y, parse(RAGGED)),
            np.array([0.5, 3.0]),
            np.array([1.0, -0.25]),
        ),
        np.array([0.5, 3.0])[:, None, None]
        * (stacked(X, Y, RAGGED, "sqeuclidean") - np.array([1.0, -0.25])[:, None, None]),
    ),
}


def made(kind: str, seed: int) -> tuple[np.random.Generator, Costs, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(N, D)), rng.normal(size=(M, D))
    return rng, *KINDS[kind](X, Y)


def close(expected: np.ndarray) -> Any:
    return pytest.approx(expected, rel=1e-10, abs=1e-12)


# Only the coordinates of the points differ from seed to seed.
FEW = settings(max_examples=20)


@pytest.mark.parametrize("kind", KINDS)
class TestAgainstTheStack:
    @FEW
    @given(seeds)
    def test_mix(self, kind, seed):
        rng, costs, stack = made(kind, seed)
        for _ in range(3):
            alpha = rng.dirichlet(np.ones(len(stack))) * (rng.random(len(stack)) < 0.7)
            expected = np.einsum("l,lij->ij", alpha, stack)
            assert costs.mix(alpha) == close(expected)
        assert costs.shape == stack.shape

    @FEW
    @given(seeds)
    def test_inner(self, kind, seed):
        rng, costs, stack = made(kind, seed)
        dense = rng.random((N, M)) * (rng.random((N, M)) < 0.5)
        expected = np.einsum("ij,lij->l", dense, stack)
        assert costs.inner(Plan(dense)) == close(expected)
        sparse = Plan.from_arcs(*Plan(dense).arcs(), (N, M))
        assert costs.inner(sparse) == close(expected)

    @FEW
    @given(seeds)
    def test_at(self, kind, seed):
        rng, costs, stack = made(kind, seed)
        rows, cols = rng.integers(0, N, 9), rng.integers(0, M, 9)
        assert costs.at(rows, cols) == close(stack[:, rows, cols])
        some = rng.permutation(len(stack))[: max(1, len(stack) - 1)]
        found = costs.at(rows, cols, some)
        assert found == close(stack[some][:, rows, cols])

    @FEW
    @given(seeds)
    def test_independent(self, kind, seed):
        rng, costs, stack = made(kind, seed)
        a, b = rng.dirichlet(np.ones(N)), rng.dirichlet(np.ones(M))
        expected = np.einsum("i,lij,j->l", a, stack, b)
        assert costs.independent(a, b) == close(expected)

    @FEW
    @given(seeds)
    def test_magnitudes_are_the_scale_of_the_costs(self, kind, seed):
        rng, costs, stack = made(kind, seed)
        a, b = rng.dirichlet(np.ones(N)), rng.dirichlet(np.ones(M))
        size = np.einsum("i,lij,j->l", a, np.abs(stack), b)
        assert (costs.magnitudes(a, b) >= size * (1 - 1e-10)).all()
        if costs.nonnegative or "metric" in kind:
            assert costs.magnitudes(a, b) == close(size)

    @FEW
    @given(seeds)
    def test_take(self, kind, seed):
        rng, costs, stack = made(kind, seed)
        rows, cols = rng.permutation(N)[:4], np.sort(rng.permutation(M)[:3])
        part, expected = costs.take(rows, cols), stack[:, rows][:, :, cols]
        assert part.shape == expected.shape
        eye = np.eye(len(stack))
        found = np.stack([part.mix(row) for row in eye])
        assert found == close(expected)

    @FEW
    @given(seeds)
    def test_no_plan_pays_less_than_the_least(self, kind, seed):
        rng, costs, stack = made(kind, seed)
        a, b = rng.dirichlet(np.ones(N)), rng.dirichlet(np.ones(M))
        least = costs.least(a, b)
        for cost, bound in zip(stack, least, strict=True):
            best: Any = ot.emd2(a, b, np.ascontiguousarray(cost))
            assert bound <= best + 1e-14

    @FEW
    @given(seeds)
    def test_nonnegative_only_where_it_is(self, kind, seed):
        _, costs, stack = made(kind, seed)
        costs.mix(np.ones(len(stack)))
        if costs.nonnegative:
            assert stack.min() >= 0.0
        assert costs.nonnegative == (kind != "rescaled" and "metric" not in kind)


def allowance(costs, alpha) -> np.ndarray:
    """How far each entry of a mix may be off."""
    rounding = costs.rounding(alpha)
    shape = costs.shape[1:]
    absolute = np.broadcast_to(rounding.sums, shape)
    return rounding.relative * np.abs(costs.mix(alpha)) + absolute


class TestRounding:
    """The bound on rounding covers the distance to the same sums in extended precision."""

    @given(seeds, st.sampled_from([0.0, 1.0, 1e4]))
    def test_of_squared_distances(self, seed, offset):
        rng = np.random.default_rng(seed)
        X, Y = offset + rng.normal(size=(N, D)), offset + rng.normal(size=(M, D))
        costs = FactoredCosts.of(X, Y, parse(RAGGED))
        alpha = rng.dirichlet(np.ones(2))
        gaps = (costs.X[:, None] - costs.Y).astype(np.longdouble) ** 2
        weights = (costs.membership.T @ alpha).astype(np.longdouble)
        off = np.abs(costs.mix(alpha) - gaps @ weights)
        assert (off <= allowance(costs, alpha)).all()
        assert allowance(costs, alpha).max() <= 1e-12 * float((gaps @ weights).max())

    @given(seeds, st.sampled_from([0.0, 1e6]))
    def test_of_stacks(self, seed, offset):
        rng = np.random.default_rng(seed)
        stack = offset + rng.normal(size=(9, N, M)) * 10.0 ** rng.uniform(-3, 3, (9, 1, 1))
        alpha = rng.dirichlet(np.ones(9))
        exact = np.einsum("l,lij->ij", alpha.astype(np.longdouble), stack.astype(np.longdouble))
        costs = StackedCosts(stack)
        assert (np.abs(costs.mix(alpha) - exact) <= allowance(costs, alpha)).all()
        assert allowance(costs, alpha).max() <= 1e-14 * np.abs(stack).max()

    def test_of_a_stack_is_relative_to_the_groups_that_have_weight(self):
        stack = np.ones((2, 3, 3)) * np.array([1.0, 1e12])[:, None, None]
        assert allowance(StackedCosts(stack), np.array([1.0, 0.0])).max() <= 1e-14
        assert allowance(StackedCosts(-stack), np.array([1.0, 1e-12])).max() <= 1e-14

    @given(seeds, st.sampled_from([1.0, 2.5, 3.0]), st.sampled_from([0.0, 1e4, 1e8]))
    def test_of_powers(self, seed, p, offset):
        rng = np.random.default_rng(seed)
        X, Y = offset + rng.normal(size=(N, D)), offset + rng.normal(size=(M, D))
        costs = SeparableCosts(X, Y, p)
        alpha = rng.dirichlet(np.ones(D))
        gaps = np.abs(X[:, None].astype(np.longdouble) - Y) ** np.longdouble(p)
        off = np.abs(costs.mix(alpha) - gaps @ alpha.astype(np.longdouble))
        assert (off <= allowance(costs, alpha)).all()

    @given(seeds)
    def test_of_shifted_costs(self, seed):
        rng = np.random.default_rng(seed)
        stack, shift = 1e3 + rng.random((3, N, M)), 1e3 + rng.random(3)
        costs = RescaledCosts(StackedCosts(stack), np.array([1.0, 0.1, 7.0]), shift)
        alpha = rng.dirichlet(np.ones(3))
        weights = (alpha * costs.scale).astype(np.longdouble)
        exact = np.einsum("l,lij->ij", weights, stack - shift[:, None, None].astype(np.longdouble))
        assert (np.abs(costs.mix(alpha) - exact) <= allowance(costs, alpha)).all()
