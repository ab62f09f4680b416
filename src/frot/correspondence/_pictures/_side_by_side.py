"""Two photographs in one pair of axes, the second as high as the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from frot.correspondence._pictures._matched import Pictured

__all__ = ["SideBySide", "draw_photo"]

# Between the photographs, of the width of both.
_GAP = 0.025


@dataclass(frozen=True)
class SideBySide:
    """Where the pixels of both photographs are in the axes.

    The first keeps its pixels as coordinates; the second stands to its right, scaled to the same
    height.

    Parameters
    ----------
    source, target : pairs of int
        Heights and widths.

    Examples
    --------
    >>> both = SideBySide((100, 200), (50, 50))
    >>> both.scale, both.place([[0.0, 0.0]]).tolist()
    (2.0, [[208.0, 0.5]])
    """

    source: tuple[int, int]
    target: tuple[int, int]

    @property
    def scale(self) -> float:
        """Units of the axes that a pixel of the target is wide."""
        return self.source[0] / self.target[0]

    @property
    def left(self) -> float:
        """Where the target's left edge is."""
        wide = self.source[1] + self.scale * self.target[1]
        return self.source[1] + _GAP * wide - 0.5

    @property
    def width(self) -> float:
        """Of all, in units of the axes."""
        return self.left + 0.5 + self.scale * self.target[1]

    def place(self, points: object) -> np.ndarray:
        """Return where points of the target, shape (k, 2), are in the axes."""
        corner = np.array([self.left, -0.5])
        return corner + self.scale * (np.asarray(points, dtype=float) + 0.5)

    def draw(self, axes: Axes, source: Pictured, target: Pictured) -> None:
        """Draw both photographs, and nothing else around them."""
        h = self.source[0]
        draw_photo(axes, source)
        end = self.left + self.scale * self.target[1]
        draw_photo(axes, target, (self.left, end, h - 0.5, -0.5))
        axes.set_xlim(-0.5, end)
        axes.set_ylim(h - 0.5, -0.5)


def draw_photo(
    axes: Axes, photo: Pictured, extent: tuple[float, float, float, float] | None = None
) -> None:
    """Draw a photograph into axes without ticks and frame."""
    # Bytes take a quarter of the memory, and more colours than these no screen shows.
    pixels = (255.0 * np.clip(photo.pixels, 0.0, 1.0)).round().astype(np.uint8)
    axes.imshow(pixels, extent=extent, interpolation="antialiased")
    axes.set_axis_off()
