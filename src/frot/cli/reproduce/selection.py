"""Feature selection on gene expression: the paper's figure of accuracies and its table of times."""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from frot._base.errors import ConvergenceWarning, InputError, require
from frot.cli.reproduce.experiment import (
    FW_EMD,
    Check,
    Experiment,
    ExperimentTable,
    Reproduction,
    RunOptions,
    Verdict,
    finish,
    open_store,
    run_solver,
    standard_error,
    with_error,
    work_fingerprint,
)
from frot.datasets import Expression, available, load_expression
from frot.show.style import BLUE, GREEN, GREY, INK, ORANGE, legend_below, new_figure, tidy
from frot.solvers.progress import counting_bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Choose = Callable[[NDArray, NDArray, Sequence[int]], "list[NDArray]"]


@dataclass(frozen=True)
class Method:
    """A way to choose features: from X (n, d), standardised, y (n,) and several K to indices."""

    label: str
    choose: Choose


def ranked(score: Callable[[Any, Any], Any]) -> Choose:
    """Take the K best of one score; `score` may return scores, or scores and p-values.

    Examples
    --------
    >>> choose = ranked(lambda X, y: X.sum(axis=0))
    >>> [list(map(int, found)) for found in choose(np.diag([1.0, 3.0, 2.0]), np.ones(3), [1, 2])]
    [[1], [1, 2]]
    """

    def choose(X: NDArray, y: NDArray, ks: Sequence[int]) -> list[NDArray]:
        made = score(X, y)
        scores = np.asarray(made[0] if isinstance(made, tuple) else made)
        # A feature without a score, being constant, comes last.
        order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")
        return [order[:k] for k in ks]

    return choose


def _paper(X: NDArray, y: NDArray) -> Any:
    """The paper's settings to the letter; costs rank as alpha does, and do not underflow."""
    first = y == np.unique(y)[0]
    return run_solver(X[first], X[~first], "each", eta=1.0, solver=FW_EMD).result.phi


def _combined(X: NDArray, y: NDArray, ks: Sequence[int]) -> list[NDArray]:
    from frot.selection import FROTSelector

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = (FROTSelector(k, score="combined").fit(X, y) for k in ks)
        return [np.argsort(each.ranking_)[:k] for each, k in zip(fitted, ks, strict=True)]


def _library(name: str) -> Callable[[NDArray, NDArray], Any]:
    """Return a score of `frot.selection` by name; scikit-learn is loaded when it is called."""

    def score(X: NDArray, y: NDArray) -> Any:
        import frot.selection

        return getattr(frot.selection, name)(X, y)

    return score


def _f_classif(X: NDArray, y: NDArray) -> Any:
    from sklearn.feature_selection import f_classif

    with warnings.catch_warnings():
        # Of features that are constant in the training part.
        warnings.simplefilter("ignore")
        return f_classif(X, y)


METHODS: dict[str, Method] = {
    "frot_paper": Method("FROT (as in the paper, η = 1, T = 10)", ranked(_paper)),
    "frot": Method("FROT (frot's scaling and eta)", _combined),
    "wasserstein": Method("Wasserstein (sort)", ranked(_library("wasserstein_score"))),
    "linear": Method("Linear correlation", ranked(_library("correlation_score"))),
    "mmd": Method("MMD", ranked(_library("mmd_score"))),
    "f_classif": Method("f_classif", ranked(_f_classif)),
    "mrmr": Method("mRMR", ranked(_library("mrmr_scores"))),
}


KS = (10, 20, 30, 40, 50)
TEST_SHARE = 0.25

Split = tuple[NDArray, NDArray, NDArray, NDArray]


def split(X: NDArray, y: NDArray, index: int, seed: int) -> Split:
    """Return (training X, training y, test X, test y); 75 % to train, classes in proportion.

    Every index has a seed of its own, so that the first ten splits of fifty are those of ten. Both
    parts are standardised with means and deviations of the training part.

    Examples
    --------
    >>> X, y = np.arange(40.0).reshape(20, 2), np.repeat(["a", "b"], 10)
    >>> train, labels, test, _ = split(X, y, 0, seed=0)
    >>> train.shape, test.shape, bool(abs(train.mean()) < 1e-12)
    ((15, 2), (5, 2), True)
    """
    chosen = require("sklearn.model_selection", "selection").train_test_split(
        np.arange(len(y)),
        test_size=TEST_SHARE,
        stratify=y,
        random_state=int(np.random.SeedSequence([seed, index]).generate_state(1)[0]),
    )
    train, test = (np.sort(part) for part in chosen)
    scaler = require("sklearn.preprocessing", "selection").StandardScaler().fit(X[train])
    return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def accuracies(
    X: NDArray,
    y: NDArray,
    index: int,
    seed: int,
    methods: Iterable[Method] | None = None,
    ks: Sequence[int] = KS,
) -> NDArray[np.float64]:
    """Return the accuracies on the test part of one split, shape (len(methods), len(ks)).

    By default of all `METHODS`; `ks` are the numbers of features.
    """
    svm = require("sklearn.svm", "selection").SVC
    # One thread, whoever runs other splits beside this one.
    with require("threadpoolctl", "selection").threadpool_limits(1):
        train, labels, test, truth = split(X, y, index, seed)
        rows = []
        for method in METHODS.values() if methods is None else methods:
            chosen = method.choose(train, labels, ks)
            rows.append(
                [
                    svm().fit(train[:, columns], labels).score(test[:, columns], truth)
                    for columns in chosen
                ]
            )
    return np.array(rows)


def run_splits(
    data: Expression,
    splits: int,
    seed: int,
    *,
    workers: int = 1,
    folder: Path | None = None,
    tick: Callable[[int], None] = lambda count: None,
) -> NDArray[np.float64]:
    """Return the accuracies on every split, shape (splits, len(METHODS), len(KS)).

    What is finished is kept in `folder`, and a run that was stopped taken up there; `tick` is
    called with the number of splits that became available, old ones at once.
    """
    labels = {key: method.label for key, method in METHODS.items()}
    # The number of splits is no part of it.
    work = work_fingerprint(X=data.X, y=data.y, seed=seed, methods=labels, ks=KS)
    do = partial(accuracies, data.X, data.y, seed=seed)
    with open_store(folder) as kept:
        done = finish(
            kept, work, range(splits), do, workers=workers, prepare=load_libraries, tick=tick
        )
    return np.stack(list(done.values()))


def load_libraries() -> None:
    """Import what a split needs, before a worker's first one."""
    import frot.selection  # noqa: F401


# The paper's table, in its own seconds.
PAPER_TIMES = {
    "colon": {"wasserstein": 12.57, "linear": 0.0, "mmd": 1.36, "frot": 0.41},
    "leukemia": {"wasserstein": 46.76, "linear": 0.01, "mmd": 5.03, "frot": 1.13},
    "prostate_ge": {"wasserstein": 51.99, "linear": 0.02, "mmd": 6.01, "frot": 1.04},
    "gli_85": {"wasserstein": 142.1, "linear": 0.04, "mmd": 23.6, "frot": 3.44},
}

TIMED = {
    **{key: method.label for key, method in METHODS.items()},
    "stacked": "FROT as written (stack of d cost matrices, T = 10)",
    "wasserstein_call": "Wasserstein (a call of POT per feature)",
}
# Seconds from which a fit is repeated less often.
LONG = 1.0


def stacked_phi(X: NDArray, Y: NDArray, eta: float = 1.0, steps: int = 10) -> NDArray[np.float64]:
    r"""Run algorithm 2 line by line with the network simplex, one group per feature.

    Forms the :math:`d \times n \times m` stack :math:`C_l = (x_{il} - y_{jl})^2`, for X of shape
    (n, d) and Y (m, d), and returns :math:`\phi_l = \langle \Pi, C_l \rangle`, shape (d,), which
    ranks as :math:`\alpha` does; `steps` is T.

    Examples
    --------
    >>> stacked_phi(np.array([[0.0, 0.0]]), np.array([[1.0, 2.0]])).tolist()
    [1.0, 4.0]
    """
    import ot

    n, m = len(X), len(Y)
    a, b = np.full(n, 1.0 / n), np.full(m, 1.0 / m)
    stack = np.empty((X.shape[1], n, m))
    for feature in range(X.shape[1]):
        stack[feature] = ot.dist(X[:, [feature]], Y[:, [feature]], metric="sqeuclidean")
    plan = np.outer(a, b)
    for step in range(steps):
        phi = np.sum(plan * stack, axis=(1, 2))
        weights = np.exp((phi - phi.max()) / eta)
        mixed = np.sum((weights / weights.sum())[:, None, None] * stack, axis=0)
        gamma = 2.0 / (2.0 + step)
        plan = (1.0 - gamma) * plan + gamma * np.asarray(ot.emd(a, b, mixed))
    return np.sum(plan * stack, axis=(1, 2))


def wasserstein_by_call(X: NDArray, Y: NDArray) -> NDArray[np.float64]:
    """1-D Wasserstein distances by a call of POT's sort for every feature.

    Examples
    --------
    >>> wasserstein_by_call(np.array([[0.0, 0.0]]), np.array([[1.0, 2.0]])).tolist()
    [1.0, 2.0]
    """
    import ot

    distance: Any = ot.emd2_1d
    pairs = zip(X.T, Y.T, strict=True)
    return np.array([float(distance(x, y, metric="euclidean")) for x, y in pairs])


def seconds(X: NDArray, y: NDArray, seed: int) -> dict[str, float]:
    """Return the median seconds of a fit on the training part of the first split.

    One thread, all in the same process; X of shape (n, d), y (n,) of two classes.
    """
    with require("threadpoolctl", "selection").threadpool_limits(1):
        train, labels, _, _ = split(X, y, 0, seed)
        one = labels == np.unique(labels)[0]
        first, second = train[one], train[~one]
        ks = [min(50, X.shape[1])]
        work: dict[str, Callable[[], Any]] = {
            key: lambda choose=method.choose: choose(train, labels, ks)
            for key, method in METHODS.items()
        }
        work["stacked"] = lambda: stacked_phi(first, second)
        work["wasserstein_call"] = lambda: wasserstein_by_call(first, second)
        return {key: _median(work[key]) for key in TIMED}


def agreement(X: NDArray, y: NDArray, seed: int, k: int = 50) -> float:
    """Return the share of the best k features that FROT as written and frot's have in common.

    Both are run on the training part of the first split.
    """
    train, labels, _, _ = split(X, y, 0, seed)
    one = labels == np.unique(labels)[0]
    written = np.argsort(-stacked_phi(train[one], train[~one]), kind="stable")[:k]
    (ours,) = METHODS["frot_paper"].choose(train, labels, [k])
    return len(np.intersect1d(written, ours)) / len(ours)


def _median(work: Callable[[], Any]) -> float:
    """The first run does not count, since it may also import."""
    repeats = 5 if _once(work) < LONG else 2
    return statistics.median(_once(work) for _ in range(repeats))


def _once(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


# Two rankings are "consistent" if their accuracies differ by no more than this many standard
# errors, or by less than a point, which no reader of the figure could see.
ERRORS, POINT = 2.0, 0.01
# "About two orders of magnitude" is taken as anything above one and a half.
TWO_ORDERS = 10.0**1.5

CONSISTENT = "FROT is consistent with the Wasserstein distance-based feature selection."
OUTPERFORMS = "FROT outperforms the linear correlation method and the MMD for two datasets."
ORDERS = "FROT is about two orders of magnitude faster than the Wasserstein distance."
FASTER = "FROT is also faster than MMD."


def paired(one: np.ndarray, other: np.ndarray) -> dict[str, float]:
    """Mean difference of two methods on the same splits, with its standard error.

    Of accuracies of shape (splits, K) the mean over K of a split is one observation.

    Examples
    --------
    >>> paired(np.array([[0.9, 0.8], [0.8, 0.7]]), np.array([[0.8, 0.8], [0.8, 0.6]]))
    {'mean': 0.05, 'error': 0.0}
    """
    difference = (one - other).mean(axis=1)
    error = standard_error(difference) or 0.0
    # Adding zero makes a zero of minus zero, which would be printed.
    return {"mean": round(float(difference.mean()), 9) + 0.0, "error": round(error, 9)}


def verdicts(sets: Sequence[dict[str, Any]]) -> tuple[Verdict, ...]:
    """Put the paper's four claims to the numbers of its sets.

    Each set has ``label``, ``differences`` of FROT as in the paper to the others, ``seconds``.
    """
    if not sets:
        return ()
    figure, table = {"kind": "Figure of"}, {"kind": "Table of"}
    return (
        Verdict("accuracies", CONSISTENT, tuple(_consistent(each) for each in sets), **figure),
        Verdict(
            "accuracies",
            OUTPERFORMS,
            tuple(_outperforms(sets, rival) for rival in ("linear", "mmd")),
            **figure,
        ),
        Verdict("times", ORDERS, _orders(sets), **table),
        Verdict("times", FASTER, _faster(sets), **table),
    )


def _consistent(made: dict[str, Any]) -> Check:
    found = made["differences"]["wasserstein"]
    apart = with_error(found["mean"], found["error"], "+.3f")
    told = f"{made['label']}: FROT − Wasserstein = {apart}"
    return Check(told, abs(found["mean"]) <= max(ERRORS * found["error"], POINT))


def _outperforms(sets: Sequence[dict[str, Any]], rival: str) -> Check:
    name = {"linear": "linear correlation", "mmd": "MMD"}[rival]
    found = [made["differences"][rival] for made in sets]
    above = sum(each["mean"] > ERRORS * each["error"] for each in found)
    below = sum(each["mean"] < -ERRORS * each["error"] for each in found)
    told = ", ".join(
        f"{made['label']} {with_error(each['mean'], each['error'], '+.3f')}"
        for made, each in zip(sets, found, strict=True)
    )
    return Check(
        f"by more than two standard errors FROT is above {name} on {above} of {len(sets)} sets "
        f"and below on {below} ({told})",
        above >= min(2, len(sets)),
    )


PAIRS = {
    ("wasserstein", "frot_paper"): "a vectorised sort takes {slow}, frot's FROT {fast}",
    ("wasserstein", "stacked"): "a vectorised sort takes {slow}, FROT as written {fast}",
    (
        "wasserstein_call",
        "stacked",
    ): "a call of POT a feature takes {slow}, FROT as written {fast}",
    (
        "wasserstein_call",
        "frot_paper",
    ): "a call of POT a feature takes {slow}, frot's FROT {fast}",
}


def _orders(sets: Sequence[dict[str, Any]]) -> tuple[Check, ...]:
    return tuple(_ratio(sets, slow, fast, text, TWO_ORDERS) for (slow, fast), text in PAIRS.items())


def _faster(sets: Sequence[dict[str, Any]]) -> tuple[Check, ...]:
    ours = [
        _ratio(
            [made], "mmd", "frot_paper", f"{made['label']}: MMD takes {{slow}}, FROT {{fast}}", 1.0
        )
        for made in sets
    ]
    return (*ours, _ratio(sets, "mmd", "stacked", "MMD takes {slow}, FROT as written {fast}", 1.0))


def _ratio(sets: Sequence[dict[str, Any]], slow: str, fast: str, text: str, least: float) -> Check:
    times = [(made["seconds"][slow], made["seconds"][fast]) for made in sets]
    ratios = [first / second for first, second in times]
    told = text.format(
        slow=_span([first for first, _ in times], " s"),
        fast=_span([second for _, second in times], " s"),
    )
    return Check(f"{told}: FROT is {_span(ratios, '')} times as fast", min(ratios) >= least)


def _span(values: list[float], unit: str) -> str:
    low, high = f"{min(values):.2g}", f"{max(values):.2g}"
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


# colour, marker, dashes; what the paper did not compare is dotted.
LOOKS = {
    "frot_paper": (BLUE, "o", "-"),
    "frot": (ORANGE, "s", "-"),
    "wasserstein": (INK, "^", "--"),
    "linear": (GREEN, "v", "--"),
    "mmd": ("#CC79A7", "D", "--"),
    "f_classif": (GREY, "x", ":"),
    "mrmr": ("#B8860B", "+", ":"),
}


def draw_selection(numbers: dict[str, Any]) -> Figure:
    """Draw the panels from the numbers of `selection`."""
    sets = numbers["sets"]
    columns = min(4, len(sets))
    rows = math.ceil(len(sets) / columns)
    figure: Any = new_figure(4.0 * columns, 0.7 + 3.4 * rows)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, made in zip(grid.flat, sets.values(), strict=False):
        for key, (colour, marker, dashes) in LOOKS.items():
            axes.plot(
                numbers["ks"],
                made["accuracy"][key]["mean"],
                color=colour,
                marker=marker,
                linestyle=dashes,
                markersize=4.5,
                linewidth=1.3,
                label=METHODS[key].label,
            )
        tidy(axes)
        axes.grid(True, color="#DDDDDD", linewidth=0.6)
        axes.set_title(f"{made['label']}\nn = {made['n']}, d = {made['d']:,}", fontsize=10)
        axes.set_xticks(numbers["ks"])
    for axes in list(grid.flat)[len(sets) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel(f"accuracy, mean of {numbers['splits']} splits")
    for axes in list(grid.flat)[max(0, len(sets) - columns) : len(sets)]:
        axes.set_xlabel("features selected")
    # A single panel is too narrow for all names side by side.
    wide, size = (4, 10) if columns > 1 else (2, 8)
    legend_below(figure, grid.flat[0], columns=wide, size=size)
    return figure


def _tables(numbers: dict[str, Any]) -> tuple[ExperimentTable, ...]:
    ks, sets = numbers["ks"], numbers["sets"].values()
    labels = [made["label"] for made in sets]
    protocol = (
        f"{numbers['splits']} stratified splits (75 % to train), standardised on the training "
        f"part, the K best features into scikit-learn's SVC. Seed {numbers['seed']}. Means over "
        f"the splits for K = {ks[0]} / K = {ks[-1]}; in brackets the mean over all K."
    )

    def accuracy(found: dict[str, list[float]]) -> str:
        mean = found["mean"]
        return f"{mean[0]:.3f} / {mean[-1]:.3f} ({sum(mean) / len(mean):.3f})"

    accuracies = [
        [method.label, *(accuracy(made["accuracy"][key]) for made in sets)]
        for key, method in METHODS.items()
    ]
    rivals = ("f_classif", "frot_paper", "wasserstein", "mrmr")
    differences = []
    for made in sets:
        found = (made["differences_of_defaults"][rival] for rival in rivals)
        cells = (with_error(one["mean"], one["error"], "+.4f") for one in found)
        differences.append([made["label"], *cells])
    times = [
        [label, *(f"{made['seconds'][key]:.4f}" for made in sets)] for key, label in TIMED.items()
    ]
    papers = {"wasserstein": "Wasserstein", "linear": "Linear", "mmd": "MMD", "frot": "FROT"}
    for key, name in papers.items():
        figures = [made["paper_seconds"].get(key) for made in sets]
        shown = ["" if figure is None else f"{figure:g}" for figure in figures]
        times.append([f"{name}, the paper's figure", *shown])
    return (
        ExperimentTable("Accuracy", ["method", *labels], accuracies, protocol),
        ExperimentTable(
            "Differences of frot's FROT to others",
            ["set", *(f"− {METHODS[rival].label}" for rival in rivals)],
            differences,
            "On the same splits, mean over all K ± standard error over the splits.",
        ),
        ExperimentTable(
            "Seconds for a fit",
            ["method", *labels],
            times,
            "On the training part of the first split, one thread, all in one process.",
        ),
    )


PAPER_SETS = ("colon", "leukemia", "prostate_ge", "gli_85")
STAND_IN = "chowdary"
SPLITS = 50


def selection(
    sets: Sequence[str] | None = None,
    splits: int = SPLITS,
    seed: int = 0,
    *,
    data: Path | None = None,
    workers: int = 1,
    folder: Path | None = None,
    progress: bool = False,
) -> Reproduction:
    """Compute the figure and the table on every set that is there; arguments as in `RunOptions`.

    Where ``gli_85`` is not there, ``chowdary``, measured on the same chip, takes its place in the
    verdicts.
    """
    names = _names(sets, data)
    tables = [load_expression(name, root=data) for name in names]
    made: dict[str, Any] = {}
    # A split takes about as long as its set has features.
    effort = float(splits * sum(each.shape[1] for each in tables))
    with counting_bar("splits", splits * len(tables), effort, enabled=progress) as show:
        for each in tables:
            found = run_splits(
                each,
                splits,
                seed,
                workers=workers,
                folder=folder,
                tick=lambda count, size=each.shape[1]: show(count, count * size),
            )
            made[each.name] = _numbers(each, found, "gli_85" in names)
        for each in tables:
            made[each.name]["seconds"] = seconds(each.X, each.y, seed)
            made[each.name]["agreement"] = agreement(each.X, each.y, seed)
    numbers = {"figure": "selection", "splits": splits, "seed": seed, "ks": list(KS), "sets": made}
    of_paper = [made[name] for name in _papers(names)]
    return Reproduction(
        "selection",
        numbers,
        verdicts(of_paper),
        lambda: draw_selection(numbers),
        _notes(numbers, names),
        _tables(numbers),
    )


def _names(sets: Sequence[str] | None, root: Path | None) -> list[str]:
    if sets is not None:
        return list(dict.fromkeys(sets))
    there = available(root)
    if not there:
        raise InputError(
            "none of the data sets is there; set FROT_DATA to the folder that has them, or load "
            "one with frot.datasets.load_expression(name, download=True)"
        )
    return [*_papers(there), *(name for name in there if name not in _papers(there))]


def _papers(names: Sequence[str]) -> list[str]:
    """The paper's sets among `names`, with the stand-in where GLI_85 is not."""
    found = [name for name in PAPER_SETS if name in names]
    return found + [STAND_IN] * (STAND_IN in names and "gli_85" not in names)


def _numbers(data: Expression, found: np.ndarray, with_gli: bool) -> dict[str, Any]:
    keys = list(METHODS)
    by_key = {key: found[:, row] for row, key in enumerate(keys)}
    label = of_paper = data.name
    if label == STAND_IN and not with_gli:
        label, of_paper = "chowdary (in place of GLI_85)", "gli_85"
    return {
        "label": label,
        "n": data.shape[0],
        "d": data.shape[1],
        "classes": {str(key): count for key, count in data.counts.items()},
        "source": data.source,
        "paper_seconds": PAPER_TIMES.get(of_paper, {}),
        "accuracy": {
            key: {
                "mean": [float(value) for value in rows.mean(axis=0)],
                "deviation": [float(value) for value in rows.std(axis=0)],
            }
            for key, rows in by_key.items()
        },
        "differences": {k: paired(by_key["frot_paper"], by_key[k]) for k in keys[1:]},
        "differences_of_defaults": {
            key: paired(by_key["frot"], by_key[key]) for key in keys if key != "frot"
        },
    }


def _notes(numbers: dict[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    sets = numbers["sets"].values()
    notes = [
        "± is the standard error over the splits, which overlap: it says how well the mean over "
        "such splits is known, not how another set of patients would turn out.",
    ]
    shared = [made["agreement"] for made in sets]
    notes.append(
        "FROT as in the paper is its algorithm with frot's factored costs; of the 50 best features "
        f"it has at least {min(shared):.0%} in common with the algorithm as written, which forms a "
        "stack of d cost matrices."
    )
    notes.append("Linear correlation ranks two classes as f_classif does; their lines coincide.")
    missing = [name for name in PAPER_SETS if name not in names]
    if "gli_85" in missing and STAND_IN in names:
        notes.append(
            "GLI_85 was not there; chowdary, of the same chip and d = 22,283 but of other tumours, "
            "stands in its place."
        )
        missing.remove("gli_85")
    if missing:
        notes.append(f"Not among the sets of this run: {', '.join(missing)}.")
    for rival, name in (("f_classif", "f_classif"), ("frot_paper", "FROT as in the paper")):
        found = [made["differences_of_defaults"][rival] for made in sets]
        above = sum(each["mean"] > 2.0 * each["error"] for each in found)
        below = sum(each["mean"] < -2.0 * each["error"] for each in found)
        notes.append(
            f"FROT with frot's scaling and eta is above {name} by more than two standard errors on "
            f"{above} of {len(found)} sets, below on {below}."
        )
    return tuple(notes)


def _check(options: RunOptions) -> None:
    require("sklearn", "selection")
    _names(options.sets, options.data)


EXPERIMENT = Experiment(
    "selection",
    "FROT selects features as well as the Wasserstein distance, and faster",
    selection,
    _check,
    needs="data sets of gene expression (see frot.datasets)",
    pieces="splits",
)
