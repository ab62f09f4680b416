"""Certified solutions are those of the plain stack; the quick plan is that of the paper's steps."""

from __future__ import annotations

import numpy as np
import pytest

import frot
from frot import InputError
from frot._base.arrays import to_numpy
from frot.correspondence._layer_costs import layer_costs
from frot.correspondence._transport import paper_plan, paper_solver, solve_layers
from tests.correspondence.layers import SOURCE, TARGET, plain_stack, random_maps

PRIOR = np.arange(1.0, 8.0)


@pytest.fixture(scope="module")
def pair():
    source, target = random_maps(SOURCE, seed=0), random_maps(TARGET, seed=1)
    return source, target, plain_stack(source, target)


@pytest.mark.parametrize(("device", "budget"), [(None, 1e9), (None, 0.0), ("cpu", 1e9)])
@pytest.mark.parametrize(
    "terms", [{}, {"prior": PRIOR}, {"eta": 0.0}, {"normalise": "mean"}], ids=str
)
def test_the_interval_holds_the_optimum_of_the_stack(pair, terms, budget, device):
    source, target, stack = pair
    costs = layer_costs(source, target, budget=budget, device=device)
    found = solve_layers(costs, tol=2e-4, **terms)
    truth = frot.solve_costs(stack, eps=0.1, solver="entropic", tol=1e-7, **{"eta": 0.3, **terms})
    assert found.status is frot.Status.CONVERGED
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert np.abs(np.asarray(found.plan).sum(axis=1) - 1.0 / 63).max() <= 1e-8
    assert np.abs(np.asarray(found.plan) - np.asarray(truth.plan)).sum() <= 0.05


@pytest.mark.parametrize("device", [None, "cpu"])
def test_the_papers_steps_are_those_on_the_stack(pair, device):
    source, target, stack = pair
    b = np.random.default_rng(0).random(88)
    paper = paper_solver(steps=3, tol=1e-7)
    with pytest.warns(frot.ConvergenceWarning):
        truth = frot.solve_costs(stack, b=b / b.sum(), eta=0.3, solver=paper, prior=PRIOR)
    costs = layer_costs(source, target, dtype="float64", device=device)
    found = solve_layers(costs, b=b, eps=0.0, solver=paper, prior=PRIOR)
    assert found.iterations == 3
    assert np.abs(np.asarray(found.plan) - np.asarray(truth.plan)).sum() <= 1e-9
    assert np.allclose(np.asarray(found.alpha), truth.alpha)
    rough = layer_costs(source, target, device=device)
    found = solve_layers(rough, b=b, eps=0.0, solver=paper_solver(tol=1e-5), prior=PRIOR)
    assert np.abs(np.asarray(found.plan) - np.asarray(truth.plan)).sum() <= 1e-4


def test_regret_and_other_solvers_work_on_the_stack(pair):
    source, target, stack = pair
    costs = layer_costs(source[:3], target[:3], dtype="float64")
    found = solve_layers(costs, normalise="regret", names=["a", "b", "c"], tol=1e-6)
    truth = frot.solve_costs(
        stack[:3], eta=0.3, eps=0.1, normalise="regret", solver="entropic", tol=1e-6
    )
    assert abs(found.value - truth.value) <= 1e-5
    assert found.names == ("a", "b", "c")
    exact = solve_layers(costs, eta=0.0, eps=0.0, solver=frot.Exact())
    assert abs(exact.value - frot.solve_costs(stack[:3]).value) <= 1e-9


def test_a_stack_without_room_is_refused(pair, monkeypatch):
    source, target, _ = pair
    monkeypatch.setattr("frot.correspondence._transport.MEMORY_BUDGET", 1000.0)
    with pytest.raises(frot.InputError, match="need a stack of"):
        solve_layers(layer_costs(source, target), normalise="regret")


def test_kernels_are_kept_whatever_their_size(pair, monkeypatch):
    source, target, _ = pair
    expected = solve_layers(layer_costs(source, target))
    monkeypatch.setattr("frot.solvers.sinkhorn.dense.MATRICES", 10_000_000)
    found = solve_layers(layer_costs(source, target))
    assert found.value == expected.value


@pytest.fixture(scope="module")
def maps():
    return random_maps(SOURCE, seed=0), random_maps(TARGET, seed=1)


@pytest.mark.parametrize(("device", "budget"), [(None, 1e9), (None, 0.0), ("cpu", 1e9)])
def test_it_is_the_certified_solvers(maps, device, budget):
    rng = np.random.default_rng(0)
    a, b, prior = rng.random(63), rng.random(88), rng.random(7) + 0.1
    b[3:6] = 0.0
    terms = {"eta": 0.2, "prior": prior}
    costs = layer_costs(*maps, device=device, budget=budget)
    quick = paper_plan(costs, a, b, steps=4, eps=0.1, tol=1e-6, **terms)
    proven = solve_layers(costs, a, b, eps=0.0, solver=paper_solver(4, 0.1, tol=1e-6), **terms)
    assert np.abs(to_numpy(quick.plan) - np.asarray(proven.plan)).sum() <= 1e-5
    assert np.abs(quick.phi - to_numpy(proven.phi)).max() <= 1e-5
    assert np.abs(quick.alpha - to_numpy(proven.alpha)).max() <= 1e-5


def test_rows_are_exact_and_columns_within_the_tolerance(maps):
    found = paper_plan(layer_costs(*maps), tol=1e-3)
    rows, columns = found.plan.sum(axis=1), found.plan.sum(axis=0)
    assert np.abs(rows - 1.0 / 63).sum() <= 1e-6
    assert 0.0 < np.abs(columns - 1.0 / 88).sum() <= found.error + 1e-6
    assert found.error <= 1e-3
    assert 0 < found.sweeps < 100
    short = paper_plan(layer_costs(*maps), eps=0.02, tol=1e-9, max_sweeps=2)
    assert short.sweeps == 6
    assert short.error > 1e-9


@pytest.mark.parametrize(
    ("options", "message"),
    [({"eta": 0.0}, "eta"), ({"eps": 0.0}, "eps"), ({"steps": 0}, "steps: must be >= 1")],
)
def test_what_it_cannot_do_is_refused(maps, options, message):
    with pytest.raises(InputError, match=message):
        paper_plan(layer_costs(*maps), **options)
