"""The envelope theorem (Danskin 1967) in autograd.

Values are found by a solver forward; backward plans are held fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from frot._base.arrays import device_room


def envelope(
    derivatives: Callable[..., Sequence[Tensor | None]],
) -> Callable[..., tuple[Tensor | None, ...]]:
    """Make a backward pass of derivatives that hold plan and weights fixed.

    They are taken outside of autocast. The first tensor that was saved forward is one of points or
    costs.
    """

    @wraps(derivatives)
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            # How plan and weights move is not known: derivatives of constants would be zero.
            raise RuntimeError("FRWDLoss has no second derivatives; leave out create_graph=True")
        x = ctx.saved_tensors[0]
        # Products of plans and points, once more as large as these, and blocks of the plans.
        room = device_room("x, y", 16.0 * x.numel() + 1e9, "pass fewer points")
        with torch.autocast(grads[0].device.type, enabled=False), room:
            return tuple(derivatives(ctx, *grads))

    return backward
