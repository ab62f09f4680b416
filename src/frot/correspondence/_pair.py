"""Two photographs of the same kind of object, and the points that belong together."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

__all__ = ["Pair"]


@dataclass(frozen=True, eq=False)
class Pair:
    """One pair of a data set.

    Parameters
    ----------
    id : str
        A name that is unique in the data set.
    source, target : Path
        The photographs.
    source_points, target_points : arrays of shape (k, 2)
        Points that belong together: x and y in pixels of the photographs as they are on disk,
        counted from zero.
    category : str
        Class of the object.
    length : float
        What a share is taken of in the score: the size of the object in the target, in pixels.
    source_mask, target_mask : arrays of shape (h, w), optional
        Where the object is, where that is what is scored.
    tags : dict
        What else the data set says of the pair: kinds of variation, difficulty.
    """

    id: str
    source: Path
    target: Path
    source_points: np.ndarray
    target_points: np.ndarray
    category: str
    length: float
    source_mask: np.ndarray | None = None
    target_mask: np.ndarray | None = None
    tags: dict[str, str] = field(default_factory=dict)
