"""`Start`: where a solver may begin, as a user gives it, and first plans that need no solver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from frot._base.arrays import to_numpy
from frot._base.errors import InputError
from frot._base.validate import read_numbers
from frot.plans.feasible import fill, round_plan
from frot.plans.line import line_arcs
from frot.plans.plan import Plan
from frot.problem.problem import Problem
from frot.problem.result import Result


def _host(values: Any) -> np.ndarray:
    """Numbers of a tensor or an array as NumPy's."""
    return np.asarray(to_numpy(values), dtype=float)


@dataclass(frozen=True, eq=False)
class Start:
    """A start that fits a problem; each part may be missing.

    Attributes
    ----------
    alpha : array of shape (L,), optional
    plan : Plan of shape (n, m), optional
        Feasible, where marginals have to be kept.
    g : array of shape (m,), optional
        Potential of the columns.
    """

    alpha: np.ndarray | None = None
    plan: Plan | None = None
    g: np.ndarray | None = None

    @staticmethod
    def check(start: Any, shape: tuple[int, ...]) -> None:
        """Refuse what is not None, a Result, weights (L,) or a plan (n, m) for the given shape.

        A `Start` comes from this library, and fits.
        """
        if start is None or isinstance(start, Start):
            return
        if isinstance(start, Result):
            Start.check(start.alpha, shape)
            Start.check(start.plan, shape)
            return
        array = None if isinstance(start, Plan) else read_numbers(start, "start")
        found = tuple(start.shape) if array is None else array.shape
        if found not in (shape[:1], shape[1:]):
            raise InputError(
                f"start: shape {found} is neither weights {shape[:1]} nor a plan "
                f"{shape[1:]}; pass one of these or a Result"
            )
        # Entries of a `Plan` are what they should be, and to form them may take too much memory.
        if array is None:
            return
        if not np.isfinite(array).all() or (array < 0.0).any() or not array.any():
            raise InputError("start: must be finite, >= 0 and not all zero")

    @classmethod
    def parse(
        cls, start: Any, problem: Problem, rows: np.ndarray, cols: np.ndarray, plans: bool = True
    ) -> Start:
        """Read what `check` lets through.

        `rows` and `cols` are the points of the user's data that `problem` still has; a solver that
        has no use for `plans` need not have them formed.
        """
        if start is None:
            return cls()
        if isinstance(start, Start):
            return replace(start, g=None if start.g is None else start.g[cols])
        if isinstance(start, Result):
            known = cls.parse(start.plan, problem, rows, cols, plans) if plans else cls()
            alpha, g = _host(start.alpha), _host(start.potentials[1])
            return cls(alpha / alpha.sum(), known.plan, g[cols])
        if isinstance(start, Plan) and not plans:
            return cls()
        array = np.asarray(start, dtype=float) if isinstance(start, Plan) else _host(start)
        if array.ndim == 1:
            # Dividing by the largest first keeps huge weights from summing to infinity.
            array = array / array.max()
            return cls(alpha=array / array.sum())
        kept = array / array.max() if problem.marginals.kept else array
        plan = Plan.from_arcs(*Plan(kept[np.ix_(rows, cols)]).arcs(), problem.shape[1:])
        if not problem.marginals.kept:
            # How much mass it moves is part of a plan there.
            return cls(plan=plan)
        return cls(plan=round_plan(plan, problem.a, problem.b))


# Lines through the points that are tried where there was no time for more.
POWER_STEPS = 4


def first_plans(problem: Problem) -> list[Plan]:
    """Return feasible plans that need no solver: filled somehow, or along a line through points."""
    a, b, shape = problem.a, problem.b, problem.shape[1:]
    if problem.marginals.soft:
        return [_soft_plan(problem)]
    found = [fill(a, b)]
    if problem.points is not None and isinstance(problem.points[0], np.ndarray):
        found += [line_arcs(x, y, a, b) for x, y in _directions(*problem.points)]
    return [Plan.from_arcs(*arcs, shape) for arcs in found]


def _soft_plan(problem: Problem) -> Plan:
    """A plan that keeps what has to be kept, and moves nothing where nothing has to be."""
    a, b, terms = problem.a, problem.b, problem.marginals
    sides = ((terms.tau_a, a), (terms.tau_b, b))
    mass = max(float(side.sum()) if tau == np.inf else 0.0 for tau, side in sides)
    rows, cols, shares = fill(*problem.shares)
    return Plan.from_arcs(rows, cols, mass * shares, problem.shape[1:])


def _directions(X: np.ndarray, Y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the points on two lines: along the features' first principal axis, and by their sum."""
    unit = np.concatenate([X, Y]).std(axis=0)
    unit[unit == 0.0] = 1.0
    X, Y = X / unit, Y / unit
    axis = np.ones(X.shape[1])
    for _ in range(POWER_STEPS):
        # Centred on either side: what the two have in common shapes a plan, not what differs.
        at_x, at_y = (X - X.mean(axis=0)) @ axis, (Y - Y.mean(axis=0)) @ axis
        yield at_x, at_y
        axis = (X - X.mean(axis=0)).T @ at_x + (Y - Y.mean(axis=0)).T @ at_y
        size = float(np.abs(axis).max())
        if not 0.0 < size < np.inf:
            return
        axis = axis / size
