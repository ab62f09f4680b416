"""One method's answer in a comparison, or why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from frot.comparison.methods import SQUARED, Method
from frot.problem.chosen import Chosen
from frot.problem.result import Result

__all__ = ["Row"]

UNBOUNDED = "∞"
WITHOUT_CHOICE = {
    "ot": "nothing: all features count",
    "sliced": "nothing: all directions count the same",
}


@dataclass(frozen=True, eq=False)
class Row:
    """A method, what it found, and what that took.

    Attributes
    ----------
    method, title : str
        Its name in `compare`, and for people.
    result : Result, optional
        None if it failed or was not run.
    problem : str
        Why there is no result; empty if there is one.
    seconds : float
    memory : int, optional
        Bytes at the peak, beyond what was there before.
    unit : str
        Of the value and its bounds.
    counts : str
        What of the squared displacements the method counts.
    warnings : tuple of str
    """

    method: str
    title: str
    result: Result | None = None
    problem: str = ""
    seconds: float = 0.0
    memory: int | None = None
    unit: str = SQUARED
    counts: str = ""
    warnings: tuple[str, ...] = field(default=())

    @classmethod
    def not_run(cls, method: Method, why: str) -> Row:
        """Return the row of a method whose turn never came."""
        return cls(method.name, method.title, problem=why, counts=method.counts)

    @property
    def comparable(self) -> bool:
        """Whether there is a value, in the unit of the others."""
        return self.result is not None and self.unit == SQUARED

    @property
    def status(self) -> str:
        """Why the method stopped, in a word."""
        return "FAILED" if self.result is None else str(self.result.status)

    @property
    def chosen(self) -> Chosen | None:
        """What the adversary chose; for FROT the weights of the groups."""
        if self.result is None or self.result.chosen is not None:
            return None if self.result is None else self.result.chosen
        # What is left of weights that are zero is rounding, and would be told as "and 3 more".
        return Chosen("weights", np.asarray(self.result.alpha).round(12), self.result.names)

    @property
    def cells(self) -> dict[str, str]:
        """The row as text, a column each."""
        chosen = self.chosen
        if self.result is None or chosen is None:
            blank = dict.fromkeys(("value", "interval", "gap"), "–")
            ran = f"{self.seconds:.3g}" if self.seconds else "–"
            about = {"status": "FAILED", "seconds": ran, "memory": "–", "chose": self.problem}
            return {"method": self.title, **blank, **about}
        result = self.result
        # Methods without choice would otherwise be said to have chosen "all 1".
        chose = WITHOUT_CHOICE.get(self.method) or chosen.describe()
        if self.method == "generalised_max_sliced":
            chose = chose.replace("direction", "parameters", 1)
        return {
            "method": self.title,
            "value": f"{result.value:.5g}",
            "interval": f"[{_number(result.lower)}, {_number(result.upper)}]",
            "gap": f"{result.gap:.1e}" if math.isfinite(result.upper) else UNBOUNDED,
            "status": str(result.status),
            "seconds": f"{self.seconds:.3g}",
            "memory": "–" if self.memory is None else megabytes(self.memory),
            "chose": chose,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain numbers and text, for JSON; infinite bounds are None."""
        row: dict[str, Any] = {
            "method": self.method,
            "title": self.title,
            "counts": self.counts,
            "unit": self.unit,
            "status": self.status,
            "seconds": round(self.seconds, 6),
            "memory_bytes": self.memory,
            "warnings": list(self.warnings),
        }
        chosen = self.chosen
        if self.result is None or chosen is None:
            return {**row, "problem": self.problem}
        result = self.result
        weights = None if chosen.weights is None else chosen.weights.tolist()
        return {
            **row,
            "value": result.value,
            "lower": _finite(result.lower),
            "upper": _finite(result.upper),
            "gap": _finite(result.gap) if math.isfinite(result.upper) else None,
            "sentence": result.status.sentence,
            "solver": result.solver,
            "iterations": result.iterations,
            "arcs": int(result.plan.nnz),
            "chosen": {
                "kind": chosen.kind,
                "text": chosen.describe(),
                "names": list(chosen.names),
                "array": np.asarray(chosen.array).tolist(),
                "weights": weights,
            },
        }


def megabytes(size: int) -> str:
    """Say a number of bytes in MB.

    Examples
    --------
    >>> megabytes(12_300_000), megabytes(40_000)
    ('12.3 MB', '< 0.1 MB')
    """
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else "< 0.1 MB"


def _number(value: float) -> str:
    return f"{value:.5g}" if math.isfinite(value) else UNBOUNDED


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
