"""Losses by fused kernels are those of double precision: the kernels' twin in their place."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import frot
from frot.solvers.entropic import clouds
from frot.solvers.entropic.ascent import GRADIENT_FACTOR
from frot.torch import FRWDLoss, _streamed
from tests.solvers.entropic import fused_plain

RELATIVE: dict[str, Any] = {"eta": frot.relative(0.1), "eps": frot.relative(0.05)}


@pytest.fixture(autouse=True)
def _as_on_a_device(monkeypatch):
    monkeypatch.setattr(_streamed, "cloud_kernels", lambda x: fused_plain)


def data(kind: str = "plain", dtype: Any = torch.float32) -> list[Tensor]:
    """x, y, a and b."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(120, 6)), rng.normal(size=(100, 6))
    y[:, :2] += 0.7
    a, b = rng.dirichlet(np.ones(120)), rng.dirichlet(np.ones(100))
    if kind == "uneven":
        a, b = a**4, b**4
    if kind == "far":
        x[:6] += 40.0
        y[:5] += 40.0
    if kind == "clusters":
        centres = 5.0 * rng.normal(size=(4, 6))
        x, y = x + centres[np.arange(120) % 4], y + centres[np.arange(100) % 4]
    if kind == "large":
        x, y = 1e3 + x, 1e3 + y
    parts = [
        torch.as_tensor(part, dtype=torch.float32) for part in (x, y, a / a.sum(), b / b.sum())
    ]
    parts = [part.to(dtype) for part in parts]
    return [*parts[:2], *(part / part.sum() for part in parts[2:])]


def gradient(loss: Any, parts: list[Tensor]) -> tuple[float, list[Tensor]]:
    leaves = [part.clone().requires_grad_() for part in parts]
    value = loss(*leaves)
    value.backward()
    return float(value.detach()), [leaf.grad.double() for leaf in leaves if leaf.grad is not None]


def off(found: Tensor, exact: Tensor) -> float:
    return float((found - exact).norm() / exact.norm())


@pytest.mark.parametrize(("groups", "debias"), [([6], False), ([6], True), ([2, 2, 2], False)])
@pytest.mark.parametrize("kind", ["plain", "uneven", "far", "clusters", "large"])
def test_gradients_are_those_of_double_precision(kind: str, groups: list[int], debias: bool):
    eta = RELATIVE["eta"] if len(groups) > 1 else 0.0
    options: dict[str, Any] = {"eta": eta, "eps": RELATIVE["eps"], "debias": debias}
    loss = FRWDLoss(groups, **options)
    value, found = gradient(loss, data(kind))
    assert loss._clouds
    one = loss._clouds[0]
    # What the gradient is off by, estimated: see `Aim`.
    estimate = 0.5 * GRADIENT_FACTOR * one.error + 0.5 * GRADIENT_FACTOR * np.sqrt(one.regret)
    assert estimate.max() <= loss.gradient_tol
    exact_loss = FRWDLoss(groups, **options, gradient_tol=1e-7)
    expected, exact = gradient(exact_loss, data(kind, torch.float64))
    assert not exact_loss._clouds
    size = float(exact_loss.result.value)
    assert value == pytest.approx(expected, abs=2e-5 * size)
    for mine, its in zip(found[:2], exact[:2], strict=True):
        assert off(mine, its) <= 2.0 * loss.gradient_tol
    for mine, its in zip(found[2:], exact[2:], strict=True):
        # But for a constant, which weights that sum to one do not see.
        assert off(mine - mine.mean(), its - its.mean()) <= 2.0 * loss.gradient_tol


def test_gradients_are_finite_differences():
    parts, way = data("far"), torch.randn(120, 6, generator=torch.Generator().manual_seed(0))
    options: dict[str, Any] = dict(RELATIVE)
    _, (by_x, *_) = gradient(FRWDLoss([2, 4], **options), parts)
    exact = FRWDLoss([2, 4], **options, gradient_tol=1e-8)
    x, y, a, b = data("far", torch.float64)
    ends = [float(exact(x + step * way, y, a, b)) for step in (1e-3, -1e-3)]
    assert float((by_x * way).sum()) == pytest.approx((ends[0] - ends[1]) / 2e-3, rel=5e-3)


def test_a_sample_leads_the_way(monkeypatch):
    options: dict[str, Any] = dict(RELATIVE)
    parts, (_, expected) = data(), gradient(FRWDLoss([2, 4], **options), data())
    monkeypatch.setattr(clouds, "SAMPLE", 30)
    taken = []
    take = clouds.Clouds.take
    monkeypatch.setattr(
        clouds.Clouds, "take", lambda self, count: taken.append(count) or take(self, count)
    )
    for groups in ([2, 4], [6]):
        eta = options["eta"] if len(groups) > 1 else 0.0
        loss = FRWDLoss(groups, **{**options, "eta": eta})
        _, found = gradient(loss, parts)
        assert loss._clouds
        if len(groups) > 1:
            assert off(found[0], expected[0]) <= loss.gradient_tol
    assert taken == [30, 30]


def test_one_product_leads_where_there_are_many_points(monkeypatch):
    monkeypatch.setattr(clouds, "LEAD_FROM", 1)
    seen = []
    updates = fused_plain.updates

    def watched(*arguments, precise, even):
        seen.append(precise)
        return updates(*arguments, precise=precise, even=even)

    monkeypatch.setattr(fused_plain, "updates", watched)
    _, found = gradient(FRWDLoss([6], eps=RELATIVE["eps"]), data())
    assert not seen[0]
    assert seen[-1]
    _, exact = gradient(
        FRWDLoss([6], eps=RELATIVE["eps"], gradient_tol=1e-6), data(dtype=torch.float64)
    )
    assert off(found[0], exact[0]) <= 5e-3


def test_the_answer_is_proven_when_asked_for():
    loss, (x, y, a, b) = FRWDLoss([2, 4], **RELATIVE), data()
    loss(x, y, a, b)
    result = loss.result
    x, y, a, b = data(dtype=torch.float64)
    exact = frot.solve(x, y, [2, 4], a=a, b=b, eta=result.eta, eps=result.eps, tol=1e-7)
    assert result.gap <= loss.gradient_tol
    assert result.lower <= exact.upper
    assert exact.lower <= result.upper
    assert loss.result is result


@pytest.mark.parametrize(
    "options",
    [
        {"gradient_tol": 5e-5},
        {"eta": 0.0},
        {"tau": 1.0},
        {"eps": 1e-5},
        {"adversary": frot.CappedSimplex(2)},
    ],
    ids=["close", "no eta", "unbalanced", "small eps", "capped"],
)
def test_all_else_is_solved_as_on_a_host(options, monkeypatch):
    x, y, *_ = data()
    x, y = x[:40], y[:30]
    loss = FRWDLoss([2, 2, 2], **{**RELATIVE, **options})
    value = float(loss(x, y))
    assert not loss._clouds
    monkeypatch.setattr(_streamed, "cloud_kernels", lambda x: None)
    assert value == float(FRWDLoss([2, 2, 2], **{**RELATIVE, **options})(x, y))


def test_points_of_no_weight_are_left_to_the_host():
    x, y, a, b = data()
    a[0] = 0.0
    loss = FRWDLoss(**RELATIVE)
    assert np.isfinite(float(loss(x, y, a / a.sum(), b)))
    assert not loss._clouds


def test_sweeps_that_do_not_end_are_left_to_the_host(monkeypatch):
    monkeypatch.setattr(clouds, "SWEEPS", 1)
    loss = FRWDLoss([6], eps=frot.relative(0.01))
    _, (found, *_) = gradient(loss, data())
    assert not loss._clouds
    monkeypatch.undo()
    _, (exact, *_) = gradient(FRWDLoss([6], eps=frot.relative(0.01)), data())
    assert off(found, exact) <= 5e-3


def test_steps_are_limited():
    loss = FRWDLoss([2, 4], **RELATIVE, max_iter=1, gradient_tol=1e-3)
    with pytest.warns(frot.ConvergenceWarning, match="Raise eps or max_iter"):
        loss(*data())
    assert not loss._clouds


def test_members_that_are_too_large_together_are_solved_one_by_one(monkeypatch):
    x, y, *_ = data()
    both = [torch.stack([x, x + 0.5]), torch.stack([y, y])]
    loss = FRWDLoss([2, 4], **RELATIVE)
    leaves = [part.clone().requires_grad_() for part in both]
    loss(*leaves).sum().backward()
    assert not loss._clouds
    monkeypatch.setattr("frot.torch.loss.MEMORY_BUDGET", 1.0)
    large = FRWDLoss([2, 4], **RELATIVE)
    others = [part.clone().requires_grad_() for part in both]
    values = large(*others)
    values.sum().backward()
    assert len(large._clouds) == 2
    assert values.detach().numpy() == pytest.approx(loss(*both).numpy(), rel=1e-4)
    for one, two in zip(leaves, others, strict=True):
        assert one.grad is not None
        assert two.grad is not None
        for at in range(2):
            assert off(two.grad[at], one.grad[at]) <= 2.0 * loss.gradient_tol
    assert [result.gap <= loss.gradient_tol for result in large.result] == [True, True]


def test_a_cloud_with_itself_has_no_loss():
    x, _, a, _ = data()
    assert float(FRWDLoss([6], eps=RELATIVE["eps"], debias=True)(x, x.clone(), a, a)) == 0.0


def test_training_starts_from_the_last_step_and_holds_no_more():
    x, y, *_ = data()
    loss = FRWDLoss([6], eps=0.5, debias=True)
    leaf = x.clone().requires_grad_()
    sweeps, alive = [], []
    for _ in range(12):
        (by,) = torch.autograd.grad(loss(leaf, y), leaf)
        leaf = (leaf.detach() - by).requires_grad_()
        assert loss._clouds
        sweeps.append(loss._clouds[0].sweeps)
        if len(sweeps) in (3, 12):
            gc.collect()
            alive.append(sum(issubclass(type(part), Tensor) for part in gc.get_objects()))
    assert max(sweeps[1:]) < sweeps[0]
    assert alive[0] == alive[1]
    again = FRWDLoss([6], eps=0.5, debias=True, warm_start=False)
    _, (cold, _) = gradient(again, [leaf.detach(), y])
    _, (warm, _) = gradient(loss, [leaf.detach(), y])
    assert not again._clouds
    assert off(warm, cold) <= loss.gradient_tol
    # Elsewhere it starts anew.
    loss(x + 2.0, y)
    assert loss._clouds
    assert loss._clouds[0].sweeps >= sweeps[0]


def test_autocast_and_graphs():
    parts, loss = data(), FRWDLoss([2, 4], **RELATIVE, warm_start=False)
    _, plain = gradient(loss, parts)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _, inside = gradient(loss, parts)
    assert all((one == two).all() for one, two in zip(plain, inside, strict=True))
    leaf = parts[0].clone().requires_grad_()
    value = loss(leaf, *parts[1:])
    first, second = (torch.autograd.grad(value, leaf, retain_graph=True)[0] for _ in range(2))
    assert (first == second).all()
    with pytest.raises(RuntimeError, match="no second derivatives"):
        torch.autograd.grad(value, leaf, create_graph=True)
    with torch.no_grad():
        assert float(loss(*parts)) == pytest.approx(float(value.detach()))
    # What is kept from inference is no obstacle to training.
    kept = FRWDLoss([1, 5], **RELATIVE)
    with torch.inference_mode():
        kept(*(part[:77] if part.ndim > 1 else part[:77] / part[:77].sum() for part in parts))
        kept(*parts)
    _, after = gradient(kept, parts)
    assert kept._clouds
    assert off(after[0], gradient(FRWDLoss([1, 5], **RELATIVE), parts)[1][0]) <= 5e-3


def test_debiased_losses_of_several_groups_are_solved_as_on_a_host(monkeypatch):
    x, y, *_ = data()
    loss = FRWDLoss([2, 2, 2], **RELATIVE, debias=True)
    with torch.inference_mode():
        loss(x, y)
    leaf = x.clone().requires_grad_()
    value = loss(leaf, y)
    value.backward()
    assert not loss._clouds
    monkeypatch.setattr(_streamed, "cloud_kernels", lambda x: None)
    host = FRWDLoss([2, 2, 2], **RELATIVE, debias=True)
    assert float(value.detach()) == float(host(x, y))
