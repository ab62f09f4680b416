"""Ordinary transport with one cost made of the layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from frot._base.arrays import to_numpy
from frot.correspondence.methods._outcome import Outcome, Setting

__all__ = ["concatenated", "most_coherent", "scot", "uniform", "weighted"]


def uniform(setting: Setting) -> Outcome:
    """Transport with the mean of the layers' costs."""
    cost = setting.layers.mixed(setting.equal)
    return setting.by_one_cost(cost, "mean of layers", setting.equal)


def weighted(setting: Setting) -> Outcome:
    """Transport with the mean of the layers' costs, weighted by the prior: no adversary."""
    alpha = setting.equal if setting.q is None else setting.q / setting.q.sum()
    cost = setting.layers.mixed(alpha)
    return setting.by_one_cost(cost, "weighted mean of layers", alpha, setting.q)


def concatenated(setting: Setting) -> Outcome:
    """Transport with the cosine of all layers put end to end: layers of long vectors weigh more."""
    layers = setting.layers
    xp = setting.home.xp
    cost = 2.0 - 2.0 * layers.concatenated
    squares = [to_numpy(xp.mean(norms**2, axis=1)).astype(float) for norms in layers.norms]
    shares = np.sqrt(squares[0] * squares[1])
    return setting.by_one_cost(cost, "layers end to end", shares / shares.sum())


def most_coherent(setting: Setting) -> Outcome:
    """Transport with one layer: the one that was named, else the most coherent one."""
    chosen = setting.layer
    if chosen is None:
        chosen = int(np.argmax(setting.coherences))
    alpha = setting.alone(chosen)
    cost, name = setting.layers.mixed(alpha), setting.layers.names[chosen]
    return setting.by_one_cost(cost, name, alpha)


def scot(setting: Setting) -> Outcome:
    """OT-HPF (Liu et al. 2020): layers end to end, one minus the cosine, one Sinkhorn sweep."""
    home = setting.home
    xp = home.xp
    cost = 1.0 - xp.clip(setting.layers.concatenated, 0.0, None)
    # In logarithms: at a small eps the kernel has zeros in single precision.
    kernel = -cost / setting.transport.eps
    a, b = (_logarithm(xp, home.bring(weights)) for weights in (setting.a, setting.b))
    right = b - _log_sum_exp(xp, kernel - float(np.log(len(setting.a))), axis=0)
    kernel = kernel + right[None, :]
    left = a - _log_sum_exp(xp, kernel, axis=1)
    return setting.transported(xp.exp(kernel + left[:, None]), setting.equal, None)


def _logarithm(xp: Any, weights: Any) -> Any:
    """The logarithm; minus infinity, without a warning, where there is no weight."""
    some = weights > 0.0
    ones = xp.ones_like(weights)
    return xp.where(some, xp.log(xp.where(some, weights, ones)), -float("inf") * ones)


def _log_sum_exp(xp: Any, values: Any, axis: int) -> Any:
    top = xp.max(values, axis=axis, keepdims=True)
    return xp.squeeze(top, axis=axis) + xp.log(xp.sum(xp.exp(values - top), axis=axis))
