"""The paper's figures, computed anew, each with a verdict drawn from the numbers."""

from __future__ import annotations

from collections.abc import Callable

from frot._reproduce._fig1 import fig1
from frot._reproduce._fig2 import fig2
from frot._reproduce._reproduction import Reproduction
from frot._reproduce._verdict import Check, Verdict

__all__ = ["FIGURES", "Check", "Reproduction", "Verdict", "fig1", "fig2"]

FIGURES: dict[str, Callable[[int, int], Reproduction]] = {"fig1": fig1, "fig2": fig2}
