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
from frot.correspondence._features import FeatureMap
from frot.correspondence._layer_costs import layer_costs
from frot.correspondence._transport import paper_plan, solve_layers
from frot.correspondence.cuda import cosines, pair
from frot.correspondence.cuda.cosines import KEPT, Factors, Layout, Stack
from frot.correspondence.cuda.pair import PairPlanner, PairSteps, choose_form
from frot.solvers import Entropic
from tests.correspondence.cuda.test_cosines import PAPER, some_maps
from tests.correspondence.layers import SOURCE, TARGET, random_maps

ROOT = Path(__file__).resolve().parents[3]
CUDA = torch.cuda.is_available()
TRITON = has_triton()


def steps_of(source, target, **options) -> PairSteps:
    shapes = [[one.values.shape for one in maps] for maps in (source, target)]
    steps = PairSteps(*shapes, **{"sweeps": 12, **options})
    steps.put(*[[one.values for one in maps] for maps in (source, target)])
    steps.run()
    return steps


BOTH = pytest.mark.parametrize("keep", ["stack", "factors"])


@BOTH
@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-5), (torch.float16, 2e-3)])
@pytest.mark.parametrize("chunk", [cosines.CHUNK_BYTES, 1])
def test_the_steps_are_the_papers(dtype, close, keep, chunk, monkeypatch):
    monkeypatch.setattr(cosines, "CHUNK_BYTES", chunk)
    source, target = some_maps()
    expected = paper_plan(layer_costs(source, target, dtype="float64"), tol=1e-7)
    steps = steps_of(source, target, device="cpu", dtype=dtype, keep=keep)
    assert np.abs(steps.plan.numpy() - expected.plan).sum() <= close
    assert np.abs(steps.phi.numpy() - expected.phi[steps.order]).max() <= 0.1 * close
    assert np.abs(steps.alpha.numpy() - expected.alpha[steps.order]).max() <= 0.1 * close
    assert 0.0 <= steps.error <= 1e-4


@BOTH
def test_weights_of_cells_and_layers_count(keep):
    source, target = some_maps()
    rng = np.random.default_rng(0)
    a, b, prior = rng.random(63), rng.random(88), rng.random(7) + 0.1
    a[:3], b[5:9] = 0.0, 0.0
    costs = layer_costs(source, target, dtype="float64")
    expected = paper_plan(costs, a, b, prior=prior, tol=1e-7)
    shapes = [[one.values.shape for one in maps] for maps in (source, target)]
    steps = PairSteps(*shapes, sweeps=15, device="cpu", keep=keep)
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
import torch
from frot.correspondence.cuda import cosines
from tests.correspondence.cuda.test_pair import some_maps, steps_of

# Two parts of the rows.
cosines.CHUNK_BYTES = 1
source, target = some_maps()
for keep, dtype, close, pair in (
    ("stack", torch.float32, 1e-5, (source, target)),
    ("factors", torch.float32, 1e-5, (source, target)),
    ("factors", torch.float16, 1e-3, (target, source)),
):
    options = dict(device="cpu", sweeps=2, steps=2, keep=keep, dtype=dtype)
    try:
        one = steps_of(*pair, kernels="triton", **options)
    except InterpreterError as error:
        raise SystemExit(77 if "0-dimensional" in str(error) else str(error))
    other = steps_of(*pair, kernels="torch", **options)
    assert (one.plan - other.plan).abs().sum() <= close, keep
    assert (one.phi - other.phi).abs().max() <= close, keep
    assert abs(one.error - other.error) <= close, keep
    if keep == "factors":
        assert torch.allclose(one.kept.X, other.kept.X, atol=close)
        assert torch.allclose(one.kept.Y, other.kept.Y, atol=close)
"""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("this Triton's interpreter cannot loop with this NumPy")
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not (CUDA and TRITON), reason="needs a CUDA device and Triton")
@BOTH
def test_triton_agrees_with_plain_torch_on_a_device(keep):
    one, other = (steps_of(*some_maps(), kernels=kind, keep=keep) for kind in ("triton", "torch"))
    assert (one.plan - other.plan).abs().sum() <= 1e-3
    replayed = steps_of(*some_maps(), keep=keep)
    replayed.capture()
    replayed.plan.fill_(torch.nan)
    replayed.run()
    assert torch.allclose(one.plan, replayed.plan, atol=1e-7)


def test_other_kernels_are_refused():
    with pytest.raises(InputError, match="kernels: is 'cuda'"):
        PairSteps([(1, 1, 1)], [(1, 1, 1)], device="cpu", kernels="cuda")


@BOTH
def test_pairs_of_any_shapes_one_after_another(keep):
    planner = PairPlanner(device="cpu", tol=1e-5, keep=keep)
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
@BOTH
def test_without_steps_the_gap_is_closed(eta, eps, weighted, keep):
    source, target = some_maps()
    rng = np.random.default_rng(0)
    a, b, prior = rng.random(63), rng.random(88), rng.random(7) + 0.1
    a[:3], b[5:9] = 0.0, 0.0
    given = {"a": a / a.sum(), "b": b / b.sum(), "prior": prior / prior.sum()} if weighted else {}
    found = PairPlanner(device="cpu", steps=0, eta=eta, eps=eps, keep=keep)(source, target, **given)
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


def scene(grids, channels, seed):
    """Two views of smooth fields in noise, as the layers of a network see them."""
    rng = np.random.default_rng(seed)
    fields = torch.nn.functional.interpolate(
        torch.tensor(rng.normal(size=(1, 6, 12, 12))), (44, 40), mode="bicubic", align_corners=True
    )
    views = fields[:, :, :40, :36], fields[:, :, 4:44, 4:40]
    sides = ([], [])
    for grid, count in zip(grids, channels, strict=True):
        spread = rng.normal(size=(count, 6))
        for view, maps in zip(views, sides, strict=True):
            seen = torch.nn.functional.interpolate(view, grid, mode="area")[0].numpy()
            values = np.tensordot(spread, seen, 1) + rng.normal(size=(count, *grid))
            maps.append(FeatureMap(str(len(maps)), values.astype("float32"), 40 / grid[0], 11))
    return sides


# Channels that are no multiples of 8, groups by channels and by coarse cells, n = 925.
SCENE_GRIDS = [(37, 25)] * 3 + [(19, 13)] * 3 + [(10, 7)] * 4 + [(5, 4)] * 2
SCENE_CHANNELS = [21, 33, 33, 64, 64, 64, 128, 128, 128, 128, 96, 96]


@pytest.mark.parametrize("prior", [None, 1e-8])
# At a small eta weights answer the rounding of phi, which a stack has, too.
@pytest.mark.parametrize(("eta", "close"), [(0.3, 7e-4), (0.01, 1e-3)])
def test_factors_in_half_precision_are_as_good_as_a_stack(eta, close, prior):
    source, target = scene(SCENE_GRIDS, SCENE_CHANNELS, seed=0)
    # A layer that sees nothing.
    source[1].values[:] = target[1].values[:] = 0.0
    q = np.ones(12)
    if prior is not None:
        q[[0, 1, 4, 11]] = prior
    q /= q.sum()
    costs = layer_costs(source, target, dtype="float64")
    expected = paper_plan(costs, eta=eta, prior=q, tol=1e-8, max_sweeps=10_000)
    assert expected.alpha.min() <= 1e-6 or (eta, prior) == (0.3, None)
    away = {}
    for keep in ("stack", "factors"):
        steps = PairSteps(
            *[[one.values.shape for one in maps] for maps in (source, target)],
            eta=eta, sweeps=60, device="cpu", dtype=torch.float16, keep=keep,
        )  # fmt: skip
        steps.put(*[[one.values for one in maps] for maps in (source, target)])
        steps.log_prior[:] = torch.tensor(np.log(q)[steps.order])
        steps.run()
        plan = steps.plan.double().numpy()
        same = (plan.argmax(axis=1) == expected.plan.argmax(axis=1)).mean()
        phi = np.abs(steps.phi.numpy() - expected.phi[steps.order]).max()
        away[keep] = np.array([np.abs(plan - expected.plan).sum(), phi, 1.0 - same])
        assert steps.phi[steps.order.index(1)] == 2.0
    assert (away["factors"] <= [close, 5e-5, 0.005]).all(), away
    assert (away["factors"] <= 1.2 * away["stack"] + 1e-5).all(), away


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


FINE = [(c, 2 * h, 2 * w) for c, h, w in PAPER]


@pytest.mark.parametrize(
    ("keep", "shapes", "gigabytes"),
    [
        ("stack", PAPER, 1.47),
        ("factors", PAPER, 0.51),
        ("stack", FINE, 22.2),
        ("factors", FINE, 4.2),
    ],
)
@pytest.mark.parametrize("steps", [3, 0])
def test_room_is_counted_and_below_a_gigabyte_for_factors(keep, shapes, gigabytes, steps):
    # Tensors without memory.
    work = PairSteps(shapes, shapes, device="meta", dtype=torch.float16, keep=keep, steps=steps)
    layout, (n, m) = work.layout, work.shape
    maps = 2 * 4 * sum(c * h * w for c, h, w in shapes)
    plan = 4 * n * m * (steps > 0)
    large = maps + 2 * layout.rows * layout.cols + plan + KEPT[keep].room(layout)
    # The rest are vectors of cells and layers.
    assert large <= work.room <= large + 100 * layout.rows
    held = [x for both in work.maps for x in both]
    for part in (work, work.work, work.kept):
        held += [x for x in vars(part).values() if torch.is_tensor(x)]
    assert work.room == sum(x.nbytes for x in held)
    if steps:
        assert work.room == pytest.approx(1e9 * gigabytes, rel=0.01)


def test_what_is_kept_depends_on_the_room(monkeypatch):
    paper = Layout.of(PAPER, PAPER, 0, torch.float16)
    assert choose_form(paper, "cpu") == "stack"
    assert choose_form(Layout.of(FINE, FINE, 0, torch.float16), "cpu") == "factors"
    for free, form in ((2.1e9, "stack"), (1.9e9, "factors"), (1e8, "factors")):
        monkeypatch.setattr(pair, "free_room", lambda device, free=free: free)
        assert choose_form(paper, "cuda") == form


def test_planners_keep_what_they_are_told_to(monkeypatch):
    maps = random_maps(SOURCE, seed=0), random_maps(TARGET, seed=1)

    def plan_of(planner):
        planned = planner(*maps)
        assert planned is not None
        return planned.plan.numpy()

    planner = PairPlanner(device="cpu")
    found = {}
    for keep, form in ((None, Stack), ("factors", Factors), ("stack", Stack)):
        planner.keep = keep
        found[keep] = plan_of(planner)
        assert type(planner._work.kept) is form
    assert np.array_equal(found[None], found["stack"])
    assert 0.0 < np.abs(found["stack"] - found["factors"]).sum() <= 1e-5
    monkeypatch.setattr(pair, "STACK_BYTES", 1000)
    planner = PairPlanner(device="cpu")
    assert np.array_equal(plan_of(planner), found["factors"])
    # The choice holds as long as the shapes do.
    monkeypatch.undo()
    assert np.array_equal(plan_of(planner), found["factors"])
    with pytest.raises(InputError, match="keep: 'all' is none of 'stack', 'factors'"):
        PairPlanner(device="cpu", keep="all")(*maps)


@BOTH
def test_a_device_without_room_is_told_how_much_is_needed(keep, monkeypatch):
    def full(*_, **__):
        raise type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory.")

    side = random_maps(((64, 64),), (8,))
    monkeypatch.setattr(PairSteps, "put", full)
    layout = Layout.of([(8, 64, 64)], [(8, 64, 64)], 0, torch.float32)
    needed = 40 * 4096**2 + KEPT[keep].room(layout)
    message = f"side: the device has too little memory left: {needed / 1e9:.1f} GB are needed; use"
    with pytest.raises(InputError, match=message):
        PairPlanner(device="cpu", keep=keep)(side, side)


def test_bad_input_is_refused_before_any_work():
    maps = random_maps(SOURCE, seed=0)
    with pytest.raises(InputError, match="eta"):
        PairPlanner(eta=0.0, device="cpu")(maps, maps)
    with pytest.raises(InputError, match="source, target: have"):
        PairPlanner(device="cpu")(maps[:1], maps)
    with pytest.raises(InputError, match="a: "):
        PairPlanner(device="cpu")(maps, maps, a=np.ones(3))
