"""Layers of noise among the real ones: where alpha goes, and what it does to the matches."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from frot._base.errors import InputError
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
    work_fingerprint,
)
from frot.cli.reproduce.pairs import Choice, PairRun, network, run_pair
from frot.correspondence import (
    Backbone,
    Estimate,
    Matcher,
    NoisyBackbone,
    Pair,
    PairSet,
    pck,
    pck_difference,
    pf_willow,
)
from frot.show.style import BLUE, GREY, INK, ORANGE, legend_below, new_figure, tidy
from frot.solvers.progress import counting_bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The paper's entropy and its eta, whatever the library's own are.
PLAIN = {"prior": "uniform", "eta": 0.3}
CHOICES: dict[str, Choice] = {
    "uniform": Choice("OT, uniform mean", "uniform"),
    "paper": Choice("FROT of the paper, T = 3, η = .3", "frot", {**PLAIN, "steps": 3}),
    "optimum": Choice("FROT, optimum, η = .3", "frot", PLAIN),
    "sharp": Choice("FROT, optimum, η = .1", "frot", {**PLAIN, "eta": 0.1}),
    "mean": Choice("FROT, mean-normalised, η = .3", "frot", {**PLAIN, "normalise": "mean"}),
    "regret": Choice("FROT, regret, η = .3", "frot", {**PLAIN, "normalise": "regret"}),
    "weighted": Choice("OT, weighted by coherence", "weighted"),
    "coherence": Choice("FROT, coherence prior (default)", "frot"),
}


class NoisyRun(NamedTuple):
    """What a choice made of a pair, without noise and with it."""

    quiet: PairRun
    noisy: PairRun


def run_noisy(
    backbone: Backbone,
    pairs: PairSet,
    count: int,
    keys: Sequence[str],
    *,
    noise: int = 3,
    seed: int = 0,
    folder: Path | None = None,
    tick: Callable[[], None] = lambda: None,
) -> dict[str, list[NoisyRun]]:
    """Match `count` of the pairs by every choice asked for, taking up a run that was stopped.

    `noise` layers of noise are drawn from `seed`, and `tick` is called for every pair that is done.
    For every choice the pairs are in their order.
    """
    matcher = Matcher(NoisyBackbone(backbone, noise, seed))
    work = work_fingerprint(matcher=matcher.fingerprint, pairs=pairs.fingerprint, choices=CHOICES)
    found: dict[str, list[NoisyRun]] = {key: [] for key in keys}
    with open_store(folder) as kept:
        done = kept.finished(work)
        for pair in pairs.first(count):
            # Names do not depend on how many pairs or choices are asked for this time.
            at = {key: f"{pair.id} {key}" for key in keys}
            known = {
                key: NoisyRun(*map(PairRun.from_json, done[k]))
                for key, k in at.items()
                if k in done
            }
            if missing := [key for key in keys if key not in known]:
                made = _both(matcher, backbone.layers, pair, missing)
                for key, both in made.items():
                    kept.add(at[key], [one.as_json() for one in both], work)
                known |= made
            for key in keys:
                found[key].append(known[key])
            tick()
    return found


def _both(
    matcher: Matcher, real: Sequence[str], pair: Pair, keys: Sequence[str]
) -> dict[str, NoisyRun]:
    """Match with noise, and without it from the same features."""
    choices = {key: CHOICES[key] for key in keys}
    noisy = run_pair(matcher, pair, choices)
    quiet = run_pair(matcher.with_layers(real), pair, choices)
    return {key: NoisyRun(quiet[key], noisy[key]) for key in keys}


# Weight on noise that does no harm, and how many standard errors make a difference.
LITTLE, BEYOND = 0.01, 2.0


def claims(numbers: dict[str, Any]) -> tuple[Verdict, ...]:
    """Return the verdicts: the trap, what does not repair it, and what does."""
    made = numbers["networks"]
    count = numbers["noise_layers"]
    trap, scaled, repaired = [], [], []
    for name, found in made.items():
        choices = found["choices"]
        share = count / (count + len(found["layers"]))
        for key in ("paper", "optimum", "sharp"):
            trap += [_drawn(name, choices[key], share), _changed(name, choices[key], "plain", True)]
        for key in ("mean", "regret"):
            if key in choices:
                scaled += [_drawn(name, choices[key], share), _behind(name, choices[key])]
        repaired += [
            _kept_off(name, choices["coherence"]),
            *(_changed(name, choices["coherence"], way, False) for way in ("plain", "hough")),
            *(_behind(name, choices[key]) for key in ("paper", "optimum", "sharp", "uniform")),
        ]
    return verdicts_of(
        "Noise layers,",
        (
            "the trap",
            "The adversary rewards large costs: layers of noise draw more than their share of the "
            "weight, and matches get worse.",
            trap,
        ),
        (
            "normalising",
            "Costs divided by their means, or less their optima, do not repair it: the noise draws "
            "more than its share, and matches are worse than with the coherence prior.",
            scaled,
        ),
        (
            "the coherence prior",
            "A prior by coherence keeps the weight off the noise and the matches as they were; "
            "with noise it is ahead of FROT without it, and of uniform weights.",
            repaired,
        ),
    )


def _drawn(name: str, part: dict[str, Any], share: float) -> Check:
    mass = part["noise"]["value"]
    text = f"{name}: {part['label']} puts {mass:.1%} on the noise, whose share is {share:.1%}"
    return Check(text, mass > share)


def _kept_off(name: str, part: dict[str, Any]) -> Check:
    mass = part["noise"]["value"]
    return Check(f"{name}: {part['label']} puts {mass:.2%} on the noise", mass <= LITTLE)


def _changed(name: str, part: dict[str, Any], way: str, worse: bool) -> Check:
    """Whether noise makes matches worse, or does not."""
    change = part[way]["change"]
    how = "without" if way == "plain" else "with"
    text = f"{name}: {part['label']} changes by {points(change)} with noise, {how} Hough"
    return Check(text, (change["value"] < -BEYOND * _error(change)) == worse)


def _behind(name: str, part: dict[str, Any]) -> Check:
    ahead = part["plain"]["ahead"]
    text = f"{name}: with noise the coherence prior is {points(ahead)} ahead of {part['label']}"
    return Check(f"{text}, without Hough", ahead["value"] > BEYOND * _error(ahead))


def points(found: dict[str, float | None]) -> str:
    """Write a difference in points of a hundred, with its standard error."""
    value, error = (None if one is None else 100 * one for one in (found["value"], found["error"]))
    assert value is not None
    return with_error(value, error, "+.1f")


def _error(found: dict[str, float | None]) -> float:
    """A single pair proves nothing."""
    return float("inf") if found["error"] is None else found["error"]


HEIGHT = 0.36


def draw_noise_layers(numbers: dict[str, Any]) -> Figure:
    """Draw alpha on real layers and on noise, and PCK without and with noise, for each choice."""
    made = numbers["networks"]
    rows = max(len(found["choices"]) for found in made.values())
    figure: Any = new_figure(13.0, 0.9 + len(made) * (0.8 + 0.52 * rows))
    grid = figure.subplots(len(made), 3, squeeze=False, sharey="row")
    for line, (name, found) in zip(grid, made.items(), strict=True):
        choices = list(found["choices"].values())
        _weights(line[0], choices, numbers["noise_layers"], len(found["layers"]))
        _scores(line[1], choices, "plain")
        _scores(line[2], choices, "hough")
        counts = f"{len(found['layers'])} + {numbers['noise_layers']} layers"
        line[0].set_title(f"{name}, {counts}: weights α", fontsize=10)
        line[1].set_title("PCK .1 without Hough matching", fontsize=10)
        line[2].set_title("PCK .1 with Hough matching", fontsize=10)
    legend_below(figure, *grid[0, :2], columns=5)
    return figure


def _weights(axes: Any, choices: list[dict[str, Any]], noise: int, real: int) -> None:
    at = np.arange(len(choices))
    masses = np.array([part["noise"]["value"] for part in choices])
    axes.barh(at, 1.0 - masses, 2 * HEIGHT, color=BLUE, label="real layers")
    axes.barh(at, masses, 2 * HEIGHT, left=1.0 - masses, color=ORANGE, label="layers of noise")
    for y, mass in zip(at, masses, strict=True):
        axes.text(1.02, y, f"{mass:.1%}", va="center", fontsize=9, color=INK)
    share = noise / (noise + real)
    axes.axvline(1.0 - share, color=INK, linewidth=1.0, linestyle=":", label="share by number")
    axes.set_xlim(0.0, 1.16)
    axes.set_xticks([0.0, 0.5, 1.0])
    _dress(axes, choices)


def _scores(axes: Any, choices: list[dict[str, Any]], way: str) -> None:
    at = np.arange(len(choices))
    # Solid orange is the weight on noise; scores under noise are hatched.
    looks = {
        "quiet": {"color": GREY, "edgecolor": GREY, "label": "without noise (± standard error)"},
        "noisy": {
            "color": "white", "edgecolor": ORANGE, "hatch": "////",
            "label": "with noise (± standard error)",
        },
    }  # fmt: skip
    bars = {"ecolor": INK, "elinewidth": 1.0, "capsize": 2.0}
    for side, (key, look) in zip((-0.5, 0.5), looks.items(), strict=True):
        found = [part[way][key] for part in choices]
        values = np.array([100.0 * one["value"] for one in found])
        errors = np.array([100.0 * (one["error"] or 0.0) for one in found])
        axes.barh(at + side * HEIGHT, values, HEIGHT, xerr=errors, error_kw=bars, **look)
        for y, value, error in zip(at, values, errors, strict=True):
            place = (value + error + 1.0, y + side * HEIGHT)
            axes.text(*place, f"{value:.0f}", va="center", fontsize=8, color=INK)
    axes.set_xlim(0.0, 108.0)
    axes.set_xlabel("% of points")
    _dress(axes, choices)


def _dress(axes: Any, choices: list[dict[str, Any]]) -> None:
    tidy(axes)
    axes.set_yticks(np.arange(len(choices)), [part["label"] for part in choices])
    axes.set_ylim(len(choices) - 0.5, -0.5)


HEADER = (
    "choice",
    "α on the noise",
    "PCK .1",
    "with noise",
    "change",
    "PCK .1, Hough",
    "with noise",
    "change",
    "seconds",
)


def _table(name: str, made: dict[str, Any]) -> ExperimentTable:
    rows = []
    for part in made["choices"].values():
        row = [part["label"], f"{part['noise']['value']:.1%}"]
        for way in ("plain", "hough"):
            row += [_share(part[way]["quiet"]), _share(part[way]["noisy"])]
            row.append(points(part[way]["change"]))
        rows.append((*row, f"{part['seconds']:.2f}"))
    return ExperimentTable(f"{name}, {len(made['layers'])} layers", HEADER, rows)


def _share(found: dict[str, float | None]) -> str:
    return points(found).removeprefix("+")


THRESHOLD = 0.1
NOISE = 3
# Below this many pairs not even the standard errors are known.
FEW = 10
PAIRS = 20
DEFAULT_NETWORKS = ("efficientnet-lite2",)


def noise_layers(
    pairs: int = PAIRS,
    seed: int = 0,
    *,
    networks: Sequence[str] = DEFAULT_NETWORKS,
    regret: bool = False,
    data: str | os.PathLike[str] | None = None,
    folder: Path | None = None,
    progress: bool = False,
) -> Reproduction:
    """Plant three layers of noise in a network and match pairs of PF-WILLOW in every way.

    Arguments as in `RunOptions`; `regret` also tries costs less their own optima, which takes
    longer than all the rest.
    """
    names = list(dict.fromkeys(networks))
    if not names:
        raise InputError("networks: is empty; name at least one")
    willow = pf_willow(data)
    # All of them first: a missing file is told before an hour's work.
    backbones = {name: network(name, data) for name in names}
    keys = [key for key in CHOICES if regret or key != "regret"]
    count = len(willow.first(pairs))
    made: dict[str, Any] = {}
    with counting_bar("pairs", count * len(names), count * len(names), enabled=progress) as show:
        for name, backbone in backbones.items():
            found = run_noisy(
                backbone,
                willow,
                count,
                keys,
                noise=NOISE,
                seed=seed,
                folder=folder,
                tick=lambda: show(1, 1.0),
            )
            made[name] = {"layers": list(backbone.layers), **summary(found)}
    numbers: dict[str, Any] = {
        "figure": "noise-layers",
        "pairs": count,
        "classes": willow.first(count).counts,
        "seed": seed,
        "noise_layers": NOISE,
        "threshold": THRESHOLD,
        "measures": {
            "noise": "weight of the layers of noise, alpha, mean over the pairs",
            "quiet, noisy": "PCK per image without and with the layers of noise",
            "change": "noisy less quiet, on the same pairs",
            "ahead": "coherence prior less this choice, with the layers of noise",
        },
        "networks": made,
    }
    return Reproduction(
        "noise-layers",
        numbers,
        claims(numbers),
        lambda: draw_noise_layers(numbers),
        _notes(numbers),
        tuple(_table(name, one) for name, one in made.items()),
    )


def summary(found: dict[str, list[NoisyRun]]) -> dict[str, Any]:
    """Return weights and scores of every choice, with standard errors over the pairs."""
    best = found["coherence"]
    choices: dict[str, Any] = {}
    for key, those in found.items():
        part: dict[str, Any] = {"label": CHOICES[key].label}
        masses = np.array([one.noisy.alpha[-NOISE:].sum() for one in those])
        part["noise"] = {"value": float(masses.mean()), "error": standard_error(masses)}
        part["alpha"] = {
            "quiet": np.mean([one.quiet.alpha for one in those], axis=0).tolist(),
            "noisy": np.mean([one.noisy.alpha for one in those], axis=0).tolist(),
        }
        for way in ("plain", "hough"):
            quiet = [getattr(one.quiet, way) for one in those]
            noisy = [getattr(one.noisy, way) for one in those]
            theirs = [getattr(one.noisy, way) for one in best]
            part[way] = {
                "quiet": _estimate(pck(quiet, THRESHOLD)),
                "noisy": _estimate(pck(noisy, THRESHOLD)),
                "change": _estimate(pck_difference(noisy, quiet, THRESHOLD)),
                "ahead": _estimate(pck_difference(theirs, noisy, THRESHOLD)),
            }
        part["seconds"] = float(np.mean([one.noisy.seconds for one in those]))
        part["unconverged"] = sum(one.noisy.status != "CONVERGED" for one in those)
        choices[key] = part
    return {"choices": choices}


def _estimate(found: Estimate) -> dict[str, float | None]:
    """For JSON, which has no NaN: a single pair has no spread."""
    error = found.standard_error
    return {"value": found.value, "error": None if np.isnan(error) else error}


def _notes(numbers: dict[str, Any]) -> tuple[str, ...]:
    counts = numbers["classes"]
    notes = [
        f"{numbers['pairs']} pairs of PF-WILLOW, of {len(counts)} classes; ± is the standard error "
        "over them, of differences that of paired ones.",
        f"{numbers['noise_layers']} layers of independent Gaussian noise for every photograph, of "
        "the shapes of the network's own maps; the claims are not the paper's.",
    ]
    if numbers["pairs"] < FEW:
        notes.append(
            f"Of fewer than {FEW} pairs standard errors are themselves guesses: take no verdict "
            "for granted."
        )
    for name, made in numbers["networks"].items():
        if "regret" not in made["choices"]:
            notes.append("Regret was left out; --regret adds it, at 15 s to 30 s a solve.")
        short = {
            part["label"]: part["unconverged"]
            for key, part in made["choices"].items()
            if key != "paper" and part["unconverged"]
        }
        for label, count in short.items():
            notes.append(f"{name}: {label} stopped before its tolerance on {count} pairs.")
    return tuple(dict.fromkeys(notes))


def _check(options: RunOptions) -> None:
    pf_willow(options.data)
    for name in options.networks or DEFAULT_NETWORKS:
        network(name, options.data)


EXPERIMENT = Experiment(
    "noise-layers",
    "layers of noise trap the adversary, and a prior by coherence keeps it off them",
    noise_layers,
    _check,
    needs="PF-WILLOW",
    pieces="pairs",
    papers=False,
)
