"""From a problem to an engine, and from its points to bounds and plans."""

from __future__ import annotations

from typing import Any

import numpy as np

from frot._bounds import Lower, Upper
from frot._costs import FactoredCosts, RescaledCosts
from frot._entropic._certificate import Certificate, certify
from frot._entropic._coarse import coarse_weights
from frot._entropic._costs_geometry import CostsGeometry
from frot._entropic._dense import DenseEngine, dense_bytes
from frot._entropic._device import DeviceCosts
from frot._entropic._engine import Engine, Point
from frot._entropic._flash import FlashEngine
from frot._entropic._geometry import Geometry, PointGeometry
from frot._entropic._stream import StreamEngine
from frot._entropic._terms import Terms
from frot._lazy_plan import Gibbs, LazyPlan
from frot._problem import Problem

__all__ = ["EntropicRun"]

# Beyond this accuracy single precision cannot be trusted to lead the way.
SINGLE_TO = 2e-5
SINGLE_RANGE = 1e15


class EntropicRun:
    """One entropic problem and the engine for it.

    Matrices that fit the problem's memory budget are kept; beyond it the kernel is streamed, by
    flash-sinkhorn's kernels where the points are on a CUDA device and it is installed.
    """

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem = problem
        geometry = _geometry(problem)
        _, n, m = problem.shape
        fits = dense_bytes(n, m) <= problem.memory_budget
        if not fits:
            geometry = _points(problem.costs) or geometry
        search = _search(geometry, problem, tol)
        terms = Terms.of(
            search.home,
            problem.a[None],
            problem.b[None],
            problem.adversary,
            problem.eps,
            problem.scale,
        )
        self.engine: Engine
        if fits:
            self.engine = DenseEngine(search, terms, geometry)
        elif FlashEngine.suits(search):
            assert isinstance(search, PointGeometry)
            self.engine = FlashEngine(search, terms, geometry)
        else:
            self.engine = StreamEngine(search, terms, geometry)
        self.streams = not fits

    def start(self, alpha: np.ndarray | None, g: Any) -> tuple[Any, Any]:
        """Return the first weights, and the potential g where one is known or can be had."""
        home = self.engine.terms.home
        count = self.problem.shape[0]
        first = np.full(count, 1.0 / count) if alpha is None else alpha
        first = home.bring(first[None])
        if g is not None:
            return first, home.bring(g[None])
        if self.streams and alpha is None:
            return coarse_weights(self.engine.geometry, self.engine.terms, first)
        return first, None

    def certify(self, at: Point) -> tuple[Upper, Lower]:
        """Prove bounds from a point."""
        proof = certify(self.engine, at)
        return self.upper(proof), self.lower(proof)

    def plan(self, proof: Certificate) -> LazyPlan:
        """The plan that proves the upper bound."""
        terms = self.engine.double().terms
        geometry = self.engine.double().geometry
        gibbs = Gibbs(geometry, terms, proof.alpha, proof.f, proof.g)
        ranks = []
        if bool(terms.home.xp.any(proof.left > 0.0)):
            ranks = [(proof.left[0, :], proof.right[0, :])]
        return LazyPlan([(float(proof.weight[0]), gibbs)], ranks, proof.phi[0, :])

    def upper(self, proof: Certificate) -> Upper:
        """The objective of the plan, with and without its entropy."""
        return Upper(
            float(proof.upper[0]),
            float(proof.value[0]),
            self.plan(proof),
            proof.phi[0, :],
            plain=float(proof.plain_upper[0]),
        )

    def lower(self, proof: Certificate) -> Lower:
        """The dual value, and what the potentials prove without eps."""
        return Lower(
            float(proof.lower[0]),
            proof.alpha[0, :],
            proof.f[0, :],
            proof.dual_g[0, :],
            float(proof.slack[0]),
            float(proof.plain_lower[0]),
        )


def _geometry(problem: Problem) -> Geometry:
    if isinstance(problem.costs, DeviceCosts):
        return problem.costs.geometry
    return CostsGeometry(problem.costs)


def _points(costs: Any) -> PointGeometry | None:
    """The points behind factored costs: a pass over them is one product and one exponential."""
    factor = np.ones((1, 1))
    if isinstance(costs, RescaledCosts) and not costs.shift.any():
        costs, factor = costs.base, costs.scale[:, None]
    if not isinstance(costs, FactoredCosts):
        return None
    member = costs.membership.toarray() * costs.scale * factor
    return PointGeometry(costs.X[None], costs.Y[None], member)


def _search(geometry: Geometry, problem: Problem, tol: float) -> Geometry:
    """The geometry to search on: single precision where the user's is, or where it pays."""
    # Squares of costs, and costs over eps, have to be numbers in single precision too.
    if not 1.0 / SINGLE_RANGE < problem.scale < SINGLE_RANGE:
        return geometry
    if isinstance(problem.costs, DeviceCosts):
        home = problem.costs.home
        single = home.dtype == home.xp.float32 and tol >= SINGLE_TO
        return geometry.single() if single else geometry
    # On a CPU exponentials are four times as fast in single precision.
    pays = isinstance(geometry, PointGeometry) and tol >= SINGLE_TO
    return geometry.single() if pays else geometry
