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
from typing import Any

import numpy as np

from frot._base.arrays import has_triton, quiet, to_numpy
from frot._base.stopping import check_deadline
from frot.costs.geometry import Geometry
from frot.costs.points import PointGeometry
from frot.costs.protocol import Rounding, blocks
from frot.solvers.sinkhorn._scaling import Near
from frot.solvers.sinkhorn.aggregate import Clusters, cluster_points
from frot.solvers.sinkhorn.engine import FirstPass, Point
from frot.solvers.sinkhorn.stream import StreamEngine
from frot.solvers.sinkhorn.terms import BatchTerms

# Features are padded to a multiple of this, and there may be so many at most: every further
# multiple is another product of each tile.
WIDTH, MOST_FEATURES = 64, 512
# Rounding of proofs is far below this gap; closer ones are proven in double precision.
FUSED_TO = 2.5e-4
# Closer than this, sweeps take three products, too.
FINE = 2e-4
# Rows that one product is tried on, and how far it may be off: on average as a share of f, and in
# size in units of log 2.
TRIED, ROUGH_BIAS, ROUGH_SCORE = 4_096, 1e-3, 2e-2
# What an addition of eight products is off by, and one number of single precision.
ADDED, SINGLE = 2.0**-20, 2.0**-23
# Tiles whose sums are added in single precision, and additions, pair by pair, within a tile.
ADDED_TILES, ADDED_PAIRS = 16, 8
COLS = 64
# Points that are worked on at a time in double precision.
ROWS = 1 << 16
# Rows that group costs are taken from while the search goes on, where there are many more.
SAMPLE = 1 << 17


@dataclass(frozen=True, eq=False)
class FusedEngine(StreamEngine):
    """Sweeps and proofs by fused kernels; points, weights and potentials in double precision.

    `kernels` is the module of the kernels, `proves` whether proofs are left to them, `fine` whether
    sweeps take three products.
    """

    geometry: PointGeometry  # type: ignore[assignment]
    kernels: ModuleType = None  # type: ignore[assignment]
    proves: bool = True
    fine: bool = False
    _memory: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, geometry: Geometry, terms: BatchTerms, tol: float) -> FusedEngine | None:
        """Return the engine for points on a CUDA device with Triton, None for all others."""
        home = geometry.home
        suits = (
            isinstance(geometry, PointGeometry)
            and home.library == "torch"
            and str(home.device).startswith("cuda")
            and geometry.X.shape[2] <= MOST_FEATURES
            and terms.single_safe
            and not terms.soft
            and has_triton()
        )
        if not suits:
            return None
        from frot.solvers.sinkhorn import _fused_triton

        assert isinstance(geometry, PointGeometry)
        return cls(geometry, terms, None, _fused_triton, proves=tol >= FUSED_TO)

    @property
    def noise(self) -> float:
        """What is left of dual values' errors once the mean error of one product is taken off."""
        return 1e-5 if self._memory.get("rough", True) else 1e-6

    def passes(self, alpha: Any) -> FusedPasses:
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
        return StreamEngine(self.geometry, self.terms)

    def operands(self, alpha: Any) -> Operands:
        """Scaled points at the weights; those of the last weights are kept."""
        if self._memory.get("alpha") is not alpha:
            # The old ones go first.
            self._memory.pop("operands", None)
            self._memory.update(alpha=alpha, operands=Operands.of(self.geometry, self.terms, alpha))
        return self._memory["operands"]

    def rough(self, alpha: Any, g: Any) -> bool:
        """Whether one product does: on some rows, it has to find the f that three do, nearly."""
        if "rough" not in self._memory:
            points, xp = self.operands(alpha), self.terms.home.xp
            step = max(1, self.geometry.shape[2] // TRIED)
            x = xp.asarray(points.x[::step, :], copy=True)
            one, three = (
                self.kernels.log_sums(x, points.y, points.cols(g[0, :]), precise=precise)[0]
                for precise in (False, True)
            )
            off, size = one - three, float(xp.mean(xp.abs(points.x_norms[::step] - three)))
            bias = float(xp.mean(off))
            serves = abs(bias) <= ROUGH_BIAS * (size + 1.0)
            serves = serves and float(xp.mean(xp.abs(off))) <= ROUGH_SCORE
            self._memory.update(rough=serves, bias=bias)
        return self._memory["rough"]

    def sweep(self, alpha: Any, g: Any, closeness: Any, limit: int | None = None) -> Point:
        """Sweep with one product, or with three where that is not close enough."""
        near = closeness.share if isinstance(closeness, Near) else closeness
        near = float(near) if isinstance(near, float | int) else float(near[0])
        fine = near < FINE or not self.rough(alpha, g)
        engine = replace(self, fine=True) if fine else self
        return super(FusedEngine, engine).sweep(alpha, g, closeness, limit)

    def sweep_once(self, alpha: Any, g: Any) -> tuple[Any, Any, Any]:
        """Two passes: rows, then columns."""
        check_deadline()
        points, terms = self.operands(alpha), self.terms
        log_sums = self.kernels.log_sums
        rows, _ = log_sums(points.x, points.y, points.cols(g[0, :]), precise=self.fine)
        f = (points.x_norms - rows) / points.unit
        cols, _ = log_sums(points.y, points.x, points.rows(f), precise=self.fine)
        ahead = (points.y_norms - cols) / points.unit
        with quiet():
            columns = terms.home.xp.exp((g - ahead[None, :]) / terms.eps)
        phi = None if self.geometry.shape[1] > 1 else 0.0 * alpha
        # Dual values of one product and of three are compared with each other.
        f = f if self.fine else f + self._memory.get("bias", 0.0) / points.unit
        return f[None, :], columns, phi

    def group_costs(self, alpha: Any, f: Any, g: Any, columns: Any) -> Any:
        r"""Return phi of the plan; where there are many rows, from some of them.

        With T x the mean of where x goes, costs are :math:`\langle c, y^2 \rangle - \langle a, x^2
        \rangle + 2 \langle a, x (x - T x) \rangle`, and only the last is taken from some rows: it
        varies least.
        """
        terms, geometry, points = self.terms, self.geometry, self.operands(alpha)
        xp, n = terms.home.xp, geometry.shape[2]
        X, rows, u = geometry.X[0, :, :], points.x, points.u(f[0, :])
        weights = terms.a[0, :]
        squares = geometry.squares(terms.a, 0.0 * terms.b)
        mine = squares
        if n > 2 * SAMPLE:
            some = self._some
            weights = weights[some] / xp.sum(weights[some])
            X, rows, u = X[some, :], rows[some, :], u[some]
            mine = replace(geometry, X=X[None, ...]).squares(weights[None, :], 0.0 * terms.b)
        ones = xp.ones_like(points.cols(g[0, :]))
        sums, cross = self.kernels.apply(
            rows, points.y, u, points.cols(g[0, :]), ones, points.values(), X, weights,
            precise=self.fine,
        )  # fmt: skip
        spread = mine - cross[None, :] / xp.sum(sums * weights)
        goes = geometry.squares(0.0 * terms.a, terms.b * columns)
        return geometry.from_features(goes - squares + 2.0 * spread)

    def cluster_masses(self, alpha: Any, g: Any, clusters: Clusters) -> np.ndarray:
        """Rows first, then their products with the columns' clusters, some rows at a time."""
        points, terms = self.operands(alpha), self.terms
        xp, cols = terms.home.xp, points.cols(g[0, :])
        sums, _ = self.kernels.log_sums(points.x, points.y, cols, precise=self.fine)
        u = xp.astype(-sums, xp.float32)
        mine = clusters.one_hot(terms.home, clusters.rows) * terms.a[0, :, None]
        values = xp.matrix_transpose(clusters.one_hot(terms.home, clusters.cols))
        values = xp.astype(values, xp.float32)
        found = 0.0
        for part in blocks(points.x.shape[0], 1, ROWS):
            moved = self.kernels.products(
                points.x[part, :], points.y, u[part], cols, values, precise=self.fine
            )
            found = found + xp.matrix_transpose(mine[part, :]) @ xp.astype(moved, mine.dtype)
        return to_numpy(found)

    def clusters(self) -> Clusters | None:
        """Found once for all sweeps, fine or not."""
        if "clusters" not in self._memory:
            found = cluster_points(self.geometry, self.terms, self.terms.prior)
            self._memory["clusters"] = found
        return self._memory["clusters"]

    @cached_property
    def _some(self) -> Any:
        """Numbers of some rows, always the same."""
        count = self.geometry.shape[2]
        rows = np.random.default_rng(0).choice(count, SAMPLE, replace=False)
        return self.terms.home.indices(np.sort(rows))

    def extend(self, alpha: Any, rows: np.ndarray, weights: Any, f: Any) -> Any:
        """One pass over the columns."""
        points, some = self.operands(alpha), self.terms.home.indices(rows)
        xp = self.terms.home.xp
        bias = f[0, :] * points.unit - points.x_norms[some] + xp.log2(weights[0, :])
        found, _ = self.kernels.log_sums(points.y, points.x[some, :], xp.astype(bias, xp.float32))
        return ((points.y_norms - found) / points.unit)[None, :]


@dataclass(frozen=True, eq=False)
class Operands:
    """Scaled points (n, width) and (m, width) in single precision; norms, in units of log 2."""

    geometry: PointGeometry
    terms: BatchTerms
    unit: float
    x: Any
    y: Any
    x_norms: Any
    y_norms: Any

    @classmethod
    def of(cls, geometry: PointGeometry, terms: BatchTerms, alpha: Any) -> Operands:
        """Scale the points, some at a time."""
        xp = terms.home.xp
        unit = math.log2(math.e) / float(terms.eps[0, 0])
        weights = unit * geometry.feature_weights(alpha)[0, :]
        root = xp.sqrt(2.0 * weights)
        sides = [_scaled(xp, points[0, :, :], root, weights) for points in (geometry.X, geometry.Y)]
        (x, x_norms), (y, y_norms) = sides
        return cls(geometry, terms, unit, x, y, x_norms, y_norms)

    def cols(self, g: Any) -> Any:
        """Return what columns add to scores, (m,)."""
        xp = self.terms.home.xp
        found = g * self.unit - self.y_norms + self._log2(self.terms.b)
        return xp.astype(found, xp.float32)

    def rows(self, f: Any) -> Any:
        """Return what rows add to scores with their weights, (n,)."""
        xp = self.terms.home.xp
        return xp.astype(f * self.unit - self.x_norms + self._log2(self.terms.a), xp.float32)

    def u(self, f: Any) -> Any:
        """Return what rows add to scores without their weights, (n,)."""
        return self.terms.home.xp.astype(f * self.unit - self.x_norms, self.terms.home.xp.float32)

    def _log2(self, weights: Any) -> Any:
        with quiet():
            return self.terms.home.xp.log2(weights[0, :])

    def values(self, thin: Any = None) -> Any:
        """Return the columns' points, feature by feature, (d, m), times `thin`."""
        xp, Y = self.terms.home.xp, self.geometry.Y[0, :, :]
        found = xp.empty((Y.shape[1], Y.shape[0]), dtype=xp.float32, device=Y.device)
        for part in blocks(Y.shape[0], 1, ROWS):
            some = Y[part, :] if thin is None else Y[part, :] * thin[part, None]
            found[:, part] = xp.matrix_transpose(xp.astype(some, xp.float32))
        return found


def _scaled(xp: Any, points: Any, root: Any, weights: Any) -> tuple[Any, Any]:
    """Return points times `root`, padded, and their weighted squares summed."""
    count, features = points.shape
    width = -(-features // WIDTH) * WIDTH
    found = xp.zeros((count, width), dtype=xp.float32, device=points.device)
    norms = xp.empty((count,), dtype=points.dtype, device=points.device)
    for part in blocks(count, 1, ROWS):
        some = points[part, :]
        found[part, :features] = xp.astype(some * root, xp.float32)
        norms[part] = (some * some) @ weights
    return found, norms


class FusedPasses:
    """The passes of a proof, with three products; see the head of this file."""

    def __init__(self, engine: FusedEngine, points: Operands) -> None:
        self.engine, self.points = engine, points
        self.terms = engine.terms

    @property
    def unit(self) -> float:
        """Biases are rounded to single precision, and so are their sums and exponentials."""
        return SINGLE

    @property
    def sums(self) -> float:
        """Half a unit for every addition of a tile and of some tiles, and for weights and plan."""
        return 0.5 * (ADDED_TILES + ADDED_PAIRS + 8.0) * SINGLE

    def mix_error(self) -> Rounding:
        """Bound the rounding of the products, and of norms and points in single precision."""
        points = self.points
        features = points.x.shape[1]
        share = (3.0 + 3.0 * features / 8.0) * ADDED + 16.0 * SINGLE
        nothing = 0.0 * self.terms.eps[:, 0]
        rows, cols = (
            share * norms[None, :] / points.unit for norms in (points.x_norms, points.y_norms)
        )
        return Rounding(nothing, rows, cols)

    def inner_error(self, phi: Any, u: Any, v: Any) -> Any:
        """Bound the rounding of moments: products of a tile, and sums."""
        share = (3.0 + 3.0 * COLS / 8.0) * ADDED + self.sums + 8.0 * SINGLE
        squares = self.engine.geometry.squares(u, v)
        return share * self.engine.geometry.pool(squares)

    def first(self, g: Any) -> FirstPass:
        """Rows in one pass, columns in another."""
        check_deadline()
        points, kernels, terms = self.points, self.engine.kernels, self.terms
        xp, cols = terms.home.xp, points.cols(g[0, :])
        rows, _ = kernels.log_sums(points.x, points.y, cols, precise=True)
        f = (points.x_norms - rows) / points.unit
        check_deadline()
        u = points.u(f)
        masses, _ = kernels.column_sums(
            points.x, points.y, u, cols, xp.astype(terms.a[0, :], xp.float32), u
        )
        return FirstPass(g, f[None, :], masses[None, :], [])

    def second(self, first: FirstPass, thin: Any) -> tuple[Any, Any]:
        """Row sums and moments in one pass."""
        check_deadline()
        points, geometry, terms = self.points, self.engine.geometry, self.terms
        xp = terms.home.xp
        thinned = xp.astype(thin[0, :], xp.float32)
        sums, cross = self.engine.kernels.apply(
            points.x, points.y, points.u(first.f[0, :]), points.cols(first.g[0, :]), thinned,
            points.values(thin[0, :]), geometry.X[0, :, :], terms.a[0, :],
        )  # fmt: skip
        rows = sums[None, :]
        return rows, geometry.from_moments(terms.a * rows, first.masses * thin, cross[None, :])
