"""Robustness to noise: FROT, SRW, max-sliced and plain transport, as in SRW's paper.

Both pairs of clouds have two informative features, and others that are normal noise. A method's
value is held against its own value on the informative features alone, and against the true one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

import frot
from _clouds import CLOUDS, INFORMATIVE, NAMES, TRUTH, Draw, sample
from _paper import relative_excess
from _runner import Experiment, Run
from frot._base.errors import collect_warnings
from frot.show.style import BLUE, GREEN, GREY, INK, ORANGE, legend_below, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Features of noise beside them.
NOISE = 28
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
COUNTS = (0, 5, 10, 20, 40, 80)
# Points, as shares of the option `n`, at which the error is measured.
SIZES = (0.25, 0.5, 1.0, 2.0, 4.0)
METHODS = {"frot": "FROT", "srw": "SRW (k = 2)", "max_sliced": "max-sliced", "ot": "OT"}
MEASURES = {
    "ratio": "value / noiseless value",
    "error": "relative error of the value",
    "recovered": "choice on the true features",
    "excess": "plan: way to no matching",
}
ROBUST = ("frot", "srw", "max_sliced")
# SRW's gap, far below the differences that matter here, and its rounds, each a transport.
TOL, ROUNDS = 5e-3, 500
# Where SRW's gap is wider than this, its value is told as what it is, an upper bound.
PROVEN = 0.02
# What counts as found, and as a plan about as good as without noise; and the level of noise at
# which choices and plans are judged, no louder than what the clouds move by.
FOUND, GOOD, LEVEL = 0.9, 0.1, 1.0

# Numbers of every method at a point of a sweep, and the points of a sweep.
Numbers = dict[str, dict[str, float]]
Sweep = list[dict[str, Any]]


def solve_all(X: np.ndarray, Y: np.ndarray) -> dict[str, frot.Result]:
    """Run the four methods; every feature is a group for FROT, and SRW is told the dimension."""
    with collect_warnings():
        return {
            "frot": frot.solve(X, Y, "each", eps=0.0),
            "srw": frot.srw(X, Y, INFORMATIVE, tol=TOL, max_iter=ROUNDS),
            "max_sliced": frot.max_sliced(X, Y, restarts=4),
            "ot": frot.wasserstein(X, Y, eps=0.0),
        }


def measure(draw: Draw) -> Numbers:
    """Return every method's value against the noiseless one and the truth, choice and plan."""
    clean, noisy = sample(draw)
    quiet, loud = solve_all(*clean), solve_all(*noisy)
    cost = ((clean[0][:, None] - clean[1][None]) ** 2).sum(axis=2)
    return {
        name: {
            "gap": result.gap,
            "ratio": result.value / quiet[name].value,
            "error": abs(result.value / TRUTH[draw.cloud][name] - 1.0),
            "recovered": recovered(result, noisy[0].shape[1]),
            "excess": relative_excess(result.plan, quiet["ot"].plan, cost),
        }
        for name, result in loud.items()
    }


def recovered(result: frot.Result, d: int) -> float:
    """Return the share of a choice that falls on the informative features.

    FROT's weights on them; the trace of SRW's Omega, of k, in their plane; the squared length of
    the direction in it. OT chooses nothing: their share of all features.
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


def run(run: Run) -> None:
    n = run.options.n
    seeds = range(run.seed, run.seed + run.options.draws)
    settings = {
        "level": [(n, NOISE, level) for level in LEVELS],
        "features": [(n, count, 1.0) for count in COUNTS],
        "n": [(max(2, round(share * n)), NOISE, 1.0) for share in SIZES],
        "turned": [(n, NOISE, 1.0)],
    }
    # The draws of every point of every sweep, of which some are in several.
    draws: list[tuple[str, str, list[Draw]]] = []
    for sweep, cloud in product(settings, CLOUDS):
        for points, noise, level in settings[sweep]:
            turned = sweep == "turned"
            each = [Draw(cloud, points, noise, level, seed, turned) for seed in seeds]
            draws.append((sweep, cloud, each))
    todo = {draw.key: draw for _, _, each in draws for draw in each}
    numbers = run.pieces("draws", todo, measure, depends={"tol": TOL, "rounds": ROUNDS})
    sweeps: dict[str, dict[str, Sweep]] = {sweep: {} for sweep in settings}
    for sweep, cloud, each in draws:
        point = {"n": each[0].n, "features": each[0].noise, "level": each[0].level}
        point |= average([numbers[draw.key] for draw in each])
        sweeps[sweep].setdefault(cloud, []).append(point)
    run.numbers |= {"sweeps": sweeps, "truth": TRUTH}
    claim_all(run, sweeps)
    table(run, sweeps)
    run.note("For FROT every feature is a group; SRW is told the right dimension, k = 2.")
    gaps = [p["srw"]["gap"] for clouds in sweeps.values() for each in clouds.values() for p in each]
    if wide := [gap for gap in gaps if gap > PROVEN]:
        run.note(
            f"SRW's solver stopped before its tolerance in {len(wide)} of {len(gaps)} settings, "
            f"with gaps up to {max(wide):.0%}: its values there (hollow in the picture) are upper "
            "bounds, and its choice and plan may not be the best."
        )
    run.figure(draw_sweeps(sweeps), "value, error and choice over noise, features and points")
    run.figure(draw_first(sweeps), "value and error on disk and annulus", name="first")


def average(draws: Sequence[Numbers]) -> Numbers:
    """Return the mean of every number over the draws of a setting."""
    means = {}
    for method in METHODS:
        names = draws[0][method]
        means[method] = {name: float(np.mean([d[method][name] for d in draws])) for name in names}
    return means


def claim_all(run: Run, sweeps: Mapping[str, Mapping[str, Sweep]]) -> None:
    """State what is claimed of robust methods: values, errors, choices, plans, a rotation."""
    level, sizes = sweeps["level"], sweeps["n"]
    values = {}
    for key, words in (
        ("level", "standard deviations of noise"),
        ("features", "features of noise"),
    ):
        for cloud, points in sweeps[key].items():
            noisy = [point for point in points if point["level"] and point["features"]]
            last = points[-1]
            ratios = ", ".join(f"{METHODS[m]} x{last[m]['ratio']:.2f}" for m in METHODS)
            values[f"{NAMES[cloud]}: at {last[key]:g} {words} {ratios}"] = all(
                moved(point, method) < moved(point, "ot") for point in noisy for method in ROBUST
            )
    run.claim("Robust values move less under louder noise, and more of it, than OT's.", values)
    against = {}
    for cloud, points in level.items():
        # Where SRW is not solved, nothing can be said.
        solved = [point for point in points if point["srw"]["gap"] <= PROVEN]
        ours, theirs = (max(moved(p, method) for p in solved) for method in ("frot", "srw"))
        last = max(point["level"] for point in solved)
        detail = f"FROT by at most {math.expm1(ours):.1%}, SRW by {math.expm1(theirs):.1%}"
        against[f"{NAMES[cloud]}: {detail}, for noise up to {last:g}"] = ours <= theirs
    run.claim("FROT's value moves no more under noise than SRW's.", against)
    errors, choices, plans, turned = {}, {}, {}, {}
    for cloud, method in product(CLOUDS, ROBUST):
        name = f"{NAMES[cloud]}: {METHODS[method]}"
        first, last = sizes[cloud][0], sizes[cloud][-1]
        detail = ", ".join(f"{p[method]['error']:.1%} (n = {p['n']})" for p in (first, last))
        below = all(p[method]["error"] < p["ot"]["error"] for p in sizes[cloud])
        text = f"{name} {detail}; OT's last is {last['ot']['error']:.0%}"
        errors[text] = below and last[method]["error"] < first[method]["error"]
        judged = [point for point in level[cloud] if 0.0 < point["level"] <= LEVEL]
        least = min(point[method]["recovered"] for point in judged)
        text = f"{name} has at least {least:.1%} on them for noise up to {LEVEL:g}"
        choices[text] = least >= FOUND
        worst, plain = (max(point[m]["excess"] for point in judged) for m in (method, "ot"))
        text = f"{name}'s plan is {worst:.1%} of the way to no matching, OT's {plain:.1%}"
        plans[text] = worst <= GOOD and worst < plain
        straight = min(level[cloud], key=lambda point: abs(point["level"] - LEVEL))
        before, after = straight[method]["ratio"], sweeps["turned"][cloud][0][method]["ratio"]
        turned[f"{name} x{before:.2f}, and x{after:.2f} after"] = abs(after / before - 1.0) <= 0.05
    run.claim(
        "With n points the error of robust values is below OT's, and less with the most points "
        "than with the fewest.",
        errors,
    )
    run.claim("The adversaries find the two informative features.", choices)
    run.claim("Robust plans are about as good on these features as without noise.", plans)
    run.claim("Values of robust methods stay as they are under a random rotation.", turned)


def moved(point: Mapping[str, Any], method: str) -> float:
    return abs(math.log(point[method]["ratio"]))


def table(run: Run, sweeps: Mapping[str, Mapping[str, Sweep]]) -> None:
    """Tell the measures over every sweep, a column a cloud and method."""
    rows = []
    for sweep, words, measured in (
        ("level", "noise of {:g}", "ratio"),
        ("features", "{} features of noise", "ratio"),
        ("n", "n = {}", "error"),
        ("level", "noise of {:g}", "recovered"),
        ("level", "noise of {:g}", "excess"),
    ):
        for place, point in enumerate(sweeps[sweep]["hypercube"]):
            row = [f"{MEASURES[measured]}, {words.format(point[sweep])}"]
            for cloud, method in product(CLOUDS, METHODS):
                numbers = sweeps[sweep][cloud][place][method]
                value = numbers[measured]
                cell = f"{value:.3g}" if measured == "ratio" else f"{value:.1%}"
                unsolved = method == "srw" and numbers["gap"] > PROVEN
                row.append(f"≤ {cell}" if unsolved and measured == "ratio" else cell)
            rows.append(row)
    header = ["", *(f"{cloud}, {METHODS[method]}" for cloud, method in product(CLOUDS, METHODS))]
    run.table("Means over the draws", header, rows, "≤: an upper bound, where SRW was not solved.")


STYLES = {
    "frot": (BLUE, "o", "-"),
    "srw": (GREEN, "s", "-"),
    "max_sliced": (ORANGE, "^", "-"),
    "ot": (GREY, "D", "--"),
}
LABELS = {
    "level": "standard deviation of the noise",
    "features": "features of noise",
    "n": "points in each cloud",
}


def draw_sweeps(sweeps: Mapping[str, Mapping[str, Sweep]]) -> Figure:
    """Draw value and choice over noise, features of noise and points, for both clouds."""
    figure: Any = new_figure(12.5, 13.0)
    parts = figure.subfigures(2, 1)
    for part, (cloud, name) in zip(parts, NAMES.items(), strict=True):
        part.suptitle(name, fontsize=13, x=0.01, ha="left")
        grid = part.subplots(2, 3, sharex="col")
        for (above, below), (key, label) in zip(grid.T, LABELS.items(), strict=True):
            draw_lines(above, sweeps[key][cloud], key, "error" if key == "n" else "ratio")
            draw_lines(below, sweeps[key][cloud], key, "recovered")
            above.set_yscale("log")
            below.set_ylim(-0.04, 1.06)
            below.set_xlabel(label)
        sizes = [point["n"] for point in sweeps["n"][cloud]]
        grid[0, 2].set_xscale("log")
        grid[1, 2].set_xticks(sizes, list(map(str, sizes)))
        grid[1, 2].set_xticks([], minor=True)
        grid[0, 0].set_ylabel(MEASURES["ratio"])
        grid[0, 2].set_ylabel(MEASURES["error"])
        grid[1, 0].set_ylabel(MEASURES["recovered"])
        for axes in grid[0, :2]:
            axes.axhline(1.0, color=INK, linewidth=0.8)
        for axes in grid.ravel():
            axes.grid(True, color="#E3E3E3", linewidth=0.6)
            tidy(axes)
    legend_below(figure, parts[0].axes[0], columns=4, size=11)
    return figure


def draw_first(sweeps: Mapping[str, Mapping[str, Sweep]]) -> Figure:
    """Draw what the first page shows: two panels where FROT holds, and the one where it fails."""
    figure: Any = new_figure(12.0, 3.9)
    panels = {
        "features": ("More features of noise", "ratio"),
        "n": ("Fewer points", "error"),
        "level": ("Louder noise: here FROT fails", "recovered"),
    }
    for axes, (key, (title, measured)) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        points = sweeps[key]["annulus"]
        draw_lines(axes, points, key, measured)
        axes.set_title(title, fontsize=12)
        axes.set_xlabel(LABELS[key])
        axes.set_ylabel(MEASURES[measured])
        if measured != "recovered":
            axes.set_yscale("log")
        if measured == "ratio":
            axes.axhline(1.0, color=INK, linewidth=0.8)
        if key == "n":
            sizes = [point["n"] for point in points]
            axes.set_xscale("log")
            axes.set_xticks(sizes, list(map(str, sizes)))
            axes.set_xticks([], minor=True)
        axes.grid(True, color="#E3E3E3", linewidth=0.6)
        tidy(axes)
    legend_below(figure, figure.axes[0], columns=4, size=11)
    return figure


def draw_lines(axes: Any, points: Sweep, key: str, measured: str) -> None:
    places = [point[key] for point in points]
    # Methods that agree lie on each other; the later ones are drawn smaller to show both.
    for size, (method, name) in zip((9.0, 7.0, 5.5, 4.5), METHODS.items(), strict=True):
        colour, marker, dashes = STYLES[method]
        values = [point[method][measured] for point in points]
        style = {"color": colour, "marker": marker, "markersize": size}
        axes.plot(places, values, dashes, label=name, markeredgecolor="white", **style)
        unsolved = [k for k, point in enumerate(points) if point[method]["gap"] > PROVEN]
        if method == "srw" and unsolved:
            x, y = ([values[k] for k in unsolved] for values in (places, values))
            axes.plot(x, y, "none", markerfacecolor="white", zorder=5, **style)


EXPERIMENT = Experiment(
    "robustness",
    "Values, choices and plans of robust transports stay as they are when features of noise come.",
    run,
    options={"n": (100, "points in each cloud"), "draws": (3, "draws of every setting")},
)

if __name__ == "__main__":
    EXPERIMENT.main()
