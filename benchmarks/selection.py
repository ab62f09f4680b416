"""Feature selection on real expression sets: how fast, how much memory, how good.

    python benchmarks/selection.py [--quick] [--seed 0] [--only fits accuracy ...]

The sets are looked for as `frot.datasets` does; those that are not there are left out. Fits are on
whole sets, standardised, one thread. The peer builds the d x n x m stack of costs and follows
algorithm 2 line by line (T = 10, eta = 1). Exit code 1 if a goal is missed, unless --quick.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from _common import peak_memory, table, timed  # isort: skip  (sets the number of threads)
from pathways import pathways  # isort: skip

import numpy as np

from _selection_scores import markers, scale, scores
from frot._base.parallel import spread
from frot.cli.reproduce.selection import (
    KS,
    METHODS,
    Method,
    accuracies,
    load_libraries,
    paired,
    stacked_phi,
    wasserstein_by_call,
)  # fmt: skip
from frot.datasets import available, load_expression
from frot.selection import FROTSelector, permutation_test

FITS = ("colon", "leukemia", "prostate_ge", "chowdary")
LABELS = {
    "frot": "FROT, combined score (K = 50)",
    "frot_paper": "FROT, as in the paper",
    "stacked": "FROT as written",
    "wasserstein": "Wasserstein, sort",
    "wasserstein_call": "Wasserstein, call a feature",
    "linear": "linear correlation",
    "mmd": "MMD",
    "f_classif": "f_classif",
    "mrmr": "mRMR",
}
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
STACK_GOAL, STACK_SET = 100.0, "chowdary"
PERMUTATIONS, PERMUTATION_SECONDS, PERMUTATION_SET = 1000, 30.0, "colon"


def paper_scaling(X: np.ndarray, y: np.ndarray, ks: Sequence[int]) -> list[np.ndarray]:
    """Rank by the combined score, with the paper's scaling, fitted for every K."""
    fitted = [FROTSelector(k, scaling="paper", score="combined").fit(X, y) for k in ks]
    return [np.argsort(each.ranking_)[:k] for each, k in zip(fitted, ks, strict=True)]


PAPER_SCALING = Method("FROT, scaling='paper'", paper_scaling)

Points = tuple[np.ndarray, np.ndarray]


def points(name: str) -> Points:
    """Load a set, standardised; fit a corner of it, which imports what a fit needs."""
    data = load_expression(name)
    deviation = data.X.std(axis=0)
    X = (data.X - data.X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    for key in LABELS:
        fit((X[:, :60], data.y), key)
    return X, data.y


def fit(made: Points, key: str) -> object:
    """Run one method once."""
    X, y = made
    if key in METHODS:
        return METHODS[key].choose(X, y, [50])
    first = y == np.unique(y)[0]
    peer = stacked_phi if key == "stacked" else wasserstein_by_call
    return peer(X[first], X[~first])


def fits(quick: bool, seed: int) -> bool:
    """Print seconds and memory of every method; whether the goal against the stack is met."""
    good = True
    for name in [name for name in FITS if name in available()][: 1 if quick else None]:
        made = points(name)
        seconds, peaks = {}, {}
        for key in LABELS:
            repeats = 3 if key in ("stacked", "wasserstein_call", "mmd") else 7
            seconds[key], _ = timed(lambda made=made, key=key: fit(made, key), repeats)
            peaks[key] = peak_memory(points, functools.partial(fit, key=key), name)
        rows = [
            [
                LABELS[key],
                f"{seconds[key]:.4f}",
                f"{seconds['stacked'] / seconds[key]:.3g}x",
                f"{peaks[key] / 1e6:.0f}" if peaks[key] > 1e6 else "< 1",
                # Below a megabyte it is the allocator that is measured.
                f"{peaks['stacked'] / peaks[key]:.3g}x" if peaks[key] > 1e6 else "",
            ]
            for key in LABELS
        ]
        print(f"\n{name}: {made[0].shape[0]} samples of {made[0].shape[1]} features")
        table(["fit", "s", "as written / s", "peak MB", "as written / MB"], rows)
        if name == STACK_SET:
            ratio = seconds["stacked"] / seconds["frot"]
            good &= told(ratio >= STACK_GOAL, f"{ratio:.0f}x as written; goal {STACK_GOAL:.0f}x")
    return good


def accuracy(quick: bool, seed: int) -> bool:
    """Print paired differences of the combined score; whether they are where they should be."""
    good, rows = True, []
    methods = (*(METHODS[key] for key in ("frot", "f_classif", "frot_paper")), PAPER_SCALING)
    splits = 5 if quick else 50
    names = [name for name in available() if not quick or name == "colon"]
    for name in names:
        data = load_expression(name)
        work = functools.partial(one_split, data.X, data.y, methods, seed)
        found = np.stack(list(spread(work, range(splits), min(2, CORES), load_libraries)))
        frot, *others = (found[:, row] for row in range(len(methods)))
        to_classif, *to_papers = (paired(frot, other) for other in others)
        enough = to_classif["mean"] >= -to_classif["error"]
        never = all(each["mean"] >= 0.0 for each in to_papers)
        good &= enough and never
        rows.append(
            [
                name,
                f"{frot.mean():.4f}",
                *(f"{x['mean']:+.4f} ± {x['error']:.4f}" for x in (to_classif, *to_papers)),
                "yes" if enough else "NO",
                "yes" if never else "NO",
            ]
        )
        print(f"{name} done", file=sys.stderr)
    print(f"\nAccuracy, mean over K = {', '.join(map(str, KS))} and {splits} splits, seed {seed}")
    header = ["set", "combined", "− f_classif", "− as in paper", "− scaling='paper'"]
    header += ["not below f_classif", "never below paper's"]
    table(header, rows)
    return good


def one_split(
    X: np.ndarray, y: np.ndarray, methods: tuple[Method, ...], seed: int, index: int
) -> np.ndarray:
    """Accuracies of one split; at the top of the module, for processes to find it."""
    return accuracies(X, y, index, seed, methods)


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
    "accuracy": accuracy,
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
