"""What a module is known by: others must differ, and the same must stay the same."""

import pickle

import numpy as np
import pytest

from frot.correspondence.backbones._torch import TorchBackbone

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from frot.correspondence.backbones._module_identity import (  # noqa: E402
    Weights,
    code_digest,
    weights_digest,
)
from frot.correspondence.backbones._torch_networks import ResNet  # noqa: E402
from tests.correspondence.small import convolutions  # noqa: E402

SLOPE = 0.1


def bent(x):
    return torch.where(x > 0, x, SLOPE * x)


class Plain(nn.Module):
    act = staticmethod(torch.relu)

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, 2, 1)
        self.last = nn.Conv2d(4, 4, 3, 2, 1)
        self.register_buffer("shift", torch.zeros(4, 1, 1))

    def forward(self, x):
        return self.last(self.act(self.first(x))) + self.shift


class Signed(Plain):
    def forward(self, x):
        return -self.last(self.act(self.first(x))) + self.shift


# The same text in `repr`.
Signed.__name__ = "Plain"


class Bent(Plain):
    def forward(self, x):
        return self.last(bent(self.first(x))) + self.shift


@pytest.fixture
def module():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Plain().eval()


def like(module, kind=Plain):
    other = kind().eval()
    other.load_state_dict(module.state_dict())
    return other


def in_place(module):
    with torch.no_grad():
        module.first.weight.add_(1.0)


def by_an_optimiser(module):
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
    module(torch.ones(1, 3, 16, 16)).sum().backward()
    optimiser.step()


def through_data(module):
    module.last.weight.data.mul_(0.5)


def through_numpy(module):
    module.last.bias.detach().numpy()[:] = 3.0


def of_a_buffer(module):
    module.shift += 1.0


def by_another_tensor(module):
    module.first.weight = nn.Parameter(module.first.weight.detach() + 1.0)


def from_a_file(module):
    module.load_state_dict({key: value + 1.0 for key, value in module.state_dict().items()})


@pytest.mark.parametrize(
    "change",
    [
        in_place,
        by_an_optimiser,
        through_data,
        through_numpy,
        of_a_buffer,
        by_another_tensor,
        from_a_file,
    ],
)
def test_changed_weights_are_noticed(module, change):
    backbone = TorchBackbone(module)
    before = backbone.state, backbone.fingerprint
    assert (backbone.state, backbone.fingerprint) == before
    change(module)
    after = backbone.state, backbone.fingerprint
    assert after[0] != before[0]
    assert after[1] != before[1]
    assert after[1] == TorchBackbone(module).fingerprint


def test_a_run_changes_nothing(module):
    backbone = TorchBackbone(module)
    state = backbone.state
    backbone.extract(np.zeros((32, 32, 3), dtype=np.float32))
    assert backbone.state == state


def test_weights_of_inference_mode_that_count_no_changes():
    with torch.inference_mode():
        layer = nn.Linear(40, 40)
    weights = Weights(layer)
    before = weights.state
    assert before == weights.state
    with torch.inference_mode():
        layer.weight[7, 3] += 1.0
    assert weights.state != before


def test_the_weights_are_hashed_once(module, monkeypatch):
    from frot.correspondence.backbones import _module_identity

    counted = []

    def counting(module):
        counted.append(module)
        return weights_digest(module)

    monkeypatch.setattr(_module_identity, "weights_digest", counting)
    backbone = TorchBackbone(module)
    found = backbone.fingerprint
    assert backbone.fingerprint == found
    # Nor again in a worker.
    sent = pickle.dumps(backbone)
    assert pickle.loads(sent).fingerprint == found
    assert len(counted) == 1
    # Unless they have changed on the way.
    in_place(module)
    again = pickle.loads(pickle.dumps(backbone))
    assert again.fingerprint == backbone.fingerprint != found
    assert len(counted) == 3


def test_another_forward_with_the_same_weights_and_text(module):
    swapped, late, kept = like(module), like(module), like(module)
    swapped.act = torch.sin
    late.forward = lambda x: late.last(late.first(x)) + late.shift
    others = [module, swapped, late, like(module, Signed), like(module, Bent)]
    assert repr(like(module, Signed)) == repr(module) == repr(swapped)
    found = [TorchBackbone(other).fingerprint for other in others]
    assert len(set(found)) == len(others)
    assert TorchBackbone(kept).fingerprint == found[0]


def test_functions_and_numbers_beside_the_class(module, monkeypatch):
    network = like(module, Bent)
    found = code_digest(network)
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "SLOPE", 0.2)
        assert code_digest(network) != found
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "bent", like)
        assert code_digest(network) != found
    assert code_digest(network) == found


def test_heads_of_attention_are_in_no_text():
    one, two = nn.MultiheadAttention(8, 2), nn.MultiheadAttention(8, 4)
    assert repr(one) == repr(two)
    assert code_digest(one) != code_digest(two)


def test_attributes_of_any_kind():
    class Odd(Plain):
        def __init__(self, scale):
            super().__init__()
            self.unknown = object()
            self.itself: list = [scale]
            self.itself.append(self.itself)
            self.table = torch.full((3,), scale)
            self.bound = self.first.forward

    found = [code_digest(Odd(scale)) for scale in (1.0, 1.0, 2.0)]
    assert found[0] == found[1] != found[2]


def test_what_says_it_all_has_no_code():
    # Their fingerprints are the same in every version of Python.
    assert code_digest(convolutions()) is None
    assert code_digest(ResNet((1, 1, 1, 1), width=4)) is None
