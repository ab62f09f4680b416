"""Max-min: every layer is matched on its own, and the costliest one decides."""

from __future__ import annotations

from frot._result import Result
from frot.correspondence._methods._outcome import Outcome, Setting

__all__ = ["worst_layer"]


def worst_layer(setting: Setting) -> Outcome:
    """The paper's appendix: one-hot weights on the layer whose own transport costs most."""
    layers = setting.layers
    found: tuple[int, Result] | None = None
    for k, name in enumerate(layers.names):
        result = setting.transport.alone(layers.mixed(setting.alone(k)), name, setting.a, setting.b)
        # Only the costliest is kept: plans are large.
        if found is None or result.value > found[1].value:
            found = (k, result)
    assert found is not None
    worst, result = found
    return setting.transported(result.plan, setting.alone(worst), result)
