"""The quick plan is that of the paper's steps, and says how far its columns are off."""

from __future__ import annotations

import numpy as np
import pytest

from frot import InputError
from frot._base.arrays import to_numpy
from frot.correspondence._grid_costs import layer_costs
from frot.correspondence._layer_plan import paper_plan
from frot.correspondence._layer_solve import paper_solver, solve_layers
from tests.correspondence.layers import SOURCE, TARGET, random_maps


@pytest.fixture(scope="module")
def pair():
    return random_maps(SOURCE, seed=0), random_maps(TARGET, seed=1)


@pytest.mark.parametrize(("device", "budget"), [(None, 1e9), (None, 0.0), ("cpu", 1e9)])
def test_it_is_the_certified_solvers(pair, device, budget):
    rng = np.random.default_rng(0)
    a, b, prior = rng.random(63), rng.random(88), rng.random(7) + 0.1
    b[3:6] = 0.0
    terms = {"eta": 0.2, "eps": 0.1, "prior": prior}
    costs = layer_costs(*pair, device=device, budget=budget)
    quick = paper_plan(costs, a, b, steps=4, tol=1e-6, **terms)
    proven = solve_layers(costs, a, b, solver=paper_solver(4, tol=1e-6), **terms)
    assert np.abs(to_numpy(quick.plan) - np.asarray(proven.plan)).sum() <= 1e-5
    assert np.abs(quick.phi - to_numpy(proven.phi)).max() <= 1e-5
    assert np.abs(quick.alpha - to_numpy(proven.alpha)).max() <= 1e-5


def test_rows_are_exact_and_columns_within_the_tolerance(pair):
    found = paper_plan(layer_costs(*pair), tol=1e-3)
    rows, columns = found.plan.sum(axis=1), found.plan.sum(axis=0)
    assert np.abs(rows - 1.0 / 63).sum() <= 1e-6
    assert 0.0 < np.abs(columns - 1.0 / 88).sum() <= found.error + 1e-6
    assert found.error <= 1e-3
    assert 0 < found.sweeps < 100
    short = paper_plan(layer_costs(*pair), eps=0.02, tol=1e-9, max_sweeps=2)
    assert short.sweeps == 6
    assert short.error > 1e-9


@pytest.mark.parametrize(
    ("options", "message"),
    [({"eta": 0.0}, "eta"), ({"eps": 0.0}, "eps"), ({"steps": 0}, "steps: must be >= 1")],
)
def test_what_it_cannot_do_is_refused(pair, options, message):
    with pytest.raises(InputError, match=message):
        paper_plan(layer_costs(*pair), **options)
