"""What eta does: which layers are used, how well they match, and one pair point by point.

The paper's figure of layer importance and of one-to-one matches, and its table over eta.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from frot.cli.reproduce.experiment import Check, Table, Verdict
from frot.cli.reproduce.pairs import Choice
from frot.correspondence import Matcher, Pair, plot_matches
from frot.show.style import BLUE, GREEN, ORANGE, legend_below, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from frot.cli.reproduce.pair_runs import Runs

__all__ = [
    "ETAS",
    "SWEEP",
    "draw_layer_weights",
    "draw_one_to_one",
    "layers_used",
    "sweep_table",
    "sweep_verdicts",
]

# The paper's table has these.
ETAS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 2.0, 3.0, 5.0)
PAPER: dict[str, Any] = {"steps": 3, "prior": "uniform"}
# How the weights are found: by the paper's three steps, to the optimum, and that with this
# library's prior.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "paper": ("FROT, the paper's", PAPER),
    "solved": ("FROT, solved", {"prior": "uniform"}),
    "prior": ("FROT, coherence prior", {}),
}


def _key(kind: str, eta: float) -> str:
    return f"{kind} eta={eta:g}"


SWEEP: dict[str, Choice] = {
    _key(kind, eta): Choice(f"{label}, eta = {eta:g}", "frot", {**settings, "eta": eta})
    for kind, (label, settings) in KINDS.items()
    for eta in ETAS
}


def layers_used(alpha: np.ndarray) -> float:
    """Return how many layers are used: exp of the entropy of their weights, a mean over pairs.

    Parameters
    ----------
    alpha : array of shape (pairs, L)
        NaN is returned where there are no pairs.

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
    alpha = runs.alpha[:, runs.choices.index(_key(kind, eta))]
    return alpha[~np.isnan(alpha).any(axis=1)]


def _score(
    rows: Sequence[Mapping[str, Any]], part: str, network: str, key: str, hough: bool
) -> float:
    wanted = {
        "pairs_of": part, "network": network, "choice": key, "hough": hough, "transfer": "median",
    }  # fmt: skip
    found = next(r for r in rows if all(r[name] == value for name, value in wanted.items()))
    return np.nan if found["pck"] is None else found["pck"]


def sweep_table(rows: Sequence[Mapping[str, Any]], part: str, runs: Sequence[Runs]) -> Table:
    """Return layers used and PCK over eta, a row an eta and a column a network and kind."""
    lines = []
    for eta in ETAS:
        line = [f"{eta:g}"]
        for one in runs:
            for kind in KINDS:
                scores = (
                    _score(rows, part, one.network, _key(kind, eta), hough)
                    for hough in (False, True)
                )
                used = layers_used(_weights(one, kind, eta))
                pck = " / ".join(f"{score:.1f}" for score in scores)
                line.append("" if np.isnan(used) else f"{used:.1f}; {pck}")
        lines.append(line)
    heads = [f"{one.network}, {label}" for one in runs for label, _ in KINDS.values()]
    count = max(len(_weights(one, kind, ETAS[0])) for one in runs for kind in KINDS)
    note = (
        "Layers used (exp of the entropy of the weights); PCK at .1 per image in percent, without "
        f"/ with Hough matching. {count} pairs."
    )
    return Table(f"Over eta, {part}", ["eta", *heads], lines, note)


def sweep_verdicts(
    rows: Sequence[Mapping[str, Any]], swept: Mapping[str, Sequence[Runs]]
) -> tuple[Verdict, ...]:
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
                np.mean([_score(rows, part, one.network, _key("paper", eta), True) for eta in some])
                for some in ([e for e in ETAS if e < 1.0], [e for e in ETAS if e >= 1.0])
            )
            text = f"{one.network}, {part}, with Hough: {low:.1f} below 1, {high:.1f} from 1 on"
            better.append(Check(text, bool(low >= high)))
    found = [
        ("layers", "the lower eta, the fewer layers are used", fewer),
        ("eta", "eta < 1 gives the better matches", better),
    ]
    return tuple(
        Verdict(name, claim, tuple(checks), "Claim") for name, claim, checks in found if checks
    )


def draw_layer_weights(
    rows: Sequence[Mapping[str, Any]], part: str, runs: Sequence[Runs]
) -> Figure:
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
        _draw_scores(column[-1], rows, part, one.network)
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, names, title="eta", loc="outside right center", frameon=False, fontsize=9
    )
    narrow = {"columnspacing": 1.0, "handlelength": 1.6}
    legend_below(figure, grid[-1, 0], columns=len(KINDS), size=8, **narrow)
    figure.suptitle(f"Layers and PCK by eta, one in ten of {part}", fontsize=11)
    return figure


def _draw_scores(axes: Any, rows: Sequence[Mapping[str, Any]], part: str, network: str) -> None:
    for (kind, (label, _)), colour in zip(KINDS.items(), (ORANGE, GREEN, BLUE), strict=True):
        for hough, style in ((False, ":"), (True, "-")):
            scores = [_score(rows, part, network, _key(kind, eta), hough) for eta in ETAS]
            words = f"{label},\n{'with' if hough else 'without'} Hough matching"
            axes.plot(ETAS, scores, style, color=colour, marker="o", markersize=3.5, label=words)
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
