"""Points from the command line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from frot._errors import InputError

__all__ = ["check_inside", "parse_points"]


def parse_points(words: Sequence[str]) -> np.ndarray:
    """Read points as x,y; several in one word are set apart by spaces or semicolons.

    Examples
    --------
    >>> parse_points(["120,80", "60,200; 5.5,7"]).tolist()
    [[120.0, 80.0], [60.0, 200.0], [5.5, 7.0]]
    >>> parse_points(["120"])
    Traceback (most recent call last):
    ...
    frot._errors.InputError: points: '120' is no point; write x,y such as 120,80
    """
    points = []
    for text in " ".join(words).replace(";", " ").split():
        try:
            x, y = (float(part) for part in text.split(","))
        except ValueError:
            x = y = math.nan
        if not (math.isfinite(x) and math.isfinite(y)):
            raise InputError(f"points: {text!r} is no point; write x,y such as 120,80")
        points.append([x, y])
    if not points:
        raise InputError("points: none are given; write x,y such as 120,80")
    return np.array(points)


def check_inside(points: np.ndarray, photo: Any) -> None:
    """Refuse points outside the photograph, before the work."""
    h, w = photo.size
    out = ((points < -0.5) | (points > [w - 0.5, h - 0.5])).any(axis=1)
    if out.any():
        x, y = points[out][0]
        raise InputError(
            f"points: {x:g},{y:g} is outside {photo.name}, which is {w} x {h} pixels; "
            f"x goes from 0 to {w - 1}, y from 0 to {h - 1}"
        )
