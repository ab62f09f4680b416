"""Runs that are replayed give what a run gives, and only where they may."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from frot.correspondence.backbones import _trace  # noqa: E402
from frot.correspondence.backbones._module_identity import Weights  # noqa: E402
from frot.correspondence.backbones._trace import CudaGraphs, ModuleOutputs  # noqa: E402


@dataclass
class OnCuda:
    """A tensor of the host that says it is on a device."""

    value: Any

    @property
    def device(self):
        return torch.device("cuda")

    @property
    def shape(self):
        return self.value.shape

    @property
    def dtype(self):
        return self.value.dtype

    def copy_(self, other):
        self.value = other.value.clone()


class Graph:
    """What a graph does: the same work on the same memory."""

    def __init__(self, held: OnCuda, run: Any, look: ModuleOutputs) -> None:
        self.held, self.run, self.look = held, run, look

    def replay(self):
        for name, (_, value) in self.run(self.held).maps.items():
            self.look.maps[name][1].copy_(value)


class Network:
    """A convolution whose runs are counted."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.module = nn.Conv2d(3, 2, 3)
        self.weights, self.replays, self.recorded = Weights(self.module), CudaGraphs(), 0

    def run(self, image: Any) -> ModuleOutputs:
        with torch.no_grad():
            return ModuleOutputs({"0": (None, self.module(image.value))}, None)

    def record(self, image: Any, run: Any) -> Any:
        self.recorded += 1
        held: Any = OnCuda(image.value.clone())
        look = run(held)
        return _trace._Recording(held, Graph(held, run, look), look)

    def look(self, image: Any, asked: Any = ("0",)) -> Any:
        there: Any = OnCuda(image)
        found = self.replays(self.module, self.weights, there, asked, self.run)
        return found.maps["0"][1]


@pytest.fixture
def network(monkeypatch):
    network = Network()
    monkeypatch.setattr(_trace, "_record", network.record)
    return network


def images(count: int, side: int = 8) -> list[Any]:
    draw = torch.Generator().manual_seed(1)
    return [torch.rand((1, 3, side, side), generator=draw) for _ in range(count)]


def test_replays_are_runs_and_nobody_shares_their_memory(network):
    some = images(6)
    found = [network.look(image) for image in some]
    assert network.recorded == 1
    for image, values in zip(some, found, strict=True):
        assert torch.equal(values, network.module(image))
    assert len({values.data_ptr() for values in found}) == 6


def test_each_shape_and_question_has_its_own(network):
    for side in (8, 9):
        for image in images(4, side):
            assert network.look(image).shape[-1] == side - 2
            network.look(image, asked=())
    assert network.recorded == 4


def test_few_shapes_are_kept(network):
    for side in range(8, 8 + _trace.MOST_SHAPES + 2):
        for image in images(3, side):
            network.look(image)
    assert len(network.replays._kept) == _trace.MOST_SHAPES


def test_weights_that_were_put_elsewhere(network):
    for image in images(4):
        network.look(image)
    network.module.weight = nn.Parameter(2.0 * network.module.weight.detach())
    (image,) = images(1)
    assert torch.equal(network.look(image), network.module(image))
    assert not network.replays._kept


def test_a_module_that_is_watched_is_run(network):
    calls = []
    hook = network.module.register_forward_hook(lambda *_: calls.append(1))
    for image in images(5):
        network.look(image)
    assert network.recorded == 0
    assert len(calls) == 5
    hook.remove()


def test_what_cannot_be_recorded_is_run(network, monkeypatch):
    def fails(image, run):
        network.recorded += 1
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(_trace, "_record", fails)
    for image in images(5):
        assert torch.equal(network.look(image), network.module(image))
    assert network.recorded == 1


def test_recordings_stay_in_their_process(network):
    for image in images(3):
        network.look(image)
    assert network.replays._kept
    assert not pickle.loads(pickle.dumps(network.replays))._kept
