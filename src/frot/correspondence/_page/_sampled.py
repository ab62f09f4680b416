"""Where every point of the source goes, on a grid of points fine enough to click on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frot.correspondence._pictures._matched import Matched

__all__ = ["Sampled", "sample"]

# With these many points every second pixel of a photograph of 500 x 400 is one.
MAX_POINTS = 60_000
# Points times cells at a time, since moving points may take arrays of that many.
_AT_ONCE = 4_000_000
_LEVELS = 65_535


@dataclass(frozen=True, eq=False)
class Sampled:
    """The points (step x, step y), row by row, and where they go.

    Parameters
    ----------
    step : int
        Pixels between the points.
    across, down : int
        Points in a row, and rows.
    low, high : arrays of shape (2,)
        The smallest and largest x and y in the target.
    places : uint16 array of shape (down across, 2)
        x and y in the target, from 0 for `low` to 65,535 for `high`.
    sure : uint8 array of shape (down across,)
        The confidence, from 0 to 255 for 1.
    """

    step: int
    across: int
    down: int
    low: np.ndarray
    high: np.ndarray
    places: np.ndarray
    sure: np.ndarray


def sample(match: Matched, most: int = MAX_POINTS) -> Sampled:
    """Move a grid of at most so many points by `match.transfer`: every pixel, where that is few."""
    h, w = match.source.size
    step = 1
    while -(-h // step) * -(-w // step) > most:
        step += 1
    x, y = np.arange(0, w, step), np.arange(0, h, step)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2).astype(float)
    many = max(1, _AT_ONCE // max(match.source_grid.count, match.target_grid.count))
    parts = [match.transfer(points[at : at + many]) for at in range(0, len(points), many)]
    found = np.concatenate([np.asarray(part.points, dtype=float) for part in parts])
    sure = np.concatenate([np.asarray(part.confidence, dtype=float) for part in parts])
    low, high = found.min(axis=0), found.max(axis=0)
    # A map onto one place has no extent to divide by.
    high = np.maximum(high, low + 1e-6)
    return Sampled(
        step,
        len(x),
        len(y),
        low,
        high,
        (_LEVELS * (found - low) / (high - low)).round().astype("<u2"),
        (255.0 * np.clip(sure, 0.0, 1.0)).round().astype(np.uint8),
    )
