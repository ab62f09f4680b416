from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from frot._base.arrays import to_numpy
from frot.correspondence._features import FeatureMap, Grid
from frot.correspondence.layer_costs import at_most
from frot.correspondence.layers import LayerPair, common_grid
from tests.correspondence.layers import SOURCE, TARGET, plain_stack, random_maps

DEVICES = [None, "cpu"]


@pytest.fixture(params=DEVICES)
def pair(request):
    return LayerPair(
        tuple(random_maps(SOURCE, seed=1)), tuple(random_maps(TARGET, seed=2)), 0, request.param
    )


def upsampled(maps, grid_of=0):
    """Every channel on the grid of one layer, as torch does it: a list of (n, channels)."""
    size = maps[grid_of].values.shape[1:]
    for one in maps:
        values = torch.tensor(one.values, dtype=torch.float64)[None]
        fine = functional.interpolate(values, size, mode="bilinear", align_corners=True)
        yield fine[0].flatten(1).T.numpy()


def test_layers_end_to_end_have_one_cosine(pair):
    X, Y = (np.concatenate(list(upsampled(maps)), axis=1) for maps in (pair.source, pair.target))
    cosines = X @ Y.T / np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Y, axis=1))
    assert to_numpy(pair.end_to_end) == pytest.approx(cosines, abs=2e-6)


def test_products_of_the_vectors_are_the_cosines(pair):
    X, Y = (to_numpy(side) for side in pair.vectors())
    costs = to_numpy(pair.costs.stack())
    ends = np.cumsum([one.channels for one in pair.source])[:-1]
    for cost, x, y in zip(costs, *(np.split(side, ends, axis=1) for side in (X, Y)), strict=True):
        assert cost == pytest.approx(2.0 - 2.0 * x @ y.T, abs=1e-5)


def test_mixed_costs_are_those_of_the_stack(pair):
    alpha = np.random.default_rng(0).dirichlet(np.ones(len(pair.names)))
    stack = plain_stack(pair.source, pair.target)
    expected = np.einsum("l,lij->ij", alpha, stack)
    assert to_numpy(pair.mixed(alpha)) == pytest.approx(expected, abs=1e-5)


def test_a_cell_without_features_looks_like_nothing():
    maps = random_maps(((3, 3), (3, 3)), (4, 6))
    for one in maps:
        one.values[:, 1, 1] = 0.0
    pair = LayerPair(tuple(maps), tuple(maps))
    assert (pair.end_to_end[4] == 0.0).all()
    assert pair.end_to_end[0, 0] == pytest.approx(1.0, abs=1e-6)


def test_the_common_grid_does_not_depend_on_the_order_of_layers():
    maps = random_maps([(3, 4), (12, 16), (6, 8)], [2, 2, 2], 0)
    maps = [replace(one, stride=stride) for one, stride in zip(maps, (32, 8, 16), strict=True)]
    assert [common_grid(maps, stride) for stride in (8, 9, 32)] == [1, 2, 0]


def test_the_common_grid_is_the_first_of_its_stride():
    maps = [FeatureMap("", np.zeros((1, 1, 1)), stride, 1) for stride in (2, 4, 4, 8, 16)]
    found = {stride: common_grid(maps, stride) for stride in (None, 2, 3, 4, 8, 9, 99)}
    assert found == {None: 0, 2: 0, 3: 1, 4: 1, 8: 3, 9: 4, 99: 4}


def test_finer_layers_come_to_the_grid_and_coarser_stay():
    fine, coarse = random_maps(((8, 6), (2, 2)), (3, 3))
    grid = Grid(4, 3, 8.0, 19.0)
    brought = at_most(fine, grid)
    assert brought.grid == Grid(4, 3, 8.0, fine.receptive_field)
    # Corners stay corners.
    assert brought.values[:, ::3, ::2] == pytest.approx(fine.values[:, ::7, ::5], abs=1e-6)
    assert at_most(coarse, grid) is coarse
