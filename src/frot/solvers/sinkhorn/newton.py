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
from typing import Any, NamedTuple

import numpy as np

from frot._base.arrays import quiet
from frot._base.stopping import check_deadline
from frot.solvers.sinkhorn.dense import DenseEngine
from frot.solvers.sinkhorn.engine import Point, gaps, select
from frot.solvers.sinkhorn.terms import BatchTerms

# Of the way to the boundary of the simplex, so much at most.
INSIDE = 0.99
# Of the 70 problems of 21,000 that stalled without it (ties, copies, outliers, one-hot weights),
# 7 do with this barrier, 9 with a third of it, 13 with three times as much.
BARRIER = 0.1
# A weight that has all but vanished is lifted to this when its group earns more than the mixture.
REVIVED = 1e-9
# Steps are shortened so often, each time by this, before the damping is raised.
TRIALS, SHORTER = 8, 0.1
# How the damping moves, and its range, as a share of the costs.
LESS, MORE, LEAST, MOST = 0.01, 10.0, 1e-12, 1e6
# Potentials move by no more than so many times what they and the costs are. Levenberg's share of
# the diagonal, at least: disconnected plans make the block singular. Of 81 hard problems 9 stall,
# 10 with 1e3 for the first.
FARTHEST, RIDGE = 10.0, 1e-10
# The way down to a small eps begins at this share of the potentials, each eps is a fourth of the
# last, and is left at this error and gap or after so many steps. 38 of the 70 stall without it.
PATH_FROM, PATH_FACTOR, PATH_CLOSE, PATH_STEPS = 0.25, 0.25, 1e-2, 10
# Room up to the cap that counts as none, as a share of the cap.
LEAST_ROOM = 1e-12


class Trust(NamedTuple):
    """What a step takes over from the one before: delta, (B, 1), and mu, (B,).

    Damping falls where steps are good; the barrier only falls, or a step that overshoots, and whose
    plan pays a lot in some group, would send the weights back to where they came from.
    """

    damping: Any
    barrier: Any

    @classmethod
    def begin(cls, terms: BatchTerms) -> Trust:
        """Little damping, and any barrier."""
        return cls(1e-4 * terms.scale, terms.home.xp.inf + 0.0 * terms.scale[:, 0])

    def members(self, xp: Any, index: Any) -> Trust:
        """That of some members only."""
        return Trust(*(xp.take(part, index, axis=0) for part in self))


def newton_step(engine: DenseEngine, at: Point, trust: Trust) -> tuple[Point, Trust]:
    """Take a step; return the point, and what the next one takes over.

    A member that no step helps stays where it is, and gets a larger damping.
    """
    # Where numbers leave their range no direction is usable: that is looked for, not warned of.
    with quiet():
        return _step(engine, at, trust)


def newton_path(engine: DenseEngine, at: Point) -> Point:
    """Come down to eps from far above, by some steps at each eps, from the weights of a point.

    At a small eps steps are some eps long, and potentials of far clusters may be a great many of
    these from where they belong; at an eps of their own size they get there in a step or two.
    """
    xp, terms = engine.terms.home.xp, engine.terms
    largest = xp.max(xp.abs(engine.stack), axis=(1, 2, 3))[:, None]
    level = xp.maximum(PATH_FROM * largest, terms.eps)
    alpha, g = terms.project(at.alpha + 1e-3 / at.alpha.shape[1]), xp.zeros_like(at.g)
    while True:
        above = replace(engine, terms=replace(terms, eps=level))
        ahead, trust = above.sweep(alpha, g, PATH_CLOSE, 20), Trust.begin(terms)
        for _ in range(PATH_STEPS):
            if bool(xp.all((ahead.error <= PATH_CLOSE) & (gaps(xp, ahead) <= PATH_CLOSE))):
                break
            ahead, trust = newton_step(above, ahead, trust)
        if not bool(xp.any(level > terms.eps)):
            return ahead
        alpha, g = ahead.alpha, ahead.g
        level = xp.maximum(PATH_FACTOR * level, terms.eps)


def _step(engine: DenseEngine, at: Point, trust: Trust) -> tuple[Point, Trust]:
    xp, terms, damping = engine.terms.home.xp, engine.terms, trust.damping
    check_deadline()
    at = replace(at, alpha=_revived(terms, at.alpha, at.phi))
    barrier = xp.minimum(trust.barrier, _barrier(terms, at.alpha, at.phi))
    dg, dalpha = _direction(engine, at, damping, barrier)
    if not terms.soft:
        # A constant on all columns changes nothing, and in large numbers all digits of the others.
        dg = dg - xp.sum(terms.b * dg, axis=1, keepdims=True)
    usable = xp.all(xp.isfinite(dg), axis=1) & xp.all(xp.isfinite(dalpha), axis=1)
    dg = xp.where(usable[:, None], dg, xp.zeros_like(dg))
    dalpha = xp.where(usable[:, None], dalpha, xp.zeros_like(dalpha))
    length = _longest(terms, at, dg, dalpha)
    noise = 4.0 * float(xp.finfo(terms.home.dtype).eps)
    before = at.dual + barrier * xp.sum(terms.log(at.alpha), axis=1)
    best, rose = at, xp.zeros_like(usable)
    for _ in range(TRIALS):
        alpha = terms.project(at.alpha + length * dalpha)
        # One sweep costs next to nothing on the kernel that the look at the value needs anyway.
        ahead = engine.sweep(alpha, at.g + length * dg, 0.0, 1)
        after = ahead.dual + barrier * xp.sum(terms.log(ahead.alpha), axis=1)
        # Near the optimum the dual is flat to rounding while the primal still comes closer.
        better = after - before >= -noise * xp.abs(at.dual)
        best = select(xp, better & ~rose, ahead, best)
        rose = rose | better
        if bool(xp.all(rose)):
            break
        length = xp.where(rose[:, None], length, SHORTER * length)
    damping = damping * terms.pick(rose, LESS, MORE)
    damping = xp.minimum(xp.maximum(damping, LEAST * terms.scale), MOST * terms.scale)
    return best, Trust(damping, barrier)


def _longest(terms: BatchTerms, at: Point, dg: Any, dalpha: Any) -> Any:
    """Return the longest step to try, (B, 1): inside the simplex, and no further than costs are."""
    xp = terms.home.xp
    falls = dalpha < 0.0
    ratio = xp.where(falls, -at.alpha / xp.where(falls, dalpha, -1.0), xp.inf)
    reach = xp.min(ratio, axis=1, keepdims=True)
    if terms.k > 1:
        rises = dalpha > 0.0
        ratio = xp.where(rises, _room(terms, at.alpha) / xp.where(rises, dalpha, 1.0), xp.inf)
        reach = xp.minimum(reach, xp.min(ratio, axis=1, keepdims=True))
    size = terms.scale[:, 0] + xp.max(xp.abs(at.f), axis=1) + xp.max(xp.abs(at.g), axis=1)
    far = xp.max(xp.abs(dg), axis=1)
    share = xp.where(far > FARTHEST * size, FARTHEST * size / xp.clip(far, 1e-300, None), 1.0)
    return xp.minimum(xp.clip(INSIDE * reach, None, 1.0), share[:, None])


def _direction(engine: DenseEngine, at: Point, damping: Any, barrier: Any) -> tuple[Any, Any]:
    """Solve for the step in (g, alpha), with alpha's sum kept."""
    xp, terms = engine.terms.home.xp, engine.terms
    P, C, alpha = at.plan, engine.stack, at.alpha
    batch, count, n, m = C.shape
    rows = xp.sum(P, axis=2)
    inverse = xp.where(rows > 0.0, 1.0 / xp.where(rows > 0.0, rows, 1.0), 0.0)
    if terms.rows is not None:
        inverse = inverse * terms.rows.damping(terms.eps)
    weighted = P[:, None, :, :] * C
    R, S = xp.sum(weighted, axis=3), xp.sum(weighted, axis=2)
    flat = (batch, count, n * m)
    Q = xp.reshape(weighted, flat) @ xp.matrix_transpose(xp.reshape(C, flat))
    scaled = xp.matrix_transpose(P) * inverse[:, None, :]
    masses = xp.sum(P, axis=1)
    # Columns without mass have nothing to move: a one on the diagonal leaves them alone.
    # It has to be seen next to one: in single precision the least ridge is a larger one.
    least = max(RIDGE, 8.0 * float(xp.finfo(terms.home.dtype).eps))
    ridge = xp.clip(damping / terms.scale, least, None)
    diagonal = xp.where(masses > 0.0, masses * (1.0 + ridge), xp.ones_like(masses))
    eye = xp.eye(m, dtype=terms.home.dtype, device=terms.home.device)
    wanted = terms.col_masses(at.g)
    if terms.cols is not None:
        diagonal = diagonal + wanted * (terms.eps / terms.cols.tau)
    gg = diagonal[:, :, None] * eye - scaled @ P
    if not terms.soft:
        # The constant that f and g share is pinned by a rank-one term.
        gg = gg + masses[:, :, None] * masses[:, None, :]
    cross = S - R @ xp.matrix_transpose(scaled)
    ee = xp.eye(count, dtype=terms.home.dtype, device=terms.home.device)
    slope = _slope(terms, alpha, at.phi)
    # Groups that earn less than the mixture are on their way out: the less, the faster.
    short, capped = _short(terms, alpha, slope)
    curvature = terms.eps * (terms.eta + damping + short) / xp.clip(alpha, _tiny(terms), None)
    curvature = curvature + terms.eps * capped
    aa = Q - (R * inverse[:, None, :]) @ xp.matrix_transpose(R) + curvature[:, :, None] * ee
    gradient_g = terms.eps * (wanted - masses)
    gradient_a = terms.eps * (slope + barrier[:, None] / xp.clip(alpha, 1e-14, None))
    # Eliminate g, then keep the sum of alpha: two small solves.
    right = xp.concat([gradient_g[:, :, None], xp.matrix_transpose(cross)], axis=2)
    solved = _solve(xp, gg, right)
    g0, gl = solved[:, :, :1], solved[:, :, 1:]
    reduced = aa - cross @ gl
    target = gradient_a[:, :, None] + cross @ g0
    ones = xp.ones((batch, count, 1), dtype=terms.home.dtype, device=terms.home.device)
    pair = _solve(xp, reduced, xp.concat([target, ones], axis=2))
    free, level = pair[:, :, :1], pair[:, :, 1:]
    multiplier = xp.sum(free, axis=1, keepdims=True) / xp.sum(level, axis=1, keepdims=True)
    dalpha = free - multiplier * level
    dg = g0 + gl @ dalpha
    return dg[:, :, 0], dalpha[:, :, 0]


def _room(terms: BatchTerms, alpha: Any) -> Any:
    """Return what weights have left up to the cap: something, so that steps are not of no length.

    What they go too far is projected.
    """
    return terms.home.xp.clip(1.0 / terms.k - alpha, LEAST_ROOM / terms.k, None)


def _slope(terms: BatchTerms, alpha: Any, phi: Any) -> Any:
    """Return what groups earn for more weight, (B, L): the derivative of the dual by alpha."""
    slope = phi - terms.eta * (terms.log(alpha) + 1.0)
    return slope if terms.log_prior is None else slope + terms.eta * terms.log_prior


def _revived(terms: BatchTerms, alpha: Any, phi: Any) -> Any:
    """Lift weights that have all but vanished, of groups that earn more than the mixture."""
    xp, slope = terms.home.xp, _slope(terms, alpha, phi)
    level = xp.sum(alpha * slope, axis=1, keepdims=True)
    lifted = xp.clip(alpha, REVIVED, None)
    return terms.project(xp.where(slope > level, lifted, alpha))


def _barrier(terms: BatchTerms, alpha: Any, phi: Any) -> Any:
    """Return mu, (B,)."""
    xp = terms.home.xp
    regret = terms.worst(phi) - xp.vecdot(alpha, phi) - terms.reward(alpha)
    return BARRIER / alpha.shape[1] * xp.clip(regret, 0.0, None)


def _short(terms: BatchTerms, alpha: Any, slope: Any) -> tuple[Any, Any]:
    """Return what groups earn less than those that are free to move, and how the cap holds them."""
    xp = terms.home.xp
    if terms.k == 1:
        return xp.clip(xp.sum(alpha * slope, axis=1, keepdims=True) - slope, 0.0, None), 0.0
    room = _room(terms, alpha)
    free = alpha * room
    level = xp.sum(free * slope, axis=1, keepdims=True) / xp.sum(free, axis=1, keepdims=True)
    return xp.clip(level - slope, 0.0, None), xp.clip(slope - level, 0.0, None) / room


def _solve(xp: Any, matrices: Any, right: Any) -> Any:
    """Solve all systems; one that is singular gets NaN, and keeps no other from its answer."""
    try:
        return xp.linalg.solve(matrices, right)
    # What NumPy and what PyTorch raise.
    except (np.linalg.LinAlgError, RuntimeError):
        if matrices.shape[0] == 1:
            return xp.nan * right
        alone = [slice(at, at + 1) for at in range(matrices.shape[0])]
        return xp.concat([_solve(xp, matrices[at, ...], right[at, ...]) for at in alone], axis=0)


def _tiny(terms: BatchTerms) -> float:
    return float(terms.home.xp.finfo(terms.home.dtype).smallest_normal)
