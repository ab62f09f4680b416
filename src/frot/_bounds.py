r"""Certificates: an interval that holds the optimum, whatever a solver did.

Upper bound: the objective of a plan whose marginals are right. Lower bound: for any weights
alpha and any potential g, with f and g made feasible by two c-transforms of the mixed cost,

.. math::
    \langle a, f \rangle + \langle b, g \rangle + r(\alpha)
    \;\le\; \min_{\Pi} \langle \Pi, M_\alpha \rangle + r(\alpha) \;\le\; \text{optimum},

where r is what the adversary is paid for alpha (its entropy). Both are widened by what rounding
in double precision can have done to them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frot._costs._protocol import UNIT
from frot._feasible import round_plan
from frot._plan import Plan
from frot._problem import Problem

__all__ = [
    "Lower",
    "Upper",
    "lower_bound",
    "relative_gap",
    "upper_bound",
]

TINY = float(np.finfo(float).tiny)

# Rounding of entries is looked into where it is more than this share of a bound, and by so many
# arcs a point at most.
MATTERS = 2e-10
SHARP_ARCS = 50


@dataclass(frozen=True, eq=False)
class Upper:
    """A feasible plan, its group costs, its objective, and that widened by rounding.

    Where the objective has an entropy of the plan, `plain` is the bound without it.
    """

    bound: float
    value: float
    plan: Plan
    phi: np.ndarray
    plain: float | None = None


@dataclass(frozen=True, eq=False)
class Lower:
    """Weights and feasible potentials, and the value they prove; `plain` as for `Upper`.

    `slack` is what was taken off for rounding.
    """

    bound: float
    alpha: np.ndarray
    f: np.ndarray
    g: np.ndarray
    slack: float = 0.0
    plain: float | None = None


def upper_bound(
    problem: Problem, plan: Plan, phi: np.ndarray | None = None, *, rounded: bool = False
) -> Upper:
    """Round the plan unless it already is, and take its objective as an upper bound.

    `phi` may be given where the plan is feasible as it is and its costs are known.
    """
    if not rounded:
        plan = round_plan(plan, problem.a, problem.b)
        phi = None
    if phi is None:
        phi = problem.costs.inner(plan)
    value, _ = problem.adversary.best(phi)
    # Costs may be off by some doubt each; the objective grows with every one of them.
    bound, _ = problem.adversary.best(phi + problem.costs.doubt(phi, plan))
    return Upper(float(bound + _entropy_rounding(problem, bound)), float(value), plan, phi)


def _entropy_rounding(problem: Problem, value: float) -> float:
    """What logarithms and exponentials of eta's entropy may add to a bound."""
    eta = problem.adversary.eta
    if eta == 0.0:
        return 0.0
    prior = problem.adversary.log_prior
    spread = float(np.log(problem.shape[0])) + (0.0 if prior is None else float(-prior.min()))
    return 8.0 * UNIT * (abs(value) + eta * (1.0 + spread))


def lower_bound(
    problem: Problem, alpha: np.ndarray, g: np.ndarray, mixed: np.ndarray | None = None
) -> Lower:
    """Make (alpha, g) dual feasible and return the value it proves.

    `mixed` is ``problem.costs.mix(alpha)`` where the caller has it already; `alpha` must then be
    the weights it was mixed with, on the simplex.
    """
    if mixed is None:
        alpha = np.maximum(alpha, 0.0)
        alpha = alpha / alpha.sum()
        mixed = problem.costs.mix(alpha)
    elif not abs(float(alpha.sum()) - 1.0) <= 1e-9:
        raise ValueError(f"weights that prove a bound must sum to one, not to {alpha.sum()}")
    relative, absolute = problem.costs.rounding(alpha)
    f, g = c_transforms(mixed, g, shrink=relative + 4.0 * UNIT)
    bound = float(problem.a @ f + problem.b @ g)
    if absolute > MATTERS * abs(bound):
        sharper = _sharpen(problem, alpha, mixed, f, g, absolute)
        if sharper is not None:
            f, g = c_transforms(sharper, g, shrink=4.0 * UNIT)
            bound, absolute = float(problem.a @ f + problem.b @ g), 0.0
    # Each potential is right to its last place, and weighs what its point does.
    size = float(problem.a @ np.abs(f) + problem.b @ np.abs(g))
    slack = absolute + (8.0 + float(np.sqrt(len(f) + len(g)))) * UNIT * size
    bound -= slack
    if problem.costs.nonnegative:
        bound = max(bound, 0.0)
    bound += problem.adversary.reward(alpha)
    entropy = _entropy_rounding(problem, bound)
    return Lower(float(bound - entropy), alpha, f, g, slack + entropy)


def _sharpen(
    problem: Problem,
    alpha: np.ndarray,
    mixed: np.ndarray,
    f: np.ndarray,
    g: np.ndarray,
    absolute: float,
) -> np.ndarray | None:
    """Return a matrix that is nowhere above the mixed cost, and sharp where it binds.

    Far from binding, taking off the whole error costs nothing.
    """
    rows, cols = np.nonzero(mixed <= f[:, None] + g + 4.0 * absolute)
    if len(rows) > SHARP_ARCS * sum(mixed.shape):
        return None
    values = problem.costs.sharp(alpha, rows, cols)
    if values is None:
        return None
    below = mixed - absolute
    below[rows, cols] = np.maximum(below[rows, cols], values)
    return below


def c_transforms(
    mixed: np.ndarray, g: np.ndarray, shrink: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return f_i = min_j M_ij - g_j, then g_j = min_i M_ij - f_i: feasible, and no worse.

    `shrink` takes that share off positive costs first, where they are known no better.

    Examples
    --------
    >>> c_transforms(np.array([[0.0, 2.0], [2.0, 0.0]]), np.array([0.0, 1.0]))
    (array([ 0., -1.]), array([0., 1.]))
    """
    # Where g is far out of range the difference may overflow; a potential of zero never does.
    if not np.isfinite(g).all():
        g = np.zeros_like(g)
    f = np.empty(len(mixed))
    best = np.full(mixed.shape[1], np.inf)
    # Row blocks keep the temporaries in the cache instead of making two more (n, m) matrices.
    step = max(1, 500_000 // max(1, mixed.shape[1]))
    for start in range(0, len(mixed), step):
        block = mixed[start : start + step]
        if shrink > 0.0:
            block = block - shrink * np.abs(block)
        f[start : start + step] = (block - g).min(axis=1)
        np.minimum(best, (block - f[start : start + step, None]).min(axis=0), out=best)
    return f, best


def relative_gap(lower: float, upper: float) -> float:
    """Return (upper - lower) relative to the larger of the two in size.

    Examples
    --------
    >>> relative_gap(0.75, 1.0)
    0.25
    >>> relative_gap(0.0, 0.0)
    0.0
    """
    if upper <= lower:
        return 0.0
    # Against a bound that is not known, all of the interval is open.
    if np.isinf(upper) or np.isinf(lower):
        return 1.0
    return float((upper - lower) / max(abs(upper), abs(lower), TINY))
