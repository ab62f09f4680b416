"""Where the interior point begins: on which arcs and groups, and at a point well inside.

A few rough entropic sweeps tell which arcs matter. What they miss enters later, by price.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from frot._base.arrays import UNIT, to_numpy
from frot._base.stopping import check_deadline
from frot.plans.feasible import northwest
from frot.plans.plan import Plan
from frot.problem.bounds import lower_bound, upper_bound
from frot.problem.problem import Problem
from frot.solvers.drive import Offer, Start
from frot.solvers.entropic.ascent import Ascent
from frot.solvers.entropic.entropic import EntropicRun
from frot.solvers.entropic.point import gaps
from frot.solvers.exact.interior import Interior, inside_cap
from frot.solvers.oracles import NetworkSimplex

# Entropic regularisation of the sweeps, in typical costs.
SEED_EPS = 0.02
# Up to so many groups all are in from the start.
FEW_GROUPS = 100
# Arcs that cost more than so many typical ones stand for pairs that must not be matched: they are
# not among the first, and which of them a plan needs only transport can tell.
FORBIDDEN = 1e3


class Sweeps(NamedTuple):
    """Rough entropic transport: weights, mixed cost, potentials and a plan, not feasible."""

    alpha: np.ndarray
    mixed: np.ndarray
    f: np.ndarray
    g: np.ndarray
    plan: np.ndarray

    def bounds(self, problem: Problem) -> Offer:
        """What the sweeps prove."""
        lower = lower_bound(problem, self.alpha, self.g, self.mixed)
        return Offer(upper_bound(problem, Plan(self.plan, copy=False)), lower)


class Seed(NamedTuple):
    """A start: weights, potentials of their mixed cost, arcs as flat indices i * m + j."""

    alpha: np.ndarray
    f: np.ndarray
    g: np.ndarray
    arcs: np.ndarray


def nearest(reduced: np.ndarray, per_point: int) -> np.ndarray:
    """Return the flat indices of the smallest entries of every row and every column.

    Examples
    --------
    >>> nearest(np.array([[0.0, 5.0], [4.0, 1.0]]), per_point=1)
    array([0, 3])
    """
    n, m = reduced.shape
    along_rows, along_cols = min(per_point, m), min(per_point, n)
    of_rows = np.argpartition(reduced, along_rows - 1, axis=1)[:, :along_rows]
    # Partitioning rows of a copy is faster than striding down the columns.
    of_cols = np.argpartition(reduced.T.copy(), along_cols - 1, axis=1)[:, :along_cols]
    rows = np.arange(n)[:, None] * m + of_rows
    return np.union1d(rows, of_cols * m + np.arange(m)[:, None])


def cheapest(reduced: np.ndarray, per_point: float, below: float = np.inf) -> np.ndarray:
    """Return the flat indices of the smallest entries overall, about `per_point` a point.

    None of them reaches `below`. Potentials make reduced costs comparable between rows, so one
    threshold, read off a sample, does for all of them.

    Examples
    --------
    >>> cheapest(np.array([[0.0, 5.0], [4.0, 1.0]]), per_point=1, below=0.5)
    array([0])
    """
    n, m = reduced.shape
    flat = reduced.ravel()
    most = per_point * (n + m)
    if most < len(flat):
        sample = flat[:: max(1, len(flat) // 20_000)]
        rank = int(most / len(flat) * len(sample))
        below = min(below, float(np.partition(sample, rank)[rank]))
    return np.flatnonzero(flat < below)


def cost_scale(problem: Problem, alpha: np.ndarray) -> tuple[float, np.ndarray | None]:
    """Return the unit of costs, and potentials of the columns where these were worked out for it.

    A typical cost, unless plans pay far less: where pairs that must not be matched have a huge
    cost, or the two sets are near copies, it hides all differences between the costs that a plan
    is made of. There it is what transport at the weights alpha pays, if that is less than a
    thousandth; and no less than a millionth, nor than a thousandth of eta.
    """
    unit = problem.typical_cost or min(problem.marginals.tau_a, problem.marginals.tau_b)
    mixed = problem.costs.mix(alpha)
    least = max(problem.a @ mixed.min(axis=1), problem.b @ mixed.min(axis=0))
    # The network simplex is asked only where the largest cost is far above what every plan pays.
    if problem.marginals.unbalanced or least < 0.0 or least * 1e6 > float(mixed.max()):
        return unit, None
    transport = NetworkSimplex()(mixed, problem.a, problem.b)
    paid = float(alpha @ problem.costs.inner(transport.plan))
    if paid * FORBIDDEN >= unit:
        return unit, None
    return max(paid, 1e-6 * unit, 1e-3 * problem.adversary.eta), transport.g


def rough_sweeps(
    problem: Problem, alpha: np.ndarray, unit: float, g: np.ndarray | None = None
) -> Sweeps:
    """Take a few Sinkhorn sweeps at the mixed cost from g, or from nothing.

    Single precision is enough to find arcs, and a sweep is bound by memory.
    """
    a, b = problem.a, problem.b
    eps = SEED_EPS * unit
    mixed = problem.costs.mix(alpha)
    g = np.zeros(len(b)) if g is None else g
    score = (g - mixed) / eps
    top = score.max(axis=1)
    score -= top[:, None]
    # Whatever is below this is zero as a kernel, and may not fit single precision.
    kernel = np.maximum(score, -1e4, out=score).astype(np.float32)
    a32, b32 = a.astype(np.float32), b.astype(np.float32)
    tiny = np.float32(1e-30)
    # All numbers are from 0 to 1e38: products that are called invalid are of what lies behind small
    # arrays, which some BLAS multiply along with them.
    with np.errstate(under="ignore", invalid="ignore"):
        np.exp(kernel, out=kernel)
        u, v = 1.0 / np.maximum(kernel @ b32, tiny), np.ones(len(b), dtype=np.float32)
        # More than forty only while a twentieth of the mass is misplaced: over 36 problems the
        # interior point takes 5 % more steps without these others.
        for sweep in range(200):
            check_deadline()
            columns = kernel.T @ (a32 * u)
            if sweep >= 40 and b32 @ np.abs(v * columns - 1.0) < 0.05:
                break
            v = 1.0 / np.maximum(columns, tiny)
            u = 1.0 / np.maximum(kernel @ (b32 * v), tiny)
        f = eps * (np.log(u.astype(float)) - top)
        g = g + eps * np.log(v.astype(float))
        np.multiply(kernel, (a32 * u)[:, None], out=kernel)
        plan = np.multiply(kernel, b * v.astype(float), out=score)
    return Sweeps(alpha, mixed, f, g, plan)


def seed_arcs(problem: Problem, sweeps: Sweeps, unit: float, move_weights: bool) -> Seed:
    """Find arcs that matter by a few steps of mirror ascent on alpha with rough transport.

    After each step the arcs of smallest reduced cost are kept. The weights overshoot at first,
    which is welcome: arcs that are good at several mixes of the groups are those that the optimum
    needs. The result always admits a plan. Weights that are known to be good already stay.

    Over 36 problems the interior point takes 4 % more steps with half as many rounds, 12 % more
    without any, and 4 % more where weights may fall by more than the exponent -30 in a round, from
    which they do not come back.
    """
    kept: list[np.ndarray] = []
    for _ in range(4 if move_weights else 0):
        kept.append(cheapest(_reduced(sweeps), per_point=1))
        phi = problem.costs.inner(Plan(sweeps.plan, copy=False)) / unit
        alpha = sweeps.alpha * np.exp(np.maximum((phi - phi.max()) / 0.2, -30.0))
        sweeps = rough_sweeps(problem, problem.simplex.project(alpha), unit, sweeps.g)
    reduced = _reduced(sweeps)
    kept.append(nearest(reduced, per_point=6))
    arcs = np.concatenate(kept)
    arcs = arcs[sweeps.mixed.ravel()[arcs] <= FORBIDDEN * unit]
    arcs = np.union1d(arcs, _feasible_arcs(problem, sweeps, unit))
    return Seed(sweeps.alpha, sweeps.f, sweeps.g, arcs)


def _reduced(sweeps: Sweeps) -> np.ndarray:
    reduced = sweeps.mixed - sweeps.f[:, None]
    reduced -= sweeps.g
    return reduced


def _feasible_arcs(problem: Problem, sweeps: Sweeps, unit: float) -> np.ndarray:
    """Arcs that admit a plan: filled in the order of the potentials, where any plan will do."""
    a, b, m = problem.a, problem.b, problem.shape[2]
    if not float(sweeps.mixed.max()) <= FORBIDDEN * unit:
        rows, cols, mass = NetworkSimplex()(sweeps.mixed, a, b).plan.arcs()
        # Arcs that only carry round-off of the weights may have any cost.
        some = mass > (len(a) + len(b)) * UNIT * np.minimum(a[rows], b[cols])
        return rows[some] * m + cols[some]
    by_f, by_g = np.argsort(sweeps.f, kind="stable"), np.argsort(-sweeps.g, kind="stable")
    rows, cols, _ = northwest(a[by_f], b[by_g])
    return by_f[rows] * m + by_g[cols]


def unbalanced_seed(
    problem: Problem, start: Start, unit: float, gap: float = 3e-3, steps: int = 40
) -> Seed:
    """Solve the problem roughly with some eps, where mass may go; any arcs admit a plan there."""
    run = EntropicRun(problem.having(eps=SEED_EPS * unit), gap)
    ascent = Ascent(run.engine, *run.start(start.alpha, start.g), gap)
    xp = run.engine.problem.home.xp
    point = ascent.climb(lambda point: float(gaps(xp, point)[0]) <= gap, steps)
    alpha, f, g = (
        np.asarray(to_numpy(part)[0], dtype=float) for part in (point.alpha, point.f, point.g)
    )
    f, g = (np.where(np.isfinite(part), part, 0.0) for part in (f, g))
    alpha = problem.simplex.project(alpha)
    reduced = problem.costs.mix(alpha) - f[:, None]
    reduced -= g
    return Seed(alpha, f, g, nearest(reduced, per_point=6))


def first_groups(problem: Problem, alpha: np.ndarray, most: int = 400) -> np.ndarray:
    """All groups where the entropy needs them or they are few; else the heaviest.

    With the hundred heaviest alone, 400 groups of equal costs take 58 steps where 23 do.
    """
    count = len(alpha)
    if problem.adversary.eta > 0.0 or count <= FEW_GROUPS:
        return np.arange(count)
    order = np.lexsort((-problem.independent, -alpha))
    worth = int((alpha >= 1e-8 * alpha.max()).sum())
    # With a cap of 1/k the weights need more than k groups to vary.
    least = 2 * problem.adversary.k
    return np.sort(order[: max(min(max(worth, FEW_GROUPS), most), least)])


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
    costs = problem.costs
    everything = len(groups) == problem.shape[0] and bool((np.diff(groups) == 1).all())
    return costs.at(rows, cols) if everything else costs.entries(rows, cols, groups)


def first_iterate(
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
    a, b = problem.a / mass_unit, problem.b / mass_unit
    tau = (np.inf, np.inf)
    if problem.marginals.unbalanced:
        tau = (problem.marginals.tau_a / unit, problem.marginals.tau_b / unit)
    reduced = alpha @ costs - f[rows] - g[cols]
    z = np.maximum(reduced, 0.0) + 2.0 * SEED_EPS
    with np.errstate(under="ignore"):
        x = np.exp(np.minimum(-reduced / SEED_EPS, 30.0)) * a[rows] * b[cols] * mass_unit
    x = np.clip(x, 0.03 * SEED_EPS / z, np.maximum(np.minimum(a[rows], b[cols]), SEED_EPS / z))
    # Without a share of what a b^T gives arcs, one of 450 problems of some points against many
    # diverged.
    x = np.maximum(x, 0.1 * a[rows] * b[cols] * mass_unit)
    free = costs @ x - eta * (np.log(alpha) - log_prior)
    t = float(free.max()) + SEED_EPS / mass_unit
    sides, ends, potentials = (a, b), (rows, cols), (f, g)
    if flipped:
        sides, ends, potentials = sides[::-1], ends[::-1], potentials[::-1]
        tau = (tau[1], tau[0])
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
        tau=tau,
    )
