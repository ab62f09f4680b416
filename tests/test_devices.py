"""Tensors of a device are brought to the host on purpose: NumPy cannot read them there by itself.

Those of a CUDA device raise where NumPy tries. CI has none, so tensors of the host do it here.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import frot
from frot._base.arrays import Home
from frot.correspondence import FeatureMap, Matcher
from frot.correspondence.cache import FeatureMemory
from frot.solvers.entropic.dense import DenseEngine
from frot.solvers.entropic.entropic import EntropicRun
from frot.solvers.entropic.stream import StreamEngine
from frot.torch import FRWDLoss
from frot.torch._solved import Solved

RNG = np.random.default_rng(0)
X, Y = (torch.asarray(RNG.normal(size=(n, 6)), dtype=torch.float32) for n in (30, 25))


@pytest.fixture(autouse=True)
def _no_arrays(monkeypatch):
    """Let tensors behave as those of a device do."""

    def refuse(self, *arguments):
        raise TypeError("can't convert a tensor of a device to numpy")

    monkeypatch.setattr(torch.Tensor, "__array__", refuse)


def test_the_fixture_refuses():
    with pytest.raises(TypeError, match="can't convert"):
        np.asarray(torch.zeros(2))


@pytest.mark.parametrize(
    "options",
    [
        {"eps": 0.3},
        {"eps": 0.3, "memory_budget": 1e3},
        {"eps": 0.3, "tau": 1.0},
        {"solver": frot.FrankWolfe(frot.Sinkhorn(eps=0.3), tol=1.0, max_iter=500)},
        {},
    ],
    ids=["dense", "streamed", "unbalanced", "paper", "exact"],
)
def test_a_result_can_be_read(options):
    result = frot.solve(X, Y, [2, 2, 2], eta=0.1, **options)
    assert result.lower <= result.upper
    assert float(result.plan.sum()) > 0.0
    assert result.plan.sum(axis=1).shape == (30,)
    assert (result.plan @ Y).shape == (30, 6)
    assert "interval" in result.summary() or str(round(result.lower, 3)) in result.summary()
    result.plot()


def test_batches_and_losses():
    batch = frot.solve_batch([X, X], [Y, Y], [2, 2, 2], eta=0.1, eps=0.3)
    assert len(batch) == 2
    leaf = X.clone().requires_grad_()
    FRWDLoss(groups=[2, 2, 2], eta=0.1, eps=0.3)(leaf, Y).backward()
    assert leaf.grad is not None


@pytest.mark.parametrize(
    "where", ["solve", "streamed", "costs", "batch", "loss", "gradient", "match"]
)
def test_too_little_memory_is_said_with_the_bytes_and_the_way_out(where: str, monkeypatch):
    leaf = X.clone().requires_grad_()
    loss = FRWDLoss([2, 2, 2], eta=0.1, eps=0.3)
    value = loss(leaf, Y)
    fails = loss.result

    def fail(*arguments, **options):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 40.00 GiB")

    for owner, name in (
        (DenseEngine, "sweep"), (DenseEngine, "start"), (StreamEngine, "sweep"),
        (DenseEngine, "passes"), (EntropicRun, "prove"), (Solved, "products"),
        (Matcher, "solve"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, fail)
    calls = {
        "solve": lambda: frot.solve(X, Y, eps=0.3),
        "streamed": lambda: frot.solve(X, Y, eps=0.3, memory_budget=1e3),
        "costs": lambda: frot.solve_costs(torch.ones(1, 30, 25), eps=0.3),
        "batch": lambda: frot.solve_batch([X], [Y], eps=0.3),
        "loss": lambda: loss(X + 1.0, Y),
        "gradient": value.backward,
        "match": lambda: matched("frot", "cpu"),
    }
    ways = {
        "solve": "X, Y: .* pass a smaller memory_budget",
        "streamed": "X, Y: .* give fewer points",
        "costs": "C: .* pass fewer points",
        "batch": "X, Y: .* fewer members at once",
        "loss": "x, y: .* fewer members",
        "gradient": "x, y: .* pass fewer points",
        "match": "side: .* use a smaller side",
    }
    with pytest.raises(frot.InputError, match=f"{ways[where]}") as caught:
        calls[where]()
    assert "GB are needed" in str(caught.value)
    # What was found before is still there.
    assert loss.result is fails


@pytest.mark.parametrize("device", ["cuda:7", "cuda:x", "gpu", "mps"])
def test_devices_that_are_not_there_are_named(device: str):
    if device == "mps" and torch.backends.mps.is_available():
        pytest.skip("there is one")
    with pytest.raises(frot.InputError, match=f"device: '{device}' cannot be used .*; use 'cpu'"):
        Matcher(Network(), device=device)


class Network:
    """The same features of two sizes for all photographs, in noise by the first pixel."""

    name, layers, fingerprint = "noise", ("fine", "coarse"), "1"

    def extract(self, image: np.ndarray) -> list[FeatureMap]:
        common, noise = (np.random.default_rng(k) for k in (300, int(image[0, 0, 0] * 255)))
        sizes = ((6, 8, 10, 8), (6, 4, 5, 16))
        maps = []
        for name, (*size, stride) in zip(self.layers, sizes, strict=True):
            values = common.normal(size=size) + 0.5 * noise.normal(size=size)
            maps.append(FeatureMap(name, values.astype(np.float32), stride, 11))
        return maps


PHOTOGRAPHS = [RNG.integers(0, 255, (64, 80, 3), dtype=np.uint8) for _ in range(2)]
POINTS = RNG.random((5, 2)) * 60.0


def matched(preset: str, device: str):
    """Match twice, so that the features come from memory."""
    matcher = Matcher(Network(), side=80, preset=preset, device=device, mass="uniform", stride=8)
    matcher(*PHOTOGRAPHS)
    return matcher(*PHOTOGRAPHS)


@pytest.mark.parametrize("preset", ["frot", "frot-paper", "scot", "hpf"])
def test_photographs_are_matched_as_on_the_host(preset: str, monkeypatch):
    host = matched(preset, "cpu").transfer(POINTS)
    # PyTorch's arrays pass for those of a device, and take its ways.
    on_host = property(lambda home: home.library == "numpy")
    monkeypatch.setattr(Home, "on_host", on_host)
    match = matched(preset, "cpu:0")
    found = match.transfer(POINTS)
    assert found.points == pytest.approx(host.points, abs=0.5)
    # Plans of the same gap differ a little, and so do shares of their votes.
    assert found.confidence == pytest.approx(host.confidence, abs=0.03)
    match.flow()
    match.inverse.transfer(POINTS)
    if (result := match.result) is not None:
        assert result.lower <= result.value <= result.upper
        assert preset == "frot-paper" or result.gap <= 1e-3
        back = match.inverse.result
        assert back is not None
        assert back.upper == result.upper


def test_features_that_stay_on_a_device_are_those_of_the_host(monkeypatch):
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=4, padding=1), torch.nn.ReLU(),
        torch.nn.Conv2d(8, 12, 3, stride=2, padding=1),
    )  # fmt: skip
    layers = ["0", "2"]
    host = Matcher(module, layers=layers, side=64, device="cpu", mass="uniform")
    there = Matcher(module, layers=layers, side=64, device="cpu", mass="uniform")
    expected = host.features(PHOTOGRAPHS[0]).maps
    monkeypatch.setattr(Home, "on_host", property(lambda home: home.library == "numpy"))
    there._seen = FeatureMemory("cpu")
    for one, other in zip(expected, there.features(PHOTOGRAPHS[0]).maps, strict=True):
        assert torch.is_tensor(other.values)
        assert np.array_equal(one.values, other.values.numpy())
