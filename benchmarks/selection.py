"""Feature selection on real expression sets: how fast, how much memory, which score.

    python benchmarks/selection.py [--quick] [--seed 0] [--only fits scores ...]

The sets are looked for as `frot.datasets` does; those that are not there are left out. Fits are on
whole sets, standardised, one thread. The peer builds the d x n x m stack of costs and follows
algorithm 2 line by line (T = 10, eta = 1). Exit code 1 if a goal is missed, unless --quick. How
accurate a classifier is on the features of each ranking: ``experiments/selection.py``.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time
from typing import Any

from _common import peak_memory, table, timed  # isort: skip  (sets the number of threads)
from pathways import pathways  # isort: skip

import numpy as np

from _baselines import TIMED
from _selection_scores import markers, scale, scores
from frot.datasets import available, load_expression
from frot.selection import FROTSelector, permutation_test

FITS = ("colon", "leukemia", "prostate_ge", "chowdary")
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
STACK_GOAL, STACK_SET = 100.0, "chowdary"
PERMUTATIONS, PERMUTATION_SECONDS, PERMUTATION_SET = 1000, 30.0, "colon"

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
    """Print seconds and memory of every method; whether the goal against the stack is met."""
    good = True
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
        if name == STACK_SET:
            ratio = seconds["stack"] / seconds["frot_paper"]
            good &= told(ratio >= STACK_GOAL, f"{ratio:.0f}x as written; goal {STACK_GOAL:.0f}x")
    return good


def permutations(quick: bool, seed: int) -> bool:
    """Print how long the permutation test takes on two workers; whether that is within the goal."""
    if PERMUTATION_SET not in available():
        return True
    data, count = load_expression(PERMUTATION_SET), 50 if quick else PERMUTATIONS
    work = functools.partial(
        permutation_test,
        data.X,
        data.y,
        selector=FROTSelector(50),
        n_permutations=count,
        n_jobs=min(2, CORES),
        random_state=seed,
    )
    # "phi" transports every permutation; the default statistic may need no plan at all.
    statistics: dict[str, dict[str, Any]] = {"phi": {"statistic": "phi"}, "default": {}}
    taken = {}
    print()
    for name, options in statistics.items():
        # Starting the workers is no part of the work.
        work(**options, n_permutations=32)
        begin = time.perf_counter()
        found = work(**options)
        taken[name] = time.perf_counter() - begin
        kept, strict = int((found.q <= 0.1).sum()), int((found.p_max <= 0.1).sum())
        print(
            f"{PERMUTATION_SET}: {count} permutations of {found.statistic} in {taken[name]:.1f} s; "
            f"{kept} genes at q <= .1 (Benjamini-Hochberg), {strict} at p <= .1 (max-T)"
        )
    goal = f"phi within {PERMUTATION_SECONDS:.0f} s on two cores"
    return told(taken["phi"] <= PERMUTATION_SECONDS, goal)


def told(holds: bool, text: str) -> bool:
    """Print a goal and whether it is met."""
    print(f"goal {'met' if holds else 'MISSED'}: {text}")
    return holds


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
