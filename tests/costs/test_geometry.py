"""Costs in batches: points, stacks and NumPy's kinds all mean the same matrices."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import ot
import pytest
import torch

from frot._base.arrays import Home
from frot.costs import FactoredCosts, RescaledCosts, StackedCosts
from frot.costs.geometry import CostsGeometry, Geometry, take_members
from frot.costs.points import PointGeometry
from frot.costs.stack import StackGeometry, difference_stack
from frot.groups.groups import Groups
from tests.solvers.sinkhorn.bounds import stack_of

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 4)), RNG.normal(size=(5, 4))
GROUPS = [[0, 1], [2, 3], [1, 3]]
STACK = stack_of(X, Y, GROUPS)
MEMBER = np.array([[k in group for k in range(4)] for group in GROUPS], dtype=float)
FACTORED = FactoredCosts.of(X, Y, Groups.parse(GROUPS, 4))
GEOMETRIES: dict[str, Geometry] = {
    "points": PointGeometry(X[None], Y[None], MEMBER),
    "stack": StackGeometry(STACK[None]),
    "factored": CostsGeometry(FACTORED),
    "stacked": CostsGeometry(StackedCosts(STACK)),
    "rescaled": CostsGeometry(RescaledCosts(StackedCosts(STACK / 2), np.full(3, 2.0), np.zeros(3))),
    "torch": StackGeometry(torch.tensor(STACK[None])),
}


def bring(geometry: Geometry, values: np.ndarray):
    return geometry.home.bring(values)


@pytest.mark.parametrize("name", GEOMETRIES)
def test_all_are_the_same_matrices(name: str):
    geometry = GEOMETRIES[name]
    alpha, plan = RNG.dirichlet(np.ones(3))[None], RNG.random((1, 6, 5))
    u, v = RNG.random((1, 6)), RNG.random((1, 5))
    near: dict[str, Any] = {"rel": 1e-12, "abs": 1e-13}
    mixed = np.einsum("l,lij->ij", alpha[0], STACK)[None]
    assert geometry.shape == (1, 3, 6, 5)
    assert np.asarray(geometry.mix(bring(geometry, alpha))) == pytest.approx(mixed, **near)
    inner = np.asarray(geometry.inner(bring(geometry, plan)))
    assert inner == pytest.approx(np.einsum("bij,lij->bl", plan, STACK), **near)
    product = np.asarray(geometry.product(bring(geometry, u), bring(geometry, v)))
    assert product == pytest.approx(np.einsum("bi,bj,lij->bl", u, v, STACK), **near)
    assert np.asarray(geometry.stack()) == pytest.approx(STACK[None], **near)
    rows = geometry.rows(slice(2, 4))
    assert rows.shape == (1, 3, 2, 5)
    assert np.asarray(rows.mix(bring(geometry, alpha))) == pytest.approx(mixed[:, 2:4], **near)
    one = geometry.home.indices([0])
    assert geometry.members(one).shape == geometry.shape


@pytest.mark.parametrize("name", GEOMETRIES)
def test_points_may_be_taken_and_repeated(name: str):
    geometry = GEOMETRIES[name]
    rows, cols = np.array([3, 3, 0]), np.array([4, 0, 1, 1])
    alpha = bring(geometry, RNG.dirichlet(np.ones(3))[None])
    part, whole = np.asarray(geometry.take(rows, cols).mix(alpha)), np.asarray(geometry.mix(alpha))
    assert part == pytest.approx(whole[:, rows][:, :, cols], rel=1e-12, abs=1e-13)


def test_members_may_stand_in_for_each_other_in_their_own_way():
    points = RNG.normal(size=(2, 3, 4))
    places = np.array([[0, 0, 2], [1, 1, 1]])
    for library in (np, torch):
        given = library.asarray(points)
        found = take_members(Home.of(given), given, places)
        for member in range(2):
            assert np.asarray(found[member]) == pytest.approx(points[member][places[member]])


def exact_costs(X: np.ndarray, Y: np.ndarray) -> list[np.ndarray]:
    """Squared distances of every group as fractions."""
    parts = []
    for group in GROUPS:
        costs = np.empty((len(X), len(Y)), dtype=object)
        for i, j in np.ndindex(costs.shape):
            gaps = (Fraction(X[i, k]) - Fraction(Y[j, k]) for k in group)
            costs[i, j] = sum((gap**2 for gap in gaps), Fraction(0))
        parts.append(costs)
    return parts


@pytest.mark.parametrize("name", ["points", "differences", "stack", "negative"])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_errors_are_bounded(name: str, offset: float):
    """Entries may be off, but by no more than is said; with an offset squares lose digits."""
    x, y = X + offset, Y + offset
    truth = exact_costs(x, y)
    stack = np.array([costs.astype(float) for costs in truth])
    if name == "points":
        centre = x.mean(axis=0)
        geometry = PointGeometry((x - centre)[None], (y - centre)[None], MEMBER)
        truth = exact_costs(x, y)
    elif name == "differences":
        groups = Groups.parse(GROUPS, 4)
        geometry = difference_stack(x[None], y[None], groups.flat, groups.offsets)
    else:
        shift = 0.0 if name == "stack" else 2.0
        geometry = StackGeometry(stack[None] - shift, relative=np.finfo(float).eps)
        truth = [np.vectorize(Fraction)(costs) for costs in geometry.C[0]]
    alpha = RNG.dirichlet(np.ones(3))
    mixed = sum(Fraction(w) * costs for w, costs in zip(alpha, truth, strict=True))
    found, off = geometry.mix(alpha[None])[0], geometry.mix_error(alpha[None])
    bound = off.relative[0] * np.abs(found) + off.rows[0][:, None] + off.cols[0]
    assert (np.abs(found - mixed).astype(float) <= bound).all()
    assert bound.max() <= 1e-12
    plan = RNG.random((1, 6, 5))
    plan /= plan.sum()
    phi = geometry.inner(plan)
    sums = [(np.vectorize(Fraction)(plan[0]) * costs).sum() for costs in truth]
    doubt = geometry.inner_error(phi, plan.sum(axis=2), plan.sum(axis=1))
    assert (np.abs(phi[0] - np.array(sums)).astype(float) <= doubt[0]).all()
    assert doubt.max() <= 1e-12


def test_small_differences_keep_their_digits():
    """Points next to each other, far from the others: expanded squares would be noise."""
    x = np.array([[[1e8, 1.0], [-1e8, 2.0]]])
    y = x + np.array([1.0, 0.5])
    costs = difference_stack(x, y, np.arange(2), np.arange(3))
    assert costs.C[0, :, 0, 0].tolist() == [1.0, 0.25]
    assert float(costs.mix_error(np.array([[0.5, 0.5]])).rows.max()) == 0.0


@pytest.mark.parametrize("name", GEOMETRIES)
def test_no_plan_pays_less_than_the_least(name: str):
    geometry = GEOMETRIES[name]
    a, b = RNG.dirichlet(np.ones(6)), RNG.dirichlet(np.ones(5))
    u, v = bring(geometry, a[None]), bring(geometry, b[None])
    least = np.asarray(geometry.least(u, v))[0]
    for group, cost in enumerate(STACK):
        optimum: Any = ot.emd2(a, b, cost)
        assert least[group] <= optimum * (1.0 + 1e-12)
    alpha = RNG.dirichlet(np.ones(3))
    f, g = (
        np.asarray(part)[0]
        for part in geometry.least_potentials(bring(geometry, alpha[None]), u, v)
    )
    mixed = np.einsum("l,lij->ij", alpha, STACK)
    assert (f[:, None] + g <= mixed + 1e-12).all()
    proven = float(a @ f + b @ g)
    assert proven == pytest.approx(alpha @ least, rel=1e-9)


def test_precisions():
    points = GEOMETRIES["points"]
    single = points.single()
    assert single.home.dtype == np.float32
    assert single.double().home.dtype == np.float64
    assert points.double() is points
    assert GEOMETRIES["factored"].single() is GEOMETRIES["factored"]
    assert GEOMETRIES["torch"].single().home.dtype == torch.float32


def test_members_of_a_batch():
    batch = PointGeometry(np.stack([X, 2 * X]), np.stack([Y, 2 * Y]), MEMBER)
    alpha = np.full((2, 3), 1 / 3)
    both = batch.mix(alpha)
    assert both[1] == pytest.approx(4.0 * both[0])
    assert batch.members(np.array([1])).mix(alpha[:1])[0] == pytest.approx(both[1], rel=1e-13)
    assert StackGeometry(both[:, None]).members(np.array([1])).C[0, 0] == pytest.approx(both[1])
