"""Hypothesis profiles: "ci" draws the same few examples every time and does not shrink them.

HYPOTHESIS_PROFILE=thorough draws many new ones, and shrinks what fails.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

CALM = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "ci",
    max_examples=60,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=CALM,
)
settings.register_profile("thorough", max_examples=1000, deadline=None, suppress_health_check=CALM)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
