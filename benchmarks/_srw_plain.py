"""Subspace-robust transport as published (Paty & Cuturi 2019, algorithms 1 and 2), in plain form.

Dense d x d matrices, a full eigendecomposition and an exact transport an iteration. What the
iterates prove is looked at off the clock.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import ot

__all__ = ["Trace", "frank_wolfe", "supergradient"]


class Trace(NamedTuple):
    """Processor seconds of the algorithm alone, and the best relative gap so far."""

    seconds: float
    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """Relative gap."""
        return (self.upper - self.lower) / self.upper


def _moments(X: np.ndarray, Y: np.ndarray, a: np.ndarray, b: np.ndarray, P: np.ndarray):
    cross = X.T @ P @ Y
    return (X.T * a) @ X + (Y.T * b) @ Y - cross - cross.T


def _transport(X: np.ndarray, Y: np.ndarray, a: np.ndarray, b: np.ndarray, omega: np.ndarray):
    left, right = X @ omega, Y @ omega
    M = (left * X).sum(axis=1)[:, None] + (right * Y).sum(axis=1) - 2.0 * left @ Y.T
    M = np.maximum(M, 0.0)
    P = ot.emd(a, b, M, numItermax=10_000_000)
    return P, float((P * M).sum())


def _top(V: np.ndarray, k: int) -> float:
    return float(np.linalg.eigvalsh(V)[-k:].sum())


def frank_wolfe(X: np.ndarray, Y: np.ndarray, k: int, steps: int, limit: float, target: float):
    """Algorithm 2 with exact transport: move to the leading eigenspace by 2 / (2 + t)."""
    return _run(X, Y, k, steps, limit, target, _to_eigenspace)


def supergradient(X: np.ndarray, Y: np.ndarray, k: int, steps: int, limit: float, target: float):
    """Algorithm 1: a supergradient step, projected on the Fantope."""
    return _run(X, Y, k, steps, limit, target, _projected)


def _to_eigenspace(omega: np.ndarray, V: np.ndarray, k: int, t: int) -> np.ndarray:
    _, U = np.linalg.eigh(V)
    gamma = 2.0 / (2.0 + t)
    return (1.0 - gamma) * omega + gamma * (U[:, -k:] @ U[:, -k:].T)


def _projected(omega: np.ndarray, V: np.ndarray, k: int, t: int) -> np.ndarray:
    step = np.sqrt(2.0 * k) / (np.linalg.norm(V) * np.sqrt(t + 1.0))
    values, U = np.linalg.eigh(omega + step * V)
    low, high, level = values.min() - 1.0, values.max(), 0.0
    for _ in range(100):
        level = 0.5 * (low + high)
        low, high = (level, high) if np.clip(values - level, 0, 1).sum() > k else (low, level)
    return (U * np.clip(values - level, 0.0, 1.0)) @ U.T


def _run(X, Y, k, steps, limit, target, move) -> list[Trace]:
    n, m, d = len(X), len(Y), X.shape[1]
    a, b = np.full(n, 1.0 / n), np.full(m, 1.0 / m)
    omega, mean = np.eye(d) * (k / d), np.zeros((d, d))
    clock, lower, upper = 0.0, -np.inf, np.inf
    traces: list[Trace] = []
    for t in range(steps):
        begin = time.process_time()
        P, value = _transport(X, Y, a, b, omega)
        V = _moments(X, Y, a, b, np.asarray(P))
        omega = move(omega, V, k, t)
        clock += time.process_time() - begin
        # Plans, and their averages by the same weights, are all feasible: take the best.
        gamma = 2.0 / (2.0 + t)
        mean = (1.0 - gamma) * mean + gamma * V
        lower, upper = max(lower, value), min(upper, _top(V, k), _top(mean, k))
        traces.append(Trace(clock, lower, upper))
        if traces[-1].gap <= target or clock > limit:
            break
    return traces
