"""Pairs one after another: as accurate as asked for, whatever half precision can do."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from frot import InputError
from frot.correspondence._grid_costs import layer_costs
from frot.correspondence._layer_plan import paper_plan
from frot.correspondence.cuda._planner import PairPlanner
from tests.correspondence.layers import SOURCE, TARGET, random_maps


def test_pairs_of_any_shapes_one_after_another():
    planner = PairPlanner(device="cpu", tol=1e-5)
    rng = np.random.default_rng(0)
    pairs = [(SOURCE, TARGET), (SOURCE, TARGET), (TARGET, SOURCE)]
    for seed, grids in enumerate(pairs):
        source, target = random_maps(grids[0], seed=seed), random_maps(grids[1], seed=seed + 9)
        n, m = source[0].grid.count, target[0].grid.count
        a, b, prior = rng.random(n), rng.random(m), rng.random(7) + 0.1
        found = planner(source, target, a, b, prior)
        costs = layer_costs(source, target, dtype="float64")
        expected = paper_plan(costs, a, b, prior=prior, tol=1e-7)
        assert found.error <= 1e-5
        assert np.abs(found.plan.numpy() - expected.plan).sum() <= 1e-4
        assert np.abs(found.alpha - expected.alpha).max() <= 1e-5
        assert np.abs(found.phi - expected.phi).max() <= 1e-5


def test_sweeps_are_added_until_the_columns_are_right():
    source, target = random_maps(SOURCE, seed=0), random_maps(TARGET, seed=1)
    few = PairPlanner(device="cpu", eps=0.03, tol=1e-4, sweeps=1)(source, target)
    many = PairPlanner(device="cpu", eps=0.03, tol=1e-4, sweeps=100)(source, target)
    assert few.error <= 1e-4
    assert 3 < few.sweeps <= 300
    assert np.abs((few.plan - many.plan).numpy()).sum() <= 2e-3


def test_where_sweeps_do_not_do_single_precision_takes_over(monkeypatch):
    monkeypatch.setattr("frot.correspondence.cuda._planner.MOST_SWEEPS", 1)
    source, target = random_maps(SOURCE, seed=0), random_maps(TARGET, seed=1)
    found = PairPlanner(device="cpu", eps=0.03, tol=1e-5, sweeps=1)(source, target)
    assert found.error <= 1e-5
    assert found.sweeps > 3


def test_it_is_pickled_without_its_buffers():
    planner = PairPlanner(device="cpu")
    maps = random_maps(SOURCE, seed=0)
    first = planner(maps, maps)
    size = len(pickle.dumps(planner))
    assert size < 2000
    again = pickle.loads(pickle.dumps(planner))(maps, maps)
    assert np.array_equal(first.plan.numpy(), again.plan.numpy())


def test_bad_input_is_refused_before_any_work():
    maps = random_maps(SOURCE, seed=0)
    with pytest.raises(InputError, match="eta"):
        PairPlanner(eta=0.0, device="cpu")(maps, maps)
    with pytest.raises(InputError, match="source, target: have"):
        PairPlanner(device="cpu")(maps[:1], maps)
    with pytest.raises(InputError, match="a: "):
        PairPlanner(device="cpu")(maps, maps, a=np.ones(3))
