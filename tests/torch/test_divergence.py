"""The debiased loss of several groups is a divergence, and its gradient is that of its value."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import frot
from frot.torch import FRWDLoss

SHARES = (1.0, -0.5, -0.5)


def example() -> tuple[Tensor, Tensor]:
    """Two sets whose terms, each with its own worst weights, differ by less than nothing."""
    draw = torch.Generator().manual_seed(3)
    x, y = (
        torch.randn(8, 4, dtype=torch.float64, generator=draw)
        * torch.rand(4, generator=draw).double()
        * 3
        for _ in range(2)
    )
    return x, y


def squares(x: Tensor, y: Tensor) -> Tensor:
    """One cost for every feature, (d, n, m)."""
    return (x.T[:, :, None] - y.T[:, None, :]) ** 2


def transport(C: Tensor, alpha: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Sinkhorn in logarithms, uniform weights: the value and the groups' costs."""
    M = torch.tensordot(alpha, C, 1)
    n, m = M.shape
    f, g = torch.zeros(n).double(), torch.zeros(m).double()
    for _ in range(20_000):
        last = g
        f = -eps * torch.logsumexp((g - M) / eps - np.log(m), 1)
        g = -eps * torch.logsumexp((f[:, None] - M) / eps - np.log(n), 0)
        if float((g - last).abs().max()) < 1e-12:
            break
    plan = ((f[:, None] + g - M) / eps).exp() / (n * m)
    return f.mean() + g.mean(), (plan * C).sum((1, 2))


def divergence(x: Tensor, y: Tensor, alpha: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """S_alpha and the debiased costs of the groups."""
    value, phi = torch.zeros(()).double(), torch.zeros_like(alpha)
    for share, C in zip(SHARES, (squares(x, y), squares(x, x), squares(y, y)), strict=True):
        term, costs = transport(C, alpha, eps)
        value, phi = value + share * term, phi + share * costs
    return value, phi


def reference(x: Tensor, y: Tensor, eta: float, eps: float) -> float:
    """D by mirror steps that never go down."""
    count = x.shape[1]
    alpha = torch.full((count,), 1.0 / count).double()

    def objective(alpha: Tensor) -> tuple[float, Tensor]:
        value, phi = divergence(x, y, alpha, eps)
        return float(value - eta * torch.xlogy(alpha, alpha * count).sum()), phi

    value, phi = objective(alpha)
    step = 1.0 / float(phi.abs().max())
    for _ in range(60):
        ahead = torch.softmax((alpha.log() + step * phi) / (1.0 + step * eta), 0).clamp(min=1e-200)
        other, costs = objective(ahead)
        if other < value:
            step *= 0.4
            continue
        alpha, value, phi, step = ahead, other, costs, 1.5 * step
    return value


@pytest.mark.parametrize(("eta", "known"), [(0.0, 1.328), (0.1, 1.1895), (1.0, 0.5214)])
def test_the_value_is_that_of_the_definition(eta: float, known: float):
    torch.manual_seed(3)
    x, y = (torch.randn(8, 4, dtype=torch.float64) * torch.rand(4).double() * 3 for _ in range(2))
    loss = FRWDLoss([1] * 4, eta=eta, eps=5.0, debias=True, gradient_tol=1e-6)
    value = float(loss(x, y))
    assert value == pytest.approx(reference(x, y, eta, 5.0), abs=1e-4)
    assert value == pytest.approx(known, abs=1e-3)
    assert value >= float(divergence(x, y, torch.full((4,), 0.25).double(), 5.0)[0]) > 0.0
    # The weights are those of the value, and shared.
    assert loss.alpha is not None
    shared, _ = divergence(x, y, loss.alpha, 5.0)
    surprise = torch.xlogy(loss.alpha, 4.0 * loss.alpha).sum()
    assert value == pytest.approx(float(shared - eta * surprise), abs=1e-9)
    # The result is that of x and y at these weights.
    plain, _ = transport(squares(x, y), loss.alpha, 5.0)
    assert loss.result.lower - 1e-9 <= float(plain) <= loss.result.upper + 1e-9
    assert loss.result.gap <= 1e-6


@given(
    seed=st.integers(0, 10**6),
    eta=st.sampled_from([0.0, 0.05, 1.0]),
    eps=st.sampled_from([0.02, 0.2, 2.0]),
    sizes=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    near=st.booleans(),
)
def test_it_is_a_divergence(seed: int, eta: float, eps: float, sizes: tuple[int, int], near: bool):
    draw = torch.Generator().manual_seed(seed)
    scales = torch.tensor([3.0, 1.0, 0.3], dtype=torch.float64)
    x, y = (torch.randn(size, 3, dtype=torch.float64, generator=draw) * scales for size in sizes)
    if near:
        y = x + 0.1 * torch.randn(x.shape, dtype=torch.float64, generator=draw)
    options: dict[str, Any] = {
        "eta": frot.relative(eta), "eps": frot.relative(eps), "debias": True,
        "gradient_tol": 1e-4, "warm_start": False,
    }  # fmt: skip
    loss = FRWDLoss([1, 1, 1], **options)
    value = float(loss(x, y))
    size = float(squares(x, y).mean())
    # With the prior's weights only: a large eta leaves no others.
    even = FRWDLoss([3], **{**options, "eta": 0.0, "eps": eps * size})
    assert value >= float(even(x / 3**0.5, y / 3**0.5)) - 1e-6 * size >= -2e-6 * size
    assert float(loss(x, x)) == pytest.approx(0.0, abs=1e-7 * size)
    # Another start is another local maximum, at most; from the same it is the same.
    assert float(loss(y, x)) == pytest.approx(value, abs=1e-4 * size)


@pytest.mark.parametrize("eta", [0.0, 0.1, 1.0])
def test_gradients_are_finite_differences(eta: float):
    x, y = example()
    loss = FRWDLoss([1, 2, 1], eta=eta, eps=1.0, debias=True, gradient_tol=1e-9)
    leaf = x.clone().requires_grad_()
    loss(leaf, y).backward()
    assert leaf.grad is not None
    way = torch.randn(x.shape, dtype=x.dtype, generator=torch.Generator().manual_seed(1))
    ends = [float(loss(x + step * way, y)) for step in (1e-4, -1e-4)]
    exact = (ends[0] - ends[1]) / 2e-4
    assert float((leaf.grad * way).sum()) == pytest.approx(exact, rel=1e-6, abs=1e-7)


# Where steps rise by less than is seen of them, and where Newton's from the start do not rise.
@pytest.mark.parametrize("seed", [0, 1, 26, 41, 72, 110, 173, 201, 221, 269, 289])
def test_it_gets_as_close_as_asked(seed: int):
    rng = np.random.default_rng([3, seed])
    n, m, count = rng.integers(10, 50, 3) // (1, 1, 6)
    X, Y = (rng.normal(size=(size, count)) * np.exp(rng.normal(size=count)) for size in (n, m))
    if seed % 3 == 1:
        X, Y = np.round(X), np.round(Y)
    elif seed % 3 == 2:
        X[: n // 2] += 4.0
    eps, tol = frot.relative(rng.choice([0.005, 0.05, 0.2])), rng.choice([1e-4, 1e-6])
    eta = frot.relative(rng.choice([0.0, 0.01, 0.1]))
    loss = FRWDLoss("each", eta, eps, debias=True, gradient_tol=tol)
    # What misses its tolerance is said in a warning.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss(torch.tensor(X), torch.tensor(Y))


@pytest.mark.parametrize("eta", [0.0, 0.1])
def test_training_gets_to_the_target(eta: float):
    draw = torch.Generator().manual_seed(0)
    y = torch.randn(12, 4, dtype=torch.float64, generator=draw)
    x = torch.randn(12, 4, dtype=torch.float64, generator=draw).requires_grad_()
    loss = FRWDLoss([1] * 4, eta=eta, eps=frot.relative(0.2), debias=True)
    adam = torch.optim.Adam([x], lr=0.1)
    for _ in range(100):
        adam.zero_grad()
        value = loss(x, y)
        value.backward()
        adam.step()
        assert value.item() > -1e-6
    assert frot.solve(x.detach(), y, groups="all").value < 0.003


def test_warm_starts_come_to_the_same():
    x, y = example()
    given: dict[str, Any] = {"eta": 0.2, "eps": 1.0, "debias": True, "gradient_tol": 1e-6}
    warm, cold = FRWDLoss([1] * 4, **given), FRWDLoss([1] * 4, warm_start=False, **given)
    draw = torch.Generator().manual_seed(2)
    for _ in range(3):
        assert float(warm(x, y)) == pytest.approx(float(cold(x, y)), rel=1e-8)
        assert float(warm(x, y)) == float(warm(x, y))
        x = x + 0.02 * torch.randn(x.shape, dtype=x.dtype, generator=draw)


def test_sets_beyond_memory_are_streamed_and_members_solved_alone(monkeypatch):
    x, y = example()
    loss = FRWDLoss([1] * 4, eta=0.2, eps=1.0, debias=True, gradient_tol=1e-5, warm_start=False)
    both = torch.stack([x, 2.0 * x]), torch.stack([y, y])
    together = loss(*both)
    weights = loss.alpha
    monkeypatch.setattr("frot.torch.loss.MEMORY_BUDGET", 1.0)
    monkeypatch.setattr("frot.torch._solved.MEMORY_BUDGET", 1.0)
    leaf = both[0].clone().requires_grad_()
    alone = loss(leaf, both[1])
    assert alone.detach().numpy() == pytest.approx(together.numpy(), rel=1e-6)
    assert weights is not None
    assert loss.alpha is not None
    assert loss.alpha.numpy() == pytest.approx(weights.numpy(), abs=1e-4)
    alone.sum().backward()
    monkeypatch.undo()
    other = both[0].clone().requires_grad_()
    loss(other, both[1]).sum().backward()
    assert leaf.grad is not None
    assert other.grad is not None
    assert leaf.grad.numpy() == pytest.approx(other.grad.numpy(), abs=1e-4)


def test_what_is_not_reached_is_said():
    x, y = example()
    loss = FRWDLoss([1] * 4, eta=0.2, eps=0.5, debias=True, gradient_tol=1e-7, max_iter=2)
    with pytest.warns(frot.ConvergenceWarning, match="the gradient is off by about") as seen:
        loss(x, y)
    assert [warning.filename for warning in seen] == [__file__]
