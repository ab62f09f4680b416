"""`EntropicRun`: from a problem to an engine, and from its points to bounds and plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot._base.stopping import no_deadline, seconds_left
from frot.costs import DeviceCosts
from frot.costs.geometry import Geometry
from frot.costs.stack import stack_of
from frot.plans.lazy import LazyPlan
from frot.problem.adversary import simplex_of
from frot.problem.bounds import Lower, Upper, cheap_lower_bound
from frot.problem.problem import Problem
from frot.solvers.sinkhorn._fused import FusedEngine
from frot.solvers.sinkhorn._stream import StreamEngine
from frot.solvers.sinkhorn.certificate import (
    Certificate,
    certify,
    certify_product,
    certify_rows,
    proving,
)
from frot.solvers.sinkhorn.dense import DIRECT_FROM, DenseEngine, dense_bytes
from frot.solvers.sinkhorn.engine import Engine, Point
from frot.solvers.sinkhorn.kernel import Gibbs
from frot.solvers.sinkhorn.objective import plan_objective
from frot.solvers.sinkhorn.terms import BatchTerms

# Beyond this accuracy single precision cannot be trusted to lead the way.
SINGLE_TO = 2e-5
# With one group and an eps of this share of the scale of costs, sweeps are few.
FEW_SWEEPS = 0.3
FEW_ENTRIES = 40_000
# Seconds a proof takes for an entry of the cost, about, and in any case; and what share of the time
# that is left it may take.
PROOF_SECONDS, PROOF_SECONDS_ON_DEVICE, PROOF_START = 3e-8, 1e-9, 2e-3
PROOF_SHARE = 0.4
# Seconds that the objective of the plan may take once time is up.
LAST_SECONDS = 0.1


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

    @property
    def entries(self) -> int:
        """Costs that a proof looks at; those that are not kept twice."""
        _, n, m = self.problem.shape
        return (2 if self.streams else 1) * n * m

    def certify(self, at: Point, engine: Engine) -> tuple[Upper, Lower]:
        """Prove bounds from a point of an ascent with an engine, in its way of proving."""
        # With a small eps rounding would tell the plan that is proven from the one handed out.
        proof = certify(engine, at.alpha, at.g, self.tol, at if self.one_kernel else None)
        return self.upper(proof), self.lower(proof)

    def prove(self, alpha: Any, g: Any) -> tuple[Upper, Lower]:
        """Prove bounds from weights (1, L) and a potential (1, m)."""
        proof = certify(self.engine, alpha, g, self.tol)
        return self.upper(proof), self.lower(proof)

    def prove_lower(self, alpha: Any, g: Any) -> Lower:
        """Prove a lower bound from weights (1, L) and a potential (1, m)."""
        return self.lower(certify(self.engine, alpha, g))

    def prove_from_rows(self, alpha: np.ndarray, f: np.ndarray) -> tuple[Upper | None, Lower]:
        """Prove bounds from weights (L,) and potentials of the rows (n,), all on the host."""
        bring = self.engine.double().terms.home.bring
        proof = certify_rows(self.engine, bring(alpha[None]), bring(f[None]))
        return self.upper(proof), self.lower(proof)

    def on_host(self) -> tuple[Problem, np.ndarray, np.ndarray]:
        """The problem without points of zero weight, on the host, and which points are left."""
        if self.problem.costs.on_host:
            return self.problem.support()
        precise = self.engine.double()
        return host_problem(precise.geometry, precise.terms)

    def restart_from(self, lower: Lower) -> tuple[Any, Any]:
        """Return the weights and the potential g of a bound, in double precision, to start from."""
        home = self.engine.double().terms.home
        return home.bring(lower.alpha[None]), home.bring(to_numpy(lower.g)[None])

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
        """The objective of the plan, with and without its entropy."""
        return Upper(
            float(proof.upper[0]),
            float(proof.value[0]),
            self.plan(proof),
            proof.phi[0, :],
            plain=float(proof.plain_upper[0]),
            exact=None if self.problem.marginals.soft else lambda: self.objective(proof),
        )

    def objective(self, proof: Certificate) -> float:
        """The objective of the plan; a bound of it if a pass over the costs takes too long now.

        Fused kernels prove in less time than a pass in double precision takes.
        """
        if self.engine.prover is not self.engine.double() or not time_for_objective(self.entries):
            return float(proof.value[0])
        with no_deadline():
            return float(plan_objective(self.engine, proof)[0])

    def lower(self, proof: Certificate) -> Lower:
        """The dual value, and what the potentials prove without eps."""
        f, g = proving(self.engine.double(), proof.f, proof.g)
        slack, plain = float(proof.slack[0]), float(proof.plain_lower[0])
        asked = plain if proof.plain_f is not None else lambda: self._plain(proof)
        return Lower(float(proof.lower[0]), proof.alpha[0, :], f[0, :], g[0, :], slack, asked)

    def _plain(self, proof: Certificate) -> float:
        """What the potentials of a proof prove without eps, for whoever asks."""
        with no_deadline():
            return float(certify(self.engine, proof.alpha, proof.g).plain_lower[0])

    def plain_lower(self, proof: Certificate) -> Lower:
        """What the potentials prove without eps."""
        f, g = proving(self.engine.double(), proof.plain_f, proof.plain_g)
        slack = float(proof.slack[0])
        return Lower(float(proof.plain_lower[0]), proof.alpha[0, :], f[0, :], g[0, :], slack)

    def spread(self, lower: Lower, rows: np.ndarray, cols: np.ndarray) -> Lower:
        """A bound of some points, on the host, with potentials for all of them."""
        _, n, m = self.problem.shape
        bring = self.engine.double().terms.home.bring
        f, g = np.zeros(n), np.zeros(m)
        f[rows], g[cols] = lower.f, lower.g
        return replace(lower, f=bring(f), g=bring(g), plain=lower.bound)


def proof_seconds(home: Home, entries: int) -> float:
    """How long a proof takes, roughly, for so many costs: zero where too little time is left.

    Whoever has no time for one gets bounds that need no look at single costs.
    """
    each = PROOF_SECONDS if home.on_host else PROOF_SECONDS_ON_DEVICE
    seconds = PROOF_START + entries * each
    return seconds if seconds <= PROOF_SHARE * seconds_left() < np.inf else 0.0


def time_for_objective(entries: int) -> bool:
    """Whether a pass over so many costs is done before a time limit, or not long after it."""
    return entries * PROOF_SECONDS <= LAST_SECONDS + max(0.0, seconds_left())


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


def host_problem(geometry: Geometry, terms: BatchTerms) -> tuple[Problem, np.ndarray, np.ndarray]:
    """Bring one problem to the host; return it and the rows and columns that it has.

    Parameters
    ----------
    geometry : Geometry
        A batch of one in double precision.
    terms : BatchTerms
        Likewise.
    """
    prior = None if terms.log_prior is None else to_numpy(terms.log_prior)[0]
    problem = Problem(
        # A stack that knows its errors.
        stack_of(DeviceCosts(geometry, geometry.home)),
        to_numpy(terms.a)[0],
        to_numpy(terms.b)[0],
        adversary=simplex_of(terms.k, float(terms.eta[0, 0]), prior),
        eps=float(terms.eps[0, 0]),
    )
    return problem.support()
