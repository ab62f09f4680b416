"""Feature-robust transport: the adversary weighs the layers."""

from __future__ import annotations

from dataclasses import replace

from frot._base.stopping import finish
from frot.correspondence.methods._outcome import Outcome, Setting

__all__ = ["feature_robust"]


def feature_robust(setting: Setting) -> Outcome:
    """The plan that is best against the worst mix of layers that is plausible under the prior."""
    # Without eta the adversary takes the worst layer, whatever the prior.
    q = setting.q if setting.transport.eta > 0.0 else None
    return finish(
        lambda: setting.transport(setting.layers, setting.a, setting.b, q),
        lambda found: replace(setting.transported(found.plan, found.alpha, found), prior=q),
    )
