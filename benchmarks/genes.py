"""Frank-Wolfe on thousands of single-feature groups, against the paper's algorithm as written.

    python benchmarks/genes.py

T = 10 steps, eta = 1, one group per feature, the network simplex inside both. The peer builds the
L x n x m stack of costs and follows algorithm 2 line by line; both return the same plan.
"""

from __future__ import annotations

import warnings

from _common import peak_memory, table, timed  # isort: skip  (sets the number of threads)

import numpy as np
import ot

import frot

STEPS, ETA = 10, 1.0
SIZES = ((50, 2_000), (50, 7_000), (50, 22_283), (100, 2_000))

Clouds = tuple[np.ndarray, np.ndarray]


def clouds(n: int, d: int) -> Clouds:
    """Make two sets of points that differ in a twentieth of their features; warm up imports."""
    rng = np.random.default_rng(n + d)
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    Y[:, : d // 20] += 0.5
    ours((X[:5, :5], Y[:5, :5]))
    return X, Y


def as_written(points: Clouds) -> np.ndarray:
    """Algorithm 2 of the paper with its stack of L cost matrices."""
    X, Y = points
    n, m, groups = len(X), len(Y), X.shape[1]
    a, b = np.full(n, 1.0 / n), np.full(m, 1.0 / m)
    stack = np.zeros((groups, n, m))
    for group in range(groups):
        stack[group] = ot.dist(X[:, [group]], Y[:, [group]], metric="sqeuclidean")
    plan = np.outer(a, b)
    for t in range(STEPS):
        phi = np.sum(plan * stack, axis=(1, 2))
        weights = np.exp((phi - phi.max()) / ETA)
        alpha = weights / weights.sum()
        mixed = np.sum(alpha[:, None, None] * stack, axis=0)
        vertex = np.asarray(ot.emd(a, b, mixed))
        gamma = 2.0 / (2.0 + t)
        plan = (1.0 - gamma) * plan + gamma * vertex
    return plan


def ours(points: Clouds) -> frot.Result:
    """Run the same algorithm by frot; its warning that T = 10 is not the optimum is muted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", frot.ConvergenceWarning)
        solver = frot.FrankWolfe(step="paper", max_iter=STEPS)
        return frot.solve(*points, groups="each", eta=ETA, solver=solver)


def main() -> None:
    """Print time, memory and agreement for every size."""
    rows = []
    for n, d in SIZES:
        points = clouds(n, d)
        our_time, result = timed(lambda points=points: ours(points), repeats=5)
        peer_time, plan = timed(lambda points=points: as_written(points), repeats=3)
        our_peak = peak_memory(clouds, ours, n, d)
        peer_peak = peak_memory(clouds, as_written, n, d)
        difference = float(np.abs(np.asarray(result.plan) - plan).sum())
        rows.append(
            [
                str(n),
                str(d),
                f"{our_time:.4f}",
                f"{peer_time:.2f}",
                f"{peer_time / our_time:.0f}x",
                f"{our_peak / 1e6:.1f}",
                f"{peer_peak / 1e6:.0f}",
                f"{peer_peak / max(our_peak, 1):.0f}x",
                f"{difference:.0e}",
                f"{result.gap:.1e}",
            ]
        )
    header = ["n=m", "d=L", "frot s", "as written s", "ratio"]
    header += ["frot MB", "as written MB", "ratio", "plans differ by", "gap"]
    table(header, rows)


if __name__ == "__main__":
    main()
