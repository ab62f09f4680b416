"""Which arcs a restricted problem should hold: a start from a few sweeps, then by price."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from frot._bounds import northwest
from frot._plan import Plan
from frot._problem import Problem

__all__ = ["Seed", "cheapest", "seed_arcs"]

# Entropic regularisation and step of the seeding, in units of the mean cost.
SEED_EPS = 0.02
SEED_STEP = 0.1
SEED_ROUNDS = 4
SEED_SWEEPS = 40


class Seed(NamedTuple):
    """A start: weights, potentials of their mixed cost, arcs as flat indices i * m + j."""

    alpha: np.ndarray
    f: np.ndarray
    g: np.ndarray
    arcs: np.ndarray


def cheapest(reduced: np.ndarray, per_point: int, below: float = np.inf) -> np.ndarray:
    """Return the flat indices of the smallest entries of every row and every column.

    Examples
    --------
    >>> cheapest(np.array([[0.0, 5.0], [4.0, 1.0]]), per_point=1)
    array([0, 3])
    >>> cheapest(np.array([[0.0, 5.0], [4.0, 1.0]]), per_point=1, below=0.5)
    array([0])
    """
    n, m = reduced.shape
    along_rows, along_cols = min(per_point, m), min(per_point, n)
    if along_rows == 1:
        of_rows = reduced.argmin(axis=1)[:, None]
    else:
        of_rows = np.argpartition(reduced, along_rows - 1, axis=1)[:, :along_rows]
    if along_cols == 1:
        of_cols = reduced.argmin(axis=0)[None]
    else:
        of_cols = np.argpartition(reduced, along_cols - 1, axis=0)[:along_cols]
    flat = np.concatenate(
        [(np.arange(n)[:, None] * m + of_rows).ravel(), (of_cols * m + np.arange(m)).ravel()]
    )
    flat = np.unique(flat)
    return flat if below == np.inf else flat[reduced.ravel()[flat] < below]


def seed_arcs(
    problem: Problem, alpha: np.ndarray, per_point: int, unit: float, mirror: bool = True
) -> Seed:
    """Find arcs that matter by a few steps of mirror ascent on alpha with rough transport.

    Each step runs some entropic sweeps at the current weights and keeps the arcs of smallest
    reduced cost. The weights overshoot at first, which is welcome: arcs that are good at several
    mixes of the groups are those that the optimum needs. The result always admits a plan.

    Parameters
    ----------
    problem : Problem
    alpha : array of shape (L,)
        Where to begin.
    per_point : int
        Arcs kept for every point at the last weights.
    unit : float
        The scale of the costs.
    mirror : bool
        False keeps `alpha`, which is then trusted to be good already.
    """
    a, b = problem.a, problem.b
    n, m = problem.shape[1:]
    eps = SEED_EPS * unit
    g = np.zeros(m)
    kept: list[np.ndarray] = []
    f = np.zeros(n)
    mixed = problem.costs.mix(alpha)
    rounds = SEED_ROUNDS if mirror else 0
    for turn in range(rounds + 1):
        f, g, kernel = _sweeps(mixed, a, b, g, eps)
        reduced = mixed - f[:, None]
        reduced -= g
        if turn == rounds:
            kept.append(cheapest(reduced, per_point))
            break
        kept.append(cheapest(reduced, 2))
        phi = problem.costs.inner(Plan(kernel)) / unit
        with np.errstate(under="ignore"):
            alpha = alpha * np.exp((phi - phi.max()) / SEED_STEP)
        alpha = alpha / alpha.sum()
        mixed = problem.costs.mix(alpha)
    by_f, by_g = np.argsort(f, kind="stable"), np.argsort(-g, kind="stable")
    rows, cols, _ = northwest(a[by_f], b[by_g])
    kept.append(by_f[rows] * m + by_g[cols])
    return Seed(alpha, f, g, np.unique(np.concatenate(kept)))


def _sweeps(
    mixed: np.ndarray, a: np.ndarray, b: np.ndarray, g: np.ndarray, eps: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A few Sinkhorn sweeps from a warm g: potentials and the plan they give (not converged)."""
    kernel = (g - mixed) / eps
    top = kernel.max(axis=1)
    kernel -= top[:, None]
    with np.errstate(under="ignore"):
        np.exp(kernel, out=kernel)
        u, v = 1.0 / (kernel @ b), np.ones(len(b))
        for _ in range(SEED_SWEEPS):
            v = 1.0 / np.maximum(kernel.T @ (a * u), 1e-200)
            u = 1.0 / np.maximum(kernel @ (b * v), 1e-200)
        f = eps * (np.log(u) - top)
        g = g + eps * np.log(v)
        kernel *= (a * u)[:, None]
        kernel *= b * v
    return f, g, kernel
