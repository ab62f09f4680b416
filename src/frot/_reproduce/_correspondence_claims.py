"""What the correspondence runs were expected to show, and whether they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frot._reproduce._correspondence_choices import PICKED, PROPOSED, SEARCHED
from frot._reproduce._verdict import Check, Verdict

__all__ = ["claims"]

# PCK on all 900 pairs, without and with Hough matching, of the first experiments with the prior.
FIRST = {"resnet50-thin": (57.4, 69.7), "mobilenetv2": (57.0, 70.7)}
WORDS = {False: "without Hough", True: "with Hough"}


def claims(rows: Sequence[Mapping[str, Any]], test: str) -> tuple[Verdict, ...]:
    """Hold the scores against the paper's claims and this library's own."""
    networks = list(dict.fromkeys(row["network"] for row in rows))
    by = {
        (r["network"], r["choice"], r["transfer"], r["hough"], r["pairs_of"]): r
        for r in rows
        if r["pck"] is not None
    }
    everything = rows[0]["pairs_of"]

    def versus(name: str, choice: str, hough: bool, other: str) -> Check:
        """A paired difference needs the pairs; means over the same pairs do for the sign."""
        here = by[name, choice, "median", hough, test]["pck"]
        there = by[name, other, "median", hough, test]["pck"]
        return Check(f"{name}, {WORDS[hough]}: {here:.1f} against {there:.1f}", here >= there)

    both = (False, True)
    paper = tuple(versus(name, "paper", h, "uniform") for name in networks for h in both)
    picked = tuple(versus(name, "paper", h, PICKED) for name in networks for h in both)
    ours = tuple(versus(name, PROPOSED, h, "uniform") for name in networks for h in both)
    beyond = tuple(versus(name, PROPOSED, h, PICKED) for name in networks for h in both)
    searched = tuple(versus(name, PROPOSED, h, SEARCHED[-1]) for name in networks for h in both)
    verdicts = [
        Verdict("FROT", "FROT is above transport that does not weigh layers", paper, "Claim"),
        Verdict("picked", "FROT is like transport on layers picked with labels", picked, "Claim"),
        Verdict("prior", "with a coherence prior FROT is above uniform OT", ours, "Claim"),
        Verdict("labels", "with it FROT is above the layer picked with labels", beyond, "Claim"),
        Verdict(
            "searched",
            "with it FROT is above SCOT on layers searched with labels",
            searched,
            "Claim",
        ),
    ]
    if first := tuple(
        Check(
            f"{name}, {WORDS[hough]}: {score:.1f}, first {figure:.1f}",
            score >= figure,
        )
        for name in networks
        if name in FIRST
        for hough, figure in zip(both, FIRST[name], strict=True)
        for score in [by[name, PROPOSED, "median", hough, everything]["pck"]]
    ):
        claim = "the default reaches the figures of the first experiments"
        verdicts.append(Verdict("figures", claim, first, "Claim"))
    return tuple(verdicts)
