"""Layers of noise among a network's own: where the weights go, and what it does to the matches.

The paper's adversary rewards large costs, and noise costs more than anything that matches. Every
row is matched with all layers and, from the same features, without the layers of noise: PF-WILLOW
with EfficientNet-Lite2, before Hough matching.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from _match_methods import Normalised
from _pairs import (
    THRESHOLD,
    Network,
    PairTask,
    Row,
    balanced,
    decided,
    dependencies,
    evaluations,
    match_pair,
    network_matcher,
    pair_count,
    prepare,
    with_error,
)
from _runner import Experiment, Run
from frot.correspondence import Evaluation, default_backbone, load_pairs
from frot.show.style import BLUE, GREY, INK, ORANGE, legend_below, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOISE = 3
# The paper's entropy of the weights, and its eta.
PLAIN = {"prior": "uniform", "eta": 0.3}
UNIFORM, DEFAULT = "OT, mean of layers", "FROT, coherence prior (default)"
TRAPPED = {
    "FROT, the paper's three steps, eta = .3": {**PLAIN, "steps": 3},
    "FROT, optimum, eta = .3": PLAIN,
    "FROT, optimum, eta = .1": {**PLAIN, "eta": 0.1},
}
SCALED = {
    "FROT, costs over their means, eta = .3": {"method": Normalised("mean")},
    "FROT, costs less their optima, eta = .3": {"method": Normalised("regret")},
}
ROWS: dict[str, dict[str, Any]] = {
    UNIFORM: {"method": "uniform"},
    **TRAPPED,
    **SCALED,
    "OT, mean weighted by coherence": {"method": "weighted"},
    DEFAULT: {},
}
# Weight on noise that does no harm.
LITTLE = 0.01
# By the label of the row: with the layers of noise, and without.
Both = Mapping[str, tuple[Evaluation, Evaluation]]


def run(run: Run) -> None:
    willow = load_pairs("pf-willow", run.options.data)
    pairs = balanced(willow, pair_count(run.options.pairs), run.seed)
    network = Network(noise=NOISE, seed=run.seed, side=run.options.side)
    layers = network_matcher(network, "frot").backbone.layers
    labels = [label for label in ROWS if run.options.regret or "optima" not in label]
    noisy = {label: Row(settings={**ROWS[label], "agreement": 0}) for label in labels}
    quiet = {
        f"{label}, without noise": replace(row, layers=layers[:-NOISE])
        for label, row in noisy.items()
    }
    rows = noisy | quiet
    tasks = {pair.id: PairTask(network, rows, pair) for pair in pairs}
    depends = dependencies(network, rows, willow)
    records = run.pieces("pairs", tasks, match_pair, depends=depends, prepare=prepare)
    made = evaluations(pairs, rows, records)
    both = {label: (made[label], made[f"{label}, without noise"]) for label in labels}
    share = NOISE / len(layers)
    add_claims(run, both, share)
    header = ["", "weight on the noise", "PCK .1 without noise", "with noise", "change", "s"]
    lines = []
    for label, (loud, still) in both.items():
        scores = [with_error(one.pck(THRESHOLD)) for one in (still, loud)]
        change = with_error(loud.difference(still, THRESHOLD))
        lines.append([label, f"{on_noise(loud):.1%}", *scores, change, f"{loud.seconds:.2f}"])
    note = (
        f"{len(pairs)} pairs, {NOISE} layers of noise among {len(layers)}: a share of {share:.1%}. "
        "PCK per photograph in percent, ± the standard error over pairs."
    )
    run.table("PF-WILLOW", header, lines, note)
    run.numbers["weights"] = {label: loud.alpha for label, (loud, _) in both.items()}
    if not run.options.regret:
        run.note("Costs less their optima take ten times as long; --regret adds them.")
    text = "Weights on real layers and on noise, and PCK without and with the noise."
    run.figure(draw(both, share), text)


def on_noise(evaluation: Evaluation) -> float:
    """Return the mean weight of the layers of noise, which are the last."""
    return sum(list(evaluation.alpha.values())[-NOISE:])


def add_claims(run: Run, both: Both, share: float) -> None:
    """State the trap, what does not repair it, and what does."""

    def drawn(label: str) -> dict[str, bool | None]:
        weight = on_noise(both[label][0])
        return {
            f"{label} puts {weight:.1%} on the noise, whose share is {share:.1%}": weight > share
        }

    def behind(label: str) -> dict[str, bool | None]:
        apart = both[DEFAULT][0].difference(both[label][0], THRESHOLD)
        told = f"with noise the coherence prior is {with_error(apart)} above {label}"
        return {told: decided(apart)}

    def harmed(label: str) -> dict[str, bool | None]:
        loss = both[label][1].difference(both[label][0], THRESHOLD)
        return {f"{label} loses {with_error(loss)} by the noise": decided(loss)}

    trap, scaled, repaired = {}, {}, {}
    for label in TRAPPED:
        trap |= drawn(label) | harmed(label)
    for label in SCALED.keys() & both.keys():
        scaled |= drawn(label) | behind(label)
    weight = on_noise(both[DEFAULT][0])
    repaired[f"it puts {weight:.2%} on the noise"] = weight <= LITTLE
    # As they were: not worse beyond the error.
    repaired |= {told: lost is not True for told, lost in harmed(DEFAULT).items()}
    for label in (UNIFORM, *TRAPPED):
        repaired |= behind(label)
    run.claim(
        "The adversary rewards large costs: layers of noise draw more than their share of the "
        "weight, and matches get worse.",
        trap,
    )
    run.claim(
        "Costs over their means, or less their optima, do not repair it: the noise draws more than "
        "its share, and matches are worse than with the coherence prior.",
        scaled,
    )
    run.claim(
        "A prior by coherence keeps the weight off the noise and the matches as they were; with "
        "noise it is above FROT without it, and above the mean of layers.",
        repaired,
    )


def draw(both: Both, share: float) -> Figure:
    """Draw weights on real layers and on noise, and PCK without and with noise, for each row."""
    figure: Any = new_figure(11.0, 1.4 + 0.5 * len(both))
    weights, scores = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(both))
    noise = np.array([on_noise(loud) for loud, _ in both.values()])
    weights.barh(places, 1.0 - noise, 0.6, color=BLUE, label="real layers")
    weights.barh(places, noise, 0.6, left=1.0 - noise, color=ORANGE, label="layers of noise")
    weights.axvline(1.0 - share, color=INK, linewidth=1.0, linestyle=":", label="share by number")
    weights.set_title("weights of the layers", fontsize=11)
    looks = {1: ("without noise", GREY), 0: ("with noise", ORANGE)}
    for (which, (label, colour)), shift in zip(looks.items(), (-0.15, 0.15), strict=True):
        found = [evaluations[which].pck(THRESHOLD) for evaluations in both.values()]
        errors = [100 * np.nan_to_num(one.standard_error) for one in found]
        scores.errorbar(
            [100 * one.value for one in found], places + shift, xerr=errors, fmt="o", color=colour,
            capsize=2.0, label=label,
        )  # fmt: skip
    scores.set_title("PCK at .1, percent, ± standard error", fontsize=11)
    weights.set_yticks(places, list(both))
    weights.invert_yaxis()
    for axes in (weights, scores):
        tidy(axes)
    legend_below(figure, weights, scores, columns=5)
    return figure


def needs(options: Any) -> None:
    pair_count(options.pairs)
    default_backbone()
    load_pairs("pf-willow", options.data)


EXPERIMENT = Experiment(
    "noise_layers",
    "Layers of noise trap the adversary, and a prior by coherence keeps it off them.",
    run,
    options={
        "pairs": ("20", "pairs of PF-WILLOW, or all"),
        "side": (0, "longer side of photographs in pixels; 0 is the network's own"),
        "regret": (False, "also costs less their own optima, which takes ten times as long"),
    },
    needs=needs,
)

if __name__ == "__main__":
    EXPERIMENT.main()
