"""Costs of the loss besides squared distances: distances by name, and a user's own."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import frot
from frot.costs.distances import NORMS
from frot.torch import FRWDLoss

GROUPS = [2, 1]
FEATURES = ([0, 1], [2])


def points(seed: int = 0, batch: tuple[int, ...] = ()) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(*batch, 6, 3, dtype=torch.float64, generator=draw)
    return x, 0.5 + torch.randn(*batch, 5, 3, dtype=torch.float64, generator=draw)


def squares(x: Tensor, y: Tensor) -> Tensor:
    """The squared distances of both groups, (2, n, m)."""
    gaps = (x[:, None] - y[None]) ** 2
    return torch.stack([gaps[..., features].sum(-1) for features in FEATURES])


def masses(size: int, zeros: int = 0) -> Tensor:
    found = torch.arange(1.0, size + 1.0, dtype=torch.float64)
    found[:zeros] = 0.0
    return found / found.sum()


def gradients(loss: Any, *parts: Tensor) -> list[Tensor]:
    leaves = [part.clone().requires_grad_() for part in parts]
    return list(torch.autograd.grad(loss(*leaves).sum(), leaves))


def check_slopes(loss: Any, *parts: Tensor) -> None:
    """Gradients by x and y are central differences of fourth order, to 1e-6."""
    found, draw = gradients(loss, *parts), torch.Generator().manual_seed(7)
    for at, (part, grad) in enumerate(zip(parts, found, strict=True)):
        way, h = torch.randn(part.shape, dtype=part.dtype, generator=draw), 1e-4

        def value(step: float, at: int = at, way: Tensor = way) -> float:
            moved = [one + step * way if at == k else one for k, one in enumerate(parts)]
            return float(loss(*moved).detach())

        exact = (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h)
        assert float((grad * way).sum()) == pytest.approx(exact, rel=1e-6, abs=1e-7)


KINDS: dict[str, dict[str, Any]] = {
    "plain": {"eta": 0.1, "eps": 0.2},
    "relative": {"eta": frot.relative(0.1), "eps": frot.relative(0.1)},
    "debias": {"eta": 0.1, "eps": 0.2, "debias": True},
    "debias relative": {"eta": 0.0, "eps": frot.relative(0.1), "debias": True},
    "tau": {"eta": 0.1, "eps": 0.2, "tau": 1.5},
    "debias tau": {"eta": 0.1, "eps": 0.2, "tau": frot.relative(1.0), "debias": True},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", NORMS)
def test_gradients_of_distances_are_finite_differences(metric, kind):
    loss = FRWDLoss(GROUPS, metric=metric, gradient_tol=1e-9, **KINDS[kind])
    check_slopes(loss, *points())


@pytest.mark.parametrize("metric", NORMS)
def test_values_of_distances_are_those_of_solve(metric):
    x, y = points(1)
    a, b = masses(6, zeros=2), masses(5)
    options: dict[str, Any] = {"eta": 0.1, "eps": 0.2}
    loss = FRWDLoss(GROUPS, metric=metric, gradient_tol=1e-6, **options)
    a_, b_ = a.numpy(), b.numpy()
    res = frot.solve(
        x.numpy(), y.numpy(), GROUPS, a=a_, b=b_, metric=metric, tol=1e-9, **options
    )  # fmt: skip
    assert float(loss(x, y, a, b)) == pytest.approx(res.value, rel=1e-8)
    assert loss.result.lower - 1e-9 <= res.value <= loss.result.upper + 1e-9


@pytest.mark.parametrize("debias", [False, True])
@pytest.mark.parametrize("metric", NORMS)
def test_many_distances_are_not_stacked(metric, debias, monkeypatch):
    x, y = points(2, (3,))
    a, b = masses(6, zeros=2), masses(5)
    options: dict[str, Any] = {"eta": 0.1, "eps": frot.relative(0.1), "debias": debias}
    loss = FRWDLoss(GROUPS, metric=metric, gradient_tol=1e-7, **options)
    few, values = gradients(lambda x, y: loss(x, y, a, b), x, y), loss(x, y, a, b)
    monkeypatch.setattr("frot.torch._costs.MEMORY_BUDGET", 0)
    loss = FRWDLoss(GROUPS, metric=metric, gradient_tol=1e-7, **options)
    assert loss(x, y, a, b).numpy() == pytest.approx(values.numpy(), rel=1e-9)
    for got, want in zip(gradients(lambda x, y: loss(x, y, a, b), x, y), few, strict=True):
        assert got.numpy() == pytest.approx(want.numpy(), abs=1e-6)
    results = list(loss.result)
    # Nor are kernels that do not fit.
    monkeypatch.setattr("frot.torch.loss.MEMORY_BUDGET", 1.0)
    monkeypatch.setattr("frot.torch._solved.MEMORY_BUDGET", 1.0)
    alone = FRWDLoss(GROUPS, metric=metric, gradient_tol=1e-4, **options)
    assert alone(x, y, a, b).numpy() == pytest.approx(values.numpy(), rel=1e-6)
    for got, want in zip(gradients(lambda x, y: alone(x, y, a, b), x, y), few, strict=True):
        assert got.numpy() == pytest.approx(want.numpy(), abs=1e-3)
    for streamed, kept in zip(alone.result, results, strict=True):
        assert streamed.gap <= 1e-4
        if debias:
            # At other weights, a little, it is another cost.
            continue
        assert streamed.lower <= kept.upper
        assert kept.lower <= streamed.upper


@pytest.mark.parametrize("metric", NORMS)
@pytest.mark.parametrize("debias", [False, True])
def test_gradients_are_finite_where_points_coincide(metric, debias):
    x, y = points(4)
    y = torch.cat([y, x[:2]])
    x = torch.cat([x, x[:1]])
    loss = FRWDLoss(GROUPS, metric=metric, eta=0.1, eps=0.1, debias=debias)
    for grad in gradients(loss, x, y):
        assert bool(torch.isfinite(grad).all())
    same = torch.ones(3, 3, dtype=torch.float64)
    for grad in gradients(loss, same, same.clone()):
        assert float(grad.abs().max()) == 0.0


def test_distances_in_single_precision():
    x, y = (part.float() for part in points(5))
    for metric in NORMS:
        loss = FRWDLoss(GROUPS, metric=metric, eta=0.1, eps=0.2, debias=True)
        assert loss(x, y).dtype == torch.float32
        exact = gradients(loss, x.double(), y.double())
        for got, want in zip(gradients(loss, x, y), exact, strict=True):
            assert got.dtype == torch.float32
            assert got.numpy() == pytest.approx(want.numpy(), abs=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_an_own_cost_that_is_built_in_gives_the_same(kind):
    x, y, a, b = *points(6), masses(6, zeros=2), masses(5)
    options = {"gradient_tol": 1e-8, **KINDS[kind]}
    built_in, own = FRWDLoss(GROUPS, **options), FRWDLoss(metric=squares, **options)
    found = gradients(own, x, y, a, b)
    for got, want in zip(found, gradients(built_in, x, y, a, b), strict=True):
        assert got.numpy() == pytest.approx(want.numpy(), abs=1e-6)
    assert float(own(x, y, a, b)) == pytest.approx(float(built_in(x, y, a, b)), rel=1e-9)
    assert own.result.value == pytest.approx(built_in.result.value, rel=1e-7)
    assert own.alpha is not None
    assert built_in.alpha is not None
    assert own.alpha.numpy() == pytest.approx(built_in.alpha.numpy(), abs=1e-6)


class Learnt(torch.nn.Module):
    """A network's squared distances, and a cost with both signs."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(3, 2).double()

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x, y = self.layer(x).tanh(), self.layer(y).tanh()
        return torch.stack([torch.cdist(x, y) ** 2, -(x @ y.T)])


@pytest.mark.parametrize("debias", [False, True])
def test_parameters_of_a_learnt_cost_get_gradients(debias):
    x, y = points(8)
    loss = FRWDLoss(metric=Learnt(), eta=0.1, eps=0.2, debias=debias, gradient_tol=1e-9)
    named = dict(loss.named_parameters())
    assert set(named) == {"metric.layer.weight", "metric.layer.bias"}
    check_slopes(loss, x, y)
    loss(x, y).backward()
    weight = named["metric.layer.weight"]
    assert weight.grad is not None
    way, h = torch.randn(weight.shape, dtype=weight.dtype), 1e-4
    ends = []
    for step in (h, -h):
        moved = copy.deepcopy(loss)
        with torch.no_grad():
            dict(moved.named_parameters())["metric.layer.weight"].add_(step * way)
        ends.append(float(moved(x, y).detach()))
    assert float((weight.grad * way).sum()) == pytest.approx((ends[0] - ends[1]) / 2 / h, rel=1e-5)


@pytest.mark.parametrize("debias", [False, True])
def test_an_own_cost_is_called_for_one_member_after_another(debias):
    x, y = points(9, (3,))
    seen = []

    def cost(x: Tensor, y: Tensor) -> Tensor:
        seen.append((tuple(x.shape), tuple(y.shape)))
        return squares(x, y)[0]

    loss = FRWDLoss(metric=cost, eps=0.2, debias=debias, gradient_tol=1e-7)
    built_in = FRWDLoss({"ab": [0, 1]}, eps=0.2, debias=debias, gradient_tol=1e-7)
    found = loss(x, y)
    own = [((6, 3), (6, 3))] * 3 + [((5, 3), (5, 3))] * 3 if debias else []
    assert seen == [((6, 3), (5, 3))] * 3 + own
    assert found.numpy() == pytest.approx(built_in(x, y).numpy(), rel=1e-8)
    for got, want in zip(gradients(loss, x, y), gradients(built_in, x, y), strict=True):
        assert got.numpy() == pytest.approx(want.numpy(), abs=1e-6)


def test_an_own_cost_in_single_precision_and_under_autocast():
    x, y = (part.float() for part in points(10))
    loss = FRWDLoss(metric=lambda x, y: -(x @ y.T), eps=0.2)
    value = loss(x, y)
    assert value.dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        # The product is one of half precision.
        assert float(loss(x, y)) == pytest.approx(float(value), rel=2e-2)


def test_warm_starts_of_own_costs_come_to_the_same():
    x, y = points(11)
    given: dict[str, Any] = {"metric": squares, "eta": 0.1, "eps": 0.2, "gradient_tol": 1e-6}
    for debias in (False, True):
        warm = FRWDLoss(debias=debias, **given)
        cold = FRWDLoss(debias=debias, warm_start=False, **given)
        for step in range(3):
            moved = x + 0.02 * step
            assert float(warm(moved, y)) == pytest.approx(float(cold(moved, y)), rel=1e-8)
            assert float(warm(moved, y)) == float(warm(moved, y))


X, Y = points()
WRONG: dict[str, tuple[Any, str]] = {
    "array": (lambda x, y: np.zeros((6, 5)), r"returned ndarray, not a tensor of shape \(6, 5\)"),
    "shape": (lambda x, y: squares(x, y).mT, r"returned shape \(2, 5, 6\), expected \(6, 5\), or"),
    "numbers": (lambda x, y: x.sum(), r"returned shape \(\)"),
    "no groups": (lambda x, y: squares(x, y)[:0], r"returned shape \(0, 6, 5\)"),
    "whole": (lambda x, y: squares(x, y).long(), "returned torch.int64 on cpu, expected torch.flo"),
    "nan": (lambda x, y: squares(x, y) * float("nan"), "returned NaN or infinite entries"),
    "detached": (lambda x, y: squares(x, y).detach(), "x or y requires grad, but the cost"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_cost_may_not_return_is_named(name):
    cost, message = WRONG[name]
    with pytest.raises(frot.InputError, match=f"^metric: .*{message}"):
        FRWDLoss(metric=cost, eps=0.1)(X.clone().requires_grad_(), Y)


def test_costs_with_different_numbers_of_groups_are_refused():
    x, y = torch.stack([X, X]), torch.stack([Y, Y])
    calls = []

    def cost(x: Tensor, y: Tensor) -> Tensor:
        calls.append(0)
        return squares(x, y)[: 1 + len(calls) % 2]

    with pytest.raises(frot.InputError, match="1 groups for one member and 2 for another"):
        FRWDLoss(metric=cost, eps=0.1)(x, y)
    uneven = lambda x, y: squares(x, y)[: 1 + (len(x) == len(y))]  # noqa: E731
    with pytest.raises(frot.InputError, match="1 groups for one pair of clouds and 2 for another"):
        FRWDLoss(metric=uneven, eps=0.1, debias=True)(X, Y)


def test_options_that_an_own_cost_does_not_take_are_refused():
    with pytest.raises(frot.InputError, match=r"^groups: a cost of one.s own"):
        FRWDLoss(GROUPS, metric=squares)
