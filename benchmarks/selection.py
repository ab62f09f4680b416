"""Feature selection on real expression sets: how fast, how much memory, which score.

    python benchmarks/selection.py [--quick] [--seed 0] [--only fits scores ...]

The sets are looked for as `frot.datasets` does; those that are not there are left out. Fits are on
whole sets, standardised, one thread. The peer builds the d x n x m stack of costs and follows
algorithm 2 line by line (T = 10, eta = 1). Exit code 1 where the default score is below the t-test,
unless --quick. How accurate a classifier is on the features of each ranking:
``experiments/selection.py``.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time

from _common import peak_memory, table, timed  # isort: skip  (sets the number of threads)
from _pathways import pathways  # isort: skip

import numpy as np

from _baselines import TIMED
from _selection_scores import markers, scale, scores
from frot.datasets import available, load_expression
from frot.selection import permutation_test, shape_test

FITS = ("colon", "leukemia", "prostate_ge", "chowdary")
PERMUTATION_SET, SECONDS = "chowdary", 3.0

Points = tuple[np.ndarray, np.ndarray]


def points(name: str) -> Points:
    """Load a set, standardised; fit a corner of it, which imports what a fit needs."""
    data = load_expression(name)
    deviation = data.X.std(axis=0)
    X = (data.X - data.X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    for key in TIMED:
        fit((X[:, :60], data.y), key)
    return X, data.y


def fit(made: Points, key: str) -> object:
    """Run one method once."""
    return TIMED[key][1](*made)


def fits(quick: bool, seed: int) -> bool:
    """Print seconds and memory of every method beside the stack's."""
    for name in [name for name in FITS if name in available()][: 1 if quick else None]:
        made = points(name)
        seconds, peaks = {}, {}
        for key in TIMED:
            repeats = 3 if key in ("stack", "call", "mmd") else 7
            seconds[key], _ = timed(lambda made=made, key=key: fit(made, key), repeats)
            peaks[key] = peak_memory(points, functools.partial(fit, key=key), name)
        rows = [
            [
                label,
                f"{seconds[key]:.4f}",
                f"{seconds['stack'] / seconds[key]:.3g}x",
                f"{peaks[key] / 1e6:.0f}" if peaks[key] > 1e6 else "< 1",
                # Below a megabyte it is the allocator that is measured.
                f"{peaks['stack'] / peaks[key]:.3g}x" if peaks[key] > 1e6 else "",
            ]
            for key, (label, _) in TIMED.items()
        ]
        print(f"\n{name}: {made[0].shape[0]} samples of {made[0].shape[1]} features")
        table(["fit", "s", "as written / s", "peak MB", "as written / MB"], rows)
    return True


def permutations(quick: bool, seed: int) -> bool:
    """Print how long tests with blocks take; whether 1,000 permutations take 3 s at most."""
    if PERMUTATION_SET not in available():
        return True
    data, count = load_expression(PERMUTATION_SET), 50 if quick else 1000
    X = np.log2(np.maximum(data.X, 1.0))
    block = np.random.default_rng(seed).integers(4, size=len(data.y))
    spent = {}
    for name, test in (("permutation_test", permutation_test), ("shape_test", shape_test)):
        begin = time.process_time()
        test(X, data.y, n_permutations=count, block=block, random_state=seed)
        spent[name] = time.process_time() - begin
        print(
            f"{PERMUTATION_SET}, {X.shape[1]:,} genes in four blocks, {count:,} permutations: "
            f"{name} {spent[name]:.1f} s of one core"
        )
    return spent["permutation_test"] <= SECONDS


PARTS = {
    "fits": fits,
    "permutations": permutations,
    "markers": markers,
    "scores": scores,
    "scale": scale,
    "pathways": pathways,
}


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small set, few splits")
    parser.add_argument("--seed", type=int, default=0, help="of splits and permutations")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    if not available():
        print("no data set is there; see frot.datasets")
        return
    good = [PARTS[part](arguments.quick, arguments.seed) for part in arguments.only]
    if not all(good) and not arguments.quick:
        sys.exit(1)


if __name__ == "__main__":
    main()
