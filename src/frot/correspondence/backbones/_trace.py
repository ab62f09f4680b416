"""Tracing a torch module: strides and receptive fields of its tensors, and CUDA graphs.

Every operation passes through `Trace` as it runs, so that nothing depends on how the module is
written, and a sum is copied before an activation overwrites it in place.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakTensorKeyDictionary

from frot.correspondence.backbones._module_identity import Weights, parts_of

_ATEN = torch.ops.aten
_SUMS = (_ATEN.add.Tensor, _ATEN.add_.Tensor)
_MAX_POOLS = (_ATEN.max_pool2d_with_indices.default, _ATEN.max_pool2d.default)
_MEANS = (_ATEN.mean.dim, _ATEN._adaptive_avg_pool2d.default, _ATEN.avg_pool2d.default)
_POOLS = (*_MAX_POOLS, _ATEN.avg_pool2d.default)
_SAME_VALUES = (
    _ATEN.view.default,
    _ATEN._unsafe_view.default,
    _ATEN.reshape.default,
    _ATEN.squeeze.dim,
    _ATEN.squeeze.dims,
    _ATEN.squeeze.default,
    _ATEN.clone.default,
    _ATEN.detach.default,
    _ATEN.flatten.using_ints,
)
_PICKS = (_ATEN.slice.Tensor, _ATEN.constant_pad_nd.default)
_NORMS = (
    _ATEN.native_batch_norm.default,
    _ATEN._native_batch_norm_legit_no_training.default,
    _ATEN.cudnn_batch_norm.default,
    _ATEN.miopen_batch_norm.default,
)


@dataclass(frozen=True)
class TracedCells:
    """What the cells of a tensor see of the input, in pixels."""

    stride: int
    # Along convolutions and pools; what attention and averages over the whole image add is not
    # counted.
    receptive_field: int
    # Rows and columns of cells.
    grid: tuple[int, int]
    # Where the first cell is centred; 0 where windows are padded alike on both sides.
    start: float = 0.0
    # How many strides neighbours are apart, down and across, while cells are picked first along
    # one axis and then along the other.
    gaps: tuple[int, int] = (1, 1)


class Trace(TorchDispatchMode):
    """Follow the image through a module.

    From the tensor of a batch of one, (1, 3, h, w); the sums and stems named in `keep` are copied.

    Attributes
    ----------
    geometries : mapping of tensor to TracedCells or None
        What the cells of tensors see, where that is known.
    inside : list of str
        Names of the modules that are being run, the innermost last; kept by the caller's hooks.
    sums : dict
        The last residual sum of each module, by the module's name, in the order of the network: a
        pair of its geometry and, where it is to be kept, its copy.
    stem : tuple or None
        The module with the first max-pool, if that comes before any sum, and the same of it.
    convolutions : list of str
        Modules that end in a convolution, or in the normalisation after one.
    weights : int
        Matrices and filters that were applied.
    head : tuple or None
        Maps that are averaged over their cells, shape (channels, h, w), the matrix that is then
        applied, shape (classes, channels), and what comes out.
    """

    def __init__(self, image: torch.Tensor, keep: Collection[str] = ()) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.sums: dict[str, tuple[TracedCells, torch.Tensor | None]] = {}
        self.stem: tuple[str, TracedCells, torch.Tensor | None] | None = None
        self.convolutions: list[str] = []
        self.weights = 0
        self.head: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None
        self._keep = keep
        # None: made from the image, but no longer known where each value looks.
        self.geometries = WeakTensorKeyDictionary()
        self.geometries[image] = TracedCells(1, 1, (image.shape[2], image.shape[3]))
        self._averages = WeakTensorKeyDictionary()
        self._convolved = WeakTensorKeyDictionary()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        given = list(_tensors(args))
        if any(isinstance(one, torch.nn.Parameter) and one.ndim > 1 for one in given):
            self.weights += 1
        inputs = [value for value in given if value in self.geometries]
        outputs = list(_tensors(result))
        if inputs and outputs:
            self._follow(func, args, inputs, outputs)
        return result

    def _follow(
        self, func: Any, args: Sequence[Any], inputs: list[Any], outputs: list[torch.Tensor]
    ) -> None:
        output, first = outputs[0], inputs[0]
        seen = self.geometries[first]
        if func is _ATEN.convolution.default:
            window = [(k - 1) * d for k, d in zip(args[1].shape[2:], args[5], strict=True)]
            seen = None if args[6] else _through(seen, window, args[3], args[4], output)
            self._name_convolution(output)
        elif func in _POOLS:
            window = [size - 1 for size in _two(args[1])]
            stride = args[2] if len(args) > 2 and args[2] else args[1]
            padding = args[3] if len(args) > 3 else 0
            seen = _through(seen, window, stride, padding, output)
            if func in _MAX_POOLS and seen and not self.sums and self.stem is None:
                name = self._here() or "stem"
                self.stem = (name, seen, output.clone() if name in self._keep else None)
        else:
            known = [self.geometries[value] for value in inputs]
            seen = _picked(func, args, known, output) or _along(known, output)
            if func in _NORMS and first in self._convolved:
                self.convolutions.remove(self._convolved[first])
                self._name_convolution(output)
        for value in outputs:
            self.geometries[value] = seen
        if func in _SUMS and len(inputs) == 2 and inputs[0].shape == inputs[1].shape:
            self._record_sum(output, seen)
        if seen is not None and _is_map(output, seen):
            # Maps follow, so what was taken for a classifier was the gate of a block.
            self.head = None
        self._follow_head(func, args, first, output)

    def _record_sum(self, output: torch.Tensor, seen: TracedCells | None) -> None:
        if seen is None or not _is_map(output, seen):
            return
        name = self._here() or f"sum_{len(self.sums) + 1}"
        # A block of attention adds twice; what leaves it is the second sum.
        self.sums.pop(name, None)
        self.sums[name] = (seen, output.clone() if name in self._keep else None)

    def _name_convolution(self, output: torch.Tensor) -> None:
        if name := self._here():
            self._convolved[output] = name
            self.convolutions.append(name)

    def _here(self) -> str:
        return self.inside[-1] if self.inside else ""

    def _follow_head(
        self, func: Any, args: Sequence[Any], first: torch.Tensor, output: torch.Tensor
    ) -> None:
        seen = self.geometries.get(first)
        if func in _MEANS:
            if seen and _is_map(first, seen) and output.numel() == first.numel() // _cells(seen):
                self._averages[output] = as_map(first, seen)
            return
        averaged = args[1] if func is _ATEN.addmm.default else first
        maps = self._averages.get(averaged)
        if maps is None:
            return
        if func in _SAME_VALUES:
            self._averages[output] = maps
        elif func is _ATEN.native_layer_norm.default:
            # Given the spread of the averages this is linear, and its bias is the same everywhere.
            spread = (first.var(dim=-1, correction=0) + args[4]).sqrt()
            centred = (maps - maps.mean(dim=0)) / spread.reshape(())
            self._averages[output] = (
                centred if args[2] is None else centred * args[2][:, None, None]
            )
        elif func is _ATEN.addmm.default:
            self.head = (maps, args[2].t(), output)
        elif func is _ATEN.mm.default:
            self.head = (maps, args[1].t(), output)
        elif func is _ATEN.linear.default:
            self.head = (maps, args[1], output)


def as_map(tensor: torch.Tensor, seen: TracedCells | None) -> torch.Tensor:
    """Return a tensor of one image as a map (channels, h, w); tokens before the cells' are cut."""
    if tensor.ndim == 4:
        last = seen is not None and _channels_last(tensor, seen)
        return tensor[0].permute(2, 0, 1) if last else tensor[0]
    if tensor.ndim == 3 and seen is not None:
        tokens = tensor[:, 0] if _tokens_first(tensor, seen) else tensor[0]
        if tokens.shape[0] >= _cells(seen):
            return tokens[tokens.shape[0] - _cells(seen) :].T.reshape(-1, *seen.grid)
    raise ValueError(f"a tensor of shape {tuple(tensor.shape)} is not a map")


def _cells(seen: TracedCells) -> int:
    return seen.grid[0] * seen.grid[1]


def _is_map(tensor: torch.Tensor, seen: TracedCells) -> bool:
    if tensor.ndim == 3:
        first = tensor.shape[0] == 1 and tensor.shape[1] >= _cells(seen)
        return first or _tokens_first(tensor, seen)
    return tensor.ndim == 4 and seen.grid in (tuple(tensor.shape[2:]), tuple(tensor.shape[1:3]))


def _tokens_first(tensor: torch.Tensor, seen: TracedCells) -> bool:
    """Whether tokens come before the batch, (tokens, 1, channels), as in older transformers."""
    return tensor.shape[1] == 1 and tensor.shape[0] >= max(_cells(seen), 2)


def _through(
    seen: TracedCells | None, window: Sequence[int], stride: Any, padding: Any, output: torch.Tensor
) -> TracedCells | None:
    """Return what is seen through windows of `window` + 1 cells, a stride apart."""
    if seen is None or output.ndim != 4:
        return None
    return TracedCells(
        seen.stride * max(_two(stride)),
        seen.receptive_field + max(window) * seen.stride,
        (output.shape[2], output.shape[3]),
        seen.start + (max(window) / 2 - max(_two(padding))) * seen.stride,
    )


def _picked(
    func: Any, args: Sequence[Any], known: Sequence[TracedCells | None], output: torch.Tensor
) -> TracedCells | None:
    """Return what is seen where cells are added, left out or merged; None for all else.

    Patches are merged either by picking every second cell four times, and putting those side by
    side, or by folding neighbours into the channels.
    """
    seen = known[0]
    if seen is None or output.ndim != 4:
        return None
    if func in _SAME_VALUES:
        return _folded(seen, args[0], output)
    if func is _ATEN.cat.default:
        alike = {(one.stride, one.receptive_field, one.grid) for one in known if one is not None}
        if len(alike) > 1 or None in known or not _is_map(output, seen):
            return None
        starts = [one.start for one in known if one is not None]
        field = seen.receptive_field + round(max(starts) - min(starts))
        return replace(seen, receptive_field=field, start=sum(starts) / len(starts))
    if func not in _PICKS or not _is_map(args[0], seen):
        return None
    axes = (1, 2) if _channels_last(args[0], seen) else (2, 3)
    grid = (output.shape[axes[0]], output.shape[axes[1]])
    if func is _ATEN.constant_pad_nd.default:
        # From the last axis backwards, before and behind.
        before = [args[1][2 * (3 - axis)] if len(args[1]) > 2 * (3 - axis) else 0 for axis in axes]
        return replace(seen, grid=grid, start=seen.start - seen.stride * sum(before) / 2)
    # What a slice leaves out: all of the first axis.
    given: list[Any] = [*args[1:], *(0, 0, None, 1)[len(args) - 1 :]]
    dim, begin, _, step = given
    if dim % 4 not in axes:
        return None
    gaps = [
        step * gap if axis == dim % 4 else gap for axis, gap in zip(axes, seen.gaps, strict=True)
    ]
    # What the two axes are off by is half of the way each.
    start = seen.start + seen.stride * max(begin or 0, 0) / 2
    if gaps[0] == gaps[1]:
        return TracedCells(seen.stride * gaps[0], seen.receptive_field, grid, start)
    return replace(seen, grid=grid, start=start, gaps=(gaps[0], gaps[1]))


def _folded(seen: TracedCells, before: torch.Tensor, output: torch.Tensor) -> TracedCells | None:
    """Return what is seen where k x k neighbours have become channels, which are last."""
    h, w = output.shape[1], output.shape[2]
    k = seen.grid[0] // max(h, 1)
    if before.ndim < 5 or output.shape[0] != 1 or k < 2 or seen.grid != (k * h, k * w):
        return None
    more = (k - 1) * seen.stride
    return TracedCells(k * seen.stride, seen.receptive_field + more, (h, w), seen.start + more / 2)


def _channels_last(tensor: torch.Tensor, seen: TracedCells) -> bool:
    return tuple(tensor.shape[1:3]) == seen.grid != tuple(tensor.shape[2:])


def _along(known: Sequence[TracedCells | None], output: torch.Tensor) -> TracedCells | None:
    """Return what is seen along the longest of the paths that end in `output`."""
    fitting = [
        seen for seen in known if seen is not None and (output.ndim != 4 or _is_map(output, seen))
    ]
    return max(fitting, key=lambda seen: seen.receptive_field, default=None)


def _two(size: Any) -> list[int]:
    values = [size] if isinstance(size, int) else list(size)
    return values if len(values) == 2 else values * 2


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in what an operation or a part takes or returns."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple | Mapping):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(part)


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
def watching(module: Any, trace: Trace, parts: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Keep `trace.inside`, and yield a dictionary for what some parts will have returned."""
    outputs: dict[str, Any] = dict.fromkeys(parts)
    hooks = []

    def enter(name: str) -> Any:
        return lambda _part, _args: trace.inside.append(name)

    def leave(name: str) -> Any:
        def hook(_part: Any, _args: Any, output: Any) -> None:
            trace.inside.pop()
            if name in outputs and (value := next(_tensors(output), None)) is not None:
                outputs[name] = (trace.geometries.get(value), value.detach().clone())

        return hook

    try:
        for name, part in module.named_modules():
            hooks.append(part.register_forward_pre_hook(enter(name)))
            hooks.append(part.register_forward_hook(leave(name)))
        yield outputs
    finally:
        for hook in hooks:
            hook.remove()


# Images of a shape before its run is recorded, which takes as long as three of them.
RECORDED_AFTER = 2
# Shapes that are kept: each has its own memory on the device.
MOST_SHAPES = 4


@dataclass(frozen=True, eq=False)
class ModuleOutputs:
    """What a run of a module left: tensors by name with what is told of each, and the head.

    Attributes
    ----------
    maps : dict of str to (TracedCells or None, tensor)
        Maps (channels, h, w) of the layers, in single precision and in one piece.
    head : tuple of tensors, or None
        As `Trace.head`.
    """

    maps: dict[str, tuple[Any, torch.Tensor]]
    head: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None

    def copy(self) -> ModuleOutputs:
        """The same in other memory."""
        maps = {name: (seen, value.clone()) for name, (seen, value) in self.maps.items()}
        if self.head is None:
            return ModuleOutputs(maps, None)
        averaged, weights, scores = self.head
        return ModuleOutputs(maps, (averaged.clone(), weights, scores.clone()))


@dataclass
class _Recording:
    image: torch.Tensor
    graph: Any
    look: ModuleOutputs


@dataclass
class CudaGraphs:
    """Runs of one module on a CUDA device, by the shape of the image and what is asked for.

    To launch a network's operations one by one, and to watch them, takes ten times as long as the
    device works on them. A CUDA graph has them all, the copies of the layers' maps included. A
    module that waits for the device on its way, because what it does depends on the values of the
    image, cannot be recorded; it is run as ever.
    """

    _times: dict[Hashable, int] = field(default_factory=dict)
    _kept: OrderedDict[Hashable, _Recording] = field(default_factory=OrderedDict)
    _places: tuple[int, ...] = ()
    _fails: bool = False

    def __call__(
        self,
        module: Any,
        weights: Weights,
        image: torch.Tensor,
        asked: Hashable,
        run: Callable[[torch.Tensor], ModuleOutputs],
    ) -> ModuleOutputs:
        """Return what `run` leaves of the image; `asked` is what it depends on beside that."""
        if image.device.type != "cuda" or self._fails or _is_hooked(module):
            return run(image)
        # A recording reads the weights where they lay.
        if (places := weights.places) != self._places:
            self._places = places
            self._kept.clear()
            self._times.clear()
        key = (tuple(image.shape), image.dtype, asked, torch.is_autocast_enabled())
        if key not in self._kept:
            self._times[key] = self._times.get(key, 0) + 1
            if self._times[key] <= RECORDED_AFTER:
                return run(image)
            try:
                self._kept[key] = _record(image, run)
            except Exception:
                # As it is, it has worked more than once.
                self._fails = True
                return run(image)
            if len(self._kept) > MOST_SHAPES:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        found = self._kept[key]
        found.image.copy_(image)
        found.graph.replay()
        return found.look.copy()

    def __reduce__(self) -> tuple[type[CudaGraphs], tuple[()]]:
        # What was recorded holds on one device of one process.
        return CudaGraphs, ()


def _record(image: torch.Tensor, run: Callable[[torch.Tensor], ModuleOutputs]) -> _Recording:
    """Run a module once beside other work, and once into a graph."""
    held = image.clone()
    side = torch.cuda.Stream(image.device)
    side.wait_stream(torch.cuda.current_stream(image.device))
    with torch.cuda.stream(side):
        run(held)
    torch.cuda.current_stream(image.device).wait_stream(side)
    torch.cuda.synchronize(image.device)
    graph = torch.cuda.CUDAGraph()
    # Other threads may go on with what they do.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        look = run(held)
    return _Recording(held, graph, look)


def _is_hooked(module: Any) -> bool:
    """Whether a user watches the module at work, which a recording would not call."""
    return any(
        part._forward_hooks or part._forward_pre_hooks or part._forward_hooks_with_kwargs
        for part in parts_of(module)
    )
