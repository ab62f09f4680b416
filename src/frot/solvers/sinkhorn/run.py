"""`EntropicRun`: from a problem to an engine, and from its points to bounds and plans."""

from __future__ import annotations

from typing import Any

import numpy as np

from frot._base.stopping import no_deadline
from frot.costs.geometry import Geometry
from frot.plans.lazy import LazyPlan
from frot.problem.bounds import Lower, Upper, cheap_lower_bound
from frot.problem.problem import Problem
from frot.solvers.sinkhorn._fused import FusedEngine
from frot.solvers.sinkhorn.ascent import Ascent
from frot.solvers.sinkhorn.certificate import Certificate, certify, certify_product, proving
from frot.solvers.sinkhorn.dense import DIRECT_FROM, DenseEngine, dense_bytes
from frot.solvers.sinkhorn.engine import Engine
from frot.solvers.sinkhorn.kernel import Gibbs
from frot.solvers.sinkhorn.stream import StreamEngine
from frot.solvers.sinkhorn.terms import BatchTerms

# Beyond this accuracy single precision cannot be trusted to lead the way.
SINGLE_TO = 2e-5
# With one group and an eps of this share of the scale of costs, sweeps are few.
FEW_SWEEPS = 0.3
FEW_ENTRIES = 40_000


class EntropicRun:
    """One entropic problem and the engine for it.

    Matrices that fit the problem's memory budget are kept; beyond it the kernel is streamed, by
    fused kernels where the points are on a CUDA device and Triton is installed.
    """

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol = problem, tol
        _, n, m = problem.shape
        geometry = problem.costs.geometry()
        terms = BatchTerms.of(
            geometry.home.double(), problem.a[None], problem.b[None], problem.adversary,
            problem.eps, problem.sizes[None],
            tau=(problem.marginals.tau_a, problem.marginals.tau_b),
        )  # fmt: skip
        self.streams = dense_bytes(n, m) > problem.memory_budget
        self.one_kernel = not self.streams and _one_kernel(terms)
        self.engine: Engine = self._engine(geometry, terms)

    def _engine(self, geometry: Geometry, terms: BatchTerms) -> Engine:
        """Return the engine to search with, from costs and terms in double precision."""
        if self.streams and self.tol >= SINGLE_TO:
            fused = FusedEngine.of(geometry, terms, self.tol)
            if fused is not None:
                return fused
        precise = self.one_kernel or not terms.single_safe
        search = geometry if precise else _search(geometry, self.problem, self.tol)
        kind = StreamEngine if self.streams else DenseEngine
        return kind(search, terms.at(search.home), geometry)

    def start(self, alpha: np.ndarray | None, g: Any) -> tuple[Any, Any]:
        """Return the first weights, and the potential g where one is known or can be had."""
        home = self.engine.terms.home
        count = self.problem.shape[0]
        first = np.full(count, 1.0 / count) if alpha is None else alpha
        first = home.bring(first[None])
        if g is not None and np.isfinite(g).all():
            return first, home.bring(g[None])
        return self.engine.first_weights(first) if alpha is None else (first, None)

    def in_double(self, ascent: Ascent) -> Ascent:
        """Go on in double precision from where an ascent in single precision is."""
        precise = self.engine.double()
        home = precise.terms.home
        alpha = home.xp.astype(ascent.at.alpha, home.dtype)
        g = home.xp.astype(ascent.at.g, home.dtype)
        usable = bool(home.xp.all(home.xp.isfinite(g)))
        alpha = alpha / home.xp.sum(alpha, axis=1, keepdims=True)
        return Ascent(precise, alpha, g if usable else None, self.tol)

    def prove(self, ascent: Ascent) -> tuple[Upper, Lower]:
        """Prove bounds from where an ascent is; a proof is ended even if time is up."""
        # With a small eps rounding would tell the plan that is proven from the one handed out.
        kept = ascent.at if self.one_kernel else None
        assert isinstance(ascent.engine, Engine)
        with no_deadline():
            proof = certify(ascent.engine, ascent.at.alpha, ascent.at.g, kept)
        return self.upper(proof), self.lower(proof)

    def product(self) -> tuple[Upper, Lower]:
        """Prove bounds that need no look at single costs."""
        proof = certify_product(self.engine)
        upper, lower = self.upper(proof), self.lower(proof)
        if not self.problem.costs.on_host or self.problem.marginals.soft:
            return upper, lower
        # Costs of the host may know better what no plan does without.
        other = cheap_lower_bound(self.problem)
        return upper, other if other.bound > lower.bound else lower

    def plan(self, proof: Certificate) -> LazyPlan:
        """The plan that proves the upper bound."""
        precise = self.engine.double()
        gibbs = Gibbs(precise.geometry, precise.terms, proof.alpha, proof.g, proof.thin)
        ranks = []
        if bool(precise.terms.home.xp.any(proof.left > 0.0)):
            ranks = [(proof.left[0, :], proof.right[0, :])]
        return LazyPlan([(float(proof.weight[0]), gibbs)], ranks)

    def upper(self, proof: Certificate) -> Upper:
        """The objective of the plan, as far as the proof has summed it."""
        value = float(proof.value[0])
        return Upper(float(proof.upper[0]), value, self.plan(proof), proof.phi[0, :])

    def lower(self, proof: Certificate) -> Lower:
        """The dual value, and the potentials that have it."""
        f, g = proving(self.engine.double(), proof.f, proof.g)
        slack = float(proof.slack[0])
        return Lower(float(proof.lower[0]), proof.alpha[0, :], f[0, :], g[0, :], slack)


def _one_kernel(terms: BatchTerms) -> bool:
    """Whether a kernel of the host in double precision is best for the search as well.

    One that few sweeps are made on takes less time than two.
    """
    if terms.sizes.shape[1] > 1 or terms.soft or terms.uneven or not terms.home.on_host:
        return False
    share = float(terms.eps[0, 0]) / float(terms.scale[0, 0])
    few = terms.a.shape[1] * terms.b.shape[1] <= FEW_ENTRIES
    return share >= FEW_SWEEPS or (few and share >= DIRECT_FROM)


def _search(geometry: Geometry, problem: Problem, tol: float) -> Geometry:
    """The geometry to search on: single precision where the user's is, or where it pays."""
    if tol < SINGLE_TO:
        return geometry
    home = problem.costs.home
    if home is not None and not home.on_host:
        return geometry.single() if home.dtype == home.xp.float32 else geometry
    # On a CPU exponentials are four times as fast in single precision.
    return geometry.single()
