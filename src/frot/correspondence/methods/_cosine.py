"""No transport: every cell that has mass votes for whatever looks like it and has mass."""

from __future__ import annotations

from typing import Any

from frot.correspondence.methods._outcome import Outcome, Setting

__all__ = ["hyperpixel", "nearest"]

# Cosines are sharpened by this power, as in hyperpixel flow.
POWER = 3


def nearest(setting: Setting) -> Outcome:
    """Cosine nearest neighbours, all layers alike: the mean over layers of the cosine, cubed."""
    cosines = 1.0 - 0.5 * setting.layers.mixed(setting.equal)
    return _voted(setting, cosines)


def hyperpixel(setting: Setting) -> Outcome:
    """Hyperpixel flow (Min et al. 2019): the cosine of all layers put end to end, cubed."""
    cosines = setting.layers.concatenated
    return _voted(setting, cosines)


def _voted(setting: Setting, cosines: Any) -> Outcome:
    votes = setting.home.xp.clip(cosines, 0.0, None) ** POWER
    return Outcome(setting.massive(votes), setting.equal)
