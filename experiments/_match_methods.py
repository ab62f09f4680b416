"""Methods that the paper compares itself with, and others: functions of layers and masses.

Each is a `method` of `frot.correspondence.Matcher`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import frot
from frot._base.arrays import to_numpy
from frot.correspondence import LayerPair

TOL = 1e-3


def _at(
    layers: LayerPair, alpha: np.ndarray, a: np.ndarray, b: np.ndarray, eps: float
) -> frot.Result:
    """Return ordinary transport at the mixed cost, with what it costs in every layer."""
    cost = to_numpy(layers.mixed(alpha))
    result = frot.solve_costs(cost[None], a, b, eps=eps, tol=TOL, normalise_weights=True)
    plan = layers.home.bring(result.plan.dense())
    phi = to_numpy(layers.costs.inner(plan)).astype(float)
    return replace(result, alpha=alpha, phi=phi)


@dataclass(frozen=True)
class BestLayer:
    """Transport with one layer: the most coherent one."""

    eps: float = 0.1

    def __call__(self, layers: LayerPair, a: np.ndarray, b: np.ndarray) -> frot.Result:
        alpha = np.eye(len(layers.names))[layers.coherences.argmax()]
        return _at(layers, alpha, a, b, self.eps)


@dataclass(frozen=True)
class MaxMin:
    r"""The paper's appendix: one-hot weights on the layer whose own transport costs most.

    Any plan bounds the transport of every layer from above, so layers that cannot be the costliest
    are not solved.
    """

    eps: float = 0.1

    def __call__(self, layers: LayerPair, a: np.ndarray, b: np.ndarray) -> frot.Result:
        bring, count = layers.home.bring, len(layers.names)
        product = layers.costs.product(bring(a), bring(b))
        uppers = to_numpy(product).astype(float)
        solved: list[frot.Result] = []
        left = set(range(count))
        while left and all(uppers[max(left, key=uppers.item)] > one.lower for one in solved):
            layer = max(left, key=uppers.item)
            left.discard(layer)
            result = _at(layers, np.eye(count)[layer], a, b, self.eps)
            np.minimum(uppers, result.phi + result.value - result.phi[layer], out=uppers)
            solved.append(result)
        return max(solved, key=lambda result: result.value)


@dataclass(frozen=True)
class SubspaceRobust:
    r"""Entropic SRW as the paper compares itself with it: k directions, Frank-Wolfe steps.

    .. math::
        \Pi \leftarrow (1 - \gamma) \Pi + \gamma \arg\min_{\Pi'}
        \langle \Pi', \|U^\top (x_i - y_j)\|^2 \rangle + \varepsilon \mathrm{KL}, \qquad
        U = \text{top } k \text{ eigenvectors of } V_\Pi

    The vectors are those of all layers, each of unit length, put end to end.
    """

    rank: int = 50
    steps: int = 3
    eps: float = 0.1

    def __call__(self, layers: LayerPair, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        X, Y = (to_numpy(side).astype(float) for side in layers.vectors())
        k = min(self.rank, X.shape[1])
        plan = np.outer(a, b)
        for step in range(self.steps):
            U = directions(X, Y, plan, k)
            P, Q = X @ U, Y @ U
            cost = (P**2).sum(axis=1)[:, None] + (Q**2).sum(axis=1) - 2.0 * P @ Q.T
            result = frot.solve_costs(
                np.maximum(cost, 0.0)[None], a, b, eps=self.eps, tol=TOL, normalise_weights=True
            )
            gamma = 2.0 / (2.0 + step)
            plan = (1.0 - gamma) * plan + gamma * np.asarray(result.plan)
        return plan


def directions(X: np.ndarray, Y: np.ndarray, plan: np.ndarray, k: int) -> np.ndarray:
    """Return the leading eigenvectors of the plan's second moment of displacements, (d, k).

    Of n + m points in more dimensions, from the smaller of the two squares.
    """
    rows, cols = plan.sum(axis=1), plan.sum(axis=0)
    Z = np.concatenate([X, Y])
    # The moment is Z^T W Z with this W, which is positive semidefinite: W = S S^T.
    W = np.block([[np.diag(rows), -plan], [-plan.T, np.diag(cols)]])
    if X.shape[1] <= len(Z):
        return np.linalg.eigh(Z.T @ W @ Z)[1][:, ::-1][:, :k]
    values, vectors = np.linalg.eigh(W)
    S = vectors * np.sqrt(np.maximum(values, 0.0))
    half = S.T @ Z
    values, vectors = np.linalg.eigh(half @ half.T)
    found = half.T @ vectors[:, ::-1][:, :k]
    return found / np.maximum(np.linalg.norm(found, axis=0), 1e-300)


@dataclass(frozen=True)
class Normalised:
    """FROT with costs over their means, or less their own optima."""

    normalise: str
    eta: float = 0.3
    eps: float = 0.1

    def __call__(self, layers: LayerPair, a: np.ndarray, b: np.ndarray) -> frot.Result:
        return frot.solve_costs(
            layers.costs, a, b, eta=self.eta, eps=self.eps, normalise=self.normalise,
            names=layers.names, tol=TOL, normalise_weights=True,
        )  # fmt: skip
