"""A restricted problem: some arcs and groups of the full one, and the interior point on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frot._bounds import Lower, Upper, lower_bound, upper_bound
from frot._plan import Plan
from frot._problem import Problem
from frot._solvers._arcs import SEED_EPS, cheapest, seed_arcs
from frot._solvers._interior import Interior
from frot._solvers._start import Start
from frot._solvers._vertex import Vertex, solve_vertex

__all__ = ["Restricted"]

# A restricted problem starts with so many arcs a point, and gains so many a point each round.
ARCS_PER_POINT = 6
ARCS_PER_ROUND = 4
# Problems up to this size hold all their arcs from the start.
ALL_ARCS = 3_000
# Groups in the restricted linear program at first; all of them where there are not many more.
GROUPS_AT_FIRST = 100


@dataclass(eq=False)
class Restricted:
    """The interior point on a growing part of a problem.

    The interior point works in units of the mean cost and of the mean mass of a point, and
    eliminates its rows: so its rows are the larger side of the problem (`flipped` if these are
    the columns).
    """

    problem: Problem
    interior: Interior
    groups: np.ndarray
    flipped: bool
    unit: float
    mass_unit: float

    @classmethod
    def begin(cls, problem: Problem, start: Start) -> Restricted:
        """Choose arcs and groups, and a point well inside."""
        count, n, m = problem.shape
        unit = problem.mean_cost
        eta = problem.adversary.eta / unit
        prior = problem.adversary.log_prior
        log_prior = np.zeros(count) if prior is None else prior
        alpha = start.alpha if start.alpha is not None else np.full(count, 1.0 / count)
        seed = seed_arcs(problem, alpha, ARCS_PER_POINT, unit, mirror=start.alpha is None)
        arcs = seed.arcs
        if n * m <= ALL_ARCS:
            arcs = np.arange(n * m)
        elif start.plan is not None:
            rows, cols, _ = start.plan.arcs()
            arcs = np.union1d(arcs, rows * m + cols)
        rows, cols = arcs // m, arcs % m
        flipped = m > n
        if flipped:
            order = np.argsort(cols * n + rows)
            rows, cols = rows[order], cols[order]
        mass_unit = 1.0 / max(n, m)
        reduced = seed.alpha @ np.zeros(count)  # replaced below once groups are chosen
        groups = cls._first_groups(problem, seed.alpha, eta)
        costs = problem.costs.at(rows, cols, None if len(groups) == count else groups) / unit
        alpha = np.maximum(seed.alpha[groups], 1e-3 / len(groups))
        alpha /= alpha.sum()
        f, g = seed.f / unit, seed.g / unit
        reduced = alpha @ costs - f[rows] - g[cols]
        barrier = 0.3 * SEED_EPS
        z = np.maximum(reduced, 0.0) + 2.0 * SEED_EPS
        with np.errstate(under="ignore", over="ignore"):
            x = np.exp(np.minimum(-reduced / SEED_EPS, 50.0))
        x *= problem.a[rows] * problem.b[cols] / mass_unit
        x = np.clip(x, 0.1 * barrier / z, 10.0 * np.minimum(problem.a[rows], problem.b[cols]) / mass_unit + barrier)
        log_prior = log_prior[groups]
        free = costs @ x - eta * (np.log(alpha) - log_prior)
        t = free.max() + SEED_EPS
        sides = (problem.b, problem.a) if flipped else (problem.a, problem.b)
        ends = (cols, rows) if flipped else (rows, cols)
        potentials = (g, f) if flipped else (f, g)
        interior = Interior(
            a=sides[0] / mass_unit,
            b=sides[1] / mass_unit,
            rows=ends[0],
            cols=ends[1],
            costs=costs,
            eta=eta,
            log_prior=log_prior,
            x=x,
            z=z,
            alpha=alpha,
            s=t - free,
            f=potentials[0] + potentials[1][-1],
            g=potentials[1] - potentials[1][-1],
            t=t,
        )
        return cls(problem, interior, groups, flipped, unit, mass_unit)
