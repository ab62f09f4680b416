"""Running somebody else's module, and leaving it as it was found."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from frot._errors import InputError
from frot.correspondence._backbones._trace import Trace

__all__ = ["evaluating", "placed", "watching", "without_local_hooks"]


def placed(module: Any, device: Any) -> Any:
    """Return a module on a device: itself if it is there, otherwise a copy."""
    if device is None:
        return module
    try:
        device = torch.device(device)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device is {device}: {str(error).splitlines()[0]}") from None
    if all(p.device == device for p in (*module.parameters(), *module.buffers())):
        return module
    return copy.deepcopy(module).to(device)


def without_local_hooks(module: Any) -> Any:
    """Return a module that can be sent to another process.

    Hooks that others left, which only look at what passes, are often functions inside functions,
    which cannot be sent; they are dropped from a copy.
    """
    if not any(_local_hooks(part) for part in module.modules()):
        return module
    module = copy.deepcopy(module)
    for part in module.modules():
        for hooks, key in _local_hooks(part):
            del hooks[key]
    return module


def _local_hooks(part: Any) -> list[tuple[Any, int]]:
    return [
        (hooks, key)
        for hooks in (part._forward_hooks, part._forward_pre_hooks)
        for key, hook in hooks.items()
        if "<locals>" in getattr(hook, "__qualname__", "")
    ]


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Put every part in evaluation mode, and back into the mode that each was in."""
    modes = [(part, part.training) for part in module.modules()]
    try:
        module.eval()
        yield
    finally:
        for part, mode in modes:
            part.training = mode


@contextmanager
def watching(module: Any, trace: Trace) -> Iterator[dict[str, Any]]:
    """Keep `trace.inside`, and copy what the parts return that the yielded dictionary names."""
    outputs: dict[str, Any] = {}
    hooks = []

    def enter(name: str) -> Any:
        return lambda _part, _args: trace.inside.append(name)

    def leave(name: str) -> Any:
        def hook(_part: Any, _args: Any, output: Any) -> None:
            trace.inside.pop()
            if name in outputs and (value := _first_tensor(output)) is not None:
                outputs[name] = (trace.sight(value), value.detach().clone())

        return hook

    try:
        for name, part in module.named_modules():
            hooks.append(part.register_forward_pre_hook(enter(name)))
            hooks.append(part.register_forward_hook(leave(name)))
        yield outputs
    finally:
        for hook in hooks:
            hook.remove()


def _first_tensor(output: Any) -> Any:
    if isinstance(output, Mapping):
        output = list(output.values())
    if isinstance(output, list | tuple):
        return next((found for part in output if (found := _first_tensor(part)) is not None), None)
    return output if isinstance(output, torch.Tensor) else None
