"""A cost of the user's own: called for one pair of clouds after another, and checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from frot._base.arrays import refuse_odd_tensor
from frot._base.errors import InputError
from frot.torch._costs import GivenCosts
from frot.torch._tensors import from_autocast

OwnCost = Callable[[Tensor, Tensor], Tensor]


def own_costs(cost: OwnCost, x: Tensor, y: Tensor) -> GivenCosts:
    """Return what a cost makes of the members of a batch, (B, n, d) and (B, m, d).

    It is called once for every member, with points (n, d) and (m, d), and returns (n, m) or
    (L, n, m).
    """
    stacks = [_checked(cost(*pair), *pair) for pair in zip(x, y, strict=True)]
    counts = [len(stack) for stack in stacks]
    if min(counts) < max(counts):
        raise InputError(
            f"metric: the cost returned {min(counts)} groups for one member and {max(counts)} for "
            "another; return as many for all"
        )
    return GivenCosts.of(torch.stack(stacks))


def _checked(costs: Any, x: Tensor, y: Tensor) -> Tensor:
    """Return one member's costs as a stack (L, n, m); refuse what is none."""
    n, m = len(x), len(y)
    wanted = f"({n}, {m}), or (groups, {n}, {m})"
    if not isinstance(costs, Tensor):
        raise InputError(
            f"metric: the cost returned {type(costs).__name__}, not a tensor of shape {wanted}"
        )
    refuse_odd_tensor(costs, "metric")
    costs = from_autocast(costs)
    if costs.ndim not in (2, 3) or tuple(costs.shape[-2:]) != (n, m) or costs.shape[0] == 0:
        raise InputError(f"metric: the cost returned shape {tuple(costs.shape)}, expected {wanted}")
    if costs.dtype not in (torch.float32, torch.float64) or costs.device != x.device:
        raise InputError(
            f"metric: the cost returned {costs.dtype} on {costs.device}, expected {x.dtype} on "
            f"{x.device}"
        )
    moves = torch.is_grad_enabled() and (x.requires_grad or y.requires_grad)
    if moves and not costs.requires_grad:
        raise InputError(
            "metric: x or y requires grad, but the cost returned a tensor that does not; compute "
            "it in PyTorch, without detach() or no_grad(), or pass x.detach() and y.detach()"
        )
    if not bool(torch.isfinite(costs.detach()).all()):
        raise InputError(
            "metric: the cost returned NaN or infinite entries; give a pair that must not be "
            "matched a cost larger than all others"
        )
    return costs[None] if costs.ndim == 2 else costs
