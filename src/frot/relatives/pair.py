"""Two weighted sets of points, checked: what every relative between points begins with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from frot._base.arrays import Home, adopt, find_home, to_numpy
from frot._base.errors import InputError
from frot._base.validate import (
    check_flag,
    check_masses,
    check_two_clouds,
    check_weights,
)
from frot.costs import Points
from frot.groups.groups import Groups
from frot.plans.feasible import round_plan
from frot.plans.plan import Plan
from frot.problem.bounds import Lower, lower_bound
from frot.problem.problem import Problem
from frot.solvers.oracles import NetworkSimplex


@dataclass(frozen=True, eq=False)
class PointPair:
    """Points X and Y with weights a and b, their features' names, and where they came from."""

    X: np.ndarray
    Y: np.ndarray
    a: np.ndarray
    b: np.ndarray
    names: tuple[str, ...]
    columns: tuple[str, ...] | None
    home: Home | None

    @cached_property
    def costs(self) -> Points:
        """Squared Euclidean distances in all features."""
        groups = Groups.parse("all", self.X.shape[1], None)
        return Points.of(self.X, self.Y, groups)

    @cached_property
    def problem(self) -> Problem:
        """Plain transport between them."""
        return Problem(self.costs, self.a, self.b, names=("all",), points=(self.X, self.Y))


def check_pair(X: Any, Y: Any, a: Any, b: Any, normalise_weights: bool = False) -> PointPair:
    """Check points and weights as `frot.solve` does.

    Examples
    --------
    >>> check_pair([[0.0]], [[1.0], [2.0]], None, None).b
    array([0.5, 0.5])
    """
    for points, name in ((X, "X"), (Y, "Y")):
        if getattr(points, "ndim", 2) == 3:
            raise InputError(
                f"{name}: has 3 dimensions, but points (n, d) are needed here; for a stack of "
                "costs use frot.solve_costs"
            )
    X, Y, a, b = map(adopt, (X, Y, a, b), "XYab")
    home = find_home(X=X, Y=Y, a=a, b=b)
    X, Y, columns = check_two_clouds(X, Y)
    check_flag(normalise_weights, "normalise_weights")
    check_masses(a, b, normalise_weights)
    a = check_weights(a, X.shape[0], "a", normalise_weights)
    b = check_weights(b, Y.shape[0], "b", normalise_weights)
    names = columns or tuple(str(feature) for feature in range(X.shape[1]))
    X, Y = to_numpy(X).astype(float), to_numpy(Y).astype(float)
    with np.errstate(over="ignore"):
        reach = float(np.abs(X).max()) + float(np.abs(Y).max())
    if not reach < 1e140:
        raise InputError("X, Y: squared distances overflow; scale the points down")
    return PointPair(X, Y, a, b, names, columns, home)


class ProvenPlan(NamedTuple):
    """An optimal plan of one cost, and the lower bound it proves."""

    plan: Plan
    lower: Lower


def transport_at(problem: Problem, alpha: np.ndarray | None = None) -> ProvenPlan:
    """Transport exactly at the cost of the given weights (one group: of weight one).

    Examples
    --------
    >>> proven = transport_at(check_pair([[0.0]], [[2.0]], None, None).problem)
    >>> round(proven.lower.bound, 9)
    4.0
    """
    weights = np.ones(1) if alpha is None else alpha
    mixed = problem.costs.mix(weights)
    transport = NetworkSimplex()(mixed, problem.a, problem.b)
    plan = round_plan(transport.plan, problem.a, problem.b)
    return ProvenPlan(plan, lower_bound(problem, weights, transport.g, mixed))
