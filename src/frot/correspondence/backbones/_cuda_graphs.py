"""CUDA graphs of a module's runs: all of its operations in one launch.

To launch a network's operations one by one, and to watch them, takes ten times as long as a device
works on them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True, eq=False)
class ModuleOutputs:
    """What a run of a module left: the layers' maps by name, and the head.

    Attributes
    ----------
    maps : dict of str to tensor
        Maps (channels, h, w) of the layers, in single precision and in one piece.
    head : tuple of tensors, or None
        Maps that are averaged over their cells, (channels, h, w), the matrix that is applied to
        the averages, (classes, channels), and what comes out.
    """

    maps: dict[str, torch.Tensor]
    head: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None

    def copy(self) -> ModuleOutputs:
        """The same in other memory."""
        maps = {name: value.clone() for name, value in self.maps.items()}
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

    A graph has the copies of the layers' maps, too. A module that waits for the device on its way,
    because what it does depends on the values of the image, cannot be recorded; it is run as ever.
    """

    # Images of a shape before its run is recorded, which takes as long as three of them.
    recorded_after: int = 2
    # Shapes that are kept: each has its own memory on the device.
    most_shapes: int = 4
    _times: dict[Hashable, int] = field(default_factory=dict)
    _kept: OrderedDict[Hashable, _Recording] = field(default_factory=OrderedDict)
    _places: tuple[int, ...] = ()
    _fails: bool = False

    def __call__(
        self,
        module: Any,
        image: torch.Tensor,
        asked: Hashable,
        run: Callable[[torch.Tensor], ModuleOutputs],
    ) -> ModuleOutputs:
        """Return what `run` leaves of the image; `asked` is what it depends on beside that."""
        if image.device.type != "cuda" or self._fails or _is_hooked(module):
            return run(image)
        # A recording reads the weights where they lay.
        if (places := tuple(one.data_ptr() for one in weights_of(module))) != self._places:
            self._places = places
            self._kept.clear()
            self._times.clear()
        key = (tuple(image.shape), image.dtype, asked, torch.is_autocast_enabled())
        if key not in self._kept:
            self._times[key] = self._times.get(key, 0) + 1
            if self._times[key] <= self.recorded_after:
                return run(image)
            try:
                self._kept[key] = _record(image, run)
            except Exception:
                # As it is, it has worked more than once.
                self._fails = True
                return run(image)
            if len(self._kept) > self.most_shapes:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        found = self._kept[key]
        found.image.copy_(image)
        found.graph.replay()
        return found.look.copy()

    def __reduce__(self) -> tuple[type[CudaGraphs], tuple[()]]:
        # What was recorded holds on one device of one process.
        return CudaGraphs, ()


def weights_of(module: Any) -> Iterator[torch.Tensor]:
    """Yield the parameters and buffers of a module."""
    yield from module.parameters()
    yield from module.buffers()


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
        for part in module.modules()
    )
