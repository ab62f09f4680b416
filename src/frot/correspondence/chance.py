"""What a share of votes is worth: the chance that a point is where it was put."""

from __future__ import annotations

import numpy as np

__all__ = ["chance"]

# A logistic curve in the logarithm of the share and in the strength of Hough matching, fitted to
# 2,150 points of pairs of cars (PF-WILLOW) and of four species of birds (Vermilion Flycatcher, Gray
# Kingbird, Warbling Vireo, Red-cockaded Woodpecker), seen by MobileNetV2 and EfficientNet-Lite2
# with the default settings. A point is right within a tenth of the object's longer side.
LEVEL, SHARE, AGREEMENT = 2.15, 0.83, 0.96


def chance(share: np.ndarray, agreement: float) -> np.ndarray:
    r"""Return the chance that points are within a tenth of the object's size of where they belong.

    .. math:: 1 / (1 + e^{-(2.15 + 0.83 \log s + 0.96 \lambda)})

    It was fitted to points that have a partner in the other photograph, with the default settings;
    of other methods and settings it keeps the order.

    Parameters
    ----------
    share : array of shape (k,)
        s, the share of the votes close to a point that are for its place, from 0 to 1.
    agreement : float
        The strength of Hough matching, which makes votes agree.

    Examples
    --------
    >>> chance(np.array([0.0, 0.05, 0.3]), 0.0).round(2)
    array([0.  , 0.42, 0.76])
    """
    with np.errstate(divide="ignore"):
        logit = LEVEL + SHARE * np.log(share) + AGREEMENT * min(agreement, 1.0)
    return 1.0 / (1.0 + np.exp(-logit))
