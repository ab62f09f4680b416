"""Shape test: level in eight settings, power beside other tests, and agreement of halves.

Features have the same form in both classes, whatever it is, or a subgroup, or another spread. On
real sets the test is run on two halves of the samples: of the hundred surest features of one half,
how many are surer than p = .05 in the other, where one in twenty would be by chance.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from sklearn.model_selection import StratifiedShuffleSplit

from _runner import Experiment, Run, standard_error
from frot.datasets import available, load_expression
from frot.selection import shape_test
from frot.selection._transport import squared_wasserstein
from frot.show.style import BLUE, GREEN, GREY, INK, ORANGE, legend_below, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL, PERMUTATIONS, FEATURES = 0.05, 199, 200
SETS = ("leukemia_gsea", "golub", "singh", "chowdary", "gravier", "alon")


@dataclass(frozen=True)
class Setting:
    """Tables of two classes of the same form, to draw."""

    name: str
    sizes: tuple[int, int] = (60, 60)
    kind: str = "normal"
    # By how many standard deviations the second class is shifted.
    shift: float = 0.0
    batches: int = 1

    def draw(self, *seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return a table, labels, and batches or none."""
        rng = np.random.default_rng(seed)
        y, shape = np.repeat([0, 1], self.sizes), (sum(self.sizes), FEATURES)
        X = {
            "normal": lambda: rng.normal(size=shape),
            "skewed": lambda: rng.exponential(size=shape),
            "heavy tails": lambda: rng.standard_t(3, size=shape) / np.sqrt(3.0),
        }[self.kind]()
        X[y == 1] += self.shift
        if self.batches == 1:
            return X, y, None
        batch = rng.permutation(len(y)) % self.batches
        return X + 2.0 * rng.normal(size=(self.batches, FEATURES))[batch], y, batch


LEVELS = (
    Setting("normal"),
    Setting("skewed", kind="skewed"),
    Setting("heavy tails", kind="heavy tails"),
    Setting("30 against 90", (30, 90)),
    Setting("skewed, 30 against 90", (30, 90), "skewed"),
    Setting("shifted by two deviations", shift=2.0),
    Setting("skewed, shifted by two deviations", kind="skewed", shift=2.0),
    Setting("three batches, heavy tails", kind="heavy tails", batches=3),
)


@dataclass(frozen=True)
class Alternative:
    """60 against 60 samples, of which a part of the first class is elsewhere."""

    name: str
    share: float = 0.2
    distance: float = 6.0
    shift: float = 0.0
    # The first class spreads so many times as much.
    spread: float = 1.0

    def draw(self, *seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a table and labels; means and variances are equal but for shift and spread."""
        rng = np.random.default_rng(seed)
        X, first = rng.normal(size=(120, FEATURES)), np.arange(120) < 60
        X[: int(60 * self.share)] += self.distance
        variance = 1.0 + self.share * (1.0 - self.share) * self.distance**2
        X[:60] = self.spread * (X[:60] - self.share * self.distance) / np.sqrt(variance)
        X[:60] += self.shift
        return X, first


POWERS = (
    Alternative("a fifth, 6 away"),
    Alternative("a fifth, 4 away", distance=4.0),
    Alternative("a fifth, 6 away, means differ by 1", shift=1.0),
    Alternative("a tenth, 6 away", share=0.1),
    Alternative("a half, 4 away", share=0.5, distance=4.0),
    Alternative("no subgroup, 1.5 times the spread", share=0.0, spread=1.5),
)
TESTS = ("form", "spread", "W2 beyond the shift", "KS", "Anderson-Darling", "Levene")
COLOURS = dict(zip(TESTS, (ORANGE, GREEN, BLUE, GREY, "#CC79A7", INK), strict=True))

Means = Mapping[str, tuple[float, float]]


def level(seed: int, task: tuple[Setting, int]) -> dict[str, float]:
    """Return the shares of the features of one table with p <= .05."""
    setting, index = task
    X, y, batch = setting.draw(seed, index)
    test = shape_test(X, y, block=batch, n_permutations=PERMUTATIONS, random_state=index)
    found = {"form": test.p_form, "spread": test.p_spread}
    return {name: float(np.mean(p <= LEVEL)) for name, p in found.items()}


def power(seed: int, task: tuple[Alternative, int]) -> dict[str, float]:
    """Return the shares of the features of one table that each test finds at .05."""
    alternative, index = task
    X, first = alternative.draw(seed, index)
    test = shape_test(X, first, n_permutations=PERMUTATIONS, random_state=index)
    pairs = [(x[first], x[~first]) for x in X.T]
    levene: Any = stats.levene(X[first], X[~first])
    found = {
        "form": test.p_form,
        "spread": test.p_spread,
        "W2 beyond the shift": wasserstein_p(X, first, index),
        "KS": np.array([stats.ks_2samp(*pair)[1] for pair in pairs]),
        "Anderson-Darling": np.array([anderson_darling(pair) for pair in pairs]),
        "Levene": levene.pvalue,
    }
    return {name: float(np.mean(p <= LEVEL)) for name, p in found.items()}


def anderson_darling(pair: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the p-value of the k-sample test; SciPy warns beyond its table, .001 to .25."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Any = stats.anderson_ksamp(pair)
    return float(found.pvalue)


def wasserstein_p(X: np.ndarray, first: np.ndarray, seed: int) -> np.ndarray:
    """Return permutation p-values of the squared Wasserstein distance less the squared shift.

    Labels are permuted of values as they are, so that a difference of means is in the way.
    """

    def statistic(labels: np.ndarray) -> np.ndarray:
        x, y = X[labels], X[~labels]
        return squared_wasserstein(x, y) - np.square(x.mean(axis=0) - y.mean(axis=0))

    rng = np.random.default_rng(seed)
    observed, count = statistic(first), np.ones(X.shape[1])
    for _ in range(PERMUTATIONS):
        count += statistic(rng.permutation(first)) >= observed
    return count / (1.0 + PERMUTATIONS)


def halves(seed: int, task: tuple[str, int]) -> dict[str, float]:
    """Return how well two halves of a real set agree on which features differ in form."""
    name, index = task
    data = load_expression(name)
    X = np.log2(np.maximum(data.X, 1.0)) if data.X.max() > 100.0 else data.X
    split = StratifiedShuffleSplit(1, train_size=0.5, random_state=seed + index)
    ((one, two),) = split.split(X, data.y)
    tests = [
        shape_test(X[rows], data.y[rows], n_permutations=PERMUTATIONS, random_state=index)
        for rows in (one, two)
    ]
    numbers = {}
    for kind in ("form", "spread"):
        score, p = getattr(tests[0], f"score_{kind}"), getattr(tests[1], f"p_{kind}")
        both = np.flatnonzero(tests[0].tested & tests[1].tested)
        best = both[np.argsort(-score[both], kind="stable")[:100]]
        numbers[kind] = float((p[best] <= LEVEL).mean())
        numbers[f"{kind}, any"] = float((p[both] <= LEVEL).mean())
    return numbers


def run(run: Run) -> None:
    count, splits = run.options.tables, run.options.halves
    levels = means_of(run, "level", level, LEVELS, count)
    powers = means_of(run, "power", power, POWERS, max(count // 5, 2))
    run.numbers["level"], run.numbers["power"] = levels, powers
    for kind in ("form", "spread"):
        run.claim(
            f"Shape test: of features of the same {kind}, 5 % have p ≤ .05 ({kind}).",
            {f"{name}: {written(means[kind])}": abs(means[kind][0] - LEVEL) <= 2.0 * means[kind][1]
             for name, means in levels.items()},
        )  # fmt: skip
    hidden = powers["a fifth, 6 away"]
    run.claim(
        "Shape test: a hidden subgroup of a fifth, equal means and variances, is found more often "
        "than by other tests.",
        {f"{name} {written(hidden[name])}": hidden["form"][0] > hidden[name][0]
         for name in ("KS", "Anderson-Darling", "Levene")},
    )  # fmt: skip
    run.table(
        "Level",
        ["setting", "form", "spread"],
        [[name, *(written(means[kind]) for kind in ("form", "spread"))]
         for name, means in levels.items()],
        f"Share of p ≤ .05 where nothing differs in shape; {count} tables of {FEATURES} features, "
        f"{PERMUTATIONS} permutations.",
    )  # fmt: skip
    run.table(
        "Power",
        ["difference", *TESTS],
        [[name, *(written(means[test]) for test in TESTS)] for name, means in powers.items()],
        "Share of p ≤ .05; 60 against 60 normal samples.",
    )
    there = [name for name in SETS if name in available(run.options.data)]
    if there and splits:
        tasks = {f"{name}/{index}": (name, index) for name in there for index in range(splits)}
        found = run.pieces("halves", tasks, partial(halves, run.seed), depends=[SETS])
        rows = []
        for name in there:
            draws = [found[f"{name}/{index}"] for index in range(splits)]
            rows.append(
                [name, *(f"{np.mean([draw[key] for draw in draws]):.2f}" for key in draws[0])]
            )
        run.table(
            "Halves of real sets",
            ["set", "form: of the first 100", "of any", "spread: of the first 100", "of any"],
            rows,
            "Of the 100 surest features of one half, and of any, the share with p ≤ .05 in the "
            f"other half; means of {splits} splits.",
        )
    run.figure(draw(powers), "power of every test by difference")


def means_of(run: Run, what: str, work: Any, settings: Any, count: int) -> dict[str, Means]:
    """Return means over tables with their standard errors, by setting."""
    tasks = {f"{one.name}/{index}": (one, index) for one in settings for index in range(count)}
    depends = [settings, FEATURES, PERMUTATIONS]
    pieces = run.pieces(what, tasks, partial(work, run.seed), depends=depends)
    found: dict[str, Means] = {}
    for one in settings:
        draws = [pieces[f"{one.name}/{index}"] for index in range(count)]
        found[one.name] = {
            key: (
                float(np.mean([draw[key] for draw in draws])),
                float(np.nan_to_num(standard_error([draw[key] for draw in draws]))),
            )
            for key in draws[0]
        }
    return found


def written(mean: tuple[float, float]) -> str:
    return f"{mean[0]:.3f} ± {mean[1]:.3f}"


def draw(powers: Mapping[str, Means]) -> Figure:
    """Draw the power of every test, a row a difference."""
    figure: Any = new_figure(10.0, 0.8 + 0.6 * len(powers))
    axes = figure.add_subplot()
    for step, (test, colour) in enumerate(COLOURS.items()):
        places = np.arange(len(powers), 0, -1) + 0.3 - 0.12 * step
        values, errors = zip(*(means[test] for means in powers.values()), strict=True)
        axes.errorbar(values, places, xerr=errors, fmt="o", ms=5, color=colour, label=test)
    tidy(axes)
    axes.axvline(LEVEL, color=INK, lw=0.8, ls=":")
    axes.set_yticks(np.arange(len(powers), 0, -1), list(powers))
    axes.set_xlabel("share with p ≤ .05")
    legend_below(figure, axes, columns=3)
    return figure


EXPERIMENT = Experiment(
    "shape",
    "The shape test holds its level, and finds subgroups that other tests do not.",
    run,
    options={
        "tables": (50, "simulated tables for each setting"),
        "halves": (5, "splits of every real set into halves"),
    },
)

if __name__ == "__main__":
    EXPERIMENT.main()
