"""Where the interior point begins: on which arcs and groups, and at a point well inside."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from frot.plans.plan import Plan
from frot.problem.problem import Problem
from frot.solvers._start import Start
from frot.solvers.exact._arcs import SEED_EPS, Seed, seed_arcs
from frot.solvers.exact.interior import Interior, inside_cap
from frot.solvers.offer import Offer

__all__ = ["FEW_GROUPS", "Placement", "costs_at", "place"]

# Arcs a point at first.
ARCS_PER_POINT = 6
# Up to so many groups all are in from the start, and in problems of up to so many arcs those too.
FEW_GROUPS = 100
ALL_ARCS = 3_000
# Arcs that cost more than so many units are not among them.
FAR = 1e3
# Of more groups, those that the seeding leaves with at least this share of the largest weight.
GROUP_SHARE = 1e-8
GROUPS_AT_FIRST = 400
# The interior point takes no weight for less than this share of the mean.
LEAST_WEIGHT = 1e-11


class Placement(NamedTuple):
    """The first iterate, its groups, whether its rows are the columns, and its two units."""

    interior: Interior
    groups: np.ndarray
    flipped: bool
    unit: float
    mass_unit: float


def place(problem: Problem, start: Start) -> Generator[Offer, None, Placement]:
    """Choose arcs and groups by a few rough sweeps, and a point well inside.

    Offers bounds on the way where that takes long.
    """
    count, n, m = problem.shape
    unit, mass_unit = problem.typical_cost, 1.0 / max(n, m)
    alpha = np.full(count, 1.0 / count) if start.alpha is None else start.alpha
    mirror = start.alpha is None
    seed = yield from seed_arcs(problem, alpha, ARCS_PER_POINT, unit, mirror)
    small = n * m <= ALL_ARCS and count <= FEW_GROUPS
    arcs = _all_arcs(problem, seed, unit) if small else seed.arcs
    if start.plan is not None:
        arcs = np.union1d(arcs, _allowed(problem, start.plan))
    groups = _first_groups(problem, seed.alpha)
    interior = _first_iterate(problem, seed, arcs, groups, (unit, mass_unit))
    return Placement(interior, groups, m > n, unit, mass_unit)


def _all_arcs(problem: Problem, seed: Seed, unit: float) -> np.ndarray:
    """Every arc but those far out of range, which come in if they are ever worth it."""
    mixed = problem.costs.mix(np.full(problem.shape[0], 1.0 / problem.shape[0]))
    return np.union1d(np.flatnonzero(mixed.ravel() <= FAR * unit), seed.arcs)


def _allowed(problem: Problem, plan: Plan) -> np.ndarray:
    """The arcs of a plan, as flat indices; a start may know nothing of forbidden ones."""
    rows, cols, _ = plan.arcs()
    if (forbidden := problem.costs.forbidden) is not None:
        allowed = ~forbidden[rows, cols]
        rows, cols = rows[allowed], cols[allowed]
    return rows * problem.shape[2] + cols


def _first_groups(problem: Problem, alpha: np.ndarray) -> np.ndarray:
    """All groups where the entropy needs them or they are few; else the heaviest."""
    count = len(alpha)
    if problem.adversary.eta > 0.0 or count <= FEW_GROUPS:
        return np.arange(count)
    order = np.lexsort((-problem.independent, -alpha))
    worth = int((alpha >= GROUP_SHARE * alpha.max()).sum())
    # Where k groups share the weight at least, they have to have a choice.
    least = 2 * problem.adversary.k
    return np.sort(order[: max(min(max(worth, FEW_GROUPS), GROUPS_AT_FIRST), least)])


def _sorted_arcs(
    arcs: np.ndarray, problem: Problem, flipped: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Split flat indices into rows and columns, in the order the interior point wants."""
    _, n, m = problem.shape
    rows, cols = arcs // m, arcs % m
    if flipped:
        order = np.argsort(cols * n + rows)
        rows, cols = rows[order], cols[order]
    return rows, cols


def costs_at(
    problem: Problem, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray
) -> np.ndarray:
    """Return the costs of some groups at the arcs, by the short way where these are all groups."""
    everything = len(groups) == problem.shape[0] and bool((np.diff(groups) == 1).all())
    return problem.costs.at(rows, cols, None if everything else groups)


def _firm(weights: np.ndarray) -> np.ndarray:
    """Lift weights that are next to nothing: the interior point cannot see them.

    Bounds are taken for the weights as they are, so this costs accuracy at most.
    """
    lifted = np.maximum(weights, LEAST_WEIGHT / len(weights))
    return lifted / lifted.sum()


def _first_iterate(
    problem: Problem, seed: Seed, arcs: np.ndarray, groups: np.ndarray, units: tuple[float, float]
) -> Interior:
    """Take the entropic plan of the seed, kept away from the boundary."""
    _, n, m = problem.shape
    flipped = m > n
    unit, mass_unit = units
    rows, cols = _sorted_arcs(arcs, problem, flipped)
    costs = costs_at(problem, rows, cols, groups) / unit
    eta = problem.adversary.eta / (unit * mass_unit)
    prior = problem.adversary.log_prior
    log_prior = np.zeros(len(groups)) if prior is None else prior[groups]
    alpha = np.maximum(seed.alpha[groups], 1e-3 / len(groups))
    cap = problem.adversary.cap
    alpha = inside_cap(alpha / alpha.sum(), cap)
    f, g = seed.f / unit, seed.g / unit
    a, b = _firm(problem.a) / mass_unit, _firm(problem.b) / mass_unit
    reduced = alpha @ costs - f[rows] - g[cols]
    z = np.maximum(reduced, 0.0) + 2.0 * SEED_EPS
    with np.errstate(under="ignore"):
        x = np.exp(np.minimum(-reduced / SEED_EPS, 30.0)) * a[rows] * b[cols] * mass_unit
    x = np.clip(x, 0.03 * SEED_EPS / z, np.maximum(np.minimum(a[rows], b[cols]), SEED_EPS / z))
    free = costs @ x - eta * (np.log(alpha) - log_prior)
    t = float(free.max()) + SEED_EPS / mass_unit
    sides, ends, potentials = (a, b), (rows, cols), (f, g)
    if flipped:
        sides, ends, potentials = sides[::-1], ends[::-1], potentials[::-1]
    return Interior(
        a=sides[0],
        b=sides[1],
        rows=ends[0],
        cols=ends[1],
        costs=costs,
        eta=eta,
        log_prior=log_prior,
        x=x,
        z=z,
        alpha=alpha,
        s=t - free,
        f=potentials[0],
        g=potentials[1],
        t=t,
        cap=cap,
    )
