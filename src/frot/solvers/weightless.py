"""Points without weight: left out before any solver, and put back with their potentials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from frot._base.arrays import UNIT, blocks, to_numpy
from frot.costs import Costs
from frot.plans.combine import expand_plan
from frot.problem.problem import Marginals, Problem
from frot.problem.result import Result


def on_support(
    problem: Problem, solve: Callable[[Problem, np.ndarray, np.ndarray], Result]
) -> Result:
    """Solve without the points of zero weight, and put them back.

    `solve` gets the problem that is left, and the rows and columns it has.
    """
    small, rows, cols = problem.support()
    if small is problem:
        return solve(small, rows, cols)
    return put_back(problem, solve(small, rows, cols), rows, cols)


def put_back(problem: Problem, result: Result, rows: np.ndarray, cols: np.ndarray) -> Result:
    """Give points without weight rows and columns of zeros, and potentials.

    These are c-transforms of the others' (`_transformed`), rows first. Without eps columns look at
    all rows, so that no two points are left with a cost below their potentials.
    """
    n, m = len(problem.a), len(problem.b)
    f, g = np.zeros(n), np.zeros(m)
    f[rows], g[cols] = (to_numpy(part) for part in result.potentials)
    alpha, marginals = to_numpy(result.alpha), problem.marginals
    eps = problem.eps
    out_rows, out_cols = np.setdiff1d(np.arange(n), rows), np.setdiff1d(np.arange(m), cols)
    if len(out_rows):
        costs = problem.costs.take(out_rows, cols)
        f[out_rows] = _transformed(costs, alpha, g[cols], problem.b[cols], eps, 0)
        f[out_rows] = _priced(f[out_rows], _price(marginals.tau_a, marginals, f[rows]), problem)
    if len(out_cols):
        by = rows if eps > 0.0 else np.arange(n)
        costs = problem.costs.take(by, out_cols)
        g[out_cols] = _transformed(costs, alpha, f[by], problem.a[by], eps, 1)
        g[out_cols] = _priced(g[out_cols], _price(marginals.tau_b, marginals, g[cols]), problem)
    plan = expand_plan(result.plan, rows, cols, (n, m))
    known = None if result.problem is None else problem
    return replace(
        result,
        plan=plan,
        potentials=(f, g),
        points=problem.points,
        weights=(problem.a, problem.b),
        problem=known,
    )


def _transformed(
    costs: Costs, alpha: np.ndarray, other: np.ndarray, weights: np.ndarray, eps: float, axis: int
) -> np.ndarray:
    r"""Return the potentials of all rows (`axis` 0) or columns (1) that the other side leaves them.

    .. math::
        \min_j M_{ij} - g_j, \qquad \text{with eps} \quad
        -\varepsilon \log \sum_j b_j e^{(g_j - M_{ij}) / \varepsilon}

    The second is the derivative of the optimum by the weight of a point that has none.
    """
    count, width = costs.shape[1 + axis], costs.shape[2 - axis]
    potential, everyone = np.empty(count), np.arange(width)
    for part in blocks(count, 8 * width):
        some = np.arange(count)[part]
        ends = (some, everyone) if axis == 0 else (everyone, some)
        mixed = to_numpy(costs.take(*ends).mix(costs.home.bring(alpha)))
        reduced = (mixed if axis == 0 else mixed.T) - other
        least = reduced.min(axis=1)
        if eps > 0.0:
            shares = np.exp((least[:, None] - reduced) / eps) @ weights
            least = least - eps * np.log(np.maximum(shares, UNIT * weights.min()))
        potential[part] = least
    # A user's metric may be infinite at points without weight.
    return np.where(np.isfinite(potential), potential, 0.0)


def _price(tau: float, marginals: Marginals, potential: np.ndarray) -> float:
    """What a side pays: of a given mass, the price at which as much is left out."""
    return tau if marginals.mass is None else float(potential.max())


def _priced(potential: np.ndarray, tau: float, problem: Problem) -> np.ndarray:
    """Potentials where mass has a price: with eps a share of them, without it at most the price."""
    if tau == np.inf:
        return potential
    if problem.marginals.partial:
        return np.minimum(potential, tau)
    return potential * (tau / (tau + problem.eps))
