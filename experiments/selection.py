"""Feature selection: the paper's figure of accuracies on expression sets, and its table of times.

A set is split 50 times into 75 % to train and 25 % to test; the K best features of each ranking go
into scikit-learn's SVC. Where GLI_85 is not there, chowdary takes its place: other tumours on the
same chip, d = 22,283.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from _baselines import KS, RANKINGS, TIMED, accuracies, split
from _runner import Experiment, Run, standard_error
from frot.datasets import Expression, available, load_expression
from frot.show.style import BLUE, GREEN, GREY, INK, ORANGE, legend_below, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_SETS, STAND_IN = ("colon", "leukemia", "prostate_ge", "gli_85"), "chowdary"
# The paper's table, in its own seconds.
PAPER_SECONDS = {
    "colon": {"wasserstein": 12.57, "linear": 0.0, "mmd": 1.36, "frot_paper": 0.41},
    "leukemia": {"wasserstein": 46.76, "linear": 0.01, "mmd": 5.03, "frot_paper": 1.13},
    "prostate_ge": {"wasserstein": 51.99, "linear": 0.02, "mmd": 6.01, "frot_paper": 1.04},
    "gli_85": {"wasserstein": 142.1, "linear": 0.04, "mmd": 23.6, "frot_paper": 3.44},
}
LOOKS = dict(
    zip(
        RANKINGS,
        (
            (BLUE, "o", "-"), (ORANGE, "s", "-"), (GREY, "x", ":"), (INK, "^", "--"),
            (GREEN, "v", "--"), ("#CC79A7", "D", "--"), ("#B8860B", "+", ":"),
        ),
        strict=True,
    )
)  # fmt: skip

# Two rankings are consistent if their accuracies differ by less than two standard errors, or by
# less than a point, which no reader of the figure could see.
ERRORS, POINT = 2.0, 0.01
# "About two orders of magnitude" is taken as anything above one and a half.
TWO_ORDERS = 10.0**1.5
# A ranking is timed for so many seconds, by as many calls as that takes.
LEAST = 0.5

Values = Mapping[str, Any]


def names_of(options: argparse.Namespace) -> list[str]:
    """Return the sets to run: those asked for, or those of the paper that are there."""
    there = available(options.data)
    names = list(options.genes) or [name for name in PAPER_SETS if name in there]
    if not options.genes and "gli_85" not in there and STAND_IN in there:
        names.append(STAND_IN)
    for name in names or PAPER_SETS[:1]:
        if name not in there:
            # Says where it was looked for.
            load_expression(name, root=options.data)
    return names


def run(run: Run) -> None:
    measured: dict[str, Values] = {}
    names = names_of(run.options)
    for name in names:
        data = load_expression(name, root=run.options.data)
        rankings = [ranking for _, ranking in RANKINGS.values()]
        splits = run.pieces(
            f"splits of {name}",
            {str(index): index for index in range(run.options.splits)},
            partial(accuracies, data.X, data.y, run.seed, rankings=rankings),
            depends=[data.X, data.y, list(RANKINGS), KS],
        )
        stands_in = name == STAND_IN and "gli_85" not in names
        label = "chowdary, for GLI_85" if stands_in else name
        by_ranking = np.stack(list(splits.values()), axis=1)
        measured[label] = {
            "n": data.shape[0],
            "d": data.shape[1],
            # Of shape (splits, K).
            "accuracies": dict(zip(RANKINGS, by_ranking, strict=True)),
            **times(data, run.seed),
            "paper": PAPER_SECONDS.get("gli_85" if stands_in else name, {}),
        }
    run.numbers["sets"] = measured
    of_paper = {label: one for label, one in measured.items() if one["paper"]}
    if of_paper:
        claim_accuracies(run, of_paper)
        claim_times(run, of_paper)
    tables(run, measured)
    run.figure(draw(measured, run.options.splits), "accuracy against the number of features")
    shared = min(one["shared"] for one in measured.values())
    run.note(
        "± is the standard error over the splits, which overlap: it says how well the mean over "
        "such splits is known, not how another set of patients would turn out."
    )
    run.note(
        "FROT as in the paper is its algorithm on frot's factored costs: of its 50 best features "
        f"{round(50 * shared)} or more are among those of the algorithm as written."
    )
    if missing := [name for name in PAPER_SETS if name not in measured]:
        run.note(f"Not there, or not asked for: {', '.join(missing)}.")


def times(data: Expression, seed: int) -> dict[str, Any]:
    """Time every ranking on the training part of the first split: processor time of one thread.

    Also returns the share of the 50 best features that FROT has in common with itself as written.
    """
    seconds, best = {}, {}
    X, y, _, _ = split(data.X, data.y, seed, 0)
    with threadpool_limits(1):
        for key, (_, ranking) in TIMED.items():
            # The first call may import what it needs.
            scores = ranking(X, y)
            start, calls = time.process_time(), 0
            while not calls or time.process_time() - start < LEAST:
                ranking(X, y)
                calls += 1
            seconds[key] = (time.process_time() - start) / calls
            best[key] = set(np.argsort(-scores, kind="stable")[: KS[-1]].tolist())
    shared = len(best["stack"] & best["frot_paper"]) / len(best["stack"])
    return {"seconds": seconds, "shared": shared}


def paired(one: Values, first: str, second: str) -> tuple[float, float]:
    """Return the mean difference of two rankings and its standard error over splits."""
    difference = (one["accuracies"][first] - one["accuracies"][second]).mean(axis=1)
    return float(difference.mean()), float(np.nan_to_num(standard_error(difference)))


def claim_accuracies(run: Run, sets: Mapping[str, Values]) -> None:
    checks = {}
    for label, one in sets.items():
        mean, error = paired(one, "frot_paper", "wasserstein")
        close = abs(mean) <= max(ERRORS * error, POINT)
        checks[f"{label}: FROT − Wasserstein = {mean:+.3f} ± {error:.3f}"] = close
    run.claim(
        "Feature selection: FROT is consistent with the Wasserstein distance-based feature "
        "selection.",
        checks,
    )
    checks = {}
    for rival in ("linear", "mmd"):
        pairs = {label: paired(one, "frot_paper", rival) for label, one in sets.items()}
        above = sum(mean > ERRORS * error for mean, error in pairs.values())
        below = sum(mean < -ERRORS * error for mean, error in pairs.values())
        numbers = ", ".join(
            f"{at} {mean:+.3f} ± {error:.3f}" for at, (mean, error) in pairs.items()
        )
        text = (
            f"by two standard errors FROT is above {RANKINGS[rival][0]} on {above} of {len(sets)} "
            f"sets and below on {below} ({numbers})"
        )
        checks[text] = above >= min(2, len(sets))
    run.claim(
        "Feature selection: FROT outperforms the linear correlation method and the MMD for two "
        "datasets.",
        checks,
    )


def claim_times(run: Run, sets: Mapping[str, Values]) -> None:
    def ratio(slow: str, fast: str, least: float) -> tuple[str, bool]:
        pairs = [(one["seconds"][slow], one["seconds"][fast]) for one in sets.values()]
        ratios = [first / second for first, second in pairs]
        text = (
            f"{TIMED[slow][0]}: {span([first for first, _ in pairs])} s; {TIMED[fast][0]}: "
            f"{span([second for _, second in pairs])} s, {span(ratios)} times as fast"
        )
        return text, min(ratios) >= least

    ours = ("frot_paper", "stack")
    run.claim(
        "Feature selection: FROT is about two orders of magnitude faster than the Wasserstein "
        "distance.",
        dict(ratio(slow, fast, TWO_ORDERS) for slow in ("wasserstein", "call") for fast in ours),
    )
    checks = {}
    for label, one in sets.items():
        slow, fast = one["seconds"]["mmd"], one["seconds"]["frot_paper"]
        checks[f"{label}: MMD {slow:.2g} s, FROT {fast:.2g} s"] = fast < slow
    checks |= [ratio("mmd", "stack", 1.0)]
    run.claim("Feature selection: FROT is also faster than MMD.", checks)


def span(values: list[float]) -> str:
    low, high = f"{min(values):.2g}", f"{max(values):.2g}"
    return low if low == high else f"{low} to {high}"


def tables(run: Run, sets: Mapping[str, Values]) -> None:
    def accuracy(values: np.ndarray) -> str:
        mean = values.mean(axis=0)
        return f"{mean[0]:.3f} / {mean[-1]:.3f} ({mean.mean():.3f})"

    header = ["ranking", *sets]
    run.table(
        "Accuracy",
        header,
        [
            [label, *(accuracy(one["accuracies"][key]) for one in sets.values())]
            for key, (label, _) in RANKINGS.items()
        ],
        f"Means over {run.options.splits} splits (seed {run.seed}) for K = {KS[0]} / K = {KS[-1]}; "
        "in brackets the mean over all K.",
    )
    differences = []
    for label, one in sets.items():
        pairs = [("moderated", "linear"), ("frot_alpha", "linear"), ("frot_alpha", "frot_paper")]
        numbers = [paired(one, *pair) for pair in pairs]
        differences.append([label, *(f"{mean:+.4f} ± {error:.4f}" for mean, error in numbers)])
    run.table(
        "Differences on the same splits",
        ["set", "moderated t − linear", "α − linear", "α − FROT as in the paper"],
        differences,
        "Mean over all K ± standard error over the splits.",
    )
    seconds = [
        [label, *(f"{one['seconds'][key]:.2g}" for one in sets.values())]
        for key, (label, _) in TIMED.items()
    ]
    seconds += [
        [f"{RANKINGS[key][0].partition(',')[0]}, the paper's figure",
         *(f"{one['paper'].get(key, '')}" for one in sets.values())]
        for key in PAPER_SECONDS["colon"]
    ]  # fmt: skip
    run.table(
        "Seconds for a ranking",
        header,
        seconds,
        "The training part of the first split; processor time of one thread.",
    )


def draw(sets: Mapping[str, Values], splits: int) -> Figure:
    """Draw a panel for each set: accuracy against K."""
    figure: Any = new_figure(max(4.0 * len(sets), 8.0), 4.4)
    (panels,) = figure.subplots(1, len(sets), squeeze=False)
    for axes, (label, one) in zip(panels, sets.items(), strict=True):
        for key, (colour, marker, dashes) in LOOKS.items():
            mean = one["accuracies"][key].mean(axis=0)
            look = {"color": colour, "marker": marker, "linestyle": dashes}
            axes.plot(KS, mean, label=RANKINGS[key][0], markersize=4.5, linewidth=1.3, **look)
        tidy(axes)
        axes.grid(True, color="#DDDDDD", linewidth=0.6)
        axes.set_title(f"{label}\nn = {one['n']}, d = {one['d']:,}", fontsize=10)
        axes.set_xticks(KS)
        axes.set_xlabel("features selected")
    panels[0].set_ylabel(f"accuracy, mean of {splits} splits")
    legend_below(figure, panels[0], columns=4 if len(sets) > 1 else 2, size=9)
    return figure


EXPERIMENT = Experiment(
    "selection",
    "FROT selects features as well as the Wasserstein distance, and faster.",
    run,
    options={
        "splits": (50, "splits into training and test"),
        "genes": ((), "sets of gene expression, by commas; those of the paper that are there"),
    },
    needs=names_of,
)

if __name__ == "__main__":
    EXPERIMENT.main()
