"""How much mass a cell has to move: where the network sees the object, or where a user says."""

from __future__ import annotations

from typing import Any

import numpy as np

from frot._base.errors import InputError
from frot.correspondence._features import Classifying, Grid, refuse_classes
from frot.correspondence._interpolation import resize, sampling

__all__ = ["MASSES", "check_mask", "class_activation", "mask_mass", "staircase"]

MASSES = ("uniform", "cam", "cam-top")
# Scales of the image that the activations are added over; the last is made from the one before.
SCALES = (1.0, 1.5, 2.0)
# What a cell weighs where the map, from 0 to 1, is above these levels.
LEVELS = (0.4, 0.5, 0.6)
WEIGHTS = np.array([0.5, 0.8, 0.9, 1.0])
SMALL = 1e-5


def class_activation(backbone: Any, image: np.ndarray, kind: str) -> np.ndarray:
    r"""Return where the network's classifier looks, from 0 to 1, shape (h, w) of the image.

    "cam-top" is the map of the most probable class, stretched to [0, 1] (the paper's words).
    "cam" takes the two most probable classes at three sizes of the image: each map is

    .. math:: (\mathrm{cam} - \min \mathrm{cam}) / \max \mathrm{cam},

    the larger of the classes counts, and the sizes are added up and divided by their maximum. A
    class whose map is nowhere positive counts as zero.
    """
    if not isinstance(backbone, Classifying):
        raise refuse_classes(backbone.name)
    h, w = image.shape[:2]
    if kind == "cam-top":
        cam = resize(backbone.class_maps(image, 1), h, w, align_corners=True)[0]
        low, high = float(cam.min()), float(cam.max())
        return (cam - low) / max(high - low, SMALL)
    total = np.zeros((h, w), dtype=np.float32)
    at = image
    for scale in SCALES:
        size = (int(h * scale), int(w * scale))
        at = np.moveaxis(resize(np.moveaxis(at, -1, 0), *size, align_corners=True), 0, -1)
        maps = resize(backbone.class_maps(at, 2), h, w, align_corners=True)
        lows, highs = maps.min(axis=(1, 2), keepdims=True), maps.max(axis=(1, 2), keepdims=True)
        # Divided by a maximum below zero a map would be negative, and lose against any other.
        seen = np.where(highs > 0.0, (maps - lows) / np.where(highs > 0.0, highs, 1.0), 0.0)
        total += seen.max(axis=0)
    return total / (float(total.max()) + SMALL)


def staircase(activation: np.ndarray, grid: Grid) -> np.ndarray:
    """Return weights of the cells, (n,), from the activation at their centre pixels.

    0.5 where it is low, 0.8 above 0.4, 0.9 above 0.5, 1 above 0.6; divided by their sum.

    Examples
    --------
    >>> staircase(np.array([[0.0, 1.0]]), Grid(1, 2, 1.0, 1.0)).round(3)
    array([0.333, 0.667])
    """
    h, w = activation.shape
    x, y = grid.centres.astype(int).T
    there = activation[np.minimum(y, h - 1), np.minimum(x, w - 1)]
    weights = WEIGHTS[np.searchsorted(LEVELS, there, side="left")]
    return weights / weights.sum()


def check_mask(mask: Any, size: tuple[int, int], name: str) -> np.ndarray:
    """Return a user's mask over a photograph's own pixels as floats, or say what is wrong."""
    try:
        mask = np.asarray(mask)
        values = mask.astype(float)
    except (TypeError, ValueError):
        raise InputError(f"{name}: is not numeric; use weights >= 0, one per pixel") from None
    if mask.shape != size:
        raise InputError(
            f"{name}: has shape {mask.shape}, but the photograph has {size} (height, width)"
        )
    if not np.isfinite(values).all() or (values < 0.0).any():
        raise InputError(f"{name}: has entries that are negative or not numbers; use weights >= 0")
    if not values.any():
        raise InputError(f"{name}: is zero everywhere; mark the object with positive values")
    return values


def mask_mass(mask: np.ndarray, ratio: float, grid: Grid, name: str) -> np.ndarray:
    """Return weights of the cells, (n,): a checked mask of the photograph at their centres."""
    h, w = mask.shape
    down = sampling(np.arange(grid.h) * grid.stride / ratio, h)
    across = sampling(np.arange(grid.w) * grid.stride / ratio, w)
    weights = (down @ mask @ across.T).ravel()
    if weights.sum() <= 0.0:
        raise InputError(f"{name}: is zero at every cell; mark a larger part, or raise side")
    return weights / weights.sum()
