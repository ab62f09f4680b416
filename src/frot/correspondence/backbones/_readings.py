"""`Reading`: how the numbers of a layer lie over the image that the network saw."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

# Images that a module is first tried on, rows and columns: whole numbers of patches of 14 and of 32
# pixels, one wider than tall, so that rows are told from columns and tokens from both; then those
# of networks that take one size alone.
PROBES = ((224, 448), *((side, side) for side in (224, 256, 384, 512, 518)))


@dataclass(frozen=True)
class Reading:
    """How a layer is read: where it comes from, and how its numbers lie over the image.

    Attributes
    ----------
    kind : {"sum", "pool", "part", "output"}
        A residual sum or max-pool by its number in the run, what a part of the module returns, or
        one of the module's own outputs.
    key : int or str
        The number, or the name.
    layout : {"channels first", "channels last", "tokens"}
    stride : int
        Pixels between cells.
    field : int
        Pixels that a cell sees along the windows of convolutions and pools, one after another;
        what attention and averages over the whole image add is not counted.
    """

    kind: str
    key: Any
    layout: str
    stride: int
    field: int

    @property
    def patches(self) -> bool:
        """Whether cells are patches: windows side by side."""
        return self.stride == self.field > 1

    @property
    def start(self) -> tuple[float, float] | None:
        """Where the first cell looks, y and x: a patch at its middle, of others it is not known."""
        middle = 0.5 * (self.stride - 1)
        return (middle, middle) if self.patches else None

    def as_map(self, value: Any, size: tuple[int, int]) -> Any:
        """Return a tensor of an image as (channels, h, w); tokens before the cells' are cut."""
        if self.layout == "channels first":
            return value[0]
        if self.layout == "channels last":
            return value[0].swapaxes(0, 2).swapaxes(1, 2)
        h, w = (math.ceil(side / self.stride) for side in size)
        tokens = value[:, 0] if value.shape[1] == 1 else value[0]
        return tokens[tokens.shape[0] - h * w :].T.reshape(-1, h, w)


def layout_of(
    shape: tuple[int, ...], size: tuple[int, int], others: int = 64
) -> tuple[str, int] | None:
    """Return how a tensor of a batch of one lies over an image, and its stride; None if it is none.

    At most so many `others` are tokens of no cell: of the class, and registers.

    Examples
    --------
    >>> layout_of((1, 64, 28, 56), (224, 448)), layout_of((1, 28, 56, 64), (224, 448))
    (('channels first', 8), ('channels last', 8))
    >>> layout_of((1, 1 + 14 * 28, 64), (224, 448)), layout_of((1, 1000), (224, 448))
    (('tokens', 16), None)
    """
    tall, wide = size
    if len(shape) == 4 and shape[0] == 1:
        for layout, (h, w) in (("channels first", shape[2:]), ("channels last", shape[1:3])):
            if h > 1 and w > 1:
                # Where sides differ, the cells that the longer one has more tell the stride.
                wider = wide > tall and w > h
                stride = (wide - tall) / (w - h) if wider else tall / h
                # Windows without padding leave out cells at the edges.
                if all(
                    0.5 * side <= count * stride <= side + stride
                    for side, count in zip(size, (h, w), strict=True)
                ):
                    return layout, max(1, round(stride))
    if len(shape) == 3 and 1 in shape[:2]:
        count = max(shape[:2])
        h = math.isqrt(count * tall // wide)
        w = h * wide // tall
        if h > 1 and 0 <= count - h * w <= others:
            return "tokens", round(tall / h)
    return None


def noise(size: tuple[int, int]) -> np.ndarray:
    """An image that no network sees as flat, so that averages of maps are told apart."""
    return np.random.default_rng(0).standard_normal((*size, 3), dtype=np.float32)
