"""Calibration: how often permutation tests of simulated expression tables are wrong, and right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import collect_warnings
from frot.cli.reproduce.experiment import (
    Check,
    Experiment,
    ExperimentTable,
    Reproduction,
    RunOptions,
    Verdict,
    finish_draws,
    standard_error,
    verdicts_of,
    with_error,
    work_fingerprint,
)
from frot.show.style import BLUE, GREEN, GREY, INK, ORANGE, legend_below, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Setting:
    """Tables of two classes to draw, of which the first features differ.

    Examples
    --------
    >>> X, y = Setting("small", (3, 2), true=1, gap=50.0, features=4).draw(0)
    >>> X.shape, y.tolist(), bool(X[3:, 0].max() < X[:3, 0].min())
    ((5, 4), [0, 0, 0, 1, 1], True)
    """

    name: str
    # Samples of the classes.
    sizes: tuple[int, int] = (20, 20)
    # Features that differ, half of them up and half down.
    true: int = 20
    # By how much, in standard deviations of the first class.
    gap: float = 1.5
    # The part of the variance that is one factor, common to all features.
    shared: float = 0.0
    # Standard deviation of the second class over that of the first.
    ratio: float = 1.0
    # Exponential instead of normal values.
    skewed: bool = False
    permutations: int = 99
    features: int = 500

    def draw(self, *seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a table and its labels."""
        rng = np.random.default_rng(seed)
        y = np.repeat([0, 1], self.sizes)
        shape = len(y), self.features
        own = rng.exponential(size=shape) - 1.0 if self.skewed else rng.normal(size=shape)
        common = rng.normal(size=(len(y), 1))
        X = np.sqrt(1.0 - self.shared) * own + np.sqrt(self.shared) * common
        X[y == 1] *= self.ratio
        X[y == 1, : self.true] += self.gap * np.where(np.arange(self.true) % 2, 1.0, -1.0)
        return X, y


SETTINGS = (
    Setting("nothing differs", true=0),
    Setting("20 of 500 differ"),
    Setting("20 of 500 differ, 999 permutations", permutations=999),
    Setting("200 of 500 differ", true=200),
    Setting("correlated, nothing differs", true=0, shared=0.5),
    Setting("correlated, 20 of 500 differ", shared=0.5),
    Setting("50 against 10 of 3 times the spread, nothing differs", (50, 10), 0, ratio=3.0),
    Setting("50 against 10 of 3 times the spread, 20 differ", (50, 10), gap=4.5, ratio=3.0),
    Setting("50 against 10 of a third of the spread, 20 differ", (50, 10), ratio=1 / 3),
    Setting("5 against 5, 20 of 500 differ", (5, 5), gap=4.0),
    Setting("50 against 10 of 3 times the spread, skewed", (50, 10), 0, ratio=3.0, skewed=True),
)
# What accepts a feature: the statistic, and the number of its test that is held to the level.
METHODS = {
    "t, pooled null": ("t", "q"),
    "t, Benjamini-Hochberg": ("t", "q_bh"),
    "t, max-T": ("t", "p_max"),
    "shift, Benjamini-Hochberg": ("shift", "q_bh"),
}
COLOURS = dict(zip(METHODS, (BLUE, GREEN, ORANGE, GREY), strict=True))
P_LEVEL, LEVEL = 0.05, 0.1
TABLES = 200


def measure(setting: Setting, index: int, seed: int) -> dict[str, list[float]]:
    """Test one table; by statistic the share of features that do not differ with p <= 0.05, by
    method the false discovery proportion at 0.1 and the share of those that differ it finds.

    Examples
    --------
    >>> found = measure(Setting("small", true=3, features=20, gap=9.0), 0, 0)
    >>> found["t, pooled null"][1], len(found["t"]), len(found)
    (1.0, 1, 6)
    """  # noqa: D205
    from frot.selection import permutation_test

    X, y = setting.draw(seed, index)
    count = setting.permutations
    with collect_warnings():
        # That they are too few for Benjamini and Hochberg is what is measured.
        tests = {
            name: permutation_test(X, y, statistic=name, n_permutations=count, random_state=index)
            for name in ("t", "shift")
        }
    found = {
        name: [float((test.p[setting.true :] <= P_LEVEL).mean())] for name, test in tests.items()
    }
    for method, (statistic, number) in METHODS.items():
        accepted = getattr(tests[statistic], number) <= LEVEL
        wrong = float(accepted[setting.true :].sum() / max(1, accepted.sum()))
        right = float(accepted[: setting.true].mean()) if setting.true else 0.0
        found[method] = [wrong, right]
    return found


@dataclass(frozen=True)
class Summary:
    """A mean over tables and its standard error.

    Examples
    --------
    >>> print(Summary.of([0.0, 0.1, 0.2]))
    0.100 ± 0.058
    """

    mean: float
    error: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Summary:
        """Average."""
        return cls(float(np.mean(values)), standard_error(values) or 0.0)

    def __str__(self) -> str:
        return with_error(self.mean, self.error, ".3f")


def summarise(runs: Sequence[dict[str, list[float]]]) -> dict[str, list[Summary]]:
    """Average what `measure` found of several tables."""
    return {
        name: [Summary.of([run[name][place] for run in runs]) for place in range(len(first))]
        for name, first in runs[0].items()
    }


def calibration(
    n: int = TABLES,
    seed: int = 0,
    *,
    workers: int = 1,
    folder: Path | None = None,
    progress: bool = False,
) -> Reproduction:
    """Draw n tables of every setting and test them.

    Examples
    --------
    >>> calibration(n=2).tables[0].header[:2]
    ('setting', 'p ≤ 0.05, t')
    """
    work = work_fingerprint(settings=SETTINGS, seed=seed)
    bar = {"what": "tables", "progress": progress}
    draws = finish_draws(
        folder, work, SETTINGS, n, partial(measure, seed=seed), workers=workers, **bar
    )
    found = {name: summarise(runs) for name, runs in draws.items()}
    numbers: dict[str, Any] = {
        "tables": n,
        "seed": seed,
        "settings": {
            name: {key: [[one.mean, one.error] for one in several] for key, several in by.items()}
            for name, by in found.items()
        },
    }
    return Reproduction(
        "calibration",
        numbers,
        _verdicts(found),
        partial(_draw, found),
        (
            f"{n} tables of 500 features a setting, ± a standard error; 99 permutations "
            "unless said otherwise.",
            "Where nothing differs the false discovery rate is the share of tables in which "
            "anything is found.",
        ),
        (_table(found),),
    )


Found = dict[str, dict[str, list[Summary]]]


def _table(found: Found) -> ExperimentTable:
    header = ["setting", "p ≤ 0.05, t", "p ≤ 0.05, shift"]
    for method in METHODS:
        header += [f"FDR, {method}", f"power, {method}"]
    true = {one.name: one.true for one in SETTINGS}
    rows = [
        [
            name,
            str(by["t"][0]),
            str(by["shift"][0]),
            *(
                text
                for method in METHODS
                for text in (str(by[method][0]), str(by[method][1]) if true[name] else "")
            ),
        ]
        for name, by in found.items()
    ]
    note = "False discovery rate and power at 0.1; p of features that do not differ."
    return ExperimentTable("Calibration", tuple(header), rows, note)


def _verdicts(found: Found) -> tuple[Verdict, ...]:
    normal = [one.name for one in SETTINGS if not one.skewed]
    levels = [
        Check(f"{name}: {by['t'][0]}", _within(by["t"][0], 0.04, 0.06))
        for name, by in found.items()
        if name in normal
    ]
    rates = [
        Check(f"{name}: {found[name]['t, pooled null'][0]}",
              _within(found[name]["t, pooled null"][0], 0.0, LEVEL + 0.02))
        for name in normal
    ]  # fmt: skip
    few = found["20 of 500 differ"]
    pooled, own = few["t, pooled null"][1], few["t, Benjamini-Hochberg"][1]
    power = [
        Check(f"pooled null {pooled}", _within(pooled, 0.9, 1.0)),
        Check(f"Benjamini-Hochberg {own}", _within(own, 0.0, 0.05)),
    ]
    return verdicts_of(
        "The",
        ("level", "of features that do not differ, 4 to 6 % have p ≤ 0.05 (t)", levels),
        ("rate", "accepting q ≤ 0.1 (t, pooled null), 12 % at most are wrong", rates),
        ("power", "99 permutations find 20 of 500 with a pooled null, not without", power),
    )


def _within(found: Summary, low: float, high: float) -> bool:
    """Whether a mean is in a range, to twice its standard error."""
    return low - 2.0 * found.error <= found.mean <= high + 2.0 * found.error


def _draw(found: Found) -> Figure:
    figure: Any = new_figure(12.0, 0.6 + 0.55 * len(found))
    rate, power = figure.subplots(1, 2, sharey=True)
    rows = np.arange(len(found))[::-1]
    for step, method in enumerate(METHODS):
        for axes, place in ((rate, 0), (power, 1)):
            values = [by[method][place] for by in found.values()]
            axes.errorbar(
                [one.mean for one in values],
                rows + 0.24 - 0.16 * step,
                xerr=[one.error for one in values],
                fmt="o",
                ms=4.5,
                color=COLOURS[method],
                label=method,
            )
    rate.axvline(LEVEL, color=INK, lw=0.8, ls=":")
    rate.set_yticks(rows, list(found))
    rate.set_xlabel("false discovery rate at 0.1")
    power.set_xlabel("share of those that differ that is found")
    for axes in (rate, power):
        tidy(axes)
    legend_below(figure, rate, columns=4)
    return figure


def _check(options: RunOptions) -> None:
    import frot.selection  # noqa: F401


EXPERIMENT = Experiment(
    "calibration",
    "permutation tests of simulated tables err as often as they say, and find what differs",
    calibration,
    _check,
    needs="no data, but scikit-learn and joblib",
    pieces="tables",
    papers=False,
)
