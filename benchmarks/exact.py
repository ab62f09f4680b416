"""The exact solver against HiGHS on the same linear program.

    python benchmarks/exact.py [--large] [--seeds 3]

Same process, one thread, processor time. HiGHS is timed on its own solve alone (its model is
built beforehand), frot from points to certified answer. Points are Gaussian with three features a
group: "balanced" where all groups compete, "shifted" where the first group is moved by one.
"""

from __future__ import annotations

import argparse
import gc
import time
from typing import Any

from _common import peak_memory, table, timed  # isort: skip  (sets the number of threads)

import highspy
import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

import frot

FEATURES = 3
SIZES = ((200, 2), (200, 10), (200, 50), (500, 10))
LARGE = ((1000, 10), (2000, 10), (4000, 4), (5000, 10))
TOL = 1e-9


def clouds(n: int, groups: int, seed: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Make the two sets of points, and load what a first solve loads."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(2, n, FEATURES * groups))
    if kind == "shifted":
        Y[:, :FEATURES] += 1.0
    ours((X[:10], Y[:10]))
    return X, Y


def ours(points: tuple[np.ndarray, np.ndarray]) -> frot.Result:
    """Solve by frot."""
    groups = points[0].shape[1] // FEATURES
    return frot.solve(*points, groups=[FEATURES] * groups, solver=frot.Exact(tol=TOL))


def program(points: tuple[np.ndarray, np.ndarray], method: str) -> highspy.Highs:
    """Build the paper's linear program for HiGHS."""
    X, Y = points
    n, m, groups = len(X), len(Y), X.shape[1] // FEATURES
    starts = range(0, groups * FEATURES, FEATURES)
    parts = [slice(start, start + FEATURES) for start in starts]
    costs = np.stack([cdist(X[:, s], Y[:, s], "sqeuclidean").ravel() for s in parts])
    rows = sparse.kron(sparse.eye(n), np.ones((1, m)))
    cols = sparse.kron(np.ones((1, n)), sparse.eye(m))
    marginals = sparse.hstack([sparse.vstack([rows, cols]), sparse.csr_matrix((n + m, 1))])
    levels = sparse.hstack([sparse.csr_matrix(costs), -np.ones((groups, 1))])
    matrix: Any = sparse.vstack([marginals, levels]).tocsc()
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = n * m + 1, n + m + groups
    model.col_cost_ = np.append(np.zeros(n * m), 1.0)
    model.col_lower_ = np.append(np.zeros(n * m), -np.inf)
    model.col_upper_ = np.full(n * m + 1, np.inf)
    mass = np.append(np.full(n, 1.0 / n), np.full(m, 1.0 / m))
    model.row_lower_ = np.append(mass, np.full(groups, -np.inf))
    model.row_upper_ = np.append(mass, np.zeros(groups))
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = matrix.indptr
    model.a_matrix_.index_ = matrix.indices
    model.a_matrix_.value_ = matrix.data
    highs = highspy.Highs()
    for name, setting in {"output_flag": False, "threads": 1, "solver": method}.items():
        highs.setOptionValue(name, setting)
    highs.passModel(model)
    return highs


def against_highs(seeds: int) -> None:
    """Print us, HiGHS simplex, HiGHS ipm and the ratio to the faster of the two."""
    rows = []
    for n, groups in SIZES:
        for seed in range(seeds):
            for kind in ("balanced", "shifted"):
                points = clouds(n, groups, seed, kind)
                our_time, result = timed(lambda points=points: ours(points), repeats=5)
                times, values = [], []
                for method in ("simplex", "ipm"):
                    highs = program(points, method)
                    begin = time.process_time()
                    highs.run()
                    times.append(time.process_time() - begin)
                    values.append(highs.getInfo().objective_function_value)
                    del highs
                    gc.collect()
                inside = all(
                    result.lower - 1e-8 <= value <= result.upper + 1e-8 for value in values
                )
                rows.append(
                    [
                        str(n),
                        str(groups),
                        kind,
                        str(seed),
                        f"{our_time:.3f}",
                        f"{times[0]:.2f}",
                        f"{times[1]:.2f}",
                        f"{min(times) / our_time:.0f}x",
                        f"{result.gap:.0e}",
                        "yes" if inside else "NO",
                    ]
                )
                print("  ".join(rows[-1]), flush=True)
    print()
    header = ["n=m", "L", "points", "seed", "frot s", "simplex s", "ipm s", "ratio", "gap"]
    table([*header, "HiGHS inside"], rows)


def alone() -> None:
    """Print time, gap and peak memory where HiGHS has no answer in reasonable time."""
    rows = []
    for n, groups in LARGE:
        points = clouds(n, groups, 0, "balanced")
        seconds, result = timed(lambda points=points: ours(points), repeats=1)
        peak = peak_memory(clouds, ours, n, groups, 0, "balanced")
        rows.append(
            [
                str(n),
                str(groups),
                f"{seconds:.2f}",
                f"{result.gap:.0e}",
                f"{result.value:.9f}",
                str(len(result.plan.arcs()[2])),
                f"{peak / 1e9:.2f}",
            ]
        )
        print("  ".join(rows[-1]), flush=True)
    print()
    table(["n=m", "L", "frot s", "gap", "value", "arcs", "peak GB"], rows)


def main() -> None:
    """Run the comparison, or the large problems."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="large problems, frot alone")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.large:
        alone()
    else:
        against_highs(arguments.seeds)


if __name__ == "__main__":
    main()
