"""Subspace-robust transport to its default gap, and the other relatives against their plain forms.

    python benchmarks/relatives.py [--limit 60] [--skip-subspace]

One thread, processor time. The others run against the linear program or the loop that defines them.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from _common import fastest, table  # isort: skip  (sets the number of threads)

import numpy as np
import ot
from scipy import sparse
from scipy.optimize import linprog

import frot

Clouds = tuple[np.ndarray, np.ndarray]


def hypercube(n: int, d: int, informative: int) -> Clouds:
    """The fragmented hypercube of the subspace-robust paper, with noise features."""
    X, Y = np.random.default_rng(0).uniform(-1.0, 1.0, size=(2, n, d))
    Y[:, :informative] += 2.0 * np.sign(Y[:, :informative])
    return X, Y


def problems() -> Iterator[tuple[str, Clouds, int]]:
    """Yield names, points and k: with a subspace to find, and without one."""
    rng = np.random.default_rng(1)
    yield "toy, n = 100, d = 10", frot.toy(100)[:2], 2
    for n, d in ((100, 30), (300, 50)):
        yield f"hypercube, n = {n}, d = {d}", hypercube(n, d, 2), 2
    yield "hypercube, n = 500, d = 1000", hypercube(500, 1000, 50), 50
    X, Y = rng.normal(size=(2, 50, 5))
    yield "shifted by 2, n = 50, d = 5", (X, Y + 2.0 * np.eye(5)[0]), 2
    X, Y = rng.standard_t(2, size=(2, 150, 10))
    yield "heavy tails, n = 150, d = 10", (X, Y + 0.5), 3
    X, Y = rng.normal(size=(2, 200, 30))
    yield "scaled, n = 200, d = 30", (X, Y * np.linspace(3.0, 0.2, 30) + 0.3), 5
    for n, d, k in ((100, 20, 3), (200, 50, 5)):
        X, Y = rng.normal(size=(2, n, d))
        yield f"only noise, n = {n}, d = {d}", (X, Y), k


def subspace(limit: float) -> None:
    """Print seconds, gap and steps of each problem, to the default gap of 1e-3."""
    rows = []
    for name, (X, Y), k in problems():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", frot.ConvergenceWarning)
            seconds, res = fastest(lambda X=X, Y=Y, k=k: frot.srw(X, Y, k=k, time_limit=limit), 1)
        rows.append([name, str(k), f"{seconds:.2f}", f"{res.gap:.1e}", str(res.iterations)])
    table(["SRW", "k", "s", "gap", "steps"], rows)


def others() -> None:
    """Print the other relatives against what defines them."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 200, 50))
    Y[:, :3] += 1.0
    C = np.stack([(X[:, [i]] - Y[:, i]) ** 2 for i in range(5)])
    pairs: list[tuple[str, Callable[[], Any], Callable[[], float]]] = [
        ("max_min, 50 groups", lambda: frot.max_min(X, Y), lambda: _every_group(X, Y)),
        ("max_sliced", lambda: frot.max_sliced(X, Y), lambda: _ascent(X, Y)),
        (
            "CuttingSet, k = 2 of 5",
            lambda: frot.solve_costs(C, adversary=frot.CappedSimplex(2), solver="cutting_set"),
            lambda: _capped_program(C, 2),
        ),
        ("equitable, 5 costs", lambda: frot.equitable(C), lambda: _shared_program(C)),
    ]
    rows = []
    for name, ours, plain in pairs:
        ours()
        seconds, res = fastest(ours)
        theirs, value = fastest(plain)
        ratio = f"{theirs / seconds:.1f}x"
        rows.append(
            [name, f"{seconds:.3f}", f"{res.value:.6f}", f"{theirs:.3f}", f"{value:.6f}", ratio]
        )
    table(["n = m = 200", "frot s", "value", "plain s", "value", "ratio"], rows)


def _every_group(X: np.ndarray, Y: np.ndarray) -> float:
    """All transports, one per group."""
    costs = ((X[:, [i]] - Y[:, i]) ** 2 for i in range(X.shape[1]))
    transport: Any = ot.emd2
    return max(float(transport([], [], cost)) for cost in costs)


def _ascent(X: np.ndarray, Y: np.ndarray, steps: int = 200) -> float:
    """Gradient ascent on the sphere with a fixed decreasing step, from ten random directions."""
    rng = np.random.default_rng(0)
    best = 0.0
    for _ in range(10):
        w = rng.normal(size=X.shape[1])
        w /= np.linalg.norm(w)
        for t in range(steps):
            left, right = np.argsort(X @ w), np.argsort(Y @ w)
            gaps = X[left] - Y[right]
            best = max(best, float(((gaps @ w) ** 2).mean()))
            gradient = gaps.T @ (gaps @ w)
            w = w + gradient / np.linalg.norm(gradient) / np.sqrt(t + 1.0)
            w /= np.linalg.norm(w)
    return best


def _ends(n: int, m: int) -> Any:
    rows = sparse.kron(sparse.eye(n), np.ones((1, m)))
    cols = sparse.kron(np.ones((1, n)), sparse.eye(m))
    return sparse.vstack([rows, cols]).tocsr()


def _capped_program(C: np.ndarray, k: int) -> float:
    """min t + sum s / k with s_l >= <P, C_l> - t, whole."""
    count, n, m = C.shape
    ends = sparse.hstack([_ends(n, m), sparse.csr_matrix((n + m, 1 + count))])
    levels = np.hstack([C.reshape(count, -1), -np.ones((count, 1)), -np.eye(count)])
    found = linprog(
        np.concatenate([np.zeros(n * m), [1.0], np.full(count, 1.0 / k)]),
        A_ub=sparse.csr_matrix(levels),
        b_ub=np.zeros(count),
        A_eq=ends.tocsr()[1:],
        b_eq=np.append(np.full(n, 1.0 / n), np.full(m, 1.0 / m))[1:],
        bounds=[(0, None)] * (n * m) + [(None, None)] + [(0, None)] * count,
    )
    return float(found.fun)


def _shared_program(C: np.ndarray) -> float:
    """min t with <P_l, C_l> <= t, whole."""
    count, n, m = C.shape
    ends = sparse.hstack([*[_ends(n, m)] * count, sparse.csr_matrix((n + m, 1))])
    levels = sparse.hstack(
        [sparse.block_diag([cost.reshape(1, -1) for cost in C]), -np.ones((count, 1))]
    )
    found = linprog(
        np.append(np.zeros(count * n * m), 1.0),
        A_ub=levels.tocsr(),
        b_ub=np.zeros(count),
        A_eq=ends.tocsr()[1:],
        b_eq=np.append(np.full(n, 1.0 / n), np.full(m, 1.0 / m))[1:],
    )
    return float(found.fun)


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each problem")
    parser.add_argument("--skip-subspace", action="store_true")
    arguments = parser.parse_args()
    if not arguments.skip_subspace:
        subspace(arguments.limit)
        print()
    others()


if __name__ == "__main__":
    main()
