"""Costs in batches: points, stacks and NumPy's kinds all mean the same matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from frot._costs import FactoredCosts, RescaledCosts, StackedCosts
from frot._entropic._costs_geometry import CostsGeometry
from frot._entropic._geometry import Geometry, PointGeometry, StackGeometry
from frot._groups import Groups
from tests.entropic.bounds import stack_of

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 4)), RNG.normal(size=(5, 4))
GROUPS = [[0, 1], [2, 3], [1, 3]]
STACK = stack_of(X, Y, GROUPS)
MEMBER = np.array([[k in group for k in range(4)] for group in GROUPS], dtype=float)
FACTORED = FactoredCosts.squared_euclidean(X, Y, Groups.parse(GROUPS, 4))
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
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_errors_are_bounded(name: str, offset: float):
    """Entries may be off, but by no more than is said; with an offset squares lose digits."""
    if name in ("stack", "stacked", "rescaled", "torch"):
        geometry = GEOMETRIES[name]
    elif name == "points":
        geometry = PointGeometry(X[None] + offset, Y[None] + offset, MEMBER)
    else:
        costs = FactoredCosts(X + offset, Y + offset, FACTORED.membership)
        geometry = CostsGeometry(costs)
    alpha = bring(geometry, RNG.dirichlet(np.ones(3))[None])
    exact = stack_of(X + offset, Y + offset, GROUPS) if name in ("points", "factored") else STACK
    mixed = np.einsum("l,lij->ij", np.asarray(alpha)[0], exact)
    off = np.abs(np.asarray(geometry.mix(alpha))[0] - mixed).max()
    bound = float(geometry.mix_error(alpha)[0])
    assert off <= bound <= 1e-4 * (1.0 + offset**2)
    plan = RNG.random((1, 6, 5))
    plan /= plan.sum()
    phi = geometry.inner(bring(geometry, plan))
    truth = np.einsum("bij,lij->bl", plan, exact)
    doubt = np.asarray(geometry.inner_error(phi))
    assert (np.abs(np.asarray(phi) - truth) <= doubt).all()


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
