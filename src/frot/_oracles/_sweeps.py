r"""Sinkhorn's sweeps at one eps: scalings that are absorbed into potentials, over-relaxed.

The kernel :math:`K = e^{(f \oplus g - M)/\varepsilon}` is formed once; a sweep is then two products
with it,

.. math::
    v \leftarrow v^{1-\omega} \big( 1 / K^\top (a \circ u) \big)^\omega, \qquad
    u \leftarrow u^{1-\omega} \big( 1 / K (b \circ v) \big)^\omega .

Plain sweeps (omega = 1) contract the error by some rate r; once r is known,
:math:`\omega = 2 / (1 + \sqrt{1 - r})` contracts it by about the square root of the sweeps needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Scaling", "sweep_to"]

# Scalings beyond this are folded into the potentials, and the kernel is formed anew.
ABSORB_AT = 1e60
# The rate is read over this many sweeps, and omega is trusted up to this.
WINDOW = 10
LARGEST_OMEGA = 1.95


class Scaling(NamedTuple):
    """Potentials, the plan they make (rows exact), sweeps made, and mass in wrong columns."""

    f: np.ndarray
    g: np.ndarray
    plan: np.ndarray
    sweeps: int
    error: float


class _Relaxation:
    """Chooses omega from the errors it is shown; gives up for good if they grow twice."""

    def __init__(self) -> None:
        self.omega = 1.0
        self._last = np.inf
        self._sweeps = self._retreats = 0

    def update(self, error: float) -> None:
        self._sweeps += 1
        if self._sweeps % WINDOW:
            return
        if self.omega > 1.0 and not error < self._last:
            self.omega, self._retreats = 1.0, self._retreats + 1
        elif self.omega == 1.0 and self._retreats < 2 and self._sweeps >= 2 * WINDOW:
            rate = (error / self._last) ** (1.0 / WINDOW) if self._last > 0.0 else 0.0
            # Fast as it is, or not in the linear regime yet.
            if 0.5 < rate < 1.0:
                self.omega = min(2.0 / (1.0 + np.sqrt(1.0 - rate)), LARGEST_OMEGA)
        self._last = error


def sweep_to(
    M: np.ndarray, a: np.ndarray, b: np.ndarray, eps: float, g: np.ndarray, tol: float, limit: int
) -> Scaling:
    """Sweep from the potential g until no more than `tol` of the mass is in wrong columns.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> M = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> found = sweep_to(M, half, half, eps=1.0, g=np.zeros(2), tol=1e-9, limit=100)
    >>> found.plan.sum(axis=0), found.error <= 1e-9
    (array([0.5, 0.5]), True)
    """
    f, g, kernel = _kernel(M, b, eps, g)
    u, v = np.ones(len(a)), np.ones(len(b))
    relaxation = _Relaxation()
    sweeps = 0
    with np.errstate(all="ignore"):
        columns = kernel.T @ (a * u)
        error = float(b @ np.abs(v * columns - 1.0))
        while error > tol and sweeps < limit:
            omega = relaxation.omega
            v = 1.0 / columns if omega == 1.0 else v * (1.0 / (v * columns)) ** omega
            rows = kernel @ (b * v)
            u = 1.0 / rows if omega == 1.0 else u * (1.0 / (u * rows)) ** omega
            sweeps += 1
            if not _within(u) or not _within(v):
                if np.isfinite(u).all() and (u > 0.0).all():
                    f = f + eps * np.log(u)
                f, g, kernel = _kernel(M, b, eps, _log_columns(M, a, eps, f))
                u, v = np.ones(len(a)), np.ones(len(b))
                relaxation = _Relaxation()
            columns = kernel.T @ (a * u)
            error = float(b @ np.abs(v * columns - 1.0))
            if omega > 1.0 and (error <= tol or sweeps == limit):
                # Over-relaxed rows are not exact: make them so before the error counts.
                u = 1.0 / (kernel @ (b * v))
                columns = kernel.T @ (a * u)
                error = float(b @ np.abs(v * columns - 1.0))
            relaxation.update(error)
        kernel *= (a * u)[:, None]
        kernel *= b * v
        f, g = f + eps * np.log(u), g + eps * np.log(v)
    return Scaling(f, g, kernel, sweeps, error)


def _within(scaling: np.ndarray) -> bool:
    return bool(scaling.max() < ABSORB_AT and scaling.min() > 1.0 / ABSORB_AT)


def _kernel(
    M: np.ndarray, b: np.ndarray, eps: float, g: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One row update in the log domain, then the kernel it makes: its rows sum to one under b."""
    kernel = (g - M) / eps
    top = kernel.max(axis=1)
    kernel -= top[:, None]
    with np.errstate(under="ignore"):
        np.exp(kernel, out=kernel)
        rows = kernel @ b
        kernel /= rows[:, None]
    return -eps * (top + np.log(rows)), g, kernel


def _log_columns(M: np.ndarray, a: np.ndarray, eps: float, f: np.ndarray) -> np.ndarray:
    """Return the column update g of the potential f in the log domain."""
    score = (f[:, None] - M) / eps
    top = score.max(axis=0)
    with np.errstate(under="ignore"):
        return -eps * (top + np.log(a @ np.exp(score - top)))
