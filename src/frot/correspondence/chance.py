"""Confidence: the probability that a point is right, from its support and the rigidity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from frot.correspondence.match import Match

# The curve is logistic in the support and in the logarithm of rigidity, fitted to 3,842 points of
# 383 pairs of cars (PF-WILLOW) and of four species of birds (Vermilion Flycatcher, Gray Kingbird,
# Warbling Vireo, Red-cockaded Woodpecker), seen by MobileNetV2 and EfficientNet-Lite2 with the
# default settings, cars and birds and both networks with the same weight. A point is right within
# a tenth of the object's longer side. Rigidities are told apart from .01 on.


def chance(support: np.ndarray, share: np.ndarray, rigidity: float) -> np.ndarray:
    r"""Return the chance that points are within a tenth of the object's size of where they belong.

    .. math:: 1 / (1 + e^{-(0.10 + 2.95 s + 0.62 \log(\rho + 0.01))})

    It was fitted to points that have a partner in the other photograph, with the default settings;
    of other methods and settings it keeps the order.

    Parameters
    ----------
    support : array of shape (k,)
        s, the share of the cells around a point that go where it goes, from 0 to 1.
    share : array of shape (k,)
        The share of the votes close to a point that are for its place; where it is 0 nothing is
        known, and there is no chance.
    rigidity : float
        The chance rho that two mutual best matches of the pair move alike, from 0 to 1.

    Examples
    --------
    >>> chance(np.array([0.2, 0.2, 0.9]), np.array([0.0, 0.1, 0.1]), 0.1).round(2)
    array([0.  , 0.34, 0.8 ])
    """
    logit = 0.10 + 2.95 * support + 0.62 * np.log(rigidity + 0.01)
    return np.where(share > 0.0, 1.0 / (1.0 + np.exp(-logit)), 0.0)


def tells(match: Match, fewest: int = 500) -> bool:
    """Whether the confidence of a match tells sure points from others.

    Where cells are few most are neighbours of most others: with some 100 it is .95 everywhere, and
    with some 450 of a cat with itself .8.
    """
    return min(match.source_grid.count, match.target_grid.count) >= fewest
