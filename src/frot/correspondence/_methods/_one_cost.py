"""Ordinary transport with one cost made of the layers."""

from __future__ import annotations

import numpy as np

from frot._arrays import to_numpy
from frot.correspondence._methods._outcome import Outcome, Setting

__all__ = ["concatenated", "most_coherent", "scot", "uniform"]


def uniform(setting: Setting) -> Outcome:
    """Transport with the mean of the layers' costs."""
    layers = setting.layers
    count = len(layers.names)
    cost = layers.home.xp.mean(layers.costs, axis=0)
    result = setting.transport.alone(cost, "mean of layers", setting.a, setting.b)
    return setting.transported(result, np.full(count, 1.0 / count))


def concatenated(setting: Setting) -> Outcome:
    """Transport with the cosine of all layers put end to end: layers of long vectors weigh more."""
    layers = setting.layers
    xp = layers.home.xp
    cost = 2.0 - 2.0 * layers.concatenated
    result = setting.transport.alone(cost, "layers end to end", setting.a, setting.b)
    squares = [to_numpy(xp.mean(norms**2, axis=1)).astype(float) for norms in layers.norms]
    shares = np.sqrt(squares[0] * squares[1])
    return setting.transported(result, shares / shares.sum())


def most_coherent(setting: Setting) -> Outcome:
    """Transport with one layer: the one that was named, else the most coherent one."""
    layers = setting.layers
    chosen = setting.layer
    if chosen is None:
        chosen = int(np.argmax(setting.coherences))
    cost = 2.0 - 2.0 * layers.cosines[chosen, ...]
    result = setting.transport.alone(cost, layers.names[chosen], setting.a, setting.b)
    return setting.transported(result, np.eye(len(layers.names))[chosen])


def scot(setting: Setting) -> Outcome:
    """OT-HPF (Liu et al. 2020): layers end to end, one minus the cosine, one Sinkhorn sweep."""
    layers, home = setting.layers, setting.home
    xp = home.xp
    cost = 1.0 - xp.clip(layers.concatenated, 0.0, None)
    eps = setting.transport.eps
    kernel = xp.exp(-cost / eps)
    a, b = home.bring(setting.a), home.bring(setting.b)
    start = xp.full_like(a, 1.0 / len(setting.a))
    right = b / (start @ kernel)
    left = a / (kernel @ right)
    plan = kernel * left[:, None] * right[None, :]
    count = len(layers.names)
    host = to_numpy(plan)
    return Outcome(setting.votes(host), np.full(count, 1.0 / count), setting.phi(host), plan=host)
