"""A module's run on a CUDA device, replayed for photographs of a size that keeps coming.

To launch a network's operations one by one, and to watch them, takes ten times as long as the
device works on them. A CUDA graph has them all, the copies of the layers' maps included.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import torch

from frot.correspondence.backbones._module_identity import Weights, parts_of

__all__ = ["Look", "Replays"]

# Images of a shape before its run is recorded, which takes as long as three of them.
RECORDED_AFTER = 2
# Shapes that are kept: each has its own memory on the device.
MOST_SHAPES = 4


@dataclass(frozen=True, eq=False)
class Look:
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

    def copy(self) -> Look:
        """The same in other memory."""
        maps = {name: (seen, value.clone()) for name, (seen, value) in self.maps.items()}
        maps_, weights, scores = self.head or (None, None, None)
        if maps_ is None or weights is None or scores is None:
            return Look(maps, None)
        return Look(maps, (maps_.clone(), weights, scores.clone()))


@dataclass
class _Recording:
    image: torch.Tensor
    graph: Any
    look: Look


@dataclass
class Replays:
    """Runs of one module by the shape of the image and what is asked for.

    A module that waits for the device on its way, because what it does depends on the values of
    the image, cannot be recorded; it is run as ever.
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
        run: Callable[[torch.Tensor], Look],
    ) -> Look:
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

    def __reduce__(self) -> tuple[type[Replays], tuple[()]]:
        # What was recorded holds on one device of one process.
        return Replays, ()


def _record(image: torch.Tensor, run: Callable[[torch.Tensor], Look]) -> _Recording:
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
