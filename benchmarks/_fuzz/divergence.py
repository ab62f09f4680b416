"""The debiased loss of several groups: drawn, and held against a small computation of its own.

Its value is S_alpha - eta KL(alpha | q) at the weights it returns, by Sinkhorn in logarithms in
NumPy; it is not below that at the prior, nor below zero; no weights near these are better; and a
cloud has no distance to itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import xlogy

import frot

from .attempt import Attempt
from .case import Case, PointProblem
from .draw import Rng, chance, groups, pick, size
from .judge_result import Complaint
from .options import amounts
from .points import POINTS, Shape

__all__ = ["draw_divergence", "judge_divergence"]

DATA = (
    "plain points",
    "plain points",
    "clusters",
    "grid",
    "offset",
    "near-duplicates",
    "histograms",
)
SWEEPS, CLOSE = 3_000, 1e-11
SHARES = (1.0, -0.5, -0.5)


def draw_divergence(rng: Rng, kind: str) -> Case:
    """Two clouds, two groups or more, and any eta and eps."""
    while True:
        shape = Shape(size(rng), size(rng), int(rng.integers(2, 6)))
        clouds = POINTS[pick(rng, *DATA)](rng, shape)
        spec, members = groups(rng, clouds.X.shape[1])
        if len(members) > 1:
            break
    X, Y = clouds.X.astype(float), clouds.Y.astype(float)
    a, b = (None if side is None else side.astype(float) for side in clouds[2:])
    metric = {"metric": pick(rng, "euclidean", "cityblock")} if chance(rng, 0.3) else {}
    problem = PointProblem(X, Y, members, a=a, b=b, **metric)
    options = {"groups": spec, **metric, **amounts(rng, problem, kind, entropic=True)}
    options |= {"debias": True, "gradient_tol": float(pick(rng, 5e-3, 1e-5))}
    return Case(kind, "divergence", (X, Y, a, b), options, (problem,))


def judge_divergence(case: Case, attempt: Attempt) -> tuple[str, list[Complaint]]:
    """Compute the loss again, and say what does not hold."""
    value, alpha, itself = attempt.answer
    sides = [
        (points, _shares(w, points)) for points, w in zip(case.args[:2], case.args[2:], strict=True)
    ]
    pairs = [(sides[0], sides[1]), (sides[0], sides[0]), (sides[1], sides[1])]
    (problem,) = case.problems
    assert isinstance(problem, PointProblem)
    stacks = [(_stack(one[0], other[0], problem), one[1], other[1]) for one, other in pairs]
    C, a, b = stacks[0]
    mean = float(np.einsum("i,lij,j->", a, C, b)) / len(C)
    eta, eps = (_amount(case.options.get(name, 0.0), mean) for name in ("eta", "eps"))
    prior = case.options.get("prior")
    q = np.full(len(C), 1.0 / len(C)) if prior is None else np.asarray(prior) / np.sum(prior)
    here, there = (_divergence(stacks, weights, eps) for weights in (alpha, q))
    if here is None or there is None:
        return "undecided", []
    tol = case.options["gradient_tol"]
    off = (10.0 * tol**2 + 1e-6) * mean
    found, expected = [], here[0] - eta * float(xlogy(alpha, alpha / q).sum())
    if itself > off or itself < -off:
        found.append(Complaint("value", f"D(x, x) is {itself!r}"))
    if value < min(there[0], 0.0) - off:
        found.append(Complaint("value", f"D is {value!r}, below {there[0]!r} at the prior"))
    if attempt.warned:
        return "wide", found
    if value < there[0] - off:
        found.append(Complaint("value", f"D is {value!r}, below {there[0]!r} at the prior"))
    if abs(value - expected) > off:
        found.append(Complaint("value", f"D is {value!r}, at its weights {expected!r}"))
    slope = here[1] - eta * np.log(np.maximum(alpha, 1e-300) / q)
    rise = float((alpha * np.abs(slope - alpha @ slope)).sum())
    if eta == 0.0:
        rise = float(here[1].max() - alpha @ here[1])
    if rise > (tol + 1e-6) * mean:
        found.append(Complaint("optimum", f"weights could rise by {rise / mean:.2g} mean costs"))
    return "converged", found


def _shares(weights: np.ndarray | None, points: np.ndarray) -> np.ndarray:
    if weights is None:
        return np.full(len(points), 1.0 / len(points))
    return weights / weights.sum()


def _amount(asked: Any, mean: float) -> float:
    return asked.share * mean if isinstance(asked, type(frot.relative(1.0))) else float(asked)


def _stack(X: np.ndarray, Y: np.ndarray, problem: PointProblem) -> np.ndarray:
    gaps = np.abs(X[:, None, :] - Y[None, :, :])
    return np.stack([_cost(gaps[:, :, list(group)], problem.metric) for group in problem.members])


def _cost(gaps: np.ndarray, metric: Any) -> np.ndarray:
    if metric == "cityblock":
        return gaps.sum(axis=2)
    squares = (gaps**2).sum(axis=2)
    return np.sqrt(squares) if metric == "euclidean" else squares


def _logsum(scores: np.ndarray, axis: int) -> np.ndarray:
    top = scores.max(axis=axis, keepdims=True)
    return np.log(np.exp(scores - top).sum(axis=axis)) + top.squeeze(axis)


def _divergence(
    stacks: list[Any], alpha: np.ndarray, eps: float
) -> tuple[float, np.ndarray] | None:
    """S_alpha and the debiased costs of the groups; None where sweeps do not get there."""
    value, phi = 0.0, np.zeros(len(alpha))
    for share, (C, a, b) in zip(SHARES, stacks, strict=True):
        C, a, b = C[:, a > 0.0][:, :, b > 0.0], a[a > 0.0], b[b > 0.0]
        M, f, g = np.tensordot(alpha, C, 1) / eps, np.zeros(len(a)), np.zeros(len(b))
        same = C.shape[1] == C.shape[2] and share < 0.0
        for _ in range(SWEEPS):
            last = f
            g = -_logsum(f[:, None] - M + np.log(a)[:, None], 0)
            # A cloud and itself share one potential: means of it and its update are closer.
            f = 0.5 * (f + g) if same else -_logsum(g[None, :] - M + np.log(b)[None, :], 1)
            if np.abs(f - last).max() <= CLOSE * (1.0 + np.abs(f).max()):
                break
        else:
            return None
        g = f if same else g
        plan = np.exp(f[:, None] + g[None, :] - M) * a[:, None] * b[None, :]
        value += share * eps * float(a @ f + b @ g)
        phi += share * (plan * C).sum(axis=(1, 2))
    return value, phi
