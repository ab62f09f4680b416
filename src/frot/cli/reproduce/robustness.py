"""Robustness to noise: FROT, SRW, max-sliced and plain transport, as in SRW's paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import ortho_group

from frot._base.errors import collect_warnings
from frot.api.solve import solve
from frot.cli.reproduce.experiment import (
    Check,
    Experiment,
    Reproduction,
    Verdict,
    finish,
    open_store,
    relative_excess,
    verdicts_of,
    work_fingerprint,
)
from frot.problem.result import Result
from frot.relatives import max_sliced, srw, wasserstein
from frot.show.style import BLUE, GREEN, GREY, INK, ORANGE, legend_below, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The informative features of both clouds, which come first.
INFORMATIVE = 2

Points = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Cloud:
    """A pair of distributions: how it is drawn, and the true value of every method on it.

    Noise of the same distribution on both sides changes none of the true values: a plan that
    leaves it where it is pays nothing for it, in whatever direction.
    """

    name: str
    draw: Callable[[int, np.random.Generator], Points]
    truth: dict[str, float]


def with_noise(points: Points, count: int, level: float, rng: np.random.Generator) -> Points:
    """Add `count` features of normal noise of standard deviation `level` to both clouds.

    The same generator gives the same noise at every level, so that levels can be compared.

    Examples
    --------
    >>> x, y = with_noise((np.zeros((3, 2)), np.ones((4, 2))), 5, 0.0, np.random.default_rng(0))
    >>> x.shape, y.shape, float(abs(x).max())
    ((3, 7), (4, 7), 0.0)
    """
    x, y = (np.hstack([side, level * rng.normal(size=(len(side), count))]) for side in points)
    return x, y


def hypercube(n: int, rng: np.random.Generator) -> Points:
    """Draw from a square, and from the same square torn apart: x + 2 sign(x) (Paty & Cuturi)."""
    x, y = rng.uniform(-1.0, 1.0, size=(2, n, INFORMATIVE))
    return x, y + 2.0 * np.sign(y)


def annulus(n: int, rng: np.random.Generator) -> Points:
    """Draw from the disk of radius 1, and from the annulus between radii 2 and 3."""
    radii = np.sqrt(rng.uniform(0.0, 1.0, n)), np.sqrt(rng.uniform(4.0, 9.0, n))
    angles = rng.uniform(0.0, 2.0 * np.pi, size=(2, n))
    x, y = (
        np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        for radius, angle in zip(radii, angles, strict=True)
    )
    return x, y


def annulus_truth(grid: int = 200_001) -> dict[str, float]:
    """Integrate the annulus's true values: radii are moved in order, lines are sorted.

    Examples
    --------
    >>> {name: round(value, 3) for name, value in annulus_truth().items()}
    {'frot': 1.744, 'srw': 3.489, 'max_sliced': 1.714, 'ot': 3.489}
    """
    share = (np.arange(grid) + 0.5) / grid
    # Of the mass within radius r of the disk r^2, of the annulus's (r^2 - 4) / 5.
    whole = float(np.mean((np.sqrt(4.0 + 5.0 * share) - np.sqrt(share)) ** 2))
    at = np.linspace(-3.0, 3.0, grid)
    disk = _below(at)
    ring = (9.0 * _below(at / 3.0) - 4.0 * _below(at / 2.0)) / 5.0
    line = float(np.mean((np.interp(share, disk, at) - np.interp(share, ring, at)) ** 2))
    return {"frot": whole / 2.0, "srw": whole, "max_sliced": line, "ot": whole}


def _below(x: np.ndarray) -> np.ndarray:
    """Share of the unit disk to the left of x."""
    x = np.clip(x, -1.0, 1.0)
    return 0.5 + (x * np.sqrt(1.0 - x**2) + np.arcsin(x)) / np.pi


# Each of the two features moves by 2; no other feature, and no direction, by more.
TORN = {"frot": 4.0, "srw": 8.0, "max_sliced": 4.0, "ot": 8.0}
CLOUDS = {
    "hypercube": Cloud("fragmented hypercube", hypercube, TORN),
    "annulus": Cloud("disk to annulus", annulus, annulus_truth()),
}

METHODS = {"frot": "FROT", "srw": "SRW (k = 2)", "max_sliced": "max-sliced", "ot": "OT"}
# SRW's gap, far below the differences that matter here, and its rounds, each a transport.
TOL, ROUNDS = 5e-3, 500
# A value whose gap is wider than this is told as what it is, an upper bound.
PROVEN = 0.02


@dataclass(frozen=True)
class Setting:
    """One point of a sweep: how many points, features of noise, and how loud they are."""

    n: int = 100
    noise: int = 28
    level: float = 1.0

    @property
    def effort(self) -> float:
        """About as the time that the four methods take."""
        return float(self.n * (self.noise + 20))

    def draw(self, cloud: Cloud, seed: int) -> tuple[Points, Points]:
        """Return the clouds in their informative features alone, and with the noise."""
        first, second = np.random.SeedSequence(seed).spawn(2)
        clean = cloud.draw(self.n, np.random.default_rng(first))
        return clean, with_noise(clean, self.noise, self.level, np.random.default_rng(second))


def run_all(X: np.ndarray, Y: np.ndarray) -> dict[str, Result]:
    """Run the four methods; every feature is a group for FROT.

    Examples
    --------
    >>> made = run_all(np.zeros((1, 2)), np.array([[3.0, 4.0]]))
    >>> {name: round(result.value, 6) for name, result in made.items()}
    {'frot': 16.0, 'srw': 25.0, 'max_sliced': 25.0, 'ot': 25.0}
    """
    with collect_warnings():
        return {
            "frot": solve(X, Y, "each", eps=0.0),
            "srw": srw(X, Y, min(INFORMATIVE, X.shape[1]), tol=TOL, max_iter=ROUNDS),
            "max_sliced": max_sliced(X, Y, restarts=4),
            "ot": wasserstein(X, Y, eps=0.0),
        }


def measure(cloud: Cloud, clean: Points, noisy: Points) -> dict[str, dict[str, float]]:
    """Return for each method its value against the noiseless one and the truth, and its choice."""
    quiet, loud = run_all(*clean), run_all(*noisy)
    cost = ((clean[0][:, None] - clean[1][None]) ** 2).sum(axis=2)
    return {
        name: {
            "value": result.value,
            "gap": result.gap,
            "ratio": result.value / quiet[name].value,
            "error": abs(result.value / cloud.truth[name] - 1.0),
            "recovered": recovered(result, noisy[0].shape[1]),
            "excess": relative_excess(result.plan, quiet["ot"].plan, cost),
        }
        for name, result in loud.items()
    }


def recovered(result: Result, d: int) -> float:
    """Return the share of a choice that falls on the informative features.

    FROT's weights on them; the trace of Omega, of k, in their plane; the squared length of the
    direction in it. OT chooses nothing: their share of all features.
    """
    chosen = result.chosen
    if chosen is None:
        return float(result.alpha[:INFORMATIVE].sum())
    if chosen.kind == "subspace":
        assert chosen.weights is not None
        shares = chosen.array**2 @ chosen.weights
        return float(shares[:INFORMATIVE].sum() / shares.sum())
    if chosen.kind == "direction":
        return float((chosen.array[:INFORMATIVE] ** 2).sum())
    return min(1.0, INFORMATIVE / d)


@dataclass(frozen=True)
class Draw:
    """One draw of a setting, to be measured; `turned` mixes noise into every feature."""

    cloud: str
    setting: Setting
    seed: int
    turned: bool = False

    @property
    def key(self) -> str:
        """The name that its numbers are kept under."""
        setting = self.setting
        way = " turned" if self.turned else ""
        return f"{self.cloud} {setting.n} {setting.noise} {setting.level!r} {self.seed}{way}"

    def measure(self) -> dict[str, dict[str, float]]:
        """Return the numbers of every method."""
        cloud = CLOUDS[self.cloud]
        clean, (x, y) = self.setting.draw(cloud, self.seed)
        if self.turned:
            turn = ortho_group.rvs(x.shape[1], random_state=self.seed)
            x, y = x @ turn, y @ turn
        return measure(cloud, clean, (x, y))


def measure_all(
    draws: Sequence[Draw], folder: Path | None, progress: bool
) -> dict[str, dict[str, dict[str, float]]]:
    """Measure every draw that is not in the folder yet; draws of several sweeps once."""
    todo = {draw.key: draw for draw in draws}
    with open_store(folder) as kept:
        return finish(
            kept,
            work_fingerprint(clouds=CLOUDS, tol=TOL, rounds=ROUNDS),
            list(todo),
            lambda key: todo[key].measure(),
            what="robustness",
            progress=progress,
            effort=lambda key: todo[key].setting.effort,
        )


def averaged(runs: Sequence[dict[str, dict[str, float]]]) -> dict[str, Any]:
    """Return the mean of every number over the draws of a setting, and the range of ratios."""
    point: dict[str, Any] = {}
    for method in METHODS:
        point[method] = {
            key: float(np.mean([run[method][key] for run in runs])) for key in runs[0][method]
        }
        ratios = [run[method]["ratio"] for run in runs]
        point[method]["ratio_range"] = [min(ratios), max(ratios)]
    return point


ROBUST = ("frot", "srw", "max_sliced")
# What counts as found, and as a plan about as good as without noise.
FOUND, GOOD = 0.9, 0.1
# Noise at which choices and plans are judged: no louder than what the clouds move by.
LEVEL = 1.0


def claims(numbers: dict[str, Any]) -> tuple[Verdict, ...]:
    """Return the verdicts: values, errors, choices, plans, and what a rotation does."""
    level, features = numbers["over_level"], numbers["over_features"]
    return verdicts_of(
        "Robustness,",
        ("values under louder noise", "Robust values move less under noise than OT's.",
         _values(level, lambda p: f"noise of {p['level']:g}")),
        ("values under more noise", "And with the number of features of noise.",
         _values(features, lambda p: f"{p['noise_features']} features of noise")),
        ("FROT and SRW", "FROT's value moves no more under noise than SRW's.", _against_srw(level)),
        ("errors", "With n points the error of robust values is below that of OT's, and is less "
         "with the most than with the fewest.", _errors(numbers["over_n"])),
        ("choices", "The adversaries find the two informative features.", _choices(level)),
        ("plans", "Robust plans are about as good on these features as without noise.",
         _plans(level)),
        ("rotation", "Values of robust methods do not depend on the coordinates.",
         _rotation(numbers)),
    )  # fmt: skip


def _moved(point: dict[str, Any], method: str) -> float:
    return abs(math.log(point[method]["ratio"]))


def _values(sweep: dict[str, Any], where: Any) -> Iterator[Check]:
    for cloud, what in CLOUDS.items():
        last = sweep[cloud][-1]
        told = ", ".join(f"{METHODS[m]} x{last[m]['ratio']:.2f}" for m in METHODS)
        noisy = [point for point in sweep[cloud] if point["level"] and point["noise_features"]]
        holds = all(_moved(p, m) < _moved(p, "ot") for p in noisy for m in ROBUST)
        yield Check(f"{what.name}: at {where(last)} {told}", holds)


def _against_srw(sweep: dict[str, Any]) -> Iterator[Check]:
    for cloud, what in CLOUDS.items():
        # Where SRW is not solved, nothing can be said.
        solved = [point for point in sweep[cloud] if point["srw"]["gap"] <= PROVEN]
        own = {m: max(_moved(p, m) for p in solved) for m in ("frot", "srw")}
        text = f"FROT by at most {math.expm1(own['frot']):.1%}, SRW by {math.expm1(own['srw']):.1%}"
        level = max(point["level"] for point in solved)
        yield Check(f"{what.name}: {text}, for noise up to {level:g}", own["frot"] <= own["srw"])


def _errors(sweep: dict[str, Any]) -> Iterator[Check]:
    for cloud, what in CLOUDS.items():
        for method in ROBUST:
            ends = [sweep[cloud][place][method]["error"] for place in (0, -1)]
            sizes = [sweep[cloud][place]["n"] for place in (0, -1)]
            less = all(p[method]["error"] < p["ot"]["error"] for p in sweep[cloud])
            text = " to ".join(f"{e:.1%} (n = {n})" for e, n in zip(ends, sizes, strict=True))
            plain = f"OT's last is {sweep[cloud][-1]['ot']['error']:.0%}"
            yield Check(
                f"{what.name}: {METHODS[method]} {text}; {plain}", less and ends[1] < ends[0]
            )


def _judged(sweep: dict[str, Any], cloud: str) -> list[dict[str, Any]]:
    return [point for point in sweep[cloud] if 0.0 < point["level"] <= LEVEL]


def _choices(sweep: dict[str, Any]) -> Iterator[Check]:
    for cloud, what in CLOUDS.items():
        for method in ROBUST:
            least = min(point[method]["recovered"] for point in _judged(sweep, cloud))
            text = f"{METHODS[method]} has at least {least:.1%} on them for noise up to {LEVEL:g}"
            last = sweep[cloud][-1]
            text += f" ({last[method]['recovered']:.1%} at {last['level']:g})"
            yield Check(f"{what.name}: {text}", least >= FOUND)


def _plans(sweep: dict[str, Any]) -> Iterator[Check]:
    for cloud, what in CLOUDS.items():
        worst = {m: max(p[m]["excess"] for p in _judged(sweep, cloud)) for m in METHODS}
        for method in ROBUST:
            text = (
                f"{METHODS[method]}'s plan is {worst[method]:.1%} of the way to no matching for "
                f"noise up to {LEVEL:g}, OT's {worst['ot']:.1%}"
            )
            good = worst[method] <= GOOD and worst[method] < worst["ot"]
            yield Check(f"{what.name}: {text}", good)


def _rotation(numbers: dict[str, Any]) -> Iterator[Check]:
    for cloud, what in CLOUDS.items():
        points = numbers["over_level"][cloud]
        straight = min(points, key=lambda point: abs(point["level"] - LEVEL))
        for method in ROBUST:
            before, after = straight[method]["ratio"], numbers["turned"][cloud][method]["ratio"]
            text = f"{METHODS[method]} x{before:.2f}, and x{after:.2f} after a random rotation"
            yield Check(f"{what.name}: {text}", abs(after / before - 1.0) <= 0.05)


STYLES = {
    "frot": (BLUE, "o", "-"),
    "srw": (GREEN, "s", "-"),
    "max_sliced": (ORANGE, "^", "-"),
    "ot": (GREY, "D", "--"),
}
SWEEPS = {
    "level": ("over_level", "standard deviation of the noise"),
    "noise_features": ("over_features", "features of noise"),
    "n": ("over_n", "points in each cloud"),
}


def draw_robustness(numbers: dict[str, Any]) -> Figure:
    """Draw value and choice over noise, features of noise and points, for both clouds."""
    figure: Any = new_figure(12.5, 13.0)
    parts = figure.subfigures(2, 1)
    for part, (cloud, what) in zip(parts, CLOUDS.items(), strict=True):
        part.suptitle(what.name[0].upper() + what.name[1:], fontsize=13, x=0.01, ha="left")
        grid = part.subplots(2, 3, sharex="col")
        for column, (key, (sweep, label)) in enumerate(SWEEPS.items()):
            points = numbers[sweep][cloud]
            measured = "error" if key == "n" else "ratio"
            _lines(grid[0, column], points, key, measured)
            _lines(grid[1, column], points, key, "recovered")
            grid[1, column].set_xlabel(label)
        _dress(grid)
    legend_below(figure, parts[0].axes[0], columns=4, size=11)
    return figure


def _lines(axes: Any, points: list[dict[str, Any]], key: str, measured: str) -> None:
    at = [point[key] for point in points]
    # Methods that agree lie on each other; the later ones are drawn smaller to show both.
    for size, (method, name) in zip((9.0, 7.0, 5.5, 4.5), METHODS.items(), strict=True):
        colour, marker, dashes = STYLES[method]
        values = [point[method][measured] for point in points]
        style = {"color": colour, "marker": marker, "linestyle": dashes, "markersize": size}
        axes.plot(at, values, label=name, linewidth=1.8, markeredgecolor="white", **style)
        if method != "srw":
            continue
        # Hollow where only bounds are known.
        open_at = [k for k, point in enumerate(points) if point[method]["gap"] > PROVEN]
        hollow = {**style, "linestyle": "none", "markerfacecolor": "white", "zorder": 5}
        if open_at:
            axes.plot([at[k] for k in open_at], [values[k] for k in open_at], **hollow)


def _dress(grid: Any) -> None:
    for axes in grid.ravel():
        tidy(axes)
        axes.grid(True, color="#E3E3E3", linewidth=0.6)
    for axes in grid[0]:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    for axes in grid[0, :2]:
        axes.axhline(1.0, color=INK, linewidth=0.8)
        axes.set_yticks([1, 2, 5, 10, 20], minor=False)
        axes.yaxis.set_minor_formatter(lambda value, _: "")
    for axes in grid[1]:
        axes.set_ylim(-0.04, 1.06)
    for axes in grid[:, 2]:
        axes.set_xscale("log")
    lines = grid[0, 2].lines
    ticks = [float(value) for value in lines[0].get_xdata()]
    grid[1, 2].set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    grid[1, 2].set_xticks([], minor=True)
    grid[0, 0].set_ylabel("value / noiseless value")
    grid[0, 2].set_ylabel("relative error of the value")
    grid[1, 0].set_ylabel("choice on the true features")


POINTS, FEATURES = 100, 30
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
COUNTS = (0, 5, 10, 20, 40, 80)
# Shares of n at which the error is measured.
SIZES = (0.25, 0.5, 1.0, 2.0, 4.0)


def robustness(
    n: int = POINTS,
    seed: int = 0,
    *,
    repeats: int = 3,
    levels: Sequence[float] = LEVELS,
    counts: Sequence[int] = COUNTS,
    sizes: Sequence[float] = SIZES,
    folder: Path | None = None,
    progress: bool = False,
) -> Reproduction:
    """Sweep the noise, the features of noise and the points, on two pairs of clouds.

    Both have two informative features, and others that are normal noise: a fragmented hypercube,
    x + 2 sign(x), and a disk that becomes an annulus. A method's value is held against its own
    value on the informative features alone, and against the true one, which noise of the same
    distribution on both sides does not change. Arguments as in `RunOptions`, and: `repeats`, the
    draws of every setting, whose mean is told; `levels`, `counts` and `sizes`, the standard
    deviations and numbers of features of noise, and shares of n.

    Examples
    --------
    >>> made = robustness(8, repeats=1, levels=[0.0, 0.2], counts=[0], sizes=[1.0])
    >>> made.numbers["over_level"]["hypercube"][0]["ot"]["ratio"]
    1.0
    """
    seeds = range(seed, seed + repeats)
    noise = FEATURES - INFORMATIVE
    sweeps = {
        "over_level": [Setting(n, noise, float(level)) for level in levels],
        "over_features": [Setting(n, count, 1.0) for count in counts],
        "over_n": [Setting(max(2, round(share * n)), noise, 1.0) for share in sizes],
    }
    whole = Setting(n, noise, 1.0)
    draws = {
        (name, setting, turned): [Draw(name, setting, k, turned) for k in seeds]
        for name in CLOUDS
        for setting, turned in [*((s, False) for s in chain(*sweeps.values())), (whole, True)]
    }
    made = measure_all(list(chain(*draws.values())), folder, progress)

    def mean(name: str, setting: Setting, turned: bool = False) -> dict[str, Any]:
        return averaged([made[draw.key] for draw in draws[name, setting, turned]])

    found: dict[str, Any] = {
        what: {
            name: [
                {"n": one.n, "noise_features": one.noise, "level": one.level, **mean(name, one)}
                for one in settings
            ]
            for name in CLOUDS
        }
        for what, settings in sweeps.items()
    }
    numbers: dict[str, Any] = {
        "figure": "robustness",
        "n": n,
        "seed": seed,
        "repeats": repeats,
        "features": FEATURES,
        "methods": METHODS,
        "measures": {
            "ratio": "value over the method's own value on the informative features alone",
            "error": "|value / true value - 1|",
            "recovered": "share of the adversary's choice on the informative features",
            "excess": "cost of the plan there: 0 is the noiseless plan of OT, 1 the plan a b^T",
        },
        "truth": {name: cloud.truth for name, cloud in CLOUDS.items()},
        **found,
        "turned": {
            name: {
                method: {key: numbers[key] for key in ("ratio", "excess")}
                for method, numbers in mean(name, whole, turned=True).items()
            }
            for name in CLOUDS
        },
    }
    notes = (
        "True values do not change with noise that is the same on both sides; what changes is "
        "how far a sample of n points is from them.",
        "For FROT every feature is a group; SRW is told the right dimension, k = 2.",
        *_unsolved(found),
    )
    return Reproduction(
        "robustness", numbers, claims(numbers), lambda: draw_robustness(numbers), notes
    )


def _unsolved(found: dict[str, dict[str, list[dict[str, Any]]]]) -> list[str]:
    """Say where SRW's solver stopped early: its value there is an upper bound, no more."""
    points = [p for by_cloud in found.values() for points in by_cloud.values() for p in points]
    wide = [point["srw"]["gap"] for point in points if point["srw"]["gap"] > PROVEN]
    if not wide:
        return []
    return [
        f"SRW's solver stopped before its tolerance in {len(wide)} of {len(points)} settings, with "
        f"gaps up to {max(wide):.0%}: its values there (hollow in the picture) are upper bounds, "
        "and its choice and plan may not be the best."
    ]


EXPERIMENT = Experiment(
    "robustness",
    "values, choices and plans of robust transports stay as they are when features of noise come",
    robustness,
    pieces="draws",
    papers=False,
)
