"""`Watch`: a torch module at work: its residual sums before any activation, and what it averages.

A sum is made inside a module and often overwritten by the activation behind it, so that what the
parts of the module return does not show it. Operations are therefore looked at as they run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakTensorKeyDictionary

_ATEN = torch.ops.aten
_KINDS = {
    _ATEN.add.Tensor: "sum",
    _ATEN.add_.Tensor: "sum",
    _ATEN.max_pool2d_with_indices.default: "max pool",
    _ATEN.max_pool2d.default: "max pool",
    _ATEN.mean.dim: "mean",
    _ATEN._adaptive_avg_pool2d.default: "mean",
    _ATEN.avg_pool2d.default: "mean",
}
# Where the matrix is among the arguments, and what it is applied to; in the first two as (in, out).
_MATRICES = {
    _ATEN.addmm.default: (1, 2, True),
    _ATEN.mm.default: (0, 1, True),
    _ATEN.linear.default: (0, 1, False),
}


@dataclass(frozen=True, eq=False)
class Found:
    """A tensor of a run.

    Attributes
    ----------
    name : str
        The part of the module that made it.
    number : int
        Which one of its kind it is in the run.
    value : tensor
    time : int
        How many operations there were before.
    field : int
        Pixels that its cells see along all windows so far, where those are followed.
    """

    name: str
    number: int
    value: torch.Tensor
    time: int
    field: int


class Watch(TorchDispatchMode):
    """Look at a module's operations while it runs on a batch of one image.

    Parameters
    ----------
    image : tensor of shape (1, 3, h, w)
    keep : collection of int
        Numbers of the sums that are copied. With None what is made of the image is followed, so
        that a sum of the image and of constants, as of places, counts as none; of all tensors
        the shapes are kept.

    Attributes
    ----------
    inside : list of str
        Names of the parts that are being run, the innermost last; kept by `watching`.
    sums : list of Found
        Residual sums: of two tensors of one shape that both come from the image.
    pools : list of Found
        What max-pools make.
    averaged : list of Found
        Maps that are averaged over all their cells.
    matrices : list of (tensor, tensor, tensor, int)
        What a matrix is applied to, the matrix (out, in), what comes out, and how many
        maps of more than one cell were made before.
    maps : int
        How many there were.
    weights : int
        Matrices and filters that were applied, where what is made of the image is followed.
    time : int
        How many operations there were.
    """

    def __init__(self, image: torch.Tensor, keep: Collection[int] | None = ()) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.sums: list[Found] = []
        self.pools: list[Found] = []
        self.averaged: list[Found] = []
        self.matrices: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]] = []
        self.maps = self.weights = 0
        self.time = 0
        self._keep, self._image, self._field, self._count = keep, image, 1, 0
        # What is made of the image, and what its cells see.
        self._made = WeakTensorKeyDictionary()
        self._made[image] = 1

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self.time += 1
        if isinstance(result, torch.Tensor):
            self.maps += result.ndim == 4 and result.shape[2:].numel() > 1
        if self._keep is None:
            self._follow(func, args, result)
        kind = _KINDS.get(func)
        if kind == "sum" and _alike(args):
            self._add(args, result)
        elif kind == "max pool":
            self.pools.append(self._found(len(self.pools), self.copy(next(tensors(result)))))
        elif kind == "mean" and args[0].ndim == 4 and result.numel() == args[0].shape[1]:
            self.averaged.append(self._found(len(self.averaged), args[0]))
        elif func in _MATRICES:
            given, matrix, turned = _MATRICES[func]
            weights = args[matrix].t() if turned else args[matrix]
            self.matrices.append((args[given], weights, result, self.maps))
        return result

    def field(self, value: torch.Tensor) -> int:
        """Return how many pixels the cells of a tensor see, 1 where that was not followed."""
        return int(self._made.get(value, 1) or 1)

    def copy(self, value: torch.Tensor) -> torch.Tensor:
        """Return a copy of a tensor, of its shape alone where what is made is followed."""
        if self._keep is None:
            return torch.empty_like(value, device="meta")
        return value.detach().clone()

    def _found(self, number: int, value: torch.Tensor) -> Found:
        name = self.inside[-1] if self.inside else ""
        return Found(name, number, value, self.time, self._field)

    def _add(self, args: Sequence[Any], result: torch.Tensor) -> None:
        number, self._count = self._count, self._count + 1
        if self._keep is None:
            if all(one in self._made for one in args[:2]):
                self.sums.append(self._found(number, self.copy(result)))
        elif number in self._keep:
            self.sums.append(self._found(number, self.copy(result)))

    def _follow(self, func: Any, args: Sequence[Any], result: Any) -> None:
        """Count what cells see along convolutions and pools, one after another."""
        given = list(tensors(args))
        if any(isinstance(one, torch.nn.Parameter) and one.ndim > 1 for one in given):
            self.weights += 1
        if not any(one in self._made for one in given):
            return
        windows: Sequence[int] = ()
        if func is _ATEN.convolution.default and not args[6]:
            windows = [(k - 1) * gap for k, gap in zip(args[1].shape[2:], args[5], strict=True)]
        elif _KINDS.get(func) == "max pool" or func is _ATEN.avg_pool2d.default:
            windows = [k - 1 for k in args[1]]
        if windows and args[0].ndim == 4:
            self._field += max(windows) * self._stride(args[0])
        for one in tensors(result):
            self._made[one] = self._field

    def _stride(self, maps: torch.Tensor) -> int:
        """Pixels between the cells of a map: sides differ by so many cells less than the image."""
        (h, w), (tall, wide) = maps.shape[2:], self._image.shape[2:]
        if wide == tall or w == h:
            return max(1, round(wide / w))
        return max(1, round((wide - tall) / (w - h)))


def _alike(args: Sequence[Any]) -> bool:
    one, other = args[:2]
    both = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
    return both and one.shape == other.shape and one.ndim in (3, 4)


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in what an operation or a part takes or returns."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple | Mapping):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from tensors(part)


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Put every part in evaluation mode, and back into the mode that each was in.

    Whole layers of transformers in one operation, as some versions of torch take, hide their sums.
    """
    modes = [(part, part.training) for part in module.modules()]
    fast = torch.backends.mha.get_fastpath_enabled()
    try:
        torch.backends.mha.set_fastpath_enabled(False)
        module.eval()
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for part, mode in modes:
            part.training = mode


@contextmanager
def watching(module: Any, watch: Watch, parts: Collection[str]) -> Iterator[dict[str, Found]]:
    """Keep `watch.inside`, and yield a dictionary for copies of what some parts will return.

    They come in the order in which the parts are left; of a part that runs more than once the last.
    """
    outputs: dict[str, Found] = {}
    hooks = []

    def enter(name: str) -> Any:
        return lambda _part, _args: watch.inside.append(name)

    def leave(name: str) -> Any:
        def hook(_part: Any, _args: Any, output: Any) -> None:
            watch.inside.pop()
            if name in parts and (value := next(tensors(output), None)) is not None:
                outputs.pop(name, None)
                copy, field = watch.copy(value), watch.field(value)
                outputs[name] = Found(name, 0, copy, watch.time, field)

        return hook

    try:
        for name, part in module.named_modules():
            hooks.append(part.register_forward_pre_hook(enter(name)))
            hooks.append(part.register_forward_hook(leave(name)))
        yield outputs
    finally:
        for hook in hooks:
            hook.remove()
