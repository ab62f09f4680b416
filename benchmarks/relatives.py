"""The relatives against their plain forms.

    python benchmarks/relatives.py [--target 0.0025] [--limit 300] [--large]

Same process, one thread, same problem, same relative gap. Subspace-robust transport runs against
both published algorithms (Paty & Cuturi 2019) in dense form, whose bounds are looked at off the
clock; the others against the linear program or the loop that defines them.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

from _common import peak_memory, table, timed  # isort: skip  (sets the number of threads)

import numpy as np
import ot
from scipy import sparse
from scipy.optimize import linprog

import frot
from _srw_plain import frank_wolfe, supergradient

N, FEATURES, DIMENSION = 500, 1000, 50


def hypercube(n: int, d: int, informative: int) -> tuple[np.ndarray, np.ndarray]:
    """The fragmented hypercube of the subspace-robust paper, with noise features."""
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(-1.0, 1.0, size=(2, n, d))
    Y[:, :informative] += 2.0 * np.sign(Y[:, :informative])
    frot.srw(X[:5], Y[:5], k=1)
    return X, Y


def subspace(target: float, limit: float) -> None:
    """Print both published algorithms, us and the ratios."""
    X, Y = hypercube(N, FEATURES, DIMENSION)
    seconds, res = timed(lambda: frot.srw(X, Y, k=DIMENSION, tol=target), repeats=1)
    rows = [["frot.srw", f"{seconds:.1f}", f"{res.gap:.1e}", str(res.iterations), ""]]
    for algorithm in (frank_wolfe, supergradient):
        traces = algorithm(X, Y, DIMENSION, 10_000, limit, target)
        last = traces[-1]
        # An algorithm that met the limit before the gap is at least so much slower.
        sign = "" if last.gap <= target else ">"
        ratio = f"{sign}{last.seconds / seconds:.1f}x"
        name = algorithm.__name__
        rows.append([name, f"{last.seconds:.1f}", f"{last.gap:.1e}", str(len(traces)), ratio])
    print(f"SRW, n = m = {N}, d = {FEATURES}, k = {DIMENSION}, to a gap of {target:g}")
    table(["algorithm", "s", "gap", "steps", "ratio"], rows)


def srw_alone(points: tuple[np.ndarray, np.ndarray], rounds: int = 4) -> frot.Result:
    """A few rounds, whatever the gap."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", frot.ConvergenceWarning)
        return frot.srw(*points, k=DIMENSION, tol=1e-3, max_iter=rounds)


def large(n: int, d: int) -> None:
    """Print time and peak memory where the dense form has no room."""
    points = hypercube(n, d, 2)
    seconds, res = timed(lambda: srw_alone(points), repeats=1)
    peak = peak_memory(hypercube, srw_alone, n, d, 2)
    print(
        f"SRW, n = m = {n}, d = {d}, k = {DIMENSION}: {seconds:.0f} s for {res.iterations} rounds"
    )
    print(f"  gap {res.gap:.2e}, peak {peak / 1e9:.2f} GB over {16 * n * d / 1e9:.2f} GB of points")


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
            "cutting_set, k = 2 of 5",
            lambda: frot.cutting_set(C, uncertainty=frot.CappedSimplex(2)),
            lambda: _capped_program(C, 2),
        ),
        ("equitable, 5 costs", lambda: frot.equitable(C), lambda: _shared_program(C)),
    ]
    rows = []
    for name, ours, plain in pairs:
        seconds, res = timed(ours)
        theirs, value = timed(plain, repeats=1)
        ratio = f"{theirs / seconds:.1f}x"
        rows.append(
            [name, f"{seconds:.3f}", f"{res.value:.6f}", f"{theirs:.3f}", f"{value:.6f}", ratio]
        )
    table(["n = m = 200", "frot s", "value", "plain s", "value", "ratio"], rows)


def _every_group(X: np.ndarray, Y: np.ndarray) -> float:
    """All transports, one a group."""
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
    parser.add_argument("--target", type=float, default=0.0025, help="relative gap to reach")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each peer")
    parser.add_argument("--large", action="store_true", help="SRW at d = 8,256, n = 4,000, alone")
    parser.add_argument("--skip-subspace", action="store_true")
    arguments = parser.parse_args()
    if arguments.large:
        large(4000, 8256)
        return
    if not arguments.skip_subspace:
        subspace(arguments.target, arguments.limit)
        print()
    others()


if __name__ == "__main__":
    main()
