"""Weights and scores with layers of noise, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from frot._reproduce._noise_layers_claims import points
from frot._reproduce._verdict import Verdict

__all__ = ["noise_layers_tables"]

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


def noise_layers_tables(
    numbers: dict[str, Any], verdicts: Sequence[Verdict], notes: Sequence[str]
) -> str:
    """Write a table a network, the verdicts and the notes."""
    parts = ["# Layers of noise"]
    for name, made in numbers["networks"].items():
        parts += [f"## {name}, {len(made['layers'])} layers", _table(made["choices"])]
    parts.append("## Verdicts")
    for verdict in verdicts:
        checks = "\n".join(f"- {'yes' if c.holds else 'no'}: {c.figures}" for c in verdict.checks)
        parts.append(f"**{verdict.heading}**: {verdict.claim}\n\n{checks}")
    parts += ["## Notes", "\n".join(f"- {note}" for note in notes)]
    return "\n\n".join(parts) + "\n"


def _table(choices: dict[str, Any]) -> str:
    rows = [HEADER, ("---",) * len(HEADER)]
    for part in choices.values():
        row = [part["label"], f"{part['noise']['value']:.1%}"]
        for way in ("plain", "hough"):
            row += [_share(part[way]["quiet"]), _share(part[way]["noisy"])]
            row.append(points(part[way]["change"]))
        rows.append((*row, f"{part['seconds']:.2f}"))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _share(found: dict[str, float | None]) -> str:
    return points(found).removeprefix("+")
