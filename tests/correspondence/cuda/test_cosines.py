"""Cosines are the plain ones, and what is kept of them gives the same mixtures and sums."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from frot.correspondence.cuda import _plain, cosines
from frot.correspondence.cuda._plain import spread
from frot.correspondence.cuda.cosines import (
    KEPT,
    Buffers,
    CosineOperands,
    Factors,
    Layout,
    Side,
    Stack,
    cosine_factors,
    make_groups,
    padded,
    products,
)
from tests.correspondence.layers import SOURCE, TARGET, plain_stack, random_maps

# ResNet-101 on an image of 300 x 225.
GRIDS = [(75, 57)] * 4 + [(38, 29)] * 4 + [(19, 15)] * 23 + [(10, 8)] * 3
CHANNELS = [64] + [256] * 3 + [512] * 4 + [1024] * 23 + [2048] * 3
PAPER = [(c, *grid) for c, grid in zip(CHANNELS, GRIDS, strict=True)]
CPU = torch.device("cpu")


def some_maps():
    source, target = random_maps(SOURCE, seed=0), random_maps(TARGET, seed=1)
    source[3].values[:, :2, :2] = 0.0
    return source, target


def shapes_of(source, target):
    return [[one.values.shape for one in maps] for maps in (source, target)]


def filled(form, source, target, dtype=torch.float16, grid_of=0):
    """What is kept of the cosines of some maps, by plain PyTorch."""
    left, right = shapes_of(source, target)
    layout = Layout.of(left, right, grid_of, dtype)
    buffers = Buffers(CPU)
    work = _plain.Steps((len(source), layout.rows, layout.cols), buffers)
    kept = form(layout, buffers, work)
    for number, group in enumerate(layout.groups):
        F, G = (
            torch.stack([torch.tensor(maps[k].values) for k in group.layers])
            for maps in (source, target)
        )
        make = CosineOperands(group, layout.source, layout.target, CPU, dtype)
        kept.fill(number, *make(F, G, kept.places(number)))
    return kept


@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-5), (torch.float16, 1e-3)])
def test_the_stack_is_the_plain_one(dtype, close):
    source, target = some_maps()
    stack = filled(Stack, source, target, dtype)
    expected = 1.0 - 0.5 * plain_stack(source, target)[stack.layout.order]
    n, m = stack.layout.shape
    assert np.abs(stack.values[:, :n, :m].float().numpy() - expected).max() <= close
    assert not stack.values[:, n:].any()
    assert not stack.values[:, :, m:].any()


@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-5), (torch.float16, 1e-3)])
def test_the_factors_are_those_of_the_plain_stack(dtype, close):
    source, target = some_maps()
    kept = filled(Factors, source, target, dtype)
    expected = 1.0 - 0.5 * plain_stack(source, target)[kept.layout.order]
    n, m = kept.layout.shape
    for cosine, (first, last) in zip(expected, pairwise(kept.layout.starts), strict=True):
        X, Y = (side[:, first:last].float().numpy() for side in (kept.X, kept.Y))
        assert np.abs((X @ Y.T)[:n, :m] - cosine).max() <= close
    assert {group.by_channels for group in kept.layout.groups} == {True, False}
    last = kept.layout.starts[-1]
    for side, count in ((kept.X, n), (kept.Y, m)):
        assert not side[count:, :last].any()
        assert not side[:, last + 1 :].any()
    # What a plan's rows sum to is a mean of ones.
    assert not kept.X[:, last].any()
    assert (kept.Y[:, last] == 1.0).all()


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


def mixed(kept, alpha):
    """The mixed cosines that a kernel was made of, whose entries are not small."""
    rows, cols = kept.layout.rows, kept.layout.cols
    K, levels = torch.empty((rows, cols)), torch.empty(rows)
    b = torch.zeros(cols)
    b[: kept.layout.shape[1]] = 1.0
    kept.absorb(torch.tensor(alpha, dtype=torch.float32), torch.zeros(cols), b, 1.0, K, levels)
    n, m = kept.layout.shape
    return (K.double().log() + levels.double()[:, None])[:n, :m].numpy()


SMALL = [1e-6, 1e-8, 1e-12]


def skewed(layer, small):
    """All weight but a little on one layer."""
    alpha = np.full(7, small)
    alpha[layer] = 1.0 - 6 * small
    return alpha


@pytest.mark.parametrize("small", SMALL)
@pytest.mark.parametrize("layer", range(7))
def test_weights_in_a_factor_round_no_more_than_the_bound(layer, small):
    kept = filled(Factors, *some_maps())
    n, m = kept.layout.shape
    X, Y = (side.double().numpy() for side in (kept.X, kept.Y))
    X, Y, alpha = X[:n], Y[:m], skewed(layer, small)
    Y[:, kept.layout.starts[-1]] = 0.0
    each = alpha[kept.layers.numpy()]
    bound = 2.0**-11 * (np.abs(X) * each) @ np.abs(Y).T + 2.0**-39 * np.abs(Y).sum(axis=1)
    # Single precision sums, takes exponentials, and is read back through a logarithm.
    away = np.abs(mixed(kept, alpha) - (X * each) @ Y.T)
    assert (away <= bound + 2e-6).all()
    # The layers' rounding adds up like that of independent numbers, far below the bound.
    assert away.mean() <= 2.0**-14


@pytest.mark.parametrize(("small", "close"), [(1e-4, 1e-3), (1e-6, 1e-3), (1e-8, 1e-2)])
def test_small_weights_count(small, close):
    # Half precision has no number between 0 and 6e-8.
    source, target = some_maps()
    kept = filled(Factors, source, target)
    (n, m), shares = kept.layout.shape, torch.full((7,), small)
    seen = {}

    def look(values, weights, *others):
        seen["mixed"] = (values[0].double() * weights.double())[:n, :m]

    kept.work.absorb = look
    kept.absorb(shares, None, None, 1.0, torch.zeros(kept.layout.rows), torch.zeros(0))
    X, Y = (side.double() for side in (kept.X, kept.Y))
    truth = small * (X @ Y.mT)[:n, :m]
    assert float((seen["mixed"] - truth).abs().max()) <= close * float(truth.abs().max())
    as_it_is = ((small * X).half().double() @ Y.mT)[:n, :m]
    if small == 1e-8:
        assert not as_it_is.any()


@pytest.mark.parametrize("form", [Stack, Factors])
@pytest.mark.parametrize("chunk", [cosines.CHUNK_BYTES, 1])
def test_sums_over_a_plan_are_those_of_the_plain_stack(form, chunk, monkeypatch):
    monkeypatch.setattr(cosines, "CHUNK_BYTES", chunk)
    source, target = random_maps(SOURCE, seed=0), random_maps(TARGET, seed=1)
    kept = filled(form, source, target)
    n, m = kept.layout.shape
    rng = np.random.default_rng(0)
    # Columns from 1e-9 to 1: a row's plan has entries far below the least number of half precision.
    a, b, v = rng.random(n), rng.random(m), 10.0 ** rng.uniform(-9.0, 0.0, m)
    K = np.zeros((kept.layout.rows, kept.layout.cols), dtype="float16")
    K[:n, :m] = rng.random((n, m))
    u = 1.0 / (K[:n, :m].astype(float) @ (b * v))
    plan = (a * u)[:, None] * K[:n, :m].astype(float) * (b * v)
    given = [torch.zeros(size) for size in 2 * (kept.layout.rows, kept.layout.cols)]
    for room, values in zip(given, (a, b, u, v), strict=True):
        room[: len(values)] = torch.tensor(values)
    kept.add_up(torch.tensor(K), *given)
    truth = np.einsum("lij,ij->l", 1.0 - 0.5 * plain_stack(source, target), plan)
    truth = truth[kept.layout.order]
    assert np.abs(kept.work.sums.numpy() - truth).max() <= 3e-4 * a.sum()


@pytest.mark.parametrize("count", [71, 88])
def test_even_plans_are_not_rounded_to_one_side(count):
    # All entries of the plan are the same number, and are all rounded alike.
    kept = filled(Factors, *some_maps())
    layout, (n, _) = kept.layout, kept.layout.shape
    a, b = torch.full((layout.rows,), 1.0 / n), torch.zeros(layout.cols)
    b[:count] = 1.0 / count
    K, u, v = (torch.ones(size) for size in ((layout.rows, layout.cols), layout.rows, layout.cols))
    kept.add_up(K.half(), a, b, u, v)
    X, Y = kept.X[:n].double().mean(dim=0), kept.Y[:count].double().mean(dim=0)
    truth = [float(X[i:j] @ Y[i:j]) for i, j in pairwise(layout.starts)]
    assert np.abs(kept.work.sums.numpy() - truth).max() <= 1e-6
    once = cosines.SCALE / count
    assert abs(float(torch.tensor(once).half()) / once - 1.0) >= 1e-5


@pytest.mark.parametrize("chunk", [1, 100_000, 10**9])
def test_rows_are_worked_on_in_parts_that_have_room(chunk, monkeypatch):
    monkeypatch.setattr(cosines, "CHUNK_BYTES", chunk)
    layout = Layout.of(PAPER, PAPER, 0, torch.float16)
    parts = layout.parts
    assert parts[0].start == 0
    assert parts[-1].stop == layout.rows == 4288
    assert all(one.stop == other.start for one, other in pairwise(parts))
    each = 6 * max(layout.cols, layout.width)
    assert max(part.stop - part.start for part in parts) * each <= max(chunk, 64 * each)
    assert len({part.stop - part.start for part in parts[:-1]}) <= 1


@pytest.mark.parametrize("form", KEPT.values())
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("shapes", [(PAPER, PAPER), shapes_of(*some_maps())])
def test_room_is_what_is_held(form, dtype, shapes):
    layout = Layout.of(shapes[0], shapes[1], 0, dtype)
    buffers = Buffers(CPU)
    kept = form(layout, buffers, None)
    held = [x for x in vars(kept).values() if isinstance(x, torch.Tensor)]
    assert form.room(layout) == buffers.bytes == sum(x.nbytes for x in held)


def test_a_pair_of_the_papers_size_by_the_byte():
    layout = Layout.of(PAPER, PAPER, 0, torch.float16)
    # Channels of the stem and the first two stages, then cells of the last two: 285 and 80.
    assert layout.starts[-1] == 64 + 3 * 256 + 4 * 512 + 23 * 288 + 3 * 80 == 9744
    assert layout.width == 9792
    assert Stack.room(layout) == 2 * 34 * 4288**2 == 1_250_312_192
    kept, some = 2 * 2 * 4288 * 9792, 6 * 2176 * 9792
    assert Factors.room(layout) == kept + some + 8 * 9792 + 4 * (35 + 2176 + 1)


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
