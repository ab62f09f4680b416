"""What the loss takes: tensors of one device and dtype, finite, with numbers of their own."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from frot._base.arrays import find_home, refuse_odd_tensor
from frot._base.errors import InputError
from frot.api.batch import batch_weights


def refuse_recording() -> None:
    """Refuse to be recorded: what a search does depends on the numbers."""
    # Versions of PyTorch before 2.7 cannot tell.
    exporting = getattr(torch.compiler, "is_exporting", bool)
    tracing = torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
    if tracing or exporting():
        raise RuntimeError(
            "FRWDLoss cannot be traced or exported: how it gets to its value depends on the "
            "numbers. Trace or export the model without its loss; torch.compile takes both"
        )


def from_autocast(part: Any) -> Any:
    """Return what autocast has made half precision in single, as its own losses take it."""
    if not isinstance(part, Tensor) or part.dtype not in (torch.float16, torch.bfloat16):
        return part
    return part.float() if torch.is_autocast_enabled(part.device.type) else part


def check_tensors(x: Any, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
    """Refuse what is not tensors of one device and dtype, or not finite."""
    named = {"x": x, "y": y, "a": a, "b": b}
    for name, part in named.items():
        if part is None and name in "ab":
            continue
        if not isinstance(part, Tensor):
            raise InputError(f"{name}: is {type(part).__name__}, not a tensor; use torch.as_tensor")
        refuse_odd_tensor(part, name)
    parts = {name: part.detach() for name, part in named.items() if part is not None}
    find_home(**parts)
    if x.ndim not in (2, 3) or x.ndim != y.ndim:
        raise InputError(
            f"x, y: have shapes {tuple(x.shape)} and {tuple(y.shape)}; expected (points, "
            "features), or a batch of such"
        )
    if x.ndim == 3 and x.shape[0] != y.shape[0]:
        raise InputError(
            f"x, y: are batches of {x.shape[0]} and {y.shape[0]}; they must be as many"
        )
    if x.shape[-1] != y.shape[-1]:
        raise InputError(f"x, y: have {x.shape[-1]} and {y.shape[-1]} features")
    for name, part in parts.items():
        if part.numel() == 0:
            raise InputError(f"{name}: is empty (shape {tuple(part.shape)})")
        # A sum is quickly had, and says it in most cases.
        if not math.isfinite(float(part.sum())) and not bool(torch.isfinite(part).all()):
            member = ""
            if x.ndim == 3 and part.ndim > 1:
                member = f"[{int(torch.nonzero(~torch.isfinite(part))[0, 0])}]"
            raise InputError(f"{name}{member}: has NaN or infinite entries; clip or drop them")
    return x, y, a, b


def spread_weights(
    weights: Tensor | None, points: Tensor, name: str, any_mass: bool = False
) -> Tensor:
    """Return weights of every member, (B, n)."""
    count, size = points.shape[:2]
    if weights is None:
        return points.new_full((count, size), 1.0 / size)
    checked = batch_weights(weights.detach(), count, size, name, normalise=False, any_mass=any_mass)
    spread = weights if weights.ndim == 2 else weights.expand(count, size)
    light = torch.as_tensor(checked == 0.0, device=spread.device) & (spread > 0.0)
    return torch.where(light, 0.0, spread) if bool(light.any()) else spread
