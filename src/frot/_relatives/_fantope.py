r"""The Fantope and the best mixture of displacement matrices against it.

The adversary of subspace-robust transport picks :math:`\Omega` from the Fantope

.. math::
    \mathcal F_k = \{ \Omega : 0 \preceq \Omega \preceq I,\; \mathrm{tr}\, \Omega = k \},
    \qquad \max_{\Omega \in \mathcal F_k} \langle \Omega, V \rangle = \sum_{i \le k} \lambda_i(V).

With the barrier :math:`\mu \log\det \Omega + \mu \log\det(I - \Omega)` the maximum is smooth in V,
and both :math:`\Omega` and the second derivative are explicit in V's eigenvectors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

__all__ = ["Mixture", "best_planes", "fantope_weights", "top_sum"]

# Share of the way to the edge of the simplex that a step may go.
SHARE = 0.9
# Barrier after each solve, and Newton steps for each barrier.
SHRINK = 0.25
STEPS = 8


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
    # At these levels every weight is below, or above, k / r.
    share = k / size
    offset = mu * (1.0 / (1.0 - share) - 1.0 / share)
    low, high = float(eigenvalues.min()) - offset, float(eigenvalues.max()) - offset
    level = 0.5 * (low + high)
    for _ in range(100):
        weights, slopes = _weight((eigenvalues - level) / mu)
        excess = float(weights.sum()) - k
        if abs(excess) <= 1e-14 * k:
            break
        low, high = (level, high) if excess > 0.0 else (low, level)
        level += excess * mu / max(float(slopes.sum()), 1e-300)
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
    mu: float


def best_planes(
    planes: np.ndarray, k: int, weights: np.ndarray, mu: float, tol: float, max_iter: int = 60
) -> Mixture:
    r"""Solve :math:`\min_{w \in \Sigma^T} \max_{\Omega \in \mathcal F_k} \sum_t w_t
    \langle \Omega, A_t \rangle` by Newton steps along the central path.

    Parameters
    ----------
    planes : array of shape (T, r, r)
        Displacement matrices of the known plans, in a basis of r directions.
    k : int
    weights : array of shape (T,)
        Where to begin, all > 0 and of sum one.
    mu : float
        Barrier to begin with, in units of cost.
    tol : float
        Absolute gap at which to stop.
    max_iter : int
        Newton steps at most.

    Examples
    --------
    >>> planes = np.array([np.diag([2.0, 0.0]), np.diag([0.0, 2.0])])
    >>> found = best_planes(planes, 1, np.array([0.9, 0.1]), 1.0, 1e-8)
    >>> found.weights.round(6), round(found.upper, 6)
    (array([0.5, 0.5]), 1.0)
    """  # noqa: D205
    count, size = len(planes), planes.shape[1]
    flat = planes.reshape(count, -1)
    best: Mixture | None = None
    steps = 0
    while True:
        moved = True
        for _ in range(STEPS):
            steps += 1
            values, vectors = eigh((weights @ flat).reshape(size, size), driver="evd")
            omega = fantope_weights(values, k, mu)
            answer = (vectors * omega) @ vectors.T
            slopes = flat @ answer.ravel()
            lower, upper = float(slopes.min()), top_sum(values, k)
            if best is None or upper - lower < best.upper - best.lower:
                best = Mixture(weights, answer, lower, upper, mu)
            if upper - lower <= tol or steps >= max_iter:
                return best
            if k == size:
                hessian = np.zeros((count, count))
            else:
                hessian = _curvature(planes, vectors, omega, mu)
            length, weights = _move(weights, slopes, hessian, mu)
            moved = length > 1e-10
            if length > 0.99:
                break
        if not moved:
            return best
        mu *= SHRINK


def _curvature(planes: np.ndarray, vectors: np.ndarray, omega: np.ndarray, mu: float) -> np.ndarray:
    """Second derivatives of the smoothed maximum along every pair of planes."""
    turned = vectors.T @ planes @ vectors
    other = 1.0 - omega
    # The divided differences of the weights, in a form that no tie of eigenvalues upsets.
    ease = 1.0 / (1.0 / np.outer(other, other).clip(1e-300) + 1.0 / np.outer(omega, omega))
    flat = turned.reshape(len(planes), -1)
    hessian = (flat * ease.ravel()) @ flat.T
    diagonal = np.diagonal(ease)
    pull = np.einsum("tii,i->t", turned, diagonal)
    # Moving along all eigenvalues at once changes nothing, since the trace is fixed.
    return (hessian - np.outer(pull, pull) / diagonal.sum()) / mu


def _move(
    weights: np.ndarray, slopes: np.ndarray, hessian: np.ndarray, mu: float
) -> tuple[float, np.ndarray]:
    """Take one damped Newton step of F - mu sum log w on the simplex."""
    matrix = hessian + np.diag(mu / weights**2)
    scale = 1.0 / np.sqrt(np.diagonal(matrix))
    try:
        factor = cho_factor(matrix * np.outer(scale, scale) + 1e-13 * np.eye(len(weights)))
    except (LinAlgError, ValueError):
        return 0.0, weights
    gradient = slopes - mu / weights
    sides = np.column_stack([gradient, np.ones(len(weights))]) * scale[:, None]
    back = cho_solve(factor, sides) * scale[:, None]
    level = back[:, 0].sum() / back[:, 1].sum()
    step = level * back[:, 1] - back[:, 0]
    # The decrement of a self-concordant function says how far a full step may be trusted.
    decrement = float(np.sqrt(max(-(step @ gradient) / mu, 0.0)))
    length = 1.0 if decrement < 0.25 else 1.0 / (1.0 + decrement)
    shrinking = step < 0.0
    if shrinking.any():
        length = max(length, 0.0)
        length = min(length, SHARE * float((-weights[shrinking] / step[shrinking]).min()))
    moved = weights + length * step
    return length, moved / moved.sum()
