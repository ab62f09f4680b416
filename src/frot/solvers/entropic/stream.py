r"""`StreamEngine`: kernels never kept; row blocks are formed, used and dropped, one pass a sweep.

Given g, a block of rows yields its part of f, and with f its part of the column sums c and of the
group costs: one pass over the kernel is a whole sweep, :math:`g \leftarrow g - \varepsilon \log c`.
Passes are dear: the first potential comes from the same problem between a sample of the points, and
where sweeps are slow, clusters of points are moved as a whole.

**Clusters.** Between clusters that little mass connects, sweeps move potentials by next to nothing
at a time. With clusters R of rows and S of columns, and A the mass of the plan between them, the
best potentials that differ from f and g by a constant on each cluster are

.. math:: f_i + \varepsilon \log r_{R(i)}, \qquad g_j + \varepsilon \log s_{S(j)} ,

where :math:`r_k A_{kl} s_l` has the masses of the clusters as its marginals: a problem of
Sinkhorn's again, of some dozens of points. The dual value cannot fall by it. Of 4,000 points in
twenty tight clusters, with eps at 5 and 1 % of the mean cost, a solve takes 4 and 15 times as long
without; on normal points it makes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from frot._base.arrays import Array, Home, blocks, quiet, safe_log, to_numpy
from frot._base.stopping import check_deadline
from frot.costs.points import Points
from frot.costs.protocol import Costs
from frot.problem.marginals import even_out
from frot.solvers.entropic.ascent import Ascent
from frot.solvers.entropic.dense import DenseEngine
from frot.solvers.entropic.engine import Closeness, Engine, Momentum, Sweeps
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.kernel import (
    BlockPasses,
    Passes,
    column_potentials,
    form_rows,
    row_blocks,
    scores_at,
)
from frot.solvers.entropic.point import Point, gaps, make_point

CLUSTERS = 64


class Clusters(NamedTuple):
    """The numbers of the clusters that rows (n,) and columns (m,) are in."""

    rows: Array
    cols: Array

    def one_hot(self, home: Home, side: Array) -> Array:
        """Return which points of a side are in which cluster, (points, clusters)."""
        eye = home.xp.eye(CLUSTERS, dtype=home.dtype, device=home.device)
        return home.xp.take(eye, side, axis=0)


def cluster_points(costs: Costs, problem: EntropicProblem, alpha: Array) -> Clusters | None:
    """Return clusters of the points as the mixed cost sees them; None of costs without points."""
    if not isinstance(costs, Points):
        return None
    home = problem.home
    root = home.xp.sqrt(costs.feature_weights(alpha)[0, :])
    sides = costs.X[0, :, :], costs.Y[0, :, :]
    seen = [to_numpy(some(points) * root).astype(float) for points in sides]
    sample = np.concatenate(seen)
    if len(np.unique(sample, axis=0)) < CLUSTERS:
        return None
    # Loaded where it is used: few runs have as many points.
    from scipy.cluster.vq import kmeans2

    result, _ = kmeans2(sample, _spread_out(sample), iter=5, minit="matrix")
    centres, root = home.bring(np.asarray(result)), home.xp.astype(root, home.dtype)
    return Clusters(*(_nearest(home, points, root, centres) for points in sides))


def _spread_out(points: np.ndarray) -> np.ndarray:
    """Draw centres, each the likelier the further it is from those before (k-means++).

    SciPy's own draw takes its generator by another name in every other version.
    """
    rng = np.random.default_rng(0)
    chosen = [points[rng.integers(len(points))]]
    apart = np.full(len(points), np.inf)
    while len(chosen) < CLUSTERS:
        apart = np.minimum(apart, ((points - chosen[-1]) ** 2).sum(axis=1))
        chosen.append(points[rng.choice(len(points), p=apart / apart.sum())])
    return np.array(chosen)


def some(points: Array) -> Array:
    """Return some two thousand points, evenly spread over the rows, (k, d)."""
    return points[:: max(1, points.shape[0] // 2_048), :]


def _nearest(home: Home, points: Array, root: Array, centres: Array) -> Array:
    """Return the number of the closest centre, (n,)."""
    xp = home.xp
    half = 0.5 * xp.sum(centres * centres, axis=1)
    parts = [
        xp.argmax((points[part, :] * root) @ xp.matrix_transpose(centres) - half, axis=1)
        for part in blocks(points.shape[0], 8 * CLUSTERS)
    ]
    return xp.concat(parts)


def cluster_scalings(masses: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return log s, (K,), of clusters with masses between them, (K, K), that should sum to a and b.

    Zero where a cluster has no column, or nothing reaches it.

    Examples
    --------
    >>> masses = np.array([[0.4, 0.1], [0.0, 0.5]])
    >>> s = np.exp(cluster_scalings(masses, np.array([0.5, 0.5]), np.array([0.3, 0.7])))
    >>> r = 0.5 / (masses @ s)
    >>> (r[:, None] * masses * s).sum(axis=0).round(6)
    array([0.3, 0.7])
    """
    rows, cols = (a > 0.0) & (masses.sum(axis=1) > 0.0), (b > 0.0) & (masses.sum(axis=0) > 0.0)
    result = np.zeros(len(b))
    with quiet():
        log_inner = np.log(masses[np.ix_(rows, cols)])
        result[cols] = _newton(log_inner, a[rows] / a[rows].sum(), b[cols] / b[cols].sum())
    return result


def _newton(
    log_masses: np.ndarray, a: np.ndarray, b: np.ndarray, steps: int = 100, tol: float = 1e-10
) -> np.ndarray:
    r"""Minimise :math:`\sum_k a_k \log \sum_l A_{kl} e^{t_l} - \langle b, t \rangle`, damped.

    Sweeps between clusters would be as slow as those between points.
    """
    t, damping = np.zeros(len(b)), 1e-3
    value, shares = _value(log_masses, a, b, t)
    for _ in range(steps):
        columns = a @ shares
        slope = columns - b
        if not np.isfinite(value) or np.abs(slope).sum() <= tol:
            break
        curved = np.diag(columns) - shares.T @ (a[:, None] * shares)
        curved[np.diag_indices(len(b))] += damping * columns + 1e-300
        step = np.linalg.lstsq(curved, -slope, rcond=1e-14)[0]
        # Clusters that nothing joins have no optimum: scalings must not run away in one step. Of 48
        # problems with outliers 17 end far from their optimum without a limit, 9 with 30, 6 with 3.
        ahead = t + step * min(1.0, 3.0 / max(float(np.abs(step).max()), 1e-300))
        lower, there = _value(log_masses, a, b, ahead)
        if lower <= value:
            t, value, shares, damping = ahead, lower, there, 0.1 * damping
        elif damping > 1e8:
            break
        else:
            damping *= 10.0
    return t


def _value(
    log_masses: np.ndarray, a: np.ndarray, b: np.ndarray, t: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return what is minimised, and how rows share their mass, (K, K)."""
    scores = log_masses + t
    level = scores.max(axis=1, keepdims=True)
    shares = np.exp(scores - level)
    total = shares.sum(axis=1, keepdims=True)
    return float(a @ (level + np.log(total))[:, 0] - b @ t), shares / total


# Points of either side in the sample.
SAMPLE_ON_HOST = 2_000


@dataclass(frozen=True, eq=False)
class StreamEngine(Engine):
    """Sinkhorn by passes over blocks of rows; one problem at a time."""

    # Every pass forms the kernel anew: a step on the weights costs no more than a sweep.
    patience: ClassVar[float] = 0.5
    most_sweeps: ClassVar[int] = 200

    def passes(self, alpha: Array) -> Passes:
        """Passes that form the plan anew, and keep nothing."""
        return BlockPasses(self.costs, self.problem, alpha, self.parts, keeps=False)

    def first_weights(self, alpha: Array) -> tuple[Array, Array]:
        """Those of the same problem between a sample of the points, with its potentials."""
        accuracy = 1e-3
        engine, rows = sampled(self.costs, self.problem)
        home = engine.problem.home
        ascent = Ascent(engine, home.xp.astype(alpha, home.dtype), tol=accuracy)
        point = ascent.climb(lambda point: float(gaps(home.xp, point)[0]) <= accuracy, limit=51)
        return self._extended(engine, rows, point)

    def start(self, alpha: Array, closeness: Array | Closeness = 0.5) -> Point:
        """Solve between a sample of the points first, and extend its potential to all."""
        return self.sweep(alpha, self.sampled_start(alpha), closeness)

    def sampled_start(self, alpha: Array) -> Array:
        """Return the potential g that the sample's solution at the given weights extends to."""
        engine, rows = sampled(self.costs, self.problem)
        home = engine.problem.home
        return self._extended(engine, rows, engine.start(home.xp.astype(alpha, home.dtype)))[1]

    def _extended(self, engine: DenseEngine, rows: np.ndarray, point: Point) -> tuple[Array, Array]:
        """Return the sample's weights, and the potentials that it leaves to all columns."""
        home = self.problem.home
        alpha, a, f = (
            home.xp.astype(x, home.dtype) for x in (point.alpha, engine.problem.a, point.f)
        )
        alpha = alpha / home.xp.sum(alpha, axis=1, keepdims=True)
        return alpha, self.extend(alpha, rows, a, f)

    def begin(self, alpha: Array, g: Array) -> StreamSweeps:
        """Make the first pass, at g."""
        return StreamSweeps(self, alpha, g)

    def pass_at(self, alpha: Array, g: Array) -> tuple[Array, Array, Array]:
        """Return f, the columns over b and phi of the plan of g with rows exact, in one pass.

        An engine that needs a pass more for phi returns None, and has `group_costs`. Time may run
        out within a pass: over a million points it takes minutes.
        """
        xp, problem = self.problem.home.xp, self.problem
        scores = scores_at(self.costs, problem, alpha)
        parts, masses, partials = [], 0.0, 0.0
        for block in form_rows(scores, problem, g, self.parts):
            check_deadline()
            parts.append(block.f)
            left = problem.a[:, block.part] / block.total
            masses = masses + (left[:, None, :] @ block.kernel)[:, 0, :]
            partials = partials + scores.partial(block.part, block.kernel, left)
        f = xp.concat(parts, axis=1)
        phi = scores.total(partials, problem.row_masses(f), masses)
        return f, problem.over_b(masses), phi

    def group_costs(self, alpha: Array, f: Array, g: Array, columns: Array) -> Array:
        """Return phi, (B, L), of the plan of potentials."""
        return self.pass_at(alpha, g)[2]

    def extend(self, alpha: Array, rows: np.ndarray, weights: Array, f: Array) -> Array:
        """Return the potentials of all columns, (B, m), that f on some rows leaves them.

        `rows` are numbers of rows on the host, with `weights` (B, r).
        """
        _, _, _, m = self.costs.shape
        strip = self.costs.take(rows, np.arange(m))
        problem = replace(self.problem, a=weights)
        return column_potentials(scores_at(strip, problem, alpha), problem, f, row_blocks(strip))

    def between_clusters(self, alpha: Array, g: Array) -> Array:
        """Return what to add to g, (1, m), so that clusters of points have the mass they should.

        None where there are no points to find clusters of, or marginals need not be kept.
        """
        problem = self.problem
        clusters = None if problem.unbalanced else self.clusters()
        if clusters is None:
            return None
        home = problem.home
        masses = self.cluster_masses(alpha, g, clusters)
        sums = (
            to_numpy(weights @ clusters.one_hot(home, side))[0].astype(float)
            for weights, side in ((problem.a, clusters.rows), (problem.b, clusters.cols))
        )
        scalings = home.bring(cluster_scalings(masses, *sums))
        return problem.eps * home.xp.take(scalings, clusters.cols)[None, :]

    def clusters(self) -> Clusters | None:
        """Clusters of the points, found once."""
        return self._clusters

    @cached_property
    def _clusters(self) -> Clusters | None:
        return cluster_points(self.costs, self.problem, self.problem.prior)

    def cluster_masses(self, alpha: Array, g: Array, clusters: Clusters) -> np.ndarray:
        """Return the masses of the plan of g between clusters, (K, K) on the host."""
        xp, problem = self.problem.home.xp, self.problem
        rows, cols = (clusters.one_hot(problem.home, side) for side in clusters)
        result = 0.0
        for block in form_rows(scores_at(self.costs, problem, alpha), problem, g, self.parts):
            left = rows[block.part, :] * (problem.a[:, block.part] / block.total)[0, :, None]
            result = result + xp.matrix_transpose(left) @ (block.kernel[0, :, :] @ cols)
        return to_numpy(result).astype(float)


class StreamSweeps(Sweeps):
    """Potentials and what the last pass has told of their plan."""

    # Sweeps that the rate of contraction is read over: a pass over the points is dear.
    window = 3

    def __init__(self, engine: StreamEngine, alpha: Array, g: Array) -> None:
        self.engine, self.problem, self.alpha = engine, engine.problem, alpha
        with quiet():
            self.go_to(g, g)
            error = self.error()
        # Errors since clusters were last moved, that before it, and whether it helped.
        self.errors = [error]
        self.error_before = float("inf")
        self.moving_helps = True
        self.momentum = Momentum(window=self.window)
        self.momentum.begin(error, 0)

    def go_to(self, g: Array, last: Array) -> None:
        """Make a pass at g; `last` is where it came from."""
        self.g, self.last = g, last
        self.f, self.columns, self.phi = self.engine.pass_at(self.alpha, g)

    def sweep(self) -> None:
        """Move g, and make a pass there."""
        assert self.momentum is not None
        self.go_to(self.momentum.ahead(self.g, self.step(), self.last), self.g)

    def step(self) -> Array:
        """Return the move of g that makes columns right."""
        problem = self.problem
        # Of columns that got nothing: their exponentials have underflown.
        step = -problem.eps * safe_log(self.columns)
        if not problem.unbalanced:
            return step
        ahead = problem.damped_cols(self.g + step)
        return (
            ahead
            - even_out(problem.sides, (problem.a, problem.b), (self.f, ahead))[:, None]
            - self.g
        )

    def error(self) -> float:
        """Return the mass in wrong columns, as a share of what there should be."""
        return float(self._error()[0])

    def _error(self) -> Array:
        xp, problem = self.problem.home.xp, self.problem
        if not problem.unbalanced:
            return xp.sum(problem.b * xp.abs(self.columns - 1.0), axis=1)
        wanted = problem.col_masses(self.g)
        off = xp.sum(xp.abs(problem.b * self.columns - wanted), axis=1)
        return off / xp.sum(wanted, axis=1)

    def dual(self) -> Array:
        """Return what potentials add to the dual value."""
        return self.problem.linear(self.f, self.g)

    def number(self, array: Array) -> float:
        """Return what is asked of the error."""
        return float(array) if getattr(array, "ndim", 0) == 0 else float(array[0])

    def renew(self, error: Array, usable: bool, sweeps: int) -> int:
        """Move clusters where sweeps are slow, as long as that brings something."""
        if not self._slow(error):
            return 0
        ahead = self.g + self.step()
        moved = self.engine.between_clusters(self.alpha, ahead)
        self.moving_helps = moved is not None
        if moved is None:
            return 0
        self.go_to(ahead + moved, ahead + moved)
        # Moving clusters did not help: slow convergence has another cause.
        self.errors = [self.error()]
        self.momentum = Momentum(window=self.window)
        self.momentum.begin(self.errors[0], sweeps)
        return 1

    def _slow(self, error: float) -> bool:
        """Whether sweeps are slow, and moving clusters has helped if it was tried."""
        self.errors.append(error)
        # After a success, one slow sweep is enough to move clusters again.
        window = self.window if self.error_before == float("inf") else 1
        if not self.moving_helps or len(self.errors) <= window:
            return False
        if error < 0.8**window * self.errors[-1 - window]:
            return False
        self.moving_helps = error <= 0.7 * self.error_before
        self.error_before, self.errors = error, [error]
        return self.moving_helps

    def point(self, work: int) -> Point:
        """Return where the sweeps have got to."""
        phi = self.phi
        if phi is None:
            phi = self.engine.group_costs(self.alpha, self.f, self.g, self.columns)
        return make_point(
            self.problem, self.alpha, self.f, self.g, phi, self.columns, self._error(), work=work
        )


def _sample(count: int, size: int, weights: Array) -> np.ndarray:
    """Draw points by their weights, without repetition; always the same ones."""
    mass = to_numpy(weights)[0].astype(float)
    size = min(size, int(np.count_nonzero(mass)))
    # Points evenly spaced along the cumulated mass, in random order of the points.
    order = np.random.default_rng(0).permutation(count)
    edges = np.cumsum(mass[order])
    picks = np.searchsorted(edges, (np.arange(size) + 0.5) / size * edges[-1])
    return np.unique(order[np.minimum(picks, count - 1)])


def sampled(costs: Costs, problem: EntropicProblem) -> tuple[DenseEngine, np.ndarray]:
    """Return the problem between the sample's points, and the numbers of its rows."""
    _, _, n, m = costs.shape
    home = problem.home
    size = SAMPLE_ON_HOST if home.on_host else 8_000
    rows, cols = _sample(n, size, problem.a), _sample(m, size, problem.b)
    xp = home.xp
    i, j = home.indices(rows), home.indices(cols)
    a, b = xp.take(problem.a, i, axis=1), xp.take(problem.b, j, axis=1)
    a, b = a / xp.sum(a, axis=1, keepdims=True), b / xp.sum(b, axis=1, keepdims=True)
    if problem.unbalanced:
        a = a * xp.sum(problem.a, axis=1, keepdims=True)
        b = b * xp.sum(problem.b, axis=1, keepdims=True)
    # Points are drawn by their weight, so that none of the sample is without.
    part = replace(problem, a=a, b=b, exact=None, gaps=False, even=False, symmetric=False)
    sample = costs.take(rows, cols)
    if not home.on_host and part.single_safe:
        sample = sample.single()
    return DenseEngine(sample, part.to(sample.home)), rows
