"""Where a solver may begin: weights, a plan, potentials, whatever is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frot._errors import InputError
from frot._feasible import round_plan
from frot._plan import Plan
from frot._problem import Problem
from frot._result import Result

__all__ = ["Start"]


@dataclass(frozen=True, eq=False)
class Start:
    """A start that fits a problem; each part may be missing.

    Attributes
    ----------
    alpha : array of shape (L,), optional
    plan : Plan of shape (n, m), optional
        Feasible.
    g : array of shape (m,), optional
        Potential of the columns.
    """

    alpha: np.ndarray | None = None
    plan: Plan | None = None
    g: np.ndarray | None = None

    @staticmethod
    def check(start: Any, shape: tuple[int, ...]) -> None:
        """Refuse what is not None, a Result, weights (L,) or a plan (n, m) for the given shape."""
        if start is None:
            return
        if isinstance(start, Result):
            Start.check(start.alpha, shape)
            Start.check(start.plan, shape)
            return
        if isinstance(start, Plan):
            start = start.dense()
        try:
            array = np.asarray(start, dtype=float)
        except (TypeError, ValueError):
            raise InputError("start: must be weights, a plan or a Result") from None
        if array.shape not in (shape[:1], shape[1:]):
            raise InputError(
                f"start: shape {array.shape} is neither weights {shape[:1]} nor a plan "
                f"{shape[1:]}; pass one of these or a Result"
            )
        if not np.isfinite(array).all() or (array < 0.0).any() or not array.any():
            raise InputError("start: must be finite, >= 0 and not all zero")

    @classmethod
    def parse(cls, start: Any, problem: Problem, rows: np.ndarray, cols: np.ndarray) -> Start:
        """Read what `check` lets through.

        `rows` and `cols` are the points of the user's data that `problem` still has.
        """
        if start is None:
            return cls()
        if isinstance(start, Result):
            known = cls.parse(start.plan, problem, rows, cols)
            return cls(start.alpha / start.alpha.sum(), known.plan, start.potentials[1][cols])
        array = start.dense() if isinstance(start, Plan) else np.asarray(start, dtype=float)
        if array.ndim == 1:
            # Dividing by the largest first keeps huge weights from summing to infinity.
            array = array / array.max()
            return cls(alpha=array / array.sum())
        array = array / array.max()
        kept = Plan.from_arcs(*Plan(array[np.ix_(rows, cols)]).arcs(), problem.shape[1:])
        return cls(plan=round_plan(kept, problem.a, problem.b))
