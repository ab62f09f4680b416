"""Costs on the layers' own grids are those of the plain stack, on the host and in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import frot
from frot import InputError
from frot._base.arrays import Home, to_numpy
from frot.correspondence._features import FeatureMap
from frot.correspondence.layer_costs import SUMMED, layer_costs
from frot.correspondence.layers import LayerPair
from tests.correspondence.layers import SOURCE, TARGET, papers_stack, plain_stack, random_maps

N, M = 63, 88
HOMES = {
    "numpy": Home.of(np.zeros(1, dtype=np.float32)),
    "numpy in double": Home.of(np.zeros(1)),
    "torch": Home.of(torch.zeros(1)),
}


@pytest.fixture(scope="module")
def pair():
    source, target = random_maps(SOURCE, seed=0), random_maps(TARGET, seed=1)
    source[3].values[:, :2, :2] = 0.0
    return source, target, plain_stack(source, target)


def costs_of(source, target, home="numpy", grid_of=0):
    return layer_costs(source, target, (source[grid_of].grid, target[grid_of].grid), HOMES[home])


@pytest.mark.parametrize("home", HOMES)
def test_they_agree_with_the_plain_stack(pair, home):
    source, target, stack = pair
    costs = costs_of(source, target, home)
    close = 4e-5 if costs.home.dtype == costs.home.xp.float32 else 2e-5
    rng = np.random.default_rng(2)
    alpha, plan = rng.dirichlet(np.ones(len(stack))), rng.dirichlet(np.ones(N * M)).reshape(N, M)
    u, v = rng.dirichlet(np.ones(N)), rng.dirichlet(np.ones(M))
    bring = costs.home.bring
    mixed = np.tensordot(alpha, stack, 1)
    assert np.abs(to_numpy(costs.stack()) - stack).max() <= close
    assert np.abs(to_numpy(costs.mix(bring(alpha))) - mixed).max() <= close
    phi = to_numpy(costs.inner(bring(plan)))
    assert np.abs(phi - (stack * plan).sum(axis=(1, 2))).max() <= close
    product = to_numpy(costs.product(bring(u), bring(v)))
    assert np.abs(product - np.einsum("i,lij,j->l", u, stack, v)).max() <= close
    rows, cols = rng.integers(N, size=40), rng.integers(M, size=40)
    rows[:2], cols[:2] = (0, N - 1), (M - 1, 0)
    arcs = to_numpy(costs.at(rows, cols))
    assert np.abs(arcs - stack[:, rows, cols]).max() <= close


@pytest.mark.parametrize("part", [slice(0, 7), slice(5, 29), slice(10, 12), slice(14, 21)])
def test_rows_may_begin_and_end_within_a_line(pair, part):
    source, target, stack = pair
    costs = costs_of(source, target, "numpy in double").rows(part)
    alpha = np.random.default_rng(0).dirichlet(np.ones(len(stack)))
    plan = np.random.default_rng(1).random((part.stop - part.start, M))
    close: Any = {"rtol": 1e-5, "atol": 1e-4}
    assert np.allclose(costs.mix(alpha), np.tensordot(alpha, stack[:, part], 1), **close)
    expected = (stack[:, part] * plan).sum(axis=(1, 2))
    assert np.allclose(costs.inner(plan), expected, **close)
    assert costs.shape == (len(stack), part.stop - part.start, M)
    u = np.random.default_rng(2).random(part.stop - part.start)
    expected = np.einsum("i,lij->l", u, stack[:, part])
    assert np.allclose(costs.product(u, np.ones(M)), expected, **close)
    taken = costs.take(np.array([1, 0]), np.array([3, 80])).stack()
    assert np.allclose(taken, stack[:, part][:, [1, 0]][:, :, [3, 80]], atol=1e-4)


@pytest.mark.parametrize("library", ["numpy in double", "torch"])
def test_cells_without_weight_are_left_out(pair, library):
    """A part of some rows and columns says what the stack does, and forms no rows beyond it."""
    source, target, stack = pair
    i, j = np.array([11, 9, 17, 9]), np.array([3, 80, 2])
    costs = costs_of(source, target, library).take(i, j)
    stack, bring = stack[:, i][:, :, j], costs.home.bring
    rng = np.random.default_rng(0)
    alpha, plan = rng.dirichlet(np.ones(len(stack))), rng.random((4, 3))
    u, v = rng.random(4), rng.random(3)
    close: Any = {"rtol": 1e-4, "atol": 1e-4}
    assert costs.shape == stack.shape
    assert costs.span == (9, 18)
    mixed = np.tensordot(alpha, stack, 1)
    assert np.allclose(to_numpy(costs.mix(bring(alpha))), mixed, **close)
    assert np.allclose(to_numpy(costs.rows(slice(1, 3)).mix(bring(alpha))), mixed[1:3], **close)
    phi = to_numpy(costs.inner(bring(plan)))
    assert np.allclose(phi, (stack * plan).sum(axis=(1, 2)), **close)
    product = to_numpy(costs.product(bring(u), bring(v)))
    assert np.allclose(product, np.einsum("i,lij,j->l", u, stack, v), **close)
    again = costs.take(np.array([2, 0]), np.array([1]))
    assert np.allclose(to_numpy(again.stack()), stack[:, [2, 0]][:, :, [1]], **close)


def test_dead_cells_have_the_cosine_zero():
    dead = FeatureMap("dead", np.zeros((4, 2, 2), dtype="float32"), 8, 8)
    alive = FeatureMap("alive", np.ones((4, 4, 4), dtype="float32"), 4, 8)
    stack = costs_of([alive, dead], [alive, dead]).stack()
    # No cosine exceeds one: vectors are shorter than that by a little.
    assert 0.0 <= stack[0].min() <= stack[0].max() <= 2e-5
    assert (stack[1] == 2.0).all()


def test_the_grid_may_be_that_of_any_layer(pair):
    source, target, _ = pair
    for layer in (2, 4, 6):
        costs = costs_of(source, target, grid_of=layer)
        assert np.allclose(costs.stack(), plain_stack(source, target, layer), atol=4e-5)


@pytest.mark.parametrize("layer", [0, 4])
def test_the_papers_costs_are_cosines_of_interpolated_vectors(pair, layer):
    source, target, _ = pair
    costs = LayerPair(tuple(source), tuple(target), layer).paper_costs
    assert np.allclose(costs.stack(), papers_stack(source, target, layer), atol=4e-5)


def test_what_rounding_leaves_is_within_its_bounds(pair):
    """Against the same cosines mixed and summed in double precision."""
    source, target, _ = pair
    costs = costs_of(source, target).double()
    n, m = np.indices((N, M)).reshape(2, -1)
    exact = costs.at(n, m).reshape(-1, N, M)
    rng = np.random.default_rng(0)
    for _ in range(5):
        alpha = rng.dirichlet(np.ones(len(exact)))
        error = np.abs(costs.mix(alpha) - np.tensordot(alpha, exact, 1)).max()
        assert error > 1e-9
        off = costs.rounding(alpha).relative
        mixed = np.tensordot(alpha, exact, 1)
        assert (np.abs(costs.mix(alpha) - mixed) <= off * mixed).all()
        assert off < 1e-5
        plan = rng.dirichlet(np.full(N * M, 0.1)).reshape(N, M)
        phi = costs.inner(plan)
        error = np.abs(phi - (exact * plan).sum(axis=(1, 2)))
        assert (error <= costs.doubt(phi, None, None)).all()
    assert costs.single().mix(np.ones(len(exact), "f4")).dtype == np.float32


def test_sums_over_more_columns_than_are_taken_at_once():
    maps = [FeatureMap("x", np.random.default_rng(0).normal(size=(3, 2, SUMMED)), 8, 8)]
    costs, plan = costs_of(maps, maps), np.full((2 * SUMMED, 2 * SUMMED), 0.25 / SUMMED**2)
    assert costs.inner(plan)[0] == pytest.approx(costs.stack().mean(), abs=1e-5)


def test_solvers_take_them_as_they_are(pair):
    source, target, stack = pair
    layers = LayerPair(tuple(source), tuple(target))
    options: Any = ({"eps": 0.1}, {"eps": 0.1, "normalise": "mean"})
    for given in options:
        ours = frot.solve_costs(layers.costs, eta=0.3, tol=1e-3, **given)
        plain = frot.solve_costs(stack, eta=0.3, tol=1e-6, **given)
        assert ours.lower <= plain.value <= ours.upper
        assert ours.gap <= 1e-3
    # Some cells without weight.
    a = np.full(N, 1.0)
    a[:9] = 0.0
    ours = frot.solve_costs(layers.costs, a, eta=0.3, eps=0.1, normalise_weights=True)
    plain = frot.solve_costs(stack, a, eta=0.3, eps=0.1, tol=1e-6, normalise_weights=True)
    assert ours.lower <= plain.upper
    assert plain.lower <= ours.upper
    assert np.abs(ours.potentials[0] - plain.potentials[0]).max() < 2e-2


def _map(values) -> FeatureMap:
    return FeatureMap("x", np.asarray(values, dtype="float32"), 4, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, t: (s[:2], t), "source, target: have 2 and 7 layers"),
        (lambda s, t: (s[:1], t[1:2]), "layer 'layer0' has 8 and 130 channels"),
        (lambda s, t: ([_map(np.zeros((3, 0, 2)))], [_map(np.zeros((3, 1, 2)))]), "no cells"),
        (lambda s, t: ([_map([[[np.nan]]])], [_map([[[1.0]]])]), "infinite or NaN"),
    ],
)
def test_maps_that_do_not_belong_together_are_refused(pair, change, message):
    source, target, _ = pair
    with pytest.raises(InputError, match=message):
        costs_of(*change(source, target))
