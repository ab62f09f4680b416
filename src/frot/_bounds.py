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

from frot._plan import Plan
from frot._problem import Problem

__all__ = [
    "Lower",
    "Upper",
    "lower_bound",
    "northwest",
    "relative_gap",
    "round_plan",
    "upper_bound",
]

UNIT = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)

# Below this share of the scale of costs a value counts as zero, and the gap is relative to it.
# Rounding alone is some 1e-14 of the mean cost, so a smaller share could never be certified.
ZERO_SHARE = 1e-3


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
    """Weights and feasible potentials, and the value they prove; `plain` as for `Upper`."""

    bound: float
    alpha: np.ndarray
    f: np.ndarray
    g: np.ndarray
    plain: float | None = None


def northwest(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fill a plan from its north-west corner: at most n + m - 1 arcs (rows, cols, mass).

    Examples
    --------
    >>> northwest(np.array([0.5, 0.5]), np.array([0.2, 0.8]))
    (array([0, 0, 1]), array([0, 1, 1]), array([0.2, 0.3, 0.5]))
    """
    row_ends, col_ends = np.cumsum(a), np.cumsum(b)
    total = min(row_ends[-1], col_ends[-1])
    cuts = np.union1d(row_ends, col_ends)
    cuts = cuts[(cuts > 0.0) & (cuts <= total)]
    if len(cuts) == 0 or cuts[-1] < total:
        cuts = np.append(cuts, total)
    mass = np.diff(cuts, prepend=0.0)
    middle = cuts - 0.5 * mass
    rows = np.minimum(np.searchsorted(row_ends, middle, side="right"), len(a) - 1)
    cols = np.minimum(np.searchsorted(col_ends, middle, side="right"), len(b) - 1)
    return rows, cols, mass


def round_plan(plan: Plan, a: np.ndarray, b: np.ndarray) -> Plan:
    """Move a plan to the marginals a and b: shrink what is too much, then fill what lacks.

    The filling runs from the north-west corner, so a sparse plan stays sparse.

    Examples
    --------
    >>> rough = Plan(np.array([[0.6, 0.0], [0.0, 0.3]]))
    >>> np.asarray(round_plan(rough, np.array([0.5, 0.5]), np.array([0.5, 0.5])))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    def shrink(have: np.ndarray, want: np.ndarray) -> np.ndarray:
        factor = np.ones_like(have)
        np.divide(want, have, out=factor, where=have > want)
        return factor

    if plan.is_sparse:
        rows, cols, mass = plan.arcs()
        mass = np.maximum(mass, 0.0)
        mass = mass * shrink(_sums(rows, mass, len(a)), a)[rows]
        mass = mass * shrink(_sums(cols, mass, len(b)), b)[cols]
        lack_a = np.maximum(a - _sums(rows, mass, len(a)), 0.0)
        lack_b = np.maximum(b - _sums(cols, mass, len(b)), 0.0)
        if lack_a.sum() == 0.0 or lack_b.sum() == 0.0:
            return Plan.from_arcs(rows, cols, mass, plan.shape)
        more = northwest(lack_a, lack_b)
        joined = [np.concatenate(pair) for pair in zip((rows, cols, mass), more, strict=True)]
        return Plan.from_arcs(joined[0], joined[1], joined[2], plan.shape)
    dense = np.maximum(plan.dense(), 0.0)
    dense *= shrink(dense.sum(axis=1), a)[:, None]
    dense *= shrink(dense.sum(axis=0), b)
    lack_a = np.maximum(a - dense.sum(axis=1), 0.0)
    lack_b = np.maximum(b - dense.sum(axis=0), 0.0)
    if lack_a.sum() > 0.0 and lack_b.sum() > 0.0:
        rows, cols, mass = northwest(lack_a, lack_b)
        np.add.at(dense, (rows, cols), mass)
    return Plan(dense)


def _sums(ends: np.ndarray, mass: np.ndarray, size: int) -> np.ndarray:
    # Of no arcs at all, bincount makes integers.
    return np.bincount(ends, mass, size).astype(float)


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
    value, alpha = problem.adversary.best(phi)
    # Sums of k terms of either sign err by about sqrt(k) units in the last place of the terms,
    # which are the costs where these are of one sign, and may be larger than their sum otherwise.
    terms = 8.0 + 2.0 * float(np.sqrt(plan.count))
    size = float(np.abs(phi).max())
    if not problem.costs.nonnegative:
        size += problem.costs.rounding(alpha) / UNIT
    slack = terms * UNIT * size + _entropy_rounding(problem, value)
    if not plan.is_sparse:
        # Costs of a dense plan come from matrix products, which round like those of a mix.
        slack += problem.costs.rounding(alpha)
    return Upper(float(value + slack), float(value), plan, phi)


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
    f, g = c_transforms(mixed, g)
    bound = float(problem.a @ f + problem.b @ g)
    slack = problem.costs.rounding(alpha)
    slack += 4.0 * UNIT * (float(np.abs(f).max()) + float(np.abs(g).max()))
    bound -= slack
    if problem.costs.nonnegative:
        bound = max(bound, 0.0)
    bound += problem.adversary.reward(alpha)
    return Lower(float(bound - _entropy_rounding(problem, bound)), alpha, f, g)


def c_transforms(mixed: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return f_i = min_j M_ij - g_j, then g_j = min_i M_ij - f_i: feasible, and no worse.

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
        f[start : start + step] = (block - g).min(axis=1)
        np.minimum(best, (block - f[start : start + step, None]).min(axis=0), out=best)
    return f, best


def relative_gap(lower: float, upper: float, scale: float) -> float:
    """Return (upper - lower) over |upper|, or over a thousandth of `scale` near zero.

    Examples
    --------
    >>> relative_gap(0.9, 1.0, scale=1.0)
    0.09999999999999998
    >>> relative_gap(0.0, 0.0, scale=0.0)
    0.0
    """
    if upper <= lower:
        return 0.0
    return float((upper - lower) / max(abs(upper), ZERO_SHARE * scale, TINY))
