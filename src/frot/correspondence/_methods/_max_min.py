"""Max-min: every layer is matched on its own, and the costliest one decides."""

from __future__ import annotations

import numpy as np

from frot.correspondence._methods._outcome import Outcome, Setting

__all__ = ["worst_layer"]


def worst_layer(setting: Setting) -> Outcome:
    """The paper's appendix: one-hot weights on the layer whose own transport costs most."""
    layers = setting.layers
    found = [
        setting.transport.alone(layers.mixed(setting.alone(k)), name, setting.a, setting.b)
        for k, name in enumerate(layers.names)
    ]
    worst = int(np.argmax([result.value for result in found]))
    return setting.transported(found[worst].plan, setting.alone(worst), found[worst])
