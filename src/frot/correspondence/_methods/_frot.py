"""Feature-robust transport: the adversary weighs the layers."""

from __future__ import annotations

from dataclasses import replace

from frot.correspondence._methods._outcome import Outcome, Setting

__all__ = ["feature_robust"]


def feature_robust(setting: Setting) -> Outcome:
    """The plan that is best against the worst mix of layers that is plausible under the prior."""
    result = setting.transport(setting.layers, setting.a, setting.b, setting.q)
    return replace(setting.transported(result.plan, result.alpha, result), prior=setting.q)
