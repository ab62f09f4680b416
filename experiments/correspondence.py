"""Matches between photographs: the paper's table by class, SRW, and what its layers weigh.

PF-WILLOW and birds are seen with EfficientNet-Lite2, SPair-71k with a user's ResNet-101. HPF and
OT-HPF have layers that were searched with labels: on cars of PF-WILLOW, which are not scored; those
of ResNet-101 are published, from SPair-71k's validation pairs. "FROT eta=0.3" is the paper's, the
preset "frot-paper" whole; "three steps" has the default's pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from _match_rows import ETAS, FROT, MEAN, ONE_IN, OURS, STEPS, Scored, find_pairs, find_sets
from _match_tables import draw_layers, draw_matches, draw_scores, table_by_class
from _pairs import (
    THRESHOLD,
    PairTask,
    Row,
    balanced,
    decided,
    dependencies,
    evaluations,
    layers_used,
    match_pair,
    not_below,
    pair_count,
    prepare,
    shares,
    with_error,
)
from _runner import Experiment, Run, standard_error
from frot.correspondence import Estimate, Evaluation, PairSet


def run(run: Run) -> None:
    count = pair_count(run.options.pairs)
    sets, made = [], {}
    for whole in find_sets(run):
        name, pairs = whole.pairs.name, balanced(whole.pairs, count, run.seed)
        few = None if count is None else max(1, count // ONE_IN)
        srw = {label: row for label, row in whole.rows.items() if label.startswith("SRW")}
        rest = {label: row for label, row in whole.rows.items() if label not in srw}
        sets.append(replace(whole, pairs=pairs))
        made[name] = match_all(run, whole, rest, pairs, "pairs")
        made[name] |= match_all(run, whole, srw, balanced(pairs, few, run.seed), "SRW's pairs")
        add_tables(run, name, made[name])
        run.numbers[name] = {
            label: {"pck": one.pck(THRESHOLD).value, "seconds": one.seconds, "alpha": one.alpha}
            for label, one in made[name].items()
        }
    add_claims(run, made)
    if not any(one.network.name == "torchvision:resnet101" for one in sets):
        text = "The paper's numbers on SPair-71k with ResNet-101 come out again."
        run.claim(text, None, "SPair-71k or the weights of ResNet-101 are not there")
    run.note(
        f"PCK at {THRESHOLD} per photograph in percent, ± the standard error over pairs; a "
        "difference within two of its standard errors is undecided. Seconds are those of costs, "
        "transport and transfer. FROT eta=... is the preset frot-paper, whole; OT, max-min and SRW "
        "have its pipeline, too."
    )
    shown = {"FROT, the paper's (preset frot-paper)": FROT, "FROT, its steps in ours": STEPS}
    shown |= {x: x for x in sets[0].rows if x != STEPS and not x.startswith(("SRW", "FROT eta="))}
    run.figure(draw_scores(made, shown), "PCK of every method, with standard errors.")
    weights = {f"{eta:g}": f"FROT eta={eta:.1f}" for eta in ETAS}
    text = "Mean weight of every layer, a line for each eta of the paper's FROT."
    run.figure(draw_layers(made, weights), text, "layers")
    figure = draw_matches([(one.pairs, one.network, one.rows[FROT]) for one in sets])
    text = "Points as the paper's FROT (eta = .3) matches them: right and wrong."
    run.figure(figure, text, "matches")


def match_all(
    run: Run, whole: Scored, rows: dict[str, Row], pairs: PairSet, what: str
) -> dict[str, Evaluation]:
    """Match some of the pairs by some of the rows."""
    tasks = {pair.id: PairTask(whole.network, rows, pair) for pair in pairs}
    depends = dependencies(whole.network, rows, whole.pairs)
    words = f"{what} of {pairs.name}"
    records = run.pieces(words, tasks, match_pair, depends=depends, prepare=prepare)
    return evaluations(pairs, rows, records)


def add_tables(run: Run, name: str, made: Mapping[str, Evaluation]) -> None:
    """Add the tables by class: methods, eta, and SRW beside FROT on the same pairs."""
    etas = [f"FROT eta={eta:.1f}" for eta in ETAS]
    srw = {label: one for label, one in made.items() if label.startswith("SRW")}
    parts = {
        "methods": {
            label: one for label, one in made.items() if label == FROT or label not in [*srw, *etas]
        },
        "over eta": {label: made[label] for label in etas},
        "SRW": {FROT: beside_srw(made), **srw},
    }
    for title, some in parts.items():
        count = len(next(iter(some.values())).records)
        run.table(f"{name}: {title}", *table_by_class(some), f"{count} pairs.")


def beside_srw(made: Mapping[str, Evaluation]) -> Evaluation:
    """Return the paper's FROT on the pairs that SRW has."""
    srw = next(one for label, one in made.items() if label.startswith("SRW"))
    same = {record.id for record in srw.records}
    return made[FROT].only(lambda record: record.id in same)


# A claim, the row that is above others, which these are, and whether being alike will do.
CLAIMS = (
    ("The paper's FROT is above OT on all layers, and above HPF.", FROT, ("OT", "HPF"), False),
    ("It is like OT-HPF, whose layers were picked with labels.", FROT, ("OT-HPF",), True),
    ("It is above SRW on several layers, and on the last.", FROT, ("SRW k=50 *",), False),
    (
        "This library's default is above the paper's FROT, its steps in the default's pipeline, "
        "and transport on the mean of layers.", OURS, (FROT, STEPS, MEAN), False,
    ),
)  # fmt: skip


def add_claims(run: Run, made: Mapping[str, Mapping[str, Evaluation]]) -> None:
    """Hold the numbers against what the paper says, and this library."""
    for text, first, others, alike in CLAIMS:
        checks = {}
        for name, rows in made.items():
            for label in rows:
                if any(fnmatchcase(label, other) for other in others):
                    apart = rows[first].difference(rows[label], THRESHOLD)
                    told = f"{name}: {with_error(apart)} against {label} (n = {apart.count})"
                    checks[told] = not_below(apart) if alike else decided(apart)
        run.claim(text, checks)
    faster, fewer, better = {}, {}, {}
    for name, rows in made.items():
        slow = [one.seconds for label, one in rows.items() if "k=50 T=3" in label]
        seconds = ", ".join(f"{value:.1f}" for value in slow)
        own = beside_srw(rows).seconds
        faster[f"{name}: {own:.1f} s a pair, SRW {seconds}"] = own < min(slow)
        used = [layers_used(rows[f"FROT eta={eta:.1f}"]) for eta in ETAS]
        told = f"{name}: {used[0]:.1f} at eta = {ETAS[0]}, {used[-1]:.1f} at {ETAS[-1]}"
        fewer[told] = bool((np.diff(used) >= 0.0).all())
        low, high = (
            np.mean([shares(rows[f"FROT eta={eta:.1f}"]) for eta in some], axis=0)
            for some in ([eta for eta in ETAS if eta < 1.0], [eta for eta in ETAS if eta >= 1.0])
        )
        apart = Estimate(float((low - high).mean()), standard_error(low - high), len(low))
        told = f"{name}: {100 * low.mean():.1f} below 1, {100 * high.mean():.1f} from 1 on"
        better[f"{told}, apart by {with_error(apart)}"] = decided(apart)
    run.claim(
        "FROT is faster than SRW on several layers (paper: .29 s; 8.73, 11.73, 15.76 s).", faster
    )
    run.claim("The lower eta, the fewer layers are used.", fewer)
    run.claim("eta < 1 gives the better matches.", better)


EXPERIMENT = Experiment(
    "correspondence",
    "FROT matches photographs as well as transport on layers that were picked with labels.",
    run,
    options={
        "pairs": ("20", "pairs of each set, or all; fewer shorten SRW and the search, too"),
        "side": (0, "longer side of photographs in pixels; 0 is each preset's own"),
        "resnet101": (None, "weights of torchvision's ResNet-101, for SPair-71k"),
    },
    needs=find_pairs,
)

if __name__ == "__main__":
    EXPERIMENT.main()
