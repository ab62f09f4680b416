"""Derivatives by the envelope theorem, which have none of their own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from frot._base.arrays import device_room

__all__ = ["Envelope"]


class Envelope(torch.autograd.Function):
    """Values found by a solver forward; backward what `envelope` returns, once."""

    @classmethod
    def backward(cls, ctx: Any, *grads: Any) -> Any:  # pyright: ignore
        x = ctx.saved_tensors[0]
        # Products of plans and points, once more as large as these, and blocks of the plans.
        room = device_room("x, y", 16.0 * x.numel() + 1e9, "pass fewer points")
        with torch.no_grad(), torch.autocast(grads[0].device.type, enabled=False), room:
            found = cls.envelope(ctx, *grads)
        if torch.is_grad_enabled():
            # Asked to be differentiated again: constants would pass for zero derivatives.
            used = (*grads, *ctx.saved_tensors)
            found = [None if part is None else _Once.apply(part, *used) for part in found]
        return tuple(found)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise RuntimeError(
            "FRWDLoss has no derivatives in forward mode; use loss(x, y).backward(), or "
            "torch.autograd.grad"
        )

    @staticmethod
    def envelope(ctx: Any, *grads: Any) -> list[Any]:
        """Return the derivatives by all arguments, plan and weights held fixed."""
        raise NotImplementedError


class _Once(torch.autograd.Function):
    """A derivative that has none of its own."""

    @staticmethod
    def forward(ctx: Any, found: Tensor, *used: Tensor) -> Tensor:
        return found.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "FRWDLoss has first derivatives only: its gradient holds plan and weights fixed, and "
            "how these move is not known"
        )
