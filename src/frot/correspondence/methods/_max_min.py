"""Max-min: the layer whose own transport costs most decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from frot._base.arrays import to_numpy
from frot._base.stopping import Interrupted
from frot.correspondence.methods._outcome import Outcome, Setting
from frot.problem.result import Result
from frot.problem.status import Status

__all__ = ["worst_layer"]


def worst_layer(setting: Setting) -> Outcome:
    r"""The paper's appendix: one-hot weights on the layer whose own transport costs most.

    Any plan bounds the transport of every layer from above,

    .. math:: \min_{\Pi'} \langle \Pi', C_l \rangle + \varepsilon\, \mathrm{KL}(\Pi' | a b^\top)
        \;\le\; \langle \Pi, C_l \rangle + \varepsilon\, \mathrm{KL}(\Pi | a b^\top),

    so layers that cannot be the costliest are not solved.
    """
    layers, home = setting.layers, setting.home
    product = home.bring(setting.a)[:, None] * home.bring(setting.b)[None, :]
    uppers = to_numpy(layers.costs.inner(product[None, ...]))[0].astype(float)
    lowers = np.full(len(uppers), -np.inf)
    left = set(range(len(uppers)))
    found: tuple[int, Result] | None = None
    interrupt: Interrupted | None = None
    # The most promising first: its plan is the one that rules most others out.
    while left and uppers[layer := max(left, key=lambda k: uppers[k])] > lowers.max():
        left.discard(layer)
        cost = layers.mixed(setting.alone(layer))
        try:
            result = setting.transport.alone(cost, layers.names[layer], setting.a, setting.b)
        except Interrupted as stop:
            result, interrupt = stop.result, stop
        phi = to_numpy(layers.costs.inner(home.bring(result.plan.dense())[None, ...]))[0]
        entropy = result.value - float(phi[layer])
        np.minimum(uppers, phi + entropy, out=uppers)
        lowers[layer], uppers[layer] = result.lower, result.upper
        # Only the costliest is kept: plans are large.
        if found is None or result.value > found[1].value:
            found = (layer, result)
        if interrupt is not None:
            found = (found[0], replace(found[1], status=Status.INTERRUPTED))
            break
    assert found is not None
    worst, result = found
    result = replace(result, lower=float(lowers.max()), upper=float(uppers.max()))
    outcome = setting.transported(result.plan, setting.alone(worst), result)
    if interrupt is not None:
        raise Interrupted(outcome) from interrupt
    return outcome
