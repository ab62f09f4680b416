"""Where a solver may begin: weights, a plan, potentials, whatever is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frot._bounds import round_plan
from frot._errors import InputError
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

    @classmethod
    def parse(
        cls, start: Any, problem: Problem, rows: np.ndarray, cols: np.ndarray, shape: tuple
    ) -> Start:
        """Read what the user gave: a Result, weights (L,), or a plan (n, m).

        `rows` and `cols` are the points of the user's data that `problem` still has, and `shape`
        is (L, n, m) of that data.
        """
        if start is None:
            return cls()
        if isinstance(start, Result):
            known = cls.parse(start.plan, problem, rows, cols, shape)
            alpha = cls.parse(start.alpha, problem, rows, cols, shape).alpha
            return cls(alpha, known.plan, start.potentials[1][cols])
        if isinstance(start, Plan):
            start = start.dense()
        array = np.asarray(start, dtype=float)
        if not np.isfinite(array).all() or (array < 0.0).any() or not array.any():
            raise InputError("start: must be finite, >= 0 and not all zero")
        if array.shape == shape[:1]:
            return cls(alpha=array / array.sum())
        if array.shape == shape[1:]:
            kept = Plan.from_arcs(*Plan(array[np.ix_(rows, cols)]).arcs(), problem.shape[1:])
            return cls(plan=round_plan(kept, problem.a, problem.b))
        raise InputError(
            f"start: shape {array.shape} is neither weights {shape[:1]} nor a plan {shape[1:]}; "
            "pass one of these or a Result"
        )
