"""Tables of the correspondence runs: PCK by method and network, differences with their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from frot._reproduce._correspondence_choices import READINGS
from frot._reproduce._correspondence_runs import Runs
from frot._reproduce._pair_runs import Choice

__all__ = ["score_rows", "score_tables"]

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
    scores = 100.0 * hits.mean(axis=3)
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
                        "standard_error": _error(own[there]),
                        "difference": _mean(apart),
                        "difference_standard_error": _error(apart),
                    }
                )
    return rows


def score_tables(rows: Sequence[Mapping[str, Any]], against: str) -> str:
    """Return the scores as Markdown, one table a reading and part of the pairs."""
    networks = list(dict.fromkeys(row["network"] for row in rows))
    lines = []
    for transfer in dict.fromkeys(row["transfer"] for row in rows):
        for part in dict.fromkeys(row["pairs_of"] for row in rows):
            lines += [
                f"### {part}, points read off by {transfer!r}",
                "",
                "PCK at .1 per image in percent, without / with Hough matching; in brackets the "
                f"difference to {against!r} with its standard error.",
                "",
                "| | " + " | ".join(networks) + " |",
                "|---" * (len(networks) + 1) + "|",
            ]
            here = [row for row in rows if row["transfer"] == transfer and row["pairs_of"] == part]
            for label in dict.fromkeys(row["label"] for row in here):
                cells = [_cell(here, label, name) for name in networks]
                lines.append(f"| {label} | " + " | ".join(cells) + " |")
            lines.append("")
    return "\n".join(lines) + "\n"


def _cell(rows: Sequence[Mapping[str, Any]], label: str, network: str) -> str:
    found = [row for row in rows if row["label"] == label and row["network"] == network]
    by = {row["hough"]: row for row in found}
    if not by or by[True]["pck"] is None:
        return ""
    pck = f"{by[False]['pck']:.1f} / {by[True]['pck']:.1f}"
    signed = " / ".join(_signed(by[hough]) for hough in (False, True))
    few = f"; {by[True]['pairs']} pairs" if by[True]["pairs"] < _most(rows) else ""
    return f"{pck} ({signed}{few})"


def _signed(row: Mapping[str, Any]) -> str:
    error = row["difference_standard_error"]
    return f"{row['difference']:+.1f}" + ("" if error is None else f" ± {error:.1f}")


def _most(rows: Sequence[Mapping[str, Any]]) -> int:
    return max(row["pairs"] for row in rows)


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None


def _error(values: np.ndarray) -> float | None:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
