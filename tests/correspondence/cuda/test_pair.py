"""Plans on a device are the paper's, as accurate as asked for, whatever half precision can do."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from frot import InputError
from frot._base.arrays import has_triton
from frot.correspondence._layer_costs import layer_costs
from frot.correspondence._transport import paper_plan, solve_layers
from frot.correspondence.cuda._plain import spread
from frot.correspondence.cuda.cosines import Side, cosine_factors, make_groups, padded, products
from frot.correspondence.cuda.pair import PairPlanner, PairSteps
from frot.solvers import Entropic
from tests.correspondence.layers import SOURCE, TARGET, plain_stack, random_maps

ROOT = Path(__file__).resolve().parents[3]
CUDA = torch.cuda.is_available()
TRITON = has_triton()


def some_maps():
    source, target = random_maps(SOURCE, seed=0), random_maps(TARGET, seed=1)
    source[3].values[:, :2, :2] = 0.0
    return source, target


def steps_of(source, target, **options) -> PairSteps:
    shapes = [[one.values.shape for one in maps] for maps in (source, target)]
    steps = PairSteps(*shapes, **{"sweeps": 12, **options})
    steps.put(*[[one.values for one in maps] for maps in (source, target)])
    steps.run()
    return steps


@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-5), (torch.float16, 1e-3)])
def test_the_stack_is_the_plain_one(dtype, close):
    source, target = some_maps()
    steps = steps_of(source, target, device="cpu", dtype=dtype)
    cosines = 1.0 - 0.5 * plain_stack(source, target)[steps.order]
    n, m = steps.shape
    found = steps.kept.values[:, :n, :m].float().numpy()
    assert np.abs(found - cosines).max() <= close
    assert not steps.kept.values[:, n:].any()
    assert not steps.kept.values[:, :, m:].any()


@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-5), (torch.float16, 2e-3)])
def test_the_steps_are_the_papers(dtype, close):
    source, target = some_maps()
    expected = paper_plan(layer_costs(source, target, dtype="float64"), tol=1e-7)
    steps = steps_of(source, target, device="cpu", dtype=dtype)
    assert np.abs(steps.plan.numpy() - expected.plan).sum() <= close
    assert np.abs(steps.phi.numpy() - expected.phi[steps.order]).max() <= 0.1 * close
    assert np.abs(steps.alpha.numpy() - expected.alpha[steps.order]).max() <= 0.1 * close
    assert 0.0 <= steps.error <= 1e-4


def test_weights_of_cells_and_layers_count():
    source, target = some_maps()
    rng = np.random.default_rng(0)
    a, b, prior = rng.random(63), rng.random(88), rng.random(7) + 0.1
    a[:3], b[5:9] = 0.0, 0.0
    costs = layer_costs(source, target, dtype="float64")
    expected = paper_plan(costs, a, b, prior=prior, tol=1e-7)
    shapes = [[one.values.shape for one in maps] for maps in (source, target)]
    steps = PairSteps(*shapes, sweeps=15, device="cpu")
    steps.put(*[[one.values for one in maps] for maps in (source, target)])
    steps.a[:63] = torch.tensor(a / a.sum())
    steps.b[:88] = torch.tensor(b / b.sum())
    steps.log_prior[:] = torch.tensor(np.log(prior / prior.sum())[steps.order])
    steps.run()
    assert np.abs(steps.plan.numpy() - expected.plan).sum() <= 1e-5
    assert np.abs(steps.phi.numpy() - expected.phi[steps.order]).max() <= 1e-5


@pytest.mark.skipif(not TRITON, reason="Triton is not installed")
def test_triton_agrees_with_plain_torch_in_its_interpreter():
    # The interpreter has to be chosen before Triton is imported, and is slow. Some versions of it
    # cannot read the bound of a loop from some versions of NumPy.
    code = """
from triton.runtime.errors import InterpreterError
from tests.correspondence.cuda.test_pair import some_maps, steps_of
options = dict(device="cpu", sweeps=2, steps=2)
try:
    one = steps_of(*some_maps(), kernels="triton", **options)
except InterpreterError as error:
    raise SystemExit(77 if "0-dimensional" in str(error) else str(error))
other = steps_of(*some_maps(), kernels="torch", **options)
assert (one.plan - other.plan).abs().sum() <= 1e-5
assert (one.phi - other.phi).abs().max() <= 1e-5
assert abs(one.error - other.error) <= 1e-5
"""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("this Triton's interpreter cannot loop with this NumPy")
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not (CUDA and TRITON), reason="needs a CUDA device and Triton")
def test_triton_agrees_with_plain_torch_on_a_device():
    one, other = (steps_of(*some_maps(), kernels=kind) for kind in ("triton", "torch"))
    assert (one.plan - other.plan).abs().sum() <= 1e-3
    replayed = steps_of(*some_maps())
    replayed.capture()
    replayed.plan.fill_(torch.nan)
    replayed.run()
    assert torch.allclose(one.plan, replayed.plan, atol=1e-7)


@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_factors_give_the_cosines_in_any_precision(dtype, close):
    source, target = some_maps()
    stack = plain_stack(source, target)
    found = {
        layer: 2.0 - 2.0 * (X[:63] @ Y[:88].mT)
        for layers, *factors in cosine_factors(source, target, 0, "cpu", dtype)
        for layer, X, Y in zip(layers, *factors, strict=True)
    }
    assert max(np.abs(found[k].numpy() - stack[k]).max() for k in range(7)) <= close


def test_layers_are_sorted_by_what_they_share():
    shapes = [(8, 4, 4), (8, 2, 2), (4, 2, 2), (8, 2, 2)]
    groups = make_groups(shapes, shapes)
    assert [group.layers for group in groups] == [(0,), (1, 3), (2,)]
    assert [group.by_channels for group in groups] == [True, False, True]
    assert padded(64) == 64


def test_a_line_of_one_cell_is_spread_over_all():
    side = Side((1, 2), (1, 3), "cpu")
    unit = torch.zeros(1, side.width, 4)
    unit[:, :2, 0] = 1.0
    lengths = torch.ones(1, side.width)
    found = spread(products(unit), lengths, side, torch.float32)
    assert torch.allclose(found[0, :3, :2], torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]))
    assert not found[0, 3:].any()


def test_other_kernels_are_refused():
    with pytest.raises(InputError, match="kernels: is 'cuda'"):
        PairSteps([(1, 1, 1)], [(1, 1, 1)], device="cpu", kernels="cuda")


def test_pairs_of_any_shapes_one_after_another():
    planner = PairPlanner(device="cpu", tol=1e-5)
    rng = np.random.default_rng(0)
    pairs = [(SOURCE, TARGET), (SOURCE, TARGET), (TARGET, SOURCE)]
    for seed, grids in enumerate(pairs):
        source, target = random_maps(grids[0], seed=seed), random_maps(grids[1], seed=seed + 9)
        n, m = source[0].grid.count, target[0].grid.count
        a, b, prior = rng.random(n), rng.random(m), rng.random(7) + 0.1
        found = planner(source, target, a, b, prior)
        assert found is not None
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
    assert few is not None
    assert many is not None
    assert few.error <= 1e-4
    assert 3 < few.sweeps <= 300
    assert np.abs((few.plan - many.plan).numpy()).sum() <= 2e-3


def test_where_sweeps_do_not_do_there_is_no_plan(monkeypatch):
    maps = random_maps(SOURCE, seed=0), random_maps(TARGET, seed=1)
    monkeypatch.setattr("frot.correspondence.cuda.pair.MOST_WEIGHTS", 1)
    assert PairPlanner(device="cpu", eps=0.03, tol=1e-7, steps=0)(*maps) is None
    monkeypatch.setattr("frot.correspondence.cuda.pair.MOST_SWEEPS", 1)
    assert PairPlanner(device="cpu", eps=0.03, tol=1e-5, sweeps=1)(*maps) is None


@pytest.mark.parametrize(("eta", "eps"), [(0.3, 0.1), (0.6, 0.05), (0.05, 0.02)])
@pytest.mark.parametrize("weighted", [False, True])
def test_without_steps_the_gap_is_closed(eta, eps, weighted):
    source, target = some_maps()
    rng = np.random.default_rng(0)
    a, b, prior = rng.random(63), rng.random(88), rng.random(7) + 0.1
    a[:3], b[5:9] = 0.0, 0.0
    given = {"a": a / a.sum(), "b": b / b.sum(), "prior": prior / prior.sum()} if weighted else {}
    found = PairPlanner(device="cpu", steps=0, eta=eta, eps=eps)(source, target, **given)
    assert found is not None
    costs = layer_costs(source, target, dtype="float64")
    best = solve_layers(costs, eta=eta, eps=eps, solver=Entropic(tol=1e-6), **given)
    plan = found.plan.double().numpy()
    rows = given.get("a", np.full(63, 1 / 63))
    cols = given.get("b", np.full(88, 1 / 88))
    assert np.abs(plan.sum(axis=1) - rows).sum() <= 1e-6
    assert np.abs(plan.sum(axis=0) - cols).sum() <= 1e-3
    product = np.outer(rows, cols)
    on = plan > 0.0
    entropy = (plan[on] * np.log(plan[on] / product[on])).sum()
    phi = costs.inner(plan[None])[0]
    q = given.get("prior", np.ones(7))
    worst = eta * np.log((q * np.exp(phi / eta)).sum())
    assert np.abs(phi - found.phi).max() <= 1e-5
    # Columns are off a little, so that the objective may be below the best.
    assert abs(worst + eps * entropy - best.value) <= 1e-3 * best.value


def test_threads_may_share_a_planner():
    planner = PairPlanner(device="cpu", steps=0)
    pairs = [(random_maps(SOURCE, seed=k), random_maps(TARGET, seed=k + 9)) for k in range(4)]
    alone = [planner(*pair) for pair in pairs]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda pair: planner(*pair), pairs))
    for one, other in zip(alone, together, strict=True):
        assert one is not None
        assert other is not None
        assert torch.equal(one.plan, other.plan)
        assert np.array_equal(one.alpha, other.alpha)


def test_it_is_pickled_without_its_buffers():
    planner = PairPlanner(device="cpu")
    maps = random_maps(SOURCE, seed=0)
    first = planner(maps, maps)
    size = len(pickle.dumps(planner))
    assert size < 2000
    again = pickle.loads(pickle.dumps(planner))(maps, maps)
    assert first is not None
    assert again is not None
    assert np.array_equal(first.plan.numpy(), again.plan.numpy())


def test_bad_input_is_refused_before_any_work():
    maps = random_maps(SOURCE, seed=0)
    with pytest.raises(InputError, match="eta"):
        PairPlanner(eta=0.0, device="cpu")(maps, maps)
    with pytest.raises(InputError, match="source, target: have"):
        PairPlanner(device="cpu")(maps[:1], maps)
    with pytest.raises(InputError, match="a: "):
        PairPlanner(device="cpu")(maps, maps, a=np.ones(3))
