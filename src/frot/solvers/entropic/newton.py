r"""Joint Newton steps on the potential g and the weights alpha, rows of the plan kept exact.

With :math:`P` the plan, :math:`A = \mathrm{diag}(a)`, and for every group its row sums
:math:`R_l = (P \circ C_l) 1`, column sums :math:`S_l = (P \circ C_l)^\top 1` and products
:math:`Q_{lk} = \langle P, C_l \circ C_k \rangle`, the dual's second derivatives are

.. math::
    -\frac{1}{\varepsilon} \begin{pmatrix}
      \mathrm{diag}(P^\top 1) - P^\top A^{-1} P & -(S - P^\top A^{-1} R) \\
      -(S - P^\top A^{-1} R)^\top & Q - R^\top A^{-1} R + \varepsilon\,
        \mathrm{diag}((\eta + \delta + s) / \alpha)
    \end{pmatrix}

in (g, alpha), with a damping delta that keeps steps short until they are trusted (of g too, as a
share of the diagonal), and s what a group earns less than the mixture does. Weights are kept off
zero as in interior-point methods: steps raise the dual value plus a barrier,

.. math:: D(g, \alpha) + \mu \sum_l \log \alpha_l, \qquad
          \mu = \frac{\sigma}{L} \big( G_\eta(\phi) - \langle \alpha, \phi \rangle - r \big) ,

whose mu is a share of what the best answer to the plan earns more than alpha, and so vanishes at
the optimum. Without it weights that were driven to zero too early never come back. Where no group
may weigh more than a cap c, groups that earn more than the free ones do go there by as much over
c - alpha.

Where rows need not be kept, f moves by kappa times as much: :math:`\kappa A^{-1}` takes the place
of :math:`A^{-1}`, A being what they weigh; and columns that need not be have
:math:`\varepsilon\, b\, e^{-g / \tau} / \tau` on the diagonal.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import NamedTuple

import numpy as np

from frot._base.arrays import Array, quiet, safe_log
from frot.solvers.entropic.dense import DenseEngine
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.point import Point, gaps, select


class Trust(NamedTuple):
    """What a step takes over from the one before: delta, (B, 1), and mu, (B,).

    Damping falls where steps are good; the barrier only falls, or a step that overshoots, and whose
    plan pays a lot in some group, would send the weights back to where they came from.
    """

    damping: Array
    barrier: Array

    @classmethod
    def begin(cls, problem: EntropicProblem) -> Trust:
        """Little damping, and any barrier."""
        return cls(1e-4 * problem.scale, problem.home.xp.inf + 0.0 * problem.scale[:, 0])

    def members(self, xp: ModuleType, index: Array) -> Trust:
        """That of some members only."""
        return Trust(*(xp.take(part, index, axis=0) for part in self))


def newton_step(engine: DenseEngine, point: Point, trust: Trust) -> tuple[Point, Trust]:
    """Take a step; return the point, and what the next one takes over.

    A member that no step helps stays where it is, and gets a larger damping.
    """
    # Where numbers leave their range no direction is usable: that is looked for, not warned of.
    with quiet():
        return _step(engine, point, trust)


def newton_path(engine: DenseEngine, point: Point, close: float = 1e-2, steps: int = 10) -> Point:
    """Come down to eps from far above, by some steps at each eps, from the weights of a point.

    At a small eps steps are some eps long, and potentials of far clusters may be a great many of
    these from where they belong; at an eps of their own size they get there in a step or two. The
    first eps is a fourth of the largest cost, each a fourth of the last, and is left at an error
    and a gap that are `close`, or after so many steps. Of 70 problems 38 stall without.
    """
    xp, problem = engine.problem.home.xp, engine.problem
    largest = xp.max(xp.abs(engine.stack), axis=(1, 2, 3))[:, None]
    level = xp.maximum(0.25 * largest, problem.eps)
    alpha, g = (
        problem.adversary.project(point.alpha + 1e-3 / point.alpha.shape[1]),
        xp.zeros_like(point.g),
    )
    while True:
        above = replace(engine, problem=replace(problem, eps=level))
        ahead, trust = above.sweep(alpha, g, close, 20), Trust.begin(problem)
        for _ in range(steps):
            if bool(xp.all((ahead.error <= close) & (gaps(xp, ahead) <= close))):
                break
            ahead, trust = newton_step(above, ahead, trust)
        if not bool(xp.any(level > problem.eps)):
            return ahead
        alpha, g = ahead.alpha, ahead.g
        level = xp.maximum(0.25 * level, problem.eps)


def _step(engine: DenseEngine, point: Point, trust: Trust) -> tuple[Point, Trust]:
    xp, problem, damping = engine.problem.home.xp, engine.problem, trust.damping
    # Where no step helps the answer is the point as it was: lifted weights have other values.
    here, point = point, replace(point, alpha=_revived(problem, point.alpha, point.phi))
    barrier = xp.minimum(trust.barrier, _barrier(problem, point.alpha, point.phi))
    dg, dalpha = _direction(engine, point, damping, barrier)
    if not problem.unbalanced:
        # A constant on all columns changes nothing, and in large numbers all digits of the others.
        dg = dg - xp.sum(problem.b * dg, axis=1, keepdims=True)
    usable = xp.all(xp.isfinite(dg), axis=1) & xp.all(xp.isfinite(dalpha), axis=1)
    dg = xp.where(usable[:, None], dg, xp.zeros_like(dg))
    dalpha = xp.where(usable[:, None], dalpha, xp.zeros_like(dalpha))
    length = _longest(problem, point, dg, dalpha)
    noise = 4.0 * float(xp.finfo(problem.home.dtype).eps)
    before = point.dual + barrier * xp.sum(safe_log(point.alpha), axis=1)
    best, rose = here, xp.zeros_like(usable)
    # Eight lengths, each a tenth of the last, before the damping is raised.
    for _ in range(8):
        alpha = problem.adversary.project(point.alpha + length * dalpha)
        # One sweep costs next to nothing on the kernel that the look at the value needs anyway.
        ahead = engine.sweep(alpha, point.g + length * dg, 0.0, 1)
        after = ahead.dual + barrier * xp.sum(safe_log(ahead.alpha), axis=1)
        # Near the optimum the dual is flat to rounding while the primal still comes closer.
        better = after - before >= -noise * xp.abs(point.dual)
        best = select(xp, better & ~rose, ahead, best)
        rose = rose | better
        if bool(xp.all(rose)):
            break
        length = xp.where(rose[:, None], length, 0.1 * length)
    damping = damping * problem.pick(rose, 0.01, 10.0)
    damping = xp.minimum(xp.maximum(damping, 1e-12 * problem.scale), 1e6 * problem.scale)
    return best, Trust(damping, barrier)


def _longest(problem: EntropicProblem, point: Point, dg: Array, dalpha: Array) -> Array:
    """Return the longest step to try, (B, 1): inside the simplex, and no further than costs are."""
    xp = problem.home.xp
    falls = dalpha < 0.0
    ratio = xp.where(falls, -point.alpha / xp.where(falls, dalpha, -1.0), xp.inf)
    reach = xp.min(ratio, axis=1, keepdims=True)
    if problem.k > 1:
        rises = dalpha > 0.0
        ratio = xp.where(rises, _room(problem, point.alpha) / xp.where(rises, dalpha, 1.0), xp.inf)
        reach = xp.minimum(reach, xp.min(ratio, axis=1, keepdims=True))
    size = problem.scale[:, 0] + xp.max(xp.abs(point.f), axis=1) + xp.max(xp.abs(point.g), axis=1)
    far = xp.max(xp.abs(dg), axis=1)
    # Ten times what potentials and costs are: of 81 hard problems 9 stall, with a thousand 10.
    share = xp.where(far > 10.0 * size, 10.0 * size / xp.clip(far, 1e-300, None), 1.0)
    return xp.minimum(xp.clip(0.99 * reach, None, 1.0), share[:, None])


def _direction(
    engine: DenseEngine, point: Point, damping: Array, barrier: Array
) -> tuple[Array, Array]:
    """Solve for the step in (g, alpha), with alpha's sum kept."""
    xp, problem, alpha = engine.problem.home.xp, engine.problem, point.alpha
    batch, count = alpha.shape
    least = _least_ridge(problem)
    gg, cross, aa = _second_derivatives(
        engine, point, xp.clip(damping / problem.scale, least, None)
    )
    masses, wanted = xp.sum(point.plan, axis=1), problem.col_masses(point.g)
    ee = xp.eye(count, dtype=problem.home.dtype, device=problem.home.device)
    slope = _slope(problem, alpha, point.phi)
    # Groups that earn less than the mixture are on their way out: the less, the faster.
    short, capped = _short(problem, alpha, slope)
    curvature = problem.eps * (problem.eta + damping + short) / xp.clip(alpha, _tiny(problem), None)
    curvature = curvature + problem.eps * capped
    aa = aa + curvature[:, :, None] * ee
    gradient_g = problem.eps * (wanted - masses)
    gradient_a = problem.eps * (slope + barrier[:, None] / xp.clip(alpha, 1e-14, None))
    # Eliminate g, then keep the sum of alpha: two small solves.
    right = xp.concat([gradient_g[:, :, None], xp.matrix_transpose(cross)], axis=2)
    solved = _solve(xp, gg, right)
    g0, gl = solved[:, :, :1], solved[:, :, 1:]
    reduced = aa - cross @ gl
    target = gradient_a[:, :, None] + cross @ g0
    ones = xp.ones((batch, count, 1), dtype=problem.home.dtype, device=problem.home.device)
    pair = _solve(xp, reduced, xp.concat([target, ones], axis=2))
    free, level = pair[:, :, :1], pair[:, :, 1:]
    multiplier = xp.sum(free, axis=1, keepdims=True) / xp.sum(level, axis=1, keepdims=True)
    dalpha = free - multiplier * level
    dg = g0 + gl @ dalpha
    return dg[:, :, 0], dalpha[:, :, 0]


def _second_derivatives(
    engine: DenseEngine, point: Point, ridge: Array
) -> tuple[Array, Array, Array]:
    """Return the blocks (g, g), (alpha, g) and (alpha, alpha) of costs and entropy alone.

    `ridge`, (B, 1), is added to the first as a share of its diagonal.
    """
    xp, problem = engine.problem.home.xp, engine.problem
    P, C = point.plan, engine.stack
    batch, count, n, m = C.shape
    rows, masses = xp.sum(P, axis=2), xp.sum(P, axis=1)
    inverse = xp.where(rows > 0.0, 1.0 / xp.where(rows > 0.0, rows, 1.0), 0.0)
    if problem.rows is not None:
        inverse = inverse * problem.rows.damping(problem.eps)
    weighted = P[:, None, :, :] * C
    R, S = xp.sum(weighted, axis=3), xp.sum(weighted, axis=2)
    flat = (batch, count, n * m)
    Q = xp.reshape(weighted, flat) @ xp.matrix_transpose(xp.reshape(C, flat))
    scaled = xp.matrix_transpose(P) * inverse[:, None, :]
    # Columns without mass have nothing to move: a one on the diagonal leaves them alone.
    diagonal = xp.where(masses > 0.0, masses * (1.0 + ridge), xp.ones_like(masses))
    if problem.cols is not None:
        diagonal = diagonal + problem.col_masses(point.g) * (problem.eps / problem.cols.tau)
    eye = xp.eye(m, dtype=problem.home.dtype, device=problem.home.device)
    gg = diagonal[:, :, None] * eye - scaled @ P
    if not problem.unbalanced:
        # The constant that f and g share is pinned by a rank-one term.
        gg = gg + masses[:, :, None] * masses[:, None, :]
    aa = Q - (R * inverse[:, None, :]) @ xp.matrix_transpose(R)
    return gg, S - R @ xp.matrix_transpose(scaled), aa


def weight_curvature(engine: DenseEngine, point: Point) -> Array:
    """Return the second derivatives by alpha of the optimum at given weights, (B, L, L).

    Those of the costs alone, without eta; potentials of the point are optimal, and its kernel is
    kept.
    """
    xp, problem = engine.problem.home.xp, engine.problem
    with quiet():
        gg, cross, aa = _second_derivatives(
            engine, point, _least_ridge(problem) + 0.0 * problem.eps
        )
        moved = cross @ _solve(xp, gg, xp.matrix_transpose(cross))
        return (moved - aa) / problem.eps[:, :, None]


def _room(problem: EntropicProblem, alpha: Array) -> Array:
    """Return what weights have left up to the cap: something, so that steps are not of no length.

    What they go too far is projected.
    """
    return problem.home.xp.clip(1.0 / problem.k - alpha, 1e-12 / problem.k, None)


def _slope(problem: EntropicProblem, alpha: Array, phi: Array) -> Array:
    """Return what groups earn for more weight, (B, L): the derivative of the dual by alpha."""
    slope = phi - problem.eta * (safe_log(alpha) + 1.0)
    return slope if problem.log_prior is None else slope + problem.eta * problem.log_prior


def _revived(problem: EntropicProblem, alpha: Array, phi: Array) -> Array:
    """Lift weights that have all but vanished, of groups that earn more than the mixture."""
    xp, slope = problem.home.xp, _slope(problem, alpha, phi)
    level = xp.sum(alpha * slope, axis=1, keepdims=True)
    lifted = xp.clip(alpha, 1e-9, None)
    return problem.adversary.project(xp.where(slope > level, lifted, alpha))


def _barrier(problem: EntropicProblem, alpha: Array, phi: Array) -> Array:
    """Return mu, (B,).

    Of the 70 problems of 21,000 that stalled without it (ties, copies, outliers, one-hot weights),
    7 do with this share of the regret, 9 with a third of it, 13 with three times as much.
    """
    xp = problem.home.xp
    regret = problem.adversary.value(phi) - xp.vecdot(alpha, phi)
    regret = regret - problem.adversary.reward(alpha)
    return 0.1 / alpha.shape[1] * xp.clip(regret, 0.0, None)


def _short(problem: EntropicProblem, alpha: Array, slope: Array) -> tuple[Array, Array]:
    """Return what groups earn less than those that are free to move, and how the cap holds them."""
    xp = problem.home.xp
    if problem.k == 1:
        return xp.clip(xp.sum(alpha * slope, axis=1, keepdims=True) - slope, 0.0, None), 0.0
    room = _room(problem, alpha)
    free = alpha * room
    level = xp.sum(free * slope, axis=1, keepdims=True) / xp.sum(free, axis=1, keepdims=True)
    return xp.clip(level - slope, 0.0, None), xp.clip(slope - level, 0.0, None) / room


def _solve(xp: ModuleType, matrices: Array, right: Array) -> Array:
    """Solve all systems; one that is singular gets NaN, and keeps no other from its answer."""
    try:
        return xp.linalg.solve(matrices, right)
    # What NumPy and what PyTorch raise.
    except (np.linalg.LinAlgError, RuntimeError):
        if matrices.shape[0] == 1:
            return xp.nan * right
        alone = [slice(point, point + 1) for point in range(matrices.shape[0])]
        return xp.concat(
            [_solve(xp, matrices[point, ...], right[point, ...]) for point in alone], axis=0
        )


def _tiny(problem: EntropicProblem) -> float:
    return float(problem.home.xp.finfo(problem.home.dtype).smallest_normal)


def _least_ridge(problem: EntropicProblem) -> float:
    """Levenberg's share of the diagonal, at least: disconnected plans make the block singular.

    It has to be seen next to one, in single precision too.
    """
    return max(1e-10, 8.0 * float(problem.home.xp.finfo(problem.home.dtype).eps))
