"""Costs on coarse grids are those of the plain stack, in every form and precision."""

from __future__ import annotations

import numpy as np
import pytest

from frot import InputError
from frot._base.arrays import to_numpy
from frot.correspondence._cosines import CoarseLayers, DenseLayers, FactoredLayers
from frot.correspondence._features import FeatureMap
from frot.correspondence._interpolation import Line, inverse_norms
from frot.correspondence._layer_costs import layer_costs
from tests.correspondence.layers import SOURCE, TARGET, plain_stack, random_maps

N, M = 63, 88
# Everything kept, nothing kept, and one layer of those on the common grid.
BUDGETS = {"kept": 1e9, "none": 0.0, "one": 6.0 * N * M}


@pytest.fixture(scope="module")
def pair():
    source, target = random_maps(SOURCE, seed=0), random_maps(TARGET, seed=1)
    source[3].values[:, :2, :2] = 0.0
    return source, target, plain_stack(source, target)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("budget", BUDGETS)
def test_every_form_agrees_with_the_plain_stack(pair, budget, device, dtype):
    source, target, stack = pair
    # At single precision a share of the costs' mean; the products sum over up to 130 channels.
    close = 1e-6 if dtype == "float32" else 1e-12
    size = 1.0 if dtype == "float32" else 2.0
    costs = layer_costs(source, target, device=device, dtype=dtype, budget=size * BUDGETS[budget])
    rng = np.random.default_rng(2)
    alpha, plan = rng.dirichlet(np.ones(len(stack))), rng.dirichlet(np.ones(N * M)).reshape(N, M)
    u, v = rng.dirichlet(np.ones(N)), rng.dirichlet(np.ones(M))
    bring = costs.home.bring
    mixed = np.tensordot(alpha, stack, 1)
    assert np.abs(to_numpy(costs.stack())[0] - stack).max() <= close
    assert np.abs(to_numpy(costs.mix(bring(alpha[None])))[0] - mixed).max() <= close
    phi = to_numpy(costs.inner(bring(plan[None])))[0]
    assert np.abs(phi - (stack * plan).sum(axis=(1, 2))).max() <= close
    product = to_numpy(costs.product(bring(u[None]), bring(v[None])))[0]
    assert np.abs(product - np.einsum("i,lij,j->l", u, stack, v)).max() <= close
    rows, cols = rng.integers(N, size=40), rng.integers(M, size=40)
    arcs = to_numpy(costs.at(costs.home.indices(rows), costs.home.indices(cols)))
    assert np.abs(arcs - stack[:, rows, cols]).max() <= close


@pytest.mark.parametrize("budget", BUDGETS.values())
@pytest.mark.parametrize("part", [slice(0, 7), slice(5, 29), slice(10, 12), slice(14, 21)])
def test_rows_may_begin_and_end_within_a_line(pair, budget, part):
    source, target, stack = pair
    costs = layer_costs(source, target, dtype="float64", budget=2.0 * budget).rows(part)
    alpha = np.random.default_rng(0).dirichlet(np.ones(len(stack)))
    plan = np.random.default_rng(1).random((part.stop - part.start, M))
    assert np.allclose(costs.mix(alpha[None])[0], np.tensordot(alpha, stack[:, part], 1))
    assert np.allclose(costs.inner(plan[None])[0], (stack[:, part] * plan).sum(axis=(1, 2)))
    assert costs.shape == (1, len(stack), part.stop - part.start, M)
    u = np.random.default_rng(2).random(part.stop - part.start)
    expected = np.einsum("i,lij->l", u, stack[:, part])
    assert np.allclose(costs.product(u[None], np.ones((1, M)))[0], expected)


def test_the_forms_are_chosen_by_the_budget(pair):
    source, target, _ = pair
    forms = [type(part) for part in layer_costs(source, target, budget=BUDGETS["one"]).parts]
    assert forms == [DenseLayers, FactoredLayers, CoarseLayers, CoarseLayers, CoarseLayers]
    assert [type(part) for part in layer_costs(source, target).parts] == [DenseLayers]


def test_dead_cells_have_the_cosine_zero():
    dead = FeatureMap("dead", np.zeros((4, 2, 2), dtype="float32"), 8, 8)
    alive = FeatureMap("alive", np.ones((4, 4, 4), dtype="float32"), 4, 8)
    for budget in BUDGETS.values():
        stack = layer_costs([alive, dead], [alive, dead], budget=budget).stack()[0]
        assert np.abs(stack[0]).max() <= 1e-6
        assert (stack[1] == 2.0).all()


def test_a_vector_that_cancels_between_two_cells_has_no_direction():
    values = np.array([[[1.0, -1.0]], [[0.1, -0.1]]])
    found = inverse_norms(values, layer_costs([_map(values)], [_map(values)]).home,
                          Line.between(1, 1), Line.between(2, 3))  # fmt: skip
    assert found[0, 1] == 0.0
    assert np.allclose(found[0, [0, 2]], 1.0 / np.sqrt(1.01))


def _map(values) -> FeatureMap:
    return FeatureMap("x", np.asarray(values, dtype="float32"), 4, 4)


def test_huge_and_tiny_features_neither_overflow_nor_vanish(pair):
    source, target, stack = pair
    scaled = [
        [FeatureMap(one.name, one.values * np.float32(s), 1, 1) for one in maps]
        for maps, s in ((source, 1e25), (target, 1e-25))
    ]
    for budget in BUDGETS.values():
        assert np.abs(layer_costs(*scaled, budget=budget).stack()[0] - stack).max() <= 1e-6


def test_the_grid_may_be_that_of_any_layer(pair):
    source, target, _ = pair
    for layer in (2, 4, 6):
        costs = layer_costs(source, target, grid_of=layer, dtype="float64", budget=0.0)
        assert np.allclose(costs.stack()[0], plain_stack(source, target, grid_of=layer))


def test_single_and_double_are_the_same_costs(pair):
    source, target, stack = pair
    precise = layer_costs(source, target, dtype="float64", budget=0.0)
    rough = precise.single()
    assert rough.stack().dtype == np.float32
    assert np.abs(rough.stack()[0] - stack).max() <= 1e-6
    wide = layer_costs(source, target).double()
    assert wide.stack().dtype == np.float64
    alpha = np.full((1, len(stack)), 1.0 / len(stack))
    error = np.abs(wide.mix(alpha)[0] - stack.mean(axis=0)).max()
    # The bound is that of the precision it was worked out in, and holds.
    assert 1e-8 < error <= float(wide.mix_error(alpha).rows.max()) < 1e-4
    plan = np.full((1, N, M), 1.0 / (N * M))
    phi = wide.inner(plan)
    assert (np.abs(phi[0] - stack.mean(axis=(1, 2))) <= wide.inner_error(phi, None, None)[0]).all()


def test_factors_scale_the_costs(pair):
    source, target, stack = pair
    factor = np.arange(1.0, len(stack) + 1.0)
    costs = layer_costs(source, target, dtype="float64", budget=0.0).rescaled(factor)
    assert np.allclose(costs.stack()[0], factor[:, None, None] * stack)
    assert np.allclose(costs.at(np.array([3]), np.array([4]))[:, 0], factor * stack[:, 3, 4])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, t: ([], []), "source, target: have 0 and 0 layers"),
        (lambda s, t: (s[:2], t), "source, target: have 2 and 7 layers"),
        (lambda s, t: (s[:1], t[1:2]), "layer 'layer0' has 8 and 130 channels"),
        (lambda s, t: ([_map(np.zeros((3, 0, 2)))], [_map(np.zeros((3, 1, 2)))]), "no cells"),
        (lambda s, t: ([_map([[[np.nan]]])], [_map([[[1.0]]])]), "infinite or NaN"),
    ],
)
def test_maps_that_do_not_belong_together_are_refused(pair, change, message):
    source, target, _ = pair
    with pytest.raises(InputError, match=message):
        layer_costs(*change(source, target))


def test_bad_options_are_refused(pair):
    source, target, _ = pair
    with pytest.raises(InputError, match="grid_of: is 7"):
        layer_costs(source, target, grid_of=7)
    with pytest.raises(InputError, match="dtype: is 'float16'"):
        layer_costs(source, target, dtype="float16")
