"""Answers found without frot: the paper's program by SciPy, its algorithms in plain NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import ot
from scipy import sparse
from scipy.optimize import linprog
from scipy.special import logsumexp, softmax

import frot

__all__ = [
    "LIGHT",
    "algorithm_2",
    "exact_two_by_two",
    "linear_program",
    "quiet",
    "sinkhorn_plan",
    "smooth_max",
]


# Environment of processes that tests start: POT then leaves torch and the like where they are.
LIGHT = {f"POT_BACKEND_DISABLE_{name}": "1" for name in ("PYTORCH", "JAX", "TENSORFLOW", "CUPY")}


def quiet(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call and ignore that the solver did not converge: bounds must hold all the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", frot.ConvergenceWarning)
        return call(*args, **options)


def linear_program(stack: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """Solve the paper's equation 6, min t s.t. <P, C_l> <= t, with SciPy's HiGHS."""
    count, n, m = stack.shape
    unit, mass = float(np.abs(stack).max()) or 1.0, 1.0 / max(n, m)
    rows = sparse.kron(sparse.eye_array(n), np.ones((1, m)))
    cols = sparse.kron(np.ones((1, n)), sparse.eye_array(m))
    marginal = sparse.hstack([sparse.vstack([rows, cols]), sparse.csr_array((n + m, 1))]).tocsr()
    targets = np.concatenate([a, b]) / mass
    # One marginal follows from the others; with it, rounding may make the program infeasible.
    kept = np.delete(np.arange(n + m), np.argmax(targets))
    solved = linprog(
        np.append(np.zeros(n * m), 1.0),
        A_ub=np.hstack([stack.reshape(count, -1) / unit, -np.ones((count, 1))]),
        b_ub=np.zeros(count),
        A_eq=marginal[kept],
        b_eq=targets[kept],
        bounds=[(0.0, None)] * (n * m) + [(None, None)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert solved.status == 0, solved.message
    return float(solved.fun * unit * mass)


def smooth_max(phi: np.ndarray, eta: float) -> float:
    """The paper's G_eta of the group costs; the maximum for eta = 0."""
    return float(phi.max() if eta == 0.0 else eta * np.asarray(logsumexp(phi / eta)))


def exact_two_by_two(stack: np.ndarray, a: np.ndarray, b: np.ndarray) -> Fraction:
    """The optimum of a 2 x 2 problem in rational arithmetic: one number decides the plan."""
    costs = [[Fraction(x) for x in group.ravel().tolist()] for group in stack]
    (a0, a1), (b0, b1) = ([Fraction(x) for x in side.tolist()] for side in (a, b))
    assert a0 + a1 == b0 + b1 == 1
    low, high = max(Fraction(0), a0 - b1), min(a0, b0)
    lines = [(a0 * c[1] + b0 * c[2] + (a1 - b0) * c[3], c[0] - c[1] - c[2] + c[3]) for c in costs]
    knots = {low, high}
    for i, (level, slope) in enumerate(lines):
        knots |= {(other - level) / (slope - steep) for other, steep in lines[:i] if steep != slope}
    return min(max(level + slope * x for level, slope in lines) for x in knots if low <= x <= high)


def sinkhorn_plan(
    M: np.ndarray, a: np.ndarray, b: np.ndarray, eps: float, sweeps: int = 20_000
) -> np.ndarray:
    """The entropic plan by Sinkhorn's algorithm on logarithms."""
    log_a, log_b = np.log(a), np.log(b)
    f, g = np.zeros(len(a)), np.zeros(len(b))
    for _ in range(sweeps):
        f = -eps * np.asarray(logsumexp((g - M) / eps + log_b, axis=1))
        new = -eps * np.asarray(logsumexp((f[:, None] - M) / eps + log_a[:, None], axis=0))
        done = np.abs(new - g).max() <= 1e-13 * max(1.0, float(np.abs(new).max()))
        g = new
        if done:
            break
    return np.exp((f[:, None] + g - M) / eps + log_a[:, None] + log_b)


def algorithm_2(
    stack: np.ndarray, a: np.ndarray, b: np.ndarray, eta: float, steps: int, eps: float = 0.0
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The paper's algorithm 2 as it is printed; returns the last plan and every one on the way."""
    plan = np.outer(a, b)
    plans = [plan]
    for t in range(steps):
        phi = np.einsum("ij,lij->l", plan, stack)
        M = np.einsum("l,lij->ij", softmax(phi / eta), stack)
        best = np.asarray(ot.emd(a, b, M)) if eps == 0.0 else sinkhorn_plan(M, a, b, eps)
        gamma = 2.0 / (2.0 + t)
        plan = (1.0 - gamma) * plan + gamma * best
        plans.append(plan)
    return plan, plans
