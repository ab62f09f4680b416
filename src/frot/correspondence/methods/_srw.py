"""Subspace-robust transport on the layers' vectors: the adversary picks directions."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from frot._base.arrays import to_numpy
from frot._base.stopping import Interrupted
from frot.correspondence.methods._outcome import Outcome, Setting

__all__ = ["subspace_robust"]

# Steps from plan to directions and back, as in the paper's comparison.
STEPS = 3
# Up to this many features the second moments are formed.
DENSE_UP_TO = 1500


def subspace_robust(setting: Setting) -> Outcome:
    r"""Entropic SRW as the paper compares itself with it: k directions, three Frank-Wolfe steps.

    .. math::
        \Pi \leftarrow (1 - \gamma) \Pi + \gamma \arg\min_{\Pi'}
        \langle \Pi', \|U^\top (x_i - y_j)\|^2 \rangle + \varepsilon \mathrm{KL}, \qquad
        U = \text{top } k \text{ eigenvectors of } V_\Pi

    The vectors are those of all layers, each of unit length, put end to end.
    """
    X, Y = (to_numpy(side).astype(float) for side in setting.layers.vectors())
    k = min(setting.rank, X.shape[1])
    plan = np.outer(setting.a, setting.b)
    U = np.zeros((X.shape[1], k))
    for step in range(STEPS):
        U = _directions(X, Y, plan, k)
        P, Q = X @ U, Y @ U
        cost = (P**2).sum(axis=1)[:, None] + (Q**2).sum(axis=1)[None, :] - 2.0 * P @ Q.T
        bring = setting.home.bring
        try:
            result = setting.transport.alone(
                bring(np.maximum(cost, 0.0)), f"{k} directions", setting.a, setting.b
            )
        except Interrupted:
            # There is no interval to say how far a plan is that was cut short: it is no answer.
            raise KeyboardInterrupt from None
        gamma = 2.0 / (2.0 + step)
        plan = (1.0 - gamma) * plan + gamma * to_numpy(result.plan.dense()).astype(float)
    # Layers share the directions: their part is the length of the directions in their features.
    ends = np.cumsum([layer.channels for layer in setting.layers.source])[:-1]
    shares = np.array([part.sum() for part in np.split((U**2).sum(axis=1), ends)])
    return setting.transported(plan, shares / shares.sum(), None)


def _directions(X: np.ndarray, Y: np.ndarray, plan: np.ndarray, k: int) -> np.ndarray:
    """The leading eigenvectors of the plan's second moment of displacements, (d, k)."""
    rows, cols = plan.sum(axis=1), plan.sum(axis=0)
    d = X.shape[1]
    if d <= max(DENSE_UP_TO, 2 * k):
        cross = X.T @ (plan @ Y)
        moments = X.T @ (rows[:, None] * X) + Y.T @ (cols[:, None] * Y) - cross - cross.T
        return eigh(moments, subset_by_index=[d - k, d - 1])[1]

    def times(v: np.ndarray) -> np.ndarray:
        left, right = X @ v, Y @ v
        return X.T @ (rows * left - plan @ right) + Y.T @ (cols * right - plan.T @ left)

    operator = LinearOperator((d, d), matvec=times, dtype=float)  # type: ignore[call-arg]
    start = np.random.default_rng(0).normal(size=d)
    return eigsh(operator, k=k, v0=start, tol=1e-3)[1]  # pyright: ignore[reportArgumentType]
