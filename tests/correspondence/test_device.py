import pytest

from frot import InputError
from frot.correspondence import Matcher, TorchBackbone, _device
from tests.correspondence.small import cat, convolutions


def test_more_cells_than_the_memory_holds_are_refused_before_costs_are_made(monkeypatch):
    monkeypatch.setattr(_device, "_memory", lambda: 1e5)
    matcher = Matcher(TorchBackbone(convolutions()), side=96, device="cpu")
    with pytest.raises(InputError, match=r"side: \d+ x \d+ cells need some 0 GB, and there are 0"):
        matcher(cat(), cat())


def test_a_machine_that_does_not_say_what_it_has(monkeypatch):
    monkeypatch.delattr(_device.os, "sysconf")
    assert _device._memory() == float("inf")
    _device.check_room(10**9, 10**9)
