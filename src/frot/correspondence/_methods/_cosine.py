"""No transport: every cell votes for whatever looks like it."""

from __future__ import annotations

import numpy as np

from frot.correspondence._methods._outcome import Outcome, Setting

__all__ = ["hyperpixel", "nearest"]

# Cosines are sharpened by this power, as in hyperpixel flow.
POWER = 3


def nearest(setting: Setting) -> Outcome:
    """Cosine nearest neighbours, all layers alike: the mean over layers of the cosine, cubed."""
    layers = setting.layers
    xp = layers.home.xp
    count = len(layers.names)
    mean = xp.mean(layers.cosines, axis=0)
    return Outcome(xp.clip(mean, 0.0, None) ** POWER, np.full(count, 1.0 / count))


def hyperpixel(setting: Setting) -> Outcome:
    """Hyperpixel flow (Min et al. 2019): the cosine of all layers put end to end, cubed."""
    layers = setting.layers
    count = len(layers.names)
    votes = layers.home.xp.clip(layers.concatenated, 0.0, None) ** POWER
    return Outcome(votes, np.full(count, 1.0 / count))
