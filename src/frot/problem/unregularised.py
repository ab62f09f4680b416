r"""What weights, potentials and a plan of a problem with eps prove about the one without.

Given g, the minima of the reduced costs are potentials whatever eps is,

.. math::
    f_i = \min_j\, [M_\alpha]_{ij} - g_j, \qquad
    g_j \leftarrow \min_i\, [M_\alpha]_{ij} - f_i ,

and the plan pays its group costs. Both take one pass over the costs, in blocks of rows, in double
precision and where the costs are; a result does it when it is asked to.

Rounding. Entries of the mixed cost are off by :math:`\rho M_{ij} + p_i + q_j`, rho being zero where
a cost may be negative: what goes with a point is taken off its potential, and since dual values are
concave and zero at zero, a share rho of the potentials costs that share of the value at most. Sums
over k points err by k / 2 units of their terms' sizes at most.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from frot._base.arrays import UNIT, to_numpy
from frot.costs.protocol import blocks
from frot.plans.lazy import LazyPlan
from frot.plans.plan import Plan, bring_plan
from frot.problem.adversary import SimplexFamily
from frot.problem.problem import Problem


class PlainLower(NamedTuple):
    """A lower bound without eps, and the weights and potentials that have it, on the host."""

    bound: float
    alpha: np.ndarray
    f: np.ndarray
    g: np.ndarray


def interval_without_eps(problem: Problem, alpha: Any, g: Any, plan: Plan) -> tuple[float, float]:
    """Return bounds of the optimum with eps = 0.

    Parameters
    ----------
    problem : Problem
        With eps > 0.
    alpha, g : arrays of shape (L,) and (m,)
        Any weights, and potentials of the columns.
    plan : Plan
        Feasible.

    Examples
    --------
    >>> from frot.costs import StackedCosts
    >>> half, costs = np.full(2, 0.5), StackedCosts(np.array([[[0.0, 1.0], [1.0, 0.0]]]))
    >>> problem = Problem(costs, half, half, eps=1.0)
    >>> low, high = interval_without_eps(problem, np.ones(1), np.zeros(2), Plan(np.eye(2) / 2))
    >>> low <= 0.0 <= high <= 1e-12
    True
    """
    return plain_lower(problem, alpha, g).bound, _plain_upper(problem, plan)


def plain_lower(problem: Problem, alpha: Any, g: Any) -> PlainLower:
    """Make potentials of the columns feasible without eps, and return what they prove."""
    alpha, g = (np.asarray(to_numpy(part), dtype=float) for part in (alpha, g))
    adversary, a, b = problem.adversary, problem.a, problem.b
    if isinstance(adversary, SimplexFamily) and not adversary.contains(alpha):
        alpha = adversary.project(alpha)
    f, g = _minima(problem, alpha, np.where(np.isfinite(g), g, 0.0))
    by = problem.marginals.shift(a, f, b, g) if problem.marginals.soft else 0.0
    f, g = f + by, g - by
    rows, cols = problem.marginals.sides
    value = rows.dual(a, f) + cols.dual(b, g)
    if problem.costs.nonnegative and not value > 0.0:
        # Where no cost is negative, nothing proves more than these do.
        value, by, f, g = 0.0, 0.0, np.zeros_like(f), np.zeros_like(g)
    if not np.isfinite(value):
        return PlainLower(-np.inf, alpha, f, g)
    # A point pays by what it weighs or keeps, whichever is more.
    kept = np.maximum(rows.kept(a, f), a), np.maximum(cols.kept(b, g), b)
    off = _mix_error(problem, alpha)
    size = float(kept[0] @ np.abs(f) + kept[1] @ np.abs(g))
    size += float(kept[0].sum() + kept[1].sum()) * abs(by)
    slack = float(kept[0] @ off.rows + kept[1] @ off.cols) + off.relative * abs(value)
    slack += ((24.0 + 0.5 * sum(problem.shape[1:])) * UNIT + problem.mass_error) * size
    bound = value - slack
    if problem.costs.nonnegative:
        bound = max(bound, 0.0)
    # Weights sum to one but for their last places.
    bound -= (4.0 * UNIT + abs(float(alpha.sum()) - 1.0)) * abs(bound)
    bound += adversary.reward(alpha)
    return PlainLower(bound - adversary.reward_rounding(bound, len(alpha)), alpha, f, g)


def _minima(problem: Problem, alpha: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the two c-transforms of g, (n,) and (m,)."""
    geometry = problem.costs.geometry().double()
    home, (_, _, n, m) = geometry.home, geometry.shape
    xp, found = home.xp, []
    # Columns without weight bind nothing: they take what the others leave them.
    weights, start = home.bring(alpha[None]), home.bring(np.where(problem.b > 0.0, g, -np.inf))
    best = None
    for part in blocks(n, 8 * m):
        reduced = geometry.rows(part).mix(weights)[0, :, :]
        least = xp.min(reduced - start, axis=1)
        found.append(to_numpy(least))
        top = xp.min(reduced - least[:, None], axis=0)
        best = top if best is None else xp.minimum(best, top)
    return np.concatenate(found), to_numpy(best)


class _Error(NamedTuple):
    relative: float
    rows: np.ndarray
    cols: np.ndarray


def _mix_error(problem: Problem, alpha: np.ndarray) -> _Error:
    geometry = problem.costs.geometry().double()
    _, n, m = problem.shape
    error = geometry.mix_error(geometry.home.bring(alpha[None]))
    relative, rows, cols = (to_numpy(part).astype(float) for part in error)
    spread = (np.broadcast_to(part, (1, k))[0] for part, k in ((rows, n), (cols, m)))
    return _Error(float(relative.max()), *spread)


def _plain_upper(problem: Problem, plan: Plan) -> float:
    """Return what the plan costs at most without its entropy."""
    geometry = problem.costs.geometry().double()
    home, (_, _, n, m) = geometry.home, geometry.shape
    # As it was proven: a user may have it in single precision.
    plan = bring_plan(plan, home if isinstance(plan, LazyPlan) else None)
    phi = 0.0
    for part in blocks(n, 8 * m):
        rows = home.bring(plan.rows(part)[None, :, :])
        phi = phi + geometry.rows(part).inner(rows)
    masses = tuple(np.asarray(to_numpy(plan.sum(axis=axis)), dtype=float) for axis in (1, 0))
    kept = (home.bring(side[None]) for side in masses)
    doubt = to_numpy(geometry.inner_error(phi, *kept))[0]
    host = to_numpy(phi)[0]
    # Plans are feasible to some units of every mass, and nine times these of a b^T make up for it.
    sums = (24.0 + 0.5 * (n + m)) * UNIT
    total = float(masses[0].sum()) + float(problem.a.sum() * problem.b.sum())
    doubt = doubt + sums * np.abs(host) + 9.0 * sums * total * problem.sizes
    price = error = 0.0
    sides = zip(problem.marginals.sides, (problem.a, problem.b), masses, strict=True)
    for side, weights, mass in sides:
        on = weights > 0.0
        price += side.price(weights[on], mass[on])
        error += side.price_error(weights[on], mass[on], sums)
    return problem.adversary.upper(host, doubt) + price + error
