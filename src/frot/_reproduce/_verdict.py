"""What the paper says, what the numbers say, and whether the two agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Check", "Verdict"]


@dataclass(frozen=True)
class Check:
    """One statement that the numbers bear out or not, with those numbers in words."""

    figures: str
    holds: bool


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper and the checks it was put to; `kind` is what `figure` is the name of.

    Examples
    --------
    >>> checks = (Check("0.9999 or more: it is 1.0", True), Check("at most 5: it is 7", False))
    >>> print(Verdict("1", "FROT works", checks).line)
    Figure 1: partly reproduced. yes: 0.9999 or more: it is 1.0; no: at most 5: it is 7.
    """

    figure: str
    claim: str
    checks: tuple[Check, ...]
    kind: str = "Figure"

    @property
    def heading(self) -> str:
        """What it is about, and the outcome."""
        return f"{self.kind} {self.figure}: {self.outcome}"

    @property
    def outcome(self) -> str:
        """Say "reproduced", "partly reproduced" or "not reproduced"."""
        held = [check.holds for check in self.checks]
        if all(held):
            return "reproduced"
        return "partly reproduced" if any(held) else "not reproduced"

    @property
    def line(self) -> str:
        """The verdict in one line."""
        told = "; ".join(f"{'yes' if c.holds else 'no'}: {c.figures}" for c in self.checks)
        return f"{self.heading}. {told}."

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "figure": self.figure,
            "claim": self.claim,
            "outcome": self.outcome,
            "checks": [{"figures": c.figures, "holds": c.holds} for c in self.checks],
        }
