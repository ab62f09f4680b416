"""The figure and the table of times as Markdown, with the verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from frot._reproduce._selection_methods import METHODS
from frot._reproduce._selection_times import TIMED
from frot._reproduce._verdict import Verdict

__all__ = ["selection_tables"]


def selection_tables(
    numbers: dict[str, Any], verdicts: Sequence[Verdict], notes: Sequence[str]
) -> str:
    """Write accuracies, times and verdicts as Markdown."""
    ks = numbers["ks"]
    parts = [
        "# Feature selection",
        f"{numbers['splits']} stratified splits (75 % to train), standardised on the training "
        "part, the K best features into scikit-learn's SVC. Seed "
        f"{numbers['seed']}.",
        "## Accuracy",
        f"Means over the splits for K = {ks[0]} / K = {ks[-1]}; in brackets the mean over all K.",
        _accuracy(numbers),
        "Differences of `frot`'s defaults to others on the same splits, mean over all K ± standard "
        "error over the splits:",
        _differences(numbers),
        "## Seconds for a fit",
        "On the training part of the first split, one thread, all in one process.",
        _times(numbers),
        "## Verdicts",
        *(_verdict(verdict) for verdict in verdicts),
        "## Notes",
        "\n".join(f"- {note}" for note in notes),
    ]
    return "\n\n".join(parts) + "\n"


def _accuracy(numbers: dict[str, Any]) -> str:
    def cell(found: dict[str, list[float]]) -> str:
        mean = found["mean"]
        return f"{mean[0]:.3f} / {mean[-1]:.3f} ({sum(mean) / len(mean):.3f})"

    sets = numbers["sets"].values()
    return _markdown(
        ["method", *(made["label"] for made in sets)],
        (
            [method.label, *(cell(made["accuracy"][key]) for made in sets)]
            for key, method in METHODS.items()
        ),
    )


def _differences(numbers: dict[str, Any]) -> str:
    rivals = ("f_classif", "frot_paper", "wasserstein", "mrmr")
    return _markdown(
        ["set", *(f"− {METHODS[rival].label}" for rival in rivals)],
        (
            [
                made["label"],
                *(
                    f"{found['mean']:+.4f} ± {found['error']:.4f}"
                    for found in (made["differences_of_defaults"][rival] for rival in rivals)
                ),
            ]
            for made in numbers["sets"].values()
        ),
    )


def _times(numbers: dict[str, Any]) -> str:
    sets = numbers["sets"]
    rows = [
        [label, *(f"{made['seconds'][key]:.4f}" for made in sets.values())]
        for key, label in TIMED.items()
    ]
    names = {"wasserstein": "Wasserstein", "linear": "Linear", "mmd": "MMD", "frot": "FROT"}
    for key, name in names.items():
        figures = [made["paper_seconds"].get(key) for made in sets.values()]
        shown = ["" if figure is None else f"{figure:g}" for figure in figures]
        rows.append([f"{name}, the paper's figure", *shown])
    return _markdown(["method", *(made["label"] for made in sets.values())], rows)


def _verdict(verdict: Verdict) -> str:
    checks = "\n".join(f"- {'yes' if c.holds else 'no'}: {c.figures}" for c in verdict.checks)
    return f"**{verdict.heading}**: “{verdict.claim}”\n\n{checks}"


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(header), ["---"] * len(header), *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
