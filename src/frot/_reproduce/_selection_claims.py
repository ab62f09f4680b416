"""What the paper says of feature selection, and what the numbers say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from frot._reproduce._verdict import Check, Verdict

__all__ = ["paired", "verdicts"]

# Two rankings are "consistent" if their accuracies differ by no more than this many standard
# errors, or by less than a point, which no reader of the figure could see.
ERRORS, POINT = 2.0, 0.01
# "About two orders of magnitude" is taken as anything above one and a half.
TWO_ORDERS = 10.0**1.5

CONSISTENT = "FROT is consistent with the Wasserstein distance-based feature selection."
OUTPERFORMS = "FROT outperforms the linear correlation method and the MMD for two datasets."
ORDERS = "FROT is about two orders of magnitude faster than the Wasserstein distance."
FASTER = "FROT is also faster than MMD."


def paired(one: np.ndarray, other: np.ndarray) -> dict[str, float]:
    """Mean difference of two methods on the same splits, with its standard error.

    Parameters
    ----------
    one, other : numpy.ndarray, shape (splits, K)
        Accuracies; the mean over K of a split is one observation.

    Examples
    --------
    >>> paired(np.array([[0.9, 0.8], [0.8, 0.7]]), np.array([[0.8, 0.8], [0.8, 0.6]]))
    {'mean': 0.05, 'error': 0.0}
    """
    difference = (one - other).mean(axis=1)
    error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else 0.0
    # Adding zero makes a zero of minus zero, which would be printed.
    return {"mean": round(float(difference.mean()), 9) + 0.0, "error": round(float(error), 9)}


def verdicts(sets: Sequence[dict[str, Any]]) -> tuple[Verdict, ...]:
    """Put the paper's four claims to the numbers of its sets.

    Parameters
    ----------
    sets : sequence of dict
        Each with ``label``, ``differences`` of FROT as in the paper to the others, ``seconds``.
    """
    if not sets:
        return ()
    figure, table = {"kind": "Figure of"}, {"kind": "Table of"}
    return (
        Verdict("accuracies", CONSISTENT, tuple(_consistent(each) for each in sets), **figure),
        Verdict(
            "accuracies",
            OUTPERFORMS,
            tuple(_outperforms(sets, rival) for rival in ("linear", "mmd")),
            **figure,
        ),
        Verdict("times", ORDERS, _orders(sets), **table),
        Verdict("times", FASTER, _faster(sets), **table),
    )


def _consistent(made: dict[str, Any]) -> Check:
    found = made["differences"]["wasserstein"]
    told = f"{made['label']}: FROT − Wasserstein = {found['mean']:+.3f} ± {found['error']:.3f}"
    return Check(told, abs(found["mean"]) <= max(ERRORS * found["error"], POINT))


def _outperforms(sets: Sequence[dict[str, Any]], rival: str) -> Check:
    name = {"linear": "linear correlation", "mmd": "MMD"}[rival]
    found = [made["differences"][rival] for made in sets]
    above = sum(each["mean"] > ERRORS * each["error"] for each in found)
    below = sum(each["mean"] < -ERRORS * each["error"] for each in found)
    told = ", ".join(
        f"{made['label']} {each['mean']:+.3f} ± {each['error']:.3f}"
        for made, each in zip(sets, found, strict=True)
    )
    return Check(
        f"by more than two standard errors FROT is above {name} on {above} of {len(sets)} sets "
        f"and below on {below} ({told})",
        above >= min(2, len(sets)),
    )


PAIRS = {
    ("wasserstein", "frot_paper"): "a vectorised sort takes {slow}, frot's FROT {fast}",
    ("wasserstein", "stacked"): "a vectorised sort takes {slow}, FROT as written {fast}",
    (
        "wasserstein_call",
        "stacked",
    ): "a call of POT a feature takes {slow}, FROT as written {fast}",
    (
        "wasserstein_call",
        "frot_paper",
    ): "a call of POT a feature takes {slow}, frot's FROT {fast}",
}


def _orders(sets: Sequence[dict[str, Any]]) -> tuple[Check, ...]:
    return tuple(_ratio(sets, slow, fast, text, TWO_ORDERS) for (slow, fast), text in PAIRS.items())


def _faster(sets: Sequence[dict[str, Any]]) -> tuple[Check, ...]:
    ours = [
        _ratio(
            [made], "mmd", "frot_paper", f"{made['label']}: MMD takes {{slow}}, FROT {{fast}}", 1.0
        )
        for made in sets
    ]
    return (*ours, _ratio(sets, "mmd", "stacked", "MMD takes {slow}, FROT as written {fast}", 1.0))


def _ratio(sets: Sequence[dict[str, Any]], slow: str, fast: str, text: str, least: float) -> Check:
    times = [(made["seconds"][slow], made["seconds"][fast]) for made in sets]
    ratios = [first / second for first, second in times]
    told = text.format(
        slow=_span([first for first, _ in times], " s"),
        fast=_span([second for _, second in times], " s"),
    )
    return Check(f"{told}: FROT is {_span(ratios, '')} times as fast", min(ratios) >= least)


def _span(values: list[float], unit: str) -> str:
    low, high = f"{min(values):.2g}", f"{max(values):.2g}"
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"
