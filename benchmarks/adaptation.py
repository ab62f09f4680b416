"""Adapting a classifier from one domain to another: beside POT's `ot.da` and no adaptation.

    python benchmarks/adaptation.py [--quick] [--only sensors cancer wine]

Labelled source points, unlabelled target points, and held-out target points that score. A map is
fitted on half of the source points and all target points; all source points are moved by it, half
of them out of sample, and a classifier by the 5 nearest neighbours is trained where they arrive.
Accuracies are means over draws, with two standard errors; seconds are processor time of one fit and
transform. "sensors" are simulated: three classes in two features that drift by 2.5, and 16 features
of eight other sensors that say nothing. "cancer" and "wine" are scikit-learn's, standardised, with
a drift of one of three groups of features.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from _common import table  # isort: skip  (sets the number of threads)

import numpy as np
import ot
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

import frot

# Entropies, as shares of the mean cost.
EPS, ETA = 0.05, 0.3


class Task(NamedTuple):
    """Points of two domains, and groups of their features."""

    source: np.ndarray
    labels: np.ndarray
    fitted: np.ndarray
    target: np.ndarray
    held_out: np.ndarray
    truth: np.ndarray
    groups: list[list[int]]


def sensors(seed: int, n: int = 200, others: int = 8) -> Task:
    """Three classes in two features that drift, and sensors that measure neither."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 1.8]])

    def draw(count: int, drift: float) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.integers(0, 3, count)
        signal = centres[labels] + 0.35 * rng.normal(size=(count, 2)) + drift * np.array([2.5, 0.3])
        return np.hstack([signal, rng.normal(size=(count, 2 * others))]), labels

    source, labels = draw(2 * n, 0.0)
    target, _ = draw(n, 1.0)
    held_out, truth = draw(1000, 1.0)
    groups = [[2 * at, 2 * at + 1] for at in range(others + 1)]
    return Task(source, labels, source[:n], target, held_out, truth, groups)


def drifting(
    load: Callable[..., Any], groups: list[list[int]], gain: float, offset: float
) -> Callable[[int], Task]:
    """A data set in three parts: source, target and held out, whose first group drifts."""

    def draw(seed: int) -> Task:
        rng = np.random.default_rng(seed)
        points, labels = load(return_X_y=True)
        order = rng.permutation(len(points))
        points, labels = StandardScaler().fit_transform(points)[order], labels[order]
        third = len(points) // 3
        source, target, held_out = (
            points[:third], points[third : 2 * third].copy(), points[2 * third :].copy()
        )  # fmt: skip
        for cloud in (target, held_out):
            cloud[:, groups[0]] = gain * cloud[:, groups[0]] + offset
        fitted = source[: third // 2]
        return Task(source, labels[:third], fitted, target, held_out, labels[2 * third :], groups)

    return draw


MEANS, ERRORS, WORST = list(range(10)), list(range(10, 20)), list(range(20, 30))
ACIDS, PHENOLS, COLOURS = [0, 1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]
TASKS: dict[str, dict[str, Callable[[int], Task]]] = {
    "sensors": {"sensors": sensors},
    "cancer": {
        "cancer, worst + 2": drifting(load_breast_cancer, [WORST, MEANS, ERRORS], 1.0, 2.0),
        "cancer, 1.5 means + 3": drifting(load_breast_cancer, [MEANS, ERRORS, WORST], 1.5, 3.0),
    },
    "wine": {
        "wine, colours + 2": drifting(load_wine, [COLOURS, ACIDS, PHENOLS], 1.0, 2.0),
        "wine, 1.3 phenols + 2.5": drifting(load_wine, [PHENOLS, ACIDS, COLOURS], 1.3, 2.5),
    },
}


def no_adaptation(task: Task) -> np.ndarray:
    """Source points as they are."""
    return task.source


def pots(make: Callable[[float], Any]) -> Callable[[Task], np.ndarray]:
    """A transport of `ot.da`, made for a mean cost."""

    def adapt(task: Task) -> np.ndarray:
        mean = float(np.asarray(ot.dist(task.fitted, task.target)).mean())
        return make(mean).fit(Xs=task.fitted, Xt=task.target).transform(Xs=task.source)

    return adapt


def ours(groups: bool = True, **options: Any) -> Callable[[Task], np.ndarray]:
    """`frot.solve`, and the images of all source points."""

    def adapt(task: Task) -> np.ndarray:
        parts = task.groups if groups else "all"
        return frot.solve(task.fitted, task.target, parts, **options).transport(task.source)

    return adapt


METHODS: dict[str, Callable[[Task], np.ndarray]] = {
    "none": no_adaptation,
    "POT EMDTransport": pots(lambda mean: ot.da.EMDTransport()),
    "POT SinkhornTransport": pots(lambda mean: ot.da.SinkhornTransport(reg_e=EPS * mean)),
    "frot, one group": ours(groups=False),
    "frot": ours(),
    "frot, regret": ours(normalise="regret"),
    "frot, eta": ours(eta=frot.relative(ETA)),
    "frot, eps": ours(eps=frot.relative(EPS)),
    "frot, eta, eps": ours(eta=frot.relative(ETA), eps=frot.relative(EPS)),
}


def main() -> None:
    """Run the tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three draws")
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS))
    arguments = parser.parse_args()
    draws = 3 if arguments.quick else 20
    tasks = {name: draw for part in arguments.only for name, draw in TASKS[part].items()}
    rows = []
    for name, method in METHODS.items():
        row = [name]
        for draw in tasks.values():
            scores, seconds = [], []
            for seed in range(draws):
                task = draw(seed)
                begin = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    moved = method(task)
                seconds.append(time.process_time() - begin)
                classifier = KNeighborsClassifier(5).fit(moved, task.labels)
                scores.append(classifier.score(task.held_out, task.truth))
            error = 2.0 * np.std(scores, ddof=1) / np.sqrt(draws)
            row.append(f"{np.mean(scores):.3f} ± {error:.3f} ({np.mean(seconds):.3f} s)")
        rows.append(row)
    table(["", *tasks], rows)


if __name__ == "__main__":
    main()
