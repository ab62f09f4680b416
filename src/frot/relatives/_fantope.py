r"""The Fantope and the best mixture of displacement matrices against it.

The adversary of subspace-robust transport picks :math:`\Omega` from the Fantope

.. math::
    \mathcal F_k = \{ \Omega : 0 \preceq \Omega \preceq I,\; \mathrm{tr}\, \Omega = k \},
    \qquad \max_{\Omega \in \mathcal F_k} \langle \Omega, V \rangle = \sum_{i \le k} \lambda_i(V).

With the barrier :math:`\mu \log\det \Omega + \mu \log\det(I - \Omega)` the maximum is smooth in V,
and both :math:`\Omega` and the second derivative are explicit in V's eigenvectors.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

# Share of the way to the edge of the simplex that a step may go.
SHARE = 0.95
# What is left of the barrier after a step that went well.
SHRINK = 0.3


def top_sum(eigenvalues: np.ndarray, k: int) -> float:
    """Return the sum of the k largest numbers.

    Examples
    --------
    >>> top_sum(np.array([1.0, 3.0, 2.0]), 2)
    5.0
    """
    return float(np.sort(eigenvalues)[len(eigenvalues) - k :].sum())


def fantope_weights(eigenvalues: np.ndarray, k: int, mu: float) -> np.ndarray:
    r"""Return the eigenvalues of the smoothed adversary's answer, in (0, 1) and of sum k.

    They solve :math:`\lambda_i - \nu + \mu / \omega_i - \mu / (1 - \omega_i) = 0`; for k = r they
    are all one.

    Examples
    --------
    >>> fantope_weights(np.array([2.0, 1.0, 1.0]), 1, 1e-6).round(3)
    array([1., 0., 0.])
    """
    size = len(eigenvalues)
    if k == size:
        return np.ones(size)
    # Levels are measured from an eigenvalue next to them, so that a small mu costs no digits.
    scores = (eigenvalues - np.sort(eigenvalues)[size - k]) / mu
    # At the ends every weight is above, or below, k / r.
    share = k / size
    offset = 1.0 / (1.0 - share) - 1.0 / share
    low, high = float(scores.min()) - offset, float(scores.max()) - offset
    level = min(max(0.0, low), high)
    weights = np.full(size, share)
    for _ in range(200):
        weights, slopes = _weight(scores - level)
        excess = float(weights.sum()) - k
        if abs(excess) <= 1e-15 * k or not low < high:
            break
        low, high = (level, high) if excess > 0.0 else (low, level)
        level += excess / max(float(slopes.sum()), 1e-300)
        if not low < level < high:
            level = 0.5 * (low + high)
    # What is left over is rounding; scaling it away keeps the trace right.
    return weights * min(1.0, k / float(weights.sum()))


def _weight(score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve 1 / (1 - w) - 1 / w = score for w without cancellation, with its derivative."""
    size = np.abs(score)
    root = np.sqrt(score * score + 4.0)
    small = 0.5 * (2.0 + 4.0 / (root + size)) / (2.0 + root)
    return np.where(score < 0.0, small, 1.0 - small), 1.0 / (root * (root + 2.0))


class Mixture(NamedTuple):
    """Weights of the known plans, the adversary's answer within the basis, and both bounds."""

    weights: np.ndarray
    omega: np.ndarray
    lower: float
    upper: float


def best_planes(
    planes: np.ndarray, k: int, weights: np.ndarray, mu: float, tol: float, max_iter: int = 60
) -> Mixture:
    r"""Solve :math:`\min_{w \in \Sigma^T} \max_{\Omega \in \mathcal F_k} \sum_t w_t
    \langle \Omega, A_t \rangle` by Newton steps along the central path.

    `planes`, (T, r, r), are displacement matrices of the known plans in a basis of r directions,
    `weights` where to begin, all > 0 and of sum one, `mu` the barrier to begin with, in units of
    cost, and `tol` the absolute gap at which to stop.

    Examples
    --------
    >>> planes = np.array([np.diag([2.0, 0.0]), np.diag([0.0, 2.0])])
    >>> found = best_planes(planes, 1, np.array([0.9, 0.1]), 1.0, 1e-8)
    >>> found.weights.round(6), round(found.upper, 6)
    (array([0.5, 0.5]), 1.0)
    """  # noqa: D205
    flat = planes.reshape(len(planes), -1)
    floor = 0.05 * tol / (2 * planes.shape[1] + len(planes))
    mu = max(mu, floor)
    slack = mu / weights
    here = _smoothed_maximum(flat, weights, k, mu)
    best: Mixture | None = None
    steps = 0
    while True:
        step = _direction(planes, here, weights, slack, k, mu)
        answer = here.answer
        # Where the step is short, the answer it leads to is feasible and much closer to the best.
        if step is not None and k < planes.shape[1] and step[1] < mu:
            answer = _ahead(flat, here, step[0], mu)
        best = _better(best, flat, answer, weights, here)
        if step is None or best.upper - best.lower <= tol or steps >= max_iter:
            return best
        steps += 1
        change, decrement = step
        # With slack / weight in the place of mu / weight^2 steps stay long near the edge.
        new_slack = (mu - slack * change) / weights
        length = min(1.0, _room(weights, change))
        trial, there = weights, here
        for _ in range(12):
            trial = weights + length * change
            trial = trial / trial.sum()
            there = _smoothed_maximum(flat, trial, k, mu)
            if _merit(there, trial, mu) <= _merit(here, weights, mu) - 1e-4 * length * decrement:
                break
            length *= 0.4
        move = new_slack - slack
        slack = slack + min(1.0, _room(slack, move)) * move
        weights, here = trial, there
        if decrement <= 0.5 * mu:
            # Below this the barrier is less than the tolerance, and only rounding is left.
            mu = max(SHRINK * mu, floor)
            here = _smoothed_maximum(flat, weights, k, mu)


class _SmoothedMaximum(NamedTuple):
    """The smoothed maximum at a mixture: its value, the answer, and what moves it."""

    value: float
    upper: float
    vectors: np.ndarray
    omega: np.ndarray
    answer: np.ndarray
    slopes: np.ndarray


def _smoothed_maximum(flat: np.ndarray, weights: np.ndarray, k: int, mu: float) -> _SmoothedMaximum:
    size = math.isqrt(flat.shape[1])
    values, vectors = eigh((weights @ flat).reshape(size, size), driver="evd")
    omega = fantope_weights(values, k, mu)
    answer = (vectors * omega) @ vectors.T
    barrier = (
        0.0 if k == size else float(np.log(omega).sum() + np.log((1.0 - omega).clip(1e-300)).sum())
    )
    value = float(omega @ values) + mu * barrier
    return _SmoothedMaximum(
        value, top_sum(values, k), vectors, omega, answer, flat @ answer.ravel()
    )


def _better(
    best: Mixture | None,
    flat: np.ndarray,
    answer: np.ndarray,
    weights: np.ndarray,
    at: _SmoothedMaximum,
) -> Mixture:
    """Keep the mixture and the answer that have proven most, each for itself."""
    lower = float((flat @ answer.ravel()).min())
    if best is None:
        return Mixture(weights, answer, lower, at.upper)
    if lower > best.lower:
        best = best._replace(omega=answer, lower=lower)
    return best._replace(weights=weights, upper=at.upper) if at.upper < best.upper else best


def _ahead(flat: np.ndarray, at: _SmoothedMaximum, change: np.ndarray, mu: float) -> np.ndarray:
    """The adversary's answer after the step, to first order."""
    size = len(at.omega)
    tilt = at.vectors.T @ (change @ flat).reshape(size, size) @ at.vectors
    ease = _ease(at.omega)
    diagonal = np.diagonal(ease)
    shift = ease * tilt
    np.einsum("ii->i", shift)[:] -= diagonal * (diagonal @ np.diagonal(tilt) / diagonal.sum())
    turned = np.diag(at.omega) + shift / mu
    values = np.linalg.eigvalsh(turned)
    if values[0] < 0.0 or values[-1] > 1.0:
        return at.answer
    return at.vectors @ turned @ at.vectors.T


def _ease(omega: np.ndarray) -> np.ndarray:
    """Divided differences of the weights times mu, in a form that no tie upsets."""
    other = 1.0 - omega
    return 1.0 / (1.0 / np.outer(other, other).clip(1e-300) + 1.0 / np.outer(omega, omega))


def _merit(at: _SmoothedMaximum, weights: np.ndarray, mu: float) -> float:
    return at.value - mu * float(np.log(weights).sum())


def _room(values: np.ndarray, change: np.ndarray) -> float:
    """How far a step may go before a value that must stay positive is next to zero."""
    falling = change < 0.0
    if not falling.any():
        return 1.0
    return SHARE * float((-values[falling] / change[falling]).min())


def _direction(
    planes: np.ndarray,
    at: _SmoothedMaximum,
    weights: np.ndarray,
    slack: np.ndarray,
    k: int,
    mu: float,
) -> tuple[np.ndarray, float] | None:
    """Newton's direction on the simplex, and how much it promises."""
    matrix = np.diag(slack / weights)
    if k < planes.shape[1]:
        matrix += _curvature(planes, at.vectors, at.omega, mu)
    scale = 1.0 / np.sqrt(np.diagonal(matrix))
    try:
        factor = cho_factor(matrix * np.outer(scale, scale) + 1e-13 * np.eye(len(weights)))
    except (LinAlgError, ValueError):
        return None
    gradient = at.slopes - mu / weights
    sides = np.column_stack([gradient, np.ones(len(weights))]) * scale[:, None]
    back = cho_solve(factor, sides) * scale[:, None]
    change = back[:, 0].sum() / back[:, 1].sum() * back[:, 1] - back[:, 0]
    return change, float(max(-(change @ gradient), 0.0))


def _curvature(planes: np.ndarray, vectors: np.ndarray, omega: np.ndarray, mu: float) -> np.ndarray:
    """Second derivatives of the smoothed maximum along every pair of planes."""
    turned = vectors.T @ planes @ vectors
    ease = _ease(omega)
    flat = turned.reshape(len(planes), -1)
    hessian = (flat * ease.ravel()) @ flat.T
    diagonal = np.diagonal(ease)
    pull = np.einsum("tii,i->t", turned, diagonal)
    # Moving along all eigenvalues at once changes nothing, since the trace is fixed.
    return (hessian - np.outer(pull, pull) / diagonal.sum()) / mu
