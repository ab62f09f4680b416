"""The relatives against their plain forms.

    python benchmarks/relatives.py [--limit 300] [--large | --noise]

Same process, one thread, processor time, same problem, same relative gap. Subspace-robust
transport runs against both published algorithms (Paty & Cuturi 2019) in dense form, whose bounds
are looked at off the clock; the others against the linear program or the loop that defines them.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

from _common import fastest, peak_memory, table  # isort: skip  (sets the number of threads)

import numpy as np
import ot
from scipy import sparse
from scipy.optimize import linprog

import frot
from _srw_plain import frank_wolfe, supergradient

N, FEATURES, DIMENSION = 500, 1000, 50
TARGETS = (0.01, 0.0025)


def hypercube(n: int, d: int, informative: int) -> tuple[np.ndarray, np.ndarray]:
    """The fragmented hypercube of the subspace-robust paper, with noise features."""
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(-1.0, 1.0, size=(2, n, d))
    Y[:, :informative] += 2.0 * np.sign(Y[:, :informative])
    frot.srw(X[:5], Y[:5], k=1)
    return X, Y


def subspace(limit: float) -> None:
    """Print both published algorithms, us and the ratios, to every target."""
    X, Y = hypercube(N, FEATURES, DIMENSION)
    rows, ours = [], {}
    for target in TARGETS:
        runs = [fastest(lambda at=target: frot.srw(X, Y, k=DIMENSION, tol=at), 1) for _ in range(3)]
        times = sorted(seconds for seconds, _ in runs)
        ours[target], res = times[1], runs[0][1]
        spread = f"{times[1]:.2f} ({times[0]:.2f} to {times[2]:.2f})"
        rows.append(["frot.srw", f"{target:g}", spread, f"{res.gap:.1e}", str(res.iterations), ""])
    for algorithm in (frank_wolfe, supergradient):
        traces = algorithm(X, Y, DIMENSION, 10_000, limit, min(TARGETS))
        for target in TARGETS:
            # An algorithm that met the limit before the gap is at least so much slower.
            steps = next((t for t, at in enumerate(traces) if at.gap <= target), None)
            sign, at = (">", traces[-1]) if steps is None else ("", traces[steps])
            ratio = f"{sign}{at.seconds / ours[target]:.1f}x"
            count = str(len(traces) if steps is None else steps + 1)
            cells = [f"{target:g}", f"{at.seconds:.1f}", f"{at.gap:.1e}", count, ratio]
            rows.append([algorithm.__name__, *cells])
    print(f"SRW, n = m = {N}, d = {FEATURES}, k = {DIMENSION}")
    table(["algorithm", "target", "s", "gap", "rounds", "ratio"], rows)


def noise(limit: float) -> None:
    """Print what is reached where both sides are drawn from the same distribution."""
    rows = []
    for d, k in ((30, 2), (100, 5), (FEATURES, DIMENSION)):
        X, Y = np.random.default_rng(1).normal(size=(2, N, d))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", frot.ConvergenceWarning)
            seconds, res = fastest(
                lambda X=X, Y=Y, k=k: frot.srw(X, Y, k=k, tol=0.01, time_limit=limit), 1
            )
        rows.append([str(d), str(k), f"{seconds:.1f}", f"{res.gap:.1e}", str(res.iterations)])
    table(["d", "k", "s", "gap", "rounds"], rows)


def srw_alone(points: tuple[np.ndarray, np.ndarray]) -> frot.Result:
    """To a gap of 1 %, in the two directions that have moved."""
    return frot.srw(*points, k=2, tol=0.01)


def large(n: int, d: int) -> None:
    """Print time and peak memory where the dense form has no room."""
    points = hypercube(n, d, 2)
    seconds, res = fastest(lambda: srw_alone(points), 1)
    peak = peak_memory(hypercube, srw_alone, n, d, 2)
    print(f"SRW, n = m = {n}, d = {d}, k = 2: {seconds:.0f} s for {res.iterations} rounds")
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
            lambda: frot.cutting_set(C, adversary=frot.CappedSimplex(2)),
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
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each peer")
    parser.add_argument("--large", action="store_true", help="SRW at d = 8,256, n = 4,000, alone")
    parser.add_argument("--noise", action="store_true", help="SRW without structure, alone")
    parser.add_argument("--skip-subspace", action="store_true")
    arguments = parser.parse_args()
    if arguments.large:
        large(4000, 8256)
        return
    if arguments.noise:
        noise(arguments.limit)
        return
    if not arguments.skip_subspace:
        subspace(arguments.limit)
        print()
    others()


if __name__ == "__main__":
    main()
