"""Photographs turned by quarters, as NumPy has it."""

from __future__ import annotations

from itertools import product

import numpy as np

from frot.correspondence import Turn

QUARTERS = [
    Turn(mirror, angle) for mirror, angle in product((False, True), (0.0, 90.0, 180.0, 270.0))
]


def plainly(image, turn):
    """Mirrored, then turned by quarters, as NumPy has it."""
    mirrored = image[:, ::-1] if turn.mirror else image
    return np.rot90(mirrored, int(turn.angle) // 90)


def went(points, turn, size):
    """Where points are in a photograph of (h, w) that was turned by quarters."""
    h, w = size
    x, y = points.T
    x = w - 1 - x if turn.mirror else x
    for _ in range(int(turn.angle) // 90):
        x, y, w, h = y, w - 1 - x, h, w
    return np.stack([x, y], axis=1)
