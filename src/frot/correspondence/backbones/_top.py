"""Class activation maps from the maps that a classifier averages."""

from __future__ import annotations

import numpy as np

from frot._base.errors import InputError

__all__ = ["top_maps"]


def top_maps(maps: np.ndarray, weights: np.ndarray, scores: np.ndarray, classes: int) -> np.ndarray:
    r"""Return the maps of the most probable classes, shape (classes, h, w).

    .. math:: \mathrm{CAM}_c(y, x) = \sum_k W_{ck} F_k(y, x)

    Parameters
    ----------
    maps : array of shape (channels, h, w)
        F.
    weights : array of shape (all classes, channels)
        W.
    scores : array of shape (all classes,)
        What the classifier makes of the image, with its bias.
    classes : int
        How many.

    Examples
    --------
    >>> weights = np.array([[1.0, 1.0], [2.0, 2.0]])
    >>> top_maps(np.ones((2, 1, 1)), weights, np.array([2.0, 4.0]), 1).tolist()
    [[[4.0]]]
    """
    if not 1 <= classes <= len(weights):
        raise InputError(f"classes is {classes}; the classifier has 1 to {len(weights)}")
    best = np.argsort(-scores, kind="stable")[:classes]
    return np.einsum("ck,kyx->cyx", weights[best], maps)
