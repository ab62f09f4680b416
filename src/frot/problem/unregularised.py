r"""What weights, potentials and a plan of a problem with eps prove about the one without.

Given g, the minima of the reduced costs are potentials whatever eps is,

.. math::
    f_i = \min_j\, [M_\alpha]_{ij} - g_j, \qquad
    g_j \leftarrow \min_i\, [M_\alpha]_{ij} - f_i ,

and the plan pays its group costs. Both take one pass over the costs, in blocks of rows, in double
precision and where the costs are; a result does it when it is asked to.

Rounding is accounted for as in `frot.problem.bounds`. Sums over k points err by k / 2 units of
their terms' sizes at most.
"""

from __future__ import annotations

import numpy as np

from frot._base.arrays import Array, blocks, summation, to_numpy
from frot.costs.protocol import Rounding
from frot.plans.feasible import LAZY_MARGINALS
from frot.plans.lazy import LazyPlan
from frot.plans.plan import Plan, bring_plan
from frot.problem.bounds import Lower, allowed_weights, proven_dual
from frot.problem.problem import Problem


def interval_without_eps(
    problem: Problem, alpha: Array, g: Array, plan: Plan
) -> tuple[float, float]:
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
    >>> from frot.costs import Stack
    >>> half, costs = np.full(2, 0.5), Stack(np.array([[[0.0, 1.0], [1.0, 0.0]]]))
    >>> problem = Problem(costs, half, half, eps=1.0)
    >>> low, high = interval_without_eps(problem, np.ones(1), np.zeros(2), Plan(np.eye(2) / 2))
    >>> low <= 0.0 <= high <= 1e-12
    True
    """
    return plain_lower(problem, alpha, g).bound, _plain_upper(problem, plan)


def plain_lower(problem: Problem, alpha: Array, g: Array) -> Lower:
    """Make potentials of the columns feasible without eps, and return what they prove."""
    alpha, g = (np.asarray(to_numpy(part), dtype=float) for part in (alpha, g))
    alpha = allowed_weights(problem, alpha)
    f, g = _minima(problem, alpha, np.where(np.isfinite(g), g, 0.0))
    return proven_dual(problem, alpha, f, g, _mix_error(problem, alpha))


def _minima(problem: Problem, alpha: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the two c-transforms of g, (n,) and (m,)."""
    costs, (_, n, m) = problem.costs.double(), problem.shape
    home, least = costs.home, []
    # Columns without weight do not constrain f; their g is the c-transform of f.
    weights, start = home.bring(alpha), home.bring(np.where(problem.b > 0.0, g, -np.inf))
    best = None
    for part in blocks(n, 8 * m):
        mixed = costs.rows(part).mix(weights)
        least.append(home.xp.min(mixed - start, axis=1))
        top = home.xp.min(mixed - least[-1][:, None], axis=0)
        best = top if best is None else home.xp.minimum(best, top)
    return to_numpy(home.xp.concat(least)), to_numpy(best)


def _mix_error(problem: Problem, alpha: np.ndarray) -> Rounding:
    """Return what mixed costs are off by, on the host."""
    costs, (_, n, m) = problem.costs.double(), problem.shape
    relative, rows, cols = map(to_numpy, costs.rounding(costs.home.bring(alpha)))
    return Rounding(float(relative), np.broadcast_to(rows, n), np.broadcast_to(cols, m))


def _plain_upper(problem: Problem, plan: Plan) -> float:
    """Return what the plan costs at most without its entropy."""
    costs, (_, n, m) = problem.costs.double(), problem.shape
    home = costs.home
    # As it was proven: a user may have it in single precision.
    plan = bring_plan(plan, home if isinstance(plan, LazyPlan) else None)
    phi = 0.0
    for part in blocks(n, 8 * m):
        phi = phi + costs.rows(part).inner(home.bring(plan.rows(part)))
    masses = tuple(np.asarray(to_numpy(plan.sum(axis=axis)), dtype=float) for axis in (1, 0))
    doubt = to_numpy(costs.doubt(phi, *map(home.bring, masses)))
    host = to_numpy(phi)
    # Plans are feasible to some units of every mass, and nine times these of a b^T make up for it.
    sums = LAZY_MARGINALS + summation(n + m)
    total = float(masses[0].sum()) + float(problem.a.sum() * problem.b.sum())
    doubt = doubt + sums * np.abs(host) + 9.0 * sums * total * problem.sizes
    price = error = 0.0
    sides = zip(problem.marginals.sides, (problem.a, problem.b), masses, strict=True)
    for side, weights, mass in sides:
        on = weights > 0.0
        price += side.price(weights[on], mass[on])
        error += side.price_error(weights[on], mass[on], sums)
    return float(problem.adversary.upper(host, doubt)) + price + error
