r"""`StreamEngine`: kernels never kept; row blocks are formed, used and dropped, one pass a sweep.

Given g, a block of rows yields its part of f, and with f its part of the column sums c and of the
group costs: one pass over the kernel is a whole sweep, :math:`g \leftarrow g - \varepsilon \log c`.
Sweeps contract the error by a rate r; momentum does it as over-relaxation would, by Chebyshev's
second-order scheme for a spectrum in [0, r]:

.. math::
    g \leftarrow \omega\,(\gamma\, T g + (1 - \gamma)\, g) + (1 - \omega)\, g_{-1}, \qquad
    \gamma = \frac{2}{2 - r}, \quad \rho = \frac{r}{2 - r}, \quad
    \omega = \frac{2}{1 + \sqrt{1 - \rho^2}} .

Passes are dear: the first potential comes from the same problem between a sample of the points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from frot._base.arrays import quiet, to_numpy
from frot.costs.geometry import Geometry
from frot.solvers.sinkhorn._scaling import Near
from frot.solvers.sinkhorn.aggregate import Clusters, cluster_points, cluster_scalings
from frot.solvers.sinkhorn.ascent import Ascent
from frot.solvers.sinkhorn.dense import DenseEngine
from frot.solvers.sinkhorn.engine import BlockPasses, Engine, Passes, Point, gaps, make_point
from frot.solvers.sinkhorn.kernel import column_potentials, form_rows, row_blocks, scores_at
from frot.solvers.sinkhorn.terms import BatchTerms

# Passes between two steps on the weights at most, and over how many the rate is read.
PASSES = 200
WINDOW = 3
# Sweeps that contract the error by no more are slow, and moving clusters has to bring so much.
SLOW, HELPED = 0.8, 0.7
# Column sums this small are not trusted: the block's exponentials have underflown.
FLOOR = 1e-30
# Points of either side in the sample, and how well the problem between them is solved.
SAMPLE_ON_HOST = 2_000
SAMPLE_ON_DEVICE = 8_000
ACCURACY = 1e-3


@dataclass(frozen=True, eq=False)
class StreamEngine(Engine):
    """Sinkhorn by passes over blocks of rows; one problem at a time."""

    @property
    def patience(self) -> float:
        """Every pass forms the kernel anew: a step on the weights costs no more than a sweep."""
        return 0.5

    def passes(self, alpha: Any) -> Passes:
        """Passes that form the plan anew, and keep nothing."""
        return BlockPasses(self.geometry, self.terms, alpha, self.parts, keeps=False)

    def first_weights(self, alpha: Any) -> tuple[Any, Any]:
        """Those of the same problem between a sample of the points, with its potentials."""
        engine, rows = sampled(self.geometry, self.terms)
        home = engine.terms.home
        at = None
        for count, at in enumerate(Ascent(engine, home.xp.astype(alpha, home.dtype), tol=ACCURACY)):
            if count >= 50 or float(gaps(home.xp, at)[0]) <= ACCURACY:
                break
        assert at is not None
        return self._extended(engine, rows, at)

    def start(self, alpha: Any, closeness: Any = 0.5) -> Point:
        """Solve between a sample of the points first, and extend its potential to all."""
        return self.sweep(alpha, self.sampled_start(alpha), closeness)

    def sampled_start(self, alpha: Any) -> Any:
        """Return the potential g that the sample's solution at the given weights extends to."""
        engine, rows = sampled(self.geometry, self.terms)
        home = engine.terms.home
        return self._extended(engine, rows, engine.start(home.xp.astype(alpha, home.dtype)))[1]

    def _extended(self, engine: DenseEngine, rows: np.ndarray, at: Point) -> tuple[Any, Any]:
        """Return the sample's weights, and the potentials that it leaves to all columns."""
        home = self.terms.home
        alpha, a, f = (home.xp.astype(x, home.dtype) for x in (at.alpha, engine.terms.a, at.f))
        alpha = alpha / home.xp.sum(alpha, axis=1, keepdims=True)
        return alpha, self.extend(alpha, rows, a, f)

    def sweep(self, alpha: Any, g: Any, closeness: Any, limit: int | None = None) -> Point:
        """Pass over the kernel until the columns are right."""
        xp, terms = self.terms.home.xp, self.terms
        momentum, slow = Momentum(), _Slow()
        limit = PASSES if limit is None else limit
        previous, count = g, 0
        while True:
            f, columns, phi = self.sweep_once(alpha, g)
            error = self._error(g, columns)
            near = closeness
            if isinstance(closeness, Near):
                near = closeness.of(terms, terms.linear(f, g))
            if count == limit or bool(xp.all(error <= near)):
                break
            count += 1
            momentum.update(float(error[0]))
            step = self._step(f, g, columns)
            if slow.due(float(error[0])):
                moved = self.between_clusters(alpha, g + step)
                slow.useful = moved is not None
                if moved is not None:
                    momentum = Momentum()
                    previous = g = g + step + moved
                    continue
            previous, g = g, momentum.ahead(g, step, previous)
        if phi is None:
            phi = self.group_costs(alpha, f, g, columns)
        return make_point(terms, alpha, f, g, phi, columns, error, work=count)

    def _error(self, g: Any, columns: Any) -> Any:
        """Return the mass in wrong columns, (B,), as a share of what there should be."""
        xp, terms = self.terms.home.xp, self.terms
        if not terms.soft:
            return xp.sum(terms.b * xp.abs(columns - 1.0), axis=1)
        wanted = terms.col_masses(g)
        off = xp.sum(xp.abs(terms.b * columns - wanted), axis=1)
        return off / xp.sum(wanted, axis=1)

    def _step(self, f: Any, g: Any, columns: Any) -> Any:
        """Return the move of g that makes columns right."""
        xp, terms = self.terms.home.xp, self.terms
        with quiet():
            step = -terms.eps * xp.log(xp.clip(columns, FLOOR, None))
            if not terms.soft:
                return step
            ahead = terms.damped_cols(g + step)
            return ahead - terms.shift(f, ahead) - g

    def sweep_once(self, alpha: Any, g: Any) -> tuple[Any, Any, Any]:
        """Return f, the columns over b and phi of the plan of g with rows exact, in one pass.

        An engine that needs a pass more for phi returns None, and has `group_costs`.
        """
        xp, terms = self.terms.home.xp, self.terms
        scores = scores_at(self.geometry, terms, alpha)
        parts, masses, partials = [], 0.0, 0.0
        for block in form_rows(scores, terms, g, self.parts):
            parts.append(block.f)
            left = terms.a[:, block.part] / block.total
            masses = masses + (left[:, None, :] @ block.kernel)[:, 0, :]
            partials = partials + scores.partial(block.part, block.kernel, left)
        f = xp.concat(parts, axis=1)
        phi = scores.total(partials, terms.row_masses(f), masses)
        return f, terms.over_b(masses), phi

    def group_costs(self, alpha: Any, f: Any, g: Any, columns: Any) -> Any:
        """Return phi, (B, L), of the plan of potentials."""
        return self.sweep_once(alpha, g)[2]

    def extend(self, alpha: Any, rows: np.ndarray, weights: Any, f: Any) -> Any:
        """Return the potentials of all columns, (B, m), that f on some rows leaves them.

        `rows` are numbers of rows on the host, with `weights` (B, r).
        """
        _, _, _, m = self.geometry.shape
        strip = self.geometry.take(rows, np.arange(m))
        terms = replace(self.terms, a=weights)
        return column_potentials(scores_at(strip, terms, alpha), terms, f, row_blocks(strip))

    def between_clusters(self, alpha: Any, g: Any) -> Any:
        """Return what to add to g, (1, m), so that clusters of points have the mass they should.

        None where there are no points to find clusters of, or marginals need not be kept.
        """
        terms = self.terms
        clusters = None if terms.soft else self.clusters()
        if clusters is None:
            return None
        home = terms.home
        masses = self.cluster_masses(alpha, g, clusters)
        sums = (
            to_numpy(weights @ clusters.one_hot(home, side))[0].astype(float)
            for weights, side in ((terms.a, clusters.rows), (terms.b, clusters.cols))
        )
        scalings = home.bring(cluster_scalings(masses, *sums))
        return terms.eps * home.xp.take(scalings, clusters.cols)[None, :]

    def clusters(self) -> Clusters | None:
        """Clusters of the points, found once."""
        return self._clusters

    @cached_property
    def _clusters(self) -> Clusters | None:
        return cluster_points(self.geometry, self.terms, self.terms.prior)

    def cluster_masses(self, alpha: Any, g: Any, clusters: Clusters) -> np.ndarray:
        """Return the masses of the plan of g between clusters, (K, K) on the host."""
        xp, terms = self.terms.home.xp, self.terms
        rows, cols = (clusters.one_hot(terms.home, side) for side in clusters)
        found = 0.0
        for block in form_rows(scores_at(self.geometry, terms, alpha), terms, g, self.parts):
            left = rows[block.part, :] * (terms.a[:, block.part] / block.total)[0, :, None]
            found = found + xp.matrix_transpose(left) @ (block.kernel[0, :, :] @ cols)
        return to_numpy(found).astype(float)


class _Slow:
    """When to move clusters: where sweeps are slow, as long as that brings something."""

    def __init__(self) -> None:
        self.useful = True
        self._errors: list[float] = []
        self._last = float("inf")

    def due(self, error: float) -> bool:
        """Whether to do it now, given the error before the next sweep."""
        self._errors.append(error)
        seen = self._errors
        # Where it has helped before, one slow sweep says enough.
        window = WINDOW if self._last == float("inf") else 1
        if not self.useful or len(seen) <= window or error < SLOW**window * seen[-1 - window]:
            return False
        self.useful = error <= HELPED * self._last
        self._last, self._errors = error, []
        return self.useful


class Momentum:
    """Chebyshev's scheme, with the rate read from the errors of plain sweeps."""

    def __init__(self) -> None:
        self.rate = 0.0
        self._errors: list[float] = []
        self._retreats = 0

    def begin(self) -> None:
        """Go on elsewhere at the same rate."""
        self._errors, self._retreats = [], 0

    def update(self, error: float) -> None:
        """Look at the error before a step."""
        self._errors.append(error)
        if self.rate > 0.0 and error > 2.0 * min(self._errors):
            self.rate, self._errors = 0.0, [error]
            self._retreats += 1
        elif self.rate == 0.0 and len(self._errors) > WINDOW and self._retreats < 3:
            seen = (error / self._errors[-1 - WINDOW]) ** (1.0 / WINDOW)
            if 0.3 < seen < 1.0:
                self.rate = min(seen, 0.9995)

    def ahead(self, g: Any, step: Any, previous: Any) -> Any:
        """Return the next potential."""
        if self.rate == 0.0:
            return g + step
        gamma = 2.0 / (2.0 - self.rate)
        rho = self.rate / (2.0 - self.rate)
        omega = 2.0 / (1.0 + (1.0 - rho * rho) ** 0.5)
        return omega * (g + gamma * step) + (1.0 - omega) * previous


def _sample(count: int, size: int, weights: Any) -> np.ndarray:
    """Draw points by their weights, without repetition; always the same ones."""
    mass = to_numpy(weights)[0].astype(float)
    size = min(size, int(np.count_nonzero(mass)))
    # Points evenly spaced along the cumulated mass, in random order of the points.
    order = np.random.default_rng(0).permutation(count)
    edges = np.cumsum(mass[order])
    picks = np.searchsorted(edges, (np.arange(size) + 0.5) / size * edges[-1])
    return np.unique(order[np.minimum(picks, count - 1)])


def sampled(geometry: Geometry, terms: BatchTerms) -> tuple[DenseEngine, np.ndarray]:
    """Return the problem between the sample's points, and the numbers of its rows."""
    _, _, n, m = geometry.shape
    home = terms.home
    size = SAMPLE_ON_HOST if home.on_host else SAMPLE_ON_DEVICE
    rows, cols = _sample(n, size, terms.a), _sample(m, size, terms.b)
    xp = home.xp
    i, j = home.indices(rows), home.indices(cols)
    a, b = xp.take(terms.a, i, axis=1), xp.take(terms.b, j, axis=1)
    a, b = a / xp.sum(a, axis=1, keepdims=True), b / xp.sum(b, axis=1, keepdims=True)
    if terms.soft:
        a = a * xp.sum(terms.a, axis=1, keepdims=True)
        b = b * xp.sum(terms.b, axis=1, keepdims=True)
    # Points are drawn by their weight, so that none of the sample is without.
    part = replace(terms, a=a, b=b, exact=None, gaps=False, even=False, symmetric=False)
    sample = geometry.take(rows, cols)
    if not home.on_host and part.single_safe:
        sample = sample.single()
    return DenseEngine(sample, part.at(sample.home)), rows
