"""Primal and dual objectives of an entropic result, from their definitions in plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

import frot

__all__ = ["check_bounds", "dual", "primal", "stack_of"]


def stack_of(X: np.ndarray, Y: np.ndarray, groups: Any) -> np.ndarray:
    """Squared distances by differences, (L, n, m)."""
    parts = [list(group) for group in groups]
    return np.stack([((X[:, None, k] - Y[None][:, :, k]) ** 2).sum(axis=-1) for k in parts])


def primal(
    result: frot.Result, stack: np.ndarray, a: np.ndarray, b: np.ndarray, log_prior: Any = 0.0
) -> float:
    """The objective of the plan, its entropy included; infinite if it uses points of no weight."""
    plan, product = np.asarray(result.plan), np.outer(a, b)
    on = plan > 0.0
    if (product[on] == 0.0).any():
        return np.inf
    phi = np.einsum("lij,ij->l", stack, plan)
    eta = result.eta
    worst = phi.max() if eta == 0.0 else eta * float(np.asarray(logsumexp(phi / eta + log_prior)))
    return float(worst + result.eps * (plan[on] * np.log(plan[on] / product[on])).sum())


def dual(
    result: frot.Result, stack: np.ndarray, a: np.ndarray, b: np.ndarray, log_prior: Any = 0.0
) -> float:
    """The dual objective of the weights and potentials."""
    alpha, (f, g) = result.alpha, result.potentials
    mixed = np.einsum("l,lij->ij", alpha, stack)
    rows, cols = a > 0.0, b > 0.0
    exponent = ((f[:, None] + g - mixed) / result.eps)[rows][:, cols]
    gibbs = np.outer(a[rows], b[cols]) * np.exp(exponent)
    on = alpha > 0.0
    surprise = np.log(alpha[on]) - np.broadcast_to(log_prior, alpha.shape)[on]
    linear = f[rows] @ a[rows] + g[cols] @ b[cols]
    reward = -result.eta * (alpha[on] @ surprise)
    return float(linear - result.eps * (gibbs.sum() - 1.0) + reward)


def check_bounds(
    result: frot.Result, stack: np.ndarray, a: np.ndarray, b: np.ndarray, log_prior: Any = 0.0
) -> None:
    """Everything a result claims, looked up."""
    above, below = (value(result, stack, a, b, log_prior) for value in (primal, dual))
    # What these evaluations themselves round to.
    reach = max(abs(above), float(np.abs(stack).max()), result.eps, result.eta)
    rounding = 1e-13 * reach
    assert result.lower <= result.value <= result.upper
    assert above <= result.upper + rounding
    assert below >= result.lower - rounding
    assert result.lower <= above + rounding
    assert below <= result.upper + rounding
    assert np.abs(result.plan.sum(axis=1) - a).max() <= 1e-12
    assert np.abs(result.plan.sum(axis=0) - b).max() <= 1e-12
    assert result.alpha.min() >= 0.0
    assert abs(result.alpha.sum() - 1.0) <= 1e-12
    phi = np.einsum("lij,ij->l", stack, np.asarray(result.plan))
    assert np.allclose(result.phi, phi, rtol=1e-9, atol=1e-12 * reach)
