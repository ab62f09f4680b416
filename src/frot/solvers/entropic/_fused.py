r"""Streaming on tensor cores: passes over the scores that write nothing but their results.

A mixed squared Euclidean cost is a product of scaled points and norms. In units of log 2, with
:math:`u = \log_2 e / \varepsilon` and :math:`x' = \sqrt{2 u w} \circ x`,

.. math:: s_{ij} = x'_i \cdot y'_j - \tfrac12 |x'_i|^2 - \tfrac12 |y'_j|^2 + u\, g_j + \log_2 b_j ,

and the norms go with the potentials, so that a pass is a product of matrices, an exponential and a
sum. Passes of the search round coordinates to TF32. Those of a proof split them into two numbers of
TF32 each and add three products. Both run on tensor cores.

**What rounding does to a proof.** The three products leave out :math:`3 \cdot 2^{-20}` of each
:math:`|x'_k y'_k|` at most, whether numbers are rounded or cut to 11 bits. Tensor cores add eight
products at a time to what they have, and are off by :math:`2^{-20}` of the sum of the sizes at
most, even if each of nine summands is cut to 24 bits below the largest. So a product of d features
is off by

.. math:: \kappa\, |x'_i| |y'_j| \le \tfrac{\kappa}{2} (|x'_i|^2 + |y'_j|^2), \qquad
          \kappa = (3 + 3 d / 8)\, 2^{-20} ,

which every point answers for by its own norm, as it does in double precision (see `certificate`).
The plan of the upper bound is not that of the potentials, but the numbers :math:`p_{ij}` that the
kernels compute: its rows, columns and moments come from the same tiles of the same operands, so
that an error of a score changes the plan and not its marginals, and the objective pays for it once,
as an error of the cost, and never over eps. Sums over a tile and over some tiles are in single
precision, all others in double.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import ModuleType

import numpy as np

from frot._base.arrays import Array, blocks, has_triton, quiet, to_numpy
from frot.costs.points import Points
from frot.costs.protocol import Costs, Rounding
from frot.solvers.entropic.engine import Closeness
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.kernel import FirstPass
from frot.solvers.entropic.point import Point
from frot.solvers.entropic.stream import Clusters, StreamEngine, cluster_points

# Features are padded to a multiple of this, and there may be so many at most: every further
# multiple is another product of each tile.
WIDTH, MOST_FEATURES = 64, 512
# What an addition of eight products is off by, and one number of single precision.
ADDED, SINGLE = 2.0**-20, 2.0**-23
# Tiles whose sums are added in single precision.
ADDED_TILES = 16
COLS = 64
# Points that are worked on at a time in double precision.
ROWS = 1 << 16
# Rows that group costs are taken from while the search goes on, where there are many more.
SAMPLE = 1 << 17


@dataclass
class Learned:
    """What an engine has found out on its way, for its copies as well.

    Attributes
    ----------
    operands : Operands, optional
        Scaled points at the last weights.
    one_product : bool, optional
        Whether sweeps with one product come near enough to those with three.
    bias : float
        What one product is off by on average, in units of log 2.
    clusters : Clusters, optional
        None, too, where there are none to find.
    """

    operands: Operands | None = None
    one_product: bool | None = None
    bias: float = 0.0
    looked_for_clusters: bool = False
    clusters: Clusters | None = None


@dataclass(frozen=True, eq=False)
class FusedEngine(StreamEngine):
    """Sweeps and proofs by fused kernels; points, weights and potentials in double precision.

    `kernels` is the module of the kernels, `proves` whether proofs are left to them, `fine` whether
    sweeps take three products.
    """

    costs: Points  # type: ignore[assignment]
    kernels: ModuleType = None  # type: ignore[assignment]
    proves: bool = True
    fine: bool = False
    learned: Learned = field(default_factory=Learned, repr=False)

    @classmethod
    def of(cls, costs: Costs, problem: EntropicProblem, tol: float) -> FusedEngine | None:
        """Return the engine for points on a CUDA device with Triton, None for all others."""
        home = costs.home
        suits = (
            isinstance(costs, Points)
            and home.library == "torch"
            and str(home.device).startswith("cuda")
            and costs.X.shape[2] <= MOST_FEATURES
            and problem.single_safe
            and not problem.unbalanced
            and has_triton()
        )
        if not suits:
            return None
        from frot.solvers.entropic import _fused_triton

        assert isinstance(costs, Points)
        # Rounding of proofs is far below this gap; closer ones are proven in double precision.
        return cls(costs, problem, None, _fused_triton, proves=tol >= 2.5e-4)

    @property
    def noise(self) -> float:
        """What is left of dual values' errors once the mean error of one product is taken off."""
        return 1e-6 if self.learned.one_product is False else 1e-5

    def passes(self, alpha: Array) -> FusedPasses:
        """Passes with three products."""
        return FusedPasses(self, self.operands(alpha))

    @property
    def prover(self) -> StreamEngine:
        """Itself, or an engine in double precision."""
        return self if self.proves else self.double()

    def double(self) -> StreamEngine:
        """Blocks in double precision."""
        return self._blocks

    @cached_property
    def _blocks(self) -> StreamEngine:
        return StreamEngine(self.costs, self.problem)

    def operands(self, alpha: Array) -> Operands:
        """Scaled points at the weights; those of the last weights are kept."""
        operands = self.learned.operands
        if operands is None or operands.alpha is not alpha:
            # The old ones go first.
            self.learned.operands = operands = None
            operands = Operands.of(self.costs, self.problem, alpha)
            self.learned.operands = operands
        return operands

    def one_product_does(self, alpha: Array, g: Array) -> bool:
        """Whether it finds, on some four thousand rows, the f that three do, nearly.

        Found out once: on average as a share of f, and in size in units of log 2.
        """
        if self.learned.one_product is None:
            points, xp = self.operands(alpha), self.problem.home.xp
            step = max(1, self.costs.shape[2] // 4_096)
            x = xp.asarray(points.x[::step, :], copy=True)
            single_product, three_products = (
                self.kernels.log_sums(x, points.y, points.cols(g[0, :]), precise=precise)
                for precise in (False, True)
            )
            off = single_product - three_products
            size = float(xp.mean(xp.abs(points.x_norms[::step] - three_products)))
            bias = float(xp.mean(off))
            serves = abs(bias) <= 1e-3 * (size + 1.0)
            serves = serves and float(xp.mean(xp.abs(off))) <= 2e-2
            self.learned.one_product, self.learned.bias = serves, bias
        return self.learned.one_product

    def sweep(
        self, alpha: Array, g: Array, closeness: Array | Closeness, limit: int | None = None
    ) -> Point:
        """Sweep with one product, or with three where that is not close enough."""
        near = closeness.share if isinstance(closeness, Closeness) else closeness
        near = float(near) if isinstance(near, float | int) else float(near[0])
        fine = near < 2e-4 or not self.one_product_does(alpha, g)
        engine = replace(self, fine=True) if fine else self
        return super(FusedEngine, engine).sweep(alpha, g, closeness, limit)

    def pass_at(self, alpha: Array, g: Array) -> tuple[Array, Array, Array]:
        """Two passes: rows, then columns."""
        points, problem = self.operands(alpha), self.problem
        log_sums = self.kernels.log_sums
        rows = log_sums(points.x, points.y, points.cols(g[0, :]), precise=self.fine)
        f = (points.x_norms - rows) / points.unit
        cols = log_sums(points.y, points.x, points.rows(f), precise=self.fine)
        ahead = (points.y_norms - cols) / points.unit
        with quiet():
            columns = problem.home.xp.exp((g - ahead[None, :]) / problem.eps)
        phi = None if self.costs.shape[1] > 1 else 0.0 * alpha
        # Dual values of one product and of three are compared with each other.
        f = f if self.fine else f + self.learned.bias / points.unit
        return f[None, :], columns, phi

    def group_costs(self, alpha: Array, f: Array, g: Array, columns: Array) -> Array:
        r"""Return phi of the plan; where there are many rows, from some of them.

        With T x the mean of where x goes, costs are :math:`\langle c, y^2 \rangle - \langle a, x^2
        \rangle + 2 \langle a, x (x - T x) \rangle`, and only the last is taken from some rows: it
        varies least.
        """
        problem, costs, points = self.problem, self.costs, self.operands(alpha)
        xp, n = problem.home.xp, costs.shape[2]
        X, rows, u = costs.X[0, :, :], points.x, points.u(f[0, :])
        weights = problem.a[0, :]
        squares = costs.squares(problem.a, 0.0 * problem.b)
        mine = squares
        if n > 2 * SAMPLE:
            some = self._some
            weights = weights[some] / xp.sum(weights[some])
            X, rows, u = X[some, :], rows[some, :], u[some]
            mine = replace(costs, x=X[None, ...]).squares(weights[None, :], 0.0 * problem.b)
        ones = xp.ones_like(points.cols(g[0, :]))
        sums, cross = self.kernels.apply(
            rows, points.y, u, points.cols(g[0, :]), ones, points.values(), X, weights,
            precise=self.fine,
        )  # fmt: skip
        spread = mine - cross[None, :] / xp.sum(sums * weights)
        goes = costs.squares(0.0 * problem.a, problem.b * columns)
        return costs.from_features(goes - squares + 2.0 * spread)

    def cluster_masses(self, alpha: Array, g: Array, clusters: Clusters) -> np.ndarray:
        """Rows first, then their products with the columns' clusters, some rows at a time."""
        points, problem = self.operands(alpha), self.problem
        xp, cols = problem.home.xp, points.cols(g[0, :])
        sums = self.kernels.log_sums(points.x, points.y, cols, precise=self.fine)
        u = xp.astype(-sums, xp.float32)
        mine = clusters.one_hot(problem.home, clusters.rows) * problem.a[0, :, None]
        values = xp.matrix_transpose(clusters.one_hot(problem.home, clusters.cols))
        values = xp.astype(values, xp.float32)
        result = 0.0
        for part in blocks(points.x.shape[0], 1, ROWS):
            moved = self.kernels.products(
                points.x[part, :], points.y, u[part], cols, values, precise=self.fine
            )
            result = result + xp.matrix_transpose(mine[part, :]) @ xp.astype(moved, mine.dtype)
        return to_numpy(result)

    def clusters(self) -> Clusters | None:
        """Found once for all sweeps, fine or not."""
        if not self.learned.looked_for_clusters:
            self.learned.clusters = cluster_points(self.costs, self.problem, self.problem.prior)
            self.learned.looked_for_clusters = True
        return self.learned.clusters

    @cached_property
    def _some(self) -> Array:
        """Numbers of some rows, always the same."""
        count = self.costs.shape[2]
        rows = np.random.default_rng(0).choice(count, SAMPLE, replace=False)
        return self.problem.home.indices(np.sort(rows))

    def extend(self, alpha: Array, rows: np.ndarray, weights: Array, f: Array) -> Array:
        """One pass over the columns."""
        points, some = self.operands(alpha), self.problem.home.indices(rows)
        xp = self.problem.home.xp
        bias = f[0, :] * points.unit - points.x_norms[some] + xp.log2(weights[0, :])
        result = self.kernels.log_sums(points.y, points.x[some, :], xp.astype(bias, xp.float32))
        return ((points.y_norms - result) / points.unit)[None, :]


@dataclass(frozen=True, eq=False)
class Operands:
    """Scaled points (n, width) and (m, width) in single precision; norms, in units of log 2."""

    costs: Points
    problem: EntropicProblem
    alpha: Array
    unit: float
    x: Array
    y: Array
    x_norms: Array
    y_norms: Array

    @classmethod
    def of(cls, costs: Points, problem: EntropicProblem, alpha: Array) -> Operands:
        """Scale the points, some at a time."""
        xp = problem.home.xp
        unit = math.log2(math.e) / float(problem.eps[0, 0])
        weights = unit * costs.feature_weights(alpha)[0, :]
        root = xp.sqrt(2.0 * weights)
        sides = [_scaled(xp, points[0, :, :], root, weights) for points in (costs.X, costs.Y)]
        (x, x_norms), (y, y_norms) = sides
        return cls(costs, problem, alpha, unit, x, y, x_norms, y_norms)

    def cols(self, g: Array) -> Array:
        """Return what columns add to scores, (m,)."""
        xp = self.problem.home.xp
        result = g * self.unit - self.y_norms + self._log2(self.problem.b)
        return xp.astype(result, xp.float32)

    def rows(self, f: Array) -> Array:
        """Return what rows add to scores with their weights, (n,)."""
        xp = self.problem.home.xp
        return xp.astype(f * self.unit - self.x_norms + self._log2(self.problem.a), xp.float32)

    def u(self, f: Array) -> Array:
        """Return what rows add to scores without their weights, (n,)."""
        return self.problem.home.xp.astype(
            f * self.unit - self.x_norms, self.problem.home.xp.float32
        )

    def _log2(self, weights: Array) -> Array:
        with quiet():
            return self.problem.home.xp.log2(weights[0, :])

    def values(self, thin: Array = None) -> Array:
        """Return the columns' points, feature by feature, (d, m), times `thin`."""
        xp, Y = self.problem.home.xp, self.costs.Y[0, :, :]
        result = xp.empty((Y.shape[1], Y.shape[0]), dtype=xp.float32, device=Y.device)
        for part in blocks(Y.shape[0], 1, ROWS):
            some = Y[part, :] if thin is None else Y[part, :] * thin[part, None]
            result[:, part] = xp.matrix_transpose(xp.astype(some, xp.float32))
        return result


def _scaled(xp: ModuleType, points: Array, root: Array, weights: Array) -> tuple[Array, Array]:
    """Return points times `root`, padded, and their weighted squares summed."""
    count, features = points.shape
    width = -(-features // WIDTH) * WIDTH
    result = xp.zeros((count, width), dtype=xp.float32, device=points.device)
    norms = xp.empty((count,), dtype=points.dtype, device=points.device)
    for part in blocks(count, 1, ROWS):
        some = points[part, :]
        result[part, :features] = xp.astype(some * root, xp.float32)
        norms[part] = (some * some) @ weights
    return result, norms


class FusedPasses:
    """The passes of a proof, with three products; see the head of this file."""

    def __init__(self, engine: FusedEngine, points: Operands) -> None:
        self.engine, self.points = engine, points
        self.problem = engine.problem

    @property
    def unit(self) -> float:
        """Biases are rounded to single precision, and so are their sums and exponentials."""
        return SINGLE

    @property
    def sums(self) -> float:
        """Half a unit for every addition of a tile and of some tiles, and for weights and plan.

        Within a tile there are eight, pair by pair.
        """
        return 0.5 * (ADDED_TILES + 8.0 + 8.0) * SINGLE

    def rounding(self) -> Rounding:
        """Bound the rounding of the products, and of norms and points in single precision."""
        points = self.points
        features = points.x.shape[1]
        share = (3.0 + 3.0 * features / 8.0) * ADDED + 16.0 * SINGLE
        nothing = 0.0 * self.problem.eps[:, 0]
        rows, cols = (
            share * norms[None, :] / points.unit for norms in (points.x_norms, points.y_norms)
        )
        return Rounding(nothing, rows, cols)

    def doubt(self, phi: Array, u: Array, v: Array) -> Array:
        """Bound the rounding of moments: products of a tile, and sums."""
        share = (3.0 + 3.0 * COLS / 8.0) * ADDED + self.sums + 8.0 * SINGLE
        squares = self.engine.costs.squares(u, v)
        return share * self.engine.costs.pool(squares)

    def first(self, g: Array) -> FirstPass:
        """Rows in one pass, columns in another."""
        points, kernels, problem = self.points, self.engine.kernels, self.problem
        xp, cols = problem.home.xp, points.cols(g[0, :])
        rows = kernels.log_sums(points.x, points.y, cols, precise=True)
        f = (points.x_norms - rows) / points.unit
        masses = kernels.column_sums(
            points.x, points.y, points.u(f), cols, xp.astype(problem.a[0, :], xp.float32)
        )
        return FirstPass(g, f[None, :], masses[None, :], [])

    def second(self, first: FirstPass, thin: Array) -> tuple[Array, Array]:
        """Row sums and moments in one pass."""
        points, costs, problem = self.points, self.engine.costs, self.problem
        xp = problem.home.xp
        thinned = xp.astype(thin[0, :], xp.float32)
        sums, cross = self.engine.kernels.apply(
            points.x, points.y, points.u(first.f[0, :]), points.cols(first.g[0, :]), thinned,
            points.values(thin[0, :]), costs.X[0, :, :], problem.a[0, :],
        )  # fmt: skip
        rows = sums[None, :]
        return rows, costs.from_moments(problem.a * rows, first.masses * thin, cross[None, :])
