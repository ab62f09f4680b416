"""What a stack of costs on a device takes besides itself."""

from __future__ import annotations

import pytest

import frot

torch = pytest.importorskip("torch")
dispatch = pytest.importorskip("torch.utils._python_dispatch")


class Allocations(dispatch.TorchDispatchMode):
    """The largest tensor that anything makes, in bytes."""

    def __init__(self):
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        mine = {a.untyped_storage().data_ptr() for a in args if isinstance(a, torch.Tensor)}
        for tensor in made if isinstance(made, tuple | list) else (made,):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().data_ptr() not in mine:
                self.largest = max(self.largest, tensor.untyped_storage().nbytes())
        return made


@pytest.mark.parametrize("least", [0.0, -0.5])
def test_a_stack_in_single_precision_is_never_copied(least, monkeypatch):
    # Blocks of less than two matrices, as they are of large ones.
    monkeypatch.setattr("frot.costs.stack.HOST_BLOCK", 2 * 60 * 50 * 8)
    stack = torch.rand((20, 60, 50), generator=torch.Generator().manual_seed(0)) + least
    with Allocations() as made:
        found = frot.solve_costs(stack, eta=0.1, eps=0.05)
    assert made.largest <= 2 * 60 * 50 * 8
    expected = frot.solve_costs(stack.double(), eta=0.1, eps=0.05)
    assert float(found.value) == pytest.approx(float(expected.value), rel=2e-4)
    assert found.lower <= expected.upper
    assert expected.lower <= found.upper
